"""What endpoints do in all modes, less what the sequencer does for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.values import NEUTRAL, Writes
from .endpoint_columns import ReadColumns, StoreColumns
from .endpoint_shape import Address
from .loops import Loops

if TYPE_CHECKING:
    from ..program import Program
    from .windows import Windows

__all__ = ["EndpointProgram", "Phase"]

#: A window, and the hops after which a word within it is stored.
Phase: TypeAlias = tuple[int, int]

#: Sizes of memories that cost no more than smaller ones: distributed memory, block RAM.
MEMORY_SIZES = (16, 256)

#: Words of a block RAM; larger memories are made of several.
BLOCK_RAM = 512


@dataclass(frozen=True, eq=False)
class EndpointProgram:
    """What endpoints do, less what the sequencer does for all of them.

    Parameters
    ----------
    program : Program
    loops : Loops
    windows : Windows
    reads : ReadColumns
    stores : StoreColumns
    """

    program: Program
    loops: Loops
    windows: Windows
    reads: ReadColumns
    stores: StoreColumns
    _known: dict[tuple[int, int, int], frozenset[int]] = field(default_factory=dict, repr=False)

    @property
    def modes(self) -> range:
        """The numbers of the modes."""
        return range(len(self.loops.loops))

    def structure(self, variant: int) -> object:
        """What a variant has in common with all of its shape."""
        depth = self.program.depth[variant]
        memories = tuple(
            (self.size(number, int(depth[number])), *self.stored(number, [variant]))
            for number in range(len(self.program.memories))
        )
        readers = tuple(
            (self.addresses(reader, [variant]), self.memories_read(reader, [variant]))
            for reader in range(len(self.loops.first.reads))
        )
        return memories, readers

    def size(self, number: int, depth: int) -> int:
        """A size of memory that serves a depth; none is larger than any node needs.

        Nodes whose depths differ share a module where that costs nothing, for memories come in
        sizes: a register, distributed memory of 16 words, block RAM of 256 words, or of 512.
        """
        if self.loops.variants == 1 or depth <= 1:
            return depth
        blocks = -(-depth // BLOCK_RAM) * BLOCK_RAM
        size = next((size for size in MEMORY_SIZES if depth <= size), blocks)
        return min(size, int(self.program.depth[:, number].max()))

    def own_writes(self, number: int, mode: int) -> Writes | None:
        """What nodes store into a memory on their own, in a mode; None where they do not."""
        loop = self.loops.loops[mode]
        column = self.stores.parts.get(number)
        if number >= len(loop.writes) or (column and column[mode]):
            return None
        return loop.writes[number]

    def stored(self, number: int, members: list[int]) -> tuple[tuple[int, ...], tuple[Phase, ...]]:
        """The sources and phases by which variants store into a memory on their own."""
        sources: set[int] = set()
        phases: set[Phase] = set()
        for mode in self.modes:
            writes = self.own_writes(number, mode)
            for variant in members if writes else []:
                assert writes is not None
                for row in np.nonzero(writes.base[:, variant] >= 0)[0].tolist():
                    phases.add(self.phase(mode, writes, row, variant))
                    sources.add(int(writes.port[row, variant]))
        return tuple(sorted(sources)), tuple(sorted(phases))

    def phase(self, mode: int, writes: Writes, row: int, variant: int) -> Phase:
        """When a variant stores in a row of a mode."""
        length = int(writes.blocks[row, variant])
        window = self.windows.number(self.loops.starts[mode] + row, length)
        return window, int(writes.hops[row, variant])

    def memories_read(
        self, reader: int, members: list[int], mode: int | None = None
    ) -> tuple[int, ...]:
        """What variants read, in a mode or in any.

        Nothing where it is only ever the word that changes nothing.
        """
        found: set[int] = set()
        for number in self.modes if mode is None else [mode]:
            alike = self.loops.loops[number].reads[reader].count.shape[1] == 1
            for variant in [0] if alike else members:
                found |= self._read_by(number, reader, variant)
        if found == {NEUTRAL}:
            return ()
        # What changes nothing comes after all memories.
        return tuple(sorted(found, key=lambda memory: (memory == NEUTRAL, memory)))

    def _read_by(self, mode: int, reader: int, variant: int) -> frozenset[int]:
        """What a variant reads in a mode."""
        key = mode, reader, variant
        if key not in self._known:
            runs = self.loops.loops[mode].reads[reader].runs_of(variant)
            self._known[key] = frozenset(np.unique(runs).tolist())
        return self._known[key]

    def addresses(self, reader: int, members: list[int]) -> tuple[Address | None, ...]:
        """How variants find their addresses in each mode; None where they read nothing."""
        found: list[Address | None] = []
        for mode, loop in enumerate(self.loops.loops):
            counts = np.broadcast_to(loop.reads[reader].count, (loop.rows, loop.variants))
            most = counts[:, members].max(initial=0)
            if not most:
                found.append(None)
            elif self.reads.central[reader][mode]:
                found.append(Address.CENTRAL)
            else:
                found.append(Address.BASE if most <= 1 else Address.RUNS)
        return tuple(found)

    def memories_host_reads(self, members: list[int]) -> set[int]:
        """The memories that the host reads at nodes of some variants."""
        program = self.program
        if program.by_offset:
            nodes = np.arange(program.topology.nodes)
        else:
            nodes = np.nonzero(np.isin(program.variant_of, members))[0]
        found: set[int] = set()
        for mode in program.modes:
            found |= mode.receive_map.memories(mode.groups.position[nodes])
        return found
