"""What goes over a link: words, each with what it is, in packets that end with a sum."""

from __future__ import annotations

import enum
from functools import lru_cache

from amaranth.hdl import Cat, Const, Value

from .link_plan import CRC_BITS

__all__ = ["FRAME_BITS", "ONES", "POLYNOMIAL", "Frame", "crc_after"]

#: Bits of what a word is.
FRAME_BITS = 2

#: The sum before the first word of a packet.
ONES = (1 << CRC_BITS) - 1

#: The polynomial of CRC-32, the least significant bit first.
POLYNOMIAL = 0xEDB88320


class Frame(enum.IntEnum):
    """What a word is."""

    #: None: the link is at rest, or there is none.
    NONE = 0
    #: Of a message between runs.
    MESSAGE = 1
    #: Of a run.
    RUN = 2
    #: Of the sum of all words before, the low bits first.
    CHECK = 3


def crc_after(crc: Value, word: Value) -> Value:
    """The CRC-32 of a packet with a word more, whose low bits come first."""
    both = Cat(crc, word)
    return Cat((both & Const(mask, len(both))).xor() for mask in _masks(len(word)))


@lru_cache
def _masks(width: int) -> tuple[int, ...]:
    """On which bits of the sum before, and of the word, each bit of the sum depends."""
    bits = [1 << k for k in range(CRC_BITS)]
    for k in range(width):
        fed = bits[0] ^ 1 << CRC_BITS + k
        bits = [low ^ fed * (POLYNOMIAL >> place & 1) for place, low in enumerate([*bits[1:], 0])]
    return tuple(bits)
