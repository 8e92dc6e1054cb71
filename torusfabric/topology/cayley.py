"""What every topology is: a Cayley graph of a finite abelian group, as numpy tables.

A node is an integer. Node 0 is the neutral element of the group; port ``p`` of node ``v`` leads to
``v + generator[p]``. Everything translation-invariant follows from `Topology.add` and
`Topology.subtract`; everything else from the `Topology.neighbours` table.
"""

import re
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from ..errors import InputError

__all__ = ["Topology"]


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

    @property
    @abstractmethod
    def moduli(self):
        """The orders of the cyclic groups whose product is the group, a tuple of int."""

    @abstractmethod
    def coordinates(self, nodes):
        """The parts of nodes in those groups: an int array of shape (len(moduli), *nodes.shape)."""

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

    @property
    def dimensions(self) -> int:
        """Number of axes along which the topology can be cut into groups; 0 where it has none."""
        return 0

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
