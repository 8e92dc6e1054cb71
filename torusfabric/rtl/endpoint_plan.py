"""The endpoints of a fabric: which shapes there are, and where what they do lies.

Addresses that are the same at all nodes are columns of the sequencer; others lie in the tables at
the nodes, as do the memories that readers read, the sources of what is stored, and when it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action, Order, Point
from ..topology import BoolArray, IntArray
from .endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from .loops import Loops
from .multiplexer import select_code
from .place import Column, ColumnSet, Location, RowTables, Shown, Table
from .stores import Stores, find_stores

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["EndpointPlan", "plan_endpoints", "sharing"]

#: Sizes of memories that cost no more than smaller ones: distributed memory, block RAM.
MEMORY_SIZES = (16, 256)

#: Words of a block RAM; larger memories are made of several.
BLOCK_RAM = 512


@dataclass(frozen=True, eq=False)
class EndpointPlan:
    """All endpoints of a fabric.

    Parameters
    ----------
    shape_of : ndarray of int, shape (variants,)
    strobes : tuple of (tuple of int)
        Of each variant, the column of the sequencer that each strobe of its shape is.
    ends : tuple of int
        Of each of these columns, that which says whether the word is the last of its block; none
        where that does not count.
    columns : dict of str to Column
        What the sequencer gives, by the names of its outputs.
    skip_bits : int
        Where pointers of memories skip what blocks are not filled with: bits of that.
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    strobes: tuple[tuple[int, ...], ...]
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
        readers = shape.injections[injection]
        return sum(len(shape.readers[reader].memories) for reader in readers)


