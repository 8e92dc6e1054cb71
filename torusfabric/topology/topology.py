"""The base class of all networks: strongly connected directed graphs with named ports, as tables.

A node is an integer. A message that leaves node ``v`` by port ``p`` arrives at node
``neighbours[v, p]``, at its in-port ``opposite[p]``. A port may have no link: then ``linked[v, p]``
is False, and ``neighbours[v, p]`` is ``v`` itself. The subclass `CayleyGraph` adds translations for
networks that look the same from every node.
"""

import re
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import message_text, suggest_name, unknown_name_error
from .latency import Latency, parse_latency

__all__ = ["BoolArray", "EntryTopology", "IntArray", "IntLike", "Topology", "limit_nodes",
           "cached_array", "freeze_arrays", "hops_from", "node_ranges"]  # fmt: skip

#: The longest list of similar names in a message, in characters.
LONGEST_HINT = 60

#: An array of node numbers, ports, offsets, blocks and the like.
IntArray: TypeAlias = NDArray[np.integer[Any]]

#: An argument of a function that works elementwise: an integer, or an array or list of integers.
IntLike: TypeAlias = int | np.integer[Any] | Sequence[int] | IntArray

#: An array of flags.
BoolArray: TypeAlias = NDArray[np.bool_]


Cached = TypeVar("Cached")


class cached_array(cached_property[Cached]):
    """A cached property whose value is a read-only array, or a tuple of read-only arrays.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.Torus(3).neighbours.flags.writeable
    False
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Cached: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Any:
        found = super().__get__(instance, owner)
        if instance is not None:
            freeze_arrays(found if isinstance(found, tuple) else (found,))
        return found


def freeze_arrays(values: Iterable[Any]) -> None:
    """Make all arrays among some values read-only, because several objects share them."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


#: The limit set by `limit_nodes`: the subject of its error message, and the most nodes allowed.
_most_nodes: ContextVar[tuple[str, int]] = ContextVar("_most_nodes", default=("Network", 2**31 - 1))


@contextmanager
def limit_nodes(what: str, most: int) -> Iterator[None]:
    """Refuse to make a topology of more than `most` nodes in the body of the ``with`` statement.

    `what` is the subject of the error message. The number of nodes is checked before
    `Topology.validate` is called, because a validation takes long for a large topology.
    """
    token = _most_nodes.set((what, most))
    try:
        yield
    finally:
        _most_nodes.reset(token)


