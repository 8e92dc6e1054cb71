"""`Traffic`: messages that a user lists, each from one node to one or several nodes.

A file lists messages as CSV, or as JSON objects, one a line. A node holds its messages in numbered
places, and a message has the same number at its source and at all its destinations. No two messages
of a node, and no two for a node, have the same number. Numbers are the colours of an edge
colouring, so messages with one destination each need only as many numbers as the busiest node has
messages.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Self

from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public_class
from ..toolchain.reading import parse_json, read_text
from ..toolchain.values import (
    entries_of,
    is_iterable,
    message_text,
    parse_positive_int,
    require_type,
)
from ..topology import IntArray, Topology

__all__ = ["Message", "Traffic", "integer_table"]

#: The names of the columns of a file; the first two are required.
COLUMNS = ("source", "destinations", "words", "tag")

#: The most messages, and the largest file in bytes.
MOST_MESSAGES, MOST_FILE_BYTES = 2**18, 2**26


class Message(NamedTuple):
    """One message of a `Traffic`.

    Parameters
    ----------
    source : int
        The node that sends the message.
    destinations : tuple of int
        The nodes that receive it, one or several.
    words : int
        Length of the message in flits.
    tag : str
        A name for people; it appears in the manifest.
    """

    source: int
    destinations: tuple[int, ...]
    words: int = 1
    tag: str = ""


@public_class
@dataclass(frozen=True)
class Traffic:
    """Messages between nodes, all of which are known before the hardware is built.

    Parameters
    ----------
    messages : iterable of (source, destinations, words, tag)
        Each message is a tuple, a mapping with these keys, or a `Message`. `destinations` is a node
        or several nodes. `words` is the length in flits (default 1), and `tag` a name (default
        none).
    topology : Topology, optional
        The network in which names in place of node numbers are looked up.

    Raises
    ------
    InputError
        If there is no message, or one has a wrong value, or a node sends to itself.

    Examples
    --------
    Node 0 sends four flits to node 1, and two flits to the nodes 2 and 3:

    >>> import torusfabric as tf
    >>> traffic = tf.Traffic([(0, 1, 4), (0, [2, 3], 2)])
    >>> traffic.messages[1].destinations, traffic.message_numbers, traffic.longest_flits
    ((2, 3), (1, 0), 4)
    >>> tf.Traffic([("(0,1)", "(1,1)")], tf.Torus(4, 4)).messages[0].destinations
    (5,)
    """

    messages: tuple[Message, ...]

    def __init__(self, messages: Iterable[Any], topology: Topology | None = None) -> None:
        if topology is not None:
            require_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        if isinstance(messages, Traffic):
            messages = messages.messages
        if isinstance(messages, str | bytes | Mapping) or not is_iterable(messages):
            raise InputError(
                "Traffic must be a list of messages, such as tf.Traffic([(0, 5, 8)]), not "
                f"{message_text(messages)}"
            )
        find_node = partial(_find_node, topology=topology)
        read = tuple(
            _parse_message(entry, f"Message {k}", find_node) for k, entry in enumerate(messages, 1)
        )
        if not 0 < len(read) <= MOST_MESSAGES:
            raise InputError(f"Traffic must have 1 to {MOST_MESSAGES} messages, not {len(read)}")
        object.__setattr__(self, "messages", read)

    @classmethod
    def read(cls, path: AnyPath, topology: Topology | None = None) -> Self:
        """Return the traffic that a file lists.

        Parameters
        ----------
        path : path
            A CSV file whose first line names the columns ``source,destinations,words,tag``; several
            destinations have blanks between them. Or a file with a JSON object a line, with the
            same keys, where ``destinations`` is a number or a list.
        topology : Topology, optional
            The network. If it is given, a file may have names of nodes in place of numbers. A
            number that is also the name of another node is refused; ``(7)`` is the name 7.

        Raises
        ------
        InputError
            If the file cannot be read. The message names the line.
        """
        if topology is not None:
            require_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        text = read_text(path, "Traffic file", most=MOST_FILE_BYTES)
        is_json = text.lstrip()[:1] in ("{", "[")
        entries = _json_entries(text) if is_json else _csv_entries(text, topology)
        find_node = partial(_find_node, topology=topology, in_file=True)
        found: list[Message] = []
        for line, entry in entries:
            try:
                found.append(_parse_message(entry, f"Line {line}", find_node))
            except InputError as error:
                raise InputError(f"Traffic file {path}: {error}") from None
        if not found:
            raise InputError(f"Traffic file {path} must list at least one message")
        return cls(found)

    @classmethod
    def from_graph(
        cls, graph: Any, weight: str = "weight", topology: Topology | None = None
    ) -> Self:
        """Return a message for each edge of a NetworkX graph.

        Parameters
        ----------
        graph : networkx.DiGraph
            The nodes are numbers, or names of nodes of `topology`. An edge of an undirected graph
            stands for a message each way.
        weight : str
            The attribute of an edge that has the length of its message in flits (default 1).
        topology : Topology, optional
            The network in which names are looked up.

        Examples
        --------
        >>> import networkx as nx
        >>> Traffic.from_graph(nx.DiGraph([(0, 1, {"weight": 3})])).messages[0].words
        3
        """
        if not hasattr(graph, "to_directed"):
            raise InputError(f"Graph must be a NetworkX graph, not {message_text(graph)}")
        directed = graph.to_directed()
        edges = ((a, b, data.get(weight, 1)) for a, b, data in directed.edges(data=True))
        return cls(edges, topology)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Self:
        """Return a message for each entry above 0 of a matrix.

        Parameters
        ----------
        matrix : array_like of int, shape (nodes, nodes)
            Entry [a, b] is the length in flits of the message from node a to node b.

        Examples
        --------
        >>> len(Traffic.from_matrix([[0, 2], [1, 0]]).messages)
        2
        """
        table = integer_table("Matrix of traffic", matrix)
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise InputError("Matrix of traffic must be square")
        pairs = np.argwhere(table > 0).tolist()
        return cls((a, b, int(table[a, b])) for a, b in pairs)

    @property
    def longest_flits(self) -> int:
        """Flits of the longest message."""
        return max(message.words for message in self.messages)

    @property
    def has_one_length(self) -> bool:
        """True if all messages have the same length; it may then be chosen anew."""
        return len({message.words for message in self.messages}) == 1

    @cached_property
    def message_numbers(self) -> tuple[int, ...]:
        """The number of each message at its source and its destinations, from 0."""
        return tuple(_number_messages(self.messages))

    @cached_property
    def delivery_table(self) -> IntArray:
        """Source, number and destination of each delivery, shape (deliveries, 3)."""
        return np.array([
            (message.source, number, destination)
            for message, number in zip(self.messages, self.message_numbers, strict=True)
            for destination in message.destinations
        ])  # fmt: skip

    def find_deliveries(self, source: IntArray, number: IntArray) -> tuple[IntArray, IntArray]:
        """Return the deliveries of messages, each given by its source and its number.

        Parameters
        ----------
        source, number : ndarray of int
            Source and number of each message. A source without such a message delivers nothing.

        Returns
        -------
        index, destination : ndarray of int
            For each delivery, the index of its message in `source`, and the node that receives it.

        Examples
        --------
        The message with number 0 of node 0 goes to two nodes:

        >>> traffic = Traffic([(0, 1, 4), (0, [2, 3], 2)])
        >>> index, destination = traffic.find_deliveries(np.array([0]), np.array([0]))
        >>> index.tolist(), destination.tolist()
        ([0, 0], [2, 3])
        """
        table, size = self.delivery_table, 1 + max(self.message_numbers)
        keys = table[:, 0] * size + table[:, 1]
        order = np.lexsort((table[:, 2], keys))
        asked = source * size + number
        low, high = (np.searchsorted(keys[order], asked, side) for side in ("left", "right"))
        counts = high - low
        index = np.repeat(np.arange(len(asked)), counts)
        within = np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
        return index, table[order[low[index] + within], 2]

    def flits_by_number(self, nodes: int) -> IntArray:
        """Return the flits of each message by source and number, shape (nodes, numbers).

        Parameters
        ----------
        nodes : int
            Number of nodes of the network.
        """
        found: IntArray = np.zeros((nodes, max(self.message_numbers) + 1), int)
        for message, number in zip(self.messages, self.message_numbers, strict=True):
            found[message.source, number] = message.words
        return found

    def check_nodes(self, nodes: int, relays: Sequence[int] = ()) -> None:
        """Raise an `InputError` if a message names a node that does not exist or only relays.

        Parameters
        ----------
        nodes : int
            Number of nodes of the network.
        relays : sequence of int
            The nodes that send and receive nothing of their own.
        """
        ends = np.unique(self.delivery_table[:, ::2])
        if ends[-1] >= nodes:
            raise InputError(f"Nodes of traffic must be from 0 to {nodes - 1}, not {ends[-1]}")
        for node in ends[np.isin(ends, relays)].tolist():
            raise InputError(
                f"Traffic must leave out node {node}, a relay, which sends and receives nothing "
                "of its own"
            )

    def to_json(self) -> list[list[Any]]:
        """Return the messages as an entry of a schedule file, [source, destinations, words, tag].

        The tag is left out if it is empty.
        """
        return [
            [m.source, list(m.destinations), m.words, *([m.tag] if m.tag else [])]
            for m in self.messages
        ]

    def __repr__(self) -> str:
        return f"<Traffic of {len(self.messages)} messages>"


def integer_table(what: str, values: Any) -> IntArray:
    """Return numbers that a user gives as an array, after checking that they are integers.

    Parameters
    ----------
    what : str
        Noun for the numbers, with which an error message begins.
    values : array_like of int
        A list of numbers, or a list of equally long lists.

    Raises
    ------
    InputError
        If the values are no integers, or the lists have different lengths.
    """
    try:
        table = np.asarray(values)
    except ValueError:
        table = np.empty(0)
    if table.dtype.kind not in "iu" or table.ndim not in (1, 2) or not table.size:
        raise InputError(
            f"{what} must be a list or a matrix of integers, not {message_text(values)}"
        )
    return table


def _find_node(
    node: object, noun: str, topology: Topology | None, *, in_file: bool = False
) -> int | None:
    """Return the number of a node, given its number or its name; None for any other value.

    Parameters
    ----------
    noun : str
        Noun for the node, with which an error message begins.
    topology : Topology or None
        The network in which a name is looked up.
    in_file : bool
        True to refuse a number that is also the name of another node.
    """
    if topology is not None and in_file and isinstance(node, str | int):
        return None if isinstance(node, bool) else topology.node_in_file(node, noun=noun)
    if topology is not None and isinstance(node, str):
        return topology.node_number(node, noun=noun)
    return node if type(node) is int and node >= 0 else None


def _parse_message(
    entry: Any, where: str, find_node: Callable[[object, str], int | None]
) -> Message:
    """Return a message, given as a tuple or a mapping; `where` names it in errors.

    `find_node` returns the number of a node that a message names, or None.
    """
    if isinstance(entry, Mapping):
        if unknown := [key for key in entry if key not in COLUMNS]:
            raise InputError(f"{where} must have the keys {', '.join(COLUMNS)}, not {unknown[0]}")
        if "source" not in entry or "destinations" not in entry:
            raise InputError(f"{where} must have a source and destinations")
        given: Sequence[Any] = [entry.get(key, default) for key, default in zip(
            COLUMNS, (None, None, 1, ""), strict=True)]  # fmt: skip
    elif isinstance(entry, tuple | list) and 2 <= len(entry) <= len(COLUMNS):
        given = [*entry, *(1, "")[len(entry) - 2 :]]
    else:
        raise InputError(
            f"{where} must be (source, destinations, words, tag), not {message_text(entry)}"
        )
    source, destinations, words, tag = given
    ends = [find_node(source, f"{where}: source")]
    ends += [find_node(node, f"{where}: destination") for node in entries_of(destinations)]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        raise InputError(
            f"{where}: nodes must be numbers from 0 on, or names with topology=.., not {source}, "
            f"{destinations}"
        )
    node, *nodes = known
    if not isinstance(tag, str | int | float):
        raise InputError(f"{where}: the tag must be a text, not {message_text(tag)}")
    if not nodes or len(set(nodes)) < len(nodes):
        raise InputError(f"{where} must have one or several different destinations")
    if node in nodes:
        raise InputError(f"{where} must lead to other nodes than its source, {node}")
    return Message(node, tuple(nodes), parse_positive_int(f"{where}: words", words), str(tag))


def _json_entries(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the line and the value of each JSON object of a file."""
    for line, row in enumerate(text.splitlines(), 1):
        if row.strip():
            try:
                yield line, parse_json(row.encode())
            except ValueError as error:
                raise InputError(
                    f"Line {line} of the traffic file must be a JSON object of its own ({error})"
                ) from None


