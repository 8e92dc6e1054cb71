"""What an endpoint is given: its ports, and the reads that these ask for.

An endpoint holds what a node sends and what it has received. The sequencer, or ROMs that it steps
through, give the cycles in which it reads and writes, so no flit carries a header or a valid bit.

For the host, the words of a node's memories are chosen from in stages of at most two look-up tables
with a register behind each. All endpoints of a fabric take as long: one with fewer stages asks its
memories later. A node that is not asked shows 0, so that a tree that only combines brings the word
of the one that is to the host port.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ..program.fields import NEUTRAL
from .endpoint_shape import STAGE_INPUTS, Bank, EndpointReader, EndpointShape, banks_of
from .host import suffix
from .memories import Cell, address_width, choose, constant_at, memory_cell
from .modules import apart, delayed
from .multiplexer import SLICE, cascade, extended_cascade, keeper, select_bits, select_code
from .netlist import Leaf
from .operator_unit import OperatorUnit
from .place import Location

__all__ = ["EndpointPorts", "EndpointSettings", "HostReads", "Inputs", "Reader"]


@dataclass(frozen=True)
class EndpointSettings:
    """What all endpoints of a fabric have in common.

    Parameters
    ----------
    injection_delay : int
        Cycles by which all words leave later for operators in front of injection ports.
    width : int
        Bits of a flit.
    write_bits : int
        The low bits of the number of a node by which writes choose among those that are enabled.
    memories : int
        Memories of the program.
    own : tuple of int
        Memories that the host writes by each send map.
    skip_bits : int
        Bits of what pointers of memories may skip behind a block.
    private : bool
        Whether every node has a read address of its own, instead of one from the host.
    gathered : bool
        Whether the words read at all nodes are combined on their way to the host, so that a node
        that is not asked shows 0.
    host_stages : int
        Cycles from the words read for the host to the one of the memory that it asks for.
    halves : tuple of int
        Of each form, with any root: the address of what is received, above what the node would
        send. Else 0.
    offset_bits : int
        With any root: bits of the offset of a node from it.
    unit : OperatorUnit or None
        How the words of the readers of an injection port are combined.
    spare : bool
        Whether what was written last is there a cycle before the first read of any run.
    pitch : int
        From the address of a flit of a block that is received to that of the next, where beats of
        several flits are written and read.
    late, links : bool, int
        Whether in some forms words are read later, by the cycles of a link, and these.
    """

    injection_delay: int
    forms: int
    width: int
    nodes: int
    write_bits: int
    address_bits: int
    memories: int
    own: tuple[int, ...]
    skip_bits: int
    private: bool = False
    gathered: bool = False
    host_stages: int = 1
    halves: tuple[int, ...] = ()
    offset_bits: int = 0
    unit: OperatorUnit | None = None
    spare: bool = False
    pitch: int = 1
    late: bool = False
    links: int = 1


class EndpointPorts(Leaf):
    """What an endpoint is given, and gives.

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
    write_node, write_bank, write_address, write_data, write_enable : In
        Writes a word into one of the memories for what the node sends, if `write_node` is the low
        bits of `node`, and where there are several send maps into one of the memories of each:
        ``write_bank_k`` and ``write_address_k``. `write_data` is given a cycle later than the
        others, unless private.
    read_node, read_bank, read_address : In
        Reads a word; `read_bank` chooses the memory. It is there after as many cycles as
        `EndpointPlan.answer` says, or one more where private.
    offset : In
        With any root: the offset of the node from it; only the root shows the host what it sends.
    read_data : Out
        A beat, as `write_data` is.
    node : In
        The number of this node.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> endpoint = tf.Fabric(program, width=8).netlist.modules["endpoint_0"]()
    >>> len(endpoint.inject), len(endpoint.rx), [memory.depth for memory in endpoint.shape.memories]
    (8, 32, [4, 4, 3, 4, 1])
    """

    def __init__(self, shape: EndpointShape, settings: EndpointSettings) -> None:
        self.shape, self.settings = shape, settings
        super().__init__(self._optional() | self._from_sequencer() | self.outside())
        self.read_data = Signal(shape.beat * settings.width, reset_less=True, name="read_data")

    @cached_property
    def banks(self) -> dict[int, list[Bank]]:
        """Where the words of each memory are; none of memories in sections."""
        if self.shape.sectioned:
            return {}
        settings = self.settings
        return banks_of(self.shape, settings.width, private=settings.private, pitch=settings.pitch)

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """What holds the words of banks, by name."""
        named = {bank.name: bank for banks in self.banks.values() for bank in banks}
        return {
            name: memory_cell(name, width=bank.width, depth=bank.depth, parts=bank.parts)
            for name, bank in named.items()
        }

    def _optional(self) -> dict[str, Member]:
        """Members that shapes need that use them."""
        shape, settings = self.shape, self.settings
        widths = {
            "rx": shape.words * settings.width,
            "skip": settings.skip_bits if any(m.skips for m in shape.memories) else 0,
            "row": shape.row_bits,
            "offset": settings.offset_bits if any(settings.halves) else 0,
            "operator_code": settings.unit.bits if settings.unit and shape.combines else 0,
            "form": address_width(settings.forms) if self._by_form() else 0,
        }
        inject = len(shape.injections) * settings.width
        return ({"inject": Out(inject)} if inject else {}) | {
            name: In(width) for name, width in widths.items() if width
        }

    def _by_form(self) -> bool:
        """Whether anything depends on the form."""
        return self.shape.uses_form or len({*self.settings.halves}) > 1

    def _from_sequencer(self) -> dict[str, Member]:
        """Members for what is read and stored at addresses of the sequencer."""
        readers, memories, bits = (
            self.shape.readers,
            self.shape.memories,
            self.settings.address_bits,
        )
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
            | ({"late": In(1)} if self.settings.late else {})
            | ({"streams": In(1)} if any(memory.chooses for memory in memories) else {})
        )

    def outside(self) -> dict[str, Member]:
        """Members of all shapes: what nodes are given, and by what they are written and read."""
        settings, node_bits = self.settings, address_width(self.settings.nodes)
        word = self.shape.beat * settings.width
        return {
            "busy": In(1),
            "node": In(node_bits),
            "write_node": In(settings.write_bits),
            "write_data": In(word),
            "write_enable": In(1),
            "read_node": In(node_bits),
            "read_bank": In(address_width(settings.memories)),
            "read_address": In(settings.address_bits),
            "read_data": Out(word),
        } | {
            name: In(width)
            for layout, count in enumerate(settings.own)
            for name, width in (
                (f"write_bank{suffix(layout)}", address_width(count)),
                (f"write_address{suffix(layout)}", settings.address_bits),
            )
        }


class Inputs:
    """What the sequencer and the node's row ROM give."""

    def __init__(self, m: Module, endpoint: EndpointPorts) -> None:
        self._m, self._endpoint = m, endpoint
        self._held: dict[tuple[int, ...], Value] = {}

    def at(self, where: Location) -> Value:
        """A value, there before the first row."""
        values: list[Value] = []
        if where.start is not None:
            values.append(self._endpoint.value("row")[where.start : where.start + where.width])
        if where.by_form:
            if where.constants not in self._held:
                self._held[where.constants] = delayed(
                    self._m, self.of_form(where.constants), 1, "of_mode"
                )
            values.append(self._held[where.constants])
        elif where.constants[0] or not values:
            values.append(Const(where.constants[0], where.width))
        return values[0] if len(values) == 1 else values[0] | values[1]

    def of_form(self, constants: tuple[int, ...]) -> Value:
        """The constant of the form, without a register."""
        if len(set(constants)) == 1:  # so that nothing need know the form
            return Const(constants[0], max(constants[0].bit_length(), 1))
        return constant_at(constants, self._endpoint.value("form"))

    def reader(self, shape: EndpointReader) -> Reader:
        """What drives the reads of a reader."""
        sending = Const(1) if shape.sending is None else self.at(shape.sending)
        code = None if shape.code is None else self._now(self.at(shape.code))
        return Reader(shape, self._address(shape, code), code, sending)

    def _now(self, value: Value) -> Value:
        """A value as late as the row is read: in forms that read late the cycles of a link."""
        if not self._endpoint.settings.late:
            return value
        before = delayed(self._m, value, self._endpoint.settings.links)
        return Mux(self._endpoint.value("late"), before, value)

    def _address(self, shape: EndpointReader, code: Value | None) -> Value:
        """What a column of the sequencer gives, and a base if there is one."""
        where, address = shape.address, self._now(self._endpoint.value(f"read_{shape.column}"))
        if shape.own is not None:
            last, address = address, self._now(self._endpoint.value(f"read_{shape.own}"))
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
        return address[: self._endpoint.settings.address_bits]


