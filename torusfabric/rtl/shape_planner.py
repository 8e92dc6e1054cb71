"""From a program to the shape of some endpoints, and to the contents of their ROMs."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..program.fields import Action
from ..topology import IntArray
from .cascade import select_code
from .endpoint_program import EndpointProgram
from .endpoint_shape import (
    Address,
    EndpointMemory,
    EndpointReader,
    EndpointShape,
    Field,
)
from .row_rom import RowRom
from .sharing import sharing
from .windows import Phase

__all__ = ["ShapePlanner"]

#: The rows of a ROM.
Rows: TypeAlias = tuple[int, ...]


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
        self.rom = RowRom(len(members), [span for _, span in self._loops.spans()])
        self._readers = [
            number
            for number in range(self._loops.first.sources.readers)
            if endpoints.memories_read(number, members)
        ]
        self._host_reads = endpoints.memories_host_reads(members)

    def plan(self) -> tuple[EndpointShape, dict[int, Rows]]:
        """The shape, and the rows of the row ROM by variant."""
        groups = [self._groups(number) for number in range(len(self._program.memories))]
        # The order of memories and readers is that of the fields of the row ROM.
        memories = tuple(self._memory(number, sets) for number, sets in enumerate(groups))
        readers = tuple(
            self._reader(index, number, self._rivals(index, groups))
            for index, number in enumerate(self._readers)
        )
        injections = tuple(
            tuple(self._readers.index(reader) for reader in group if reader in self._readers)
            for group in self._loops.first.sources.injections
        )
        shape = EndpointShape(memories, readers, injections, self.rom.width)
        rows = {variant: self.rom.contents(member) for member, variant in enumerate(self._members)}
        return shape, rows

    def _groups(self, number: int) -> tuple[tuple[int, ...], ...]:
        """Which readers can share a read port of a memory; see `sharing`."""
        loops = self._loops.loops
        reading = {
            index: [
                loop.values(Action.MEMORY, reader)[:, self._members] == number for loop in loops
            ]
            for index, reader in enumerate(self._readers)
            if number in self._endpoints.memories_read(reader, self._members)
        }
        return sharing(reading, [loop.order for loop in loops])

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
        parts = (endpoints.stores.part(number, mode) for mode in endpoints.modes)
        central = {part.source for part in parts if part}
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
        for mode, (_, span) in enumerate(self._loops.spans()):
            own = self._endpoints.own_stores(number, mode)
            for code, (window, ago) in enumerate(phases, 1) if own else ():
                assert own is not None
                chosen = (own.window == window) & (own.ago == ago)
                values[:, span][chosen[:, self._members].T] = code
        return values

    def _source_codes(self, number: int, sources: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the source; -1 where it does not matter."""
        codes = self._values(-1)
        for mode, (_, span) in enumerate(self._loops.spans()):
            part = self._endpoints.stores.part(number, mode)
            own = self._endpoints.own_stores(number, mode)
            for index, source in enumerate(sources):
                code = select_code(len(sources), index)
                if part and part.source == source:
                    codes[:, span] = code
                elif own:
                    codes[:, span][source == own.source[:, self._members].T] = code
        return codes

    def _start(self, number: int) -> Field:
        """Where the pointer of a memory starts."""
        starts = []
        for mode, loop in enumerate(self._loops.loops):
            known = np.zeros(0, int)
            if self._endpoints.own_stores(number, mode):
                base = loop.values(Action.WRITE, number)[:, self._members]
                known = base[base >= 0]
            starts.append(int(known.min()) if len(known) else -1)
        first = max(next((s for s in starts if s >= 0), 0), 0)
        constants = tuple(first if s < 0 else s for s in starts)
        return Field(0, max(max(constants).bit_length(), 1), constants)

    # Readers

    def _reader(self, index: int, number: int, rivals: set[int]) -> EndpointReader:
        """A reader; `rivals` share read ports with it."""
        endpoints = self._endpoints
        addresses = endpoints.addresses(number, self._members)
        memories = endpoints.memories_read(number, self._members)
        code = base = shift = None
        if len(memories) > 1:
            code = self.rom.add(self._codes(number, memories))
        if Address.BASE in addresses:
            shift, bases = self._bases(number, addresses)
            base = self.rom.add(bases)
        return EndpointReader(
            number=number,
            address=Address.CENTRAL if base is None else Address.BASE,
            column=endpoints.reads.column_of[number],
            memories=memories,
            code=code,
            base=base,
            base_shift=shift,
            joins=Address.BASE in addresses and Address.CENTRAL in addresses,
            sending=self.rom.add(self._sending(number, rivals)) if rivals else None,
        )

    def _of_members(self, action: Action, number: int) -> IntArray:
        """The values of a control point of all modes, by member and row."""
        values = [loop.values(action, number) for loop in self._loops.loops]
        chosen: IntArray = self._loops.joined(values)[:, self._members].T
        return chosen

    def _sending(self, number: int, rivals: set[int]) -> IntArray:
        """Of each row, whether a reader reads; always in modes in which it has no rival."""
        values = (self._of_members(Action.READ, number) >= 0).astype(int)
        for mode, (_, span) in enumerate(self._loops.spans()):
            mine = set(self._endpoints.memories_read(number, self._members, mode))
            others = (
                self._endpoints.memories_read(self._readers[rival], self._members, mode)
                for rival in rivals
            )
            if mine and not mine & set().union(*others):
                values[:, span] = 1
        return values

    def _codes(self, number: int, memories: tuple[int, ...]) -> IntArray:
        """Of each row, the select bits of the memory; -1 where they do not matter."""
        memory = self._of_members(Action.MEMORY, number)
        codes = np.full_like(memory, -1)
        for index, each in enumerate(memories):
            codes[memory == each] = select_code(len(memories), index)
        return codes

    def _bases(
        self, number: int, addresses: tuple[Address | None, ...]
    ) -> tuple[int | None, IntArray]:
        """How many zeros bases end with, and their other bits: see `EndpointReader`."""
        values, longest = self._of_members(Action.READ, number).copy(), 1
        for address, (loop, span) in zip(addresses, self._loops.spans(), strict=True):
            if address is Address.BASE:
                reading = (values[:, span] >= 0).any(axis=0)
                longest = max(longest, int(loop.blocks[reading].max()) * loop.flits)
            else:
                values[:, span] = 0 if address else -1
        shift = _shift(values[values > 0], longest)
        return shift, np.where(values > 0, values >> (shift or 0), values)


def _shift(bases: IntArray, length: int) -> int | None:
    """How many low bits are 0 in all bases, if so many count the words of a burst; else None."""
    bits = (length - 1).bit_length()
    return None if (bases & ((1 << bits) - 1)).any() else bits
