"""The endpoints of a fabric: which shapes there are, and where what they do lies.

Addresses that are the same at all nodes are columns of the sequencer; others lie in the tables at
the nodes, as do the memories that readers read, the sources of what is stored, and when it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..program import Program
from ..program.fields import IDLE, NEUTRAL, Action, Order, Point
from ..topology import BoolArray, IntArray
from .endpoint_points import Points, Stores, known
from .endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from .endpoint_wires import SHARED, EndpointWires, WiredEndpoints, memory_size
from .multiplexer import select_code
from .place import Column, Location, RowTables, Table

__all__ = ["EndpointPlan", "plan_endpoints", "sharing"]


@dataclass(frozen=True, eq=False)
class EndpointPlan:
    """All endpoints of a fabric.

    Parameters
    ----------
    shape_of : ndarray of int, shape (variants,)
    wires : tuple of EndpointWires
        Of each variant, which of its points stands at each place of its shape.
    ends : tuple of int
        Of each column of a strobe, that which says whether the word is the last of its block; none
        where that does not count.
    columns : dict of str to Column
        What the sequencer gives, by the names of its outputs.
    skip_bits : int
        Where pointers of memories skip what blocks are not filled with: bits of that.
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    wires: tuple[EndpointWires, ...]
    ends: tuple[int, ...]
    tables: RowTables
    columns: dict[str, Column]
    skip_bits: int

    @property
    def read_stages(self) -> int:
        """Cycles in which each endpoint chooses the word of the memory that the host asks for."""
        return max(shape.read_stages for shape in self.shapes)

    @property
    def answer(self) -> int:
        """Cycles from a read to its word: a register, the memory, and the choice of the memory."""
        return 2 + self.read_stages

    def choice(self, variant: int, injection: int) -> int:
        """Of how many memories a node chooses what it injects at a port."""
        shape = self.shapes[self.shape_of[variant]]
        readers = shape.injections[self.wires[variant].injections.index(injection)]
        return sum(len(shape.readers[reader].memories) for reader in readers)


def plan_endpoints(program: Program, beat: int = 1) -> EndpointPlan:
    """Plan the endpoints of a fabric, which are written and read by so many flits at a time.

    Examples
    --------
    Of a table, all nodes have one endpoint, whose addresses come from the sequencer.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"))
    >>> plan = plan_endpoints(program)
    >>> len(plan.shapes), plan.shapes[0].row_bits, sorted(plan.columns)
    (1, 0, ['read_0', 'store_0', 'store_1', 'write_0'])
    """
    points = Points(program)
    wired = WiredEndpoints(program, points)
    planners = _planners(
        lambda members: _ShapePlanner(program, points, wired, members),
        [*range(points.loops.variants)],
        (
            [*wired.structures],
            [wires.numbers for wires in wired.wires],
            [wires.strobes for wires in wired.wires],
        ),
    )
    shapes, shape_of = dict[EndpointShape, int](), np.empty(points.loops.variants, int)
    for planner in planners:
        shape = replace(planner.shape, beat=beat)
        shape_of[planner.members] = shapes.setdefault(shape, len(shapes))
    return EndpointPlan(
        shapes=tuple(shapes),
        shape_of=shape_of,
        wires=tuple(wired.wires),
        ends=points.ends,
        tables=RowTables(points.loops, [(planner.members, planner.table) for planner in planners]),
        columns={
            f"{name}_{k}": column
            for name, columns in points.columns.items()
            for k, column in enumerate(columns.all)
        },
        skip_bits=points.skip_bits,
    )


def _planners(
    make: Callable[[list[int]], _ShapePlanner],
    members: list[int],
    keys: Sequence[Sequence[object]],
) -> list[_ShapePlanner]:
    """Plan variants that have the first of their keys in common: one shape each.

    Where that costs more than it would otherwise, those have shapes of their own that have the next
    key in common.
    """
    groups = defaultdict(list)
    for variant in members:
        groups[keys[0][variant]].append(variant)
    found = []
    for group in groups.values():
        together = [make(group)]
        if keys[1:] and len(group) > 1 and not together[0].is_least:
            apart = _planners(make, group, keys[1:])
            less = np.min([planner.cost for planner in apart], axis=0) < together[0].cost
            together = apart if less.any() else together
        found += together
    return found


def _agreed(late: Sequence[int]) -> tuple[int, ...]:
    """Cycles of each form, in those that do not matter as in others."""
    known = max(late)
    return tuple(max(known if cycles < 0 else cycles, 0) for cycles in late)


