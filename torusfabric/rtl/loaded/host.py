# amaranth: UnusedElaboratable=no
"""The host port of a fabric whose tables are loaded: where blocks lie is looked up in a table."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...collective import Collective
from ...program.frame import Frame
from ..locators import HostLayout, Locator
from ..memories import address_width
from ..modules import delayed
from .layout import TableLayout
from .sequencer import FOR_HOST

__all__ = ["BlockLocator", "loaded_layout"]


def loaded_layout(frame: Frame) -> HostLayout:
    """Where the host finds words, whatever is loaded: like those of an all-to-all."""
    layout = Collective("alltoall").layout(frame.topology, 1)
    return HostLayout(layout, frame.flits, image_words=TableLayout(frame).image_words)


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
