"""Readers of edge lists and adjacency lists: text in which a line names nodes.

=======================  ==========================================  ===============================
format                   a line                                      example
=======================  ==========================================  ===============================
edge list                two nodes, and perhaps attributes           ``0 1``, ``a b {'port': 3}``
weighted edge list       two nodes and a number                      ``0 1 2.5``
adjacency list           a node and its neighbours                   ``0 1 2 5``
adjacency list of        a node and a number k, then k lines with    ``0 2``, then ``1 {}`` and
several lines            a neighbour and its attributes              ``2 {}``
=======================  ==========================================  ===============================

Nodes are numbers from 0 on, or words. An edge is a *link*, with an arc in each direction. The first
line of a file may hold *mode words*: ``directed`` if an edge is a single arc, ``undirected`` if
also the edges ``1 2`` and ``2 1`` are two links, ``edges`` or ``adjacency`` for the format.

In an adjacency list each node has a line of its own. Either every link stands in the lines of both
of its nodes, or every link stands in one line.

A file of three numbers a line may be a weighted edge list or an adjacency list. `parse_lines` tries
both. It refuses the file if both are possible and neither mode words nor the name of the file
decide.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import InputError
from ...toolchain.values import message_text
from .contents import MOST_ARCS, MOST_NODES, Edge, GraphFile, check_count, refuse_repeated

__all__ = ["parse_lines", "split_lines"]

#: Mode words, each with the choice that it makes and the value of the choice.
_MODE_WORDS = {
    "directed": ("directed", True),
    "undirected": ("directed", False),
    "edges": ("adjacency", False),
    "adjacency": ("adjacency", True),
}

#: The extensions of file names that decide between the formats; True for an adjacency list.
_EXTENSIONS = {
    ".adj": True,
    ".adjlist": True,
    ".edgelist": False,
    ".edges": False,
    ".wedgelist": False,
}

#: A line: words, attributes in braces as NetworkX writes them, and a comment.
_LINE = re.compile(r"([^{#]*)(\{.*\})?\s*(?:#.*)?")

#: A node that is a number; a node that is a word.
_NUMBER, _WORD = re.compile("[0-9]{1,4000}"), re.compile(r"\w[\w.:/@+-]*")

#: A number in the third column of a weighted edge list.
_WEIGHT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|[+-]?inf")

#: The advice for files that could be of either format.
_ADVICE = "begin the file with a line `edges` or `adjacency`"


class Line(NamedTuple):
    """A line of a file that is not empty.

    Parameters
    ----------
    number : int
        The number of the line, from 1 on.
    words : list of str
        The words before attributes and comment.
    data : str
        The attributes as text in braces; empty if there are none.
    text : str
        The whole line.
    """

    number: int
    words: list[str]
    data: str
    text: str

    @property
    def place_text(self) -> str:
        """The place in the file, for messages."""
        return f"line {self.number}"


class _Pair(NamedTuple):
    """An edge of a file before nodes are numbered: two names of nodes, attributes, and its line."""

    tail: str
    head: str
    data: dict[str, Any]
    line: Line


class _List(NamedTuple):
    """The lines of a list behind the mode words, and the choice ``directed``; None if left open."""

    lines: Sequence[Line]
    directed: bool | None


#: A reader of one format.
_Reader = Callable[[_List], GraphFile]


def split_lines(text: str) -> list[Line]:
    """Return the lines of a file without empty ones and comments."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(line)
        words, data = (found[1], found[2] or "") if found else (line, "")
        if words.split() or data:
            lines.append(Line(number, words.split(), data, line.strip()))
    return lines


def parse_lines(lines: Sequence[Line], extension: str) -> GraphFile:
    """Return the graph of an edge list or of an adjacency list.

    Parameters
    ----------
    lines : sequence of Line
        All lines as `split_lines` returns them, mode words among them.
    extension : str
        The extension of its name, such as ``.adjlist``, which decides where the content does not.
    """
    modes: dict[str, bool] = {}
    if lines and not lines[0].data and {*lines[0].words} <= {*_MODE_WORDS}:
        for word in lines[0].words:
            choice, value = _MODE_WORDS[word]
            if modes.setdefault(choice, value) is not value:
                raise InputError(
                    f"{lines[0].place_text} must not say {message_text(lines[0].text)}, for one "
                    "word excludes the other"
                )
        lines = lines[1:]
    if not lines:
        raise InputError("it must have a line for each edge or node, but it is empty")
    source, adjacency = _List(lines, modes.get("directed")), modes.get("adjacency")
    if adjacency is not None:
        return _reader_of(lines, adjacency=adjacency)(source)
    return _read_by_content(source, named=_EXTENSIONS.get(extension))


