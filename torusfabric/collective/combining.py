"""The order in which several words become one: a tree of pairs.

Where an injection port sends the sum of several words, hardware (`rtl.endpoint_builder`) and model
(`program.execute`) both combine them by `combine_in_tree`. So they agree on operators that are not
associative, too. Every level combines neighbours; the last word of an odd number waits for the next
level:

    words    a   b   c   d   e
    level 1  (a b)   (c d)   e
    level 2    ((ab) (cd))   e
    level 3       (((ab) (cd)) e)

A word that changes nothing can be left out at the end: the order of all others stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["combine_in_tree", "tree_levels"]

Word = TypeVar("Word")


def combine_in_tree(
    words: Sequence[Word],
    combine: Callable[[Word, Word], Word],
    wait: Callable[[Word], Word] = lambda word: word,
) -> Word:
    """Combine words into one.

    Parameters
    ----------
    words : sequence
        At least one word: an array, a signal, or whatever `combine` takes.
    combine : callable
        From two words to their sum.
    wait : callable, optional
        From a word without a partner in a level to that word in the next level.

    Examples
    --------
    >>> for count in (2, 3, 4, 5):
    ...     combine_in_tree("abcde"[:count], lambda a, b: f"({a}{b})")
    '(ab)'
    '((ab)c)'
    '((ab)(cd))'
    '(((ab)(cd))e)'
    """
    level = list(words)
    while len(level) > 1:
        waiting = [wait(word) for word in level[len(level) & ~1 :]]
        level = [combine(*pair) for pair in zip(level[::2], level[1::2], strict=False)] + waiting
    return level[0]


def tree_levels(count: int) -> int:
    """Return the levels of the tree of so many words, 0 for one.

    Examples
    --------
    >>> [tree_levels(count) for count in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (count - 1).bit_length()
