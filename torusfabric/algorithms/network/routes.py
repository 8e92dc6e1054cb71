"""Scatter and total exchange on any network: a path for each message, and when it goes.

Messages are given shortest paths some at a time, where arcs are the longer the more they carry
already, and again when all have one: so they spread over the arcs. Then each arc sends, in every
step, that of the messages waiting for it which has the farthest to go.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.congestion import Lengths
from ...schedule import Listed, Transfers

if TYPE_CHECKING:
    from ...topology import IntArray, Topology

__all__ = ["routed", "timed"]

#: How often every message is given a path, and in how many parts; large networks have fewer.
PASSES, PARTS, WORK = 4, 64, 8192

#: How many hops longer an arc is when it carries as much as it should, and how steeply that grows.
PENALTY, STEEPNESS = 1.0, 8


def routed(
    topology: Topology, source: IntArray, target: IntArray, most: float, seed: int = 0
) -> list[list[int]]:
    """The arcs of a path for each message, given its ends; arcs are node * ports + port.

    Parameters
    ----------
    most : float
        What an arc should carry at the most.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> routed(parse_topology("mesh:3"), np.array([0, 0]), np.array([1, 2]), 2.0)
    [[0], [0, 2]]
    """
    arcs, random = Lengths(topology), np.random.default_rng(seed)
    number = arcs.tail * topology.ports + arcs.port
    load = np.zeros(len(number), np.int64)
    paths: list[IntArray] = [np.empty(0, int)] * len(source)
    parts = max(4, min(PARTS, WORK // topology.nodes, len(source)))
    for _ in range(PASSES):
        for part in np.array_split(random.permutation(len(source)), parts):
            for message in part.tolist():
                load[paths[message]] -= 1
            length = 1 + PENALTY * ((load + 1) / most) ** STEEPNESS + 0.1 * random.random(len(load))
            _, by = arcs.shortest(np.maximum(1, np.rint(length * 1024)).astype(np.int64))
            for message, path in zip(
                part.tolist(), _paths(arcs, by, source[part], target[part]), strict=True
            ):
                paths[message] = path
                load[path] += 1
    return [number[path].tolist() for path in paths]


def _paths(arcs: Lengths, by: IntArray, source: IntArray, target: IntArray) -> list[IntArray]:
    """The arcs of the shortest path between each two nodes, from the first on."""
    found, here = [], target.copy()
    while (here != source).any():
        arc = np.where(here != source, by[source, here], -1)
        found.append(arc)
        here = np.where(arc >= 0, arcs.tail[arc], here)
    columns = np.array(found[::-1]).reshape(len(found), len(source)).T
    return [row[row >= 0] for row in columns]


def timed(topology: Topology, paths: list[list[int]], blocks: IntArray) -> tuple[Transfers, ...]:
    """The steps in which blocks go along their paths: of those that wait, the farthest first.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> steps = timed(parse_topology("mesh:3"), [[0], [0, 2]], np.array([1, 2]))
    >>> [step.listed.ids.tolist() for step in steps]
    [[2], [1, 2]]
    """
    waiting: dict[int, list[tuple[int, int, int]]] = {}
    for message, path in enumerate(paths):
        if path:
            waiting.setdefault(path[0], []).append((-len(path), message, 0))
    for queue in waiting.values():
        heapq.heapify(queue)
    steps = []
    while waiting:
        sent = [(arc, *heapq.heappop(queue)) for arc, queue in sorted(waiting.items())]
        waiting = {arc: queue for arc, queue in waiting.items() if queue}
        for _, left, message, at in sent:
            if left < -1:
                queue = waiting.setdefault(paths[message][at + 1], [])
                heapq.heappush(queue, (left + 1, message, at + 1))
        source, port = np.divmod([arc for arc, *_ in sent], topology.ports)
        payload = Listed.single(blocks[[message for _, _, message, _ in sent]])
        steps.append(Transfers(source, port[:, None].astype(np.int8), payload))
    return tuple(steps)
