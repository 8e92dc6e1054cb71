"""All-reduces on any network: up trees and down others, all of which load the arcs evenly.

Each chunk has a root, a tree up which its sums go to the root, and one down which the complete sum
goes. Roots are nodes amid the network. Where a link goes both ways as many trees exist as the worst
partition allows (Tutte; Nash-Williams, 1961), whatever their roots; that they are found, by the
search of `forest`, is not proved: a few are left out where they are not. What takes the fewest
steps is that arcs carry the trees of one part of the message after another: as many chunks as there
are trees, then as many again. Each time a step takes the same arcs, so that but for the first and
the last steps no arc ever rests.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from ...analysis.congestion import Lengths
from ...analysis.volume import least_reach
from ...collective import Collective
from ...schedule import Grouped, Transfers
from ...topology import IntArray, Topology
from .forest import Forest
from .spread import Arcs, heights, timetable

__all__ = ["SharedTrees", "shared_trees", "sums_along"]

#: How much more than the least the busiest arc may carry, the first that is found; and the most
#: trees.
ENOUGH, MOST_TREES = (Fraction(203, 200), Fraction(103, 100), Fraction(115, 100)), 64

#: How often trees are looked for at the least and at the most, and with how many arcs times trees
#: in all: until it takes few steps more than those in which arcs are busy, and of the longest way.
TRIES, MOST_TRIES, WORK, FEW = 3, 12, 40_000, 4

#: Of so many numbers of trees that which takes the fewest steps is chosen.
COMPARED = 2

#: Where searches start: among which part of the nodes, those most amid the network, roots are; and
#: how many hops longer an arc is for each hop before it. Where links go one way, roots must be all
#: over the network; arcs that are all full need deep trees.
STARTS = ((16, 1.0), (1, 0.5), (16, 1.5))

#: So many steps show how many more there are than arcs are busy; and those of a long message.
LOOK, LONG = 40, 160

#: How many half steps earlier a hop is due for each hop that is left behind it. Each part of a
#: message is due as many steps after the one before as arcs are busy with it.
SOONER = 3


class SharedTrees(NamedTuple):
    """Trees up and down, one of each for each chunk, which share arcs.

    Parameters
    ----------
    most : int
        In how many of them an arc is at the most.
    roots : tuple of int
        Where the sums of each are complete.
    up, down : list of (list of int)
        The arcs of each, by their numbers in `Lengths`.
    """

    most: int
    roots: tuple[int, ...]
    up: list[list[int]]
    down: list[list[int]]


class _Found(NamedTuple):
    """Trees, and the steps that a long message takes by them, as parts of its chunks."""

    steps: Fraction
    soon: bool
    trees: SharedTrees


@lru_cache(maxsize=16)
def shared_trees(topology: Topology, least: Fraction, count: int | None = None) -> SharedTrees:
    """Trees of an all-reduce that come near the least message times.

    Parameters
    ----------
    least : Fraction
        Message times that it takes at the least.
    count : int, optional
        How many trees; by default as few as come near.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> trees = shared_trees(parse_topology("mesh:3x3"), Fraction(2, 3))
    >>> trees.most, len(trees.up)
    (2, 3)
    """
    arcs, work = Lengths(topology), 0
    counts = range(1, 1 + MOST_TREES) if count is None else [count]
    for enough in ENOUGH:
        candidates: list[_Found] = []
        for number in counts:
            most = ceil(number * least)
            if Fraction(most, number) > enough * least and count is None:
                continue
            found = _search(topology, arcs, number, most)
            work += number * len(arcs.tail)
            if found is not None:
                candidates.append(found)
            if len(candidates) == COMPARED or work > 2 * WORK or (found and found.soon):
                break
        if candidates:
            return min(candidates).trees
    number = count or MOST_TREES // 4
    most = ceil(number * least)
    while (found := _search(topology, arcs, number, most)) is None:
        most += 1
    return found.trees


def _search(topology: Topology, arcs: Lengths, count: int, most: int) -> _Found | None:
    """So many trees up and down with no arc in more than so many of them, if they are found.

    Of several, those by which a long message takes the least time.
    """
    best: _Found | None = None
    copies, few = -(-LOOK // most), FEW + least_reach(topology, Collective("allreduce"))
    for trial in range(MOST_TRIES):
        enough = best is None or best.soon or trial * count * len(arcs.tail) > WORK
        if trial >= TRIES and enough:
            break
        trees = _packed(topology, arcs, count, most, trial)
        if trees is not None:
            more = len(sums_along(topology, trees, copies)) - copies * most
            steps = Fraction(most, count) * (1 + Fraction(more, LONG))
            if best is None or steps < best.steps:
                best = _Found(steps, more <= few, trees)
    return best


def _packed(
    topology: Topology, arcs: Lengths, count: int, most: int, seed: int
) -> SharedTrees | None:
    """What a search from one start finds."""
    random, nodes, links = np.random.default_rng(seed), topology.nodes, len(arcs.tail)
    away = topology.all_distances
    amid = np.argsort(away.max(axis=0) + away.max(axis=1), kind="stable")
    part, depth = STARTS[seed % len(STARTS)]
    roots = np.resize(random.permutation(amid[: max(nodes // part, count)]), count)
    if topology.backwards is topology:
        # The arc the other way of each, where links go both ways.
        ports = topology.ports
        there: IntArray = arcs.head * ports + topology.opposite[arcs.port]
        back = np.searchsorted(arcs.tail * ports + arcs.port, there)
        link = np.minimum(np.arange(links), back).tolist()
        forest = Forest(arcs, roots.tolist(), random, links=link, depth=depth)
    else:
        forest = Forest(
            Arcs(  # the network, and beside it the same with all arcs the other way
                2 * nodes,
                np.concatenate([arcs.tail, nodes + arcs.head]),
                np.concatenate([arcs.head, nodes + arcs.tail]),
            ),
            np.concatenate([roots, nodes + roots]).tolist(),
            random,
            links=[*range(links)] * 2,
            depth=depth,
        )
    forest.grow(most)
    if not forest.relieve(most):
        return None
    down = [[arc % links for arc in tree] for tree in forest.trees]
    up = down[count:] or [back[tree].tolist() for tree in down]
    return SharedTrees(most, tuple(roots.tolist()), up, down[:count])


def sums_along(topology: Topology, trees: SharedTrees, copies: int) -> tuple[Transfers, ...]:
    """The steps in which so many times as many chunks as there are trees go up and down them.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> mesh = parse_topology("mesh:3x3")
    >>> trees = shared_trees(mesh, Fraction(2, 3))
    >>> [len(sums_along(mesh, trees, copies)) for copies in (1, 11)]
    [8, 27]
    """
    arcs, hops = Lengths(topology), _Hops()
    for root, up, down in zip(trees.roots, trees.up, trees.down, strict=True):
        hops.add(arcs, root, up, down)
    size, count = len(hops.arc), len(trees.up)
    steps = timetable(
        hops.arc * copies,
        [[k + size * copy for k in each] for copy in range(copies) for each in hops.after],
        hops.waits * copies,
        [
            (2 * copy * trees.most - SOONER * left, copy)
            for copy in range(copies)
            for left in hops.left
        ],
        arcs.steps_apart,
    )
    blocks = Collective("allreduce").blocks(topology, copies * count)
    group, arc = blocks.chunk(np.arange(blocks.count)), np.array(hops.arc)
    transfers = []
    for step in steps:
        copy, hop = np.divmod(np.array(step), size)
        used, chunk = arc[hop], count * copy + hop // (size // count)
        transfers.append(Transfers.hop(arcs.tail[used], arcs.port[used], Grouped(group, chunk)))
    return tuple(transfers)


class _Hops:
    """The hops of all chunks, as `timetable` takes them: those up and down a tree together.

    Attributes
    ----------
    arc, waits : list of int
        Of each its arc, and for how many others it waits.
    after : list of (list of int)
        Those that wait for it.
    left : list of int
        Hops from its begin until the sum is everywhere.
    """

    def __init__(self) -> None:
        self.arc: list[int] = []
        self.waits: list[int] = []
        self.after: list[list[int]] = []
        self.left: list[int] = []

    def add(self, arcs: Lengths, root: int, up: list[int], down: list[int]) -> None:
        """Add those of a chunk, given its trees."""
        tail, head, first = arcs.tail.tolist(), arcs.head.tolist(), len(self.arc)
        out: dict[int, list[int]] = {}
        for number, arc in enumerate(down, first):
            out.setdefault(tail[arc], []).append(number)
        parent = {tail[arc]: head[arc] for arc in up}
        number_of = {tail[arc]: number for number, arc in enumerate(up, first + len(down))}
        coming = Counter(parent.values())
        left = heights(down, tail, head)
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
