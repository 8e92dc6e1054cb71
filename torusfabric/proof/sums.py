"""Symbolic sums: the results of reductions, each identified by its summands.

If all operators are associative, the multiset of the summands determines the result, because
operators are commutative, too. Otherwise the result also depends on the order in which words are
combined. A sum is then identified by its *tree*: by the pair of sums that it combines. The same
code serves every operator, which is an unknown function here; `units` and `operators` prove
separately that each operator module is right.

The *identity word* of an operator, here called *neutral*, changes no word that it is combined with,
such as 0 for a sum. A *class* is a set of bit positions at which the identity word of every
operator has equal bits (see `units`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..topology import IntArray
from .symbols import FIRST_REGISTER_WORD, UNKNOWN

__all__ = ["Sums"]

#: Symbolic bit of a identity word, which leaves the other operand unchanged.
NEUTRAL = 2 * FIRST_REGISTER_WORD


@dataclass
class Sums:
    """Numbering of words and of sums of words: equal sums have equal numbers.

    Parameters
    ----------
    words : int
        Number of words; they have the numbers 0 to `words` - 1. Sums have the numbers from `words`
        on.
    ordered : bool
        True if sums of the same words in different orders are different: if an operator is not
        associative.
    neutral : ndarray of int, shape (classes, runs), optional
        Bits of the identity word, the word that changes no sum, in each run. There is one bit for
        each class of bit positions (see `units.bit_classes`).

    Examples
    --------
    >>> sums = Sums(words=4)
    >>> sums.number_of_sum([0, 1]), sums.number_of_sum([1, 0]), sums.number_of_sum([2])
    (4, 4, 2)
    >>> sums.add_numbers(4, 2) == sums.number_of_sum([2, 1, 0])
    True
    >>> trees = Sums(words=4, ordered=True)
    >>> trees.add_numbers(trees.add_numbers(0, 1), 2), trees.add_numbers(0, trees.add_numbers(1, 2))
    (5, 7)
    """

    words: int
    ordered: bool = False
    neutral: IntArray | None = None
    _parts: list[tuple[int, ...]] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def number_of_sum(self, words: Sequence[int]) -> int:
        """Return the number of the sum of some words, in any order; a word is its own sum."""
        key = tuple(sorted(words))
        return key[0] if len(key) == 1 else self._number_of_key(key, key)

    def _number_of_key(self, key: tuple[int, ...], summands: tuple[int, ...]) -> int:
        """Return the number of a sum, given the tuple that identifies it and its summands."""
        if key not in self._known:
            self._known[key] = self.words + len(self._parts)
            self._parts.append(summands)
        return self._known[key]

    def summands(self, number: int) -> tuple[int, ...]:
        """Return the numbers of the words that a sum consists of, in ascending order.

        The result for a word is its own number.
        """
        return (number,) if number < self.words else self._parts[number - self.words]

    def add_numbers(self, a: int, b: int) -> int:
        """Return the number of the sum of two words or sums, which have the numbers `a` and `b`."""
        summands = tuple(sorted(self.summands(a) + self.summands(b)))
        return self._number_of_key((min(a, b), max(a, b)) if self.ordered else summands, summands)

    def mark_identity(self, bits: IntArray, number: int) -> IntArray:
        """Return the symbolic bits `bits`, with `NEUTRAL` in place of bits of the identity word.

        The identity word is the word that changes no sum; a bit is replaced if it is the constant
        that the identity word has there. `add_bits` then leaves the other operand as it is. Why one
        bit of each class is enough to recognise the word: `alike` shows that all other bits of a
        class have the same origin, and the gates ALIKE before an operator compare the classes with
        one another.

        Parameters
        ----------
        bits : ndarray of int, shape (words, instances and runs)
            Bits of one class of positions.
        number : int
            Number of the class.
        """
        if self.neutral is None:
            return bits
        neutral = np.tile(self.neutral[number], bits.shape[1] // self.neutral.shape[1])
        return np.where(bits == neutral, NEUTRAL, bits)

    def add_bits(self, a: IntArray, b: IntArray) -> IntArray:
        """Return the symbolic bits of the sums of pairs of words.

        `a` and `b` have one symbolic bit for each word. If one of a pair is `NEUTRAL`, the result
        is the other. The result is `UNKNOWN` if an operand is neither a word, nor a sum, nor
        `NEUTRAL`.
        """
        result = np.where(a == NEUTRAL, b, np.where(b == NEUTRAL, a, UNKNOWN)).astype(np.int32)
        there = (a > 1) & (b > 1) & (a % 2 == 0) & (b % 2 == 0)
        # Numbers beyond all sums stand for register values at rest, which must not be added.
        there &= np.maximum(a, b) < 2 * (self.words + len(self._parts)) + 2
        pairs = np.stack([a[there], b[there]])
        if pairs.size:
            unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
            sums = [
                2 * self.add_numbers((x - 2) // 2, (y - 2) // 2) + 2 for x, y in unique.T.tolist()
            ]
            result[there] = np.array(sums, np.int32)[inverse.ravel()]
        return result
