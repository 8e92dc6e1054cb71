"""Networks of any structure: strongly connected directed graphs, from files, NetworkX or lists.

Without names for ports, ports are numbered so that a message that leaves by port p arrives at
in-port p. This is an edge colouring: no two arcs of one colour leave the same node or enter the
same node. The largest degree is enough colours (theorem of König).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from numbers import Integral, Number
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from typing_extensions import Self, override

from ..errors import InputError
from ..toolchain.notices import send_notice
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, is_iterable, message_text, require_type
from .graph_file import MOST_ARCS, MOST_NODES, Edge, GraphFile, read_graph, take_relays
from .rates import MOST_SPACING, AttributeRate, is_attribute
from .topology import BoolArray, IntArray, Topology, cached_array

__all__ = ["Graph", "describe_nodes"]

#: Names of edge attributes that set the bandwidth or the latency of a link.
_QUANTITY_WORDS = re.compile(
    "capacit|bandwidth|speed|rate|bps|latency|delay|multiplicity", re.IGNORECASE
)

#: Names of edge attributes that name the ports of an edge.
_PORT_KEYS = {"port", "back"}

#: Names of edge attributes that only identify an edge, so their value may be any number.
_IDENTITY_KEYS = {"id", "key"}

#: The most nodes, and the most names of attributes, that a line for users lists.
_MOST_LISTED = 8


class Arc(NamedTuple):
    """An arc from node `tail` to node `head`, and the name of its out-port; empty if not named.

    The arc carries a flit at most every `spacing` cycles.
    """

    tail: int
    head: int
    port: str = ""
    spacing: int = 1


@public_class
class Graph(Topology):
    """A strongly connected directed graph of any structure, perhaps with parallel arcs.

    Each link carries one flit a cycle, unless an attribute of edges states its rate.

    Parameters
    ----------
    graph : networkx graph, or iterable of (tail, head) or (tail, head, port)
        Nodes of a NetworkX graph are numbered in its order, and an undirected edge becomes two
        arcs. The edge attribute ``port`` names the out-port at the source. For an undirected edge,
        ``back`` names the out-port at the target. Either all arcs have names or none has; the names
        of arcs out of a node differ, and the names of arcs into a node differ. An attribute that
        says a capacity or a latency must be 1, unless `rate` names it. A node whose attribute
        ``relay`` is true only relays. Other attributes, such as a weight, are not used; a notice
        names them.
    name : str
        The name for users.
    relays : sequence of (int or str), optional
        Numbers or names of nodes that only relay: switches, which send and receive nothing of their
        own. They join those that `graph` marks.
    rate : str
        The edge attribute that states the rates of links, and its value at a flit a cycle: with
        ``"capacity/50"``, an edge of capacity 100 becomes two parallel links, and one of capacity
        25 carries a flit every two cycles, see `Rated`.

    Raises
    ------
    InputError
        If the argument is no such graph, or if the graph is not strongly connected.

    Examples
    --------
    A ring of three nodes in one direction, with one more arc, from node 1 back to node 0:

    >>> ring = Graph([(0, 1), (1, 2), (2, 0), (1, 0)])
    >>> ring.nodes, ring.ports, ring.diameter
    (3, 2, 2)

    Two hosts and a switch, which is node 2:

    >>> Graph([(0, 2), (2, 0), (1, 2), (2, 1)], relays=[2]).relays
    (2,)
    """

    kind = "graph"
    notation = "graph:FILE"
    entry = '{"kind": "graph", "nodes": .., "arcs": [[TAIL, HEAD, PORT, SPACING], ..], '
    entry += '"relays": [..]}'

    _neighbours: IntArray
    _linked: BoolArray
    _names: list[str]
    _spacing: IntArray

    def __init__(
        self,
        graph: Any,
        *,
        name: str = "",
        relays: Sequence[int | str] | int | str = (),
        rate: str = "",
    ) -> None:
        require_type("Rate", rate, str, "text")
        attribute = AttributeRate.parse(rate) if rate else None
        names, arcs, marked, remarks = _read_content(graph, attribute)
        require_type("Name", name, str, "text")
        _check_name_texts("Names of nodes", names)
        _check_name_texts("Names of ports", {arc.port for arc in arcs})
        self._names = names
        self._fill_tables(len(names), arcs)
        self.relays = self.parse_relays([*marked, *entries_of(relays)])
        self.name = name or f"graph:{self.nodes}-nodes"
        for remark in remarks:
            _send_once(f"{self.name}: {remark}")

    @classmethod
    @override
    def parse(cls, text: str) -> Self | None:
        whole, mark, rate = text.rpartition("%")
        path = Path(text.removeprefix("graph:"))
        if mark and is_attribute(rate) and not path.exists():
            path = Path(whole.removeprefix("graph:"))
        else:
            whole, rate = text, ""
        # Text behind a ! or % names faults or rates, for other classes, unless it is part of the
        # name of a file.
        if not text.startswith("graph:") or (re.search("[!%]", whole) and not path.exists()):
            return None
        content = read_graph(path)
        try:
            return cast(Self, _with_latencies(cls(content, name=text, rate=rate), content.edges))
        except InputError as error:
            raise InputError(f"File of a graph {path}: {error}") from error

    @classmethod
    @override
    def from_json(cls, entry: dict[str, Any]) -> Self | None:
        match entry:
            case {"nodes": int(count), "arcs": [*arcs]} if not isinstance(count, bool):
                _check_counts(count, len(arcs))
                names = [str(k) for k in range(count)]
                return cls(_ArcList(names, arcs), relays=entry.get("relays", ()))
            case {"nodes": [*names], "arcs": [*arcs]} if {str}.issuperset(map(type, names)):
                return cls(_ArcList(names, arcs), relays=entry.get("relays", ()))
        return None

    @override
    def to_json(self) -> dict[str, Any]:
        plain = self._names == [str(node) for node in range(self.nodes)]
        arcs: list[list[Any]] = [
            [node, int(self.neighbours[node, port]), self.port_names[port]]
            for node, port in np.argwhere(self.linked).tolist()
        ]
        for arc, spacing in zip(arcs, self.spacing_of_arc[self.linked].tolist(), strict=True):
            arc += [spacing] * (spacing > 1)
        entry = {"kind": "graph", "nodes": self.nodes if plain else self._names, "arcs": arcs}
        return entry | ({"relays": list(self.relays)} if self.relays else {})

    @property
    @override
    def neighbours(self) -> IntArray:
        return self._neighbours

    @property
    @override
    def linked(self) -> BoolArray:
        return self._linked

    @property
    @override
    def spacing_of_arc(self) -> IntArray:
        return self._spacing

    @cached_array
    @override
    def cycles_of_arc(self) -> IntArray:
        # A flit takes as long as the link is busy with it.
        return np.maximum(self.cycles_of_port, self.spacing_of_arc)

    @cached_property
    @override
    def spacing_multiple(self) -> int:
        return int(np.lcm.reduce(np.unique(self.spacing_of_arc[self.linked]), initial=1))

    @property
    @override
    def one_latency(self) -> int | None:
        return None if self.spacing_multiple > 1 else super().one_latency

    @property
    @override
    def longest_link(self) -> int:
        return int(self.cycles_of_arc[self.linked].max(initial=1))

    @cached_array
    @override
    def upstream(self) -> tuple[IntArray, IntArray]:
        node, port = np.full((2, self.nodes, self.ports), -1)
        for number, entry in enumerate(self.opposite.tolist()):
            tails = np.flatnonzero(self.linked[:, number])
            node[self.neighbours[tails, number], entry] = tails
            node[node[:, entry] < 0, entry] = np.flatnonzero(~self.linked[:, number])
            port[:, entry] = number
        return node, port

    @cached_property
    @override
    def backwards(self) -> Topology:
        return self if self._is_symmetric() else ReversedGraph(self)

    @property
    @override
    def grid(self) -> tuple[tuple[int, ...], IntArray]:
        return (), np.empty((0, self.nodes), int)

    @override
    def node_name(self, node: int) -> str:
        return f"({self._names[int(node)]})"

    @override
    def validate(self) -> None:
        entered = np.zeros(self.nodes, bool)
        entered[self.neighbours[self.linked]] = True
        bare = np.flatnonzero(~entered & ~self.linked.any(axis=1))
        if len(bare) and self.nodes > 1:
            raise InputError(
                f"The graph has no link at {_describe_first(self, bare)}; add links, or leave out "
                "nodes (numbers of nodes begin with 0)"
            )
        cut_off = self._unreachable_nodes()
        if len(cut_off):
            raise InputError(
                f"The graph cuts off {_describe_first(self, cut_off)}; add links, so that each "
                "node reaches every other"
            )

    def _unreachable_nodes(self) -> IntArray:
        """Return the nodes outside the largest strongly connected component.

        In a strongly connected component, every node reaches every other one along arcs.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        tail, port = np.nonzero(self.linked)
        ones, pairs = np.ones(len(tail)), (tail, self.neighbours[tail, port])
        graph = csr_array((ones, pairs), shape=(self.nodes, self.nodes))
        _, part = connected_components(graph, connection="strong")
        others: IntArray = np.flatnonzero(part != np.bincount(part).argmax())
        return others

    def _is_symmetric(self) -> bool:
        """Return True if every arc has an arc back at its opposite port."""
        tail, port = np.nonzero(self.linked)
        head, entry = self.neighbours[tail, port], self.opposite[port]
        twice = np.array_equal(self.opposite[self.opposite], np.arange(self.ports))
        leads_back = self.linked[head, entry] & (self.neighbours[head, entry] == tail)
        leads_back &= self.spacing_of_arc[head, entry] == self.spacing_of_arc[tail, port]
        return twice and bool(leads_back.all())

    def _fill_tables(self, nodes: int, arcs: Sequence[Arc]) -> None:
        """Set the attributes of a graph with `nodes` nodes and the given arcs; number the ports.

        The attributes are the names of ports, and the tables of neighbours and links.
        """
        _check_counts(nodes, len(arcs))
        given = [arc for arc in arcs if arc.port]
        if given and len(given) < len(arcs):
            bare = next(arc for arc in arcs if not arc.port)
            raise InputError(
                "Ports of a graph must be named for all arcs or for none, but the arc from node "
                f"{bare.tail} to node {bare.head} has none"
            )
        self.port_names = tuple(dict.fromkeys(arc.port for arc in given))
        if given:
            colours = [self.port_names.index(arc.port) for arc in arcs]
            _check_port_names(arcs)
        else:
            colours = _colour_edges(nodes, arcs)
            self.port_names = tuple(map(str, range(max(colours, default=-1) + 1)))
        self.nodes, self.ports = nodes, len(self.port_names)
        self.opposite = np.arange(self.ports)
        self._neighbours = np.tile(np.arange(nodes, dtype=np.int32)[:, None], self.ports)
        self._linked = np.zeros((nodes, self.ports), bool)
        self._spacing = np.ones((nodes, self.ports), np.int64)
        for arc, port in zip(arcs, colours, strict=True):
            self._neighbours[arc.tail, port] = arc.head
            self._linked[arc.tail, port] = True
            self._spacing[arc.tail, port] = arc.spacing

    def __hash__(self) -> int:
        return hash((self.nodes, self._neighbours.tobytes()))


