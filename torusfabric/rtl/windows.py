"""Windows: how long messages are in each row, for nodes whose messages differ.

Window k of a row is its k-th longest message. The sequencer signals to all nodes, cycle by cycle,
whether a flit within a window is read, and how many cycles ago one was: a *phase*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..program.values import Loop, Order
from .loops import Loops

__all__ = ["Windows"]


@dataclass(frozen=True)
class Windows:
    """The lengths of messages.

    Parameters
    ----------
    lengths : tuple of (tuple of int)
        Of each row, the different lengths in blocks, the longest first.
    reach : int
        The longest path of all rows, in hops.
    skip_bits : int
        Where the flits of a block are known no earlier than at the start of a run: bits of the
        distance from the last address of a block to the first of the next. Else 0.

    Examples
    --------
    >>> windows = Windows(lengths=((4, 2), (4,)), reach=3)
    >>> windows.count, windows.number(0, 2), windows.column(1)
    (2, 1, [2, 0])
    """

    lengths: tuple[tuple[int, ...], ...]
    reach: int
    skip_bits: int = 0

    @classmethod
    def of(cls, loops: Loops, *, any_length: bool = False) -> Windows:
        """The windows of all loops; none in those by flits."""
        reach, lengths, skip_bits = 0, [], 0
        for loop in loops.loops:
            hops = (int(writes.hops.max(initial=0)) for writes in loop.writes)
            reach = max(reach, *hops)
            lengths += _lengths(loop)
            if any_length and loop.order is Order.ROW:
                skip_bits = max(skip_bits, loop.flits.bit_length())
        return cls(tuple(lengths), reach, skip_bits)

    @property
    def phases(self) -> int:
        """Phases of a window: from the read of a flit to the write after the last hop."""
        return self.reach + 2

    @property
    def count(self) -> int:
        """The most windows of a row."""
        return max(map(len, self.lengths))

    @property
    def chains(self) -> int:
        """Windows, and one more for the ends of blocks where these are not fixed."""
        return self.count + (self.skip_bits > 0)

    def number(self, row: int, length: int) -> int:
        """The window of a length in a row."""
        return self.lengths[row].index(length)

    def column(self, number: int) -> list[int]:
        """The length of a window in every row, 0 where a row has none."""
        return [row[number] if number < len(row) else 0 for row in self.lengths]


def _lengths(loop: Loop) -> list[tuple[int, ...]]:
    """The different lengths of messages in each row, the longest first."""
    if loop.order is Order.FLIT:
        return [()] * loop.rows
    found: list[set[int]] = [set() for _ in range(loop.rows)]
    for writes in loop.writes:
        stored = np.where(writes.base >= 0, writes.blocks, 0)
        for row, lengths in enumerate(stored):
            found[row] |= set(np.unique(lengths).tolist()) - {0}
    for reads in loop.reads:
        for row in range(loop.rows):
            variants = range(reads.count.shape[1])
            found[row] |= {reads.total(row, variant) for variant in variants} - {0}
    return [tuple(sorted(lengths, reverse=True)) for lengths in found]
