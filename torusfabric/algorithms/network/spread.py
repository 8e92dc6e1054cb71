"""Paths or trees of messages that load the arcs of any network evenly, and their steps.

Messages get shortest paths, or trees of shortest paths, a part of the messages at a time. An arc is
the longer the more messages it carries already. Once all messages have arcs, this is repeated.
Messages on an arc that still carries too many get other paths one by one. If this does not help,
all is done again, and an arc that carries too many becomes longer for good. `schedule_trees`
chooses the steps of trees: in every step each arc sends, of the messages that wait for it, the
message with the most hops to go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...schedule import Listed, Transfers
from ...topology import IntArray

__all__ = ["ArcLists", "Arcs", "ArcLoads", "RouteRelief", "subtree_heights", "route_messages",
           "spread_messages", "schedule_trees", "schedule_hops"]  # fmt: skip

#: The number of passes in which every message gets arcs; the number of parts of a pass; and the
#: nodes times parts, which limits the parts on large networks.
PASSES, PARTS, WORK_LIMIT = 3, 64, 8192

#: The additional length of an arc, in hops, when it carries its target; and the exponent by which
#: that length grows with the load.
PENALTY, STEEPNESS = 1.0, 8

#: The permanent increase of the length of an arc, in hops, for each part of the messages after
#: which the arc carries twice its target. Why: around a hub, detours of many hops balance loads.
PART_LENGTHENING = 2.0

#: The greatest length of an arc, in 1/1024 of a hop: sums of it fit in 64 bits.
LONGEST_LENGTH = 2**40

#: The additional length of an arc, in hops, for each message beyond the target; and the permanent
#: increase each time that happens.
OVERLOAD_FACTOR, LENGTHENING = 2.0, 0.3

#: Targets for the load of arcs, one after another, relative to the lower bound. Then the most nodes
#: that may be visited for that: in all, and for each message and node.
LOAD_TARGETS, MOST_LOOKS, LOOKS_PER_PAIR = (1.1, 1.06, 1.03, 1.015, 1.0), 700_000, 200

#: The additional length of an arc, in hops, for each hop before it in a tree. Why: of two equally
#: long trees, the shallow one is better.
DEPTH_PENALTY = 0.7

#: The load of the busiest arc, relative to the lower bound, with which no other paths are tried.
NEAR_LOAD = 1.03

#: A function of (by, messages) that returns the arcs of messages, see `spread_messages`.
Choose: TypeAlias = Callable[["IntArray", "IntArray"], Sequence["IntArray"]]


def spread_messages(
    arcs: WeightedArcs,
    count: int,
    most: float,
    random: np.random.Generator,
    choose: Choose,
    lengthening: float = 0.0,
) -> list[list[int]]:
    """Choose arcs for each message so that all arcs carry about equally many messages.

    Messages take shortest paths or trees, a part of the messages at a time. An arc counts as longer
    the more messages it carries already. Return the list of arc numbers for each message.

    Parameters
    ----------
    arcs : WeightedArcs
        The arcs of the network.
    count : int
        Number of messages.
    most : float
        Lower bound of the load of the busiest arc, in messages.
    random : numpy Generator
        Source of the random order of messages and of random changes of lengths.
    choose : function of (by, messages)
        Function that chooses the arcs of the messages with the numbers `messages`, and returns an
        array of arc numbers for each. ``by[start, node]`` is the last arc of the currently shortest
        path from node `start` to `node`.
    lengthening : float
        Permanent increase of the length of an arc, in hops, for each part of the messages after
        which the arc carries ``2 * most`` messages. It is proportional to the messages beyond
        `most`, and begins after the first pass.
    """
    load, longer = np.zeros(len(arcs.tail), np.int64), np.zeros(len(arcs.tail))
    taken: list[IntArray] = [np.empty(0, int)] * count
    parts = max(4, min(PARTS, WORK_LIMIT // arcs.nodes, count))
    for number in range(PASSES):
        for part in np.array_split(random.permutation(count), parts):
            for message in part.tolist():
                load[taken[message]] -= 1
            length = (
                arcs.relative_forwarding_time + PENALTY * ((load + 1) / max(1.0, most)) ** STEEPNESS
            )
            length = length + longer + 0.1 * random.random(len(load))
            _, by = arcs.shortest_paths(
                np.clip(np.rint(length * 1024), 1, LONGEST_LENGTH).astype(np.int64)
            )
            for message, chosen in zip(part.tolist(), choose(by, part), strict=True):
                taken[message] = chosen
                load[chosen] += 1
            if number:
                longer = np.maximum(0, longer + lengthening * (load / max(1.0, most) - 1))
    return [chosen.tolist() for chosen in taken]


class Arcs(NamedTuple):
    """The arcs between nodes: the number of nodes, and the tail and the head of each arc."""

    nodes: int
    tail: IntArray
    head: IntArray


class ArcLists:
    """The arcs of a network as lists: tail and head of each arc, and the arcs at each node.

    Arcs are numbered. ``out[node]`` has the arcs that leave a node, ``into[node]`` those that lead
    to it.
    """

    def __init__(self, arcs: Arcs | WeightedArcs) -> None:
        self.tail, self.head = arcs.tail.tolist(), arcs.head.tolist()
        self.out: list[list[int]] = [[] for _ in range(arcs.nodes)]
        self.into: list[list[int]] = [[] for _ in range(arcs.nodes)]
        for arc, (tail, head) in enumerate(zip(self.tail, self.head, strict=True)):
            self.out[tail].append(arc)
            self.into[head].append(arc)


class ArcLoads(ArcLists):
    """The messages that each arc carries, and the lengths of arcs that follow from their loads.

    An arc becomes longer each time it carries too many messages, as in the routing of wires on
    chips (McMurchie and Ebeling, "PathFinder", 1995). Several arcs may belong to a *resource*, such
    as a link; the messages on all its arcs then count together. By default each arc is a resource.

    Parameters
    ----------
    taken : sequence of sequence of int
        The arcs that each message takes, by their numbers.
    links : list of int, optional
        The number of the resource to which each arc belongs.
    """

    def __init__(
        self,
        arcs: Arcs | WeightedArcs,
        taken: Sequence[Sequence[int]],
        links: list[int] | None = None,
    ) -> None:
        super().__init__(arcs)
        #: The resource of each arc.
        self.link = [*range(len(arcs.tail))] if links is None else links
        #: The messages on each resource.
        self.over: list[set[int]] = [set() for _ in range(max(self.link) + 1)]
        for message, chosen in enumerate(taken):
            for arc in chosen:
                self.over[self.link[arc]].add(message)
        self._longer = [0.0] * len(self.over)

    def lengthen_full_links(self, most: int) -> list[int]:
        """Return the resources that carry more than `most` messages, and make their arcs longer.

        A resource is an arc, or a set of arcs whose messages count together.
        """
        full = [arc for arc, over in enumerate(self.over) if len(over) > most]
        for arc in full:
            self._longer[arc] += LENGTHENING * (len(self.over[arc]) - most)
        return full

    def penalized_length(self, arc: int, most: int) -> float:
        """Return the length of an arc for a message that might take it as well.

        It is at least 1, grows each time the arc was overloaded before, and is larger if the arc
        carries `most` messages or more. Searches for shortest paths so avoid full arcs.
        """
        link = self.link[arc]
        more = len(self.over[link]) + 1 - most
        return (1 + self._longer[link]) * (1 + OVERLOAD_FACTOR * more if more > 0 else 1)


def schedule_trees(
    arcs: WeightedArcs, trees: Sequence[Sequence[int]], blocks: IntArray
) -> tuple[Transfers, ...]:
    """Return the transfers of each step, in which blocks go down their trees.

    An arc carries one block in a step. Among the blocks that wait for an arc, the block with the
    most hops to go comes first.

    Parameters
    ----------
    trees : sequence of sequence of int
        The arcs that each block takes: a path, or any tree.
    blocks : ndarray of int
        The number of the block that goes down each tree.

    Examples
    --------
    On a row of three nodes, arc 0 leads from node 0 to 1 and arc 1 from node 1 to 2. Block 2 has
    the longer way and goes first:

    >>> from torusfabric.analysis.congestion import WeightedArcs
    >>> from torusfabric.topology import parse_topology
    >>> arcs = WeightedArcs(parse_topology("mesh:3"))
    >>> steps = schedule_trees(arcs, [[0], [0, 1]], np.array([1, 2]))
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
        left = subtree_heights(tree, tail, head)
        for arc in tree:
            hops.append((arc, number))
            after.append(out.get(head[arc], []))
            waits.append(int(tail[arc] in reached))
            urgency.append((-left[arc], number))
    steps = []
    for step in schedule_hops(
        [arc for arc, _ in hops], after, waits, urgency, arcs.forwarding_steps
    ):
        used, sent = np.array([hops[hop] for hop in step]).T
        steps.append(Transfers.hop(arcs.tail[used], arcs.port[used], Listed.single(blocks[sent])))
    return tuple(steps)


