"""CRC-32, a word at a time: the sum of what goes over links, and of images."""

from __future__ import annotations

from functools import lru_cache

from amaranth.hdl import Cat, Const, Value

__all__ = ["CRC_BITS", "ONES", "POLYNOMIAL", "crc_after", "crc_masks"]

#: Bits of a sum.
CRC_BITS = 32

#: The sum before the first word.
ONES = (1 << CRC_BITS) - 1

#: The polynomial, the least significant bit first.
POLYNOMIAL = 0xEDB88320


def crc_after(crc: Value, word: Value) -> Value:
    """The sum after a word more, whose low bits come first."""
    both = Cat(crc, word)
    return Cat((both & Const(mask, len(both))).xor() for mask in crc_masks(len(word)))


@lru_cache
def crc_masks(width: int) -> tuple[int, ...]:
    """On which bits of the sum before, and above them of the word, each bit of the sum depends.

    Examples
    --------
    >>> import zlib
    >>> after = sum((mask.bit_count() & 1) << k for k, mask in enumerate(crc_masks(8)))
    >>> after ^ ONES == zlib.crc32(bytes([255]))
    True
    """
    bits = [1 << k for k in range(CRC_BITS)]
    for k in range(width):
        fed = bits[0] ^ 1 << CRC_BITS + k
        bits = [low ^ fed * (POLYNOMIAL >> place & 1) for place, low in enumerate([*bits[1:], 0])]
    return tuple(bits)
