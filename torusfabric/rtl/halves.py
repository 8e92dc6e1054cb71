"""Addresses in memories with two halves, or more sections; each begins at a power of two."""

from amaranth.hdl import Cat, Const, Value

__all__ = ["half_bits", "in_half"]


def half_bits(depth: int) -> int:
    """Bits of an address within a half of so many words.

    Examples
    --------
    >>> [half_bits(depth) for depth in (1, 4, 5)]
    [0, 2, 3]
    """
    return (depth - 1).bit_length()


def in_half(address: Value, depth: int, half: Value) -> Value:
    """An address of so many words in one of the halves of a memory."""
    bits = half_bits(depth)
    return Cat(address[:bits], Const(0, max(bits - len(address), 0)), half)
