"""Endpoints as data: which memories, readers and writers each shape has, and what differs in ROMs.

An address comes from the sequencer where all nodes that use it at that time use the same; otherwise
from the node itself. A reader of at most one run a row adds the word count to a *base* from the
node's row ROM; one of several runs steps through them with a generator, fed by a ROM of runs. What
a node stores on its own is appended: a pointer moves while the phase that the row ROM names is
high.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..program.values import NEUTRAL, Order, Reads, Writes
from ..topology import IntArray
from .crossbar import select_bits
from .memories import address_width
from .sharing import merge_columns, sharing

if TYPE_CHECKING:
    from ..program import Program
    from .windows import Windows

__all__ = [
    "AddressColumn",
    "Address",
    "EndpointPlan",
    "EndpointShape",
    "Field",
    "MemoryShape",
    "ReaderShape",
    "StoreColumn",
    "plan_endpoints",
]


class Address(enum.Enum):
    """Where a reader's address comes from."""

    #: A column of the sequencer.
    CENTRAL = "central"
    #: A base from the node's row ROM, and the word count.
    BASE = "base"
    #: A generator that steps through runs.
    RUNS = "runs"


@dataclass(frozen=True)
class Field:
    """A value that the row ROM of a node gives, or a constant of the shape.

    Parameters
    ----------
    start, width : int
        Bits of the row; a constant has none there.
    constant : int or None
    """

    start: int
    width: int
    constant: int | None = None


@dataclass(frozen=True)
class MemoryShape:
    """A memory of an endpoint.

    Parameters
    ----------
    number : int
        In the program.
    depth : int
        Words.
    own : int or None
        Its number among those that the host writes.
    ports : tuple of int
        The in-ports, or `MADE`, whose words it stores.
    column : int or None
        The store column of the sequencer, where what it stores is the same at all nodes.
    phases : tuple of (int, int)
        Else, the (window, hops) after which it stores.
    enable : Field or None
        Which of the phases counts in a row: 0 for none.
    port : Field or None
        Which of the ports, as select bits.
    start : int
        Where its pointer starts.
    groups : tuple of (tuple of int)
        Readers in groups; each group has a copy of the memory of its own.
    viewed : bool
        Whether the host reads it.
    """

    number: int
    depth: int
    own: int | None
    ports: tuple[int, ...]
    column: int | None
    phases: tuple[tuple[int, int], ...]
    enable: Field | None
    port: Field | None
    start: int
    groups: tuple[tuple[int, ...], ...]
    viewed: bool


@dataclass(frozen=True)
class ReaderShape:
    """A reader of an endpoint.

    Parameters
    ----------
    number : int
        In the program.
    address : Address
    column : int
        The read column of the sequencer; of a base, the one that counts words.
    memories : tuple of int
        What it reads; `NEUTRAL` among them for the word that changes nothing.
    code : Field or None
        Select bits of the memory, from the row ROM; None for one memory, or from the ROM of runs.
    base : Field or None
    base_shift : int or None
        How many zeros follow the bits of the base that the row ROM gives, with no word count ever
        beyond them; None where base and word count have to be added.
    windows : tuple of int
        The windows in which a generator of runs moves.
    active : Field or None
        Which of the windows counts in a row: 0 for none.
    sending : Field or None
        Whether it reads anything in a row, where that matters.
    runs : tuple of int
        Bits of the code, the address, the words left, and the number of a run.
    """

    number: int
    address: Address
    column: int
    memories: tuple[int, ...]
    code: Field | None = None
    base: Field | None = None
    base_shift: int | None = None
    windows: tuple[int, ...] = ()
    active: Field | None = None
    sending: Field | None = None
    runs: tuple[int, int, int, int] = (0, 0, 0, 0)


@dataclass(frozen=True)
class EndpointShape:
    """The structure of an endpoint.

    Parameters
    ----------
    memories : tuple of MemoryShape
    readers : tuple of ReaderShape
    injections : tuple of (tuple of int)
        The readers, by their index in `readers`, whose words are combined for each injection port.
    row_bits : int
        Bits of the row ROM; 0 without one.
    """

    memories: tuple[MemoryShape, ...]
    readers: tuple[ReaderShape, ...]
    injections: tuple[tuple[int, ...], ...]
    row_bits: int


