"""Reader of GraphML.

The document has one ``graph`` with ``node`` and ``edge`` elements. The attributes of a node or edge
are in ``data`` elements, and ``key`` elements declare their names and types. GraphML names ports in
``sourceport`` and ``targetport``; these are the attributes ``port`` and ``back`` of an edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

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

__all__ = ["parse_graphml"]

#: Other formats in XML, by their outermost element.
_OTHER_FORMATS = {"gexf": "GEXF", "graphs": "DGS", "gxl": "GXL", "xgmml": "XGMML", "svg": "SVG"}

#: The types of attributes that are numbers.
_NUMBER_TYPES = {"int": int, "integer": int, "long": int, "float": float, "double": float}


class _Element:
    """An element of XML: its name without namespace, attributes, children, text and line."""

    def __init__(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        self.name, self.attributes, self.line = name, dict(attributes), line
        self.children: list[_Element] = []
        self.text = ""

    @property
    def place_text(self) -> str:
        """The place in the file, for messages."""
        return f"{self.name} in line {self.line}"

    def find(self, name: str) -> list[_Element]:
        """Return the children with a name."""
        return [child for child in self.children if child.name == name]

    def require(self, attribute: str) -> str:
        """Return the value of an attribute that the element must have."""
        value = self.attributes.get(attribute)
        if value is None:
            raise InputError(f"{self.place_text} must have the attribute {attribute}")
        return value


class _Key(NamedTuple):
    """A declaration of an attribute: its name, its type, and its default as text if it has one."""

    name: str
    type: str
    default: str | None
    domain: str


def parse_graphml(text: str) -> GraphFile:
    """Return the graph of the GraphML in `text`."""
    root = _parse_xml(text)
    if root.name != "graphml":
        name = _OTHER_FORMATS.get(root.name, f"with the outermost element {root.name[:40]}")
        raise InputError(f"it is XML of the format {name}, which is not read; write GraphML")
    graphs = root.find("graph")
    if len(graphs) != 1:
        raise InputError(f"it must have one graph, not {len(graphs)}")
    graph = graphs[0]
    _refuse_parts(graph)
    keys = {key.require("id"): _parse_key(key) for key in root.find("key")}
    nodes, elements = graph.find("node"), graph.find("edge")
    check_count("nodes", nodes, MOST_NODES)
    check_count("edges", elements, MOST_ARCS)
    number = number_ids((node.place_text, node.require("id")) for node in nodes)
    directed = _parse_direction(graph, "edgedefault", {"directed": True, "undirected": False})
    edges = [_make_edge(element, keys, number, directed=directed) for element in elements]
    advice = "two links are written with the same source and the same target"
    refuse_repeated(edges, advice, both_ways_only=True)
    data = [_parse_data(node, keys) for node in nodes]
    relays = take_relays(data, [node.place_text for node in nodes])
    labels, unused = choose_labels([*number], data)
    return GraphFile(labels, edges, unused, relays=relays)


def _refuse_parts(graph: _Element) -> None:
    """Refuse graphs inside of nodes, and edges with more than two ends."""
    for part in graph.children:
        if part.name == "hyperedge":
            raise InputError(f"{part.place_text} must be an edge, for a link has two ends")
        if part.name == "node" and part.find("graph"):
            raise InputError(f"{part.place_text} must have no graph inside; write all nodes in one")


def _make_edge(
    element: _Element, keys: Mapping[str, _Key], number: Mapping[str, int], *, directed: bool
) -> Edge:
    """Return the edge of an element.

    `number` has the number of the node with each id. `directed` is the direction of the graph, from
    which the element may differ.
    """
    ends = []
    for end in ("source", "target"):
        name = element.require(end)
        if name not in number:
            raise InputError(
                f"{element.place_text} must have as {end} the id of a node, not "
                f"{message_text(name)}"
            )
        ends.append(number[name])
    data = _parse_data(element, keys)
    if "directed" in element.attributes:
        directed = _parse_direction(element, "directed", {"true": True, "false": False})
    for attribute, name in ("sourceport", "port"), ("targetport", "back"):
        if attribute in element.attributes:
            data[name] = element.attributes[attribute]
    return Edge(ends[0], ends[1], data, directed, element.place_text)


def _parse_direction(element: _Element, attribute: str, values: Mapping[str, bool]) -> bool:
    """Return the direction that an attribute of an element says; `values` are the possible ones."""
    text = element.require(attribute)
    if text not in values:
        raise InputError(
            f"{element.place_text} must have {attribute} {' or '.join(values)}, not "
            f"{message_text(text)}"
        )
    return values[text]


def _parse_key(element: _Element) -> _Key:
    """Return the declaration of an attribute."""
    attributes = element.attributes
    name = attributes.get("attr.name") or attributes.get("yfiles.type") or attributes["id"]
    default = next((child.text.strip() for child in element.find("default")), None)
    return _Key(name, attributes.get("attr.type", "string"), default, attributes.get("for", "all"))


def _parse_data(element: _Element, keys: Mapping[str, _Key]) -> dict[str, Any]:
    """Return the attributes of a node or an edge, with the defaults of those left out."""
    found = {
        key.name: _parse_value(key, key.default, element)
        for key in keys.values()
        if key.default is not None and key.domain in (element.name, "all")
    }
    for data in element.find("data"):
        key = keys.get(data.require("key"))
        if key is None:
            raise InputError(
                f"{data.place_text} must name a declared key, not "
                f"{message_text(data.attributes['key'])}"
            )
        found[key.name] = _parse_value(key, data.text.strip(), data)
    return found


def _parse_value(key: _Key, text: str, element: _Element) -> Any:
    """Return the value of an attribute: a number if its type is one, else text."""
    if key.type not in _NUMBER_TYPES:
        return text
    try:
        return _NUMBER_TYPES[key.type](text)
    except ValueError:
        raise InputError(
            f"{element.place_text} must be of the type {key.type} for {key.name}, not "
            f"{message_text(text)}"
        ) from None


def _parse_xml(text: str) -> _Element:
    """Return the outermost element of XML; document types, and so entities, are refused."""
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    stack = [_Element("", {}, 1)]

    def open_element(name: str, attributes: dict[str, str]) -> None:
        element = _Element(name.split(" ")[-1], attributes, parser.CurrentLineNumber)
        stack[-1].children.append(element)
        stack.append(element)

    def close_element(_: str) -> None:
        stack.pop()

    def add_text(piece: str) -> None:
        stack[-1].text += piece

    def refuse_type(*_: object) -> NoReturn:
        raise InputError(
            f"line {parser.CurrentLineNumber} must have no document type (DOCTYPE); leave it out"
        )

    parser.StartElementHandler, parser.EndElementHandler = open_element, close_element
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = add_text, refuse_type
    try:
        parser.Parse(text.encode("utf-8"), True)  # noqa: FBT003
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise InputError(f"line {error.lineno} must be XML, not damaged ({reason})") from None
    return stack[0].children[0]
