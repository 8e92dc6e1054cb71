"""How much later than it could a word arrives that the host writes: its address is looked up.

Hardware is built with the same numbers (see `torusfabric.rtl.host_layout`, `.division`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..collective.layout import Layout

__all__ = ["TABLE_BITS", "block_cycles", "chunk_cycles", "direct_write_delay", "division_cycles",
           "look_up_delay", "part_cycles", "table_digits"]  # fmt: skip

#: Cycles in which an address is looked up by the offset of the part, and the chunk.
OFFSET_LOOK_UP = 4

#: The same by the part itself, and the chunk.
PART_LOOK_UP = 2

#: Bits of the key of a table that finds a digit of a quotient: four look-up tables of four inputs
#: and what chooses among them.
TABLE_BITS = 6


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


def division_cycles(count: int, divisor: int) -> int:
    """Cycles to divide one of so many numbers, from 0, by a constant.

    None for a power of two, which divides the bits. Else one for each digit that a table finds, or
    for each bit of the quotient by subtraction, whichever are fewer.

    Examples
    --------
    >>> [division_cycles(64, divisor) for divisor in (4, 3, 25, 100)]
    [0, 1, 1, 0]
    >>> division_cycles(1024, 3), division_cycles(1024, 100)
    (2, 4)
    """
    if count <= divisor or not divisor & (divisor - 1):
        return 0
    return len(table_digits(count, divisor)) or _quotient_bits(count, divisor)


def table_digits(count: int, divisor: int) -> tuple[int, ...]:
    """Bits of a number that each table takes, the upper ones first; none where subtraction does.

    The key of a table is what the one before has left, and the bits that it takes.

    Examples
    --------
    >>> table_digits(1024, 3), table_digits(48, 24)
    ((6, 4), ())
    """
    bits, rest = (count - 1).bit_length(), (divisor - 1).bit_length()
    if rest >= TABLE_BITS:
        return ()
    digits = [min(bits, TABLE_BITS)]
    while sum(digits) < bits:
        digits.append(min(bits - sum(digits), TABLE_BITS - rest))
    return tuple(digits) if len(digits) < _quotient_bits(count, divisor) else ()


def _quotient_bits(count: int, divisor: int) -> int:
    """Bits of the largest quotient."""
    return ((count - 1) // divisor).bit_length()
