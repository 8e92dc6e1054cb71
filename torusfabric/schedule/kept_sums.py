"""The rule by which an arriving word changes the sum of a node that keeps its sums.

A set of contributions is a number here, whose bit k stands for origin k. Let S be the sum of the
receiver and W the word that arrives:

- W and S have no contribution in common: W is *added* to S.
- W has all contributions of S: W *replaces* S. In this way a complete sum is delivered to nodes
  that have sent copies of their partial sums.
- Otherwise W has some but not all contributions of S, and does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["SumParts", "sum_after"]


class SumParts(NamedTuple):
    """The sum of a node after a round, and its parts: the old sum, or arriving words, or both.

    Parameters
    ----------
    contributions : int
        The contributions to the new sum, as bits.
    keeps : bool
        True if the old sum is one of its parts, False if a word has replaced it.
    words : list of int
        The indices of the arriving words that are its other parts.
    """

    contributions: int
    keeps: bool
    words: list[int]


def sum_after(held: int, words: Sequence[int]) -> SumParts | None:
    """Return the sum of a node after the arrivals of a round; None if a word does not fit.

    A word that has all contributions of the sum replaces it. A word that has none of them is added
    to the sum. A word that has only some of them does not fit. Words that replace the sum are
    applied first; within each kind, words with fewer contributions come first.

    Parameters
    ----------
    held : int
        The contributions to the old sum, as bits.
    words : sequence of int
        The contributions to each arriving word, as bits.

    Examples
    --------
    Node 0 adds the word of node 1. In the second call, the word with three contributions replaces
    the sum, and the other word is added to it. The word of the third call does not fit.

    >>> sum_after(0b001, [0b010])
    SumParts(contributions=3, keeps=True, words=[0])
    >>> sum_after(0b0011, [0b1000, 0b0111])
    SumParts(contributions=15, keeps=False, words=[1, 0])
    >>> sum_after(0b011, [0b110])
    """
    ranks, keeps, parts = held, True, list[int]()

    def sort_key(number: int) -> tuple[bool, int]:
        return bool(held & ~words[number]), words[number].bit_count()

    for number in sorted(range(len(words)), key=sort_key):
        word = words[number]
        if not ranks & ~word:
            ranks, keeps, parts = word, False, [number]
        elif ranks & word:
            return None
        else:
            ranks, parts = ranks | word, [*parts, number]
    return SumParts(ranks, keeps, parts)
