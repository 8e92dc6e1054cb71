"""Cayley graphs of finite abelian groups: networks that look the same from every node.

Node 0 is the neutral element of the group. Port ``p`` of node ``v`` leads to node
``v + generators[p]``. Planners use this symmetry: they plan for node 0, and translate the result to
all other nodes by `CayleyGraph.add` and `CayleyGraph.subtract`.

Whenever a topology is made, `validate` proves that its class describes a Cayley graph. Why: other
packages may register classes, and a wrong one would produce wrong schedules. `Torus` and
`Arrowhead` are proved by tests instead; their subclasses are proved here.
"""

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from typing_extensions import override

from ..errors import InputError
from ..toolchain.public import public_class
from .topology import IntArray, IntLike, Topology, cached_array, hops_from

__all__ = [
    "CayleyGraph",
    "check_supports_any_root",
    "grid_coordinates",
    "require_cayley_graph",
]


@public_class
class CayleyGraph(Topology):
    """A Cayley graph of a finite abelian group.

    A subclass defines the abstract members here and in `Topology` (except `neighbours`), and the
    attributes. `moduli` and `coordinates` define the group. Every other member must agree with
    them, else making a topology raises an `InputError`. A message that leaves by port ``p`` returns
    by port ``opposite[p]``.

    Examples
    --------
    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("arrowhead:2")
    >>> topology.nodes, topology.ports, topology.diameter
    (16, 6, 2)
    """

    @property
    @abstractmethod
    def generators(self) -> IntArray:
        """The neighbour of node 0 at each port, an int array of shape (ports,)."""

    @property
    @abstractmethod
    def moduli(self) -> tuple[int, ...]:
        """The orders (numbers of elements) of the cyclic groups whose product is the group."""

    @abstractmethod
    def coordinates(self, nodes: IntLike) -> IntArray:
        """Return the coordinates of nodes in the cyclic groups, one row for each group.

        The shape is ``(len(moduli), *nodes.shape)``. Two nodes never have the same coordinates.
        Those of node 0 are all 0.
        """

    def add(self, a: IntLike, b: IntLike) -> IntArray:
        """Return the sum in the group, elementwise: node ``a`` translated by ``b``."""
        return self.sum_of_coordinates(a, b)

    def subtract(self, a: IntLike, b: IntLike) -> IntArray:
        """Return the difference in the group, elementwise: the offset of ``a`` from ``b``."""
        return self.sum_of_coordinates(a, b, sign=-1)

    def sum_of_coordinates(self, a: IntLike, b: IntLike, *, sign: int = 1) -> IntArray:
        """Return the nodes with the coordinates of ``a`` plus ``sign`` times those of ``b``, modulo
        `moduli`.

        Works elementwise. `add` and `subtract` call it unless a class has a faster method.
        """
        parts, node_at = self._coordinate_tables
        a, b = np.asarray(a), np.asarray(b)
        where: Any = 0
        for part, modulus in zip(parts, self.moduli, strict=True):
            where = where * modulus + (part[a] + sign * part[b]) % modulus
        nodes: IntArray = node_at[where + np.zeros_like(a + b)]
        return nodes

    @cached_array
    def _coordinate_tables(self) -> tuple[IntArray, IntArray]:
        """Two tables that convert between nodes and coordinates.

        The first, shape (cyclic groups, nodes), has the coordinates of each node. The second, shape
        (nodes,), lists the nodes in row-major order of their coordinates.
        """
        parts = np.asarray(self.coordinates(np.arange(self.nodes))).astype(np.int64)
        node_at = np.empty(self.nodes, np.int64)
        node_at[np.ravel_multi_index(tuple(parts), self.moduli) if len(parts) else 0] = np.arange(
            self.nodes
        )
        return parts, node_at

    @cached_property
    def has_parallel_links(self) -> bool:
        """True if two ports of a node lead to the same neighbour, as along a side of 2."""
        return len(np.unique(self.generators)) < self.ports

    @cached_array
    def distances(self) -> IntArray:
        """The hops from node 0 to every node, an int array of shape (nodes,)."""
        return hops_from(self.neighbours)

    @override
    def validate(self) -> None:
        from .validate import validate_cayley_graph

        validate_cayley_graph(self)

    @property
    @override
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        return self.moduli, self.coordinates(np.arange(self.nodes))

    @cached_array
    @override
    def neighbours(self) -> IntArray:
        nodes = np.arange(self.nodes)
        columns = [self.add(nodes, g) for g in self.generators]
        return np.stack(columns, axis=1).astype(np.int32) if columns else np.empty((1, 0), np.int32)

    @cached_property
    @override
    def diameter(self) -> int:
        return int(self.distances.max())

    @cached_property
    @override
    def diameter_cycles(self) -> int:
        if isinstance(self.link_latency, int):
            return self.diameter * self.link_latency
        return int(self.cycles_from(0).max())

    @override
    def distance(self, a: IntLike, b: IntLike) -> IntArray:
        return self.distances[self.subtract(b, a)]


def require_cayley_graph(topology: Topology) -> CayleyGraph:
    """Return `topology` if it is a Cayley graph, else raise a `TypeError`."""
    if not isinstance(topology, CayleyGraph):
        raise TypeError(f"Topology must be a Cayley graph here, not {topology}")
    return topology


def check_supports_any_root(topology: Topology) -> None:
    """Raise an `InputError` if a fabric on this topology cannot choose its root in each run.

    Such a fabric runs the schedule for root 0 after a translation, so it needs a Cayley graph.
    """
    if not isinstance(topology, CayleyGraph):
        raise InputError(
            f"Root any needs a network that looks the same from every node, which {topology} does "
            "not; give a node number"
        )


def grid_coordinates(nodes: IntLike, sides: tuple[int, ...]) -> tuple[IntArray, ...]:
    """Return the coordinates of nodes of a row-major grid, an array for each axis.

    The nodes are flattened first. Why: for an array of shape (n, 1) with n above 8192,
    `numpy.unravel_index` returns wrong entries (seen in NumPy 2.4).

    Parameters
    ----------
    nodes : array_like of int
        Nodes of the grid.
    sides : tuple of int
        Side lengths of the grid.

    Raises
    ------
    TypeError, ValueError
        If a node is no integer, or not in the grid.

    Examples
    --------
    >>> [along.tolist() for along in grid_coordinates([[5], [11]], (3, 4))]
    [[[1], [2]], [[1], [3]]]
    """
    flat = np.unravel_index(np.ravel(nodes), sides)
    return tuple(along.reshape(np.shape(nodes))[()] for along in flat)
