"""Search for spanning trees that are shallower than given ones and share no arc, or no link.

The graph may be any. In each round of the search, all trees are replaced at once:

- First, every node gets a *level* in each tree, larger than the level of its parent. At random it
  is the lowest possible level, or the highest one at which the subtree below the node still ends at
  the wanted height.
- Then, every node gets a new parent in each tree: any neighbour of a lower level. So the result is
  a tree, in which no node lies deeper than its level.

No two trees may use the same arc (or link). The choice of parents is therefore a matching of
*cells*, nodes in trees, with arcs or links. The matching of least weight is taken, where the weight
is high if a node would lie deeper than the wanted height. As soon as no node does, the wanted
height is reduced by 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...collective import Collective
from ...schedule import Grouped, Pattern, Rounds, Transfers
from ...topology import IntArray, Topology

__all__ = ["Trees", "make_shallower", "tree_pattern", "up_down_allreduce"]

#: The number of ports of a ring, whose trees cannot be changed.
RING_PORTS = 2

#: The most steps of a search, and the most steps without an improvement.
STEPS, MOST_VAIN_STEPS = 100, 40

#: The most cells of all steps of a search; and the most cells of trees that are searched at all.
WORK_LIMIT, MOST_CELLS = 100_000, 4_000

#: The seeds of the searches, which are tried until trees are at most `FEW` hops higher than the
#: least wanted height; half of that if words go up and down.
SEEDS, FEW = range(2, 11), 4

#: The weight of a node that lies too deep, larger than all other weights together.
DEPTH_PENALTY = 1000.0


class Trees(NamedTuple):
    """Spanning trees out of roots; arrays of shape (trees, nodes).

    Parameters
    ----------
    entry : ndarray of int
        The in-port by which each node is reached; without meaning at the root.
    depth : ndarray of int
        The hops from the root; 0 at the root.
    """

    entry: IntArray
    depth: IntArray

    @property
    def height(self) -> int:
        """The hops to the deepest node of any tree."""
        return int(self.depth.max())


def tree_pattern(topology: Topology, collective: Collective, trees: Trees) -> Pattern:
    """Return a broadcast that sends chunk c down tree c; trees share no arc.

    Parameters
    ----------
    collective : Collective
        The broadcast.
    trees : Trees
        The trees, one for each chunk, with the root of the broadcast.

    Examples
    --------
    On a ring of three nodes, the root sends chunk 0 by both ports, and the others start nothing
    (-1):

    >>> import torusfabric as tf
    >>> ring = tf.Torus(3)
    >>> trees = Trees(np.array([[0, 1, 0]]), np.array([[0, 1, 1]]))
    >>> tree_pattern(ring, tf.parse_collective("broadcast"), trees).inject.tolist()
    [[0, 0], [-1, -1], [-1, -1]]
    """
    feed = np.full((topology.nodes, topology.ports), -1, np.int16)
    inject = np.full((topology.nodes, topology.ports), -1)
    tree, child = np.nonzero(trees.depth)
    parent, out = (end[child, trees.entry[tree, child]] for end in topology.upstream)
    first = trees.depth[tree, parent] == 0
    inject[parent[first], out[first]] = tree[first]
    feed[parent[~first], out[~first]] = trees.entry[tree, parent][~first]
    return Pattern(
        topology=topology,
        collective=collective,
        chunks=len(trees.entry),
        steps=int(trees.depth.max()),
        feed=feed,
        inject=inject,
    )


def up_down_allreduce(topology: Topology, collective: Collective, up: Trees, down: Trees) -> Rounds:
    """Return an all-reduce in which chunk c goes up tree c to its root, and the sum goes down.

    Parameters
    ----------
    collective : Collective
        The all-reduce.
    up : Trees
        Trees of the topology backwards: their in-ports are the out-ports of the hops up.
    down : Trees
        Trees of the topology with the same roots.
    """
    blocks = collective.blocks(topology, len(up.entry))
    group = blocks.chunk(np.arange(blocks.n_blocks))
    rounds: list[Transfers] = []
    for level in range(up.height, 0, -1):
        tree, child = np.nonzero(up.depth == level)
        rounds.append(Transfers.hop(child, up.entry[tree, child], Grouped(group, tree)))
    for level in range(1, down.height + 1):
        tree, child = np.nonzero(down.depth == level)
        parent, out = (end[child, down.entry[tree, child]] for end in topology.upstream)
        rounds.append(Transfers.hop(parent, out, Grouped(group, tree)))
    return Rounds(
        topology=topology,
        collective=collective,
        chunks=len(up.entry),
        transfers=tuple(rounds),
    )


def make_shallower(topology: Topology, trees: Trees, *, links: bool, least: int) -> Trees:
    """Search for trees with the same roots over which a message takes fewer cycles.

    Return the best trees found, or `trees` if none are better.

    Parameters
    ----------
    links : bool
        True if trees share no link, and words go up and down them. False if they share no arc, and
        words go down or up.
    least : int
        The height at which the search ends; it does not look for lower trees.

    Examples
    --------
    The heights before and after:

    >>> from torusfabric.algorithms.oblivious.spanning_trees import link_disjoint_trees
    >>> from torusfabric.topology import Torus
    >>> trees = link_disjoint_trees(Torus(6, 6))
    >>> trees.height, make_shallower(Torus(6, 6), trees, links=True, least=6).height
    (8, 6)
    """
    cells = int((trees.depth > 0).sum())
    if topology.ports == RING_PORTS or not 0 < cells <= MOST_CELLS:
        return trees
    found, few = [], FEW // 2 if links else FEW
    for seed in SEEDS[: MOST_CELLS // cells]:
        search = _TreeSearch(topology, trees, links=links, seed=seed)
        found.append(search.search_best(min(STEPS, WORK_LIMIT // cells), least))
        if found[-1].trees.height <= least + few:
            break
    return min(found, key=lambda one: one.cost).trees


class _RatedTrees(NamedTuple):
    """Trees that a search found, and their `cycle_cost`; a smaller tuple is better."""

    cost: tuple[int, int]
    trees: Trees


class _TreeSearch:
    """A search for shallower trees, which makes all trees anew several times.

    A *cell* is a node in one of the trees, with number tree * nodes + node.
    """

    def __init__(self, topology: Topology, trees: Trees, *, links: bool, seed: int) -> None:
        nodes, ports = topology.nodes, topology.ports
        count = len(trees.entry)
        self.trees, self._links = trees, links
        self._random = np.random.default_rng(seed)
        tree = np.arange(count)[:, None, None] * nodes
        node, port = topology.upstream
        here = np.where(topology.linked[node, port], node, np.arange(nodes)[:, None])
        #: For each cell and in-port, the cell of the neighbour from which words arrive there.
        self._beside = (tree + here[None]).reshape(-1, ports)
        arc = node * ports + port
        if links:
            arc = np.minimum(arc, np.arange(nodes)[:, None] * ports + np.arange(ports))
        self._arc = np.tile(arc, (count, 1))
        self._roots = np.flatnonzero(trees.depth.ravel() == 0)
        self._cells = np.flatnonzero(trees.depth.ravel() > 0)
        self._size = nodes * ports

    def search_best(self, steps: int, least: int) -> _RatedTrees:
        """Rebuild the trees up to `steps` times, and return the best trees of all.

        Each time the wanted height is one less than the best so far, and at least `least`.
        """
        best, vain = _RatedTrees(self.cycle_cost(), self.trees), 0
        for _ in range(steps):
            self.rebuild_trees(max(best.trees.height - 1, least))
            vain += 1
            if (cost := self.cycle_cost()) < best.cost:
                best, vain = _RatedTrees(cost, self.trees), 0
            if vain == MOST_VAIN_STEPS:
                break
        return best

    def rebuild_trees(self, wanted: int) -> None:
        """Replace all trees by new ones, in which nodes deeper than `wanted` are avoided.

        Each node gets a level in each tree. A matching then chooses for each node a neighbour of a
        lower level as its parent, so that no arc or link is used twice.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching

        entry, depth = (array.ravel() for array in self.trees)
        parent = self._beside[np.arange(len(entry)), entry]
        level = self._assign_levels(parent, depth, wanted)
        mine, beside = level[self._cells], level[self._beside[self._cells]]
        cell, port = np.nonzero(beside < mine[:, None])
        lower = beside[cell, port]
        weight = 1 + 0.5 * self._random.random(len(cell)) + 2 * lower / wanted
        weight[lower >= wanted] += DEPTH_PENALTY
        arc = self._arc[self._cells[cell], port]
        shape = len(self._cells), self._size
        ways = csr_array((weight, (cell, arc)), shape=shape)
        _, chosen = min_weight_full_bipartite_matching(ways)
        taken = arc == chosen[cell]
        entry = entry.copy()
        entry[self._cells[cell[taken]]] = port[taken]
        self.trees = Trees(
            entry.reshape(self.trees.entry.shape),
            self._depths_from_roots(entry).reshape(self.trees.depth.shape),
        )

    def cycle_cost(self) -> tuple[int, int]:
        """Return two numbers of cycles to keep small, the more important one first.

        For trees that share no link they are (cycles up and down, cycles down), for trees that
        share no arc (cycles down, cycles up). A word takes a cycle for each hop down. Up, a sum
        waits one cycle more for each further child.
        """
        entry, depth = (array.ravel() for array in self.trees)
        parent = self._beside[np.arange(len(entry)), entry]
        time = np.zeros_like(depth)
        for layer in reversed(_cells_by_depth(depth)):
            order = np.lexsort((-time[layer], parent[layer]))
            child, above = layer[order], parent[layer][order]
            rank = np.arange(len(child)) - np.searchsorted(above, above)
            np.maximum.at(time, above, time[child] + 1 + rank)
        up, down = int(time.max()), self.trees.height
        return (up + down, down) if self._links else (down, up)

    def _assign_levels(self, parent: IntArray, depth: IntArray, wanted: int) -> IntArray:
        """Return a level for each cell (a node in a tree), higher than the level of its parent.

        In a random share of the cells this is the highest level from which the subtree still ends
        at level `wanted`, in the others the lowest possible level. `parent` and `depth` have the
        parent and the depth of each cell.
        """
        layers = _cells_by_depth(depth)
        height = np.zeros_like(depth)
        for layer in reversed(layers):
            np.maximum.at(height, parent[layer], height[layer] + 1)
        count = len(self.trees.entry)
        share = np.repeat(self._random.random(count), len(depth) // count)
        last = self._random.random(len(depth)) < share
        level = np.zeros_like(depth)
        for layer in layers:
            least = level[parent[layer]] + 1
            most = np.maximum(wanted - height[layer], least)
            level[layer] = np.where(last[layer], most, least)
        return level

    def _depths_from_roots(self, entry: IntArray) -> IntArray:
        """Return the number of hops from the root to each cell (a node in a tree).

        `entry` has the in-port by which the tree reaches each cell.
        """
        parent = self._beside[np.arange(len(entry)), entry]
        parent[self._roots] = self._roots
        depth: IntArray = (parent != np.arange(len(parent))).astype(int)
        # Pointer doubling: each pass goes twice as far towards the roots.
        while (parent[parent] != parent).any():
            depth, parent = depth + depth[parent], parent[parent]
        return depth


def _cells_by_depth(depth: IntArray) -> list[IntArray]:
    """Return lists of cells (nodes in trees): those of depth 1, of depth 2, and so on.

    `depth` has the depth of each cell. Roots are left out.
    """
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(1, depth.max() + 2))
    return [order[a:b] for a, b in pairwise(bounds)]
