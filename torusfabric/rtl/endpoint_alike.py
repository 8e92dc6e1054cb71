"""Which variants of nodes are wired alike, found for all of them at once: rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..program.fields import IDLE
from ..topology import IntArray
from .endpoint_points import Points, Reading

__all__ = ["Read", "different", "firsts", "ranks", "taken"]


@dataclass(frozen=True, eq=False)
class Read:
    """What variants read.

    Parameters
    ----------
    reader, reading : ndarray of int, shape (variants, readers of a variant)
        The numbers of readers, and of what they do; -1 behind the last.
    values : list of Reading
    """

    reader: IntArray
    reading: IntArray
    values: list[Reading]

    @classmethod
    def of(cls, points: Points, order: IntArray) -> Read:
        """Those of points, in an order of readers."""
        values: dict[Reading, int] = {}
        found: list[tuple[IntArray, IntArray, IntArray]] = []
        for number, (variants, readings) in enumerate(points.readings()):
            known = [values.setdefault(each, len(values)) for each in readings]
            found.append((variants, np.full(len(variants), number), np.array(known, int)))
        variant, reader, reading = (np.concatenate(each) for each in zip(*found, strict=True))
        by = np.lexsort((order[reader], variant))
        counts = np.bincount(variant, minlength=points.loops.variants)
        slot = np.arange(len(by)) - np.repeat(np.cumsum(counts) - counts, counts)
        readers = np.full((points.loops.variants, int(counts.max(initial=0))), IDLE)
        what = readers.copy()
        readers[variant[by], slot], what[variant[by], slot] = reader[by], reading[by]
        return cls(readers, what, [*values])

    def at(self, variant: int) -> dict[int, Reading]:
        """What a variant reads, by the numbers of its readers."""
        return {reader: self.values[what] for reader, what in
                zip(self.reader[variant].tolist(), self.reading[variant].tolist(), strict=True)
                if reader >= 0}  # fmt: skip


def different(values: IntArray) -> IntArray:
    """The different numbers of each row, sorted, with -1 behind them.

    Examples
    --------
    >>> different(np.array([[3, 1, 3], [-1, 2, 2]]))
    array([[ 1,  3],
           [ 2, -1]])
    """
    ordered = np.sort(values, axis=1)
    keep = ordered >= 0
    keep[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    slot = np.cumsum(keep, axis=1) - 1
    found = np.full((len(values), int(keep.sum(axis=1).max(initial=0))), IDLE)
    rows, columns = np.nonzero(keep)
    found[rows, slot[rows, columns]] = ordered[rows, columns]
    return found


def ranks(values: IntArray, known: IntArray) -> IntArray:
    """Which of the known numbers of its row each is; -1 for nothing."""
    below = (known[:, None, :] < values[:, :, None]) & (known[:, None, :] >= 0)
    return np.where(values >= 0, below.sum(axis=2), IDLE)


def firsts(values: IntArray) -> IntArray:
    """Where in its row each number comes first; -1 for nothing."""
    if not values.size:
        return values
    return np.where(values >= 0, (values[:, :, None] == values[:, None, :]).argmax(axis=2), IDLE)


def taken(values: IntArray, row: int, wanted: Sequence[int]) -> IntArray:
    """The columns in which a row has some numbers."""
    known = values[row].tolist()
    return values[:, [known.index(number) for number in wanted]]
