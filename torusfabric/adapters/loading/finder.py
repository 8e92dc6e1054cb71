"""The finder of a loaded fabric: translates a host address into the memory and address of a flit.

The master at the host port reads results by host addresses. A host address has the node, the part
and the number f of a flit in the part. A *part* is the message that a node received from one
origin. The flits of a part belong to its C chunks in turn: with beat 1, the flit is word
floor(f / C) of chunk f mod C. The loaded table `blocks` has the memory and the first address of
each block of a node. Block number part * C + f mod C is looked up there, and the number of the word
is added to the first address.

C depends on the *entry* of the last run: one form of a mode, for one root if runs choose the root.
So a multiplication by the reciprocal of C, a constant of the entry, replaces the division::

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

from ...collective import parse_collective
from ...rtl.memories import address_width, resize
from ...rtl.modules import Leaf, delay_value
from ..host.finders import Finder, HostLayout
from .layout import TableLayout
from .requests import HOST_FIELDS

__all__ = ["BlockFinder", "host_layout"]


def host_layout(layout: TableLayout) -> HostLayout:
    """Return the bit fields of the addresses at the host port: node, part and flit.

    A part is the message from one origin. The fields are those of an all-to-all, whatever image is
    loaded. Why: an all-to-all has the most parts, so these fields suffice for each other
    collective.

    Parameters
    ----------
    layout : TableLayout
        Tables of the fabric. The fields depend on the topology, the beat and the most flits of a
        message, for which the fabric was built.
    """
    room = layout.room
    words = parse_collective("alltoall", topology=room.topology).layout(room.topology, 1)
    return HostLayout(words, room.flits, beat=room.beat)


class BlockFinder(Finder):
    """Hardware that translates a host address into the location (memory, address) of a flit.

    A host address has the node, the origin of the message and the number of the flit in the
    message. The hardware looks up the location of the flit's block in the loaded table `blocks`.

    Parameters
    ----------
    addresses : HostLayout
        Division of the address of the host port into node, part and flit.
    layout : TableLayout
        Bit fields and sizes of the loaded tables.

    Members
    -------
    chunks, reciprocal, first_block, one_node : In
        Constants of the form of the last run: see `TableLayout.mode_fields`.
    block_address : Out
        Row of the table `blocks` that has the location of the block.
    block_word : In
        The contents of this row, one cycle later: see `TableLayout.block_fields`.
    """

    def __init__(self, addresses: HostLayout, layout: TableLayout) -> None:
        super().__init__(
            addresses, addresses.recv_parts, layout.block_fields["memory"].width, cycles=5
        )
        self._layout = layout
        self.members = {
            **{name: In(layout.mode_fields[name].width) for name in HOST_FIELDS},
            "block_word": In(layout.block_fields.size),
            "block_address": Out(layout.mode_fields["first_block"].width),
        }

    @override
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        layout, room = self._layout, self._layout.room
        # Consecutive words of the host belong to the chunks in turn.
        low, chunks = room.beat.bit_length() - 1, host.input_value("chunks")
        asked = resize(flit, address_width(room.flits))[low:]
        turn = Signal(len(asked), name="turn")
        m.d.sync += turn.eq((asked * host.input_value("reciprocal"))[layout.reciprocal_shift :])
        in_turn = Signal(address_width(room.sizes.chunks), name="chunk_of_flit")
        m.d.sync += in_turn.eq(delay_value(m, asked, 1) - turn * chunks)
        first = host.input_value("first_block")
        block = Signal(len(first), name="block_of_node")
        m.d.sync += block.eq(delay_value(m, part, 2) * chunks + in_turn)
        each = Cat(delay_value(m, self.group_position(m, name, node), 3), block)
        address = first + Mux(host.input_value("one_node"), block, each)
        m.d.comb += host.block_address.eq(address)
        found = View(layout.block_fields, host.input_value("block_word"))
        own = found.memory == room.ports
        apart = delay_value(m, asked, 3) - delay_value(m, in_turn, 1)
        word = Mux(own, delay_value(m, apart[: len(asked)], 1), delay_value(m, turn, 3))
        flits = Cat(Const(0, low), word) if low else word
        return delay_value(m, found.memory, 1), delay_value(m, found.base + flits, 1)
