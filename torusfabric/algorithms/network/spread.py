"""Paths or trees of messages that load the arcs of any network evenly, and when messages go.

Messages are given shortest paths, or trees of shortest paths, some at a time, where arcs are the
longer the more they carry already, and again when all have some. Then each arc sends, in every
step, that of the messages waiting for it which has the farthest to go.

Where an arc still carries more than is aimed at, messages over it are given other ways one by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from ...analysis.congestion import Lengths
from ...schedule import Listed, Transfers
from ...topology import IntArray

__all__ = ["ArcLists", "Arcs", "Loads", "heights", "routed", "spread", "timed", "timetable"]

#: How often every message is given arcs, and in how many parts; large networks have fewer.
PASSES, PARTS, WORK = 3, 64, 8192

#: How many hops longer an arc is when it carries as much as it should, and how steeply that grows.
PENALTY, STEEPNESS = 1.0, 8

#: The greatest length of an arc, in parts of a hop: sums of it have room in 64 bits.
LONGEST = 2**40

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
            length = arcs.hop + PENALTY * ((load + 1) / max(1.0, most)) ** STEEPNESS
            length = length + 0.1 * random.random(len(load))
            _, by = arcs.shortest(np.clip(np.rint(length * 1024), 1, LONGEST).astype(np.int64))
            for message, chosen in zip(part.tolist(), choose(by, part), strict=True):
                taken[message] = chosen
                load[chosen] += 1
    return [chosen.tolist() for chosen in taken]


class Arcs(NamedTuple):
    """Arcs between nodes: how many nodes there are, and where each arc begins and ends."""

    nodes: int
    tail: IntArray
    head: IntArray


class ArcLists:
    """Where each arc begins and ends, and the arcs out of and into each node."""

    def __init__(self, arcs: Arcs | Lengths) -> None:
        self.tail, self.head = arcs.tail.tolist(), arcs.head.tolist()
        self.out: list[list[int]] = [[] for _ in range(arcs.nodes)]
        self.into: list[list[int]] = [[] for _ in range(arcs.nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail, self.head, strict=True)):
            self.out[tail].append(arc)
            self.into[head].append(arc)


class Loads(ArcLists):
    """Which messages go over which arcs, and how much longer than a hop arcs are for that.

    Arcs become the longer the more often they were too full, as a router of chips makes its wires
    (McMurchie and Ebeling, "PathFinder", 1995).
    """

    def __init__(
        self, arcs: Arcs | Lengths, taken: Sequence[Sequence[int]], links: list[int] | None = None
    ) -> None:
        super().__init__(arcs)
        #: Of each arc what it takes up: itself, or what others take up, too.
        self.link = [*range(len(arcs.tail))] if links is None else links
        #: The messages over each.
        self.over: list[set[int]] = [set() for _ in range(max(self.link) + 1)]
        for message, chosen in enumerate(taken):
            for arc in chosen:
                self.over[self.link[arc]].add(message)
        self._longer = [0.0] * len(self.over)

    def too_full(self, most: int) -> list[int]:
        """What has more messages than so many, and becomes longer."""
        full = [arc for arc, over in enumerate(self.over) if len(over) > most]
        for arc in full:
            self._longer[arc] += AGAIN * (len(self.over[arc]) - most)
        return full

    def length(self, arc: int, most: int) -> float:
        """The length of an arc for a message more."""
        link = self.link[arc]
        more = len(self.over[link]) + 1 - most
        return (1 + self._longer[link]) * (1 + TOO_FULL * more if more > 0 else 1)


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
    hops: list[tuple[int, int]] = []
    after: list[list[int]] = []
    waits: list[int] = []
    urgency: list[tuple[int, int]] = []
    for number, tree in enumerate(trees):
        out: dict[int, list[int]] = {}
        for hop, arc in enumerate(tree, len(hops)):
            out.setdefault(tail[arc], []).append(hop)
        reached = {head[arc] for arc in tree}
        left = heights(tree, tail, head)
        for arc in tree:
            hops.append((arc, number))
            after.append(out.get(head[arc], []))
            waits.append(int(tail[arc] in reached))
            urgency.append((-left[arc], number))
    steps = []
    for step in timetable([arc for arc, _ in hops], after, waits, urgency, arcs.steps_apart):
        used, sent = np.array([hops[hop] for hop in step]).T
        steps.append(Transfers.hop(arcs.tail[used], arcs.port[used], Listed.single(blocks[sent])))
    return tuple(steps)


def timetable(
    arc: Sequence[int],
    after: Sequence[Sequence[int]],
    waits: Sequence[int],
    urgency: Sequence[tuple[int, int]],
    apart: Sequence[int],
) -> list[list[int]]:
    """The steps in which hops are done: of those that could use an arc, the most urgent.

    Parameters
    ----------
    arc : sequence of int
        Of each hop.
    after : sequence of (sequence of int)
        The hops that wait for each.
    waits : sequence of int
        For how many hops each waits.
    urgency : sequence of (int, int)
        The least goes first.
    apart : sequence of int
        Of each arc, how many steps later what comes over it can be sent on.

    Examples
    --------
    >>> timetable([0, 0, 1], [[2], [], []], [0, 0, 1], [(0, 0), (0, 1), (0, 0)], [1, 1])
    [[0], [1, 2]]
    """
    left = [*waits]
    ready = {0: [hop for hop, count in enumerate(left) if not count]}
    by_urgency = sorted(range(len(arc)), key=urgency.__getitem__)
    place = np.argsort(by_urgency).tolist()
    queues: dict[int, list[int]] = {}
    steps: list[list[int]] = []
    while queues or ready:
        # Where nothing can be sent on yet, what has come last is waited for.
        now = len(steps) if queues else min(ready)
        for late in [late for late in ready if late <= now]:
            for hop in ready.pop(late):
                heapq.heappush(queues.setdefault(arc[hop], []), place[hop])
        done = [by_urgency[heapq.heappop(queues[used])] for used in sorted(queues)]
        queues = {used: queue for used, queue in queues.items() if queue}
        steps.append(done)
        for hop in done:
            late = len(steps) - 1 + apart[arc[hop]]
            for following in after[hop]:
                left[following] -= 1
                if not left[following]:
                    ready.setdefault(late, []).append(following)
    return steps


def heights(tree: Sequence[int], tail: Sequence[int], head: Sequence[int]) -> dict[int, int]:
    """The hops that are left from the tail of each arc of a tree, by the arc."""
    above = {head[arc]: arc for arc in tree}
    height = dict.fromkeys(tree, 0)
    for arc in tree:
        hops = 1
        while height[arc] < hops:
            height[arc] = hops
            if (onward := above.get(tail[arc])) is None:
                break
            arc, hops = onward, hops + 1
    return height


#: What arcs should carry at the most, as parts of the least that the busiest carries, one after
#: another; and how many nodes are looked at for that, at most and for each message and node.
AIMS, MOST_LOOKS, LOOKS = (1.1, 1.06, 1.03, 1.015, 1.0), 700_000, 200


def routed(
    arcs: Lengths, source: IntArray, target: IntArray, most: float, seed: int = 0
) -> list[list[int]]:
    """The arcs of a path for each message, given its ends.

    Parameters
    ----------
    most : float
        What the busiest arc carries at the least.

    Examples
    --------
    >>> from torusfabric.analysis.congestion import Lengths
    >>> from torusfabric.topology import parse_topology
    >>> routed(Lengths(parse_topology("mesh:3")), np.array([0, 0]), np.array([1, 2]), 2.0)
    [[0], [0, 1]]
    """
    random = np.random.default_rng(seed)

    def choose(by: IntArray, part: IntArray) -> list[IntArray]:
        return _paths(arcs, by, source[part], target[part])

    relieved = _Relief(arcs, spread(arcs, len(source), most, random, choose), random)
    for aim in AIMS:
        relieved.relieve(ceil(aim * most))
    return relieved.best


class _Relief(Loads):
    """Paths of which those over arcs that carry too much are changed one by one."""

    def __init__(self, arcs: Lengths, paths: list[list[int]], random: np.random.Generator) -> None:
        super().__init__(arcs, paths)
        self._paths, self.best, self._random = paths, [*paths], random
        self._least = max(map(len, self.over), default=0)
        self._looks = min(MOST_LOOKS, LOOKS * len(paths) * arcs.nodes)

    def relieve(self, aim: int) -> None:
        """Change paths until no arc carries more, or it has taken too long."""
        while full := self.too_full(aim):
            for arc in self._random.permutation(full).tolist():
                over = self._random.permutation(sorted(self.over[arc])).tolist()
                while len(self.over[arc]) > aim and over:
                    if self._looks <= 0:
                        return
                    self._change(over.pop(), aim)
            busiest = max(map(len, self.over))
            if busiest < self._least:
                self._least, self.best = busiest, [*self._paths]

    def _change(self, message: int, aim: int) -> None:
        """Give a message a shortest path, given what the others take."""
        path = self._paths[message]
        for arc in path:
            self.over[arc].remove(message)
        start, end = self.tail[path[0]], self.head[path[-1]]
        away, came, done = {start: 0.0}, {start: -1}, set()
        heap, noise = [(0.0, start)], self._random.random(64).tolist()
        while heap:
            distance, node = heapq.heappop(heap)
            if node == end:
                break
            if node in done:
                continue
            done.add(node)
            for arc in self.out[node]:
                length = distance + self.length(arc, aim) + 0.01 * noise[arc & 63]
                there = self.head[arc]
                if there not in away or length < away[there]:
                    away[there], came[there] = length, arc
                    heapq.heappush(heap, (length, there))
        self._looks -= len(done)
        path = []
        while end != start:
            path.append(came[end])
            end = self.tail[came[end]]
        self._paths[message] = path[::-1]
        for arc in path:
            self.over[arc].add(message)


def _paths(arcs: Lengths, by: IntArray, source: IntArray, target: IntArray) -> list[IntArray]:
    """The arcs of the shortest path between each two nodes, from the first on."""
    found, here = [], target.copy()
    while (here != source).any():
        arc = np.where(here != source, by[source, here], -1)
        found.append(arc)
        here = np.where(arc >= 0, arcs.tail[arc], here)
    columns = np.array(found[::-1]).reshape(len(found), len(source)).T
    return [row[row >= 0] for row in columns]