class _ShapePlanner:
    """Plans the shape of some variants of the same structure, and their tables."""

    def __init__(
        self, program: Program, points: Points, wired: WiredEndpoints, members: list[int]
    ) -> None:
        self._program, self._points, self.members = program, points, members
        self._wires = [wired.wires[variant] for variant in members]
        self._spans = points.loops.spans
        self.table = Table(len(members), self._spans)
        self._members, self._known = np.array(members), dict[object, IntArray]()
        self._readers = np.array([wires.readers for wires in self._wires])
        self._read = [
            {*np.unique(self._values(Action.MEMORY, index)).tolist()} - {IDLE}
            for index in range(self._readers.shape[1])
        ]
        self._read_of = wired.read_of[members[0]]
        self._host_reads = wired.host_reads[members[0]]

    def _values(self, action: Action, index: int) -> IntArray:
        """The values of a control point of a reader, by member and row."""
        key = action, index
        if key not in self._known:
            loops, numbers = self._points.loops, self._readers[:, index]
            values = self._known[key] = np.empty((len(numbers), loops.rows), int)
            order = np.argsort(numbers, kind="stable")
            used, starts = np.unique(numbers[order], return_index=True)
            for number, here in zip(used.tolist(), np.split(order, starts[1:]), strict=True):
                values[here] = loops.values(Point(action, number))[:, self._members[here]].T
        return self._known[key]

    @property
    def cost(self) -> tuple[int, int]:
        """Bits of the table, and copies of memories."""
        return self.shape.row_bits, sum(len(memory.groups) for memory in self.shape.memories)

    @property
    def is_least(self) -> bool:
        """Whether no part of the variants can cost less."""
        copied = any(len(memory.groups) > 1 for memory in self.shape.memories)
        return not self.shape.row_bits and not copied

    def _codes(self, values: IntArray, order: Sequence[int]) -> Location:
        """A place for the select bits of numbers of which there are some, by member and row."""
        codes = np.full_like(values, IDLE)
        for index, number in enumerate(order):
            codes[values == number] = select_code(len(order), index)
        return self.table.place(codes)

    @cached_property
    def shape(self) -> EndpointShape:
        """The shape."""
        groups = [self._groups(number) for number in range(len(self._program.memories))]
        # The order of memories and readers is that of what tables hold.
        memories = tuple(self._memory(number, sets) for number, sets in enumerate(groups))
        readers = tuple(
            self._reader(index, _rivals(index, groups)) for index in range(len(self._read))
        )
        wires, ports = self._wires[0], self._points.loops.first.sources.injections
        injections = tuple(
            tuple(wires.readers.index(reader) for reader in ports[port] if reader in wires.readers)
            for port in wires.injections
        )
        return EndpointShape(memories, readers, injections, len(wires.words), self.table.width)

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        reading = {}
        for index, memories in enumerate(self._read):
            if number in memories:
                there = self._values(Action.MEMORY, index) == number
                reading[index] = [there[:, span] for span in self._spans]
        return sharing(reading, [loop.order for loop in self._points.loops.loops])

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> EndpointMemory:
        """A memory."""
        memory, stores = self._program.memories[number], self._points.stores[number]
        depths = {*self._program.depth[self.members, number].tolist()}
        first = self._points.loops.first.sources.first_injection
        source, strobe = self._sources(stores.source, number, first), self._strobes(stores.strobe)
        sources, strobes = known(source), known(strobe)
        own = [
            k
            for k, other in enumerate(self._program.memories)
            if other.own and other.layout == memory.layout
        ]
        return EndpointMemory(
            number=number,
            depth=max(memory_size(self._program, number, depth) for depth in depths),
            own=own.index(number) if memory.own else None,
            layout=memory.layout,
            sources=sources,
            address=self._address(stores),
            enable=self._enable(stores, strobe, strobes),
            strobes=strobes,
            skips=bool(self._points.ends) and bool(strobes),
            source=self._codes(source, sources) if len(sources) > 1 else None,
            start=self.table.place(stores.start[:, self.members].T),
            late=_agreed(stores.late[:, self.members].max(axis=1).tolist()),
            groups=groups,
            host_reads=number in self._host_reads,
        )

    def _address(self, stores: Stores) -> Location | None:
        """A place for where all nodes store the same: the sequencer alone knows it."""
        if not any(stores.alike):
            return None
        return self.table.place(
            np.full((len(self.members), len(stores.start)), IDLE),
            column=self._points.columns["write"].add(stores.address),
            given=[True] * len(stores.alike),
        )

    def _sources(self, numbers: IntArray, memory: int, first: int) -> IntArray:
        """The source in the module of what a memory stores, by member and row; -1 for none."""
        found, wires = self._own(numbers), self._wires
        words = np.array([each.words for each in wires], int).reshape(len(wires), -1, 2)
        ports = np.array([each.injections for each in wires], int)
        # A word that no other memory stores comes before one that several do.
        which = np.where(words[..., 1] == memory, 0, np.where(words[..., 1] == SHARED, 1, 2))
        order = np.argsort(which, axis=1, kind="stable")
        sources = np.where(which < 2, words[..., 0], IDLE)
        arrived = _position(found, np.take_along_axis(sources, order, axis=1), order)
        injected = _position(found - first, ports) + words.shape[1]
        return np.where(found < 0, IDLE, np.where(found < first, arrived, injected))

    def _strobes(self, numbers: IntArray) -> IntArray:
        """The strobe in the module by which a memory stores, by member and row; -1 for none."""
        found = self._own(numbers)
        strobes = np.array([each.strobes for each in self._wires], int)
        return np.where(found < 0, IDLE, _position(found, strobes))

    def _own(self, numbers: IntArray) -> IntArray:
        """Those of the members, by member and row."""
        found: IntArray = numbers[:, self._members].T.astype(int)
        return found

    def _enable(self, stores: Stores, strobe: IntArray, strobes: Sequence[int]) -> Location | None:
        """A place for when a memory stores: which strobe counts, from 1, where that differs."""
        if not any(stores.alike) and not strobes:
            return None
        column = None
        if any(stores.alike):
            shown = np.where(self.table.rows_of(stores.alike), stores.enable.values, 0)
            column = self._points.columns["store"].add(replace(stores.enable, values=shown))
        return self.table.place(
            np.where(strobe >= 0, np.searchsorted(strobes, strobe) + 1, 0),
            column=column,
            given=stores.alike,
        )

    def _reader(self, index: int, rivals: set[int]) -> EndpointReader:
        """A reader; `rivals` share read ports with it."""
        # What changes nothing comes after all memories.
        memories = tuple(sorted(self._read[index], key=lambda k: (k == NEUTRAL, k)))
        code = None
        if len(memories) > 1:
            code = self._codes(self._values(Action.MEMORY, index), memories)
        address = self.table.place(
            self._values(Action.READ, index),
            column=self._read_of[index],
            given=self._given(index),
            words=self._points.words,
        )
        return EndpointReader(address, memories, code, self._sending(index, rivals))

    def _given(self, index: int) -> list[bool]:
        """In which forms a column gives the addresses of a reader: at all members that read."""
        values, given = self._values(Action.READ, index) >= 0, self._points.given
        by_member = np.array([given[number] for number in self._readers[:, index]])
        return [
            bool(by_member[values[:, span].any(axis=1), form].all())
            for form, span in enumerate(self._spans)
        ]

    def _sending(self, index: int, rivals: set[int]) -> Location | None:
        """A place for whether a reader reads; always in forms in which it has no rival."""
        if not rivals:
            return None
        reads = (self._values(Action.READ, index) >= 0).astype(int)
        memory = self._values(Action.MEMORY, index)
        others = [self._values(Action.MEMORY, rival) for rival in rivals]
        for span in self._spans:
            mine = memory[:, span][memory[:, span] != IDLE]
            if len(mine) and not np.isin(mine, [other[:, span] for other in others]).any():
                reads[:, span] = 1
        return self.table.place(reads)


