"""Topologies: Cayley graphs of finite abelian groups, as numpy tables.

A node is an integer. Node 0 is the neutral element of the group; port ``p`` of node ``v`` leads to
``v + generator[p]``. Everything translation-invariant follows from `Topology.add` and
`Topology.subtract`; everything else from the `neighbours` table. A new topology implements the few
abstract members of `Topology` and is entered in `parse_topology`.
"""

import math
import re
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from .errors import InputError

__all__ = ["Topology", "Torus", "parse_topology", "topology_from_json"]

#: More nodes than this do not fit the 32-bit node numbers used in all tables.
MAX_NODES = 2**31 - 1


class Topology(ABC):
    """A Cayley graph of a finite abelian group.

    Attributes
    ----------
    name : str
        What the user writes, e.g. ``8x8``.
    nodes : int
        Number of nodes, N.
    ports : int
        Number of ports of a node: the degree, counting parallel links.
    port_names : tuple of str
        The name of each port.
    opposite : ndarray of int, shape (ports,)
        The in-port of the neighbour by which a message leaving on a port arrives, which is also the
        port that leads back.
    """

    name: str
    nodes: int
    ports: int
    port_names: tuple[str, ...]
    opposite: np.ndarray

    @abstractmethod
    def add(self, a, b):
        """Sum in the group, elementwise over node numbers: node ``a`` translated by ``b``."""

    @abstractmethod
    def subtract(self, a, b):
        """Difference in the group, elementwise: the offset of node ``a`` from node ``b``."""

    @property
    @abstractmethod
    def generators(self):
        """The neighbour of node 0 at each port, an int array of shape (ports,)."""

    @property
    @abstractmethod
    def distances(self):
        """The distance of every node from node 0, an int array of shape (nodes,)."""

    @abstractmethod
    def node_name(self, node):
        """The name of a node for people, e.g. ``(1,2)``."""

    @abstractmethod
    def to_json(self):
        """The topology as an entry of a schedule file."""

    @property
    def kind(self):
        """The name of the family, as in a schedule file."""
        return self.to_json()["kind"]

    @cached_property
    def neighbours(self):
        """Neighbour table: an int32 array of shape (nodes, ports)."""
        nodes = np.arange(self.nodes)
        columns = [self.add(nodes, g) for g in self.generators]
        return np.stack(columns, axis=1).astype(np.int32) if columns else np.empty((1, 0), np.int32)

    @cached_property
    def diameter(self):
        """The largest distance between two nodes."""
        return int(self.distances.max())

    def distance(self, a, b):
        """Distance from node ``a`` to node ``b``, elementwise."""
        return self.distances[self.subtract(b, a)]

    def port(self, name):
        """The number of a port, given its name or number.

        Raises
        ------
        InputError
            If there is no such port.
        """
        if name in self.port_names:
            return self.port_names.index(name)
        if re.fullmatch(r"\d+", str(name)) and int(name) < self.ports:
            return int(name)
        raise InputError(f"Port must be one of {', '.join(self.port_names)}, not {name!r}")

    def arc_name(self, node, port):
        """An arc for people, e.g. ``node 9 (1,1) port +0``."""
        return f"node {node} {self.node_name(node)} port {self.port_names[port]}"

    def __eq__(self, other):
        return isinstance(other, Topology) and self.to_json() == other.to_json()

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


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

    def coordinates(self, nodes):
        """Coordinates of nodes: an int array of shape (axes, nodes)."""
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
        ``8x8``, ``7x7x7``, or a single number for a ring.

    Raises
    ------
    InputError
        If the text names no topology.
    """
    if re.fullmatch(r"\d+(x\d+)*", text):
        return Torus([int(side) for side in text.split("x")])
    raise InputError(f"Topology must be side lengths such as 8x8 or 7x7x7, not {text!r}")


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
    raise InputError(f'Topology must be {{"kind": "torus", "sides": [..]}}, not {entry!r}')
