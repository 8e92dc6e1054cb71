"""From a program to the shape of some endpoints, and to the contents of their ROMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..program.values import Loop, Reads
from ..topology import BoolArray, IntArray
from .cascade import select_bits, select_code
from .endpoint_program import EndpointProgram, Phase
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

__all__ = ["Contents", "ShapePlanner"]

#: The rows of a ROM.
Rows: TypeAlias = tuple[int, ...]


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
        self._program, self._loops = endpoints.program, endpoints.loops
        self._windows = endpoints.windows
        self.rom = RowRom(len(members), [span for _, span in self._loops.spans()])
        self._runs: dict[int, list[Rows]] = {}
        self._readers = [
            number
            for number in range(len(self._loops.first.reads))
            if endpoints.memories_read(number, members)
        ]
        self._host_reads = endpoints.memories_host_reads(members)

    def plan(self) -> tuple[EndpointShape, dict[int, Contents]]:
        """The shape, and contents by variant."""
        groups = [self._groups(number) for number in range(len(self._program.memories))]
        # The order of memories and readers is that of the fields of the row ROM.
        memories = tuple(self._memory(number, sets) for number, sets in enumerate(groups))
        readers = tuple(
            self._reader(index, number, self._rivals(index, groups))
            for index, number in enumerate(self._readers)
        )
        injections = tuple(
            tuple(self._readers.index(reader) for reader in group if reader in self._readers)
            for group in self._loops.first.injections
        )
        shape = EndpointShape(memories, readers, injections, self.rom.width)
        contents = {
            variant: Contents(
                self.rom.contents(member),
                {reader: tables[member] for reader, tables in self._runs.items()},
            )
            for member, variant in enumerate(self._members)
        }
        return shape, contents

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        loops = self._loops.loops
        reading = {
            index: tuple(loop.reads[reader] for loop in loops)
            for index, reader in enumerate(self._readers)
            if number in self._endpoints.memories_read(reader, self._members)
        }
        if len(reading) <= 1:
            return tuple((index,) for index in reading)
        return sharing(reading, number, [loop.order for loop in loops], self._members)

    def _rivals(self, index: int, groups: list[tuple[tuple[int, ...], ...]]) -> set[int]:
        """Other readers with which a reader shares a read port, by their index."""
        shared = (set(s) for sets in groups for s in sets if index in s)
        return set().union(*shared) - {index}

    # Memories

    def _memory(self, number: int, groups: tuple[tuple[int, ...], ...]) -> EndpointMemory:
        """A memory."""
        endpoints, memory = self._endpoints, self._program.memories[number]
        depths = self._program.depth[self._members, number].tolist()
        stored, phases = endpoints.stored(number, self._members)
        column = endpoints.stores.column_of.get(number)
        central = {part.source for part in endpoints.stores.parts.get(number, ()) if part}
        sources = tuple(sorted({*stored, *central}))
        own = [
            k
            for k, other in enumerate(self._program.memories)
            if other.own and other.layout == memory.layout
        ]
        return EndpointMemory(
            number=number,
            depth=max(endpoints.size(number, depth) for depth in depths),
            own=own.index(number) if memory.own else None,
            layout=memory.layout,
            sources=sources,
            column=column,
            phases=phases,
            enable=self.rom.add(self._enables(number, phases)) if phases else None,
            source=self.rom.add(self._source_codes(number, sources)) if len(sources) > 1 else None,
            start=self._start(number),
            groups=groups,
            host_reads=number in self._host_reads,
        )

    def _values(self, fill: int) -> IntArray:
        """An array of a value for each member and row."""
        return np.full((len(self._members), self._loops.rows), fill)

    def _enables(self, number: int, phases: tuple[Phase, ...]) -> IntArray:
        """Of each row, the number of the phase that counts, from 1; 0 for none."""
        values = self._values(0)
        for mode, start in enumerate(self._loops.starts):
            writes = self._endpoints.own_writes(number, mode)
            for member, variant in enumerate(self._members) if writes else []:
                assert writes is not None
                for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                    phase = self._endpoints.phase(mode, writes, row, variant)
                    values[member, start + row] = 1 + phases.index(phase)
        return values

    def _source_codes(self, number: int, sources: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the source; -1 where it does not matter."""
        codes = self._values(-1)
        parts = self._endpoints.stores.parts.get(number)
        for mode, (_, span) in enumerate(self._loops.spans()):
            part = parts[mode] if parts else None
            if part:
                codes[:, span] = select_code(len(sources), sources.index(part.source))
                continue
            writes = self._endpoints.own_writes(number, mode)
            if writes is None:
                continue
            there = writes.base[:, self._members].T >= 0
            for index, source in enumerate(sources):
                chosen = there & (source == writes.port[:, self._members].T)
                codes[:, span][chosen] = select_code(len(sources), index)
        return codes

    def _start(self, number: int) -> Field:
        """Where the pointer of a memory starts."""
        starts = []
        for mode in self._endpoints.modes:
            writes = self._endpoints.own_writes(number, mode)
            base = np.zeros(0, int) if writes is None else writes.base[:, self._members]
            known = base[base >= 0]
            starts.append(int(known.min()) if len(known) else -1)
        first = max(next((s for s in starts if s >= 0), 0), 0)
        constants = tuple(first if s < 0 else s for s in starts)
        return Field(0, max(max(constants).bit_length(), 1), constants)

    # Readers

    def _reader(self, index: int, number: int, rivals: set[int]) -> EndpointReader:
        """A reader; `rivals` share read ports with it."""
        endpoints, reads = self._endpoints, [loop.reads[number] for loop in self._loops.loops]
        addresses = endpoints.addresses(number, self._members)
        memories = endpoints.memories_read(number, self._members)
        used = {address for address in addresses if address}
        kind = next(a for a in (Address.RUNS, Address.BASE, Address.CENTRAL) if a in used)
        code = base = shift = active = generating = None
        windows: tuple[int, ...] = ()
        widths = RunWidths()
        if len(memories) > 1 and used != {Address.RUNS}:
            code = self.rom.add(self._codes(reads, addresses, memories))
        if Address.BASE in used:
            shift, bases = self._bases(reads, addresses)
            base = self.rom.add(bases)
        if kind is Address.RUNS:
            windows, active = self._active(reads, addresses)
            widths, self._runs[index] = self._run_roms(reads, addresses, memories)
            if used != {Address.RUNS}:
                steps = tuple(int(address is Address.RUNS) for address in addresses)
                generating = Field(0, 1, steps)
        return EndpointReader(
            number=number,
            address=kind,
            column=endpoints.reads.column_of[number] if used != {Address.RUNS} else None,
            memories=memories,
            code=code,
            base=base,
            base_shift=shift,
            joins=Address.BASE in used and Address.CENTRAL in used,
            windows=windows,
            active=active,
            sending=self.rom.add(self._sending(number, rivals)) if rivals else None,
            runs=widths,
            generating=generating,
        )

    def _sending(self, number: int, rivals: set[int]) -> IntArray:
        """Of each row, whether a reader reads; always in modes in which it has no rival."""
        values = self._values(0)
        for mode, (loop, span) in enumerate(self._loops.spans()):
            mine = set(self._endpoints.memories_read(number, self._members, mode))
            others = (
                self._endpoints.memories_read(self._readers[rival], self._members, mode)
                for rival in rivals
            )
            if mine and not mine & set().union(*others):
                values[:, span] = 1
            else:
                values[:, span] = self._of_members(loop.reads[number].count) > 0
        return values

    def _of_members(self, values: IntArray) -> IntArray:
        """Values by row and variant as values by member and row."""
        if values.shape[1] == 1:
            return np.broadcast_to(values.T, (len(self._members), len(values)))
        chosen: IntArray = values[:, self._members].T
        return chosen

    def _first_runs(self, reads: Reads) -> tuple[BoolArray, IntArray]:
        """Of each member and row, whether anything is read, and the number of the first run."""
        there: BoolArray = self._of_members(reads.count) > 0
        first = np.minimum(self._of_members(reads.start), max(len(reads.base) - 1, 0))
        return there, first

    def _codes(
        self, reads: list[Reads], addresses: tuple[Address | None, ...], memories: tuple[int, ...]
    ) -> IntArray:
        """Of each row, the select bits of the memory; -1 where they do not matter."""
        values = self._values(-1)
        for of_loop, address, (_, span) in zip(reads, addresses, self._loops.spans(), strict=True):
            if address in (Address.CENTRAL, Address.BASE):
                there, first = self._first_runs(of_loop)
                values[:, span] = np.where(there, _codes(of_loop.memory[first], memories), -1)
        return values

    def _bases(
        self, reads: list[Reads], addresses: tuple[Address | None, ...]
    ) -> tuple[int | None, IntArray]:
        """How many zeros bases end with, and their other bits: see `EndpointReader`."""
        values, known, longest = self._values(-1), [np.zeros(0, int)], 1
        for of_loop, address, (loop, span) in zip(
            reads, addresses, self._loops.spans(), strict=True
        ):
            if address is Address.CENTRAL:
                values[:, span] = 0
            elif address is Address.BASE:
                there, first = self._first_runs(of_loop)
                bases = of_loop.base[first]
                values[:, span] = np.where(there, bases, -1)
                known.append(bases[there])
                longest = max(longest, int(of_loop.blocks[first][there].max()) * loop.flits)
        shift = _shift(np.concatenate(known), longest)
        return shift, np.where(values > 0, values >> (shift or 0), values)

    def _active(
        self, reads: list[Reads], addresses: tuple[Address | None, ...]
    ) -> tuple[tuple[int, ...], Field]:
        """The windows in which a generator moves, and which of them counts in each row."""
        values = self._values(-1)
        for of_loop, address, (loop, span) in zip(
            reads, addresses, self._loops.spans(), strict=True
        ):
            if address is not Address.RUNS:
                continue
            for member, variant in enumerate(self._members):
                for row in range(loop.rows):
                    length = of_loop.total(row, variant)
                    if length:
                        window = self._windows.number(span.start + row, length)
                        values[member, span.start + row] = window
        windows = tuple(np.unique(values[values >= 0]).tolist())
        numbers = np.searchsorted(windows, np.maximum(values, 0)) + 1
        return windows, self.rom.add(np.where(values >= 0, numbers, 0))

    def _run_roms(
        self, reads: list[Reads], addresses: tuple[Address | None, ...], memories: tuple[int, ...]
    ) -> tuple[RunWidths, list[Rows]]:
        """The ROM of runs of each member: select bits, first address, words after the first.

        The runs of a mode begin at the same number in all members.
        """
        tables: list[list[tuple[int, int, int]]] = [[] for _ in self._members]
        first, longest = [], 1
        for of_loop, address, loop in zip(reads, addresses, self._loops.loops, strict=True):
            first.append(max(map(len, tables)))
            if address is not Address.RUNS:
                continue
            longest = max(longest, int(of_loop.blocks.max()) * loop.flits)
            for table, variant in zip(tables, self._members, strict=True):
                table += [(0, 0, 0)] * (first[-1] - len(table))
                table += self._runs_of(of_loop, loop, variant, memories)
        runs = [run for table in tables for run in table]
        widths = RunWidths(
            code=max(len(select_bits(len(memories), 0)), 1),
            address=address_width(max(base for _, base, _ in runs) + longest + 1),
            left=max(max(left for *_, left in runs).bit_length(), 1),
            number=address_width(max(map(len, tables)) + 1),
            first=tuple(first),
        )
        roms = [
            tuple(
                code | base << widths.code | left << widths.code + widths.address
                for code, base, left in table
            )
            for table in tables
        ]
        return widths, [rom or (0,) for rom in roms]

    def _runs_of(
        self, reads: Reads, loop: Loop, variant: int, memories: tuple[int, ...]
    ) -> list[tuple[int, int, int]]:
        """The runs of a variant in a loop."""
        return [
            (
                select_code(len(memories), memories.index(run.memory)),
                run.base,
                # Words after the first, or blocks where these are of any length.
                run.blocks * (1 if self._program.any_length else loop.flits) - 1,
            )
            for row in range(loop.rows)
            for run in reads.at(row, variant)
        ]


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
