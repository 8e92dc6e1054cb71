"""Circuit-switched broadcast along a line of items, each of which may be a whole set of nodes.

A segment of length L has one informed item, at its anchor. It is cut into alpha + 1 pieces, as even
as possible, the larger ones nearest the middle; the informed item is at the anchor of the middle
piece and sends to the anchors of the others. The rest of the work is the same in every piece at the
same time: exactly ceil(log_(alpha + 1) L) rounds (after Wang, Tseng, Ni and Sheu 2001, section
3.1.1, where the source stays at the centre, which fails for odd alpha).
"""

from fractions import Fraction
from functools import cache

import numpy as np

__all__ = ["anchor", "clog", "piece_sizes", "segment_rounds"]


def clog(number: int | Fraction, alpha: int) -> int:
    """ceil(log_(alpha + 1) of a number), at least 0; exact for integers and fractions."""
    rounds, reached = 0, 1
    while reached < number:
        rounds, reached = rounds + 1, reached * (alpha + 1)
    return rounds


def piece_sizes(length: int, alpha: int) -> list[int]:
    """Sizes of the alpha + 1 pieces of a segment."""
    size, rest = divmod(length, alpha + 1)
    nearest = sorted(range(alpha + 1), key=lambda piece: abs(piece - alpha // 2))
    return [size + (piece in nearest[:rest]) for piece in range(alpha + 1)]


@cache
def anchor(length: int, alpha: int) -> int:
    """Where the informed item of a segment is."""
    if length <= 1:
        return 0
    sizes, middle = piece_sizes(length, alpha), alpha // 2
    return sum(sizes[:middle]) + anchor(sizes[middle], alpha)


def segment_rounds(length: int, alpha: int) -> list[dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Who sends where, in each round.

    Parameters
    ----------
    length : int
        Number of items; the one at `anchor` is informed.
    alpha : int
        To how many items an informed one may send in a round.

    Returns
    -------
    list of dict
        For each round ``{rank: (items, offsets)}``: each of ``items`` sends over a signed distance;
        a message of rank i has i others before it on its side, nearer to the sender. Both sides
        are in the same arrays, and a sender is in them up to twice.
    """
    segments, rounds = [(0, length)], []
    while max(size for _, size in segments) > 1:
        messages: dict[int, list[tuple[int, int]]] = {}
        pieces = []
        for start, size in segments:
            here, anchors = start + anchor(size, alpha), []
            for piece in filter(None, piece_sizes(size, alpha)):
                pieces.append((start, piece))
                anchors.append(start + anchor(piece, alpha))
                start += piece
            above = [there for there in anchors if there > here]
            below = [there for there in anchors if there < here][::-1]
            for rank, there in [*enumerate(above), *enumerate(below)]:
                messages.setdefault(rank, []).append((here, there - here))
        rounds.append({rank: tuple(np.array(pairs).T) for rank, pairs in messages.items()})
        segments = pieces
    return rounds
