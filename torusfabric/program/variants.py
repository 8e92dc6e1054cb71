"""Variants: nodes that do the same."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from ..topology import IntArray

__all__ = ["classify", "number_equal"]


def classify(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Number equal rows, in the order of their first appearance.

    Parameters
    ----------
    rows : ndarray of int, shape (nodes, n)

    Returns
    -------
    number : ndarray of int32, shape (nodes,)
        The number of each row.
    first : ndarray of int, shape (numbers,)
        The first row of each number.

    Examples
    --------
    >>> number, first = classify(np.array([[5, 1], [2, 2], [5, 1]]))
    >>> number.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()].astype(np.int32), first[order]


def number_equal(values: Iterable[Hashable]) -> tuple[IntArray, list[int]]:
    """As `classify`, of any values that can be compared."""
    known: dict[Hashable, int] = {}
    first: list[int] = []
    numbers = []
    for index, value in enumerate(values):
        number = known.setdefault(value, len(known))
        if number == len(first):
            first.append(index)
        numbers.append(number)
    return np.array(numbers, np.int32), first
