"""Reader of node-link JSON, in the dialects of all versions of NetworkX.

========================  ======================  ================================
version of NetworkX       key of the edges        ends of an edge
========================  ======================  ================================
up to 1.11                ``links``               positions in the list of nodes
2.0 to 3.5                ``links``               ids of nodes
from 3.6 on, or on wish   ``edges``               ids of nodes
========================  ======================  ================================

Up to version 1.9, ``graph`` is a list of pairs in place of an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InputError
from ...toolchain.reading import excerpt, parse_json
from ...toolchain.values import message_text
from .contents import (
    MOST_ARCS,
    MOST_NODES,
    Edge,
    GraphFile,
    check_count,
    choose_labels,
    refuse_repeated,
    take_relays,
)

__all__ = ["parse_node_link"]

#: The keys of node-link JSON; ``links`` is the old name of ``edges``.
_KEYS = ("directed", "multigraph", "graph", "nodes", "edges", "links")

#: Keys by which other formats in JSON are recognised, and the names of these formats.
_OTHER_FORMATS = {
    "adjacency": "adjacency_data of NetworkX",
    "elements": "Cytoscape",
    "children": "tree_data of NetworkX",
}

#: The two ends of an edge.
_ENDS = ("source", "target")


def parse_node_link(text: str) -> GraphFile:
    """Return the graph of the node-link JSON in `text`."""
    try:
        data = parse_json(text.encode("utf-8"))
    except ValueError as error:
        raise InputError(f"it begins as node-link JSON does, but is no JSON: {error}") from None
    key = _check_keys(data)
    check_count("nodes", data["nodes"], MOST_NODES)
    check_count(key, data[key], MOST_ARCS)
    ids = [_parse_id(entry, "id", f"nodes[{k}]") for k, entry in enumerate(data["nodes"])]
    number: dict[Any, int] = {}
    for node in ids:
        if node in number:
            raise InputError(f"nodes must have different ids, not {message_text(node)} twice")
        number[node] = len(number)
    ends = [
        [_parse_id(entry, end, f"{key}[{k}]") for end in _ENDS] for k, entry in enumerate(data[key])
    ]
    choices: tuple[str, ...] = ()
    if key == "links":
        number, choices = _resolve_positions(number, ends, data.get("graph"))
    directed, several = data.get("directed", False), data.get("multigraph")
    edges = [
        _make_edge(entry, pair, number, f"{key}[{k}]", directed=directed)
        for k, (entry, pair) in enumerate(zip(data[key], ends, strict=True))
    ]
    if not several:
        advice = '"multigraph": true says that several links join two nodes'
        refuse_repeated(edges, advice, both_ways_only=several is None)
    _refuse_same_keys(edges)
    attributes = [
        {name: value for name, value in node.items() if name != "id"} for node in data["nodes"]
    ]
    relays = take_relays(attributes, [f"nodes[{k}]" for k in range(len(ids))])
    labels, keys = choose_labels(ids, attributes)
    return GraphFile(labels, edges, keys, choices, relays)


def _check_keys(data: dict[str, Any]) -> str:
    """Check the keys of node-link JSON in `data`, and return the key of its edges.

    This key is "edges" or "links".
    """
    for key, name in _OTHER_FORMATS.items():
        if key in data:
            raise InputError(
                f"it is JSON of the format {name}, which is not read; write node-link JSON, for "
                "example by networkx.node_link_data"
            )
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


def _resolve_positions(
    number: dict[Any, int], ends: Sequence[Sequence[Any]], graph: object
) -> tuple[dict[Any, int], tuple[str, ...]]:
    """Return the number of the node that each end of an edge names, and a sentence on the choice.

    Ends are positions in files of NetworkX 1, and ids in later ones. They are positions if some end
    is no id, or if `graph` is a list, as only NetworkX 1 writes it. Where both are possible and
    differ, ends are ids, and the sentence says so.

    Parameters
    ----------
    number : dict
        The position of each id.
    ends : sequence of pairs
        The source and the target of each edge.
    graph : object
        The value of the key ``graph``.
    """
    used = {end for pair in ends for end in pair}
    positions = {position: position for position in range(len(number))}
    if not all(type(end) is int and end in positions for end in used):
        return number, ()
    if isinstance(graph, list) or not used <= {*number}:
        return positions, ()
    if all(number[end] == end for end in used):
        return number, ()
    return number, (
        "source and target are read as ids of nodes; NetworkX 1 would have written positions",
    )


def _make_edge(
    entry: dict[str, Any],
    ends: Sequence[Any],
    number: Mapping[Any, int],
    location: str,
    *,
    directed: bool,
) -> Edge:
    """Return the edge of an object in the list of edges of node-link JSON.

    `entry` is the object, `ends` its source and target, and `location` its location in the file for
    messages. `number` maps each possible end to the number of its node.
    """
    for end, node in zip(_ENDS, ends, strict=True):
        if node not in number:
            raise InputError(
                f"{location}.{end} must be the id of one of the nodes, not {message_text(node)}"
            )
    data = {key: value for key, value in entry.items() if key not in _ENDS}
    return Edge(number[ends[0]], number[ends[1]], data, directed, location)


def _parse_id(entry: Any, key: str, location: str) -> Any:
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


def _refuse_same_keys(edges: Iterable[Edge]) -> None:
    """Refuse edges with equal nodes and equal keys, because NetworkX would merge them into one."""
    found: set[Any] = set()
    for edge in edges:
        ends, key = (edge.tail, edge.head), edge.data.get("key")
        name = ends if edge.directed else frozenset(ends), str(key)
        if key is not None and name in found:
            raise InputError(
                f"{edge.location}.key must differ from those of other edges between its nodes, "
                f"not {message_text(key)}"
            )
        found.add(name)
