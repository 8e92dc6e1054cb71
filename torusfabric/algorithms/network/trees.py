"""Spanning trees of any network that share no arc, or no link.

Out of a root there are as many arc-disjoint trees as the least cut from it allows. A tree may take
an arc as long as every node can still be reached over as many arc-disjoint paths as there are trees
to come. Source: L. Lovasz, "On two minimax theorems in graph theory", J. Comb. Theory B 21, 1976.

Where all links go both ways, other trees share no link. Links enter forests one after another. If a
link would close a cycle in each forest, links of these cycles change forests in turn, if that makes
room. Source: J. Roskind, R. E. Tarjan, "A note on finding minimum-cost edge-disjoint spanning
trees", Math. Oper. Res. 10, 1985.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...analysis.partitions import MOST_NODES as MOST_PARTITIONED
from ...analysis.partitions import worst_partition
from ...analysis.volume import least_path_length
from ...collective import Collective
from ...topology import BoolArray, IntArray, Topology, hops_from
from ..oblivious.shallow_trees import Trees, make_shallower
from .spread import ArcLists

__all__ = ["disjoint_trees_from", "link_disjoint_trees_of", "max_link_disjoint_trees",
           "nearest_root_tree"]  # fmt: skip

#: The most arcs that are divided among trees: each arc takes a flow.
MOST_ARCS = 8192


@lru_cache(maxsize=16)
def disjoint_trees_from(topology: Topology, root: int, count: int) -> Trees:
    """Return `count` spanning trees out of a root that share no arc and are mostly shallow.

    Parameters
    ----------
    count : int
        Number of trees. There are as many as the least cut: the fewest arcs that separate some node
        from the root.

    Examples
    --------
    Three trees of 16 nodes; the deepest has five levels below the root:

    >>> from torusfabric.topology import parse_topology
    >>> trees = disjoint_trees_from(parse_topology("4x4!0:+0"), 5, 3)
    >>> trees.entry.shape, trees.height
    ((3, 16), 5)
    """
    arcs = _RemainingArcs(topology)
    entry, depth = np.zeros((2, count, topology.nodes), int)
    for tree in range(count):
        _grow_tree(arcs, root, count - 1 - tree, entry[tree], depth[tree])
    found = Trees(entry, depth)
    farthest = int(hops_from(topology.neighbours, root).max())
    return make_shallower(topology, found, links=False, least=farthest)


def nearest_root_tree(topology: Topology, root: int) -> Trees:
    """Return a spanning tree in which each node is reached from the root as early as possible.

    The time of a path is the sum of the latencies of its links. The result is a `Trees` with one
    tree.

    Examples
    --------
    From the middle of a row of five nodes, two hops reach all nodes:

    >>> from torusfabric.topology import parse_topology
    >>> nearest_root_tree(parse_topology("mesh:5"), 2).height
    2
    """
    hops = hops_from(topology.neighbours, root)
    node, port = topology.upstream
    if topology.one_latency is not None:
        nearer = _has_incoming_link(topology) & (hops[node] < hops[:, None])
        return Trees(nearer.argmax(axis=1)[None], hops[None].astype(int))
    cycles = topology.cycles_from(root)
    nearer = cycles[node] + topology.cycles_of_arc[node, port] == cycles[:, None]
    entry = (_has_incoming_link(topology) & nearer).argmax(axis=1)
    above = node[np.arange(topology.nodes), entry]
    depth = np.zeros(topology.nodes, int)
    for here in np.argsort(cycles, kind="stable").tolist():
        depth[here] = 0 if here == root else depth[above[here]] + 1
    return Trees(entry[None], depth[None])


def _has_incoming_link(topology: Topology) -> BoolArray:
    """Return True for each in-port at which an arc arrives, as an array of shape (nodes, ports)."""
    node, port = topology.upstream
    there: BoolArray = topology.linked[node, port]
    return there


class _RemainingArcs(ArcLists):
    """The arcs of a network, and a mark (`left`) at those that no tree has taken yet."""

    def __init__(self, topology: Topology) -> None:
        arcs = WeightedArcs(topology)
        super().__init__(arcs)
        self.entry = topology.opposite[arcs.port].tolist()
        self.left = [True] * len(self.head)

    def has_disjoint_paths(self, root: int, node: int, wanted: int) -> bool:
        """Return True if `wanted` arc-disjoint paths of remaining arcs lead from root to node."""
        used: set[int] = set()
        return all(self._augment_paths(root, node, used) for _ in range(wanted))

    def _augment_paths(self, root: int, node: int, used: set[int]) -> bool:
        """Find one more path from `root` to `node` that shares no arc with earlier paths.

        `used` has the arcs of the paths so far, and is updated. As in a maximum flow, the earlier
        paths may be led over other arcs to make room. Return True if a path was found.
        """
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


def _grow_tree(
    arcs: _RemainingArcs, root: int, others: int, entry: IntArray, depth: IntArray
) -> None:
    """Grow a spanning tree from the root, and take its arcs.

    The tree takes an arc only if `others` further trees remain possible afterwards. The in-port by
    which the tree reaches each node is written into `entry`, and the number of hops from the root
    into `depth`.
    """
    reached, level = {root}, [root]
    while level:
        following = []
        for here in level:
            for arc in arcs.out[here]:
                there = arcs.head[arc]
                if not arcs.left[arc] or there in reached:
                    continue
                arcs.left[arc] = False
                if not arcs.has_disjoint_paths(root, there, others):
                    arcs.left[arc] = True
                    continue
                reached.add(there)
                following.append(there)
                entry[there], depth[there] = arcs.entry[arc], depth[here] + 1
        level = following


#: The most nodes with which trees that share no link are looked for.
MOST_NODES = 1024


@lru_cache(maxsize=64)
def max_link_disjoint_trees(topology: Topology) -> int:
    """Return the largest number of spanning trees that can exist without a common link.

    The result is 0 if some link goes one way, since trees of an all-reduce use links in both
    directions. It is also 0 if the network has more than `MOST_NODES` nodes, because the search
    would take too long.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> [max_link_disjoint_trees(parse_topology(name)) for name in ("8x8!0:+0", "mesh:8x8",
    ...     "4x4!0:+0:out")]
    [2, 1, 0]
    """
    if topology.backwards is not topology or not 1 < topology.nodes <= MOST_NODES:
        return 0
    count = int(1 / worst_partition(topology).message_times)
    if topology.nodes > MOST_PARTITIONED:  # a bound on the number only
        while count > 1 and not _grow_forests(topology, count).are_trees:
            count -= 1
    return count


@lru_cache(maxsize=16)
def link_disjoint_trees_of(topology: Topology, count: int) -> Trees:
    """Return `count` spanning trees that share no link; each has a root from which it is shallow.

    Parameters
    ----------
    count : int
        Number of trees, at most `max_link_disjoint_trees`.

    Examples
    --------
    Two trees of 16 nodes:

    >>> from torusfabric.topology import parse_topology
    >>> link_disjoint_trees_of(parse_topology("4x4!0:+0"), 2).entry.shape
    (2, 16)
    """
    forests = _grow_forests(topology, count)
    assert forests.are_trees
    entry, depth = np.zeros((2, count, topology.nodes), int)
    for number in range(count):
        forests.write_tree(number, entry[number], depth[number])
    reach = least_path_length(topology, Collective("allreduce"))
    return make_shallower(topology, Trees(entry, depth), links=True, least=-(-reach // 2))


@lru_cache(maxsize=4)
def _grow_forests(topology: Topology, count: int) -> _LinkForests:
    """Return `count` disjoint forests with as many links as possible."""
    return _LinkForests(topology, count)


class _LinkForests:
    """Disjoint sets of links (forests) without cycles, which have as many links as possible.

    They are spanning trees if the network has so many disjoint spanning trees.
    """

    def __init__(self, topology: Topology, count: int) -> None:
        self._nodes, self._count = topology.nodes, count
        node, port = np.nonzero(topology.linked)
        other, back = topology.neighbours[node, port], topology.opposite[port]
        once = node * topology.ports + port < other * topology.ports + back
        #: The ends of each link, and the in-ports by which each end is reached from the other.
        self._ends = list(zip(node[once].tolist(), other[once].tolist(), strict=True))
        self._entry = list(zip(port[once].tolist(), back[once].tolist(), strict=True))
        #: For each forest, the links at each node.
        self._at: list[list[set[int]]] = [[set() for _ in range(self._nodes)] for _ in range(count)]
        self._in: dict[int, int] = {}
        away = topology.all_distances
        near = away[int(away.max(axis=1).argmin())]
        order = sorted(range(len(self._ends)), key=lambda k: sum(near[[*self._ends[k]]]))
        for link in order:
            if self.are_trees:
                break
            self._add_link(link)

    @property
    def are_trees(self) -> bool:
        """True if each forest is a spanning tree."""
        return len(self._in) == self._count * (self._nodes - 1)

    def _add_link(self, link: int) -> None:
        """Add a link to one of the forests (sets of links), where it must not close a cycle.

        Other links may move to another forest to make this possible. If that is not enough, the
        link stays out.
        """
        came: dict[int, tuple[int, int]] = {link: (-1, -1)}
        queue = [link]
        for now in queue:
            for forest in sorted(range(len(self._at)), key=lambda k: sum(map(len, self._at[k]))):
                if self._in.get(now) == forest:
                    continue
                circle = self._path_in_forest(forest, *self._ends[now])
                if circle is None:
                    self._move_links(now, forest, came)
                    return
                for other in circle:
                    if other not in came:
                        came[other] = now, forest
                        queue.append(other)

    def _move_links(self, link: int, forest: int, came: dict[int, tuple[int, int]]) -> None:
        """Move a link into a forest (a set of links), and then the links that waited for its place.

        ``came[link]`` is a pair: the link that can take the place that `link` leaves, and the
        forest in which this place is; -1 if no link waits.
        """
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

    def _path_in_forest(self, forest: int, start: int, end: int) -> list[int] | None:
        """Return the links from node `start` to node `end` in a forest, or None without a path."""
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

    def write_tree(self, forest: int, entry: np.ndarray, depth: np.ndarray) -> None:
        """Write the tree with index `forest` into `entry` and `depth`.

        `entry` gets the in-port of each node, and `depth` its depth. The root is a node from which
        the tree is least high.
        """
        order = min(
            (self._traversal_order(forest, root) for root in range(self._nodes)),
            key=lambda o: o[-1][2],
        )
        for node, port, hops in order:
            entry[node], depth[node] = port, hops

    def _traversal_order(self, forest: int, root: int) -> list[tuple[int, int, int]]:
        """Return the nodes of tree `forest` level by level, as triples (node, in-port, depth).

        The in-port of the root is 0, without meaning.
        """
        order, seen = [(root, 0, 0)], {root}
        for here, _, hops in order:
            for link in self._at[forest][here]:
                (one, two), (of_one, of_two) = self._ends[link], self._entry[link]
                there, port = (two, of_two) if one == here else (one, of_one)
                if there not in seen:
                    seen.add(there)
                    order.append((there, port, hops + 1))
        return order
