"""What can be one: columns that may always be equal, and read ports that are never used at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..program.values import Order, Reads
from ..topology import IntArray

__all__ = ["merge_columns", "sharing"]


#: When a reader reads a memory: (variant, row, first cycle, end).
Span = tuple[int, int, int, int]

#: By how many cycles something is later than others, in each loop; None where that does not matter.
Skews = tuple[int | None, ...]


def merge_columns(
    columns: Sequence[IntArray], skews: Sequence[Skews] | None = None
) -> tuple[list[IntArray], list[int]]:
    """Let columns that may always be equal be one.

    Parameters
    ----------
    columns : list of ndarray of int
        With -1 where a value does not matter.
    skews : sequence of Skews, optional
        Only columns of the same skews are made one.

    Returns
    -------
    merged : list of ndarray of int
        With 0 for what does not matter.
    index : list of int
        The number of each column among the merged ones.
    """
    merged: list[np.ndarray] = []
    index: list[int] = []
    known: list[Skews] = []
    for column, skew in zip(columns, skews or [()] * len(columns), strict=True):
        for k, other in enumerate(merged):
            both = _both(known[k], skew)
            if both is not None and not ((column >= 0) & (other >= 0) & (column != other)).any():
                merged[k], known[k] = np.maximum(column, other), both
                index.append(k)
                break
        else:
            index.append(len(merged))
            merged.append(column)
            known.append(skew)
    return [np.maximum(column, 0) for column in merged], index


def _both(a: Skews, b: Skews) -> Skews | None:
    """The skews that serve two columns, or None."""
    if any(x != y for x, y in zip(a, b, strict=True) if x is not None and y is not None):
        return None
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def sharing(
    readers: dict[int, tuple[Reads, ...]],
    memory: int,
    orders: Sequence[Order],
    variants: Sequence[int],
) -> tuple[tuple[int, ...], ...]:
    """Which readers can share a read port of a memory, since they never read it at the same time.

    Parameters
    ----------
    readers : dict of int to (tuple of Reads)
        What each reads in each loop.
    memory : int
    orders : sequence of Order
        Of the loops. In a loop by rows, a reader reads the words of its runs one after another; in
        a loop by flits any two readers may meet.
    variants : sequence of int
        Of which no two readers may meet in any.

    Returns
    -------
    tuple of (tuple of int)
        Readers in groups; each group needs a copy of the memory of its own.
    """
    busy = {
        name: [
            _spans(reads, memory, variants, whole=order is Order.FLIT)
            for reads, order in zip(loops, orders, strict=True)
        ]
        for name, loops in readers.items()
    }
    groups: list[tuple[list[int], list[list[Span]]]] = []
    for name, spans in sorted(busy.items()):
        for members, used in groups:
            if not any(_meet(*pair) for pair in zip(used, spans, strict=True)):
                members.append(name)
                for mine, new in zip(used, spans, strict=True):
                    mine += new
                break
        else:
            groups.append(([name], [list(of_loop) for of_loop in spans]))
    return tuple(tuple(members) for members, _ in groups)


def _spans(reads: Reads, memory: int, variants: Sequence[int], *, whole: bool) -> list[Span]:
    """When a reader reads a memory; the whole loop if it does so at all and that is asked for."""
    spans: list[Span] = []
    for variant in variants:
        column = variant if reads.count.shape[1] > 1 else 0
        for row in np.nonzero(reads.count[:, column])[0].tolist():
            time = 0
            for run in reads.at(row, column):
                if run.memory == memory and whole:
                    return [(0, 0, 0, 1)]
                if run.memory == memory:
                    spans.append((variant, row, time, time + run.blocks))
                time += run.blocks
    return spans


def _meet(used: list[Span], spans: list[Span]) -> bool:
    """Whether any two spans overlap."""
    by_row: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for variant, row, first, end in used:
        by_row.setdefault((variant, row), []).append((first, end))
    return any(
        first < other_end and other < end
        for variant, row, first, end in spans
        for other, other_end in by_row.get((variant, row), ())
    )