class ReversedGraph(Graph):
    """A graph with all arcs reversed.

    Planners plan on it when they will run the result backwards, for example to turn a broadcast
    into a reduction.
    """

    def __init__(self, graph: Graph) -> None:
        self._forwards = graph
        node, _ = graph.upstream
        self.name, self.nodes, self.ports = f"{graph.name} backwards", graph.nodes, graph.ports
        self.link_latency, self.relays = graph.link_latency, graph.relays
        self._cycles = graph.cycles_of_arc[graph.upstream]
        self._spacing = graph.spacing_of_arc[graph.upstream]
        self.opposite = np.argsort(graph.opposite).astype(np.int64)
        self.port_names = tuple(graph.port_names[port] for port in self.opposite)
        self._names = [graph.node_name(node)[1:-1] for node in range(graph.nodes)]
        heads, port = np.nonzero(graph.linked)
        self._linked = np.zeros_like(graph.linked)
        self._linked[graph.neighbours[heads, port], graph.opposite[port]] = True
        here = np.arange(graph.nodes)[:, None]
        self._neighbours = np.where(self._linked, node, here).astype(np.int32)

    @property
    @override
    def cycles_of_arc(self) -> IntArray:
        return self._cycles

    @property
    @override
    def one_latency(self) -> int | None:
        return self._forwards.one_latency

    @property
    @override
    def backwards(self) -> Topology:
        return self._forwards


