"""The topologies: the torus here, the others in modules of their own, and how users name them.

A new topology implements the few abstract members of `Topology` and is entered in `parse_topology`
and `topology_from_json`.
"""

import math
import re
from functools import cached_property

import numpy as np

from ..errors import InputError
from .arrowhead import Arrowhead
from .cayley import Topology

__all__ = ["Arrowhead", "Topology", "Torus", "parse_topology", "topology_from_json"]

#: More nodes than this do not fit the 32-bit node numbers used in all tables.
MAX_NODES = 2**31 - 1


class Torus(Topology):
    """A torus of any number of sides.

    Nodes are numbered row-major, the last coordinate fastest. Ports are ``+0 -0 +1 -1 ..``: sign
    and axis. An axis of length 2 has two parallel links, told apart by port.

    Parameters
    ----------
    sides : sequence of int
        The side lengths, each at least 2.

    Raises
    ------
    InputError
        If there is no side, a side is shorter than 2, or there are more than 2**31 - 1 nodes.
    """

    def __init__(self, sides):
        sides = tuple(sides)
        if not sides or not all(isinstance(s, int | np.integer) and s >= 2 for s in sides):
            written = "x".join(map(str, sides))
            raise InputError(f"Sides of a torus must be integers of at least 2, not {written!r}")
        if math.prod(sides) > MAX_NODES:
            raise InputError(f"Torus must have at most {MAX_NODES} nodes, not {math.prod(sides)}")
        self.sides = tuple(int(s) for s in sides)
        self.name = "x".join(map(str, sides))
        self.nodes = math.prod(self.sides)
        self.ports = 2 * len(sides)
        self.port_names = tuple(f"{sign}{axis}" for axis in range(len(sides)) for sign in "+-")
        self.opposite = np.arange(self.ports) ^ 1

    @property
    def dimensions(self) -> int:
        return len(self.sides)

    @property
    def moduli(self):
        return self.sides

    def coordinates(self, nodes):
        return np.stack(np.unravel_index(nodes, self.sides))

    def node(self, coordinates):
        """Node numbers at coordinates, taken modulo the sides."""
        return np.ravel_multi_index(tuple(np.asarray(coordinates)), self.sides, mode="wrap")

    def add(self, a, b):
        if len(self.sides) == 1:
            return (np.asarray(a) + b) % self.nodes
        a, b = np.unravel_index(a, self.sides), np.unravel_index(b, self.sides)
        return np.ravel_multi_index(
            tuple((x + y) % s for x, y, s in zip(a, b, self.sides, strict=True)), self.sides
        )

    def subtract(self, a, b):
        a, b = np.unravel_index(a, self.sides), np.unravel_index(b, self.sides)
        return np.ravel_multi_index(
            tuple((x - y) % s for x, y, s in zip(a, b, self.sides, strict=True)), self.sides
        )

    @cached_property
    def generators(self):
        axes = np.repeat(np.eye(len(self.sides), dtype=int), 2, axis=0)
        signs = np.tile([1, -1], len(self.sides))
        return self.node((axes * signs[:, None]).T)

    @cached_property
    def distances(self):
        total = np.zeros(self.sides, np.int32)
        for axis, side in enumerate(self.sides):
            along = np.minimum(np.arange(side), side - np.arange(side)).astype(np.int32)
            total += along.reshape([-1 if a == axis else 1 for a in range(len(self.sides))])
        return total.ravel()

    @cached_property
    def diameter(self):
        return sum(side // 2 for side in self.sides)

    def node_name(self, node):
        return "(" + ",".join(str(int(x)) for x in self.coordinates(node)) + ")"

    def to_json(self):
        return {"kind": "torus", "sides": list(self.sides)}


def parse_topology(text):
    """The topology a user names.

    Parameters
    ----------
    text : str
        ``8x8``, ``7x7x7``, a single number for a ring, or ``arrowhead:3`` for an arrowhead torus.

    Raises
    ------
    InputError
        If the text names no topology.
    """
    if re.fullmatch(r"\d+(x\d+)*", text):
        return Torus([int(side) for side in text.split("x")])
    if match := re.fullmatch(r"arrowhead:(\d+)", text):
        return Arrowhead(int(match[1]))
    raise InputError(
        f"Topology must be side lengths such as 8x8 or 7x7x7, or arrowhead:ORDER, not {text!r}"
    )


def topology_from_json(entry):
    """The topology of a schedule file's ``topology`` entry.

    Raises
    ------
    InputError
        If the entry names no topology.
    """
    match entry:
        case {"kind": "torus", "sides": [*sides]}:
            return Torus(sides)
        case {"kind": "arrowhead", "order": order}:
            return Arrowhead(order)
    raise InputError(
        'Topology must be {"kind": "torus", "sides": [..]} or {"kind": "arrowhead", "order": ..}, '
        f"not {entry!r}"
    )
