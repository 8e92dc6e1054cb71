"""What differs between the members of generate loops: constants with an entry for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...rtl.memories import address_width
from ...topology import BoolArray, IntArray
from ..design import pieces
from ..expressions import range_of

__all__ = [
    "Tables",
    "bits_of",
    "concatenated",
    "constant_of",
    "entry_of",
    "local_name",
    "unused",
    "up",
]


def local_name(pattern: str) -> str:
    """The name of a net or an instance in its scope.

    Examples
    --------
    >>> [local_name(name) for name in ("tx_{}", "router_at_{}", "m_axis_{}_tdata")]
    ['tx', 'router', 'm_axis_tdata']
    """
    return pattern.replace("_at_{}", "").replace("_{}", "")


@dataclass
class Tables:
    """Constants with an entry for each member of a scope; those that agree are one."""

    names: set[str]
    lines: list[str] = field(default_factory=list)
    known: list[tuple[str, int, IntArray, BoolArray]] = field(default_factory=list)

    def entry(
        self, name: str, size: int, at: IntArray, values: IntArray, bits: int = 0
    ) -> tuple[str, int]:
        """A table with the values at some members, and the bits of an entry."""
        bits = bits or address_width(int(values.max()) + 1)
        whole, there = np.zeros(size, np.int64), np.zeros(size, bool)
        whole[at], there[at] = values, True
        for other, width, known, defined in self.known:
            both = there & defined if len(known) == size else None
            if both is not None and width == bits and (known[both] == whole[both]).all():
                known[there], defined[there] = whole[there], True
                return other, bits
        self.known.append((unused(name.upper(), self.names), bits, whole, there))
        return self.known[-1][0], bits

    def text(self) -> Iterator[str]:
        """The declarations, once all is in them."""
        for name, bits, values, _ in self.known:
            yield from constant_of(name, bits * len(values), packed(values, bits))


def unused(name: str, names: set[str]) -> str:
    """A name that is not among those there are, which it joins."""
    found, number = name, 1
    while found in names:
        number += 1
        found = f"{name}_{number}"
    names.add(found)
    return found


def packed(values: IntArray, bits: int) -> int:
    """Entries of so many bits side by side, the first least significant."""
    every = (values[:, None] >> np.arange(bits) & 1).astype(np.uint8)
    return int.from_bytes(np.packbits(every.ravel(), bitorder="little").tobytes(), "little")


def constant_of(name: str, bits: int, value: int) -> list[str]:
    """A constant, on as many lines as it takes."""
    return [f"  localparam {range_of(bits)}{name} = {pieces(value, bits)};"]


def concatenated(texts: Sequence[str]) -> str:
    """Values side by side, the most significant first."""
    return texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"


def up(width: int) -> str:
    """Of an index, that it is the lowest of so many bits."""
    return f" +: {width}" if width > 1 else ""


def entry_of(table: str, bits: int) -> str:
    """The entry of a member."""
    return f"{table}[k]" if bits == 1 else f"{table}[{bits} * k +: {bits}]"


def bits_of(name: str, start: int, width: int, of: int) -> str:
    """Bits of a net of so many."""
    if width == of:
        return name
    return f"{name}[{start + width - 1}:{start}]" if width > 1 else f"{name}[{start}]"
