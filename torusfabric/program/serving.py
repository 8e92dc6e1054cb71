"""Which forms a mode has, and which serves for which lengths: few, and nearly the quickest."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..topology import BoolArray, IntArray
from .mode import Range

if TYPE_CHECKING:
    from .mode import Form

__all__ = [
    "CYCLES_ALIKE",
    "MOST_ALIKE",
    "SLACK",
    "compared_lengths",
    "cover",
    "cycles_at",
    "ranges_of",
    "spared",
    "worth_having",
]

#: Up to so many flits all lengths are compared; beyond, each is so much longer than the one before.
ALL_LENGTHS, GROWTH = 1024, 1.01

#: What takes no more than so much more cycles is as quick; in an engine, where that is no more than
#: so many.
CYCLES_ALIKE, MOST_ALIKE = Fraction(3, 100), 6

#: Cycles more than by the quickest form that are taken for fewer forms, which cost hardware, and
#: fewer ranges.
SLACK = 3

#: So many ranges there may be of any lengths; more only if the last one begins early.
FEW_RANGES = 16


def compared_lengths(most: int, step: int = 1) -> IntArray:
    """The lengths at which cycles are compared, up to the most flits of a message.

    Parameters
    ----------
    step : int
        What all chunks are a multiple of: as many lengths in turn take the same cycles.

    Examples
    --------
    >>> compared_lengths(9, 4).tolist()
    [1, 5, 9]
    """
    lengths = np.arange(1, min(most, ALL_LENGTHS) + 1)
    if most > ALL_LENGTHS:
        count = int(np.log(most / ALL_LENGTHS) / np.log(GROWTH)) + 2
        lengths = np.append(lengths, np.geomspace(ALL_LENGTHS, most, count).astype(int))
    return np.unique((lengths - 1) // step * step + 1)


def cycles_at(form: Form, lengths: IntArray) -> IntArray:
    """The cycles of runs with messages of some lengths, from the first slot on.

    What comes before it is the same for all forms of a program.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast", trees=1), max_flits=8)
    >>> cycles_at(program.form, np.array([1, 8])).tolist()
    [7, 14]
    """
    timing = form.timing
    pieces = timing.pieces(1)
    blocks = form.unit * -(-lengths // form.grain)
    at = np.searchsorted([piece.first for piece in pieces], blocks, "right") - 1
    constant, per_flit = (np.array(column)[at] for column in list(zip(*pieces, strict=True))[1:])
    cycles: IntArray = constant + per_flit * blocks - timing.run_setup
    return cycles


def worth_having(cycles: Sequence[IntArray], luts: Sequence[int]) -> list[int]:
    """Which of several forms a mode has: as few as can be, of these the cheapest.

    Each length has one that takes hardly more cycles than the cheapest of those that are as quick
    as the quickest there.

    Parameters
    ----------
    cycles : sequence of (ndarray of int, shape (lengths,))
        Of each form at the lengths that are compared.
    luts : sequence of int
        What each costs.

    Returns
    -------
    list of int
        The one for the shortest messages first.

    Examples
    --------
    The first takes more cycles for the longest messages, but not by 3 %.

    >>> worth_having([np.array([21, 133, 261]), np.array([68, 131, 257])], [2304, 2432])
    [0]
    """
    table = np.stack(cycles)
    alike = table <= _as_quick(table)
    chosen = np.where(alike, np.array(luts)[:, None], np.inf).argmin(axis=0)
    taken = table[chosen, np.arange(table.shape[1])]
    return list(dict.fromkeys(form for _, form in cover(table <= taken + SLACK, luts)))


def spared(versions: Sequence[Sequence[int]], cycles: Sequence[IntArray]) -> set[int]:
    """Which versions of schedules a mode can do without; each schedule keeps one or more.

    Parameters
    ----------
    versions : sequence of (sequence of int)
        Those of each schedule, the one to be spared first first, by number.
    cycles : sequence of (ndarray of int, shape (lengths,))
        Of each version at the lengths that are compared.

    Examples
    --------
    >>> spared([[0, 1]], [np.array([13, 80]), np.array([37, 73])])
    set()
    >>> spared([[0, 1]], [np.array([13, 80]), np.array([16, 73])])
    {0}
    """
    table = np.stack(cycles)
    enough, found = _as_quick(table) + SLACK, set[int]()
    for of_schedule in versions:
        for number in of_schedule[:-1]:
            rest = [k for k in range(len(table)) if k not in found and k != number]
            if (table[rest].min(axis=0) <= enough).all():
                found.add(number)
    return found


def _as_quick(table: IntArray) -> np.ndarray:
    """The most cycles at each length that are as good as the fewest."""
    fewest = table.min(axis=0)
    most: np.ndarray = fewest + np.minimum(float(CYCLES_ALIKE) * fewest, MOST_ALIKE)
    return most


def ranges_of(forms: Sequence[Form], most: int) -> tuple[Range, ...]:
    """Which of some forms serves for which lengths: few ranges, each nearly as quick as can be.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("9", "broadcast", trees=trees) for trees in (2, 1)]
    >>> ranges = ranges_of([tf.compile(plan, max_flits=64).form for plan in plans], 64)
    >>> [tuple(each) for each in ranges]
    [(1, 1), (10, 0)]
    """
    lengths = compared_lengths(most, gcd(*(form.grain for form in forms)))
    cycles = np.stack([cycles_at(form, lengths) for form in forms])
    best, slack = cycles.min(axis=0), SLACK
    while True:
        chosen = _earlier(cover(cycles <= best + slack, cycles.sum(axis=1).tolist()), cycles)
        if len(chosen) <= FEW_RANGES or int(lengths[chosen[-1][0]]) <= ALL_LENGTHS:
            return tuple(Range(int(lengths[first]), form) for first, form in chosen)
        slack *= 2


def _earlier(chosen: list[tuple[int, int]], cycles: IntArray) -> list[tuple[int, int]]:
    """The same ranges, beginning as soon as what serves in them takes fewer cycles."""
    found = chosen[:1]
    for first, form in chosen[1:]:
        start, before = found[-1]
        slower = np.flatnonzero(cycles[form, start:first] >= cycles[before, start:first])
        found.append((start + 1 + int(slower[-1]) if len(slower) else start, form))
    return found


def cover(near: BoolArray, price: Sequence[int]) -> list[tuple[int, int]]:
    """Which of several serve one after another where each is good enough.

    As few as can be, of these the cheapest, and then in as few ranges as can be.

    Parameters
    ----------
    near : ndarray of bool, shape (candidates, lengths)
        Where each is good enough; some candidate is for each length.

    Returns
    -------
    list of (int, int)
        The index of the first length of a range, and what serves in it.

    Examples
    --------
    >>> near = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 0]], bool)
    >>> cover(near, [5, 1, 1, 1])
    [(0, 0), (2, 2)]
    """
    candidates, count = near.shape
    # How far each reaches from a length, and what serves from there on at the least price.
    reach = np.full(candidates, count)
    rest: list[_Chain] = [_Chain(0, 0, 0, ())] * (count + 1)
    for first in range(count - 1, -1, -1):
        reach = np.where(near[:, first], reach, first)
        rest[first] = min(
            rest[reach[k]].after(first, k, price[k]) for k in range(candidates) if near[k, first]
        )
    return list(rest[0].ranges)


class _Chain(NamedTuple):
    """What serves from some length on: how many, at what price, in how many ranges, and which."""

    used: int
    price: int
    length: int
    ranges: tuple[tuple[int, int], ...]

    def after(self, first: int, form: int, price: int) -> _Chain:
        """The same after another range; who serves twice is paid once."""
        new = all(form != other for _, other in self.ranges)
        return _Chain(
            self.used + new,
            self.price + new * price,
            self.length + 1,
            ((first, form), *self.ranges),
        )
