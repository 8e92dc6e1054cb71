"""Spanning trees out of a root that share no arc: as many as the least cut from it allows.

Source: L. Lovasz, "On two minimax theorems in graph theory", J. Comb. Theory B 21, 1976: a tree may
be given an arc as long as all nodes are still reached by as many ways that share no arc as there
are trees to come.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ...topology import hops_from
from ..oblivious.shallow_trees import Trees, shallower

if TYPE_CHECKING:
    from ...topology import BoolArray, IntArray, Topology

__all__ = ["disjoint_trees_from", "nearest_tree"]

#: More arcs than this are not divided among trees: it takes a flow for each.
MOST_ARCS = 8192


@lru_cache(maxsize=16)
def disjoint_trees_from(topology: Topology, root: int, count: int) -> Trees:
    """So many spanning trees out of a root that share no arc, mostly not much deeper than need be.

    Parameters
    ----------
    count : int
        At most the least cut from the root.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> trees = disjoint_trees_from(parse_topology("4x4!0:+0"), 5, 3)
    >>> trees.entry.shape, trees.height
    ((3, 16), 5)
    """
    arcs = _Arcs(topology)
    entry, depth = np.zeros((2, count, topology.nodes), int)
    for tree in range(count):
        _grow(arcs, root, count - 1 - tree, entry[tree], depth[tree])
    found = Trees(entry, depth)
    farthest = int(hops_from(topology.neighbours, root).max())
    return shallower(topology, found, links=False, least=farthest)


def nearest_tree(topology: Topology, root: int) -> Trees:
    """A spanning tree of shortest paths out of a root, by cycles of links.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> nearest_tree(parse_topology("mesh:5"), 2).height
    2
    """
    hops = hops_from(topology.neighbours, root)
    node, port = topology.upstream
    if topology.one_latency is not None:
        nearer = _coming(topology) & (hops[node] < hops[:, None])
        return Trees(nearer.argmax(axis=1)[None], hops[None].astype(int))
    cycles = topology.cycles_from(root)
    nearer = cycles[node] + topology.cycles_of_arc[node, port] == cycles[:, None]
    entry = (_coming(topology) & nearer).argmax(axis=1)
    above = node[np.arange(topology.nodes), entry]
    depth = np.zeros(topology.nodes, int)
    for here in np.argsort(cycles, kind="stable").tolist():
        depth[here] = 0 if here == root else depth[above[here]] + 1
    return Trees(entry[None], depth[None])


def _coming(topology: Topology) -> BoolArray:
    """Whether a link comes in by each in-port of each node."""
    node, port = topology.upstream
    there: BoolArray = topology.linked[node, port]
    return there


class _Arcs:
    """The arcs that are left, as lists of those out of each node."""

    def __init__(self, topology: Topology) -> None:
        tail, port = np.nonzero(topology.linked)
        head = topology.neighbours[tail, port]
        self.head, self.tail = head.tolist(), tail.tolist()
        self.entry = topology.opposite[port].tolist()
        self.left = [True] * len(self.head)
        self.out: list[list[int]] = [[] for _ in range(topology.nodes)]
        self.into: list[list[int]] = [[] for _ in range(topology.nodes)]
        for arc, (here, there) in enumerate(zip(self.tail, self.head, strict=True)):
            self.out[here].append(arc)
            self.into[there].append(arc)

    def ways(self, root: int, node: int, wanted: int) -> bool:
        """Whether so many ways that share no arc that is left lead from the root to a node."""
        used: set[int] = set()
        return all(self._augment(root, node, used) for _ in range(wanted))

    def _augment(self, root: int, node: int, used: set[int]) -> bool:
        """Find one way more, given the arcs that those before use."""
        came: dict[int, tuple[int, int]] = {root: (-1, -1)}
        queue = [root]
        for here in queue:
            for arc in self.out[here]:
                if self.left[arc] and arc not in used and self.head[arc] not in came:
                    came[self.head[arc]] = here, arc
                    queue.append(self.head[arc])
            for arc in self.into[here]:
                if arc in used and self.tail[arc] not in came:
                    came[self.tail[arc]] = here, arc
                    queue.append(self.tail[arc])
            if node in came:
                break
        else:
            return False
        while node != root:
            node, arc = came[node]
            used ^= {arc}
        return True


def _grow(arcs: _Arcs, root: int, others: int, entry: IntArray, depth: IntArray) -> None:
    """Grow a tree level by level, and take its arcs; so many others must still find theirs."""
    reached, level = {root}, [root]
    while level:
        following = []
        for here in level:
            for arc in arcs.out[here]:
                there = arcs.head[arc]
                if not arcs.left[arc] or there in reached:
                    continue
                arcs.left[arc] = False
                if not arcs.ways(root, there, others):
                    arcs.left[arc] = True
                    continue
                reached.add(there)
                following.append(there)
                entry[there], depth[there] = arcs.entry[arc], depth[here] + 1
        level = following
