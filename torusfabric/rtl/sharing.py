"""What can be one: columns that may always be equal, and read ports that are never used at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..program.fields import Order
from ..topology import BoolArray, IntArray

__all__ = ["merge_columns", "sharing"]


#: Cycles from a slot to what follows from it, in each loop; None where nobody looks.
Delays = tuple[int | None, ...]


def merge_columns(
    columns: Sequence[IntArray], delays: Sequence[Delays] | None = None
) -> tuple[list[IntArray], list[int]]:
    """Let columns that may always be equal be one.

    Parameters
    ----------
    columns : list of ndarray of int
        With -1 where a value does not matter.
    delays : sequence of Delays, optional
        Only columns of the same delays are made one.

    Returns
    -------
    merged : list of ndarray of int
        With 0 for what does not matter.
    index : list of int
        The number of each column among the merged ones.
    """
    merged: list[np.ndarray] = []
    index: list[int] = []
    known: list[Delays] = []
    for column, delay in zip(columns, delays or [()] * len(columns), strict=True):
        for k, other in enumerate(merged):
            both = _both(known[k], delay)
            if both is not None and not ((column >= 0) & (other >= 0) & (column != other)).any():
                merged[k], known[k] = np.maximum(column, other), both
                index.append(k)
                break
        else:
            index.append(len(merged))
            merged.append(column)
            known.append(delay)
    return [np.maximum(column, 0) for column in merged], index


def _both(a: Delays, b: Delays) -> Delays | None:
    """The delays that serve two columns, or None."""
    if any(x != y for x, y in zip(a, b, strict=True) if x is not None and y is not None):
        return None
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def sharing(
    reading: Mapping[int, Sequence[BoolArray]], orders: Sequence[Order]
) -> tuple[tuple[int, ...], ...]:
    """Which readers can share a read port of a memory, since they never read it at the same time.

    Parameters
    ----------
    reading : dict of int to (sequence of ndarray of bool, shape (rows, variants))
        When each reads it, in each loop.
    orders : sequence of Order
        Of the loops. In a loop by flits any two readers may meet.

    Returns
    -------
    tuple of (tuple of int)
        Readers in groups; each group needs a copy of the memory of its own.

    Examples
    --------
    >>> sharing({0: [np.array([[1, 0]])], 1: [np.array([[1, 1]])], 2: [np.array([[0, 1]])]},
    ...         [Order.ROW])
    ((0, 2), (1,))
    """
    groups: list[tuple[list[int], list[BoolArray]]] = []
    for name, mine in sorted(reading.items()):
        mine = [
            there if order is Order.ROW else np.full_like(there, there.any())
            for there, order in zip(mine, orders, strict=True)
        ]
        for members, used in groups:
            if not any((a & b).any() for a, b in zip(used, mine, strict=True)):
                members.append(name)
                used[:] = [a | b for a, b in zip(used, mine, strict=True)]
                break
        else:
            groups.append(([name], mine))
    return tuple(tuple(members) for members, _ in groups)
