"""How much later than it could a word arrives that the host writes: its address is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..collective.layout import Layout

__all__ = ["direct_write_delay", "look_up_delay", "part_cycles"]

#: Cycles in which an address is looked up by the offset of the part, and the chunk.
OFFSET_LOOK_UP = 4

#: The same by the part itself, and the chunk.
PART_LOOK_UP = 2


def look_up_delay(layout: Layout, flits: int, *, any_length: bool) -> int:
    """The delay where a table gives the address of each block, by the offset if there are parts."""
    if layout.send_parts == 1:
        return PART_LOOK_UP
    return OFFSET_LOOK_UP + part_cycles(layout, layout.send_parts, flits, any_length=any_length)


def direct_write_delay(layout: Layout, flits: int, *, any_length: bool) -> int:
    """The delay where blocks lie one after another in a memory.

    They do so with all their flits, at the host without those that messages do not fill; and where
    the length is open, the flits of a message go to its chunks in turn.
    """
    parts = layout.send_parts
    in_turn = any_length and layout.blocks.chunks > 1
    if not in_turn and (parts == 1 or not layout.is_padded(flits)):
        return 0
    return PART_LOOK_UP + part_cycles(layout, parts, flits, any_length=any_length)


def part_cycles(layout: Layout, parts: int, flits: int, *, any_length: bool) -> int:
    """Cycles to find out in which part an address of the host lies."""
    if parts == 1 or (any_length and layout.in_shares):
        return 0
    size = layout.part_flits(flits)
    # A power of two drops bits; else a part is found bit by bit.
    return (parts - 1).bit_length() if size & (size - 1) else 0
