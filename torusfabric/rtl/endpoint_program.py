"""What endpoints do in all modes, less what the sequencer does for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import IDLE, NEUTRAL, Action
from .endpoint_columns import ReadColumns, StoreColumns
from .endpoint_shape import Address
from .loops import Loops
from .windows import OwnStores, Phase, Windows

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["EndpointProgram"]

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
    reads : ReadColumns
    stores : StoreColumns
    own : list of (int, int)
        In which modes nodes store on their own into which memories.
    windows : Windows
        Of these.
    """

    program: Program
    loops: Loops
    reads: ReadColumns
    stores: StoreColumns
    own: list[tuple[int, int]]
    windows: Windows
    _stores: dict[tuple[int, int], OwnStores] = field(default_factory=dict, repr=False)
    _known: dict[tuple[int, int, int], frozenset[int]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, program: Program) -> EndpointProgram:
        """That of a program."""
        loops = Loops.of(program)
        reads, stores = ReadColumns.of(loops), StoreColumns.of(loops, len(program.memories))
        own = [
            (mode, number)
            for mode, loop in enumerate(loops.loops)
            for number in range(len(program.memories))
            if (loop.values(Action.WRITE, number) >= 0).any() and not stores.part(number, mode)
        ]
        windows = Windows.of(loops, own, any_length=program.any_length)
        return cls(program, loops, reads, stores, own, windows)

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
            for reader in range(self.loops.first.sources.readers)
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

    def own_stores(self, number: int, mode: int) -> OwnStores | None:
        """What nodes store into a memory on their own, in a mode; None where they do not."""
        if (mode, number) not in self.own:
            return None
        if (mode, number) not in self._stores:
            self._stores[mode, number] = self.windows.stores(mode, number)
        return self._stores[mode, number]

    def stored(self, number: int, members: list[int]) -> tuple[tuple[int, ...], tuple[Phase, ...]]:
        """The sources and phases by which variants store into a memory on their own."""
        sources: set[int] = set()
        phases: set[Phase] = set()
        for mode in self.modes:
            own = self.own_stores(number, mode)
            if own:
                stores, *facts = (values[:, members] for values in own)
                window, ago, source = (values[stores].tolist() for values in facts)
                sources |= {*source}
                phases |= set(map(Phase, window, ago))
        return tuple(sorted(sources)), tuple(sorted(phases))

    def memories_read(
        self, reader: int, members: list[int], mode: int | None = None
    ) -> tuple[int, ...]:
        """What variants read, in a mode or in any.

        Nothing where it is only ever the word that changes nothing.
        """
        found: set[int] = set()
        for number in self.modes if mode is None else [mode]:
            for variant in members:
                found |= self._read_by(number, reader, variant)
        if found == {NEUTRAL}:
            return ()
        # What changes nothing comes after all memories.
        return tuple(sorted(found, key=lambda memory: (memory == NEUTRAL, memory)))

    def _read_by(self, mode: int, reader: int, variant: int) -> frozenset[int]:
        """What a variant reads in a mode."""
        key = mode, reader, variant
        if key not in self._known:
            memory = self.loops.loops[mode].values(Action.MEMORY, reader)[:, variant]
            self._known[key] = frozenset(np.unique(memory[memory != IDLE]).tolist())
        return self._known[key]

    def addresses(self, reader: int, members: list[int]) -> tuple[Address | None, ...]:
        """How variants find their addresses in each mode; None where they read nothing."""
        found: list[Address | None] = []
        for mode in self.modes:
            if not any(self._read_by(mode, reader, variant) for variant in members):
                found.append(None)
            else:
                central = self.reads.central[reader][mode]
                found.append(Address.CENTRAL if central else Address.BASE)
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
