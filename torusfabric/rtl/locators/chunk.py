"""Locators of programs in which every chunk has a memory of its own, the same at all nodes."""

from amaranth.hdl import Module

from ...program import Program
from .base import Locator

__all__ = ["ChunkLocator"]


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
