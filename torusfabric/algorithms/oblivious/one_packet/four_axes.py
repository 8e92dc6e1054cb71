"""Whole messages on a torus of four axes: the scheme of Meyer & Sibeyn, section 4, extended.

Rod (x, y, w) belongs to cycle x + y + 2 w modulo 4, so that the rods next to it on axes 1 and 2 are
those of the next and the last cycle, and on axis 3 those of the one opposite. A lap moves along
axes 1, 4, 1, 4, M, 4, N and then down the rod. Moves M = 1, N = 1 keep to the plane, M = 1, N = 2
change planes, and M = 3 and back on 2, N = 2 change layers.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np

from ....topology import Torus
from .completion import turn
from .rods import Rods, follow_laps

__all__ = ["feeds_4d", "roles_4d"]


def roles_4d(sides: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Rods]]:
    """The orders of axes that give one cycle a phase, with the rods: an iterator.

    Of axes that are equally long one order is given.
    """
    seen = set()
    for axes in permutations(range(4)):
        n1, n2, n3, n4 = role = tuple(sides[axis] for axis in axes)
        if n1 % 4 or n2 % 4 or n3 % 2 or n4 < 4 or role in seen:
            continue
        seen.add(role)
        rods = make_rods(role)
        if rods:
            yield axes, rods


def feeds_4d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Feeds that complete on a torus of four axes, an iterator."""
    for axes, rods in roles_4d(sides):
        yield turn(rods.feed(), sides, axes)


def make_rods(sides: Sequence[int]) -> Rods | None:
    """The rods along the last axis, or None if they do not close to one cycle a phase."""
    n1, n2, n3, n4 = sides
    x, y, w, _ = np.indices(sides)
    total, turns = ((a[..., 0]).ravel() for a in (x + y + 2 * w, y + w))
    g = math.gcd(n1, n2, 2 * n3) // 4
    plane = total // 4 % g == g - 1
    layer = plane & (turns % math.gcd(n2, n3) == 0)
    laps = np.full((len(total), n4 + 5), 6)
    laps[:, 0:3:2] = 0
    laps[:, 4] = np.where(layer, 4, 0)
    laps[:, 5] = np.where(layer, 3, -1)
    laps[:, 7] = np.where(plane, 2, 0)
    return follow_laps(Torus(sides), (x + y + 2 * w).ravel() % 4, laps)
