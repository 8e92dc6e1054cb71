"""The endpoints of a fabric: which shapes there are, and where what they do lies.

Addresses that are the same at all nodes are columns of the sequencer; others lie in the tables at
the nodes, as do the memories that readers read, the sources of what is stored, and when it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action, Order
from ..topology import BoolArray, IntArray
from .cascade import select_code
from .endpoint_columns import ReadColumns, StoreColumns
from .endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from .loops import Loops
from .place import Column, Location, Table
from .windows import Phase, Windows

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
    shapes : tuple of EndpointShape
    shape_of : ndarray of int, shape (variants,)
    rows : tuple of (tuple of int)
        Of each variant, the rows of its table.
    columns : dict of str to Column
        What the sequencer gives, by the names of its outputs.
    used : frozenset of int
        The modes in whose rows any endpoint looks anything up.
    windows : Windows
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    rows: tuple[tuple[int, ...], ...]
    columns: dict[str, Column]
    used: frozenset[int]
    windows: Windows

    @property
    def read_stages(self) -> int:
        """Cycles in which each endpoint chooses the word of the memory that the host asks for."""
        return max(shape.read_stages for shape in self.shapes)

    @property
    def answer(self) -> int:
        """Cycles from a read to its word: a register, the memory, and the choice of the memory."""
        return 2 + self.read_stages

    @property
    def uses_phases(self) -> bool:
        """Whether any endpoint depends on which windows are under way."""
        return any(shape.uses_phases for shape in self.shapes)

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
    loops = Loops.of(program)
    reads, stores = ReadColumns(loops), StoreColumns(program, loops)
    groups: dict[object, list[int]] = {}
    for variant in range(loops.variants):
        # By offset, every node may have to do what any other does.
        key = None if program.by_offset else _structure(program, reads, stores, variant)
        groups.setdefault(key, []).append(variant)
    shape_of = np.empty(loops.variants, int)
    shapes: list[EndpointShape] = []
    rows: dict[int, tuple[int, ...]] = {}
    used: set[int] = set()
    for number, members in enumerate(groups.values()):
        shape_of[members] = number
        planner = _ShapePlanner(program, reads, stores, members)
        shapes.append(planner.shape())
        used |= planner.table.used
        rows |= {variant: planner.table.rows(k) for k, variant in enumerate(members)}
    every = {"read": reads.columns, "write": stores.addresses, "store": stores.strobes}
    return EndpointPlan(
        shapes=tuple(shapes),
        shape_of=shape_of,
        rows=tuple(rows[variant] for variant in range(loops.variants)),
        columns={f"{name}_{k}": c for name, all_ in every.items() for k, c in enumerate(all_.all)},
        used=frozenset(used),
        windows=stores.windows,
    )


def _structure(program: Program, reads: ReadColumns, stores: StoreColumns, variant: int) -> object:
    """What a variant has in common with all of its shape."""
    depth = program.depth[variant].tolist()
    memories = tuple(
        (_size(program, number, words), *stores.own(number, [variant]))
        for number, words in enumerate(depth)
    )
    readers = range(reads.loops.first.sources.readers)
    return memories, tuple(reads.structure(reader, variant) for reader in readers)


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
        self, program: Program, reads: ReadColumns, stores: StoreColumns, members: list[int]
    ) -> None:
        self._program, self._reads, self._stores = program, reads, stores
        self._loops, self._members = reads.loops, members
        self.table = Table(len(members), [span for _, span in self._loops.spans()])
        # Readers that only ever read the word that changes nothing are none.
        self._readers = [
            number
            for number in range(self._loops.first.sources.readers)
            if reads.memories(number, members) - {NEUTRAL}
        ]
        self._host_reads = _memories_host_reads(program, members)

    def shape(self) -> EndpointShape:
        """The shape."""
        groups = [self._groups(number) for number in range(len(self._program.memories))]
        # The order of memories and readers is that of what tables hold.
        memories = tuple(self._memory(number, sets) for number, sets in enumerate(groups))
        readers = tuple(
            self._reader(number, _rivals(index, groups))
            for index, number in enumerate(self._readers)
        )
        injections = tuple(
            tuple(self._readers.index(reader) for reader in group if reader in self._readers)
            for group in self._loops.first.sources.injections
        )
        return EndpointShape(memories, readers, injections, self.table.width)

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        loops = self._loops.loops
        reading = {
            index: [
                loop.values(Action.MEMORY, reader)[:, self._members] == number for loop in loops
            ]
            for index, reader in enumerate(self._readers)
            if number in self._reads.memories(reader, self._members)
        }
        return sharing(reading, [loop.order for loop in loops])

    def _values(self, action: Action, number: int) -> IntArray:
        """The values of a control point of all modes, by member and row."""
        values = [loop.values(action, number) for loop in self._loops.loops]
        chosen: IntArray = self._loops.joined(values)[:, self._members].T
        return chosen

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> EndpointMemory:
        """A memory."""
        memory = self._program.memories[number]
        depths = self._program.depth[self._members, number].tolist()
        stored, phases = self._stores.own(number, self._members)
        central = {source for (_, at), source in self._stores.sources.items() if at == number}
        sources = tuple(sorted({*stored, *central}))
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
            columns=self._stores.columns_of.get(number),
            phases=phases,
            enable=self.table.place(self._enables(number, phases)) if phases else None,
            source=self._source(number, sources) if len(sources) > 1 else None,
            start=self._start(number),
            groups=groups,
            host_reads=number in self._host_reads,
        )

    def _enables(self, number: int, phases: tuple[Phase, ...]) -> IntArray:
        """Of each row, the number of the phase that counts, from 1; 0 for none."""
        values = np.zeros((len(self._members), self._loops.rows), int)
        for mode, (_, span) in enumerate(self._loops.spans()):
            own = self._stores.of_mode(number, mode)
            for code, (window, ago) in enumerate(phases, 1) if own else ():
                assert own is not None
                chosen = (own.window == window) & (own.ago == ago)
                values[:, span][chosen[:, self._members].T] = code
        return values

    def _source(self, number: int, sources: tuple[int, ...]) -> Location:
        """Of each row, the select bits of the source."""
        codes = np.full((len(self._members), self._loops.rows), IDLE)
        for mode, (_, span) in enumerate(self._loops.spans()):
            given = self._stores.sources.get((mode, number))
            own = self._stores.of_mode(number, mode)
            for index, source in enumerate(sources):
                code = select_code(len(sources), index)
                if given == source:
                    codes[:, span] = code
                elif own:
                    codes[:, span][source == own.source[:, self._members].T] = code
        return self.table.place(codes)

    def _start(self, number: int) -> tuple[int, ...]:
        """Where the pointer of a memory starts in each mode."""
        starts = []
        for mode, loop in enumerate(self._loops.loops):
            known = np.zeros(0, int)
            if self._stores.of_mode(number, mode):
                base = loop.values(Action.WRITE, number)[:, self._members]
                known = base[base >= 0]
            starts.append(int(known.min()) if len(known) else -1)
        first = max(next((s for s in starts if s >= 0), 0), 0)
        return tuple(first if s < 0 else s for s in starts)

    def _reader(self, number: int, rivals: set[int]) -> EndpointReader:
        """A reader; `rivals` share read ports with it."""
        found = self._reads.memories(number, self._members)
        # What changes nothing comes after all memories.
        memories = tuple(sorted(found, key=lambda memory: (memory == NEUTRAL, memory)))
        based = self._reads.based(number, self._members)
        code = base = shift = None
        if len(memories) > 1:
            code = self.table.place(self._codes(number, memories))
        if any(based):
            shift, bases = self._bases(number, based)
            base = self.table.place(bases)
        return EndpointReader(
            number=number,
            column=self._reads.column_of[number],
            memories=memories,
            code=code,
            base=base,
            base_shift=shift,
            joins=True in based and False in based,
            sending=self.table.place(self._sending(number, rivals)) if rivals else None,
        )

    def _sending(self, number: int, rivals: set[int]) -> IntArray:
        """Of each row, whether a reader reads; always in modes in which it has no rival."""
        values = (self._values(Action.READ, number) >= 0).astype(int)
        for mode, (_, span) in enumerate(self._loops.spans()):
            mine = self._reads.memories(number, self._members, mode)
            others = (
                self._reads.memories(self._readers[rival], self._members, mode) for rival in rivals
            )
            if mine and not mine & set().union(*others):
                values[:, span] = 1
        return values

    def _codes(self, number: int, memories: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the memory; -1 where they do not matter."""
        memory = self._values(Action.MEMORY, number)
        codes = np.full_like(memory, IDLE)
        for index, each in enumerate(memories):
            codes[memory == each] = select_code(len(memories), index)
        return codes

    def _bases(self, number: int, based: list[bool | None]) -> tuple[int | None, IntArray]:
        """How many zeros bases end with, and their other bits: see `EndpointReader`."""
        values, longest = self._values(Action.READ, number).copy(), 1
        for own, (loop, span) in zip(based, self._loops.spans(), strict=True):
            if own:
                reading = (values[:, span] >= 0).any(axis=0)
                longest = max(longest, int(loop.blocks[reading].max()) * loop.flits)
            else:
                values[:, span] = IDLE if own is None else 0
        shift = _shift(values[values > 0], longest)
        return shift, np.where(values > 0, values >> (shift or 0), values)