def _csv_entries(text: str, topology: Topology | None) -> Iterator[tuple[int, Any]]:
    """Yield the line and the values of each row of a CSV file, keyed by the names of columns.

    Destinations have blanks between them, unless they are together the name of a node of
    `topology`.
    """
    rows = csv.reader(line for line in text.splitlines())
    head = [name.strip().lower() for name in next(rows, [])]
    while head and not head[-1]:  # commas behind the last value
        del head[-1]
    head = ["destinations" if name == "destination" else name for name in head]
    if not {"source", "destinations"} <= set(head) <= set(COLUMNS) or len({*head}) < len(head):
        raise InputError(
            f"Traffic file must begin with the line {','.join(COLUMNS)} (words and tag may be left "
            f"out), not {message_text(','.join(head))}"
        )
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        while len(row) > len(head) and not row[-1].strip():
            del row[-1]
        if len(row) != len(head):
            raise InputError(
                f"Line {rows.line_num} of the traffic file must have {len(head)} values, not "
                f"{len(row)}"
            )
        entry: dict[str, Any] = dict(zip(head, map(str.strip, row), strict=True))
        for name in ("source", "words"):
            if entry.get(name, "").isdecimal():
                entry[name] = int(entry[name])
        whole, several = entry["destinations"], entry["destinations"].split()
        if topology is not None and len(several) > 1 and topology.find_node(whole) is not None:
            if all(topology.find_node(node) is not None for node in several):
                raise InputError(
                    f"Line {rows.line_num} of the traffic file: {message_text(whole)} is the name "
                    "of one node, and a list of others; write JSON lines"
                )
            several = [whole]
        entry["destinations"] = [int(node) if node.isdecimal() else node for node in several]
        yield rows.line_num, entry


