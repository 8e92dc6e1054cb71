"""Bits that are known, that stand for a word of a message, or of which nothing is known.

A bit is a number: 0 and 1 are themselves, an even number from 2 on is the bit of a *word*, whatever
it is, the odd number after it is its opposite, and `UNKNOWN` may be anything. What gates make of
them holds for all values of words and of what is not known: where that leaves no single answer, the
answer is `UNKNOWN`.
"""

from __future__ import annotations

import numpy as np

from ..topology import IntArray

__all__ = ["STANDS", "UNKNOWN", "both", "either", "joined", "multiplexed", "named", "negated",
           "number_of", "one_word", "parity", "word"]  # fmt: skip

#: A bit of which nothing is known.
UNKNOWN = -1

#: Words from this number on are none of any message.
STANDS = 1 << 24


def word(number: IntArray) -> IntArray:
    """The bits that stand for words, given their numbers."""
    return 2 * number + 2


def negated(a: IntArray) -> IntArray:
    """The opposite.

    Examples
    --------
    >>> negated(np.array([0, 1, 6, -1])).tolist()
    [1, 0, 7, -1]
    """
    found: IntArray = np.maximum(a ^ 1, UNKNOWN)
    return found


def both(a: IntArray, b: IntArray) -> IntArray:
    """The conjunction.

    Examples
    --------
    >>> both(np.array([0, 1, 6, 6, 6]), np.array([-1, 6, 6, 8, -1])).tolist()
    [0, 6, 6, -1, -1]
    """
    return _ended_by(0, a, b)


def either(a: IntArray, b: IntArray) -> IntArray:
    """The disjunction."""
    return _ended_by(1, a, b)


def _ended_by(end: int, a: IntArray, b: IntArray) -> IntArray:
    """What is `end` if either is, and as the other where one is not."""
    found = np.where(a == 1 - end, b, a)
    open_ = a >> 1 != 0
    if open_.any():
        x, y = a[open_], b[open_]
        same = (y == 1 - end) | (x == y)
        found[open_] = np.where(y == end, end, np.where(same, x, UNKNOWN))
    return found


def parity(a: IntArray, b: IntArray) -> IntArray:
    """Whether two bits differ.

    Examples
    --------
    >>> parity(np.array([0, 1, 1, 6, 6, -1]), np.array([6, 6, 0, 6, 8, 0])).tolist()
    [6, 7, 1, 0, -1, -1]
    """
    found: IntArray = a ^ b
    open_ = (a | b) >> 1 != 0
    if open_.any():
        x, y = a[open_], b[open_]
        known = np.where(y == 0, x, np.where(y == 1, negated(x), UNKNOWN))
        known = np.where(x == 0, y, np.where(x == 1, negated(y), known))
        found[open_] = np.where((x == y) & (x > 1), 0, known)
    return found


def multiplexed(s: IntArray, a: IntArray, b: IntArray) -> IntArray:
    """Where s is 1, b, else a.

    Examples
    --------
    >>> a, b = np.array([4, 4, 4, 4]), np.array([6, 6, 6, 4])
    >>> multiplexed(np.array([0, 1, -1, -1]), a, b).tolist()
    [4, 6, -1, 4]
    """
    found = np.where(s == 1, b, a)
    open_ = s >> 1 != 0
    if open_.any():
        found[open_ & (a != b)] = UNKNOWN
    return found


def joined(a: IntArray, b: IntArray) -> IntArray:
    """What is known if either may be the case; of words nothing is."""
    return np.where((a == b) & (a <= 1), a, UNKNOWN)


def one_word(bits: IntArray) -> IntArray:
    """The words of which these are bits, along the first axis: a bit stands for its word.

    Examples
    --------
    >>> one_word(np.array([[4, 4], [4, 6]])).tolist()
    [4, -1]
    """
    return np.where((bits == bits[0]).all(axis=0), bits[0], UNKNOWN)


def number_of(bits: IntArray) -> IntArray:
    """Numbers, given their bits along the first axis; -1 where not all of them are known.

    Examples
    --------
    >>> number_of(np.array([[1, 0, 1], [0, 1, -1]])).tolist()
    [1, 2, -1]
    """
    number = np.tensordot(1 << np.arange(len(bits)), bits, 1)
    return np.where((bits >> 1 == 0).all(axis=0), number, -1)


def named(bit: int) -> str:
    """A bit in words.

    Examples
    --------
    >>> named(1), named(8), named(-1)
    ('1', 'word 3', 'unknown')
    """
    if bit == UNKNOWN:
        return "unknown"
    return str(bit) if bit < 2 else f"word {(bit - 2) // 2}" + " inverted" * (bit % 2)