def schedule_hops(
    arc: Sequence[int],
    after: Sequence[Sequence[int]],
    waits: Sequence[int],
    urgency: Sequence[tuple[int, int]] | Sequence[int],
    apart: Sequence[int],
) -> list[list[int]]:
    """Assign hops to steps: in each step, each arc takes the most urgent hop that is ready.

    A hop is the move of one block over one arc. It is ready when all hops for which it waits are
    done. Return the list of hop numbers for each step.

    Parameters
    ----------
    arc : sequence of int
        The arc of each hop. Hops are numbered from 0.
    after : sequence of (sequence of int)
        For each hop, the hops that wait for it.
    waits : sequence of int
        The number of hops for which each hop waits.
    urgency : sequence of (int, int), or of int
        The urgency of each hop; the least value goes first.
    apart : sequence of int
        For each arc, the steps after which a block that was sent over it can move on; 1 for a link
        without additional latency.

    Examples
    --------
    Hops 0 and 1 need arc 0, and hop 0 is more urgent. Hop 2 waits for hop 0:

    >>> schedule_hops([0, 0, 1], [[2], [], []], [0, 0, 1], [(0, 0), (0, 1), (0, 0)], [1, 1])
    [[0], [1, 2]]
    """
    left = [*waits]
    ready = {0: [hop for hop, count in enumerate(left) if not count]}
    by_urgency = sorted(range(len(arc)), key=lambda hop: urgency[hop])
    place = np.argsort(by_urgency).tolist()
    queues: dict[int, list[int]] = {}
    steps: list[list[int]] = []
    while queues or ready:
        # If no hop is ready, this step takes the next arrivals: the fabric then waits for them.
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