def _reader_of(lines: Sequence[Line], *, adjacency: bool) -> _Reader:
    """Return the reader of adjacency lists or of edge lists that fits the attributes in a file."""
    if not adjacency:
        return _read_edges
    return _read_blocks if any(line.data for line in lines) else _read_open_adjacency


def _read_by_content(source: _List, *, named: bool | None) -> GraphFile:
    """Return the graph of a file whose format follows from its content.

    `named` is the format that the extension of the file name says: True for an adjacency list,
    False for an edge list, None if it says nothing.
    """
    lines = source.lines
    counts = {len(line.words) for line in lines}
    if any(line.data for line in lines):
        single = [len(line.words) == 1 for line in lines if line.data]
        return (_read_blocks if all(single) else _read_edges)(source)
    if counts == {2}:
        return _read_edges(source)
    if counts == {3} and all(_WEIGHT.fullmatch(line.words[2]) for line in lines):
        return _read_triples(source, named=named)
    if named is False:
        return _read_edges(source)
    return (_read_open_adjacency if named else _read_adjacency)(source)


def _read_triples(source: _List, *, named: bool | None) -> GraphFile:
    """Return the graph of lines with two nodes and a number: an edge list or an adjacency list."""
    found: dict[bool, GraphFile] = {}
    errors: dict[bool, InputError] = {}
    read_adjacency = _read_open_adjacency if named else _read_adjacency
    for adjacency, read in (False, _read_edges), (True, read_adjacency):
        try:
            found[adjacency] = read(source)
        except InputError as error:
            errors[adjacency] = error
    if not found:
        raise errors[bool(named)]
    if len(found) == 1 or _count_arcs(found[False]) == _count_arcs(found[True]):
        return found[max(found)]
    if named is None:
        raise InputError(
            "it may be an adjacency list, or an edge list with a weight in each line; "
            f"{_ADVICE}, or end its name in .edgelist or .adjlist"
        )
    choice = "an adjacency list" if named else "an edge list with a weight in each line"
    return found[named]._replace(choices=(f"it is read as {choice}, because its name says so",))


def _count_arcs(graph: GraphFile) -> Counter[tuple[int, int]]:
    """Return the number of arcs from one node to another, by the pair of nodes."""
    arcs = Counter(edge[:2] for edge in graph.edges)
    return arcs + Counter(edge[1::-1] for edge in graph.edges if not edge.directed)


def _read_edges(source: _List) -> GraphFile:
    """Return the graph of an edge list, perhaps with a weight in each line."""
    pairs = []
    for line in source.lines:
        weighted = len(line.words) == 3 and not line.data and _WEIGHT.fullmatch(line.words[2])
        if len(line.words) != 2 and not weighted:
            raise _not_an_edge(line)
        data = _parse_data(line)
        if weighted:
            data["weight"] = float(line.words[2])
        pairs.append(_Pair(line.words[0], line.words[1], data, line))
    labels, edges = _number_nodes([], pairs, directed=bool(source.directed))
    if source.directed is None:
        advice = "begin the file with a line `directed` if a line is one way, else `undirected`"
        refuse_repeated(edges, advice, both_ways_only=True)
    return GraphFile(labels, edges)


def _read_adjacency(source: _List) -> GraphFile:
    """Return the graph of an adjacency list in which each node has exactly one line.

    A file without this property may be an edge list with a mistake. It is refused.
    """
    lines = source.lines
    heads = Counter(line.words[0] for line in lines)
    for word in (word for line in lines for word in line.words):
        if heads[word] != 1:
            count = "two lines" if heads[word] else "no line"
            odd = next(line for line in lines if len(line.words) != 2)
            raise _not_an_edge(
                odd, f"in an adjacency list each node has a line, but {word[:20]} has {count}"
            )
    return _read_open_adjacency(source)


def _read_open_adjacency(source: _List) -> GraphFile:
    """Return the graph of an adjacency list in which a node may have any number of lines."""
    pairs = [
        _Pair(line.words[0], head, {}, line) for line in source.lines for head in line.words[1:]
    ]
    return _join_neighbours([(line.words[0], line) for line in source.lines], pairs, source)


def _read_blocks(source: _List) -> GraphFile:
    """Return the graph of an adjacency list of several lines: each node, then its neighbours."""
    heads: list[tuple[str, Line]] = []
    pairs: list[_Pair] = []
    left, rest = 0, Line(0, [], "", "")
    for line in source.lines:
        if left:
            if len(line.words) != 1:
                raise InputError(
                    f"{line.place_text} must be a neighbour of node {rest.words[0]}, for "
                    f"{rest.place_text} announces {rest.words[1]}, not {message_text(line.text)}"
                )
            pairs.append(_Pair(rest.words[0], line.words[0], _parse_data(line), line))
            left -= 1
        elif len(line.words) != 2 or line.data or not re.fullmatch("[0-9]{1,9}", line.words[1]):
            raise InputError(
                f"{line.place_text} must be a node and the number of its neighbours, not "
                f"{message_text(line.text)}"
            )
        else:
            heads.append((line.words[0], line))
            left, rest = int(line.words[1]), line
    if left:
        raise InputError(
            f"{rest.place_text} must announce the lines that follow, not {left} more than there are"
        )
    return _join_neighbours(heads, pairs, source)


