"""Spanning trees that share no link, on any network whose links go both ways.

Source: J. Roskind, R. E. Tarjan, "A note on finding minimum-cost edge-disjoint spanning trees",
Math. Oper. Res. 10, 1985. Links are put into forests one after another; where a link would close a
circle in each, links of the circle change forests in turn, if that makes room.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.partitions import worst_partition
from ...analysis.volume import least_reach
from ...collective import Collective
from ..oblivious.shallow_trees import Trees, shallower

if TYPE_CHECKING:
    from ...topology import Topology

__all__ = ["link_disjoint_trees_of", "most_link_trees"]

#: More nodes than this have no such trees looked for.
MOST_NODES = 512


@lru_cache(maxsize=64)
def most_link_trees(topology: Topology) -> int:
    """How many spanning trees share no link; 0 where links go one way.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> [most_link_trees(parse_topology(name)) for name in ("8x8!0:+0", "mesh:8x8", "4x4!0:+0:out")]
    [2, 1, 0]
    """
    if topology.backwards is not topology or not 1 < topology.nodes <= MOST_NODES:
        return 0
    return int(1 / worst_partition(topology).time)


@lru_cache(maxsize=16)
def link_disjoint_trees_of(topology: Topology, count: int) -> Trees:
    """So many spanning trees that share no link, each from a node amid it, and mostly shallow.

    Parameters
    ----------
    count : int
        At most `most_link_trees`.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> link_disjoint_trees_of(parse_topology("4x4!0:+0"), 2).entry.shape
    (2, 16)
    """
    forests = _Forests(topology, count)
    entry, depth = np.zeros((2, count, topology.nodes), int)
    for number in range(count):
        forests.lay(number, entry[number], depth[number])
    reach = least_reach(topology, Collective("allreduce"))
    return shallower(topology, Trees(entry, depth), links=True, least=-(-reach // 2))


class _Forests:
    """Links in forests."""

    def __init__(self, topology: Topology, count: int) -> None:
        self._nodes = topology.nodes
        node, port = np.nonzero(topology.linked)
        other, back = topology.neighbours[node, port], topology.opposite[port]
        once = node * topology.ports + port < other * topology.ports + back
        #: Of each link its ends, and the in-port by which each is reached from the other.
        self._ends = list(zip(node[once].tolist(), other[once].tolist(), strict=True))
        self._entry = list(zip(port[once].tolist(), back[once].tolist(), strict=True))
        #: Of each forest, the links at each node.
        self._at: list[list[set[int]]] = [[set() for _ in range(self._nodes)] for _ in range(count)]
        self._in: dict[int, int] = {}
        away = topology.all_distances
        near = away[int(away.max(axis=1).argmin())]
        order = sorted(range(len(self._ends)), key=lambda k: sum(near[[*self._ends[k]]]))
        for link in order:
            if len(self._in) == count * (self._nodes - 1):
                break
            self._add(link)
        assert len(self._in) == count * (self._nodes - 1)

    def _add(self, link: int) -> None:
        """Put a link into a forest, while others change theirs, if there is room."""
        came: dict[int, tuple[int, int]] = {link: (-1, -1)}
        queue = [link]
        for now in queue:
            for forest in sorted(range(len(self._at)), key=self._size):
                if self._in.get(now) == forest:
                    continue
                circle = self._path(forest, *self._ends[now])
                if circle is None:
                    self._move(now, forest, came)
                    return
                for other in circle:
                    if other not in came:
                        came[other] = now, forest
                        queue.append(other)

    def _size(self, forest: int) -> int:
        return sum(map(len, self._at[forest]))

    def _move(self, link: int, forest: int, came: dict[int, tuple[int, int]]) -> None:
        """Put a link into a forest, and into that which it leaves the one that made it leave."""
        while True:
            left = self._in.get(link)
            for node in self._ends[link]:
                if left is not None:
                    self._at[left][node].discard(link)
                self._at[forest][node].add(link)
            self._in[link] = forest
            link, forest = came[link]
            if link < 0:
                return

    def _path(self, forest: int, start: int, end: int) -> list[int] | None:
        """The links between two nodes in a forest, if they are joined."""
        came, queue = {start: (-1, -1)}, [start]
        for here in queue:
            if here == end:
                break
            for link in self._at[forest][here]:
                one, two = self._ends[link]
                there = two if one == here else one
                if there not in came:
                    came[there] = here, link
                    queue.append(there)
        else:
            return None
        path = []
        while end != start:
            end, link = came[end]
            path.append(link)
        return path

    def lay(self, forest: int, entry: np.ndarray, depth: np.ndarray) -> None:
        """Fill in from where each node is reached, from a node with the least height on."""
        order = min(
            (self._order(forest, root) for root in range(self._nodes)), key=lambda o: o[-1][2]
        )
        for node, port, hops in order:
            entry[node], depth[node] = port, hops

    def _order(self, forest: int, root: int) -> list[tuple[int, int, int]]:
        """Nodes from a root on, each with the in-port by which it is reached, and its depth."""
        order, seen = [(root, 0, 0)], {root}
        for here, _, hops in order:
            for link in self._at[forest][here]:
                (one, two), (of_one, of_two) = self._ends[link], self._entry[link]
                there, port = (two, of_two) if one == here else (one, of_one)
                if there not in seen:
                    seen.add(there)
                    order.append((there, port, hops + 1))
        return order
