"""Which bits of the tables of a node are what, and the hardware that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...program.loadable import operand_links
from ...program.settings import Table, named
from ...topology import IntArray
from ..endpoint_plan import EndpointPlan
from ..endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from ..endpoint_wires import SHARED, EndpointWires
from ..memories import address_width
from ..multiplexer import branch_bits, select_bits, select_code
from ..place import Location, Loops, RowTables
from ..placement import Placement, RouterPlan
from ..router import Crossbar, Output

if TYPE_CHECKING:
    from ...program import Program
    from ...program.frame import Frame

__all__ = ["Bits", "NodeTables"]

#: Bits of a table: the first, and how many.
Bits = tuple[int, int]


class Column(NamedTuple):
    """Where the values of a column of a `Table` lie in it.

    Parameters
    ----------
    codes : dict of int to int, or None
        What stands for each value; by default its low bits.
    """

    start: int
    width: int
    codes: Mapping[int, int] | None = None


@dataclass(frozen=True, eq=False)
class NodeTables:
    """The settings that a node has in each `Table`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.frame import Frame
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> tables = NodeTables(Frame.of([program]))
    >>> tables.setting_bits
    (20, 24, 20, 4)
    """

    frame: Frame

    @property
    def base_bits(self) -> int:
        """Bits of an address in a memory."""
        return address_width(max(self.frame.words, self.frame.nodes * self.frame.flits))

    @property
    def code_bits(self) -> int:
        """Bits of the cycles by which a word is late; 0 for one that is not stored."""
        return self.frame.depth.bit_length()

    @cached_property
    def _crossbars(self) -> tuple[Crossbar, Crossbar]:
        """The crossbars of routers, and of operators, which select nothing if there are none."""
        frame, ports = self.frame, range(self.frame.ports)
        first, adds = frame.sources.first_result, bool(frame.operators)
        operands = [tuple(k - first for k in frame.operand(port)) if adds else () for port in ports]
        found = []
        for sources in ([frame.out_port(port) for port in ports], operands):
            outputs, at = list[Output](), 0
            for each in sources:
                bits = branch_bits(len(each), 0) if each else ()
                outputs.append(Output(each, tuple(range(at, at + len(bits)))))
                at += len(bits)
            found.append(Crossbar(tuple(outputs), np.zeros((1, at), np.int8)))
        routers, operators = found
        return routers, operators

    @cached_property
    def _columns(self) -> dict[Table, list[Column]]:
        """Where the values of `program.settings.columns` lie."""
        frame, ports = self.frame, range(self.frame.ports)
        low = min((frame.flits - 1).bit_length(), self.base_bits)
        found: dict[Table, list[Column]] = {table: [] for table in Table}

        def take(table: Table, width: int, codes: Mapping[int, int] | None = None) -> None:
            taken = found[table]
            start = taken[-1].start + taken[-1].width if taken else 0
            taken.append(Column(start, width, codes))

        firsts = 0, frame.sources.first_result
        for table, crossbar, first in zip(Table, self._crossbars, firsts, strict=False):
            for output in crossbar.outputs:
                code = {k + first: _number(output.code(at)) for at, k in enumerate(output.sources)}
                take(
                    table, len(output.bits), {name: code[k] for name, k in self._named if k in code}
                )
        for memories in map(frame.memories, ports):
            codes = {number: select_code(len(memories), k) for k, number in enumerate(memories)}
            take(Table.READ, len(select_bits(len(codes), 0)), codes)
        widths = (
            (Table.READ, low),
            (Table.ADDRESS, self.base_bits - low),
            (Table.STORE, self.code_bits),
        )
        for table, width in widths:
            for _ in ports:
                take(table, width)
        return found

    @property
    def _named(self) -> list[tuple[int, int]]:
        """What sources are called in columns, and their numbers."""
        listed = np.array(self.frame.sources.listed)
        return [*zip(named(listed).tolist(), self.frame.numbers(listed).tolist(), strict=True)]

    @property
    def setting_bits(self) -> tuple[int, ...]:
        """Bits of a setting of each `Table` of a node."""
        return tuple(sum(each.width for each in columns) for columns in self._columns.values())

    @cached_property
    def _endpoint(self) -> tuple[EndpointShape, tuple[Bits, ...]]:
        """The shape of all endpoints, and which bits of tables are given to them."""
        frame, ports = self.frame, self.frame.ports
        _, read, address, store = self._columns.values()
        starts = np.cumsum([0, *self.setting_bits]).tolist()
        given: list[Bits] = []

        def place(*found: tuple[Table, Column]) -> Location:
            start, width = sum(bits for _, bits in given), sum(each.width for _, each in found)
            given.extend((starts[table] + each.start, each.width) for table, each in found)
            return Location(width, (0,), start)

        codes, within = read[ports : 2 * ports], read[2 * ports :]
        readers = tuple(
            EndpointReader(
                address=replace(place((Table.READ, low), (Table.ADDRESS, high)), column=0),
                memories=frame.memories(port),
                code=place((Table.READ, code)) if code.width else None,
                own=1 if frame.ports in frame.memories(port) else None,
            )
            for port, (code, low, high) in enumerate(zip(codes, within, address, strict=True))
        )
        groups = [
            tuple((port,) for port in range(ports) if memory in frame.memories(port))
            for memory in range(ports + 1)
        ]
        memory = partial(EndpointMemory, layout=0, skips=False, source=None,
                         start=Location(1, (0,)), host_reads=True)  # fmt: skip
        stored = [
            memory(
                number=port, depth=frame.words, own=None, sources=(port,), groups=groups[port],
                address=Location(frame.words, (0,), column=0),
                enable=place((Table.STORE, store[port])), strobes=tuple(range(frame.depth)),
            )
            for port in range(ports)
        ]  # fmt: skip
        stored.append(
            memory(number=ports, depth=frame.nodes * frame.flits, own=0, sources=(), strobes=(),
                   address=None, enable=None, groups=groups[ports])
        )  # fmt: skip
        width = sum(bits for _, bits in given)
        injections = tuple((port,) for port in range(ports))
        shape = EndpointShape(tuple(stored), readers, injections, len(self._words), width)
        return shape, tuple(given)

    @property
    def parts(self) -> dict[str, tuple[tuple[Bits, ...], int]]:
        """Which bits of settings, one behind the other, are given to whom, and how late."""
        # Of table `READ`, what is for operators comes first.
        first, width = (crossbar.rom.shape[1] for crossbar in self._crossbars)
        late = 1 + operand_links(self.frame.topology)
        return {"setting": (((0, first),), 1),
                "operand": (((first, width),), late),
                "row": (self._endpoint[1], 0)}  # fmt: skip

    @property
    def _words(self) -> tuple[int, ...]:
        """What comes from outside to be stored: what is made at in-ports, or words of these."""
        frame = self.frame
        first = frame.sources.first_made if frame.operators else 0
        return tuple(range(first, first + frame.ports))

    @property
    def _wires(self) -> EndpointWires:
        """How all endpoints are wired."""
        ports = tuple(range(self.frame.ports))
        words = tuple((source, SHARED) for source in self._words)
        return EndpointWires(ports, ports, words, (0, 1), tuple(range(self.frame.depth)))

    def placement(self, program: Program) -> Placement:
        """Where everything lies: at the nodes."""
        one, none = np.zeros(1, int), RowTables(Loops.of(program), [])
        sources = self.frame.sources

        def plan(crossbar: Crossbar, first: int) -> RouterPlan:
            bits = crossbar.rom.shape[1]
            places = tuple(Location(1, (0,), k) for k in range(bits))
            words = {0: tuple(range(first, sources.identity))}
            return RouterPlan(crossbar, words, places, {0: ()}, bits)

        routers, operators = self._crossbars
        router = plan(routers, sources.first_result)
        operand = plan(operators, sources.first_injection)
        operands = (operand,) if self.frame.operators else ()
        endpoints = EndpointPlan((self._endpoint[0],), one, (self._wires,), (), none, {}, 0)
        return Placement((), {}, operands, one, (router,), one, endpoints, none, self.frame)

    def coded(self, table: Table, values: IntArray) -> list[list[int]]:
        """The settings of a table, node by node, of the values of its columns."""
        total = np.zeros(values.shape[:2], object)
        for k, (start, width, codes) in enumerate(self._columns[table]):
            cut = np.maximum(values[..., k], 0) & ((1 << width) - 1)
            if codes is not None:
                known = {value: codes.get(value, 0) for value in np.unique(values[..., k]).tolist()}
                cut = np.vectorize(known.__getitem__, otypes=[object])(values[..., k])
            total |= cut.astype(object) << start
        return [list(map(int, column)) for column in total.T]


def _number(bits: Sequence[int]) -> int:
    return sum(bit << k for k, bit in enumerate(bits))
