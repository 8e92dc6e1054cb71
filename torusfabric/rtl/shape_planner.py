"""From a program to the shape of some endpoints, and to the contents of their ROMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.values import NEUTRAL, Order, Reads, Writes
from ..topology import IntArray
from .crossbar import select_bits, select_code
from .endpoint_columns import ReadColumns, StoreColumns
from .endpoint_shape import (
    Address,
    EndpointMemory,
    EndpointReader,
    EndpointShape,
    Field,
    RunWidths,
)
from .memories import address_width
from .row_rom import RowRom
from .sharing import sharing

if TYPE_CHECKING:
    from ..program import Program
    from .windows import Windows

__all__ = ["Contents", "EndpointProgram", "ShapePlanner"]

#: A window, and the hops after which a word within it is stored.
Phase: TypeAlias = tuple[int, int]

#: The rows of a ROM.
Rows: TypeAlias = tuple[int, ...]

#: Sizes of memories that cost no more than smaller ones: distributed memory, block RAM.
MEMORY_SIZES = (16, 256)

#: Words of a block RAM; larger memories are made of several.
BLOCK_RAM = 512


@dataclass(frozen=True, eq=False)
class Contents:
    """What the ROMs of a variant hold.

    Parameters
    ----------
    rows : tuple of int
        Of the row ROM.
    runs : dict of int to (tuple of int)
        Of the ROM of runs of each reader, by its index in the shape.
    """

    rows: Rows
    runs: dict[int, Rows]


@dataclass(frozen=True, eq=False)
class EndpointProgram:
    """What endpoints do, less what the sequencer does for all of them.

    Parameters
    ----------
    program : Program
    windows : Windows
    reads : ReadColumns
    stores : StoreColumns
    """

    program: Program
    windows: Windows
    reads: ReadColumns
    stores: StoreColumns

    def structure(self, variant: int) -> object:
        """What a variant has in common with all of its shape."""
        depth = self.program.depth[variant]
        memories = tuple(
            (self.size(number, int(depth[number])), *self.stored(number, [variant]))
            for number in range(len(self.program.memories))
        )
        readers = tuple(
            (self.address(reader, [variant]), self.memories_read(reader, [variant]))
            for reader in range(len(self.program.loop.reads))
        )
        return memories, readers

    def size(self, number: int, depth: int) -> int:
        """A size of memory that serves a depth; none is larger than any node needs.

        Nodes whose depths differ share a module where that costs nothing, for memories come in
        sizes: a register, distributed memory of 16 words, block RAM of 256 words, or of 512.
        """
        if self.program.loop.variants == 1 or depth <= 1:
            return depth
        blocks = -(-depth // BLOCK_RAM) * BLOCK_RAM
        size = next((size for size in MEMORY_SIZES if depth <= size), blocks)
        return min(size, int(self.program.depth[:, number].max()))

    def stored(self, number: int, members: list[int]) -> tuple[tuple[int, ...], tuple[Phase, ...]]:
        """The ports and phases by which variants store into a memory on their own."""
        if number >= len(self.program.loop.writes) or number in self.stores.column_of:
            return (), ()
        writes = self.program.loop.writes[number]
        ports: set[int] = set()
        phases: set[Phase] = set()
        for variant in members:
            for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                phases.add(self.phase(writes, row, variant))
                ports.add(int(writes.port[row, variant]))
        return tuple(sorted(ports)), tuple(sorted(phases))

    def phase(self, writes: Writes, row: int, variant: int) -> Phase:
        """When a variant stores in a row."""
        window = self.windows.number(row, int(writes.blocks[row, variant]))
        return window, int(writes.hops[row, variant])

    def memories_read(self, reader: int, members: list[int]) -> tuple[int, ...]:
        """What variants read; nothing where it is only ever the word that changes nothing."""
        reads = self.program.loop.reads[reader]
        found: set[int] = set()
        for variant in members if reads.count.shape[1] > 1 else [0]:
            for row in np.nonzero(reads.count[:, variant])[0].tolist():
                found |= {run.memory for run in reads.at(row, variant)}
        if found == {NEUTRAL}:
            return ()
        # What changes nothing comes after all memories.
        return tuple(sorted(found, key=lambda memory: (memory == NEUTRAL, memory)))

    def address(self, reader: int, members: list[int]) -> Address:
        """How variants find their addresses."""
        if reader in self.reads.column_of:
            return Address.CENTRAL
        counts = self.program.loop.reads[reader].count[:, members]
        return Address.BASE if counts.max(initial=0) <= 1 else Address.RUNS

    def memories_host_reads(self, members: list[int]) -> set[int]:
        """The memories that the host reads at nodes of some variants."""
        nodes = np.nonzero(np.isin(self.program.variant_of, members))[0]
        return self.program.mode.receive_map.memories(self.program.groups.position[nodes])


class ShapePlanner:
    """Plans the shape of some variants, and the contents of their ROMs.

    Parameters
    ----------
    endpoints : EndpointProgram
    members : list of int
        Variants of the same structure.
    """

    def __init__(self, endpoints: EndpointProgram, members: list[int]) -> None:
        self._endpoints, self._members = endpoints, members
        self._program, self._loop = endpoints.program, endpoints.program.loop
        self._windows = endpoints.windows
        self._rom = RowRom(len(members), self._loop.rows)
        self._runs: dict[int, list[Rows]] = {}
        self._readers = [
            number
            for number in range(len(self._loop.reads))
            if endpoints.memories_read(number, members)
        ]
        self._host_reads = endpoints.memories_host_reads(members)

    def plan(self) -> tuple[EndpointShape, dict[int, Contents]]:
        """The shape, and contents by variant."""
        groups = [self._groups(number) for number in range(len(self._program.memories))]
        shared = {reader for sets in groups for s in sets if len(s) > 1 for reader in s}
        # The order of memories and readers is that of the fields of the row ROM.
        memories = tuple(self._memory(number, sets) for number, sets in enumerate(groups))
        readers = tuple(
            self._reader(index, number, shared=index in shared)
            for index, number in enumerate(self._readers)
        )
        injections = tuple(
            tuple(self._readers.index(reader) for reader in group if reader in self._readers)
            for group in self._loop.injections
        )
        shape = EndpointShape(memories, readers, injections, self._rom.width)
        contents = {
            variant: Contents(
                self._rom.contents(member),
                {reader: tables[member] for reader, tables in self._runs.items()},
            )
            for member, variant in enumerate(self._members)
        }
        return shape, contents

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        reading = {
            index: self._loop.reads[reader]
            for index, reader in enumerate(self._readers)
            if number in self._endpoints.memories_read(reader, self._members)
        }
        if len(reading) <= 1 or self._loop.order is Order.FLIT:
            return tuple((index,) for index in reading)
        return sharing(reading, number, self._members)

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> EndpointMemory:
        """A memory."""
        endpoints, memory = self._endpoints, self._program.memories[number]
        depths = self._program.depth[self._members, number].tolist()
        ports, phases = endpoints.stored(number, self._members)
        column = endpoints.stores.column_of.get(number)
        enable = port = None
        start = 0
        if column is not None:
            # Of what a memory could store, all nodes store what comes by one port.
            writes = self._loop.writes[number]
            ports = tuple(np.unique(writes.port[writes.base >= 0]).tolist())
        elif phases:
            writes = self._loop.writes[number]
            enable = self._rom.add(self._enables(writes, phases))
            port = self._rom.add(self._ports(writes, ports)) if len(ports) > 1 else None
            base = writes.base[:, self._members]
            start = int(base[base >= 0].min())
        own = [k for k, other in enumerate(self._program.memories) if other.own]
        return EndpointMemory(
            number=number,
            depth=max(endpoints.size(number, depth) for depth in depths),
            own=own.index(number) if memory.own else None,
            ports=ports,
            column=column,
            phases=phases,
            enable=enable,
            port=port,
            start=start,
            groups=groups,
            host_reads=number in self._host_reads,
        )

    def _enables(self, writes: Writes, phases: tuple[Phase, ...]) -> IntArray:
        """Of each row, the number of the phase that counts, from 1; 0 for none."""
        values = np.zeros((len(self._members), self._loop.rows), int)
        for member, variant in enumerate(self._members):
            for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                values[member, row] = 1 + phases.index(self._endpoints.phase(writes, row, variant))
        return values

    def _ports(self, writes: Writes, ports: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the in-port; -1 where it does not matter."""
        there = writes.base[:, self._members].T >= 0
        codes = np.full(there.shape, -1)
        for index, port in enumerate(ports):
            chosen = there & (port == writes.port[:, self._members].T)
            codes[chosen] = select_code(len(ports), index)
        return codes

    def _reader(self, index: int, number: int, *, shared: bool) -> EndpointReader:
        """A reader; `shared` where it shares a read port with others."""
        reads, endpoints = self._loop.reads[number], self._endpoints
        address = endpoints.address(number, self._members)
        memories = endpoints.memories_read(number, self._members)
        there = self._of_members(reads.count) > 0
        sending = self._rom.add(there.astype(int)) if shared else None
        column = endpoints.reads.of_reader(number)
        if address is Address.RUNS:
            windows, active = self._active(reads)
            widths, self._runs[index] = self._run_roms(reads, memories)
            return EndpointReader(
                number, address, column, memories, windows=windows, active=active,
                sending=sending, runs=widths,
            )  # fmt: skip
        first = np.minimum(self._of_members(reads.start), max(len(reads.base) - 1, 0))
        code = base = shift = None
        if len(memories) > 1:
            code = self._rom.add(np.where(there, _codes(reads.memory[first], memories), -1))
        if address is Address.BASE:
            bases = reads.base[first]
            shift = _shift(bases[there], int(reads.blocks[first][there].max()) * self._loop.flits)
            base = self._rom.add(np.where(there, bases >> (shift or 0), -1))
        return EndpointReader(number, address, column, memories, code, base, shift, sending=sending)

    def _of_members(self, values: IntArray) -> IntArray:
        """Values by row and variant as values by member and row."""
        if values.shape[1] == 1:
            return np.broadcast_to(values.T, (len(self._members), len(values)))
        chosen: IntArray = values[:, self._members].T
        return chosen

    def _active(self, reads: Reads) -> tuple[tuple[int, ...], Field]:
        """The windows in which a generator moves, and which of them counts in each row."""
        values = np.full((len(self._members), self._loop.rows), -1)
        for member, variant in enumerate(self._members):
            for row in range(self._loop.rows):
                length = reads.total(row, variant)
                if length:
                    values[member, row] = self._windows.number(row, length)
        windows = tuple(np.unique(values[values >= 0]).tolist())
        numbers = np.searchsorted(windows, np.maximum(values, 0)) + 1
        return windows, self._rom.add(np.where(values >= 0, numbers, 0))

    def _run_roms(self, reads: Reads, memories: tuple[int, ...]) -> tuple[RunWidths, list[Rows]]:
        """The ROM of runs of each member: select bits, first address, words after the first."""
        tables = [
            [
                (
                    select_code(len(memories), memories.index(run.memory)),
                    run.base,
                    # Words after the first, or blocks where these are of any length.
                    run.blocks * (1 if self._program.any_length else self._loop.flits) - 1,
                )
                for row in range(self._loop.rows)
                for run in reads.at(row, variant)
            ]
            for variant in self._members
        ]
        runs = [run for table in tables for run in table]
        longest = int(reads.blocks.max()) * self._loop.flits
        widths = RunWidths(
            code=max(len(select_bits(len(memories), 0)), 1),
            address=address_width(max(base for _, base, _ in runs) + longest + 1),
            left=max(max(left for *_, left in runs).bit_length(), 1),
            number=address_width(max(map(len, tables)) + 1),
        )
        roms = [
            tuple(
                code | base << widths.code | left << widths.code + widths.address
                for code, base, left in table
            )
            for table in tables
        ]
        return widths, [rom or (0,) for rom in roms]


def _codes(numbers: IntArray, memories: tuple[int, ...]) -> IntArray:
    """The select bits of memories, elementwise; those of the first for what is not among them."""
    code = {memory: select_code(len(memories), k) for k, memory in enumerate(memories)}
    first = select_code(len(memories), 0)
    codes = [code.get(number, first) for number in numbers.ravel().tolist()]
    return np.array(codes).reshape(numbers.shape)


def _shift(bases: IntArray, length: int) -> int | None:
    """How many low bits are 0 in all bases, if so many count the words of a run; else None."""
    bits = (length - 1).bit_length()
    return None if (bases & ((1 << bits) - 1)).any() else bits
