"""Readers of graph files: node-link JSON and edge lists, both returned as NetworkX graphs.

In an edge list each line is a *link*, with an arc in each direction. After a first line
``directed``, each line is a single *arc* from the first node to the second. After a first line
``undirected``, the lines ``1 2`` and ``2 1`` are two links; without it, this pair is refused.

A file that could mean two different networks is refused, and the message says how to write either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..toolchain.reading import excerpt, parse_json, read_text
from ..toolchain.values import message_text

__all__ = ["MOST_ARCS", "MOST_NODES", "read_graph"]

#: The most nodes, and the most arcs, of a graph.
MOST_NODES, MOST_ARCS = 4096, 2**16

#: The most bytes of a graph file: some 250 for each arc.
MOST_BYTES = 2**24

#: A line of an edge list: two nodes, optional attributes as NetworkX writes them, and a comment.
_LINE = re.compile(r"\s*([0-9]{1,4000})\s+([0-9]{1,4000})\s*(\{.*\})?\s*(?:#.*)?")

#: The possible first lines of an edge list; True if each line below is an arc.
_DIRECTION_WORDS = {"directed": True, "undirected": False}

#: The keys of node-link JSON; ``links`` is the old name of ``edges``.
_KEYS = ("directed", "multigraph", "graph", "nodes", "edges", "links")


class _Edge(NamedTuple):
    """An edge of a graph file.

    Parameters
    ----------
    tail, head : str, int, float or tuple
        The ids of its nodes.
    data : dict
        The attributes of the edge.
    location : str
        The location in the file, for messages: ``line 3``, ``edges[2]``.
    """

    tail: Any
    head: Any
    data: dict[str, Any]
    location: str


def read_graph(path: Path) -> Any:
    """Read a graph file.

    Parameters
    ----------
    path : Path
        The graph file: node-link JSON if its text begins with ``{``, otherwise an edge list.

    Returns
    -------
    networkx.MultiGraph or networkx.MultiDiGraph

    Raises
    ------
    InputError
        If the file cannot be read, is malformed, or could mean two networks.
    """
    text = read_text(path, "File of a graph", most=MOST_BYTES)
    read = _from_json if text.lstrip().startswith("{") else _from_lines
    try:
        return read(text)
    except InputError as error:
        raise InputError(f"File of a graph {path}: {error}") from error
    except RecursionError:
        raise InputError(f"File of a graph {path} is nested too deeply") from None


def _from_lines(text: str) -> Any:
    """Return the graph of the edge list in `text`, with the nodes 0 to the largest in the file."""
    edges: list[_Edge] = []
    directed = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if len(words) == 1 and words[0] in _DIRECTION_WORDS and not edges and directed is None:
            directed = _DIRECTION_WORDS[words[0]]
        elif words:
            edges.append(_edge_of_line(line, number))
    if directed is None:
        advice = "begin the file with a line `directed` if a line is one way, else `undirected`"
        _refuse_repeated(edges, advice, ordered=False, both_ways_only=True)
    count = 1 + max((max(edge.tail, edge.head) for edge in edges), default=0)
    return _build_graph(range(count), edges, directed=bool(directed))


def _edge_of_line(line: str, number: int) -> _Edge:
    """Return the edge of a line ``TAIL HEAD {attributes}``; `number` counts lines from 1."""
    if not (found := _LINE.fullmatch(line)):
        raise InputError(
            f"line {number} must be two node numbers, not {message_text(line.strip())} (an "
            "adjacency list "
            "is not read, nor are weights: write each link in a line)"
        )
    tail, head = int(found[1]), int(found[2])
    if max(tail, head) >= MOST_NODES:
        raise InputError(
            f"line {number} must be of nodes from 0 to {MOST_NODES - 1}, not "
            f"{message_text(line.strip())}"
        )
    try:
        given = ast.literal_eval(found[3] or "{}")
        data = {str(name): value for name, value in given.items()}
    except (ValueError, SyntaxError, AttributeError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"line {number} must have attributes such as {{'port': 'a'}}, not "
            f"{message_text(found[3])}"
        ) from None
    return _Edge(tail, head, data, f"line {number}")


def _from_json(text: str) -> Any:
    """Return the graph of the node-link JSON in `text`."""
    try:
        data = parse_json(text.encode("utf-8"))
    except ValueError as error:
        raise InputError(f"it must be node-link JSON or an edge list: {error}") from None
    key = _check_keys(data)
    _check_count("nodes", data["nodes"], MOST_NODES)
    _check_count(key, data[key], MOST_ARCS)
    nodes: dict[Any, None] = {}
    for number, entry in enumerate(data["nodes"]):
        node = _node_id(entry, "id", f"nodes[{number}]")
        if node in nodes:
            raise InputError(f"nodes must have different ids, not {message_text(node)} twice")
        nodes[node] = None
    edges = [_edge_of_object(entry, nodes, f"{key}[{k}]") for k, entry in enumerate(data[key])]
    directed, several = data.get("directed", False), data.get("multigraph")
    if not several:
        advice = '"multigraph": true says that several links join two nodes'
        _refuse_repeated(edges, advice, ordered=directed, both_ways_only=several is None)
    _refuse_same_keys(edges, ordered=directed)
    return _build_graph(nodes, edges, directed=directed)


def _check_keys(data: dict[str, Any]) -> str:
    """Check the keys of node-link JSON in `data`, and return the key of its edges.

    This key is "edges" or "links".
    """
    for key in data:
        if key not in _KEYS:
            raise InputError(f"it must have no keys but {', '.join(_KEYS)}, not {excerpt(key)}")
    edges = [key for key in ("edges", "links") if key in data]
    if "nodes" not in data or len(edges) != 1:
        found = ", ".join(data) or "none"
        raise InputError(f"it must have the keys nodes and either edges or links, not {found}")
    for key in ("directed", "multigraph"):
        if type(data.get(key, False)) is not bool:
            raise InputError(f"{key} must be true or false, not {excerpt(data[key])}")
    for key in ("nodes", *edges):
        if not isinstance(data[key], list):
            raise InputError(f"{key} must be a list, not {excerpt(data[key])}")
    return edges[0]


def _check_count(key: str, entries: Collection[Any], most: int) -> None:
    """Check that `entries`, the list under `key` of a file, has at most `most` entries."""
    if len(entries) > most:
        raise InputError(f"{key} must be at most {most}, not {len(entries)}")


def _edge_of_object(entry: Any, nodes: Collection[Any], location: str) -> _Edge:
    """Return the edge of an object in the list of edges of node-link JSON.

    `entry` is the object, and `location` its location in the file for messages. The file must
    declare both ends of the edge, in `nodes`.
    """
    ends = [_node_id(entry, end, location) for end in ("source", "target")]
    for end, node in zip(("source", "target"), ends, strict=True):
        if node not in nodes:
            raise InputError(
                f"{location}.{end} must be the id of one of the nodes, not {message_text(node)}"
            )
    data = {key: value for key, value in entry.items() if key not in ("source", "target")}
    return _Edge(ends[0], ends[1], data, location)


def _node_id(entry: Any, key: str, location: str) -> Any:
    """Return the id of a node, the value of `key` in `entry`; a list becomes a tuple.

    NetworkX does the same. `location` is the location of the entry in the file, for messages.
    """
    if not isinstance(entry, dict) or key not in entry:
        raise InputError(f"{location} must be an object with {key}, not {excerpt(entry)}")
    try:
        return _to_hashable(entry[key])
    except TypeError:
        raise InputError(
            f"{location}.{key} must be a text, a number or a list of these, "
            f"not {excerpt(entry[key])}"
        ) from None


def _to_hashable(value: Any) -> Any:
    """Return the id of a node as NetworkX has it; raise a TypeError for a value that is no id."""
    if isinstance(value, list) and value:
        return tuple(map(_to_hashable, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return value


def _refuse_repeated(
    edges: Iterable[_Edge], advice: str, *, ordered: bool, both_ways_only: bool
) -> None:
    """Refuse a second edge between two nodes, for which a file does not say if it is a second link.

    `advice` ends the message: it tells how the file can say so. If `ordered`, an edge from b to a
    does not repeat an edge from a to b. If `both_ways_only`, only an edge in the opposite direction
    is refused; a second edge in the same direction is a parallel one.
    """
    first: dict[Any, _Edge] = {}
    for edge in edges:
        ends = edge.tail, edge.head
        before = first.setdefault(ends if ordered else frozenset(ends), edge)
        if before is not edge and not (both_ways_only and ends == before[:2]):
            raise InputError(
                f"{edge.location} must not join the nodes of {before.location} again ({advice})"
            )


def _refuse_same_keys(edges: Iterable[_Edge], *, ordered: bool) -> None:
    """Refuse edges with equal nodes and equal keys, because NetworkX would merge them into one.

    `ordered` says that edges a to b and b to a join different nodes, as in a directed graph.
    """
    found: set[Any] = set()
    for edge in edges:
        ends, key = (edge.tail, edge.head), edge.data.get("key")
        name = ends if ordered else frozenset(ends), str(key)
        if key is not None and name in found:
            raise InputError(
                f"{edge.location}.key must differ from those of other edges between its nodes, "
                f"not {message_text(key)}"
            )
        found.add(name)


def _build_graph(nodes: Iterable[Any], edges: Iterable[_Edge], *, directed: bool) -> Any:
    """Return the NetworkX graph with the given nodes and edges, in the given order.

    `directed` says that each edge is a single arc.
    """
    import networkx as nx

    graph = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((edge.tail, edge.head, edge.data) for edge in edges)
    return graph