def describe_nodes(topology: Topology, nodes: Iterable[int]) -> str:
    """Return nodes as text for people: ``node 3 (0,3)``, or ``nodes 3 (0,3) and 7 (1,3)``."""
    names = [f"{node} {topology.node_name(int(node))}" for node in nodes]
    *first, last = names
    return f"nodes {', '.join(first)} and {last}" if first else f"node {last}"


def _describe_first(topology: Topology, nodes: IntArray) -> str:
    """Return nodes as text for people; only the first ones if there are many."""
    text, more = describe_nodes(topology, nodes[:_MOST_LISTED]), len(nodes) - _MOST_LISTED
    return f"{text}, and at {more} more" if more > 0 else text


class _ArcList(NamedTuple):
    """A graph in the form of a schedule file: the names of nodes, and a list of arcs."""

    names: list[str]
    arcs: list[Any]


def _check_counts(nodes: int, arcs: int) -> None:
    """Check the numbers of nodes and arcs of a graph, before tables are made for each node."""
    if not 1 <= nodes <= MOST_NODES:
        raise InputError(
            f"Nodes of a graph must be from 1 to {MOST_NODES}, not {message_text(nodes)}"
        )
    if arcs > MOST_ARCS:
        raise InputError(f"Arcs of a graph must be at most {MOST_ARCS}, not {arcs}")


