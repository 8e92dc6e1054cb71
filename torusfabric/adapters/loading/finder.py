"""The finder of a loaded fabric: translates host addresses by the table of received blocks.

A host asks for a flit of a message by node, part and flit number f. With C chunks and beat 1 the
flit is word floor(f / C) of chunk f mod C. The quotient is computed with a reciprocal::

    cycle 0   f * reciprocal
    cycle 1   floor(f / C) is valid
    cycle 2   f mod C is valid
    cycle 3   block number is valid; address of the table
    cycle 4   row of the table: memory and first address
    cycle 5   memory and address of the flit
"""

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
    """Return the address layout of the host port: that of an all-to-all, whatever is loaded."""
    room = layout.room
    words = Collective("alltoall").layout(room.topology, 1)
    return HostLayout(words, room.flits, beat=room.beat)


class BlockFinder(Finder):
    """Finder that looks up the location of each received block in a loaded table.

    Parameters
    ----------
    addresses : HostLayout
        Address layout of the host port.
    layout : TableLayout
        Fields of the tables.

    Members
    -------
    chunks, reciprocal, first_block, one_node : In
        Fields of the entry of the last run: see `TableLayout.mode`.
    block_address : Out
        Row of the table that holds the block of a node.
    block_word : In
        That row, one cycle later: see `TableLayout.block`.
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
        # Consecutive words of the host belong to the chunks in turn.
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