def plan_endpoints(program: Program) -> EndpointPlan:
    """Plan the endpoints of a fabric.

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
    strobes = _strobes_of(program, points)
    groups: dict[object, list[int]] = {}
    for variant in range(points.loops.variants):
        # By offset, every node may have to do what any other does.
        key = None if program.by_offset else _structure(program, points, variant, strobes[variant])
        groups.setdefault(key, []).append(variant)
    planners = [
        planner
        for members in groups.values()
        for planner in _shape_planners(program, points, strobes, members)
    ]
    shape_of = np.empty(points.loops.variants, int)
    for number, planner in enumerate(planners):
        shape_of[planner.members] = number
    return EndpointPlan(
        shapes=tuple(planner.shape for planner in planners),
        shape_of=shape_of,
        strobes=tuple(strobes),
        ends=points.strobes.ends,
        tables=RowTables(points.loops, [(planner.members, planner.table) for planner in planners]),
        columns={
            f"{name}_{k}": column
            for name, columns in points.columns.items()
            for k, column in enumerate(columns.all)
        },
        skip_bits=points.strobes.skip_bits,
    )


class Points:
    """What readers and memories do, in the rows of all forms.

    Attributes
    ----------
    columns : dict of str to ColumnSet
        Of the sequencer: ``read``, ``write``, ``store`` and ``ends``.
    given : list of (list of bool)
        Of each reader, of each form, whether all nodes that read begin at the same address, which a
        column gives; in other forms it counts words from the first.
    addresses : list of Column
        These columns.
    words : ndarray of int, shape (rows,)
        Of each row, how many words are read from one first address.
    stores : list of Stores
        Of each memory.
    strobes : Strobes
    """

    def __init__(self, program: Program) -> None:
        self.loops = Loops.of(program)
        self.columns = {name: ColumnSet() for name in ("read", "write", "store", "ends")}
        self.words = self.loops.joined([loop.blocks * loop.flits for loop in self.loops.loops])
        self.given: list[list[bool]] = []
        self.addresses: list[Column] = []
        for reader in range(self.loops.first.sources.readers):
            self._add_reads(reader)
        self.stores, self.strobes = find_stores(
            self.loops, len(program.memories), self.columns, any_length=program.any_length
        )

    def _add_reads(self, reader: int) -> None:
        """Find out what a column gives of the addresses of a reader."""
        point = Point(Action.READ, reader)
        read, memory = self.loops.values(point), self.loops.values(Point(Action.MEMORY, reader))
        reads, first = read >= 0, read.max(axis=1)
        alike = (~reads | (read == first[:, None])).all(axis=1) & (memory != NEUTRAL).all(axis=1)
        some = [bool(reads[span].any()) for _, span in self.loops.spans()]
        delays = [late if any_ else None for late, any_ in
                  zip(self.loops.delays(point), some, strict=True)]  # fmt: skip
        pitches = tuple(1 if any_ else None for any_ in some)
        self.addresses.append(Column(first, tuple(delays), Shown.ADDRESS, pitches))
        spans = zip(self.loops.spans(), some, strict=True)
        self.given.append([not any_ or bool(alike[span].all()) for (_, span), any_ in spans])

    def stored(self, memory: int, members: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """The sources of what variants store into a memory, and the strobes by which they do."""
        stores = self.stores[memory]
        return tuple(_known(each[:, members]) for each in (stores.source, stores.strobe))

    def reads(self, reader: int, variant: int) -> object:
        """What a reader of a variant has in common with those of its shape."""
        read = self.loops.values(Point(Action.READ, reader))[:, variant] >= 0
        memory = self.loops.values(Point(Action.MEMORY, reader))[:, variant]
        based = [
            not given if read[span].any() else None
            for given, (_, span) in zip(self.given[reader], self.loops.spans(), strict=True)
        ]
        return tuple(based), frozenset(memory[memory != IDLE].tolist())


def _known(numbers: IntArray) -> tuple[int, ...]:
    """The different numbers that are none for nothing."""
    found = np.unique(numbers)
    return tuple(found[found >= 0].tolist())


def _strobes_of(program: Program, points: Points) -> list[tuple[int, ...]]:
    """The strobes by which each variant stores, in the order of memories; all of them by offset."""
    variants, memories = range(points.loops.variants), range(len(points.stores))
    if program.by_offset:
        every = {strobe for k in memories for strobe in points.stored(k, variants)[1]}
        return [tuple(sorted(every))] * len(variants)
    return [
        tuple(dict.fromkeys(k for memory in memories for k in points.stored(memory, [variant])[1]))
        for variant in variants
    ]


def _structure(program: Program, points: Points, variant: int, strobes: Sequence[int]) -> object:
    """What a variant has in common with all of its shape: not by which strobes it stores."""
    memories = []
    for number, words in enumerate(program.depth[variant].tolist()):
        sources, own = points.stored(number, [variant])
        starts = [_known(points.stores[number].start[span, variant])
                  for _, span in points.loops.spans()]  # fmt: skip
        numbers = tuple(map(strobes.index, own))
        memories.append((_size(program, number, words), sources, numbers, *starts))
    readers = range(points.loops.first.sources.readers)
    return tuple(memories), tuple(points.reads(reader, variant) for reader in readers)


def _shape_planners(
    program: Program, points: Points, strobes: Sequence[tuple[int, ...]], members: list[int]
) -> list[_ShapePlanner]:
    """Plan variants of the same structure: one shape, or where tables are less, one by strobes."""
    together = _ShapePlanner(program, points, strobes, members)
    if not together.shape.row_bits:
        return [together]
    groups: dict[tuple[int, ...], list[int]] = {}
    for variant in members:
        groups.setdefault(strobes[variant], []).append(variant)
    apart = [_ShapePlanner(program, points, strobes, each) for each in groups.values()]
    least = min(planner.shape.row_bits for planner in apart)
    return apart if least < together.shape.row_bits else [together]


def _size(program: Program, number: int, depth: int) -> int:
    """A size of memory that serves a depth; none is larger than any node needs.

    Nodes whose depths differ share a module where that costs nothing, for memories come in sizes: a
    register, distributed memory of 16 words, block RAM of 256 words, or of 512.
    """
    if len(program.depth) == 1 or depth <= 1:
        return depth
    blocks = -(-depth // BLOCK_RAM) * BLOCK_RAM
    size = next((size for size in MEMORY_SIZES if depth <= size), blocks)
    return min(size, int(program.depth[:, number].max()))


class _ShapePlanner:
    """Plans the shape of some variants of the same structure, and their tables."""

    def __init__(
        self,
        program: Program,
        points: Points,
        strobes: Sequence[tuple[int, ...]],
        members: list[int],
    ) -> None:
        self._program, self._points, self.members = program, points, members
        self._strobes = [strobes[variant] for variant in members]
        self._spans = [span for _, span in points.loops.spans()]
        self.table = Table(len(members), self._spans)
        # Readers that only ever read the word that changes nothing are none.
        found = [
            (number, memories)
            for number in range(points.loops.first.sources.readers)
            if (memories := self._numbers(Action.MEMORY, number)) - {NEUTRAL}
        ]
        self._readers = [number for number, _ in found]
        self._read = [memories for _, memories in found]
        self._host_reads = _memories_host_reads(program, members)

    def _values(self, action: Action, number: int) -> IntArray:
        """The values of a control point, by member and row."""
        chosen: IntArray = self._points.loops.values(Point(action, number))[:, self.members].T
        return chosen

    def _numbers(self, action: Action, number: int) -> set[int]:
        """The different values of a control point that matter."""
        return {*np.unique(self._values(action, number)).tolist()} - {IDLE}

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
            self._reader(index, _rivals(index, groups)) for index in range(len(self._readers))
        )
        injections = tuple(
            tuple(self._readers.index(reader) for reader in group if reader in self._readers)
            for group in self._points.loops.first.sources.injections
        )
        return EndpointShape(memories, readers, injections, self.table.width)

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        reading = {}
        for index, reader in enumerate(self._readers):
            if number in self._read[index]:
                there = self._values(Action.MEMORY, reader) == number
                reading[index] = [there[:, span] for span in self._spans]
        return sharing(reading, [loop.order for loop in self._points.loops.loops])

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> EndpointMemory:
        """A memory."""
        memory, stores = self._program.memories[number], self._points.stores[number]
        depths = self._program.depth[self.members, number].tolist()
        sources, _ = self._points.stored(number, self.members)
        chosen, strobe = stores.source[:, self.members].T, self._own_strobes(stores)
        strobes = _known(strobe)
        own = [
            k
            for k, other in enumerate(self._program.memories)
            if other.own and other.layout == memory.layout
        ]
        return EndpointMemory(
            number=number,
            depth=max(_size(self._program, number, depth) for depth in depths),
            own=own.index(number) if memory.own else None,
            layout=memory.layout,
            sources=sources,
            address=self._address(stores),
            enable=self._enable(stores, strobe, strobes),
            strobes=strobes,
            skips=bool(self._points.strobes.ends) and bool(strobes),
            source=self._codes(chosen, sources) if len(sources) > 1 else None,
            start=self.table.place(stores.start[:, self.members].T),
            groups=groups,
            host_reads=number in self._host_reads,
        )

    def _address(self, stores: Stores) -> Location | None:
        """A place for where all nodes store the same: the sequencer alone knows it."""
        if not any(stores.alike):
            return None
        return self.table.place(
            np.full((len(self.members), len(stores.start)), IDLE),
            columns=self._points.columns["write"],
            column=stores.address,
            given=[True] * len(stores.alike),
        )

    def _own_strobes(self, stores: Stores) -> IntArray:
        """By which strobe of their own members store, by member and row; -1 where they do not."""
        found: IntArray = stores.strobe[:, self.members].T.copy()
        for row, strobes in zip(found, self._strobes, strict=True):
            here = row >= 0
            row[here] = [strobes.index(strobe) for strobe in row[here].tolist()]
        return found

    def _enable(self, stores: Stores, strobe: IntArray, strobes: Sequence[int]) -> Location | None:
        """A place for when a memory stores: which strobe counts, from 1, where that differs."""
        if not any(stores.alike) and not strobes:
            return None
        return self.table.place(
            np.where(strobe >= 0, np.searchsorted(strobes, strobe) + 1, 0),
            columns=self._points.columns["store"] if any(stores.alike) else None,
            column=stores.enable,
            given=stores.alike,
        )

    def _reader(self, index: int, rivals: set[int]) -> EndpointReader:
        """A reader; `rivals` share read ports with it."""
        number, points = self._readers[index], self._points
        # What changes nothing comes after all memories.
        memories = tuple(sorted(self._read[index], key=lambda k: (k == NEUTRAL, k)))
        code = None
        if len(memories) > 1:
            code = self._codes(self._values(Action.MEMORY, number), memories)
        address = self.table.place(
            self._values(Action.READ, number),
            columns=points.columns["read"],
            column=points.addresses[number],
            given=points.given[number],
            words=points.words,
        )
        sending = self._sending(index, rivals) if rivals else None
        return EndpointReader(number, address, memories, code, sending)

    def _sending(self, index: int, rivals: set[int]) -> Location:
        """A place for whether a reader reads; always in forms in which it has no rival."""
        number = self._readers[index]
        reads = (self._values(Action.READ, number) >= 0).astype(int)
        memory = self._values(Action.MEMORY, number)
        others = [self._values(Action.MEMORY, self._readers[rival]) for rival in rivals]
        for span in self._spans:
            mine = memory[:, span][memory[:, span] != IDLE]
            if len(mine) and not np.isin(mine, [other[:, span] for other in others]).any():
                reads[:, span] = 1
        return self.table.place(reads)


def _memories_host_reads(program: Program, members: list[int]) -> set[int]:
    """The memories that the host reads at nodes of some variants."""
    if program.by_offset:
        nodes = np.arange(program.topology.nodes)
    else:
        nodes = np.nonzero(np.isin(program.variant_of, members))[0]
    found: set[int] = set()
    for form in program.forms:
        found |= form.receive_map.memories(form.groups.position[nodes])
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