def _number_messages(messages: Sequence[Message]) -> list[int]:
    """Return a number for each message, which no other one has at its source or a destination.

    Messages with several destinations get the first free number. Messages with one destination
    are then coloured as the edges of a bipartite graph: if no number is free at both ends, the
    numbers a and b along the path of messages that alternate between a and b are swapped.

    Source: D. Koenig, "Graphok es alkalmazasuk", 1916.
    """
    sent = [_NumberedMessages() for _ in range(1 + max(m.source for m in messages))]
    received = [_NumberedMessages() for _ in range(1 + max(max(m.destinations) for m in messages))]
    numbers = [-1] * len(messages)

    def ends_of(message: int) -> list[_NumberedMessages]:
        source, destinations, *_ = messages[message]
        return [sent[source], *(received[node] for node in destinations)]

    def assign_number(message: int, number: int) -> None:
        numbers[message] = number
        for end in ends_of(message):
            end.add(message, number)

    def coloring_rank(message: int) -> tuple[int, int]:
        # In this order an all-to-all gets a Latin square without any swap.
        source, destinations, *_ = messages[message]
        return -len(destinations), (destinations[0] - source) % max(len(sent), len(received))

    for k in sorted(range(len(messages)), key=coloring_rank):
        ends = ends_of(k)
        free = _first_zero(*(end.used for end in ends))
        if len(ends) > 2 or free <= max(end.used.bit_count() for end in ends):
            assign_number(k, free)
            continue
        a, b = (_first_zero(end.used) for end in ends)
        # The path begins at the destination, where b is free and a is not.
        path, at, number = list[int](), ends[1], a
        while (other := at.messages.get(number)) is not None:
            if len(messages[other].destinations) > 1:
                break
            path.append(other)
            source, target = ends_of(other)
            at, number = source if at is target else target, b if number == a else a
        else:
            for other in path:
                for end in ends_of(other):
                    end.remove(numbers[other])
            for other in path:
                assign_number(other, b if numbers[other] == a else a)
            free = a
        assign_number(k, free)
    return numbers


class _NumberedMessages:
    """The messages that a node sends, or receives, by their numbers.

    Attributes
    ----------
    messages : dict of int to int
        The index of the message with each number.
    used : int
        A bit for each number; 1 if the number is taken.
    """

    def __init__(self) -> None:
        self.messages: dict[int, int] = {}
        self.used = 0

    def add(self, message: int, number: int) -> None:
        """Give a message a number that is free."""
        self.messages[number] = message
        self.used |= 1 << number

    def remove(self, number: int) -> None:
        """Free a number."""
        del self.messages[number]
        self.used &= ~(1 << number)


def _first_zero(*masks: int) -> int:
    """Return the index of the lowest bit that is 0 in all masks."""
    used = 0
    for mask in masks:
        used |= mask
    return (~used & (used + 1)).bit_length() - 1
