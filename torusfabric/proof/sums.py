"""Sums of words: all operators are commutative and associative.

So a sum is known by which words went into it, and how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..topology import IntArray
from .symbols import STANDS, UNKNOWN

__all__ = ["Sums"]

#: The bit of the word that changes nothing; it has the number of no other word.
NEUTRAL = 2 * STANDS


@dataclass
class Sums:
    """Numbers of words and of sums of words.

    Parameters
    ----------
    words : int
        Words with numbers from 0 on; those of sums follow.
    neutral : ndarray of int, shape (classes, runs), optional
        The bits, by their class, of the word that changes nothing in each run.

    Examples
    --------
    >>> sums = Sums(words=4)
    >>> sums.of([0, 1]), sums.of([1, 0]), sums.of([2])
    (4, 4, 2)
    >>> sums.added(4, 2) == sums.of([2, 1, 0])
    True
    """

    words: int
    neutral: IntArray | None = None
    _parts: list[tuple[int, ...]] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, words: Sequence[int]) -> int:
        """The number of a sum of words."""
        key = tuple(sorted(words))
        if len(key) == 1:
            return key[0]
        if key not in self._known:
            self._known[key] = self.words + len(self._parts)
            self._parts.append(key)
        return self._known[key]

    def parts(self, number: int) -> tuple[int, ...]:
        """The words that went into a sum."""
        return (number,) if number < self.words else self._parts[number - self.words]

    def added(self, a: int, b: int) -> int:
        """The sum of two words or sums."""
        return self.of(self.parts(a) + self.parts(b))

    def marked(self, bits: IntArray, number: int) -> IntArray:
        """The bits of words of a class, with `NEUTRAL` for words that change nothing in their run.

        That all bits of such a word are alike follows from the structure of what gives them.

        Parameters
        ----------
        bits : ndarray of int, shape (words, instances and runs)
        """
        if self.neutral is None:
            return bits
        neutral = np.tile(self.neutral[number], bits.shape[1] // self.neutral.shape[1])
        return np.where(bits == neutral, NEUTRAL, bits)

    def added_bits(self, a: IntArray, b: IntArray) -> IntArray:
        """The sums of words, each shown by one of its bits."""
        result = np.where(a == NEUTRAL, b, np.where(b == NEUTRAL, a, UNKNOWN)).astype(np.int32)
        there = (a > 1) & (b > 1) & (a % 2 == 0) & (b % 2 == 0)
        # What registers hold at rest is no word of a message.
        there &= np.maximum(a, b) < 2 * (self.words + len(self._parts)) + 2
        pairs = np.stack([a[there], b[there]])
        if pairs.size:
            unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
            sums = [2 * self.added((x - 2) // 2, (y - 2) // 2) + 2 for x, y in unique.T.tolist()]
            result[there] = np.array(sums, np.int32)[inverse.ravel()]
        return result
