"""What differs between the members of generate loops: constants with an entry for each.

Of ROMs that are asked for the number of a node of a torus, those of a slice stand for all: what
lies at an offset from a node lies there at each. So the rows of a node are those of the node of the
first slice that has its other coordinates, moved around by as many as it is ahead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...rtl.memories import address_width
from ...topology import BoolArray, IntArray
from ..syntax import concatenated, range_of
from ..top import pieces

__all__ = ["WIDEST", "Tables", "Turns", "constant_of", "entry_of", "local_name", "unused", "up"]


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


def up(width: int) -> str:
    """Of an index, that it is the lowest of so many bits."""
    return f" +: {width}" if width > 1 else ""


def entry_of(table: str, bits: int) -> str:
    """The entry of a member."""
    return f"{table}[k]" if bits == 1 else f"{table}[{bits} * k +: {bits}]"


#: The widest rows that are compared as numbers of 64 bits.
WIDEST = 62


@dataclass(frozen=True)
class Turns:
    """How the rows of all nodes follow from those of the first ones.

    Parameters
    ----------
    step : int
        Node k has the rows of node k mod `step`, in which groups are moved around by k less that.
    starts : tuple of int
        The first rows of these groups, each of as many rows as there are nodes.
    """

    nodes: int
    step: int
    starts: tuple[int, ...]

    @classmethod
    def of(cls, rows: IntArray) -> Turns | None:
        """Those of ROMs, given the rows of each node, shape (nodes, rows); None if there are none.

        Examples
        --------
        Of three nodes, a group of as many rows that begin at the node, and one that is the same.

        >>> Turns.of(np.array([[5, 6, 7, 0, 9], [7, 5, 6, 0, 9], [6, 7, 5, 0, 9]]))
        Turns(nodes=3, step=1, starts=(0,))
        """
        every = np.arange(len(rows))
        for step in (step for step in every[1:].tolist() if len(rows) % step == 0):
            # Most numbers are none, which the first node that is moved shows.
            if cls._starts(rows, step, every[[step]]) is not None:
                starts = cls._starts(rows, step, every)
                if starts:
                    return cls(len(rows), step, starts)
        return None

    @staticmethod
    def _starts(rows: IntArray, step: int, members: IntArray) -> tuple[int, ...] | None:
        """The groups that are moved around in some nodes; None if that is not what differs."""
        nodes, depth = rows.shape
        at = (np.arange(nodes) - (members // step * step)[:, None]) % nodes
        still, starts = rows[members % step], list[int]()
        found = still.copy()
        for first in range(0, depth - nodes + 1, 1 << (nodes - 1).bit_length()):
            here = slice(first, first + nodes)
            if (rows[members, here] != still[:, here]).any():
                starts.append(first)
                found[:, here] = np.take_along_axis(still[:, here], at, axis=1)
        return tuple(starts) if (found == rows[members]).all() else None

    def text(self, name: str, rows: str, width: int, depth: int) -> Iterator[str]:
        """The declarations of what member k of a loop has, given what those of the first slice do.

        Parameters
        ----------
        name, rows : str
            Constants: of all that a member has, and of what those of the first slice do.
        width, depth : int
            Bits of a row, and how many there are.
        """
        bits, size = width * depth, width * self.nodes
        yield f"      localparam {name}_BITS = {width * self.step} * (k / {self.step});"
        yield (f"      localparam [{bits - 1}:0] {name}_STILL = "
               f"{rows}[{bits} * (k % {self.step}) +: {bits}];")  # fmt: skip
        parts, end = list[str](), 0
        for number, first in enumerate(self.starts):
            low, part = first * width, f"{name}_{number}"
            twice = f"{{2{{{name}_STILL[{low} +: {size}]}}}}"
            yield f"      localparam [{2 * size - 1}:0] {part} = {twice};"
            parts += [f"{name}_STILL[{low - 1}:{end}]"] * (low > end)
            parts.append(f"{part}[{size} - {name}_BITS +: {size}]")
            end = low + size
        parts += [f"{name}_STILL[{bits - 1}:{end}]"] * (bits > end)
        yield f"      localparam [{bits - 1}:0] {name} = {concatenated(parts[::-1])};"