@dataclass(frozen=True, eq=False)
class AddressColumn:
    """First addresses that the sequencer gives, shape (rows,); -1 where it does not matter."""

    base: IntArray
    skew: int


@dataclass(frozen=True, eq=False)
class StoreColumn:
    """Where and whether memories store, the same at all nodes.

    Parameters
    ----------
    base : ndarray of int, shape (rows,)
        -1 where nothing is stored.
    length : int
        Words a row.
    pitch, hops, skew : int
    """

    base: IntArray
    length: int
    pitch: int
    hops: int
    skew: int


@dataclass(frozen=True, eq=False)
class Contents:
    """What the ROMs of a variant hold.

    Parameters
    ----------
    rows : tuple of int
        Of the row ROM.
    runs : dict of int to (tuple of int)
        Of the ROM of runs of each reader, by its place in the shape.
    """

    rows: tuple[int, ...]
    runs: dict[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class EndpointPlan:
    """All endpoints of a fabric.

    Parameters
    ----------
    shapes : tuple of EndpointShape
    shape_of : ndarray of int, shape (variants,)
    contents : tuple of Contents
        Of each variant.
    reads : tuple of AddressColumn
    stores : tuple of StoreColumn
    """

    shapes: tuple[EndpointShape, ...]
    shape_of: IntArray
    contents: tuple[Contents, ...]
    reads: tuple[AddressColumn, ...]
    stores: tuple[StoreColumn, ...]


def plan_endpoints(program: Program, windows: Windows) -> EndpointPlan:
    """Plan the endpoints of a fabric."""
    return _Planner(program, windows).plan()


class _Planner:
    """Divides what endpoints do between the sequencer and the nodes."""

    def __init__(self, program: Program, windows: Windows) -> None:
        self.program, self.loop, self.windows = program, program.loop, windows
        self.depth = program.depth
        self.own = [k for k, memory in enumerate(program.memories) if memory.own]
        self._read_columns()
        self._store_columns()

    def _read_columns(self) -> None:
        """Find the readers whose addresses are the same at all nodes."""
        columns = [_common_base(reads) for reads in self.loop.reads]
        central = [k for k, column in enumerate(columns) if column is not None]
        words = np.zeros(self.loop.rows, int)
        given = [columns[k] for k in central]
        skews = [self.loop.reads[k].skew for k in central]
        if len(central) < len(columns):
            given, skews = [words, *given], [0, *skews]
        merged, place = merge_columns([np.asarray(c) for c in given], skews)
        self.reads = tuple(
            AddressColumn(column, skews[place.index(k)]) for k, column in enumerate(merged)
        )
        self.words = place[0] if len(central) < len(columns) else None
        places = place[len(given) - len(central) :]
        self.column = dict(zip(central, places, strict=True))

    def _store_columns(self) -> None:
        """Find the memories that store the same at all nodes."""
        self.stores: list[StoreColumn] = []
        self.store_of: dict[int, int] = {}
        for number, writes in enumerate(self.loop.writes):
            column = _common_store(writes, self.program.memories[number].pitch)
            if column is None:
                continue
            for k, other in enumerate(self.stores):
                if _same_store(column, other):
                    self.store_of[number] = k
                    break
            else:
                self.store_of[number] = len(self.stores)
                self.stores.append(column)

    def plan(self) -> EndpointPlan:
        """The plan."""
        groups: dict[tuple, list[int]] = {}
        for variant in range(self.loop.variants):
            key = () if self.program.any_root else self._key(variant)
            groups.setdefault(key, []).append(variant)
        shape_of = np.empty(self.loop.variants, int)
        shapes: list[EndpointShape] = []
        contents: dict[int, Contents] = {}
        for number, members in enumerate(groups.values()):
            shape_of[members] = number
            shape, filled = _Shape(self, members).build()
            shapes.append(shape)
            contents |= filled
        ordered = tuple(contents[variant] for variant in range(self.loop.variants))
        return EndpointPlan(tuple(shapes), shape_of, ordered, self.reads, tuple(self.stores))

    def _key(self, variant: int) -> tuple:
        """What a variant has in common with all of its shape."""
        memories = tuple(
            (self.size(number, self.depth[variant, number]), *self.stored(number, [variant]))
            for number in range(len(self.program.memories))
        )
        readers = tuple(
            (self.address(reader, [variant]), self.memories(reader, [variant]))
            for reader in range(len(self.loop.reads))
        )
        return memories, readers

    def size(self, number: int, depth: int) -> int:
        """A size of memory that serves a depth; none is larger than any node needs.

        Nodes whose depths differ share a module where that costs nothing, for memories come in
        these sizes: a register, distributed memory of 16 words, block RAM of 256 words, or of 512.
        """
        if self.loop.variants == 1 or depth <= 1:
            return int(depth)
        size = next((size for size in (16, 256) if depth <= size), -(-int(depth) // 512) * 512)
        return min(size, int(self.depth[:, number].max()))

    def stored(self, number: int, members: list[int]) -> tuple:
        """The ports and phases by which variants store into a memory."""
        if number >= len(self.loop.writes) or number in self.store_of:
            return (), ()
        writes = self.loop.writes[number]
        ports: set[int] = set()
        phases: set[tuple[int, int]] = set()
        for variant in members:
            for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                length = int(writes.length[row, variant])
                window = self.windows.number(row, length)
                phases.add((window, int(writes.hops[row, variant])))
                ports.add(int(writes.port[row, variant]))
        return tuple(sorted(ports)), tuple(sorted(phases))

    def memories(self, reader: int, members: list[int]) -> tuple[int, ...]:
        """What variants read; nothing where it is only ever the word that changes nothing."""
        reads = self.loop.reads[reader]
        found: set[int] = set()
        for variant in members:
            if reads.count.shape[1] == 1:
                variant = 0
            for row in np.nonzero(reads.count[:, variant])[0].tolist():
                found |= {run.memory for run in reads.at(row, variant)}
        if found == {NEUTRAL}:
            return ()
        # What changes nothing comes after all memories.
        return tuple(sorted(found, key=lambda memory: (memory == NEUTRAL, memory)))

    def address(self, reader: int, members: list[int]) -> Address:
        """How variants find their addresses."""
        if reader in self.column:
            return Address.CENTRAL
        counts = self.loop.reads[reader].count[:, members]
        return Address.BASE if counts.max(initial=0) <= 1 else Address.RUNS


def _common_base(reads: Reads) -> IntArray | None:
    """First addresses that serve all variants, or None."""
    if reads.count.max(initial=0) > 1 or (reads.memory == NEUTRAL).any():
        return None
    there = reads.count > 0
    index = np.minimum(reads.start, max(len(reads.base) - 1, 0))
    base = np.where(there, reads.base[index] if len(reads.base) else 0, -1)
    column = base.max(axis=1)
    return column if ((base < 0) | (base == column[:, None])).all() else None


def _common_store(writes: Writes, pitch: int) -> StoreColumn | None:
    """What all variants store alike, or None."""
    base = writes.base
    if not (base == base[:, :1]).all():
        return None
    there = base >= 0
    facts = [np.unique(values[there]) for values in (writes.length, writes.hops, writes.port)]
    if not there.any() or any(len(values) > 1 for values in facts):
        return None
    length, hops = int(facts[0][0]), int(facts[1][0])
    return StoreColumn(base[:, 0], length, pitch, hops, writes.skew)


def _same_store(a: StoreColumn, b: StoreColumn) -> bool:
    """Whether two columns are always equal."""
    facts = [(c.length, c.pitch, c.hops, c.skew) for c in (a, b)]
    return facts[0] == facts[1] and bool((a.base == b.base).all())


@dataclass
class _Fields:
    """The row ROM of a shape, field by field."""

    members: list[int]
    rows: int
    width: int = 0
    columns: list[tuple[Field, IntArray]] = field(default_factory=list)

    def add(self, values: IntArray) -> Field:
        """A field of given values, shape (members, rows), -1 where they do not matter."""
        known = values[values >= 0]
        if not len(known) or (known == known[0]).all():
            constant = int(known[0]) if len(known) else 0
            return Field(0, max(constant.bit_length(), 1), constant)
        filled = np.maximum(values, 0)
        for other, column in self.columns:
            if (column == filled).all():
                return other
        width = int(filled.max()).bit_length()
        self.columns.append((Field(self.width, width), filled))
        self.width += width
        return self.columns[-1][0]

    def contents(self, place: int) -> tuple[int, ...]:
        """The rows of a member."""
        return tuple(
            sum(int(values[place, row]) << f.start for f, values in self.columns)
            for row in range(self.rows)
        )


class _Shape:
    """Builds the shape of some variants, and the contents of their ROMs."""

    def __init__(self, planner: _Planner, members: list[int]) -> None:
        self.planner, self.members = planner, members
        self.program, self.loop, self.windows = planner.program, planner.loop, planner.windows
        self.fields = _Fields(members, self.loop.rows)
        self.readers = [
            number for number in range(len(self.loop.reads)) if planner.memories(number, members)
        ]
        self.viewed = _viewed(self.program, members)

    def build(self) -> tuple[EndpointShape, dict[int, Contents]]:
        """The shape, and contents by variant."""
        groups = {number: self._groups(number) for number in range(len(self.program.memories))}
        shared = {reader for sets in groups.values() for s in sets if len(s) > 1 for reader in s}
        memories = tuple(self._memory(number, groups[number]) for number in groups)
        runs: dict[int, dict[int, tuple[int, ...]]] = {}
        readers = tuple(
            self._reader(place, number, runs, shared=place in shared)
            for place, number in enumerate(self.readers)
        )
        injections = tuple(
            tuple(self.readers.index(reader) for reader in group if reader in self.readers)
            for group in self.loop.injections
        )
        shape = EndpointShape(memories, readers, injections, self.fields.width)
        contents = {
            variant: Contents(
                self.fields.contents(place),
                {reader: table[variant] for reader, table in runs.items()},
            )
            for place, variant in enumerate(self.members)
        }
        return shape, contents

    def _rows(self) -> range:
        return range(self.loop.rows)

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        reading = {
            place: self.loop.reads[reader]
            for place, reader in enumerate(self.readers)
            if number in self.planner.memories(reader, self.members)
        }
        if len(reading) <= 1 or self.loop.order is Order.FLIT:
            return tuple((place,) for place in reading)
        return sharing(reading, number, self.members)

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> MemoryShape:
        """A memory."""
        planner, memory = self.planner, self.program.memories[number]
        depth = max(planner.size(number, d) for d in planner.depth[self.members, number])
        ports, phases = planner.stored(number, self.members)
        enable = port = None
        start = 0
        if number in planner.store_of:
            ports = memory.ports
        elif phases:
            writes = self.loop.writes[number]
            enable = self.fields.add(self._enables(writes, phases))
            port = self.fields.add(self._ports(writes, ports)) if len(ports) > 1 else None
            start = int(writes.base[:, self.members][writes.base[:, self.members] >= 0].min())
        return MemoryShape(
            number=number,
            depth=int(depth),
            own=planner.own.index(number) if memory.own else None,
            ports=ports,
            column=planner.store_of.get(number),
            phases=phases,
            enable=enable,
            port=port,
            start=start,
            groups=groups,
            viewed=number in self.viewed,
        )

    def _enables(self, writes: Writes, phases: tuple) -> IntArray:
        """Of each row, the number of the phase that counts, from 1; 0 for none."""
        values = np.zeros((len(self.members), self.loop.rows), int)
        for place, variant in enumerate(self.members):
            for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                window = self.windows.number(row, int(writes.length[row, variant]))
                values[place, row] = 1 + phases.index((window, int(writes.hops[row, variant])))
        return values

    def _ports(self, writes: Writes, ports: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the in-port; -1 where it does not matter."""
        there = writes.base[:, self.members].T >= 0
        codes = np.full(there.shape, -1)
        for place, port in enumerate(ports):
            codes[there & (port == writes.port[:, self.members].T)] = code(len(ports), place)
        return codes

    def _reader(self, place: int, number: int, runs: dict, *, shared: bool) -> ReaderShape:
        """A reader."""
        planner, reads = self.planner, self.loop.reads[number]
        memories = planner.memories(number, self.members)
        address = planner.address(number, self.members)
        counts = self._of_members(reads.count)
        sending = self.fields.add((counts > 0).astype(int)) if shared else None
        column = planner.column.get(number, planner.words)
        assert column is not None
        if address is Address.RUNS:
            windows, active = self._active(reads)
            widths, tables = self._runs(reads, memories)
            runs[place] = dict(zip(self.members, tables, strict=True))
            return ReaderShape(
                number, address, column, memories, windows=windows, active=active,
                sending=sending, runs=widths,
            )  # fmt: skip
        first = np.minimum(self._of_members(reads.start), max(len(reads.base) - 1, 0))
        there = counts > 0
        choice = base = shift = None
        if len(memories) > 1:
            codes = np.array([code(len(memories), k) for k in range(len(memories))])
            index = np.array([memories.index(m) if m in memories else 0
                              for m in reads.memory[first].ravel().tolist()])  # fmt: skip
            chosen = codes[index].reshape(first.shape)
            choice = self.fields.add(np.where(there, chosen, -1))
        if address is Address.BASE:
            bases = reads.base[first]
            shift = _shift(bases[there], int(reads.length[first][there].max()))
            base = self.fields.add(np.where(there, bases >> (shift or 0), -1))
        return ReaderShape(number, address, column, memories, choice, base, shift, sending=sending)

    def _of_members(self, values: IntArray) -> IntArray:
        """Values by row and variant as values by member and row."""
        if values.shape[1] == 1:
            return np.broadcast_to(values.T, (len(self.members), len(values)))
        return values[:, self.members].T

    def _active(self, reads: Reads) -> tuple[tuple[int, ...], Field]:
        """The windows in which a generator moves, and which of them counts in each row."""
        values = np.full((len(self.members), self.loop.rows), -1)
        for place, variant in enumerate(self.members):
            for row in self._rows():
                length = reads.words(row, variant)
                if length:
                    values[place, row] = self.windows.number(row, length)
        windows = tuple(np.unique(values[values >= 0]).tolist())
        numbers = np.searchsorted(windows, np.maximum(values, 0)) + 1
        return windows, self.fields.add(np.where(values >= 0, numbers, 0))

    def _runs(
        self, reads: Reads, memories: tuple[int, ...]
    ) -> tuple[tuple[int, int, int, int], list[tuple[int, ...]]]:
        """Widths of the parts of a run, and the ROM of runs of each member."""
        tables = [
            [
                (code(len(memories), memories.index(run.memory)), run.base, run.length - 1)
                for row in self._rows()
                for run in reads.at(row, variant)
            ]
            for variant in self.members
        ]
        flat = [run for table in tables for run in table]
        last = max(base + left for _, base, left in flat)
        code_bits = max(len(select_bits(len(memories), 0)), 1)
        address_bits = address_width(last + 2)
        left_bits = max(max(left for *_, left in flat).bit_length(), 1)
        number_bits = address_width(max(map(len, tables)) + 1)
        rows = [
            tuple(c | b << code_bits | n << code_bits + address_bits for c, b, n in table) or (0,)
            for table in tables
        ]
        return (code_bits, address_bits, left_bits, number_bits), rows


def _shift(bases: IntArray, length: int) -> int | None:
    """How many low bits are 0 in all bases, if so many count the words of a run; else None."""
    bits = (length - 1).bit_length()
    return None if (bases & ((1 << bits) - 1)).any() else bits


def code(count: int, place: int) -> int:
    """The select bits, as a number, with which a cascade of so many inputs passes one of them."""
    return sum(bit << k for k, bit in enumerate(select_bits(count, place)))


def _viewed(program: Program, members: list[int]) -> set[int]:
    """The memories that the host reads at nodes of some variants."""
    if program.any_root:
        return set(range(len(program.memories)))
    nodes = np.nonzero(np.isin(program.variant_of, members))[0]
    return program.mode.receive_map.memories(nodes)