def _check_name_texts(what: str, names: Iterable[str]) -> None:
    """Check that names are different, and that a UTF-8 file can hold them.

    `what` is the subject of the error message.
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{what} must be different, not {message_text(name)} twice")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InputError(
                f"{what} must be text without halves of surrogate pairs, not {message_text(name)}"
            ) from None


class _Content(NamedTuple):
    """The content of a graph: the names of nodes, the arcs, the relays, and remarks for the user.

    Relays are the numbers of nodes that only relay.
    """

    names: list[str]
    arcs: list[Arc]
    relays: Sequence[int] = ()
    remarks: Sequence[str] = ()


def _read_content(graph: Any, rate: AttributeRate | None) -> _Content:
    """Return the content of a graph in any form that `Graph` accepts."""
    if isinstance(graph, _ArcList):
        return _Content(graph.names, [_parse_entry(arc, len(graph.names)) for arc in graph.arcs])
    if isinstance(graph, GraphFile):
        return _content_of_file(graph, rate)
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return _content_of_file(_from_networkx(graph), rate)
    if rate is not None:
        raise InputError(
            f"Rate {rate.key} needs a graph whose edges have attributes; give a graph of NetworkX "
            "or a file, or use tf.with_rates"
        )
    if isinstance(graph, str) or not is_iterable(graph):
        raise InputError(f"Graph must be of NetworkX, or a list of arcs, not {message_text(graph)}")
    arcs = [_parse_arc(arc, MOST_NODES) for arc in graph]
    count = 1 + max((max(arc.tail, arc.head) for arc in arcs), default=0)
    return _Content([str(node) for node in range(count)], arcs)


def _parse_entry(given: Any, below: int) -> Arc:
    """Return an arc of a schedule file: [tail, head, port], and perhaps the spacing of flits."""
    if not isinstance(given, list) or len(given) != 4:
        return _parse_arc(given, below)
    *arc, spacing = given
    if type(spacing) is not int or not 1 <= spacing <= MOST_SPACING:
        raise InputError(
            f"Spacing of an arc must be from 1 to {MOST_SPACING} cycles, not "
            f"{message_text(spacing)}"
        )
    return _parse_arc(arc, below)._replace(spacing=spacing)


def _parse_arc(given: Any, below: int) -> Arc:
    """Return an arc after a check of `given`, a sequence (tail, head) or (tail, head, port).

    Tail and head are nodes from 0 to `below` - 1.
    """
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 3:
        raise InputError(f"Arc must be TAIL, HEAD and perhaps a port, not {message_text(given)}")
    tail, head, *port = given
    for node in (tail, head):
        if type(node) is not int or not 0 <= node < below:
            raise InputError(
                f"Node of an arc must be from 0 to {below - 1}, not {message_text(node)}"
            )
    if tail == head:
        raise InputError(f"Arc must lead to another node, not from node {tail} to itself")
    if port and (not isinstance(port[0], str) or not port[0] or port[0].split()[1:]):
        raise InputError(f"Port of an arc must be a word, not {message_text(port[0])}")
    return Arc(tail, head, *port)


def _from_networkx(graph: Any) -> GraphFile:
    """Return a NetworkX graph in the form of a graph file."""
    number = {label: node for node, label in enumerate(graph.nodes)}
    directed = graph.is_directed()
    edges = [
        Edge(number[tail], number[head], data, directed)
        for tail, head, data in graph.edges(data=True)
    ]
    data = [{str(key): value for key, value in each.items()} for _, each in graph.nodes(data=True)]
    relays = take_relays(data, [f"Node {message_text(str(label))[1:-1]}" for label in number])
    keys = dict.fromkeys(key for each in data for key in each)
    return GraphFile([str(label) for label in number], edges, tuple(keys), relays=relays)


def _content_of_file(file: GraphFile, rate: AttributeRate | None) -> _Content:
    """Return the content of a graph file: an undirected edge becomes two arcs.

    A rate p/q multiplies them: p arcs, each with a flit every q cycles.
    """
    arcs: list[Arc] = []
    for edge in _sort_edges(file.edges):
        try:
            arcs += _arcs_of_edge(edge, file.labels, rate)
        except InputError as error:
            raise InputError(f"{edge.location}: {error}" if edge.location else str(error)) from None
    return _Content(file.labels, arcs, file.relays, [*file.choices, *_make_remarks(file, rate)])


def _sort_edges(edges: Sequence[Edge]) -> list[Edge]:
    """Return edges in the order in which NetworkX lists them: node by node, parallel ones together.

    Why: ports are numbered in this order, and a graph has the same numbers as object and as file.
    """

    def end_nodes(edge: Edge) -> tuple[int, ...]:
        return edge[:2] if edge.directed else tuple(sorted(edge[:2]))

    first: dict[tuple[int, ...], int] = {}
    for place, edge in enumerate(edges):
        first.setdefault(end_nodes(edge), place)
    return sorted(edges, key=lambda edge: (end_nodes(edge)[0], first[end_nodes(edge)]))


def _arcs_of_edge(edge: Edge, labels: Sequence[str], rate: AttributeRate | None) -> list[Arc]:
    """Return the arcs of an edge: one if it is directed, else two; more if its `rate` is larger."""
    if edge.tail == edge.head:
        name = message_text(labels[edge.tail])[1:-1]
        raise InputError(f"Edge must lead to another node, not from {name} to itself; leave it out")
    _check_attributes(edge, labels, rate)
    arcs = [_parse_arc([*edge[:2], *_optional_port_name(edge.data, "port")], len(labels))]
    if not edge.directed:
        back = [edge.head, edge.tail, *_optional_port_name(edge.data, "back")]
        arcs.append(_parse_arc(back, len(labels)))
    if rate is not None:
        flits = rate.rate_of(edge.data.get(rate.key), _edge_name(edge, labels))
        arcs = [
            arc._replace(port=copy_name(arc.port, rank), spacing=flits.denominator)
            for arc in arcs
            for rank in range(flits.numerator)
        ]
    return sorted(arcs)


def copy_name(port: str, rank: int) -> str:
    """Return the name of a port of a parallel link: ``+0``, ``+0.2``, ``+0.3`` for ranks 0 to 2."""
    return f"{port}.{rank + 1}" if port and rank else port


def _edge_name(edge: Edge, labels: Sequence[str]) -> str:
    """Return the name of an edge for messages."""
    tail, head = (message_text(labels[node])[1:-1] for node in edge[:2])
    return f"the edge from {tail} to {head}"


def _check_attributes(edge: Edge, labels: Sequence[str], rate: AttributeRate | None) -> None:
    """Check that no attribute of an edge asks for a capacity or a latency that is not known.

    `labels` are the labels of nodes, for messages. The attribute of `rate` is known.
    """
    refused = [
        key
        for key, value in edge.data.items()
        if _QUANTITY_WORDS.search(str(key)) and not _is_unit_value(value)
        if rate is None or key != rate.key
    ]
    if not refused and not (edge.directed and "back" in edge.data):
        return
    name = _edge_name(edge, labels)
    if not refused:
        raise InputError(
            f"Attribute back of {name} must be left out, because a directed edge goes one way"
        )
    raise InputError(
        f"Attribute {message_text(refused[0])} of {name} must be 1 or left out, not "
        f"{message_text(edge.data[refused[0]])}; for a capacity, give its value at a flit a cycle, "
        "as in --rate capacity/50 or tf.Graph(.., rate='capacity/50'), and a latency behind the "
        "name, as in graph:FILE!0:1=4"
    )


def _make_remarks(file: GraphFile, rate: AttributeRate | None) -> list[str]:
    """Return remarks about attributes that are not used, and about misleading names of nodes."""
    used = _PORT_KEYS | _IDENTITY_KEYS | ({rate.key} if rate else set())
    edge_keys = dict.fromkeys(
        str(key)
        for edge in file.edges
        for key, value in edge.data.items()
        if key not in used and not _is_unit_value(value)
    )
    unused = [
        f"{_list_names([*keys])} of {owner}"
        for keys, owner in ((edge_keys, "edges"), (file.node_keys, "nodes"))
        if keys
    ]
    remarks = []
    if unused:
        links = "" if rate else " (each link carries one flit a cycle)"
        remarks.append(f"read and not used: {'; '.join(unused)}{links}")
    numbers = {str(node) for node in range(len(file.labels))}
    for node, label in enumerate(file.labels):
        if label in numbers and label != str(node):
            remarks.append(
                f"nodes are numbered in their order, so node {node} is named {label}; "
                "commands take numbers, not these names"
            )
            break
    return remarks


def _list_names(names: Sequence[str]) -> str:
    """Return names of attributes as text for people; only the first ones if there are many."""
    text, more = ", ".join(names[:_MOST_LISTED]), len(names) - _MOST_LISTED
    return message_text(f"{text} and {more} more" if more > 0 else text)[1:-1]


@cache
def _send_once(text: str) -> None:
    """Send a notice, unless the same one has been sent: commands may read a file several times."""
    send_notice(text)


def _with_latencies(graph: Graph, edges: Sequence[Edge]) -> Graph:
    """Return a graph whose links have the latencies of the edges of its file."""
    counts = Counter(edge.cycles for edge in edges)
    usual = max(counts, key=counts.__getitem__, default=1)
    if len(counts) < 2:
        return graph.on_links(usual) if usual > 1 else graph
    # A graph with links of different latencies is a `Faulty` network.
    from .faulty import with_latency

    slow = [
        f"{edge.tail}:{graph.port_names[port]}={edge.cycles}"
        for edge in edges
        for port in np.flatnonzero(graph.neighbours[edge.tail] == edge.head)
        if edge.cycles != usual
    ]
    return cast(Graph, with_latency(graph, ",".join([str(usual), *slow])))


def _is_unit_value(value: Any) -> bool:
    """Return True if the value of an attribute is empty or 1."""
    if isinstance(value, str):
        return value.strip() in ("", "1", "1.0")
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    return value is None or (is_number and bool(value == 1))


def _optional_port_name(data: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list with the name of a port, or an empty list if an edge does not name its port.

    The name is the entry `key` of `data`, the attributes of the edge. A number counts as a name.
    """
    name = data.get(key)
    if name is None:
        return []
    return [str(name) if isinstance(name, Integral) and not isinstance(name, bool) else name]