def subtree_heights(
    tree: Sequence[int], tail: Sequence[int], head: Sequence[int]
) -> dict[int, int]:
    """Return, for each arc of a tree, the hops from its tail down to the deepest leaf below it.

    The result maps the number of the arc to the number of hops; 1 for an arc into a leaf.

    Parameters
    ----------
    tree : sequence of int
        The numbers of the arcs of the tree.
    tail, head : sequence of int
        The tail and the head of every arc of the network.
    """
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


def route_messages(
    arcs: WeightedArcs, source: IntArray, target: IntArray, most: float, seed: int = 0
) -> list[list[int]]:
    """Return a path for each message, as the list of its arcs, so that no arc is much too busy.

    Parameters
    ----------
    arcs : WeightedArcs
        The arcs of the network.
    source, target : ndarray of int
        The origin and the target of each message.
    most : float
        Lower bound of the load of the busiest arc, in messages.
    seed : int
        Seed of the search.

    Examples
    --------
    On a row of three nodes, node 0 sends a message to node 1 and another to node 2:

    >>> from torusfabric.analysis.congestion import WeightedArcs
    >>> from torusfabric.topology import parse_topology
    >>> route_messages(WeightedArcs(parse_topology("mesh:3")), np.array([0, 0]), np.array([1, 2]),
    ...     2.0)
    [[0], [0, 1]]
    """
    random = np.random.default_rng(seed)

    def choose_paths(by: IntArray, part: IntArray) -> list[IntArray]:
        return arcs.find_paths(by, source[part], target[part])

    tried, goals = [], [(goal,) for goal in target.tolist()]
    for lengthening in (0.0, PART_LENGTHENING):
        paths = spread_messages(arcs, len(source), most, random, choose_paths, lengthening)
        tried.append(relieved := RouteRelief(arcs, paths, goals, random))
        for aim in LOAD_TARGETS:
            relieved.relieve_arcs(ceil(aim * most))
        if relieved.least <= max(NEAR_LOAD * most, ceil(most), relieved.longest_path):
            break
    # Long paths take as many steps as busy arcs.
    return min(tried, key=lambda one: max(one.least, one.longest_path)).best