def _position(values: IntArray, known: IntArray, numbers: IntArray | None = None) -> IntArray:
    """Where each value is among what its row knows, or the number of that; 0 where it is not."""
    found = np.zeros(values.shape, int)
    for at in reversed(range(known.shape[1])):
        here = np.broadcast_to(known[:, at, None], values.shape) == values
        every = np.full(len(values), at) if numbers is None else numbers[:, at]
        found[here] = np.broadcast_to(every[:, None], values.shape)[here]
    return found


def _rivals(index: int, groups: Sequence[tuple[tuple[int, ...], ...]]) -> set[int]:
    """Other readers with which a reader shares a read port, by their index."""
    shared = (set(s) for sets in groups for s in sets if index in s)
    return set().union(*shared) - {index}


def sharing(
    reading: dict[int, list[BoolArray]], orders: Sequence[Order]
) -> tuple[tuple[int, ...], ...]:
    """Which readers can share a read port of a memory, since they never read it at the same time.

    Parameters
    ----------
    reading : dict of int to (list of ndarray of bool, shape (rows, variants))
        When each reads it, in each form.
    orders : sequence of Order
        Of the forms. In a loop by flits any two readers may meet.

    Returns
    -------
    tuple of (tuple of int)
        Readers in groups; each group needs a copy of the memory of its own.

    Examples
    --------
    >>> sharing({0: [np.array([[1, 0]])], 1: [np.array([[1, 1]])], 2: [np.array([[0, 1]])]},
    ...         [Order.ROW])
    ((0, 2), (1,))
    """
    groups: list[tuple[list[int], list[BoolArray]]] = []
    for name, mine in sorted(reading.items()):
        mine = [
            there if order is Order.ROW else np.full_like(there, there.any())
            for there, order in zip(mine, orders, strict=True)
        ]
        for members, used in groups:
            if not any((a & b).any() for a, b in zip(used, mine, strict=True)):
                members.append(name)
                used[:] = [a | b for a, b in zip(used, mine, strict=True)]
                break
        else:
            groups.append(([name], mine))
    return tuple(tuple(members) for members, _ in groups)
