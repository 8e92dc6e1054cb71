"""The torus, the network for which most algorithms of this package are made."""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import cast

import numpy as np
from typing_extensions import override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, message_text
from .cayley import CayleyGraph, grid_coordinates
from .latency import Latency, parse_latency
from .topology import EntryTopology, IntArray, IntLike, cached_array

__all__ = ["Torus"]

#: More nodes than this do not fit the 32-bit node numbers used in all tables.
MAX_NODES = 2**31 - 1


@public_class
class Torus(EntryTopology, CayleyGraph):
    """A torus with any number of sides.

    Nodes are numbered row-major, the last coordinate fastest. Ports are ``+0 -0 +1 -1 ..``: a
    direction and an axis. The nodes of the torus 3x4, and the ports of node 5::

        0  1  2  3               -0
        4  5  6  7            -1  5  +1
        8  9 10 11               +0

    An axis of length 2 has two parallel links between its two nodes, which differ by port.

    Parameters
    ----------
    *sides : int
        The side lengths, each at least 2; or one sequence of them.
    link_latency : int, str, sequence of int or mapping of int to int
        Cycles of all links, or of the links of each axis: ``4``, ``(1, 4)``, ``{1: 4}``, ``"1:4"``.

    Raises
    ------
    InputError
        If there is no side, a side is shorter than 2, or there are more than 2**31 - 1 nodes.

    Examples
    --------
    >>> torus = Torus(4, 6)
    >>> torus.nodes, torus.diameter, torus.port_names
    (24, 5, ('+0', '-0', '+1', '-1'))
    >>> torus.neighbours[0].tolist()
    [6, 18, 1, 5]
    >>> torus == Torus([4, 6])
    True
    >>> Torus(4, 6, link_latency={1: 4})
    <Torus 4x6, links of 0:1,1:4 cycles>
    """

    kind = "torus"
    notation = "side lengths such as 8x8 or 7x7x7"
    pattern = r"([0-9]{1,18}(?:x[0-9]{1,18})*)"
    entry = '{"kind": "torus", "sides": [..]}'

    def __init__(self, *sides: int | Iterable[int], link_latency: Latency = 1) -> None:
        self.sides = _check_sides(sides)
        if math.prod(self.sides) > MAX_NODES:
            nodes = math.prod(self.sides)
            number = nodes if nodes < 10**20 else f"some 10^{int(math.log10(nodes))}"
            raise InputError(f"Torus must have at most {MAX_NODES} nodes, not {number}")
        self.name = "x".join(map(str, self.sides))
        self.nodes, self.dimensions = math.prod(self.sides), len(self.sides)
        self.ports = 2 * len(self.sides)
        self.port_names = tuple(f"{sign}{axis}" for axis in range(self.dimensions) for sign in "+-")
        self.opposite = np.arange(self.ports) ^ 1
        if not isinstance(link_latency, int) or link_latency != 1:
            self.link_latency = parse_latency(link_latency, self.dimensions, self.name)

    @override
    def validate(self) -> None:
        if type(self) is not Torus:  # tests prove this class; a subclass is validated
            from .validate import validate_cayley_graph

            validate_cayley_graph(self, lambda: Torus(self.sides))

    @property
    @override
    def moduli(self) -> tuple[int, ...]:
        return self.sides

    def _coordinates_by_axis(self, nodes: IntLike) -> tuple[IntArray, ...]:
        """Return the coordinates of nodes, an array for each axis."""
        try:
            return grid_coordinates(nodes, self.sides)
        except (TypeError, ValueError):
            raise InputError(
                f"Nodes of {self} must be from 0 to {self.nodes - 1}, not {message_text(nodes)}"
            ) from None

    @override
    def coordinates(self, nodes: IntLike) -> IntArray:
        return np.stack(self._coordinates_by_axis(nodes))

    def node(self, coordinates: Iterable[IntLike]) -> IntArray:
        """Return node numbers at coordinates, one entry for each axis, taken modulo its side."""
        each, axes = tuple(coordinates), self.dimensions
        if len(each) != axes:
            raise InputError(f"Coordinates of {self} must be {axes}, one an axis, not {len(each)}")
        return cast(IntArray, np.ravel_multi_index(each, self.sides, mode="wrap"))

    @override
    def add(self, a: IntLike, b: IntLike) -> IntArray:
        return self.node(
            x + y
            for x, y in zip(self._coordinates_by_axis(a), self._coordinates_by_axis(b), strict=True)
        )

    @override
    def subtract(self, a: IntLike, b: IntLike) -> IntArray:
        return self.node(
            x - y
            for x, y in zip(self._coordinates_by_axis(a), self._coordinates_by_axis(b), strict=True)
        )

    @cached_array
    @override
    def generators(self) -> IntArray:
        axes = np.repeat(np.eye(len(self.sides), dtype=int), 2, axis=0)
        signs = np.tile([1, -1], len(self.sides))
        return self.node((axes * signs[:, None]).T)

    @cached_array
    @override
    def distances(self) -> IntArray:
        total = np.zeros(self.sides, np.int32)
        for axis, side in enumerate(self.sides):
            along = np.minimum(np.arange(side), side - np.arange(side)).astype(np.int32)
            total += along.reshape([-1 if a == axis else 1 for a in range(len(self.sides))])
        return total.ravel()

    @cached_property
    @override
    def diameter(self) -> int:
        return sum(side // 2 for side in self.sides)

    @override
    def node_name(self, node: int) -> str:
        return "(" + ",".join(str(int(x)) for x in self.coordinates(node)) + ")"


def _check_sides(given: tuple[int | Iterable[int], ...]) -> tuple[int, ...]:
    """Return side lengths, where `given` has them one by one, or all in one sequence."""
    first = given[0] if len(given) == 1 else given
    sides = entries_of(first)
    valid = [side for side in sides if type(side) is int and side >= 2]
    if not sides or len(valid) < len(sides):
        written = "x".join(map(str, sides))
        raise InputError(f"Sides of a torus must be integers of at least 2, not {written!r}")
    return tuple(valid)
