"""Whole messages on a torus of three axes (Meyer & Sibeyn, section 4.2).

Rod (x, y) belongs to cycle x + y modulo 3. A lap moves along axes 1, 3, 1, 3, 1 and then down the
rod; some laps end their zigzag with a move along axis 2 instead, to change planes. With g a third
of the greatest common divisor of n1 and n2, a lap is of the second kind if x + y, modulo 3 g, is
among the 3 q largest values.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ....topology import Torus
from .completion import turn
from .rods import Rods, follow_laps

__all__ = ["feeds_3d", "roles_3d"]


def roles_3d(sides: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    """The orders of axes, with values of q, that give one cycle a phase: an iterator.

    Of axes that are equally long one order is given.
    """
    seen = set()
    for axes in ((0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        n1, n2, n3 = role = tuple(sides[axis] for axis in axes)
        if n1 % 3 or n2 % 3 or n3 < 3 or role in seen:
            continue
        seen.add(role)
        g = math.gcd(n1, n2) // 3
        for q in range(1, g + 1):
            if math.gcd(q, n2) == 1 and math.gcd(n1 // (3 * g), 3 * g - q) == 1:
                yield axes, q


def feeds_3d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Feeds that complete on a torus of three axes, an iterator."""
    for axes, q in roles_3d(sides):
        rods = make_rods([sides[axis] for axis in axes], q)
        if rods:
            yield turn(rods.feed(), sides, axes)


def make_rods(sides: Sequence[int], q: int) -> Rods | None:
    """The rods along the last axis."""
    n1, n2, n3 = sides
    g = math.gcd(n1, n2) // 3
    x, y, _ = np.indices((n1, n2, n3))
    total = (x + y)[:, :, 0].ravel()
    second = total % (3 * g) >= 3 * (g - q)
    laps = np.full((len(total), n3 + 3), 4)
    laps[:, 0:3:2] = 0
    laps[:, 4] = np.where(second, 2, 0)
    return follow_laps(Torus(sides), (x + y).ravel() % 3, laps)
