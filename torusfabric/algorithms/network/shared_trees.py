"""All-reduces on any network: up trees and down others, all of which load the arcs evenly.

Each chunk has a root, a tree up which its sums go to the root, and a tree down which the complete
sum goes. Roots are central nodes. If all links go both ways, as many trees exist as the worst
partition allows (Tutte; Nash-Williams, 1961), whatever their roots. It is not proved that the
search of `forest` finds them; with fewer trees found, fewer are used.

The fewest steps result when arcs carry the trees of one part of the message after another. A *part*
has one chunk for each tree. Each part takes the same arcs, so that no arc is idle except in the
first and the last steps.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...analysis.volume import least_path_length
from ...collective import Collective
from ...schedule import Grouped, Transfers
from ...topology import IntArray, Topology
from .forest import Forest
from .spread import Arcs, schedule_hops, subtree_heights

__all__ = ["SharedTrees", "shared_trees", "schedule_sums"]

#: Limits of the load of the busiest arc, relative to the least load, tried one after another; and
#: the most trees.
ACCEPTED_FACTORS, MOST_TREES = (Fraction(203, 200), Fraction(103, 100), Fraction(115, 100)), 64

#: The least and the most searches for trees, and the most arcs times trees of all searches. The
#: search ends early with a result that takes at most `FEW_EXTRA_STEPS` steps more than its busiest
#: arc and its longest path need.
TRIES, MOST_TRIES, WORK_LIMIT, FEW_EXTRA_STEPS = 3, 12, 40_000, 4

#: The number of tree counts that are compared; the one with the fewest steps is chosen.
MOST_CANDIDATES = 2

#: The starts of searches. The first number is the inverse of the share of nodes, the most central
#: ones, among which roots are. The second is the additional length of an arc, in hops, for each hop
#: before it. Why: where links go one way, roots must be all over the network; arcs that are all
#: full need deep trees.
SEARCH_STARTS = ((16, 1.0), (1, 0.5), (16, 1.5))

#: The length, in steps, of the message with which the excess over the steps of the busiest arc is
#: measured; and the length of a long message, of which that excess is then a share.
LOOK_AHEAD_STEPS, LONG_MESSAGE_STEPS = 40, 160

#: The half steps by which a hop is due earlier for each hop that remains after it. Each part of a
#: message is due as many steps after the part before it as its busiest arc takes for a part.
DEPTH_WEIGHT = 3


class SharedTrees(NamedTuple):
    """Trees for an all-reduce: for each chunk one tree up to a root, and one down from it.

    Partial sums go up to the root, and the complete sum goes down to all nodes. Different trees may
    use the same arc.

    Parameters
    ----------
    most : int
        The largest number of trees that may use one arc.
    roots : tuple of int
        For each chunk, the root of its two trees, where the sum is complete.
    up, down : list of (list of int)
        For each chunk, the arcs of its tree, by their numbers in `WeightedArcs`.
    """

    most: int
    roots: tuple[int, ...]
    up: list[list[int]]
    down: list[list[int]]


class _TreeCandidate(NamedTuple):
    """Trees that a search found, and their quality; of two candidates the smaller tuple is better.

    Parameters
    ----------
    steps : Fraction
        Number of steps of an all-reduce of a long message (see `LONG_MESSAGE_STEPS`), divided by
        the number of its chunks.
    soon : bool
        True if an all-reduce with these trees takes hardly longer than the lower bound. The search
        then ends, because better trees would save little.
    trees : SharedTrees
        The result of the search.
    """

    steps: Fraction
    soon: bool
    trees: SharedTrees


@lru_cache(maxsize=16)
def shared_trees(topology: Topology, least: Fraction, count: int | None = None) -> SharedTrees:
    """Return trees with which an all-reduce comes near the least message times.

    Parameters
    ----------
    least : Fraction
        Lower bound of the message times.
    count : int, optional
        Number of trees in each direction; by default the fewest that come near the bound.

    Examples
    --------
    Three pairs of trees, of which at most two use the same arc. Each of three chunks has a third of
    the message, so the busiest arc carries 2/3 of a message:

    >>> from torusfabric.topology import parse_topology
    >>> trees = shared_trees(parse_topology("mesh:3x3"), Fraction(2, 3))
    >>> trees.most, len(trees.up)
    (2, 3)
    """
    arcs, work = WeightedArcs(topology), 0
    counts = range(1, 1 + MOST_TREES) if count is None else [count]
    for enough in ACCEPTED_FACTORS:
        candidates: list[_TreeCandidate] = []
        for number in counts:
            most = ceil(number * least)
            if Fraction(most, number) > enough * least and count is None:
                continue
            found = _search_trees(topology, arcs, number, most)
            work += number * len(arcs.tail)
            if found is not None:
                candidates.append(found)
            if (
                len(candidates) == MOST_CANDIDATES
                or work > 2 * WORK_LIMIT
                or (found and found.soon)
            ):
                break
        if candidates:
            return min(candidates).trees
    number = count or MOST_TREES // 4
    most = ceil(number * least)
    while (found := _search_trees(topology, arcs, number, most)) is None:
        most += 1
    return found.trees


def _search_trees(
    topology: Topology, arcs: WeightedArcs, count: int, most: int
) -> _TreeCandidate | None:
    """Return the best trees of several searches, or None if no search succeeds.

    There are `count` trees in each direction, and no arc is in more than `most` of them. The best
    trees are those by which a long message takes the least time. `arcs` are the arcs of the
    topology.
    """
    best: _TreeCandidate | None = None
    copies, few = (
        -(-LOOK_AHEAD_STEPS // most),
        FEW_EXTRA_STEPS + least_path_length(topology, Collective("allreduce")),
    )
    for trial in range(MOST_TRIES):
        enough = best is None or best.soon or trial * count * len(arcs.tail) > WORK_LIMIT
        if trial >= TRIES and enough:
            break
        trees = _pack_trees(topology, arcs, count, most, trial)
        if trees is not None:
            more = len(schedule_sums(topology, trees, copies)) - copies * most
            steps = Fraction(most, count) * (1 + Fraction(more, LONG_MESSAGE_STEPS))
            if best is None or steps < best.steps:
                best = _TreeCandidate(steps, more <= few, trees)
    return best


def _pack_trees(
    topology: Topology, arcs: WeightedArcs, count: int, most: int, seed: int
) -> SharedTrees | None:
    """Search once for `count` trees in each direction, with no arc in more than `most` of them.

    Return None if the search fails. `seed` selects the roots and the random choices. `arcs` are the
    arcs of the topology.
    """
    random, nodes, links = np.random.default_rng(seed), topology.nodes, len(arcs.tail)
    away = topology.all_distances
    amid = np.argsort(away.max(axis=0) + away.max(axis=1), kind="stable")
    part, depth = SEARCH_STARTS[seed % len(SEARCH_STARTS)]
    roots = np.resize(random.permutation(amid[: max(nodes // part, count)]), count)
    if topology.backwards is topology:
        # For each arc, the arc of the same link in the other direction.
        ports = topology.ports
        there: IntArray = arcs.head * ports + topology.opposite[arcs.port]
        back = np.searchsorted(arcs.tail * ports + arcs.port, there)
        link = np.minimum(np.arange(links), back).tolist()
        forest = Forest(arcs, roots.tolist(), random, links=link, depth=depth)
    else:
        forest = Forest(
            Arcs(  # the network, and a copy of it with all arcs reversed
                2 * nodes,
                np.concatenate([arcs.tail, nodes + arcs.head]),
                np.concatenate([arcs.head, nodes + arcs.tail]),
            ),
            np.concatenate([roots, nodes + roots]).tolist(),
            random,
            links=[*range(links)] * 2,
            depth=depth,
        )
    forest.grow_all(most)
    if not forest.relieve_arcs(most):
        return None
    down = [[arc % links for arc in tree] for tree in forest.trees]
    up = down[count:] or [back[tree].tolist() for tree in down]
    return SharedTrees(most, tuple(roots.tolist()), up, down[:count])


def schedule_sums(topology: Topology, trees: SharedTrees, copies: int) -> tuple[Transfers, ...]:
    """Return the transfers of each step of an all-reduce up and down given trees.

    The message is cut into `copies` parts, and each part into one chunk for each pair of trees. The
    parts follow each other along the same trees.

    Examples
    --------
    With 11 parts, a message takes 27 steps of 1/33 of a message, in place of 8 steps of 1/3:

    >>> from torusfabric.topology import parse_topology
    >>> mesh = parse_topology("mesh:3x3")
    >>> trees = shared_trees(mesh, Fraction(2, 3))
    >>> [len(schedule_sums(mesh, trees, copies)) for copies in (1, 11)]
    [8, 27]
    """
    arcs, hops = WeightedArcs(topology), _HopLists()
    for root, up, down in zip(trees.roots, trees.up, trees.down, strict=True):
        hops.add_chunk(arcs, root, up, down)
    size, count = len(hops.arc), len(trees.up)
    steps = schedule_hops(
        hops.arc * copies,
        [[k + size * copy for k in each] for copy in range(copies) for each in hops.after],
        hops.waits * copies,
        [
            (2 * copy * trees.most - DEPTH_WEIGHT * left, copy)
            for copy in range(copies)
            for left in hops.left
        ],
        arcs.forwarding_steps,
    )
    blocks = Collective("allreduce").blocks(topology, copies * count)
    group, arc = blocks.chunk(np.arange(blocks.n_blocks)), np.array(hops.arc)
    transfers = []
    for step in steps:
        copy, hop = np.divmod(np.array(step), size)
        used, chunk = arc[hop], count * copy + hop // (size // count)
        transfers.append(Transfers.hop(arcs.tail[used], arcs.port[used], Grouped(group, chunk)))
    return tuple(transfers)


class _HopLists:
    """The hops of all chunks up and down their trees, in the lists that `schedule_hops` takes.

    A hop is the move of one chunk over one arc. Hops are numbered in the order in which they are
    added.

    Attributes
    ----------
    arc, waits : list of int
        The arc of each hop, and the number of other hops that must come before it.
    after : list of (list of int)
        For each hop, the hops that wait for it.
    left : list of int
        Number of hops from the start of each hop until all nodes have the complete sum.
    """

    def __init__(self) -> None:
        self.arc: list[int] = []
        self.waits: list[int] = []
        self.after: list[list[int]] = []
        self.left: list[int] = []

    def add_chunk(self, arcs: WeightedArcs, root: int, up: list[int], down: list[int]) -> None:
        """Add the hops of a chunk that goes up one tree to `root` and down another one.

        `up` and `down` are the arcs of the trees, by their numbers in `arcs`.
        """
        tail, head, first = arcs.tail.tolist(), arcs.head.tolist(), len(self.arc)
        out: dict[int, list[int]] = {}
        for number, arc in enumerate(down, first):
            out.setdefault(tail[arc], []).append(number)
        parent = {tail[arc]: head[arc] for arc in up}
        number_of = {tail[arc]: number for number, arc in enumerate(up, first + len(down))}
        coming = Counter(parent.values())
        left = subtree_heights(down, tail, head)
        for arc in down:
            self.arc.append(arc)
            self.after.append(out.get(head[arc], []))
            self.waits.append(coming[root] if tail[arc] == root else 1)
            self.left.append(left[arc])
        height = max(left.values())
        for arc in up:
            self.arc.append(arc)
            above = head[arc]
            self.after.append(out[root] if above == root else [number_of[above]])
            self.waits.append(coming[tail[arc]])
            while above != root:
                above, height = parent[above], height + 1
            self.left.append(height + 1)
            height = max(left.values())
