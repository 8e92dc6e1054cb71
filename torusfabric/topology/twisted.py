"""Twisted tori: tori whose wrap-around links lead to a shifted row.

In the plain torus 8x4, 8 steps along axis 0 lead back to the start, and so do 4 steps along axis 1.
In a twisted torus, going once round an axis ends some steps away along other axes: in 8x4~4, once
round axis 1 ends 4 steps away along axis 0. A twisted torus has as many links as the plain torus
and often a smaller diameter: 8x4~4 has diameter 4, 8x4 has 6.

A *lattice* is the set of all combinations of steps along n axes that lead back to the start. It is
described by n independent rows of n integers: each combination is a sum of rows. Every lattice
belongs to a twisted or a plain torus, see `TwistedTorus.from_lattice`.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, message_text
from .cayley import CayleyGraph, grid_coordinates
from .topology import EntryTopology, IntArray, IntLike, cached_array

__all__ = ["TwistedTorus"]

#: The most nodes, and the most axes. Distances are found by a search.
MOST_NODES, MOST_AXES = 2**22, 22

#: The forms of names: steps along the next axis, behind a side; axes that are shifted, and axes
#: whose wrap-around shifts them; the rows of a lattice.
_NUMBER = "[0-9]{1,9}"
_STEPS_FORM = f"{_NUMBER}(~{_NUMBER})?(x{_NUMBER}(~{_NUMBER})?)*"
_AXES = f"{_NUMBER}(?:,{_NUMBER})*"
_TWIST = f"~({_AXES}):({_NUMBER}(?:={_NUMBER})?(?:,{_NUMBER}(?:={_NUMBER})?)*)"
_AXES_FORM = f"({_NUMBER}(?:x{_NUMBER})*)((?:{_TWIST})+)"
_LATTICE_FORM = f"lattice:(-?{_NUMBER}(?:[,/]-?{_NUMBER})*)"


@public_class
class TwistedTorus(EntryTopology, CayleyGraph):
    """A torus in which going once round an axis ends some steps away along other axes.

    Nodes and ports are numbered as in the plain torus.

    Parameters
    ----------
    sides : sequence of int
        The side lengths, each at least 2, for at least two axes. A side may be 1 if its axis has a
        twist.
    twists : sequence of int, or sequence of sequence of int
        For each axis, the steps along the next axis by which its wrap-around is shifted, where axis
        0 follows the last axis. Or a square matrix: ``twists[a][b]`` is the number of steps along
        axis b by which the wrap-around of axis a is shifted. Steps are at least 0, and less than
        the side of the axis along which they lead. At least one is not 0. No twists form a circle:
        if axis a shifts axis b, then axis b shifts neither axis a nor an axis that shifts axis a.

    Attributes
    ----------
    twists : tuple of int, or tuple of tuple of int
        A number for each axis if all wrap-arounds are shifted along the next axis, else the matrix.
    shifts : ndarray of int, shape (axes, axes)
        The matrix of twists.

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

    The wrap-around links of axes 0 and 1 lead halfway round axis 2:

    >>> torus = TwistedTorus([4, 4, 8], [[0, 0, 4], [0, 0, 4], [0, 0, 0]])
    >>> torus.name, torus.node_name(torus.neighbours[0, torus.port("-1")])
    ('4x4x8~2:0,1', '(0,3,4)')
    """

    kind = "twisted-torus"
    notation = "8x4~4, 4x4x8~2:0,1 or lattice:4,0,4/0,4,4/0,0,8 (twisted)"
    entry = '{"kind": "twisted-torus", "sides": [..], "twists": [..]}'

    def __init__(
        self, sides: Iterable[int], twists: Iterable[int] | Iterable[Iterable[int]]
    ) -> None:
        self.sides, given = entries_of(sides), entries_of(twists)
        _check_sides(self.sides)
        self.shifts = _shift_matrix(self.sides, given)
        written, count = "x".join(map(str, self.sides)), len(self.sides)
        for side, row in zip(self.sides, self.shifts, strict=True):
            if side == 1 and not row.any():
                raise _sides_error(self.sides)
        if not self.shifts.any():
            raise InputError(f"Twists of {written} must not all be 0; {written} is the plain torus")
        self._order = _order_of_axes(written, self.shifts)
        along = np.roll(np.eye(count, dtype=bool), 1, axis=1)  # True from each axis to the next
        matrix = tuple(map(tuple, self.shifts.tolist()))
        steps = tuple(self.shifts[along].tolist())
        self.twists: tuple[int, ...] | tuple[tuple[int, ...], ...]
        self.twists = matrix if self.shifts[~along].any() else steps
        self.name = _name_with_axes(self.sides, self.shifts)
        if self.twists == steps:
            self.name = "x".join(
                f"{side}~{twist}" if twist else str(side)
                for side, twist in zip(self.sides, steps, strict=True)
            )
        self.nodes, self.ports = math.prod(self.sides), 2 * count
        self.port_names = tuple(f"{sign}{axis}" for axis in range(count) for sign in "+-")
        self.opposite = np.arange(self.ports) ^ 1

    @classmethod
    def from_lattice(cls, rows: Iterable[Iterable[int]]) -> Self:
        """Return the twisted torus in which combinations of steps lead back to the start.

        Parameters
        ----------
        rows : sequence of sequence of int
            A square matrix. Each row is a combination of steps along the axes that leads back to
            the start; all others are sums of rows. The number of nodes is the absolute value of the
            determinant.

        Raises
        ------
        InputError
            If the rows are not independent, if they describe a plain torus, or if a single step
            leads back to the start.

        Examples
        --------
        Steps to the nodes (3, 2) and (-2, 3) lead back to the start, so there are 13 nodes:

        >>> torus = TwistedTorus.from_lattice([[3, 2], [-2, 3]])
        >>> torus.name, torus.nodes, torus.diameter
        ('1~8x13', 13, 2)
        """
        whole = _triangular_rows(rows)
        sides = [row[axis] for axis, row in enumerate(whole)]
        # Back at the start after a row: once round the axis is the opposite of all other steps.
        shifts = np.zeros((len(sides), len(sides)), object)
        for axis in reversed(range(len(sides))):
            steps = [0] * (axis + 1) + [-n for n in whole[axis][axis + 1 :]]
            for other in range(axis + 1, len(sides)):
                rounds, steps[other] = divmod(steps[other], sides[other])
                for further in range(other + 1, len(sides)):
                    steps[further] += rounds * int(shifts[other, further])
            shifts[axis] = steps
        for axis, side in enumerate(sides):
            if side == 1 and not shifts[axis].any():
                raise InputError(
                    f"Lattice must not lead back to the start in one step along axis {axis}; leave "
                    "out this axis"
                )
        if not shifts.any():
            plain = "x".join(map(str, sides))
            raise InputError(f"This lattice is that of the plain torus {plain}; write {plain}")
        return cls(sides, shifts.tolist())

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if match := re.fullmatch(_LATTICE_FORM, text, re.ASCII):
            rows = [[*map(int, row.split(","))] for row in match[1].split("/")]
            return cls.from_lattice(rows)
        if "~" not in text:
            return None
        if re.fullmatch(_STEPS_FORM, text, re.ASCII):
            parts = [part.partition("~") for part in text.split("x")]
            return cls([int(side) for side, *_ in parts], [int(twist or 0) for *_, twist in parts])
        if match := re.fullmatch(_AXES_FORM, text, re.ASCII):
            sides = [*map(int, match[1].split("x"))]
            _check_sides(sides)
            return cls(sides, _read_twists(sides, match[2]))
        return None

    @override
    def to_json(self) -> dict[str, Any]:
        rows = [[*row] if isinstance(row, tuple) else row for row in self.twists]
        return super().to_json() | {"twists": rows}

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
        return _diagonalize_relations(np.diag(self.sides) - self.shifts)

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return self._cyclic_groups[0]

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        orders, columns = self._cyclic_groups
        steps = np.stack(grid_coordinates(nodes, self.sides))
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
        steps = steps.copy()
        for axis in self._order:  # so that no wrap changes an axis already reduced
            rounds, steps[axis] = np.divmod(steps[axis], self.sides[axis])
            steps += np.outer(self.shifts[axis], rounds)
        nodes: IntArray = np.ravel_multi_index(tuple(steps), self.sides)
        return nodes

    @override
    def node_name(self, node: int) -> str:
        return "(" + ",".join(str(int(x)) for x in np.unravel_index(node, self.sides)) + ")"


def _sides_error(sides: Sequence[object]) -> InputError:
    """Return the error for sides that are too short, too few or too many."""
    return InputError(
        f"Sides of a twisted torus must be two to {MOST_AXES} integers of at least 2, or of 1 "
        f"where the axis has a twist, not {message_text('x'.join(map(str, sides)))}"
    )


def _check_sides(sides: Sequence[Any]) -> None:
    """Raise an error unless these are sides that a twisted torus can have, with some twists."""
    whole = all(type(side) is int and side >= 1 for side in sides)
    if not (whole and 2 <= len(sides) <= MOST_AXES and max(sides) > 1):
        raise _sides_error(sides)
    if math.prod(sides) > MOST_NODES:
        raise InputError(
            f"Twisted torus must have at most {MOST_NODES} nodes, not {math.prod(sides)}"
        )


def _shift_matrix(sides: Sequence[int], twists: Sequence[object]) -> IntArray:
    """Return the matrix of the twists that a user gives, as numbers or as a matrix."""
    count, written = len(sides), "x".join(map(str, sides))
    rows = [entries_of(row) for row in twists]
    matrix = any(isinstance(row, list | tuple | np.ndarray) for row in twists)
    if not matrix and len(rows) == count:
        following = [(axis + 1) % count for axis in range(count)]
        rows = [
            (*[0] * to, *row, *[0] * (count - to - 1))
            for to, row in zip(following, rows, strict=True)
        ]
    if [len(row) for row in rows] == [count] * count and all(
        type(steps) is int and 0 <= steps < side
        for row in rows
        for steps, side in zip(row, sides, strict=True)
    ):
        return np.array(rows)
    form, along = "an integer for each axis", "the side of the next axis"
    if matrix:
        form, along = f"a row of {count} integers for each axis", "the sides of their columns"
    raise InputError(
        f"Twists of {written} must be {form}, from 0 and less than {along}, not "
        f"{message_text(np.array(twists, object).tolist() if matrix else [*twists])}"
    )


def _order_of_axes(written: str, shifts: IntArray) -> tuple[int, ...]:
    """Return the axes in an order in which each axis comes before all axes that it shifts.

    `written` has the sides, for the message of the error.
    """
    order: list[int] = []
    left = [*range(len(shifts))]
    while left:
        free = [axis for axis in left if not shifts[left, axis].any()]
        if not free:
            raise _circle_error(written, shifts[np.ix_(left, left)], left)
        order += free
        left = [axis for axis in left if axis not in free]
    return tuple(order)


def _circle_error(written: str, shifts: IntArray, axes: Sequence[int]) -> InputError:
    """Return the error for twists in which each of `axes` is shifted by another of them."""
    walk = [0]
    while walk[-1] not in walk[:-1]:
        walk.append(int(np.flatnonzero(shifts[:, walk[-1]])[0]))
    circle = [axes[k] for k in walk[walk.index(walk[-1]) :]][::-1]
    parts = [f"axis {a} shifts axis {b}" for a, b in pairwise(circle)]
    return InputError(
        f"Twists of {written} must not form a circle: {', '.join(parts)}; leave out one of these, "
        "or write lattice:ROW/ROW/.. with the steps that lead back to the start"
    )


def _read_twists(sides: Sequence[int], text: str) -> list[list[int]]:
    """Return the matrix of the twists that a user writes behind the sides, as in ``~2:0,1=3``."""
    matrix = [[0] * len(sides) for _ in sides]
    for shifted, wraps in re.findall(_TWIST, text, re.ASCII):
        for item in wraps.split(","):
            wrap, _, steps = item.partition("=")
            for axis in shifted.split(","):
                _add_twist(matrix, sides, (int(axis), int(wrap)), steps)
    return matrix


def _add_twist(
    matrix: list[list[int]], sides: Sequence[int], pair: tuple[int, int], steps: str
) -> None:
    """Enter a twist that a user writes into a matrix of twists.

    `pair` has the axis that is shifted, and the axis whose wrap-around shifts it. `steps` is empty
    for half of the side of the shifted axis.
    """
    axis, wrap = pair
    name = f"Twist ~{axis}:{wrap}"
    if max(pair) >= len(sides):
        raise InputError(f"{name} must have axes from 0 to {len(sides) - 1}, not {max(pair)}")
    if axis == wrap:
        raise InputError(f"{name} must have two different axes; no axis shifts itself")
    if matrix[wrap][axis]:
        raise InputError(f"{name} must be written only once")
    side = sides[axis]
    if not steps and side % 2:
        raise InputError(
            f"{name} must have a number of steps, because half of the side {side} is not an "
            f"integer; write for example ~{axis}:{wrap}={side // 2}"
        )
    if steps and not int(steps) < side:
        raise InputError(f"{name} must be less than {side}, the side of axis {axis}, not {steps}")
    matrix[wrap][axis] = int(steps or side // 2)


def _name_with_axes(sides: Sequence[int], shifts: IntArray) -> str:
    """Return the name of a twisted torus by its sides and the axes of its twists: ``4x4x8~2:0``."""
    shifted: dict[str, list[int]] = {}
    for axis, (side, column) in enumerate(zip(sides, shifts.T.tolist(), strict=True)):
        items = [
            str(wrap) if 2 * steps == side else f"{wrap}={steps}"
            for wrap, steps in enumerate(column)
            if steps
        ]
        if items:
            shifted.setdefault(",".join(items), []).append(axis)
    twists = (f"~{','.join(map(str, axes))}:{items}" for items, axes in shifted.items())
    return "x".join(map(str, sides)) + "".join(twists)


def _triangular_rows(rows: Iterable[Iterable[int]]) -> list[list[int]]:
    """Return rows of the same lattice as `rows`, in which row k begins with k zeros.

    The entry behind these zeros is positive. The result is a Hermite normal form, except that the
    entries above it need not be smaller.
    """
    left = [[*entries_of(row)] for row in entries_of(rows)]
    count, written = len(left), message_text(left)
    if not 2 <= count <= MOST_AXES or any(
        len(row) != count or any(type(entry) is not int for entry in row) for row in left
    ):
        raise InputError(
            f"Lattice must be a square matrix of integers with 2 to {MOST_AXES} rows, as in "
            f"lattice:4,0,4/0,4,4/0,0,8, not {written}"
        )
    for axis in range(count):
        while True:
            below = [k for k in range(axis, count) if left[k][axis]]
            if not below:
                raise InputError(
                    f"Rows of a lattice must be independent, not {written}: no row may be a sum "
                    "of multiples of the others"
                )
            least = min(below, key=lambda k: abs(left[k][axis]))
            left[axis], left[least] = left[least], left[axis]
            pivot = left[axis]
            for k in range(axis + 1, count):
                times = left[k][axis] // pivot[axis]
                left[k] = [entry - times * own for entry, own in zip(left[k], pivot, strict=True)]
            if not any(row[axis] for row in left[axis + 1 :]):
                break
        if left[axis][axis] < 0:
            left[axis] = [-entry for entry in left[axis]]
    return left


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
