"""The finder of a loaded fabric: where blocks lie is looked up in a table."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out
from typing_extensions import override

from ...collective import Collective
from ...rtl.memories import address_width, fitting
from ...rtl.modules import Leaf, delayed
from ..host.finders import Finder, HostLayout
from .layout import TableLayout
from .requests import FOR_HOST

__all__ = ["BlockFinder", "host_layout"]


def host_layout(layout: TableLayout) -> HostLayout:
    """Return where the host finds words, whatever is loaded: like those of an all-to-all."""
    room = layout.room
    words = Collective("alltoall").layout(room.topology, 1)
    return HostLayout(words, room.flits, beat=room.beat)


class BlockFinder(Finder):
    """Finds flits: the form says in how many chunks they lie in turn, a table where these are.

    Members
    -------
    chunks, reciprocal, first_block, one_node : In
        Of the form of the last run.
    block_address : Out
        The row of the block and the node.
    block_word : In
        The place of the block, a cycle later.
    """

    def __init__(self, addresses: HostLayout, layout: TableLayout) -> None:
        super().__init__(addresses, addresses.recv_parts, layout.block["memory"].width, cycles=5)
        self._layout = layout
        self.members = {
            **{name: In(layout.mode[name].width) for name in FOR_HOST},
            "block_word": In(layout.block.size),
            "block_address": Out(layout.mode["first_block"].width),
        }

    @override
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        layout, room = self._layout, self._layout.room
        # Words of the host go to chunks in turn.
        low, chunks = room.beat.bit_length() - 1, host.value("chunks")
        asked = fitting(flit, address_width(room.flits))[low:]
        turn = Signal(len(asked), name="turn")
        m.d.sync += turn.eq((asked * host.value("reciprocal"))[layout.reciprocal_shift :])
        in_turn = Signal(address_width(room.sizes.chunks), name="chunk_of_flit")
        m.d.sync += in_turn.eq(delayed(m, asked, 1) - turn * chunks)
        first = host.value("first_block")
        block = Signal(len(first), name="block_of_node")
        m.d.sync += block.eq(delayed(m, part, 2) * chunks + in_turn)
        each = Cat(delayed(m, self.position(m, name, node), 3), block)
        address = first + Mux(host.value("one_node"), block, each)
        m.d.comb += host.block_address.eq(address)
        found = View(layout.block, host.value("block_word"))
        own = found.memory == room.ports
        apart = delayed(m, asked, 3) - delayed(m, in_turn, 1)
        word = Mux(own, delayed(m, apart[: len(asked)], 1), delayed(m, turn, 3))
        flits = Cat(Const(0, low), word) if low else word
        return delayed(m, found.memory, 1), delayed(m, found.base + flits, 1)