class RouteRelief(ArcLoads):
    """Routes of messages, which are improved: messages on overloaded arcs get other routes.

    A route is a path, or a tree if the message has several receivers. `best` has the routes with
    the smallest load of the busiest arc so far; `least` is this load.

    Parameters
    ----------
    routes : list of (list of int)
        The arcs of each route; the first one begins at the source of the message.
    receivers : sequence of (tuple of int)
        The receivers of each message.
    looks : int
        The most nodes that may be visited; fewer for few messages.
    links : ndarray of int, optional
        The number of the link of each arc, if the messages on both arcs of a link count together.
    """

    def __init__(
        self,
        arcs: WeightedArcs,
        routes: list[list[int]],
        receivers: Sequence[tuple[int, ...]],
        random: np.random.Generator,
        looks: int = MOST_LOOKS,
        links: IntArray | None = None,
    ) -> None:
        super().__init__(arcs, routes, None if links is None else links.tolist())
        self._routes, self.best, self._random = routes, [*routes], random
        self._receivers = receivers
        self.least = max(map(len, self.over), default=0)
        self._looks = min(looks, LOOKS_PER_PAIR * len(routes) * arcs.nodes)

    @property
    def longest_path(self) -> int:
        """Number of arcs of the longest route in `best`."""
        return max(map(len, self.best), default=0)

    def relieve_arcs(self, aim: int) -> None:
        """Give messages other routes until no arc carries more than `aim` messages.

        The search also ends when it has visited as many nodes as the limit for its work allows.
        """
        while full := self.lengthen_full_links(aim):
            for arc in self._random.permutation(full).tolist():
                over = self._random.permutation(sorted(self.over[arc])).tolist()
                while len(self.over[arc]) > aim and over:
                    if self._looks <= 0:
                        return
                    self._reroute_message(over.pop(), aim)
            busiest = max(map(len, self.over))
            if busiest < self.least:
                self.least, self.best = busiest, [*self._routes]

    def _reroute_message(self, message: int, aim: int) -> None:
        """Replace the route of a message by a short one, given the routes of all other messages.

        An arc that already carries `aim` messages or more counts as longer, so that the route
        avoids it. The receivers join the tree one after another, the nearest one first, as in
        `WeightedArcs.short_tree`.
        """
        for arc in (route := self._routes[message]):
            self.over[self.link[arc]].remove(message)
        start = self.tail[route[0]]
        left, tree, depth = {*self._receivers[message]}, list[int](), {start: 0}
        away, came, done = {start: 0.0}, {start: -1}, set[int]()
        heap, noise, looks = [(0.0, start)], self._random.random(64).tolist(), 0
        while heap:
            distance, node = heapq.heappop(heap)
            if node in left:
                path, here = list[int](), node
                while here not in depth:
                    path.append(came[here])
                    here = self.tail[came[here]]
                tree += reversed(path)
                # The tree grows from the new path on, too.
                for arc in reversed(path):
                    there = self.head[arc]
                    depth[there] = depth[self.tail[arc]] + 1
                    away[there] = DEPTH_PENALTY * depth[there]
                    left.discard(there)
                    done.discard(there)
                    heapq.heappush(heap, (away[there], there))
                if not left:
                    break
                continue
            if node in done or distance > away[node]:
                continue
            done.add(node)
            looks += 1
            for arc in self.out[node]:
                length = distance + self.penalized_length(arc, aim) + 0.01 * noise[arc & 63]
                there = self.head[arc]
                if there not in away or length < away[there]:
                    away[there], came[there] = length, arc
                    done.discard(there)
                    heapq.heappush(heap, (length, there))
        self._looks -= looks
        self._routes[message] = tree
        for arc in tree:
            self.over[self.link[arc]].add(message)
