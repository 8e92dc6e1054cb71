"""What every topology is: a Cayley graph of a finite abelian group, as numpy tables.

A node is an integer. Node 0 is the neutral element of the group; port ``p`` of node ``v`` leads to
``v + generator[p]``. Everything translation-invariant follows from `Topology.add` and
`Topology.subtract`; everything else from the `Topology.neighbours` table. What a class says of its
topologies is proved when one is made; see `validate`.
"""

import re
from abc import ABCMeta, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self

from ..errors import InputError
from ..toolchain.hints import no_such
from .arrays import IntArray, IntLike

__all__ = ["Topology", "hops_from"]


class _Validated(ABCMeta):
    """What makes topologies, and has each of them validated as soon as it is made."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        topology = super().__call__(*args, **kwargs)
        topology.validate()
        return topology


class Topology(metaclass=_Validated):
    """A Cayley graph of a finite abelian group.

    A class of topologies defines the members that are abstract here, and the attributes. Users name
    its topologies once it is registered with `register_topology`. Making a topology that is not
    what it must be is an `InputError`; `moduli` and `coordinates` say which group it is, and
    whatever else the class defines must agree with them.

    Attributes
    ----------
    kind : str
        The name of the class in a schedule file.
    notation : str
        How users write its topologies, for error messages, e.g. ``arrowhead:ORDER``.
    entry : str
        How a schedule file writes them, for error messages.
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
    link_latency : int
        Cycles from one end of a link to the other; values other than 1 are refused for the present.

    Examples
    --------
    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("arrowhead:2")
    >>> topology.nodes, topology.ports, topology.diameter
    (16, 6, 2)
    """

    kind: ClassVar[str]
    notation: ClassVar[str]
    entry: ClassVar[str]

    name: str
    nodes: int
    ports: int
    port_names: tuple[str, ...]
    opposite: IntArray
    link_latency: int = 1

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self | None:
        """The topology that a user names, or None if the text names none of this class."""

    @classmethod
    @abstractmethod
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        """The topology of an entry of a schedule file, or None if the entry has another form."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The topology as an entry of a schedule file; its ``kind`` is that of the class."""

    @property
    @abstractmethod
    def generators(self) -> IntArray:
        """The neighbour of node 0 at each port, an int array of shape (ports,)."""

    @property
    @abstractmethod
    def moduli(self) -> tuple[int, ...]:
        """The orders of the cyclic groups whose product is the group."""

    @abstractmethod
    def coordinates(self, nodes: IntLike) -> IntArray:
        """The parts of nodes in those groups: an int array, ``len(moduli)`` by nodes.

        Different for all nodes, and 0 for node 0.
        """

    @abstractmethod
    def node_name(self, node: int) -> str:
        """The name of a node for people, e.g. ``(1,2)``."""

    def add(self, a: IntLike, b: IntLike) -> IntArray:
        """Sum in the group, elementwise over node numbers: node ``a`` translated by ``b``."""
        return self.sum_of_coordinates(a, b)

    def subtract(self, a: IntLike, b: IntLike) -> IntArray:
        """Difference in the group, elementwise: the offset of node ``a`` from node ``b``."""
        return self.sum_of_coordinates(a, b, sign=-1)

    def sum_of_coordinates(self, a: IntLike, b: IntLike, *, sign: int = 1) -> IntArray:
        """The nodes whose coordinates are those of ``a`` plus ``sign`` times those of ``b``.

        Modulo `moduli`, elementwise. This is what `add` and `subtract` are unless a class has
        quicker ways of its own.
        """
        parts, node_at = self._numbering
        a, b = np.asarray(a), np.asarray(b)
        where: Any = 0
        for part, modulus in zip(parts, self.moduli, strict=True):
            where = where * modulus + (part[a] + sign * part[b]) % modulus
        nodes: IntArray = node_at[where + np.zeros_like(a + b)]
        return nodes

    @cached_property
    def _numbering(self) -> tuple[IntArray, IntArray]:
        """The coordinates of all nodes, and the node at each place of a row-major grid of them."""
        parts = np.asarray(self.coordinates(np.arange(self.nodes))).astype(np.int64)
        node_at = np.empty(self.nodes, np.int64)
        node_at[np.ravel_multi_index(tuple(parts), self.moduli) if len(parts) else 0] = np.arange(
            self.nodes
        )
        return parts, node_at

    @cached_property
    def distances(self) -> IntArray:
        """The distance of every node from node 0, an int array of shape (nodes,)."""
        return hops_from(self.neighbours)

    def validate(self) -> None:
        """Refuse a topology that is not what it must be; called when it is made.

        Raises
        ------
        InputError
            Names the first member that is wrong.
        """
        from .validate import validate

        validate(self)

    @property
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        """The sides of a grid, and where in it each node is drawn: as `moduli`, `coordinates`."""
        return self.moduli, self.coordinates(np.arange(self.nodes))

    @property
    def dimensions(self) -> int:
        """Number of axes along which the topology can be cut into groups; 0 where it has none."""
        return 0

    @cached_property
    def neighbours(self) -> IntArray:
        """Neighbour table: an int32 array of shape (nodes, ports)."""
        nodes = np.arange(self.nodes)
        columns = [self.add(nodes, g) for g in self.generators]
        return np.stack(columns, axis=1).astype(np.int32) if columns else np.empty((1, 0), np.int32)

    @cached_property
    def diameter(self) -> int:
        """The largest distance between two nodes."""
        return int(self.distances.max())

    def distance(self, a: IntLike, b: IntLike) -> IntArray:
        """Distance from node ``a`` to node ``b``, elementwise."""
        return self.distances[self.subtract(b, a)]

    def port(self, name: str | int) -> int:
        """The number of a port, given its name or number.

        Raises
        ------
        InputError
            If there is no such port.
        """
        if name in self.port_names:
            return self.port_names.index(str(name))
        if re.fullmatch(r"\d{1,9}", str(name)) and int(name) < self.ports:
            return int(name)
        raise no_such("Port", name, self.port_names)

    def arc(self, link: object) -> tuple[int, int]:
        """The arc that a user names: ``9:+0``, or a node and a port's name or number.

        Raises
        ------
        InputError
            If there is no such node or port.
        """
        node, port = "", ""
        if isinstance(link, str):
            node, _, port = link.partition(":")
        elif isinstance(link, tuple | list) and len(link) == 2:
            node, port = link
        if not re.fullmatch(r"\d{1,18}", str(node)) or int(node) >= self.nodes or port == "":
            raise InputError(
                f"Broken link must be NODE:PORT with a node below {self.nodes}, not {link!r}"
            )
        return int(node), self.port(port)

    def arc_name(self, node: int, port: int) -> str:
        """An arc for people, e.g. ``node 9 (1,1) port +0``."""
        return f"node {node} {self.node_name(node)} port {self.port_names[port]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def hops_from(neighbours: IntArray) -> IntArray:
    """Hops from node 0 to every node of a neighbour table, -1 where there is no way."""
    hops = np.full(len(neighbours), -1, np.int32)
    reached, count = np.zeros(1, np.int64), 0
    while reached.size:
        hops[reached] = count
        following = neighbours[reached].ravel()
        reached, count = np.unique(following[hops[following] < 0]), count + 1
    return hops
