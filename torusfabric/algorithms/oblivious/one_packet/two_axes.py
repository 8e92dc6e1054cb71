"""Whole messages on a torus of two axes (Meyer & Sibeyn, section 4.1).

Axis 0 runs down the rows, axis 1 along the columns. Columns are rods: column x belongs to cycle x
modulo 2. In rows 0 and 1 each cycle goes one column to the right, one row down, one more column to
the right, and then down its next rod.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from .completion import turn

__all__ = ["feeds_2d"]

#: Out-ports in the order of the columns of a feed, as written below.
LETTERS = "BTRL"

#: The head of both kinds of columns: what feeds the out-ports bottom, top, right, left.
HEAD, ROD = "LRTB", "TBBT"

# Where the number of columns is odd, the last five are special: rods of cycles 0, 1, 0, 0, 1, with
# a head of three rows. Between two rods of one cycle, messages of the other are passed on sideways.
# The last row of each table stands for all below.
WIDE = (
    "LRTB TBLR LLBT TRTB LRTB",
    "LRTB RLBT RRBT RLLR LRTB",
    "TBBT RLBB RLBT LBBB TBBT",
    "TBBT TBTB TBLB TBBR TBBT",
)
NARROW = (
    "LRTB TBLR LLBT TRTB LRTB",
    "LRTB RLBT RRBT RLLR LRTB",
    "TBBT RLBR RLBT LBBB TBTT",
    "TBBT TBTT TBLB TBBR TBTT",
    "TBBT TBBB TBLB TBBR TBBB",
)

# On 3 x 3 nodes every message turns left after one hop, and has then reached all corners.
LEFT = "RLTB"


def feeds_2d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Feeds that complete on a torus of two axes, an iterator."""
    if sides == (3, 3):
        yield np.tile(letters(LEFT), (9, 1))
        return
    for axes in sorted(((0, 1), (1, 0)), key=lambda axes: -sides[axes[1]]):
        rows, columns = (sides[axis] for axis in axes)
        if columns % 2 == 0 or (columns >= 5 and rows >= 3):
            yield turn(rod_feed(rows, columns), sides, axes)


def letters(text: str) -> np.ndarray:
    """The in-ports named by letters."""
    return np.array([LETTERS.index(letter) for letter in text], np.int8)


def rod_feed(rows: int, columns: int) -> np.ndarray:
    """The feed with rods along the columns, shape (nodes, ports)."""
    feed = np.empty((rows, columns, 4), np.int8)
    feed[:2], feed[2:] = letters(HEAD), letters(ROD)
    if columns % 2:
        table = NARROW if columns == 5 else WIDE
        special = np.array([[letters(word) for word in line.split()] for line in table])
        feed[:, -5:] = special[np.minimum(np.arange(rows), len(table) - 1)]
    return feed.reshape(-1, 4)
