"""How much later than it could a word arrives that the host writes: its address is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .division import division_cycles

if TYPE_CHECKING:
    from ..collective.layout import Layout

__all__ = ["block_cycles", "chunk_cycles", "direct_write_delay", "look_up_delay", "part_cycles"]

#: Cycles in which an address is looked up by the offset of the part, and the chunk.
OFFSET_LOOK_UP = 4

#: The same by the part itself, and the chunk.
PART_LOOK_UP = 2


def look_up_delay(layout: Layout, flits: int, *, any_length: bool) -> int:
    """The delay where a table gives the address of each block, by the offset if there are parts."""
    look_up = PART_LOOK_UP if layout.send_parts == 1 else OFFSET_LOOK_UP
    return look_up + block_cycles(layout, layout.send_parts, flits, any_length=any_length)


def direct_write_delay(layout: Layout, flits: int, *, any_length: bool) -> int:
    """The delay where blocks lie one after another in a memory.

    They do so with all their flits, at the host without those that messages do not fill; and where
    the length is open, the flits of a message go to its chunks in turn.
    """
    parts = layout.send_parts
    in_turn = any_length and layout.blocks.chunks > 1
    if not in_turn and (parts == 1 or not layout.is_padded(flits)):
        return 0
    return PART_LOOK_UP + block_cycles(layout, parts, flits, any_length=any_length)


def block_cycles(layout: Layout, parts: int, flits: int, *, any_length: bool) -> int:
    """Cycles to find out in which block, of so many parts, an address of the host lies."""
    of_part = part_cycles(layout, parts, flits, any_length=any_length)
    return of_part + chunk_cycles(layout, flits, any_length=any_length)


def part_cycles(layout: Layout, parts: int, flits: int, *, any_length: bool) -> int:
    """Cycles to find out in which part an address of the host lies."""
    if any_length and layout.in_shares:
        # Parts follow from chunks.
        return division_cycles(layout.blocks.chunks, layout.part_chunks)
    size = layout.part_flits(flits)
    return division_cycles(parts * size, size)


def chunk_cycles(layout: Layout, flits: int, *, any_length: bool) -> int:
    """Cycles to find out to which chunk a word of a part belongs."""
    if any_length:
        return division_cycles(flits, layout.blocks.chunks)
    size = layout.block_flits(flits)
    return division_cycles(layout.part_chunks * size, size)
