"""Paths or trees of messages that load the arcs of any network evenly, and when messages go.

Messages are given shortest paths, or trees of shortest paths, some at a time, where arcs are the
longer the more they carry already, and again when all have some. Then each arc sends, in every
step, that of the messages waiting for it which has the farthest to go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...schedule import Listed, Transfers

if TYPE_CHECKING:
    from ...analysis.congestion import Lengths
    from ...topology import IntArray

__all__ = ["Choose", "Loads", "spread", "timed"]

#: How often every message is given arcs, and in how many parts; large networks have fewer.
PASSES, PARTS, WORK = 3, 64, 8192

#: How many hops longer an arc is when it carries as much as it should, and how steeply that grows.
PENALTY, STEEPNESS = 1.0, 8

#: How many hops longer an arc is for each message too many, and grows whenever it has one.
TOO_FULL, AGAIN = 2.0, 0.3

#: The arcs of some messages, given by which arc the shortest path from each node comes to each.
Choose: TypeAlias = Callable[["IntArray", "IntArray"], Sequence["IntArray"]]


def spread(
    arcs: Lengths, count: int, most: float, random: np.random.Generator, choose: Choose
) -> list[list[int]]:
    """The arcs that each of so many messages takes.

    Parameters
    ----------
    most : float
        What the busiest arc carries at the least.
    choose : function of (by, messages)
        The arcs of messages, where ``by[start, node]`` is the arc of the shortest path to a node.
    """
    load = np.zeros(len(arcs.tail), np.int64)
    taken: list[IntArray] = [np.empty(0, int)] * count
    parts = max(4, min(PARTS, WORK // arcs.nodes, count))
    for _ in range(PASSES):
        for part in np.array_split(random.permutation(count), parts):
            for message in part.tolist():
                load[taken[message]] -= 1
            length = 1 + PENALTY * ((load + 1) / most) ** STEEPNESS + 0.1 * random.random(len(load))
            _, by = arcs.shortest(np.maximum(1, np.rint(length * 1024)).astype(np.int64))
            for message, chosen in zip(part.tolist(), choose(by, part), strict=True):
                taken[message] = chosen
                load[chosen] += 1
    return [chosen.tolist() for chosen in taken]


class Loads:
    """Which messages go over which arcs, and how much longer than a hop arcs are for that.

    Arcs become the longer the more often they were too full, as a router of chips makes its wires
    (McMurchie and Ebeling, "PathFinder", 1995).
    """

    def __init__(self, arcs: Lengths, taken: Sequence[Sequence[int]]) -> None:
        self.tail, self.head = arcs.tail.tolist(), arcs.head.tolist()
        self.out: list[list[int]] = [[] for _ in range(arcs.nodes)]
        self.into: list[list[int]] = [[] for _ in range(arcs.nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail, self.head, strict=True)):
            self.out[tail].append(arc)
            self.into[head].append(arc)
        #: The messages over each arc.
        self.over: list[set[int]] = [set() for _ in self.tail]
        for message, chosen in enumerate(taken):
            for arc in chosen:
                self.over[arc].add(message)
        self._longer = [0.0] * len(self.tail)

    def too_full(self, most: int) -> list[int]:
        """The arcs with more messages than so many, which become longer."""
        full = [arc for arc, over in enumerate(self.over) if len(over) > most]
        for arc in full:
            self._longer[arc] += AGAIN * (len(self.over[arc]) - most)
        return full

    def length(self, arc: int, most: int) -> float:
        """The length of an arc for a message more."""
        more = len(self.over[arc]) + 1 - most
        return (1 + self._longer[arc]) * (1 + TOO_FULL * more if more > 0 else 1)


def timed(arcs: Lengths, trees: Sequence[Sequence[int]], blocks: IntArray) -> tuple[Transfers, ...]:
    """The steps in which blocks go down their trees: of those that wait, the farthest first.

    Parameters
    ----------
    trees : sequence of sequence of int
        The arcs that each block takes: a path, or any tree.

    Examples
    --------
    >>> from torusfabric.analysis.congestion import Lengths
    >>> from torusfabric.topology import parse_topology
    >>> arcs = Lengths(parse_topology("mesh:3"))
    >>> steps = timed(arcs, [[0], [0, 1]], np.array([1, 2]))
    >>> [step.listed.ids.tolist() for step in steps]
    [[2], [1, 2]]
    """
    tail, head = arcs.tail.tolist(), arcs.head.tolist()
    following: list[dict[int, list[tuple[int, int]]]] = []
    waiting: dict[int, list[tuple[int, int]]] = {}
    for number, tree in enumerate(trees):
        out: dict[int, list[tuple[int, int]]] = {}
        for height, arc in _heights(tree, tail, head):
            out.setdefault(tail[arc], []).append((-height, arc))
        following.append(out)
        for node in set(out) - {head[arc] for arc in tree}:
            for height, arc in out[node]:
                waiting.setdefault(arc, []).append((height, number))
    for queue in waiting.values():
        heapq.heapify(queue)
    steps = []
    while waiting:
        sent = [(arc, heapq.heappop(queue)[1]) for arc, queue in sorted(waiting.items())]
        waiting = {arc: queue for arc, queue in waiting.items() if queue}
        for arc, number in sent:
            for height, onward in following[number].get(head[arc], ()):
                heapq.heappush(waiting.setdefault(onward, []), (height, number))
        used = np.array([arc for arc, _ in sent])
        hops = arcs.port[used, None].astype(np.int8)
        payload = Listed.single(blocks[[number for _, number in sent]])
        steps.append(Transfers(arcs.tail[used], hops, payload))
    return tuple(steps)


def _heights(
    tree: Sequence[int], tail: Sequence[int], head: Sequence[int]
) -> list[tuple[int, int]]:
    """The hops that are left from the tail of each arc of a tree, and the arc."""
    above = {head[arc]: arc for arc in tree}
    height = dict.fromkeys(tree, 0)
    for arc in tree:
        hops = 1
        while height[arc] < hops:
            height[arc] = hops
            if (onward := above.get(tail[arc])) is None:
                break
            arc, hops = onward, hops + 1
    return [(hops, arc) for arc, hops in height.items()]
