"""Addresses in memories of two or more sections, each of which begins at a power of two."""

from amaranth.hdl import Cat, Const, Value

__all__ = ["in_section", "section_bits"]


def section_bits(depth: int) -> int:
    """Bits of an address within a section of so many words.

    Examples
    --------
    >>> [section_bits(depth) for depth in (1, 4, 5)]
    [0, 2, 3]
    """
    return (depth - 1).bit_length()


def in_section(address: Value, depth: int, section: Value) -> Value:
    """An address of so many words in one of the sections of a memory."""
    bits = section_bits(depth)
    return Cat(address[:bits], Const(0, max(bits - len(address), 0)), section)