def _memories_host_reads(program: Program, members: list[int]) -> set[int]:
    """The memories that the host reads at nodes of some variants."""
    if program.by_offset:
        nodes = np.arange(program.topology.nodes)
    else:
        nodes = np.nonzero(np.isin(program.variant_of, members))[0]
    found: set[int] = set()
    for mode in program.modes:
        found |= mode.receive_map.memories(mode.groups.position[nodes])
    return found


def _rivals(index: int, groups: Sequence[tuple[tuple[int, ...], ...]]) -> set[int]:
    """Other readers with which a reader shares a read port, by their index."""
    shared = (set(s) for sets in groups for s in sets if index in s)
    return set().union(*shared) - {index}


def _shift(bases: IntArray, length: int) -> int | None:
    """How many low bits are 0 in all bases, if so many count the words of a burst; else None."""
    bits = (length - 1).bit_length()
    return None if (bases & ((1 << bits) - 1)).any() else bits


def sharing(
    reading: dict[int, list[BoolArray]], orders: Sequence[Order]
) -> tuple[tuple[int, ...], ...]:
    """Which readers can share a read port of a memory, since they never read it at the same time.

    Parameters
    ----------
    reading : dict of int to (list of ndarray of bool, shape (rows, variants))
        When each reads it, in each mode.
    orders : sequence of Order
        Of the modes. In a loop by flits any two readers may meet.

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
