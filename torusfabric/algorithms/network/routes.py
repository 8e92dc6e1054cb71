"""Scatter and total exchange on any network: a path for each message.

Paths are spread over the arcs. Where an arc still carries more than is aimed at, messages over it
are given other ways one by one.
"""

from __future__ import annotations

import heapq
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from .spread import Loads, spread

if TYPE_CHECKING:
    from ...analysis.congestion import Lengths
    from ...topology import IntArray

__all__ = ["routed"]

#: What arcs should carry at the most, as parts of the least that the busiest carries, one after
#: another; and how many nodes are looked at for that.
AIMS, MOST_LOOKS = (1.1, 1.06, 1.03, 1.015, 1.0), 700_000


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
        self._least, self._looks = max(map(len, self.over), default=0), MOST_LOOKS

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
