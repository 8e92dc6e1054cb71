"""The choice of forms for a mode, and of the form for each length: few and nearly the fastest.

Each form costs hardware, and each range of lengths costs a comparison. So a form is left out if
others are at most a few cycles slower at every length. A schedule can have two *versions*: forms of
the same schedule, of which one is faster for short messages. A form has a *grain*, the number of
flits by which messages must grow until a run takes more cycles.
"""

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

__all__ = ["TIE_SHARE", "TIE_CYCLES", "SLACK_CYCLES", "sample_lengths", "cover_lengths",
           "cycles_of_lengths", "choose_ranges", "dispensable_versions",
           "choose_forms"]  # fmt: skip

#: The longest length, in flits, up to which all lengths are compared; and the ratio of successive
#: lengths beyond.
ALL_LENGTHS, GROWTH = 1024, 1.01

#: The share of additional cycles up to which a form counts as equally fast, and the largest number
#: of such cycles.
TIE_SHARE, TIE_CYCLES = Fraction(3, 100), 6

#: Additional cycles, over the fastest form, that are accepted for fewer forms and fewer ranges.
SLACK_CYCLES = 3

#: The number of ranges that is always accepted. More are accepted if the last one begins within
#: `ALL_LENGTHS`.
ACCEPTED_RANGES = 16


