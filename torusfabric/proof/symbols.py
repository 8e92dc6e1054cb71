"""Symbolic bits, and gates on them.

A symbolic bit is one integer of an array:

=========  =====================================================
value      meaning
=========  =====================================================
0, 1       the constant
2 n + 2    the bit of word n, for all values of that word
2 n + 3    the inverse of that bit
-1         `UNKNOWN`: 0 or 1, independently of all other bits
=========  =====================================================

A gate returns a bit that holds for all values of words and of unknown bits. If no constant and no
single word describes the result, the gate returns `UNKNOWN`.
"""

from __future__ import annotations

import numpy as np

from ..topology import IntArray

__all__ = ["FIRST_REGISTER_WORD", "UNKNOWN", "and_bits", "or_bits", "merge_bits", "mux_bits",
           "bit_text", "invert_bits", "number_of_bits", "bit_of_word", "xor_bits",
           "word_bits"]  # fmt: skip

#: A bit that may be 0 or 1.
UNKNOWN = -1

#: Word numbers from here on stand for register values, and belong to no message.
FIRST_REGISTER_WORD = 1 << 24


def word_bits(number: IntArray) -> IntArray:
    """Return the symbolic bits that stand for words, given the word numbers.

    Examples
    --------
    >>> word_bits(np.array([0, 3])).tolist()
    [2, 8]
    """
    return 2 * number + 2


def invert_bits(a: IntArray) -> IntArray:
    """Return NOT a.

    Examples
    --------
    >>> invert_bits(np.array([0, 1, 6, -1])).tolist()
    [1, 0, 7, -1]
    """
    found: IntArray = np.maximum(a ^ 1, UNKNOWN)
    return found


def and_bits(a: IntArray, b: IntArray) -> IntArray:
    """Return a AND b.

    Examples
    --------
    >>> and_bits(np.array([0, 1, 6, 6, 6]), np.array([-1, 6, 6, 8, -1])).tolist()
    [0, 6, 6, -1, -1]
    """
    return _dominated_by(0, a, b)


def or_bits(a: IntArray, b: IntArray) -> IntArray:
    """Return a OR b."""
    return _dominated_by(1, a, b)


def _dominated_by(end: int, a: IntArray, b: IntArray) -> IntArray:
    """Return a AND b if `end` is 0, and a OR b if `end` is 1.

    `end` is the constant that decides the result, regardless of the other operand.
    """
    found = np.where(a == 1 - end, b, a)
    open_ = a >> 1 != 0
    if open_.any():
        x, y = a[open_], b[open_]
        same = (y == 1 - end) | (x == y)
        found[open_] = np.where(y == end, end, np.where(same, x, UNKNOWN))
    return found


def xor_bits(a: IntArray, b: IntArray) -> IntArray:
    """Return a XOR b.

    Examples
    --------
    >>> xor_bits(np.array([0, 1, 1, 6, 6, -1]), np.array([6, 6, 0, 6, 8, 0])).tolist()
    [6, 7, 1, 0, -1, -1]
    """
    found: IntArray = a ^ b
    open_ = (a | b) >> 1 != 0
    if open_.any():
        x, y = a[open_], b[open_]
        known = np.where(y == 0, x, np.where(y == 1, invert_bits(x), UNKNOWN))
        known = np.where(x == 0, y, np.where(x == 1, invert_bits(y), known))
        found[open_] = np.where((x == y) & (x > 1), 0, known)
    return found


def mux_bits(s: IntArray, a: IntArray, b: IntArray) -> IntArray:
    """Return b if s is 1, otherwise a.

    Examples
    --------
    >>> a, b = np.array([4, 4, 4, 4]), np.array([6, 6, 6, 4])
    >>> mux_bits(np.array([0, 1, -1, -1]), a, b).tolist()
    [4, 6, -1, 4]
    """
    found = np.where(s == 1, b, a)
    open_ = s >> 1 != 0
    if open_.any():
        found[open_ & (a != b)] = UNKNOWN
    return found


def merge_bits(a: IntArray, b: IntArray) -> IntArray:
    """Return, for each pair of bits, the constant if both are the same constant, else `UNKNOWN`.

    Equal bits of words become unknown, too.
    """
    return np.where((a == b) & (a <= 1), a, UNKNOWN)


def bit_of_word(bits: IntArray) -> IntArray:
    """Return the bit that represents a word, given several of its bits along the first axis.

    The result is `UNKNOWN` if the bits belong to different words.

    Examples
    --------
    >>> bit_of_word(np.array([[4, 4], [4, 6]])).tolist()
    [4, -1]
    """
    return np.where((bits == bits[0]).all(axis=0), bits[0], UNKNOWN)


def number_of_bits(bits: IntArray) -> IntArray:
    """Return numbers, given their bits along the first axis; -1 if a bit is no constant.

    Examples
    --------
    >>> number_of_bits(np.array([[1, 0, 1], [0, 1, -1]])).tolist()
    [1, 2, -1]
    """
    number = np.tensordot(1 << np.arange(len(bits)), bits, 1)
    return np.where((bits >> 1 == 0).all(axis=0), number, -1)


def bit_text(bit: int) -> str:
    """Return a symbolic bit as text, for messages.

    Examples
    --------
    >>> bit_text(1), bit_text(8), bit_text(-1)
    ('1', 'word 3', 'unknown')
    """
    if bit == UNKNOWN:
        return "unknown"
    return str(bit) if bit < 2 else f"word {(bit - 2) // 2}" + " inverted" * (bit % 2)
