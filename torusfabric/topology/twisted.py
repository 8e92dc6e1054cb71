"""Twisted tori: tori whose wrap-around links lead to another row.

A torus with sides 8 and 4 is Z^2 in which 8 steps along axis 0, or 4 along axis 1, lead back. In a
twisted torus some of these ways round an axis end so many steps away along the next axis. It has
the links of the plain torus, and often a smaller diameter: 8x4~4 has 4, 8x4 has 6.
"""

import math
import re
from collections.abc import Iterable

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of
from .cayley import CayleyGraph
from .topology import FromEntry, IntArray, IntLike, cached_array

__all__ = ["TwistedTorus"]

#: The most nodes: distances are found by a search.
MOST_NODES = 2**22


@public_class
class TwistedTorus(FromEntry, CayleyGraph):
    """A torus in which the way round an axis ends some steps away along the next axis.

    Nodes and ports are those of the plain torus. The axis that follows the last is axis 0.

    Parameters
    ----------
    sides : sequence of int
        The side lengths, each at least 2, of at least two axes.
    twists : sequence of int
        By how many steps the wrap of each axis moves the next axis; less than the side of that. At
        least one is 0, and at least one is not.

    Raises
    ------
    InputError
        If sides or twists are not such.

    Examples
    --------
    >>> torus = TwistedTorus([8, 4], [0, 4])
    >>> torus.name, torus.nodes, torus.diameter
    ('8x4~4', 32, 4)
    >>> torus.node_name(torus.neighbours[3, torus.port("+1")])
    '(4,0)'
    """

    kind = "twisted-torus"
    notation = "8x4~4 (twisted)"
    entry = '{"kind": "twisted-torus", "sides": [..], "twists": [..]}'

    def __init__(self, sides: Iterable[int], twists: Iterable[int]) -> None:
        self.sides, self.twists = entries_of(sides), entries_of(twists)
        written = "x".join(map(str, self.sides))
        count = len(self.sides)
        if count < 2 or any(type(side) is not int or side < 2 for side in self.sides):
            raise InputError(
                "Sides of a twisted torus must be two or more integers of at least 2, not "
                f"{written!r}"
            )
        following = [*self.sides[1:], self.sides[0]]
        if len(self.twists) != count or not all(
            type(twist) is int and 0 <= twist < side
            for twist, side in zip(self.twists, following, strict=True)
        ):
            raise InputError(
                f"Twists of {written} must be an integer for each axis, from 0 and less than the "
                f"side of the next axis, not {list(self.twists)}"
            )
        if 0 not in self.twists or not any(self.twists):
            raise InputError(
                f"Twists of {written} must be 0 for some axis and not for all, not {[*self.twists]}"
            )
        if math.prod(self.sides) > MOST_NODES:
            raise InputError(
                f"Twisted torus must have at most {MOST_NODES} nodes, not {math.prod(self.sides)}"
            )
        self.name = "x".join(
            f"{side}~{twist}" if twist else str(side)
            for side, twist in zip(self.sides, self.twists, strict=True)
        )
        self.nodes, self.ports = math.prod(self.sides), 2 * count
        self.port_names = tuple(f"{sign}{axis}" for axis in range(count) for sign in "+-")
        self.opposite = np.arange(self.ports) ^ 1

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if "~" not in text or not re.fullmatch(
            r"[0-9]{1,9}(~[0-9]{1,9})?(x[0-9]{1,9}(~[0-9]{1,9})?)*", text
        ):
            return None
        parts = [part.partition("~") for part in text.split("x")]
        return cls([int(side) for side, *_ in parts], [int(twist or 0) for *_, twist in parts])

    @property
    @override
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        nodes = np.arange(self.nodes)
        return self.sides, np.stack(np.unravel_index(nodes, self.sides))

    @cached_array
    def _cyclic(self) -> tuple[tuple[int, ...], IntArray]:
        """The orders of cyclic groups, and the matrix that takes steps to parts in them."""
        count = len(self.sides)
        ways_round = np.diag(self.sides)
        for axis, twist in enumerate(self.twists):
            ways_round[axis, (axis + 1) % count] -= twist
        return _diagonal(ways_round)

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return self._cyclic[0]

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        orders, columns = self._cyclic
        steps = np.stack(np.unravel_index(nodes, self.sides))
        parts = np.tensordot(columns.T, steps, 1)
        whole: IntArray = parts % np.reshape(orders, (-1, *[1] * (parts.ndim - 1)))
        return whole

    @cached_array
    @override
    def generators(self) -> IntArray:
        axes = np.repeat(np.eye(len(self.sides), dtype=int), 2, axis=0)
        return self._node((axes * np.tile([1, -1], len(self.sides))[:, None]).T)

    def _node(self, steps: IntArray) -> IntArray:
        """The nodes that are so many steps along each axis from node 0, a column each."""
        steps, count = steps.copy(), len(self.sides)
        first = self.twists.index(0) + 1  # no way round leads back into it
        for axis in (k % count for k in range(first, first + count)):
            rounds, steps[axis] = np.divmod(steps[axis], self.sides[axis])
            steps[(axis + 1) % count] += rounds * self.twists[axis]
        nodes: IntArray = np.ravel_multi_index(tuple(steps), self.sides)
        return nodes

    @override
    def node_name(self, node: int) -> str:
        return "(" + ",".join(str(int(x)) for x in np.unravel_index(node, self.sides)) + ")"


def _diagonal(relations: IntArray) -> tuple[tuple[int, ...], IntArray]:
    """The Smith normal form without its order: orders of cyclic groups, and the columns.

    Rows are added to rows, and columns to columns, until the matrix is diagonal. The group of
    steps modulo the rows is then the product of cyclic groups, and `steps @ columns` are its parts.
    """
    left, columns = relations.astype(object), np.eye(len(relations), dtype=int).astype(object)
    for corner in range(len(left)):
        while True:
            rest = left[corner:, corner:]
            row, column = min(
                zip(*np.nonzero(rest), strict=True), key=lambda at: abs(rest[at])
            )  # the relations are independent: some entry is not 0
            left[[corner, corner + row]] = left[[corner + row, corner]]
            for each in (left, columns):
                each[:, [corner, corner + column]] = each[:, [corner + column, corner]]
            pivot = left[corner, corner]
            for other in range(corner + 1, len(left)):
                left[other] -= left[other, corner] // pivot * left[corner]
            for other in range(corner + 1, len(left)):
                times = left[corner, other] // pivot
                left[:, other] -= times * left[:, corner]
                columns[:, other] -= times * columns[:, corner]
            if not left[corner, corner + 1 :].any() and not left[corner + 1 :, corner].any():
                break
    return tuple(abs(int(n)) for n in left.diagonal()), columns.astype(np.int64)
