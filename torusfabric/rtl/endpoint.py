"""What an endpoint is given: its ports, and the reads that these ask for.

An endpoint holds what a node sends and what it has received. The sequencer, or ROMs that it steps
through, give the cycles in which it reads and writes, so no flit carries a header or a valid bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from .core.store import CellBits
from .endpoint_shape import EndpointReader, EndpointShape, bank_name
from .memories import Cell, address_width, constant_at, memory_cell
from .modules import delayed
from .multiplexer import select_code
from .netlist import Leaf
from .operator_unit import OperatorUnit
from .place import Location

__all__ = ["EndpointPorts", "EndpointSettings", "Inputs", "Reader"]


@dataclass(frozen=True)
class EndpointSettings:
    """What all endpoints of a fabric have in common.

    Parameters
    ----------
    injection_delay : int
        Cycles by which all words leave later for operators in front of injection ports.
    width : int
        Bits of a flit.
    skip_bits : int
        Bits of what pointers of memories may skip behind a block.
    halves : tuple of int
        Of each form, with any root: the address of what is received, above what the node would
        send. Else 0.
    offset_bits : int
        With any root: bits of the offset of a node from it.
    unit : OperatorUnit or None
        How the words of the readers of an injection port are combined.
    pitch : int
        From the address of a flit of a block that is received to that of the next, where beats of
        several flits are written and read.
    late, links : bool, int
        Whether in some forms words are read later, by the cycles of a link, and these.
    """

    injection_delay: int
    forms: int
    width: int
    address_bits: int
    skip_bits: int
    halves: tuple[int, ...] = ()
    offset_bits: int = 0
    unit: OperatorUnit | None = None
    pitch: int = 1
    late: bool = False
    links: int = 1


class EndpointPorts(Leaf):
    """What an endpoint is given, and gives.

    Parameters
    ----------
    outside : dict of str to Member
        Members of all shapes: what nodes are given, and by what they are written and read.

    Members
    -------
    rx : In
        The words that are stored, of in-ports, or of the operators behind them; if any are.
    form : In
        The form, if anything depends on it.
    inject : Out(injections * width)
        A word for each injection port that has any, two cycles after its address.
    busy : In(1)
        Whether a run is under way.
    row : In
        The node's row ROM, when addresses of that row are given; if it has one.
    skip : In
        What a pointer skips behind a block, if blocks may be of fewer flits than there is room for.
    operator_code : In
        The control bits of the operator, while a run is under way; if it combines words in several
        ways.
    read_k, write_k, store_k : In
        Addresses of readers, and addresses and enables of memories, as far as all nodes store the
        same.
    strobe_k, strobe_ends_k : In
        The strobes of the sequencer by which the node stores on its own; and whether words are the
        last of their blocks, if that counts.
    late : In(1)
        Whether words are read later, if any form may do so.
    streams : In(1)
        Where nodes store by strobes of their own at addresses of the sequencer: whether the words
        of a row arrive while others pass, so that what the table says counts some cycles later;
        else it counts until all have arrived.
    offset : In
        With any root: the offset of the node from it.
    read_data : Out
        What is read from outside.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> fabric = tf.Fabric(program, width=8, top="stream")
    >>> endpoint = fabric.netlist.modules["endpoint_0"]()
    >>> len(endpoint.inject), len(endpoint.rx), [memory.depth for memory in endpoint.shape.memories]
    (8, 32, [4, 4, 3, 4, 1])
    """

    def __init__(
        self, shape: EndpointShape, settings: EndpointSettings, outside: Mapping[str, Member]
    ) -> None:
        self.shape, self.settings = shape, settings
        super().__init__({**self._optional(), **self._from_sequencer(), **outside})
        self.read_data = Signal(outside["read_data"].shape, reset_less=True, name="read_data")

    @cached_property
    def banks(self) -> dict[int, list[CellBits]]:
        """Where the words of each memory are, in all copies; none of memories in sections."""
        if self.shape.sectioned:
            return {}
        return {
            memory.number: [
                CellBits(bank_name(memory.number, copy), 0, self.settings.width, memory.depth)
                for copy in range(len(memory.groups) or 1)
            ]
            for memory in self.shape.memories
        }

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """What holds the words of banks, by name."""
        named = {bank.name: bank for banks in self.banks.values() for bank in banks}
        return {
            name: memory_cell(name, width=bank.width, depth=bank.depth)
            for name, bank in named.items()
        }

    def _optional(self) -> dict[str, Member]:
        """Members that shapes need that use them."""
        shape, settings = self.shape, self.settings
        by_form = shape.uses_form or len({*settings.halves}) > 1
        return {
            "inject": Out(len(shape.injections) * settings.width),
            "rx": In(shape.words * settings.width),
            "skip": In(settings.skip_bits * any(m.skips for m in shape.memories)),
            "row": In(shape.row_bits),
            "offset": In(settings.offset_bits * any(settings.halves)),
            "operator_code": In(settings.unit.bits if settings.unit and shape.combines else 0),
            "form": In(address_width(settings.forms) * by_form),
        }

    def _from_sequencer(self) -> dict[str, Member]:
        """Members for what is read and stored at addresses of the sequencer."""
        readers, memories = self.shape.readers, self.shape.memories
        bits = self.settings.address_bits
        reads = {reader.column for reader in readers}
        reads |= {reader.own for reader in readers if reader.own is not None}
        places = [m.address.column for m in memories if m.address is not None]
        stored = {m.columns[1] for m in memories if m.columns is not None}
        strobes = set[int]().union(*(m.strobes for m in memories))
        ends = set[int]().union(*(m.strobes for m in memories if m.skips))
        return (
            {f"read_{k}": In(bits) for k in sorted(reads)}
            | {f"write_{k}": In(bits) for k in sorted({k for k in places if k is not None})}
            | {f"store_{k}": In(1) for k in sorted(stored)}
            | {f"strobe_{k}": In(1) for k in sorted(strobes)}
            | {f"strobe_ends_{k}": In(1) for k in sorted(ends)}
            | {
                "late": In(int(self.settings.late)),
                "streams": In(int(any(memory.chooses for memory in memories))),
            }
        )


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the sequencer and the node's row ROM give.

    Parameters
    ----------
    held : dict of (tuple of int) to Value
        The registers so far of constants of forms.
    """

    m: Module
    endpoint: EndpointPorts
    held: dict[tuple[int, ...], Value] = field(default_factory=dict)

    def at(self, where: Location) -> Value:
        """A value, there before the first row."""
        values: list[Value] = []
        if where.start is not None:
            values.append(self.endpoint.value("row")[where.start : where.start + where.width])
        if where.by_form:
            if where.constants not in self.held:
                self.held[where.constants] = delayed(
                    self.m, self.of_form(where.constants), 1, "of_mode"
                )
            values.append(self.held[where.constants])
        elif where.constants[0] or not values:
            values.append(Const(where.constants[0], where.width))
        return values[0] if len(values) == 1 else values[0] | values[1]

    def of_form(self, constants: tuple[int, ...]) -> Value:
        """The constant of the form, without a register."""
        if len(set(constants)) == 1:  # so that nothing need know the form
            return Const(constants[0], max(constants[0].bit_length(), 1))
        return constant_at(constants, self.endpoint.value("form"))

    def reader(self, shape: EndpointReader) -> Reader:
        """What drives the reads of a reader."""
        sending = Const(1) if shape.sending is None else self.at(shape.sending)
        code = None if shape.code is None else self._now(self.at(shape.code))
        return Reader(shape, self._address(shape, code), code, sending)

    def _now(self, value: Value) -> Value:
        """A value as late as the row is read: in forms that read late the cycles of a link."""
        if not self.endpoint.settings.late:
            return value
        before = delayed(self.m, value, self.endpoint.settings.links)
        return Mux(self.endpoint.value("late"), before, value)

    def _address(self, shape: EndpointReader, code: Value | None) -> Value:
        """What a column of the sequencer gives, and a base if there is one."""
        where, address = shape.address, self._now(self.endpoint.value(f"read_{shape.column}"))
        if shape.own is not None:
            last, address = address, self._now(self.endpoint.value(f"read_{shape.own}"))
            if code is not None:
                count = len(shape.memories)
                address = Mux(code == select_code(count, count - 1), address, last)
        if not where.at_node:
            return address
        base, shift = self._now(self.at(where)), where.shift
        if shift is None:
            address = base + address
        else:
            # The sequencer gives whole addresses in forms in which the base is 0.
            address = Cat(address[:shift], base | address[shift:] if where.joins else base)
        return address[: self.endpoint.settings.address_bits]


@dataclass(frozen=True, eq=False)
class Reader:
    """What drives the reads of a reader.

    Parameters
    ----------
    address : Value
        A cycle before memories are given it.
    code : Value or None
        Select bits of the memory, with the address.
    sending : Value
        Whether it reads anything in this row.
    """

    shape: EndpointReader
    address: Value
    code: Value | None
    sending: Value

    def reads(self, memory: int) -> Value:
        """Whether the address is for a memory."""
        memories = self.shape.memories
        if self.code is None:
            return self.sending
        return self.sending & (self.code == select_code(len(memories), memories.index(memory)))
