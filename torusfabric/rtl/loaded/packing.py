"""Values side by side in the rows of loaded tables."""

from __future__ import annotations

__all__ = ["UNASKED", "packed"]

#: A row of which nobody asks.
UNASKED = -1


def packed(values: dict[str, int], fields: dict[str, int]) -> int:
    """Values side by side."""
    total, start = 0, 0
    for name, bits in fields.items():
        assert 0 <= values[name] < 1 << bits, f"{name} {values[name]} has {bits} bits"
        total |= values[name] << start
        start += bits
    return total