def _join_neighbours(
    heads: Sequence[tuple[str, Line]], pairs: Sequence[_Pair], source: _List
) -> GraphFile:
    """Return the graph of an adjacency list.

    Parameters
    ----------
    heads : sequence of (str, Line)
        The nodes that begin a line, in the order of the file, and their lines.
    pairs : sequence of _Pair
        Each node with each of its neighbours.
    source : _List
        The choice whether a pair is an arc or a link. If it is open, pairs are links, and a link
        may be named by both of its nodes if all links are.
    """
    check_count("edges", pairs, MOST_ARCS)
    if source.directed is None:
        times = Counter((pair.tail, pair.head) for pair in pairs)
        both = {ends for ends in times if times[ends[::-1]] and ends[0] != ends[1]}
        odd = next((p for p in pairs if times[p[:2]] != times[p[1::-1]]), None)
        if both and odd is not None:
            even = next(pair for pair in pairs if (pair.tail, pair.head) in both)
            raise InputError(
                f"{odd.line.place_text} must name node {odd.head} in the line of node {odd.tail} "
                f"and back, as {even.line.place_text} does with node {even.head} (begin the file "
                "with a line `directed` if a neighbour is one way, else `undirected`)"
            )
        if both:
            place = {name: position for position, (name, _) in enumerate(heads)}
            pairs = [pair for pair in pairs if place[pair.tail] <= place[pair.head]]
    return GraphFile(*_number_nodes(heads, pairs, directed=bool(source.directed)))


def _number_nodes(
    heads: Sequence[tuple[str, Line]], pairs: Sequence[_Pair], *, directed: bool
) -> tuple[list[str], list[Edge]]:
    """Return the labels of all nodes, and the edges between their numbers.

    Nodes are all numbers, from 0 to the largest in the file, or all words, numbered in the order of
    the file. `heads` are nodes that come before those of `pairs` in this order, each with its line.
    """
    check_count("edges", pairs, MOST_ARCS)
    named = [*heads, *((name, pair.line) for pair in pairs for name in pair[:2])]
    _check_names(named)
    if _NUMBER.fullmatch(named[0][0]):
        labels = [str(node) for node in range(1 + max(int(name) for name, _ in named))]
        number = {name: int(name) for name, _ in named}
    else:
        labels = [*dict.fromkeys(name for name, _ in named)]
        number = {name: node for node, name in enumerate(labels)}
    return labels, [
        Edge(number[pair.tail], number[pair.head], pair.data, directed, pair.line.place_text)
        for pair in pairs
    ]


def _check_names(named: Sequence[tuple[str, Line]]) -> None:
    """Check that the names of nodes are all numbers or all words. Each name has its line."""
    first = named[0][1]
    kinds = {True: "a number", False: "a word"}
    numeric = _NUMBER.fullmatch(named[0][0]) is not None
    for name, line in named:
        is_number = _NUMBER.fullmatch(name) is not None
        if not is_number and not _WORD.fullmatch(name):
            commas = "separate columns by blanks, not by commas" if "," in name else ""
            raise _not_an_edge(line, commas)
        if is_number is not numeric:
            raise InputError(
                f"{line.place_text} must name a node by {kinds[numeric]}, as {first.place_text} "
                f"does, not {message_text(name)}"
            )
        if is_number and int(name) >= MOST_NODES:
            raise InputError(
                f"{line.place_text} must be of nodes from 0 to {MOST_NODES - 1}, not "
                f"{message_text(line.text)}"
            )


def _not_an_edge(line: Line, reason: str = "") -> InputError:
    """Return the error of a line that is no edge; `reason` is further help."""
    return InputError(
        f"{line.place_text} must be two nodes, not {message_text(line.text)}"
        f"{f' ({reason})' if reason else ''}"
    )


def _parse_data(line: Line) -> dict[str, Any]:
    """Return the attributes of a line."""
    try:
        given = ast.literal_eval(line.data or "{}")
        return {str(name): value for name, value in given.items()}
    except (ValueError, SyntaxError, AttributeError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{line.place_text} must have attributes such as {{'port': 'a'}}, not "
            f"{message_text(line.data)}"
        ) from None