def _check_port_names(arcs: Sequence[Arc]) -> None:
    """Check the names of ports: different for arcs out of a node, and for arcs into a node."""
    for verb, ends in ("leave", [arc.tail for arc in arcs]), ("enter", [arc.head for arc in arcs]):
        found: set[tuple[int, str]] = set()
        for node, arc in zip(ends, arcs, strict=True):
            if (node, arc.port) in found:
                raise InputError(
                    f"Ports of arcs that {verb} a node must have different names, not "
                    f"{arc.port} twice at node {node}"
                )
            found.add((node, arc.port))


def _colour_edges(nodes: int, arcs: Sequence[Arc]) -> list[int]:
    """Return a port number, here called colour, for each arc: an edge colouring.

    No two arcs of one colour leave the same node, or enter the same node. `nodes` is the number of
    nodes.

    Arcs are coloured one by one. Let `out` be a colour free among arcs that leave the tail, and
    `into` one free among arcs that enter the head. If `into` is used at the tail, the two colours
    are exchanged along the alternating path that begins there; this frees `into` at the tail.
    """
    ends = np.array([arc[:2] for arc in arcs], np.int64).reshape(-1, 2)
    degree = max(int(np.bincount(column, minlength=nodes).max()) for column in ends.T)
    leaving, entering = np.full((2, nodes, degree), -1)
    for number, (tail, head, *_) in enumerate(arcs):
        out, into = (int((row < 0).argmax()) for row in (leaving[tail], entering[head]))
        if leaving[tail, into] >= 0:
            # Exchange both colours along the path that begins with the arc of colour `into`.
            side, node, colour, path = 0, tail, into, []
            while (arc := int((leaving, entering)[side][node, colour])) >= 0:
                path.append((arc, colour))
                side, node = 1 - side, int(ends[arc, 1 - side])
                colour = out if colour == into else into
            for arc, colour in path:
                for table, end in ((leaving, 0), (entering, 1)):
                    if table[ends[arc, end], colour] == arc:
                        table[ends[arc, end], colour] = -1
            for arc, colour in path:
                other = out if colour == into else into
                leaving[ends[arc, 0], other] = entering[ends[arc, 1], other] = arc
        leaving[tail, into] = entering[head, into] = number
    colours = [0] * len(arcs)
    for tail, colour in np.argwhere(leaving >= 0).tolist():
        colours[int(leaving[tail, colour])] = colour
    return colours
