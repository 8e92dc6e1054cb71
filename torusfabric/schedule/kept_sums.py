"""The arrival of words where nodes keep their sums.

A set of contributions is a number here, whose bit k stands for origin k. A word that arrives is
added to the sum of its receiver. A word that contains all contributions of that sum *replaces* the
sum: so a complete sum is delivered to nodes that have sent their partial sums away. A word with
some, but not all, of these contributions fits neither way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["SumParts", "sum_after"]


class SumParts(NamedTuple):
    """The parts of a sum after the arrivals of a round.

    Parameters
    ----------
    ranks : int
        The contributions to it.
    keeps : bool
        True if the sum before is one of its parts.
    words : list of int
        The numbers of the words that are its other parts.
    """

    ranks: int
    keeps: bool
    words: list[int]


def sum_after(held: int, words: Sequence[int]) -> SumParts | None:
    """Return the sum of a node after the arrivals of a round; None if a word does not fit.

    Parameters
    ----------
    held : int
        The contributions to the sum before.
    words : sequence of int
        The contributions to each word that arrives. Words that replace the sum come before those
        that are added, and of these the one with the fewest contributions comes first.

    Examples
    --------
    Node 0 adds the word of node 1. A complete sum replaces its own, and the word that came with it
    is added. The last word has one contribution of two.

    >>> sum_after(0b001, [0b010])
    SumParts(ranks=3, keeps=True, words=[0])
    >>> sum_after(0b0011, [0b1000, 0b0111])
    SumParts(ranks=15, keeps=False, words=[1, 0])
    >>> sum_after(0b011, [0b110])
    """
    ranks, keeps, parts = held, True, list[int]()

    def turn(number: int) -> tuple[bool, int]:
        return bool(held & ~words[number]), words[number].bit_count()

    for number in sorted(range(len(words)), key=turn):
        word = words[number]
        if not ranks & ~word:
            ranks, keeps, parts = word, False, [number]
        elif ranks & word:
            return None
        else:
            ranks, parts = ranks | word, [*parts, number]
    return SumParts(ranks, keeps, parts)