class _ValidatingMeta(ABCMeta):
    """Metaclass of topologies: validates each topology when it is made, and freezes its arrays."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        topology = super().__call__(*args, **kwargs)
        what, most = _most_nodes.get()
        if isinstance(topology.nodes, int) and topology.nodes > most:
            raise InputError(f"{what} must have at most {most} nodes, not {topology}")
        topology.validate()
        freeze_arrays(vars(topology).values())
        return topology


@public_class
class Topology(metaclass=_ValidatingMeta):
    """A strongly connected directed graph with named ports, perhaps with parallel arcs.

    A subclass defines the abstract members and the attributes below. Users can name its topologies
    once the class is registered with `register_topology`.

    Attributes
    ----------
    kind : str
        The name of the class in a schedule file.
    notation : str
        The form in which users write its topologies, for error messages, e.g. ``arrowhead:ORDER``.
    entry : str
        The form in which a schedule file writes them, for error messages.
    name : str
        The name as a user writes it, e.g. ``8x8``.
    nodes : int
        Number N of nodes.
    ports : int
        Number of ports of each node; parallel links count separately. If nodes differ, the largest
        number.
    port_names : tuple of str
        The name of each port.
    opposite : ndarray of int, shape (ports,)
        A message that leaves by out-port p arrives at in-port ``opposite[p]`` of the neighbour. All
        entries are different.
    dimensions : int
        Number of axes along which the topology can be cut into groups; 0 if it has no axes.
    relays : tuple of int
        The nodes that only pass on: switches without an endpoint, which send and receive nothing of
        their own. Collectives run among the other nodes.
    link_latency : int or tuple of int
        Cycles from a router to the in-port of its neighbour. One number for all links, or one for
        each axis. Latency 1 is the out-port register alone.

    Examples
    --------
    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("mesh:3x4")
    >>> topology.nodes, topology.ports, topology.diameter
    (12, 4, 5)
    >>> topology.linked[0].tolist()
    [True, False, True, False]
    """

    kind: ClassVar[str]
    notation: ClassVar[str]
    entry: ClassVar[str]

    name: str
    nodes: int
    ports: int
    port_names: tuple[str, ...]
    opposite: IntArray
    dimensions: int = 0
    relays: tuple[int, ...] = ()
    link_latency: int | tuple[int, ...] = 1

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self | None:
        """Return the topology that a user names, or None if the text has another form."""

    @classmethod
    @abstractmethod
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        """Return the topology of a schedule-file entry, or None if the entry has another form."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the topology as an entry of a schedule file; ``kind`` is that of the class."""

    @property
    @abstractmethod
    def neighbours(self) -> IntArray:
        """The neighbour table, an int32 array of shape (nodes, ports).

        Where a port has no link, the neighbour is the node itself.
        """

    @abstractmethod
    def node_name(self, node: int) -> str:
        """Return the name of a node for people, e.g. ``(1,2)``."""

    @abstractmethod
    def validate(self) -> None:
        """Check the topology; called whenever a topology is made.

        Raises
        ------
        InputError
            If a member is wrong. The message names the first such member.
        """

    @property
    @abstractmethod
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        """The grid in which the topology is drawn: its sides, and the coordinates of each node.

        Without a grid, the tuple of sides is empty.

        Returns
        -------
        sides : tuple of int
            The number of places along each axis of the grid.
        coordinates : ndarray of int, shape (axes, nodes)
            Column v has the coordinates of node v in the grid.
        """

    def on_links(self, latency: Latency) -> Self:
        """Return the same topology with another link latency.

        Raises
        ------
        InputError
            If the latency is invalid, or names axes that the topology does not have.

        Examples
        --------
        The links along axis 1, those at ports 2 and 3, get a latency of 4 cycles.

        >>> from torusfabric.topology import Torus
        >>> Torus(4, 4).on_links("1:4").cycles_of_port.tolist()
        [1, 1, 4, 4]
        """
        changed = copy(self)
        for name in ("cycles_of_port", "cycles_of_arc", "diameter_cycles", "backwards"):
            changed.__dict__.pop(name, None)
        changed.link_latency = parse_latency(latency, self.dimensions, self.name)
        return changed

    @cached_array
    def cycles_of_port(self) -> IntArray:
        """The link latency at each port in cycles, an int array of shape (ports,)."""
        if isinstance(self.link_latency, int):
            return np.full(self.ports, self.link_latency)
        return np.repeat(self.link_latency, 2)

    @property
    def cycles_of_arc(self) -> IntArray:
        """The link latency at each port of each node in cycles, shape (nodes, ports)."""
        return np.broadcast_to(self.cycles_of_port, (self.nodes, self.ports))

    @property
    def spacing_of_arc(self) -> IntArray:
        """The least cycles from a flit to the next on each arc, shape (nodes, ports)."""
        return np.broadcast_to(np.int64(1), (self.nodes, self.ports))

    @property
    def spacing_multiple(self) -> int:
        """The least common multiple of the spacings of all arcs; 1 if no link is slow.

        A slow link carries less than a flit a cycle, see `torusfabric.topology.rated`.
        """
        return 1

    @property
    def one_latency(self) -> int | None:
        """The latency of every link in cycles; None if not all links have the same latency."""
        return self.link_latency if isinstance(self.link_latency, int) else None

    @property
    def longest_link(self) -> int:
        """The latency of the slowest link in cycles."""
        return int(self.cycles_of_port.max(initial=1))

    def cycles_from(self, node: int) -> IntArray:
        """Return the cycles of the fastest path from a node to each node, shape (nodes,)."""
        if not 0 <= node < self.nodes:
            raise InputError(f"Node of {self} must be from 0 to {self.nodes - 1}, not {node}")
        cycles = np.full(self.nodes, self.nodes * self.longest_link)
        cycles[node], before = 0, -1
        while before != (before := int(cycles.sum())):
            for port in range(self.ports):
                after = cycles + self.cycles_of_arc[:, port]
                np.minimum.at(cycles, self.neighbours[:, port], after)
        return cycles

    @cached_property
    def diameter_cycles(self) -> int:
        """The largest number of cycles that a fastest path between two nodes takes."""
        if self.one_latency is not None:
            return self.diameter * self.one_latency
        return max(int(self.cycles_from(node).max()) for node in range(self.nodes))

    @property
    def latency_text(self) -> str:
        """The link latency as a user writes it: ``2``, or by axis ``0:1,1:4``."""
        if isinstance(self.link_latency, int):
            return str(self.link_latency)
        return ",".join(f"{axis}:{cycles}" for axis, cycles in enumerate(self.link_latency))

    @property
    def title(self) -> str:
        """The name of the topology, followed by the link latency if this is not 1."""
        links = f" on links of {self.latency_text} cycles"
        return self.name + (links if self.link_latency != 1 else "")

    def to_entry(self) -> dict[str, Any]:
        """Return the entry for a schedule file: that of `to_json`, and any latency other than 1."""
        entry = self.to_json()
        if self.link_latency == 1:
            return entry
        latency = self.link_latency
        return entry | {"link_latency": latency if isinstance(latency, int) else [*latency]}

    @cached_array
    def linked(self) -> BoolArray:
        """True where a node has a link at a port, shape (nodes, ports)."""
        return np.ones((self.nodes, self.ports), bool)

    @property
    def upstream(self) -> tuple[IntArray, IntArray]:
        """The other end of the link at each in-port: two arrays of shape (nodes, ports).

        For in-port p of node v, entry [v, p] of the first array is the node that sends to it, and
        entry [v, p] of the second array is the out-port of that node. An in-port without a link
        gets an out-port without a link, a different one for each such in-port.
        """
        opposite = np.broadcast_to(self.opposite, (self.nodes, self.ports))
        return self.neighbours, opposite

    def feeding(self, entry: IntArray) -> tuple[IntArray, IntArray]:
        """Return the other end of the links at some in-ports of each node, as in `upstream`.

        ``entry[v]`` lists in-ports of node v. The results, two arrays in the shape of `entry`, are
        the nodes that send to these in-ports, and the out-ports by which they send.
        """
        node, port = self.upstream
        here = np.arange(self.nodes).reshape(-1, *[1] * (entry.ndim - 1))
        return node[here, entry], port[here, entry]

    @property
    def backwards(self) -> "Topology":
        """The topology with all arcs reversed: its out-ports are the in-ports of this topology.

        If every link has an arc in each direction, the result is the topology itself.
        """
        return self

    @cached_array
    def all_distances(self) -> IntArray:
        """Hops from each node (row) to each node (column), an int32 array."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        ends = np.repeat(np.arange(self.nodes), self.ports), self.neighbours.ravel()
        graph = csr_array((np.ones(len(ends[0])), ends), shape=(self.nodes, self.nodes))
        hops: IntArray = dijkstra(graph, unweighted=True).astype(np.int32)
        return hops

    @cached_property
    def diameter(self) -> int:
        """The largest distance between two nodes, in hops."""
        return int(self.all_distances.max())

    def distance(self, a: IntLike, b: IntLike) -> IntArray:
        """Return the hops of a shortest path from node ``a`` to node ``b``, elementwise."""
        return self.all_distances[a, b]

    def port(self, name: str | int) -> int:
        """Return the number of a port, given its name or its number.

        Parameters
        ----------
        name : str or int
            Name of the port, or its number.

        Raises
        ------
        InputError
            If there is no such port.
        """
        if name in self.port_names:
            return self.port_names.index(str(name))
        if re.fullmatch(r"[0-9]{1,9}", str(name)) and int(name) < self.ports:
            return int(name)
        raise unknown_name_error("Port", name, self.port_names)

    def node_number(self, name: str | int, *, noun: str = "Node") -> int:
        """Return the number of a node, given its number or its name.

        Parameters
        ----------
        name : str or int
            A number, or a name that `node_name` returns, with or without its parentheses. A text of
            digits is a number, even if a node has this name.
        noun : str
            The thing that the user names, for the message of the error.

        Raises
        ------
        InputError
            If there is no such node, or if several nodes have the name.

        Examples
        --------
        >>> from torusfabric.topology import Graph, Torus
        >>> Torus(4, 4).node_number("(1,2)"), Torus(4, 4).node_number("9")
        (6, 9)
        """
        number = self.find_node(name)
        if number is not None:
            return number
        forms, hint = f"a node from 0 to {self.nodes - 1}", ""
        if isinstance(name, str):
            meant = self._numbers_by_name.get(name.strip())
            if re.fullmatch("[0-9]{1,18}", name.strip()):
                hint = "" if meant is None else f" (the node of this name has the number {meant})"
                name = int(name)
            else:
                forms += f" or a name such as {self.node_name(0)}"
                hint = suggest_name(name, [*self._numbers_by_name])
                if meant is not None:
                    hint = " (several nodes have this name)"
                elif len(hint) > LONGEST_HINT:
                    hint = ""
        raise InputError(f"{noun} must be {forms}, not {message_text(name)}{hint}")

    def parse_relays(self, names: Iterable[int | str]) -> tuple[int, ...]:
        """Return nodes that only relay as numbers, ascending.

        A node may be given by its number or its name; a text such as ``3-5`` is a range.

        Raises
        ------
        InputError
            If there is no such node, or if fewer than two nodes are left that send and receive.

        Examples
        --------
        >>> from torusfabric.topology import Torus
        >>> Torus(4, 4).parse_relays(["(1,2)", "2-4", 9])
        (2, 3, 4, 6, 9)
        """
        found = set()
        for name in names:
            ends = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", str(name))
            parts = ends.groups() if ends and self.find_node(name) is None else [name]
            first, last = (self.node_number(part, noun="Relay") for part in (parts[0], parts[-1]))
            if last < first:
                raise InputError(f"Range of relays must ascend, not {name}")
            found |= {*range(first, last + 1)}
        relays = sorted(found)
        if relays and self.nodes - len(relays) < 2:
            raise InputError(
                f"Relays must leave at least two nodes that send and receive, not "
                f"{self.nodes - len(relays)} of {self.nodes}"
            )
        return tuple(relays)

    def node_in_file(self, name: str | int, *, noun: str = "Node") -> int:
        """Return the number of a node that a file names; refuse a number of two meanings.

        The parameters are those of `node_number`. A number is refused if it is also the name of
        another node. The name is then written in parentheses.

        Examples
        --------
        >>> import networkx as nx
        >>> from torusfabric.topology import Graph
        >>> Graph(nx.Graph([(1, 2)])).node_in_file("(1)")
        0
        """
        number = self.node_number(name, noun=noun)
        text = str(name).strip()
        named = self._numbers_by_name.get(text, number)
        if named != number:
            raise InputError(
                f"{noun} must have one meaning, but {text} is the number of node {number} and the "
                f"name of node {named}; write {self.node_name(named)} for the name, and "
                f"{self.node_name(number)} for the other node"
            )
        return number

    def find_node(self, name: object) -> int | None:
        """Return the number of the node that a number or a name stands for, as `node_number` does.

        If there is no such node, or if several nodes have the name, return None.

        Examples
        --------
        >>> from torusfabric.topology import Torus
        >>> Torus(4, 4).find_node("(4,4)") is None
        True
        """
        if isinstance(name, str) and not re.fullmatch("[0-9]+", name.strip()):
            found = self._numbers_by_name.get(name.strip(), -1)
            return found if found >= 0 else None
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            return None
        text = str(name).strip()
        return int(text) if len(text) < 19 and 0 <= int(text) < self.nodes else None

    def has_label(self, node: int) -> bool:
        """Return True if the name of a node is a label that a user gave, not a number or a place.

        Examples
        --------
        >>> import networkx as nx
        >>> from torusfabric.topology import Graph, Torus
        >>> Graph(nx.Graph([("a", "b")])).has_label(1), Torus(4, 4).has_label(1)
        (True, False)
        """
        sides, _ = self.grid
        return not sides and self.node_name(node) != f"({node})"

    @cached_property
    def _numbers_by_name(self) -> dict[str, int]:
        """The number of the node with each name, with and without parentheses.

        It is -1 for a name that several nodes have.
        """
        found: dict[str, int] = {}
        for node in range(self.nodes):
            bare = re.sub(r"^\((.*)\)$", r"\1", self.node_name(node))
            for name in (bare, f"({bare})"):
                found[name] = node if found.get(name, node) == node else -1
        return found

    def arc(self, link: object, *, noun: str = "Broken link") -> tuple[int, int]:
        """Return the arc (node, port) that a user names: ``9:+0``, or a pair of a node and a port.

        Parameters
        ----------
        link : str or pair
            Node and port name as text, ``9:+0``, or the pair of both. The node is a number or a
            name, see `node_number`.
        noun : str
            The thing that the user names, for the message of the error.

        Raises
        ------
        InputError
            If there is no such node or port.
        """
        pairs: list[Any] = []
        if isinstance(link, str):
            # The name of a node may contain colons.
            colons = [match.start() for match in re.finditer(":", link)]
            pairs = [(link[:colon], link[colon + 1 :]) for colon in colons]
        elif isinstance(link, tuple | list) and len(link) == 2:
            pairs = [link]
        for name, port in pairs:
            node = self.find_node(name)
            if node is not None and port != "":
                return node, self.port(port)
        raise InputError(f"{noun} must be NODE:PORT with a node below {self.nodes}, not {link!r}")

    def arc_name(self, node: int, port: int) -> str:
        """Return the name of an arc for people, e.g. ``node 9 (1,1) port +0``."""
        if not 0 <= port < self.ports:
            raise InputError(f"Port of {self} must be from 0 to {self.ports - 1}, not {port}")
        return f"node {node} {self.node_name(node)} port {self.port_names[port]}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickle restores arrays as writeable.
        self.__dict__.update(state)
        freeze_arrays(state.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topology) and self.to_entry() == other.to_entry()

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        if self.link_latency == 1:
            return f"<{type(self).__name__} {self.name}>"
        return f"<{type(self).__name__} {self.name}, links of {self.latency_text} cycles>"


class EntryTopology(Topology):
    """Base class of topologies whose schedule-file entry lists the constructor's arguments.

    For example, the entry of a `Circulant` has the keys ``nodes`` and ``offsets``. These are its
    attributes, too, and the arguments of its constructor in this order. Such a class needs no
    methods `parse`, `from_json` and `to_json` of its own: they follow from `pattern` and `entry`.

    Attributes
    ----------
    pattern : str
        A regular expression for the form in which users write a topology, with a group of digits
        for each argument.
    """

    pattern: ClassVar[str]

    @classmethod
    def _entry_keys(cls) -> list[tuple[str, str]]:
        """Return pairs (key, mark) for all keys of the entry in a schedule file, except ``kind``.

        The mark is ``"["`` for a key whose value is a list, else ``""``. For a `Circulant` the
        pairs are ``("nodes", "")`` and ``("offsets", "[")``.
        """
        return re.findall(r'"(\w+)": (\[?)\.\.', cls.entry)

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        if (match := re.fullmatch(cls.pattern, text, re.ASCII)) is None:
            return None
        given = zip(match.groups(), cls._entry_keys(), strict=True)
        numbers = [([*map(int, re.findall(r"[0-9]+", part))], of) for part, (_, of) in given]
        return cls(*(each if of else each[0] for each, of in numbers))

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        listed = {name: isinstance(entry.get(name), list | tuple) for name in entry}
        if any(listed.get(name) is not bool(of) for name, of in cls._entry_keys()):
            return None
        return cls(*(entry[name] for name, _ in cls._entry_keys()))

    @override
    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name, _ in self._entry_keys()}
        values = {name: [*v] if isinstance(v, tuple) else v for name, v in values.items()}
        return {"kind": self.kind, **values}


def node_ranges(nodes: Iterable[int]) -> list[str]:
    """Return node numbers as words; three or more consecutive ones become a range.

    Examples
    --------
    >>> node_ranges([0, 1, 2, 9])
    ['0-2', '9']
    """
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    return [
        word
        for run in runs
        for word in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run))
    ]


def hops_from(neighbours: IntArray, root: int = 0) -> IntArray:
    """Return the hops from node `root` to every node, -1 where there is no path.

    `neighbours` is a table as in `Topology.neighbours`.
    """
    hops = np.full(len(neighbours), -1, np.int32)
    reached, count = np.full(1, root, np.int64), 0
    while reached.size:
        hops[reached] = count
        following = neighbours[reached].ravel()
        reached, count = np.unique(following[hops[following] < 0]), count + 1
    return hops
