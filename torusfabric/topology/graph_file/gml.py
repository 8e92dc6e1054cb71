"""Reader of GML, the Graph Modelling Language of Himsolt.

A file is a list of keys and values. A value is a number, a text in quotes, or a list of keys and
values in brackets. The graph is the list behind the key ``graph``; its keys ``node`` and ``edge``
come once for each node and edge.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...errors import InputError
from ...toolchain.values import message_text
from .contents import (
    MOST_ARCS,
    MOST_NODES,
    Edge,
    GraphFile,
    check_count,
    choose_labels,
    number_ids,
    refuse_repeated,
    take_relays,
)

__all__ = ["parse_gml"]

#: The tokens of GML. A comment is a line that begins with #.
_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | ^[ \t]*\#[^\n]* )
    | (?P<number> [+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])
                  | [+-]?(?:INF|NAN)\b )
    | (?P<key> [A-Za-z][A-Za-z0-9_]* )
    | (?P<text> "[^"]*" )
    | (?P<open> \[ )
    | (?P<close> \] )
    """,
    re.VERBOSE | re.MULTILINE,
)


class _Item(NamedTuple):
    """A key with its value and its line; the value of a list in brackets is a list of items."""

    key: str
    value: Any
    line: int


def parse_gml(text: str) -> GraphFile:
    """Return the graph of the GML in `text`."""
    graphs = [item for item in _parse_items(text) if item.key == "graph"]
    if len(graphs) != 1 or not isinstance(graphs[0].value, list):
        raise InputError(f"it must have one list with the key graph, not {len(graphs)}")
    items = graphs[0].value
    flags = {
        key: _parse_flag([item for item in items if item.key == key])
        for key in ("directed", "multigraph")
    }
    nodes = [_Block(item) for item in items if item.key == "node"]
    blocks = [_Block(item) for item in items if item.key == "edge"]
    check_count("nodes", nodes, MOST_NODES)
    check_count("edges", blocks, MOST_ARCS)
    number = number_ids((node.place_text, node.take_id("id")) for node in nodes)
    edges = [_make_edge(block, number, directed=flags["directed"]) for block in blocks]
    if not flags["multigraph"]:
        advice = "`multigraph 1` in the graph says that several links join two nodes"
        refuse_repeated(edges, advice, both_ways_only=False)
    relays = take_relays([node.data for node in nodes], [node.place_text for node in nodes])
    labels, keys = choose_labels([*number], [node.data for node in nodes])
    return GraphFile(labels, edges, keys, relays=relays)


class _Block:
    """A node or an edge: its attributes, and its location for messages."""

    def __init__(self, item: _Item) -> None:
        self.place_text = f"{item.key} in line {item.line}"
        if not isinstance(item.value, list):
            raise InputError(f"{self.place_text} must be a list in brackets")
        self.data: dict[str, Any] = {}
        for key, value, line in item.value:
            if key in ("id", "label", "source", "target") and key in self.data:
                raise InputError(f"{item.key} must have one {key}, not another one in line {line}")
            self.data[key] = value

    def take_id(self, key: str) -> int:
        """Remove and return the value of a key that holds the id of a node."""
        value: Any = self.data.pop(key, None)
        if type(value) is not int:
            raise InputError(
                f"{self.place_text} must have one integer as {key}, not {message_text(value)}"
            )
        return int(value)


def _make_edge(block: _Block, number: Mapping[Any, int], *, directed: bool) -> Edge:
    """Return the edge of a block; `number` has the number of the node with each id."""
    ends = []
    for key in ("source", "target"):
        name = block.take_id(key)
        if name not in number:
            raise InputError(
                f"{block.place_text} must have as {key} the id of a node, not {message_text(name)}"
            )
        ends.append(number[name])
    return Edge(ends[0], ends[1], block.data, directed, block.place_text)


def _parse_flag(items: list[_Item]) -> bool:
    """Return the value of a flag of the graph, given its items: 0, or 1 for True."""
    for item in items:
        if item.value not in (0, 1) or isinstance(item.value, float):
            raise InputError(
                f"line {item.line} must say {item.key} 0 or {item.key} 1, not "
                f"{message_text(item.value)}"
            )
    if len(items) > 1:
        raise InputError(f"line {items[1].line} must not say {items[1].key} again")
    return bool(items and items[0].value)


def _parse_items(text: str) -> list[_Item]:
    """Return the keys and values of GML, nested as the brackets are."""
    top: list[_Item] = []
    stack: list[tuple[list[_Item], int]] = [(top, 1)]
    key, line = "", 1
    for kind, token, line in _split_tokens(text):
        items = stack[-1][0]
        if kind == "key" and not key:
            key = token
        elif kind == "close" and not key and len(stack) > 1:
            stack.pop()
        elif kind == "open" and key:
            inner: list[_Item] = []
            items.append(_Item(key, inner, line))
            stack.append((inner, line))
            key = ""
        elif kind in ("number", "text") and key:
            value = html.unescape(token[1:-1]) if kind == "text" else _parse_number(token)
            items.append(_Item(key, value, line))
            key = ""
        else:
            wanted = f"a value for {key}" if key else "a key, such as node or edge"
            raise InputError(f"line {line} must have {wanted}, not {message_text(token)}")
    if key:
        raise InputError(f"line {line} must have a value for {key}, but the file ends")
    if len(stack) > 1:
        raise InputError(f"line {stack[-1][1]} must have a bracket that closes, but the file ends")
    return top


def _split_tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield each token of GML: its kind, its text, and its line from 1 on."""
    line, position = 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].split("\n", 1)[0]
            raise InputError(f"line {line} must be GML, not {message_text(rest)}")
        if match.lastgroup != "space":
            yield str(match.lastgroup), match[0], line
        line += match[0].count("\n")
        position = match.end()


def _parse_number(token: str) -> int | float:
    """Return the number of a token."""
    if re.fullmatch("[+-]?[0-9]{1,4000}", token):
        return int(token)
    return float(token)
