"""CRC-32 over words of any width, for frames on links between fabrics and for images.

The CRC is that of zlib and Ethernet, with the low bits of a word first. It starts as `INITIAL_CRC`.
The usual final inversion is left to the caller.
"""

from __future__ import annotations

from functools import lru_cache

from amaranth.hdl import Cat, Const, Value

__all__ = ["CRC_BITS", "INITIAL_CRC", "POLYNOMIAL", "crc_after", "crc_masks"]

#: Bits of the CRC.
CRC_BITS = 32

#: The CRC before the first word.
INITIAL_CRC = (1 << CRC_BITS) - 1

#: The polynomial, the least significant bit first.
POLYNOMIAL = 0xEDB88320


def crc_after(crc: Value, word: Value) -> Value:
    """Return the CRC after one more word, given the CRC before it.

    Parameters
    ----------
    crc : Value
        The CRC before the word, 32 bits.
    word : Value
        The word; its low bits come first.
    """
    both = Cat(crc, word)
    return Cat((both & Const(mask, len(both))).xor() for mask in crc_masks(len(word)))


@lru_cache
def crc_masks(width: int) -> tuple[int, ...]:
    """Return a mask for each bit of the CRC after one more word.

    The bit is the parity of the bits in its mask: bits 0 to 31 stand for the CRC before the word,
    and higher bits for the word.

    Parameters
    ----------
    width : int
        Bits of the word.

    Examples
    --------
    The CRC of the byte 255, from the masks. The initial CRC and the byte consist of ones, so each
    bit of the CRC is the parity of its whole mask.

    >>> import zlib
    >>> after = sum((mask.bit_count() & 1) << k for k, mask in enumerate(crc_masks(8)))
    >>> after ^ INITIAL_CRC == zlib.crc32(bytes([255]))
    True
    """
    bits = [1 << k for k in range(CRC_BITS)]
    for k in range(width):
        fed = bits[0] ^ 1 << CRC_BITS + k
        bits = [low ^ fed * (POLYNOMIAL >> place & 1) for place, low in enumerate([*bits[1:], 0])]
    return tuple(bits)
