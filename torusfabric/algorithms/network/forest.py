"""All-gathers on any network: a spanning tree for each block, all of which load the arcs evenly.

Trees of shortest paths are first spread over the arcs. Let the *target* be the lower bound on the
blocks of the busiest arc. While an arc u -> v is in more trees than the target, some of these trees
are changed. A changed tree reaches v by another arc w -> v with room, where w does not lie below v
in the tree. If no such arc exists, the tree grows anew, by free arcs first. As many trees as the
cuts allow exist (Edmonds, "Edge-disjoint branchings", 1973; Zhao and others, "ForestColl", 2024);
it is not proved that this search finds them.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from functools import cached_property
from math import ceil

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...schedule import Transfers
from ...topology import IntArray, Topology
from .spread import ArcLoads, Arcs, schedule_trees, spread_messages

__all__ = ["Forest", "allgather_steps"]

#: The most further tries, and the most blocks times arcs of all tries.
MORE_TRIES, WORK_LIMIT = 12, 60_000

#: The most changes for each arc and tree: 1 for a changed arc, and `COST_OF_GROWING` for a tree
#: that grows anew.
MOST_CHANGES, COST_OF_GROWING = 20, 8

#: The additional length of an arc, in hops, for each hop before it in a growing tree.
DEPTH_PENALTY = 0.05


def allgather_steps(
    topology: Topology, chunks: int, least: Fraction, seed: int = 0
) -> tuple[Transfers, ...]:
    """Return the transfers of each step of an all-gather; each block goes down a spanning tree.

    The trees are chosen so that all arcs carry about equally many blocks.

    Parameters
    ----------
    chunks : int
        Number of chunks of a message.
    least : Fraction
        Lower bound of the message times.
    seed : int
        Seed of the search.

    Examples
    --------
    A torus with a broken link. The lower bound is 21 message times, and whole messages need 21
    steps:

    >>> from fractions import Fraction
    >>> from torusfabric.topology import parse_topology
    >>> len(allgather_steps(parse_topology("8x8!0:+0"), 1, Fraction(21)))
    21
    """
    arcs, blocks = WeightedArcs(topology), np.arange(topology.nodes * chunks)
    most = ceil(least * chunks)

    def choose_arcs(by: IntArray, part: IntArray) -> list[IntArray]:
        return [row[row >= 0] for row in by[part // chunks]]

    best: tuple[Transfers, ...] = ()
    for trial in range(1 + min(MORE_TRIES, WORK_LIMIT // (len(blocks) * len(arcs.tail)))):
        random = np.random.default_rng([seed, trial])
        spread_out = spread_messages(arcs, len(blocks), most, random, choose_arcs)
        forest = Forest(arcs, (blocks // chunks).tolist(), random, trees=spread_out)
        forest.relieve_arcs(most)
        steps = schedule_trees(arcs, forest.trees, blocks)
        if not best or len(steps) < len(best):
            best = steps
        if len(best) <= max(most, topology.diameter):
            break
    return best


class Forest(ArcLoads):
    """Spanning trees that are changed until no arc is in too many trees.

    Each arc belongs to a *resource*: the arc alone, or a set of arcs such as both arcs of a link.
    The load of a resource is the number of trees that use any of its arcs.

    Parameters
    ----------
    roots : list of int
        The root of each tree; a tree spans the nodes that are reached from its root.
    trees : list of (list of int), optional
        The arcs of each tree at first; without them, call `grow_all`.
    links : list of int, optional
        The number of the resource to which each arc belongs; by default each arc is a resource.
    depth : float
        Penalty for deep trees: an arc that begins h hops from the root counts as h * depth hops
        longer.
    """

    def __init__(
        self,
        arcs: Arcs | WeightedArcs,
        roots: list[int],
        random: np.random.Generator,
        *,
        trees: list[list[int]] | None = None,
        links: list[int] | None = None,
        depth: float = DEPTH_PENALTY,
    ) -> None:
        super().__init__(arcs, trees or (), links)
        self._random, self._roots, self._depth = random, roots, depth
        #: For each tree, the arc into each node except its root.
        self._by = [{self.head[arc]: arc for arc in tree} for tree in trees or [[]] * len(roots)]

    @property
    def trees(self) -> list[list[int]]:
        """The arcs of each tree."""
        return [list(by.values()) for by in self._by]

    def grow_all(self, most: int) -> None:
        """Grow all trees anew, in random order.

        Parameters
        ----------
        most : int
            Number of trees that an arc should be in at most. An arc that is already in `most` trees
            counts as longer, so that trees avoid it.
        """
        for tree in self._random.permutation(len(self._roots)).tolist():
            self._grow_tree(tree, most)

    def relieve_arcs(self, most: int) -> bool:
        """Change trees until at most `most` trees use each resource; return True on success.

        A resource is an arc, or a set of arcs, such as both arcs of a link: the trees that use any
        of its arcs are counted together.
        """
        left = MOST_CHANGES * (len(self.tail) + len(self._by))
        while left > 0 and (full := self.lengthen_full_links(most)):
            for link in self._random.permutation(full).tolist():
                stay = []
                for tree in self._random.permutation(sorted(self.over[link])).tolist():
                    if len(self.over[link]) <= most or left <= 0:
                        break
                    left -= 1
                    if not self._replace_arc(tree, link, most):
                        stay.append(tree)
                for tree in stay[: max(0, len(self.over[link]) - most)]:
                    self._grow_tree(tree, most)
                    left -= COST_OF_GROWING
        return left > 0

    def _replace_arc(self, tree: int, link: int, most: int) -> bool:
        """Replace, in one tree, the arc of a resource by another arc into the same node.

        A resource is an arc, or a set of arcs, such as both arcs of a link: the trees that use any
        of its arcs are counted together. `link` is the number of the resource. The new arc must
        belong to a resource that fewer than `most` trees use. Return False if there is no such arc.
        """
        (arc,) = (a for a in self._arcs_of_link[link] if self._by[tree].get(self.head[a]) == a)
        node = self.head[arc]
        free = [a for a in self.into[node] if len(self.over[self.link[a]]) < most]
        free = [a for a in free if not self._is_below(tree, a, node)]
        if free:
            other = min(free, key=lambda a: len(self.over[self.link[a]]))
            self.over[link].remove(tree)
            self.over[self.link[other]].add(tree)
            self._by[tree][node] = other
        return bool(free)

    @cached_property
    def _arcs_of_link(self) -> list[list[int]]:
        """The arcs of each resource, as a list for each number of a resource.

        A resource is an arc, or a set of arcs, such as both arcs of a link: the trees that use any
        of its arcs are counted together.
        """
        found: list[list[int]] = [[] for _ in self.over]
        for arc, link in enumerate(self.link):
            found[link].append(arc)
        return found

    def _is_below(self, tree: int, arc: int, node: int) -> bool:
        """Return True if the tail of `arc` is `node`, or a descendant of `node` in the tree."""
        by, here = self._by[tree], self.tail[arc]
        while here != node:
            onward = by.get(here)
            if onward is None:
                return False
            here = self.tail[onward]
        return True

    def _grow_tree(self, tree: int, most: int) -> None:
        """Replace a tree by a new one, which grows from its root by the shortest arc in each step.

        An arc that is already in `most` trees or more counts as longer, so that the tree avoids it.
        """
        for arc in self._by[tree].values():
            self.over[self.link[arc]].remove(tree)
        root = self._roots[tree]
        by: dict[int, int] = {}
        noise = self._random.random(64).tolist()
        heap: list[tuple[float, int, int]] = []
        here, depth = root, 0
        while here >= 0:
            for arc in self.out[here]:
                if self.head[arc] != root and self.head[arc] not in by:
                    length = (
                        self.penalized_length(arc, most)
                        + self._depth * depth
                        + 0.01 * noise[arc & 63]
                    )
                    heapq.heappush(heap, (length, arc, depth + 1))
            here = -1
            while heap and here < 0:
                _, arc, depth = heapq.heappop(heap)
                if self.head[arc] not in by:
                    here = self.head[arc]
                    by[here] = arc
                    self.over[self.link[arc]].add(tree)
        self._by[tree] = by
