"""The order in which an injection port combines several words into one: a tree of pairs.

An *injection port* is an input of a router for words of the node's own memories. In a reduction it
may be given the sum of several words that the node reads at once.

The hardware (`rtl.core.store`) and the model (`program.execute`) both call `combine_in_tree`.
Why: with one definition of the order they agree on operators that are not associative, too. At
every level neighbours are combined. The last word of an odd number waits for the next level:

    words    a   b   c   d   e
    level 1  (a b)   (c d)   e
    level 2    ((ab) (cd))   e
    level 3       (((ab) (cd)) e)

The last words may be left out if they are the operator's identity: the order of all others stays
the same.
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
    """Combine words into one word, in the order of the tree.

    Parameters
    ----------
    words : sequence
        At least one word: an array, a signal, or any other operand of `combine`.
    combine : callable
        Function from two words to their combination.
    wait : callable, optional
        Function that is called for a word without a partner at its level, and returns the same word
        for the next level. Hardware with pipeline stages passes a function that delays the word.

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
    """Return the number of levels of the tree of `count` words, 0 for one word.

    Examples
    --------
    >>> [tree_levels(count) for count in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (count - 1).bit_length()
