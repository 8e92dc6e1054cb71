"""Values side by side in the rows of loaded tables: as numbers, and in hardware."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amaranth.hdl import Value

__all__ = ["UNASKED", "fields_of", "packed"]

#: A row of which nobody asks.
UNASKED = -1


def packed(values: Mapping[str, int], fields: Mapping[str, int]) -> int:
    """The row of values, of which those count that have a field, by the bits of the fields."""
    total, start = 0, 0
    for name, bits in fields.items():
        assert 0 <= values[name] < 1 << bits, f"{name} {values[name]} has {bits} bits"
        total |= values[name] << start
        start += bits
    return total


def fields_of(word: Value, fields: Mapping[str, int]) -> dict[str, Value]:
    """What lies side by side in a word."""
    ends = accumulate(fields.values())
    return {name: word[end - bits : end] for (name, bits), end in zip(fields.items(), ends,
                                                                      strict=True)}  # fmt: skip