def sample_lengths(most: int, step: int = 1) -> IntArray:
    """Return the lengths of messages, in flits, at which the cycles of forms are compared.

    Parameters
    ----------
    most : int
        Longest length, in flits.
    step : int
        Each form takes equal cycles for the lengths from ``k * step + 1`` to ``(k + 1) * step``, so
        that one of them is compared.

    Examples
    --------
    >>> sample_lengths(9, 4).tolist()
    [1, 5, 9]
    """
    lengths = np.arange(1, min(most, ALL_LENGTHS) + 1)
    if most > ALL_LENGTHS:
        count = int(np.log(most / ALL_LENGTHS) / np.log(GROWTH)) + 2
        lengths = np.append(lengths, np.geomspace(ALL_LENGTHS, most, count).astype(int))
    return np.unique((lengths - 1) // step * step + 1)


def cycles_of_lengths(form: Form, lengths: IntArray) -> IntArray:
    """Return the cycles of runs from the first slot on, for messages of some lengths.

    The cycles before the first slot are the same for all forms of a program.

    Examples
    --------
    A run takes 7 cycles for a message of one flit, and 14 for eight flits.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast", trees=1), max_flits=8)
    >>> cycles_of_lengths(program.form, np.array([1, 8])).tolist()
    [7, 14]
    """
    timing = form.timing
    pieces = timing.cycle_pieces(1)
    blocks = form.block_unit_flits * -(-lengths // form.grain_flits)
    at = np.searchsorted([piece.first for piece in pieces], blocks, "right") - 1
    constant, per_flit = (np.array(column)[at] for column in list(zip(*pieces, strict=True))[1:])
    cycles: IntArray = constant + per_flit * blocks - timing.run_setup
    return cycles


def choose_forms(cycles: Sequence[IntArray], luts: Sequence[int]) -> list[int]:
    """Choose the forms of a mode: as few as possible, and of these sets the cheapest.

    At each length of messages, a run chooses among the forms. Those that take at most 3 %, and at
    most 6 cycles, more than the fastest (`TIE_SHARE`, `TIE_CYCLES`) count as equally fast. Of
    these, the form with the fewest LUTs is the reference for this length. The choice has, for each
    length, a form that takes at most `SLACK_CYCLES` cycles more than the reference.

    Parameters
    ----------
    cycles : sequence of (ndarray of int, shape (lengths,))
        Cycles of each form at the compared lengths.
    luts : sequence of int
        LUTs of each form.

    Returns
    -------
    list of int
        Chosen forms, the one for the shortest messages first.

    Examples
    --------
    The first form takes more cycles for the longest messages, but less than 3 %.

    >>> choose_forms([np.array([21, 133, 261]), np.array([68, 131, 257])], [2304, 2432])
    [0]
    """
    table = np.stack(cycles)
    alike = table <= _acceptable_cycles(table)
    chosen = np.where(alike, np.array(luts)[:, None], np.inf).argmin(axis=0)
    taken = table[chosen, np.arange(table.shape[1])]
    return list(
        dict.fromkeys(form for _, form in cover_lengths(table <= taken + SLACK_CYCLES, luts))
    )


def dispensable_versions(versions: Sequence[Sequence[int]], cycles: Sequence[IntArray]) -> set[int]:
    """Return the numbers of the versions that a mode can do without; each schedule keeps one.

    Versions are programs of the same schedule, of which one is faster for short messages. A version
    is dispensable if, at every length, one of the remaining versions is nearly as fast as the
    fastest: it takes at most `SLACK_CYCLES` cycles more than the limit up to which `choose_forms`
    counts forms as equally fast.

    Parameters
    ----------
    versions : sequence of (sequence of int)
        Numbers of the versions of each schedule, the most expensive first, which is left out first.
    cycles : sequence of (ndarray of int, shape (lengths,))
        Cycles of each version at the compared lengths.

    Examples
    --------
    Version 0 takes 13 cycles for short messages. It is needed if version 1 takes 37, but not if it
    takes 16.

    >>> dispensable_versions([[0, 1]], [np.array([13, 80]), np.array([37, 73])])
    set()
    >>> dispensable_versions([[0, 1]], [np.array([13, 80]), np.array([16, 73])])
    {0}
    """
    table = np.stack(cycles)
    enough, found = _acceptable_cycles(table) + SLACK_CYCLES, set[int]()
    for of_schedule in versions:
        for number in of_schedule[:-1]:
            rest = [k for k in range(len(table)) if k not in found and k != number]
            if (table[rest].min(axis=0) <= enough).all():
                found.add(number)
    return found


def _acceptable_cycles(table: IntArray) -> np.ndarray:
    """Return, for each length, the most cycles that a form may take to count as one of the fastest.

    The array `table`, shape (forms, lengths), has the cycles of each form at each length.
    """
    fewest = table.min(axis=0)
    most: np.ndarray = fewest + np.minimum(float(TIE_SHARE) * fewest, TIE_CYCLES)
    return most


def choose_ranges(forms: Sequence[Form], most: int) -> tuple[Range, ...]:
    """Return ranges of lengths with the form for each: few ranges, each nearly as fast as possible.

    Parameters
    ----------
    forms : sequence of Form
        Forms to choose from. A range has the index of its form in this sequence.
    most : int
        Longest length, in flits.

    Examples
    --------
    Form 1, with one tree, serves messages of 1 to 9 flits, and form 0, with two trees, longer ones.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("9", "broadcast", trees=trees) for trees in (2, 1)]
    >>> ranges = choose_ranges([tf.compile(plan, max_flits=64).form for plan in plans], 64)
    >>> [tuple(each) for each in ranges]
    [(1, 1), (10, 0)]
    """
    lengths = sample_lengths(most, gcd(*(form.grain_flits for form in forms)))
    cycles = np.stack([cycles_of_lengths(form, lengths) for form in forms])
    best, slack = cycles.min(axis=0), SLACK_CYCLES
    while True:
        chosen = _start_earlier(
            cover_lengths(cycles <= best + slack, cycles.sum(axis=1).tolist()), cycles
        )
        if len(chosen) <= ACCEPTED_RANGES or int(lengths[chosen[-1][0]]) <= ALL_LENGTHS:
            return tuple(Range(int(lengths[first]), form) for first, form in chosen)
        slack *= 2


def _start_earlier(chosen: list[tuple[int, int]], cycles: IntArray) -> list[tuple[int, int]]:
    """Return the same ranges, of which each begins as early as is good for the number of cycles.

    A range is moved to begin with the first length from which on its form takes fewer cycles than
    the form of the range before.

    Parameters
    ----------
    chosen : list of (int, int)
        Index of the first length, and form, of each range.
    cycles : ndarray of int, shape (forms, lengths)
        Cycles of each form at the compared lengths.
    """
    found = chosen[:1]
    for first, form in chosen[1:]:
        start, before = found[-1]
        slower = np.flatnonzero(cycles[form, start:first] >= cycles[before, start:first])
        found.append((start + 1 + int(slower[-1]) if len(slower) else start, form))
    return found


def cover_lengths(near: BoolArray, price: Sequence[int]) -> list[tuple[int, int]]:
    """Divide all lengths into ranges, and choose a candidate that is good enough for each.

    A candidate is a form. The result has as few different candidates as possible. Of several such
    results, it is the one with the lowest sum of prices, and then the one with the fewest ranges.

    Parameters
    ----------
    near : ndarray of bool, shape (candidates, lengths)
        True where a candidate is good enough; at least one is at each length.
    price : sequence of int
        Price of each candidate, such as its LUTs.

    Returns
    -------
    list of (int, int)
        For each range, the index of its first length, and its candidate.

    Examples
    --------
    Candidate 0 serves lengths 0 and 1, and candidate 2 the others. Candidates 3, 1 and 2 would cost
    less, but they are three.

    >>> near = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 0]], bool)
    >>> cover_lengths(near, [5, 1, 1, 1])
    [(0, 0), (2, 2)]
    """
    candidates, count = near.shape
    # Dynamic programming from the last length back: `reach` is the end of the range that each
    # candidate can serve from a length on, and `rest` the best chain of ranges from a length on.
    reach = np.full(candidates, count)
    rest: list[_RangeChain] = [_RangeChain(0, 0, 0, ())] * (count + 1)
    for first in range(count - 1, -1, -1):
        reach = np.where(near[:, first], reach, first)
        rest[first] = min(
            rest[reach[k]].prepend_range(first, k, price[k])
            for k in range(candidates)
            if near[k, first]
        )
    return list(rest[0].ranges)


class _RangeChain(NamedTuple):
    """Successive ranges of lengths, each with the candidate (form) that serves it.

    The ranges reach from some length to the longest. Chains are compared by their fields in this
    order; the smallest is the best.

    Parameters
    ----------
    used : int
        Different candidates in the chain.
    price : int
        Sum of their prices.
    length : int
        Ranges in the chain.
    ranges : tuple of (int, int)
        First length and candidate of each range.
    """

    used: int
    price: int
    length: int
    ranges: tuple[tuple[int, int], ...]

    def prepend_range(self, first: int, form: int, price: int) -> _RangeChain:
        """Return the chain with one more range in front.

        The range begins at index `first`, and is served by candidate `form`. Its `price` is added
        if the candidate serves no other range of the chain.
        """
        new = all(form != other for _, other in self.ranges)
        return _RangeChain(
            self.used + new,
            self.price + new * price,
            self.length + 1,
            ((first, form), *self.ranges),
        )