@dataclass
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


class HostReads:
    """The host's side of the reads of an endpoint.

    Attributes
    ----------
    chosen : Value
        Whether the host asks this node.
    address : Value
        Where; both a cycle before memories are given it.
    waits : bool
        Whether questions are put later than they come, for all nodes to answer at once.
    """

    def __init__(self, m: Module, endpoint: EndpointPorts) -> None:
        self._m, self._endpoint = m, endpoint
        self._settings = endpoint.settings
        self._width = endpoint.shape.beat * endpoint.settings.width
        self._stages = endpoint.shape.read_stages
        # What comes from the host port has passed a register that `busy` has passed as well.
        pause = self._settings.host_stages - self._stages + self._settings.private
        self.waits = pause > 0
        value = endpoint.value
        self.chosen = delayed(m, value("read_node") == value("node"), pause, "asked")
        self._bank = delayed(m, value("read_bank"), pause)
        self.address = delayed(m, value("read_address"), pause)
        halves = self._settings.halves
        if any(halves):
            # Only the root, at offset 0, shows what it sends rather than what it has received.
            received = value("offset").any()
            cut = {half: self.address[: (half - 1).bit_length()] for half in halves if half}
            addresses = [Cat(cut[half], received) if half else self.address for half in halves]
            several = len({*halves}) > 1
            self.address = choose(addresses, value("form")) if several else addresses[0]

    def code(self, memories: Sequence[int]) -> Value:
        """The select bits with which a cascade passes on the memory that is asked for."""
        known = [number for number in memories if number != NEUTRAL]
        codes = [
            select_code(len(memories), memories.index(number if number in known else known[-1]))
            for number in range(max(known) + 1)
        ]
        width = max(len(select_bits(len(memories), 0)), 1)
        return choose([Const(value, width) for value in codes], self._bank)

    def show(self, word: Value) -> None:
        """Show a word that is the one asked for a cycle after its memory was given the address."""
        read_data = self._endpoint.read_data
        if not self._settings.gathered:
            self._m.d.sync += read_data.eq(word)
            return
        # A register holds what resets the word, with nothing in between.
        silent = delayed(self._m, ~self.chosen, 1 + self._stages, "silent")
        self._m.d.sync += read_data.eq(Mux(silent, 0, word))

    def show_one(self, words: dict[int, Value], *, constant: set[int]) -> None:
        """Show the word of the memory that is asked for.

        Parameters
        ----------
        words : dict of int to Value
            By the number of the memory; at least one.
        constant : set of int
            The memories that show the same word all the time, so that it need not wait.
        """
        numbers = sorted(words)
        if len(numbers) == 1:
            self.show(words[numbers[0]])
            return
        code = delayed(self._m, self.code(numbers), 1, "code")
        size = SLICE if self._endpoint.alone else self._width
        slices = []
        for low in range(0, self._width, size):
            high = min(low + size, self._width)
            inputs = [(words[number][low:high], number in constant) for number in numbers]
            slices.append(self._choice(inputs, code, high - low, f"host_select_{low // size}"))
        self.show(Cat(*slices))

    def _choice(
        self, inputs: list[tuple[Value, bool]], code: Value, width: int, name: str
    ) -> Value:
        """One of several words, chosen in stages, without the register behind the last one."""
        m, alone = self._m, self._endpoint.alone
        keep = keeper(m, width)
        first, later = inputs[:STAGE_INPUTS], inputs[STAGE_INPUTS:]
        used = len(select_bits(len(inputs), 0)) - -(-len(later) // 2)
        bits, code = apart(m, code[:used], name=name, alone=alone), code[used:]
        chosen = cascade([word for word, _ in first], [*bits], width, keep)
        for stage in range(1, self._stages):
            held = Signal(width, name=f"{name}_word_{stage}", reset_less=True)
            m.d.sync += held.eq(chosen[:width])
            pairs = later[(stage - 1) * STAGE_INPUTS :][:STAGE_INPUTS]
            used = -(-len(pairs) // 2)
            early = delayed(m, code[:used], stage)
            bits = apart(m, early, name=f"{name}_{stage}", alone=alone)
            late = [word if same else delayed(m, word, stage) for word, same in pairs]
            chosen, code = extended_cascade(held, late, [*bits], keep), code[used:]
        return chosen[:width]
