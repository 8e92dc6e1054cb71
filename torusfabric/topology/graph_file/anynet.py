"""Reader of the network files of BookSim, its topology ``anynet``.

A line names a router, and the routers and nodes to which it is connected. A number behind one of
these is the latency of the channel in cycles, 1 if it is left out::

    router 0 node 0 router 1 15 router 2

A channel between routers has a latency in each direction. The line above says that of the direction
from router 0 to router 1. The other direction has 1 cycle, unless a line of router 1 says another
number. A link of this package has one latency, so the larger number counts both ways.

Node k of the graph is node k of the file. A router with one node is one node of the graph together
with it. The label is the number k if the router has the number k, too; else it is the name of the
router, such as ``router5``. A router with several nodes or none only relays: it is a node of its
own, numbered after the nodes of the file, and has a link to each of its nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...errors import InputError
from ...toolchain.values import message_text
from ..latency import MOST_CYCLES
from .contents import MOST_ARCS, MOST_NODES, Edge, GraphFile, check_count
from .lines import Line

__all__ = ["is_anynet", "parse_anynet"]

#: One entry of a line: the kind, the number, and perhaps the latency of the channel.
_ENTRY = re.compile(r"(router|node) ([0-9]{1,9})(?: ([0-9]{1,9}))?(?: |$)")


class _Entry(NamedTuple):
    """A router or node in a line, and the latency in cycles that follows it."""

    kind: str
    number: int
    cycles: int | None

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


def is_anynet(lines: Sequence[Line]) -> bool:
    """Return True if the first line of a file begins as in a network file of BookSim."""
    words = lines[0].words if lines else []
    return len(words) > 1 and words[0] in ("router", "node") and words[1].isdecimal()


def parse_anynet(lines: Sequence[Line]) -> GraphFile:
    """Return the graph of a network file of BookSim."""
    routers: dict[int, Line] = {}
    router_of: dict[int, int] = {}
    node_cycles: dict[int, int] = {}
    channels: dict[tuple[int, int], tuple[int, Line]] = {}
    for line in lines:
        head, *others = _parse_entries(line)
        for entry in (head, *others):
            if entry.kind == "router":
                routers.setdefault(entry.number, line)
        for other in others:
            if head.kind == other.kind == "node":
                raise InputError(f"{line.place_text} must not connect {head} to {other}")
            if head.kind == other.kind:
                _add_channel(channels, (head.number, other.number), other.cycles or 1, line)
                continue
            node, router = (e.number for e in sorted((head, other), key=lambda e: e.kind))
            if router_of.setdefault(node, router) != router:
                raise InputError(
                    f"{line.place_text} must not connect node {node} to router {router}, for it is "
                    f"connected to router {router_of[node]}"
                )
            node_cycles[node] = max(node_cycles.get(node, 1), other.cycles or 1)
    _check_numbers(routers, router_of)
    check_count("channels", channels, MOST_ARCS)
    relays = _number_relays(routers, router_of)
    node_of = {router: node for node, router in router_of.items()} | relays
    edges, uneven = [], 0
    for (tail, head_router), (cycles, line) in channels.items():
        back, _ = channels.get((head_router, tail), (1, line))
        uneven += cycles != back
        if tail <= head_router or (head_router, tail) not in channels:
            ends = node_of[tail], node_of[head_router]
            edges.append(Edge(*ends, location=line.place_text, cycles=max(cycles, back)))
    edges += [
        Edge(node, node_of[router], location=routers[router].place_text, cycles=node_cycles[node])
        for node, router in sorted(router_of.items())
        if router in relays
    ]
    labels = [
        f"router{router}" if node != router and router not in relays else str(node)
        for node, router in sorted(router_of.items())
    ]
    labels += [f"router{router}" for router in relays]
    choices = []
    if uneven:
        choices.append("of two latencies of a link, the larger counts both ways")
    if any(node_cycles[node] > 1 for node, its in router_of.items() if its not in relays):
        choices.append("the latency from a node to its router is not used")
    return GraphFile(labels, edges, (), tuple(choices), tuple(relays.values()))


def _parse_entries(line: Line) -> list[_Entry]:
    """Return the routers and nodes of a line."""
    text, entries = " ".join(line.words), []
    while match := _ENTRY.match(text):
        cycles = None if match[3] is None else int(match[3])
        entries.append(_Entry(match[1], int(match[2]), cycles))
        text = text[match.end() :]
    if text or line.data or not entries or entries[0].cycles is not None:
        raise InputError(
            f"{line.place_text} must be a router and its connections, as in `router 0 node 0 "
            f"router 1 15`, not {message_text(line.text)}"
        )
    for entry in entries:
        if entry.number >= MOST_NODES:
            raise InputError(
                f"{line.place_text} must have numbers from 0 to {MOST_NODES - 1}, not {entry}"
            )
        if entry.cycles is not None and not 1 <= entry.cycles <= MOST_CYCLES:
            raise InputError(
                f"{line.place_text} must have latencies from 1 to {MOST_CYCLES} cycles, not "
                f"{entry.cycles} behind {entry}"
            )
    return entries


def _add_channel(
    channels: dict[tuple[int, int], tuple[int, Line]],
    ends: tuple[int, int],
    cycles: int,
    line: Line,
) -> None:
    """Enter the channel of a line into `channels`, by the routers at its ends.

    An entry has the latency in cycles and the line. A second entry with another latency is refused.
    """
    before, first = channels.setdefault(ends, (cycles, line))
    if before != cycles:
        raise InputError(
            f"{line.place_text} must not give the channel from router {ends[0]} to router "
            f"{ends[1]} {cycles} cycles, for {first.place_text} gives it {before}"
        )


def _number_relays(routers: Collection[int], router_of: Mapping[int, int]) -> dict[int, int]:
    """Return the node of the graph for each router that only relays, ascending.

    These routers have several nodes or none; their numbers follow those of all nodes.
    """
    counts = Counter(router_of.values())
    relays = sorted(router for router in routers if counts[router] != 1)
    return {router: node for node, router in enumerate(relays, len(router_of))}


def _check_numbers(routers: dict[int, Line], router_of: dict[int, int]) -> None:
    """Check that routers and nodes are numbered from 0 on."""
    for kind, numbers in ("router", routers), ("node", router_of):
        for number in range(len(numbers)):
            if number not in numbers:
                raise InputError(
                    f"it must number each {kind} from 0 to {len(numbers) - 1}, as BookSim demands, "
                    f"but {kind} {number} is missing"
                )
