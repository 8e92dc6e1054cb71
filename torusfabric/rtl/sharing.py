"""What can be one: columns that may always be equal, and read ports that are never used at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..program.values import Reads
from ..topology import IntArray

__all__ = ["merge_columns", "sharing"]


def merge_columns(
    columns: Sequence[IntArray], skews: Sequence[int] | None = None
) -> tuple[list[IntArray], list[int]]:
    """Let columns that may always be equal be one.

    Parameters
    ----------
    columns : list of ndarray of int
        With -1 where a value does not matter.
    skews : sequence of int, optional
        Only columns of the same skew are made one.

    Returns
    -------
    merged : list of ndarray of int
        With 0 for what does not matter.
    index : list of int
        The number of each column among the merged ones.
    """
    merged: list[np.ndarray] = []
    index: list[int] = []
    first: list[int] = []  # a column that went into each merged one
    skews = skews or [0] * len(columns)
    for number, column in enumerate(columns):
        for k, other in enumerate(merged):
            if (
                skews[first[k]] == skews[number]
                and not ((column >= 0) & (other >= 0) & (column != other)).any()
            ):
                merged[k] = np.maximum(column, other)
                index.append(k)
                break
        else:
            index.append(len(merged))
            merged.append(column)
            first.append(number)
    return [np.maximum(column, 0) for column in merged], index


def sharing(
    readers: dict[int, Reads], memory: int, variants: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Which readers can share a read port of a memory, since they never read it at the same time.

    Parameters
    ----------
    readers : dict of int to Reads
        In a loop by rows, where a reader reads the words of its runs one after another.
    memory : int
    variants : sequence of int
        Of which no two readers may meet in any.

    Returns
    -------
    tuple of (tuple of int)
        Readers in groups; each group needs a copy of the memory of its own.
    """
    busy = {name: _spans(reads, memory, variants) for name, reads in readers.items()}
    groups: list[tuple[list[int], list[tuple[int, int, int, int]]]] = []
    for name, spans in sorted(busy.items()):
        for members, used in groups:
            if not _meet(used, spans):
                members.append(name)
                used += spans
                break
        else:
            groups.append(([name], list(spans)))
    return tuple(tuple(members) for members, _ in groups)


def _spans(reads: Reads, memory: int, variants: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """When a reader reads a memory: (variant, row, first cycle, end)."""
    spans = []
    for variant in variants:
        column = variant if reads.count.shape[1] > 1 else 0
        for row in np.nonzero(reads.count[:, column])[0].tolist():
            time = 0
            for run in reads.at(row, column):
                if run.memory == memory:
                    spans.append((variant, row, time, time + run.blocks))
                time += run.blocks
    return spans


def _meet(used: list[tuple[int, int, int, int]], spans: list[tuple[int, int, int, int]]) -> bool:
    """Whether any two spans overlap."""
    by_row: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for variant, row, first, end in used:
        by_row.setdefault((variant, row), []).append((first, end))
    return any(
        first < other_end and other < end
        for variant, row, first, end in spans
        for other, other_end in by_row.get((variant, row), ())
    )
