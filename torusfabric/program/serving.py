"""Which form of a mode serves for which lengths of messages: that with the fewest cycles."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray

if TYPE_CHECKING:
    from .form import Form

__all__ = ["compared_lengths", "cycles_at", "in_order", "starts_of"]

#: Up to so many flits all lengths are compared; beyond, each is so much longer than the one before.
ALL_LENGTHS, GROWTH = 1024, 1.01


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
    blocks = -(-lengths // form.schedule.chunks)
    at = np.searchsorted([piece.first for piece in pieces], blocks, "right") - 1
    constant, per_flit = (np.array(column)[at] for column in list(zip(*pieces, strict=True))[1:])
    cycles: IntArray = constant + per_flit * blocks - timing.wait
    return cycles


def in_order(forms: Sequence[Form], most: int) -> list[int]:
    """The numbers of the forms that serve at all, that for the shortest messages first.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", "broadcast", trees=trees) for trees in (4, 1)]
    >>> in_order([tf.compile(plan, max_flits=64).form for plan in plans], 64)
    [1, 0]
    """
    lengths = _lengths(forms, most)
    cycles = np.stack([cycles_at(form, lengths) for form in forms])
    # Who serves for longer messages takes fewer cycles for the longest ones.
    order = sorted(range(len(forms)), key=lambda form: -cycles[form, -1])
    first = _first_of_each(cycles[order])
    ends = [*first[1:], len(lengths)]
    return [form for form, start, end in zip(order, first, ends, strict=True) if start < end]


def starts_of(forms: Sequence[Form], most: int) -> tuple[int, ...]:
    """The least flits for which each of some forms serves, in the order of `in_order`."""
    lengths = _lengths(forms, most)
    cycles = np.stack([cycles_at(form, lengths) for form in forms])
    last = len(lengths) - 1
    return (1, *(int(lengths[min(k, last)]) for k in _first_of_each(cycles)[1:]))


def _lengths(forms: Sequence[Form], most: int) -> IntArray:
    """The lengths at which forms are compared."""
    return compared_lengths(most, gcd(*(form.schedule.chunks for form in forms)))


def _first_of_each(cycles: IntArray) -> list[int]:
    """The first length for which each form serves, so that the sum of all cycles is the least.

    Those for which a form serves follow one another, and end where those of the next begin; it may
    be none.
    """
    sums = np.pad(np.cumsum(cycles, axis=1), [(0, 0), (1, 0)])
    # The least sum up to each length, and there the first one of the last form.
    best, firsts = sums[0], []
    for of_form in sums[1:]:
        change = best - of_form
        least = np.minimum.accumulate(change)
        firsts.append(np.maximum.accumulate(np.where(change == least, np.arange(len(change)), 0)))
        best = of_form + least
    found, end = [], cycles.shape[1]
    for first in reversed(firsts):
        end = int(first[end])
        found.append(end)
    return [0, *reversed(found)]
