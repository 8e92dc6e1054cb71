"""The content of a graph file, as all readers return it, and checks that several readers share."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ...errors import InputError
from ...toolchain.values import message_text

__all__ = ["MOST_ARCS", "MOST_NODES", "Edge", "GraphFile", "check_count", "choose_labels",
           "number_ids", "refuse_repeated", "take_relays"]  # fmt: skip

#: The id of a node: a number, a text, or a tuple of these.
_Id = TypeVar("_Id", bound=Hashable)

#: The most nodes, and the most arcs, of a graph.
MOST_NODES, MOST_ARCS = 4096, 2**16

#: The attributes of a node that may hold its label, in the order in which they are tried.
_LABEL_KEYS = ("label", "name")

#: An id that only numbers a node, such as 3 or n3, so that a label tells a reader more.
_NUMBERING_ID = re.compile("n?[0-9]+")


class Edge(NamedTuple):
    """An edge of a graph: a link, or if it is directed a single arc.

    Parameters
    ----------
    tail, head : int
        The numbers of its nodes.
    data : mapping
        The attributes of the edge by name.
    directed : bool
        True for a single arc from `tail` to `head`.
    location : str
        The location in the file, for messages: ``line 3``, ``edges[2]``; empty if there is none.
    cycles : int
        The latency of the link in cycles.
    """

    tail: int
    head: int
    data: Mapping[Any, Any] = {}
    directed: bool = False
    location: str = ""
    cycles: int = 1


class GraphFile(NamedTuple):
    """The content of a graph file.

    Parameters
    ----------
    labels : list of str
        The label of each node.
    edges : list of Edge
        The edges in the order of the file.
    node_keys : tuple of str
        Names of the attributes of nodes that are not used.
    choices : tuple of str
        For a file that several readings would fit: sentences that say what was chosen.
    relays : tuple of int
        The nodes that only relay.
    """

    labels: list[str]
    edges: list[Edge]
    node_keys: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    relays: tuple[int, ...] = ()


def check_count(key: str, entries: Collection[Any], most: int) -> None:
    """Check that `entries`, the nodes or edges of a file, are at most `most`.

    `key` names them in the message.
    """
    if len(entries) > most:
        raise InputError(f"{key} must be at most {most}, not {len(entries)}")


def number_ids(nodes: Iterable[tuple[str, _Id]]) -> dict[_Id, int]:
    """Return the number of each node by its id, in the order of the file.

    Parameters
    ----------
    nodes : iterable of (str, id)
        The location of each node in the file, for messages, and its id.

    Raises
    ------
    InputError
        If an id comes twice.
    """
    number: dict[_Id, int] = {}
    for location, name in nodes:
        if name in number:
            raise InputError(f"{location} must have a new id, not {message_text(name)} again")
        number[name] = len(number)
    return number


def choose_labels(
    ids: Sequence[Any], data: Sequence[Mapping[str, Any]]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the label of each node, and the names of the attributes of nodes that are not used.

    The label is the id of the node. Where ids only number the nodes, as 3 or n3 do, the label is
    the attribute ``label`` or ``name``, if every node has a different one. `data` has the
    attributes of each node.
    """
    keys = dict.fromkeys(key for attributes in data for key in attributes)
    if all(_NUMBERING_ID.fullmatch(str(node)) for node in ids):
        for key in _LABEL_KEYS:
            texts = [" ".join(str(attributes.get(key, "")).split()) for attributes in data]
            if all(texts) and len({*texts}) == len(texts):
                return texts, tuple(other for other in keys if other != key)
    return [str(node) for node in ids], tuple(keys)


def take_relays(data: Sequence[dict[str, Any]], locations: Sequence[str]) -> tuple[int, ...]:
    """Remove the attribute ``relay`` of all nodes, and return the nodes for which it is true.

    Values are true or false, 1 or 0, or these words as text, in upper or lower case.

    Parameters
    ----------
    data : sequence of dict
        The attributes of each node.
    locations : sequence of str
        The location of each node, for messages.

    Raises
    ------
    InputError
        If an attribute has another value.
    """
    values = {"true": True, "1": True, "false": False, "0": False}
    relays = []
    for node, (attributes, location) in enumerate(zip(data, locations, strict=True)):
        value = attributes.pop("relay", False)
        if str(value).strip().lower() not in values:
            raise InputError(f"{location} must have relay true or false, not {message_text(value)}")
        if values[str(value).strip().lower()]:
            relays.append(node)
    return tuple(relays)


def refuse_repeated(edges: Iterable[Edge], advice: str, *, both_ways_only: bool) -> None:
    """Refuse a second edge between two nodes, for which a file does not say if it is a second link.

    `advice` ends the message: it tells how the file can say so. If `both_ways_only`, only an edge
    in the opposite direction is refused; a second edge in the same direction is a parallel one.
    A directed edge from b to a does not repeat a directed edge from a to b.
    """
    first: dict[Hashable, Edge] = {}
    for edge in edges:
        ends = edge.tail, edge.head
        before = first.setdefault(ends if edge.directed else frozenset(ends), edge)
        if before is not edge and not (both_ways_only and ends == before[:2]):
            raise InputError(
                f"{edge.location} must not join the nodes of {before.location} again ({advice})"
            )
