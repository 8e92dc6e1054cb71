# amaranth: UnusedElaboratable=no
"""The host port of a fabric whose tables are loaded: where blocks lie is looked up in a table."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...program.frame import Frame
from ...program.timing import division_cycles
from ..locators import HostLayout, Locator
from ..memories import address_width
from ..modules import delayed
from .layout import TableLayout
from .sequencer import FOR_HOST

__all__ = ["BlockLocator", "LoadedHostLayout"]


class LoadedHostLayout(HostLayout):
    """Where the host finds words, whatever is loaded: by node, part of its memory, and flit."""

    def __init__(self, frame: Frame) -> None:
        flits = frame.flits
        self.chunks = self.part_chunks = 1
        self.in_turn = self.part_is_root = self.memory_by_chunk = False
        self.nodes = self.send_parts = self.recv_parts = frame.nodes
        self.flits = self.block_flits = self.part_flits = flits
        self.send_words = self.recv_words = frame.nodes * flits
        self.send_base, self.recv_base = 0, 1 << (self.send_words - 1).bit_length()
        self.address_bits = address_width(2 * self.recv_base)
        self.positions, self.image_words = None, TableLayout(frame).image_words

    def block_cycles(self, parts: int) -> int:
        """Cycles to find out in which part an address lies."""
        return division_cycles(parts * self.flits, self.flits)

    part_cycles = block_cycles
    #: Chunks are found out with the mode.
    chunk_cycles = 0


class BlockLocator(Locator):
    """Finds flits: the mode says in how many chunks they lie in turn, a table where these are.

    Members
    -------
    chunks, reciprocal, first_block, one_node : In
        Of the mode of the last run.
    block_address : Out
        The row of the block and the node.
    block_word : In
        Where it lies, a cycle later.
    """

    latency = 5

    def __init__(self, layout: TableLayout) -> None:
        frame = layout.frame
        self._layout = layout
        super().__init__(
            nodes=frame.nodes, chunks=1, flits=frame.flits, memories=frame.ports + 1,
            depth=1 << layout.of_node.base_bits,
            given={
                **{name: In(layout.mode[name].width) for name in FOR_HOST},
                "block_word": In(layout.block.size),
                "block_address": Out(layout.mode["first_block"].width),
            },
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build a step a cycle."""
        m, layout = Module(), self._layout
        frame = layout.frame
        flit, chunks = self.flit, self.chunks
        turn = Signal(len(flit), name="turn")
        m.d.sync += turn.eq((flit * self.reciprocal)[layout.reciprocal_shift :])
        chunk = Signal(address_width(frame.chunks), name="chunk_of_flit")
        m.d.sync += chunk.eq(delayed(m, flit, 1) - turn * chunks)
        block = Signal(len(self.block_address), name="block_of_node")
        m.d.sync += block.eq(delayed(m, self.origin, 2) * chunks + chunk)
        each = Cat(delayed(m, self.node, 3), block)
        m.d.comb += self.block_address.eq(self.first_block + Mux(self.one_node, block, each))
        found = View(layout.block, self.block_word)
        own = found.memory == frame.ports
        apart = delayed(m, flit, 3) - delayed(m, chunk, 1)
        word = Mux(own, delayed(m, apart[: len(flit)], 1), delayed(m, turn, 3))
        m.d.sync += [self.bank.eq(found.memory), self.address.eq(found.base + word)]
        return m
