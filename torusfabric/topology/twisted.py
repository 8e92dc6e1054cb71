"""Twisted tori: tori whose wrap-around links lead to a shifted row.

In the plain torus 8x4, 8 steps along axis 0 lead back to the start, and so do 4 steps along axis 1.
In a twisted torus, going once round an axis ends some steps away along the next axis: in 8x4~4,
once round axis 1 ends 4 steps away along axis 0. A twisted torus has as many links as the plain
torus and often a smaller diameter: 8x4~4 has diameter 4, 8x4 has 6.
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
from .topology import EntryTopology, IntArray, IntLike, cached_array
from .torus import Torus

__all__ = ["TwistedTorus"]

#: The most nodes. Distances are found by a search.
MOST_NODES = 2**22


@public_class
class TwistedTorus(EntryTopology, CayleyGraph):
    """A torus in which going once round an axis ends some steps away along the next axis.

    Nodes and ports are numbered as in the plain torus. Axis 0 follows the last axis.

    Parameters
    ----------
    sides : sequence of int
        The side lengths, each at least 2, for at least two axes.
    twists : sequence of int
        For each axis, the steps along the next axis by which its wrap-around is shifted: at least
        0, and less than the side of the next axis. At least one twist is 0, and at least one is
        not.

    Raises
    ------
    InputError
        If sides or twists are invalid.

    Examples
    --------
    Node 3 is the last of its row, so its port +1 leads to row 4 in place of row 0.

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
    def _cyclic_groups(self) -> tuple[tuple[int, ...], IntArray]:
        """Sizes of cyclic groups, and a matrix that turns steps along axes into coordinates.

        Each node has a coordinate in each group. ``steps @ matrix``, modulo the sizes, are the
        coordinates of the node to which `steps`, a number for each axis, lead from node 0.
        """
        count = len(self.sides)
        ways_round = np.diag(self.sides)
        for axis, twist in enumerate(self.twists):
            ways_round[axis, (axis + 1) % count] -= twist
        return _diagonalize_relations(ways_round)

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return self._cyclic_groups[0]

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        orders, columns = self._cyclic_groups
        steps = Torus(self.sides).coordinates(nodes)
        parts = np.tensordot(columns.T, steps, 1)
        whole: IntArray = parts % np.reshape(orders, (-1, *[1] * (parts.ndim - 1)))
        return whole

    @cached_array
    @override
    def generators(self) -> IntArray:
        axes = np.repeat(np.eye(len(self.sides), dtype=int), 2, axis=0)
        return self._node_at_steps((axes * np.tile([1, -1], len(self.sides))[:, None]).T)

    def _node_at_steps(self, steps: IntArray) -> IntArray:
        """Return the nodes to which numbers of steps along the axes lead from node 0.

        Each column of `steps` is for one node, and has one number for each axis.
        """
        steps, count = steps.copy(), len(self.sides)
        # Begin behind an axis without twist, so that no wrap changes an axis already reduced.
        first = self.twists.index(0) + 1
        for axis in (k % count for k in range(first, first + count)):
            rounds, steps[axis] = np.divmod(steps[axis], self.sides[axis])
            steps[(axis + 1) % count] += rounds * self.twists[axis]
        nodes: IntArray = np.ravel_multi_index(tuple(steps), self.sides)
        return nodes

    @override
    def node_name(self, node: int) -> str:
        return "(" + ",".join(str(int(x)) for x in np.unravel_index(node, self.sides)) + ")"


def _diagonalize_relations(relations: IntArray) -> tuple[tuple[int, ...], IntArray]:
    """Return a product of cyclic groups that is equal to Z^n modulo the rows of `relations`.

    A row of n integers is a combination of steps along the axes that leads back to the start. The
    result is the orders of the groups, and a matrix of shape (n, n): ``steps @ matrix`` are the
    coordinates in these groups.

    Row and column operations make `relations` diagonal (a Smith normal form, except that orders
    need not divide each other). The orders of the groups are on the diagonal, and the matrix is the
    product of all column operations.
    """
    left, columns = relations.astype(object), np.eye(len(relations), dtype=int).astype(object)
    for corner in range(len(left)):
        while True:
            rest = left[corner:, corner:]
            row, column = min(
                zip(*np.nonzero(rest), strict=True), key=lambda at: abs(rest[at])
            )  # some entry is not 0, because the relations are independent
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
