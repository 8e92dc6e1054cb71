"""Locators of direct maps.

Every chunk has a memory of its own, the same at all nodes, or parts are kept one after another with
blocks that messages do not fill.
"""

import numpy as np
from amaranth.hdl import Cat, Module

from ...program import DirectMap, Program
from ..columns import Columns
from ..registers import delayed
from .base import Locator

__all__ = ["ChunkLocator", "DirectLocator"]


class ChunkLocator(Locator):
    """Finds chunks: the memory is the chunk, the address the flit.

    Parameters
    ----------
    program : Program
        With a `DirectMap` by chunk.
    """

    latency = 1

    def __init__(self, program: Program) -> None:
        nodes, chunks = program.groups.size, program.schedule.chunks
        flits = program.block_flits
        super().__init__(nodes=nodes, chunks=chunks, flits=flits, memories=chunks, depth=flits)

    def elaborate(self, platform: object) -> Module:
        """Register the answer."""
        m = Module()
        m.d.sync += [self.bank.eq(self.chunk), self.address.eq(self.flit)]
        return m


class DirectLocator(Locator):
    """Finds what a node sends by the part, here its origin, and the chunk.

    Parameters
    ----------
    program : Program
        Whose nodes send from a `DirectMap` of one memory.
    """

    latency = 2

    def __init__(self, program: Program) -> None:
        mapped, self._layout = program.mode.send_map, program.layout
        assert isinstance(mapped, DirectMap)
        self._map = mapped
        super().__init__(
            nodes=program.groups.size,
            chunks=self._layout.part_chunks,
            flits=program.block_flits,
            memories=1,
            depth=self._layout.send_blocks * program.block_flits,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the table of first addresses."""
        m = Module()
        table: Columns = self.columns(Cat(self.chunk, self.origin))
        key = np.arange(self._layout.send_parts << len(self.chunk))
        part, chunk = key >> len(self.chunk), key & ((1 << len(self.chunk)) - 1)
        _, base = self._map.locate(0, part, np.minimum(chunk, self._layout.part_chunks - 1))
        address = table.read(base) + delayed(m, self.flit, 1)
        table.build(m, "table")
        m.d.sync += [self.bank.eq(0), self.address.eq(address)]
        return m
