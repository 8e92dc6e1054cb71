"""The arrival of words where nodes keep their sums.

A set of contributions is a number here, whose bit k stands for origin k. A word that arrives is
added to the sum of its receiver. A word that contains all contributions of that sum *replaces* the
sum: so a complete sum is delivered to nodes that have sent their partial sums away. A word with
some, but not all, of these contributions fits neither way.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["sum_after"]


def sum_after(held: int, words: Iterable[int]) -> int | None:
    """Return the sum of a node after the arrivals of a round; None if a word does not fit.

    Parameters
    ----------
    held : int
        The contributions to the sum before.
    words : iterable of int
        The contributions to each word that arrives. Words that replace the sum come before those
        that are added, and of these the one with the fewest contributions comes first.

    Examples
    --------
    Node 0 adds the word of node 1. A complete sum replaces its own. The third word has one of its
    two contributions.

    >>> sum_after(0b001, [0b010]), sum_after(0b011, [0b111]), sum_after(0b011, [0b110])
    (3, 7, None)
    """
    before = held
    for word in sorted(words, key=lambda word: (bool(before & ~word), word.bit_count())):
        if not held & ~word:
            held = word
        elif held & word:
            return None
        else:
            held |= word
    return held
