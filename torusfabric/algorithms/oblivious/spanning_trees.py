"""Broadcast, reduction and all-reduce over spanning trees of a torus, by fixed forwarding.

Trees of a broadcast share no arc. Rules of the model:

* store and forward: a step is one hop, and what arrives in a step is sent on in the next;
* a block an arc a step, on all ports;
* a message is as many chunks as there are trees, each of which goes down a tree of its own.

Every in-port of a node belongs to one tree, so that a node forwards the same way whatever comes. In
hardware messages stream down the trees flit by flit: with L flits and T trees of depth D a
broadcast takes L / T + D cycles and some. The most trees are as many as the root has ports, by
Edmonds' theorem; a single tree of shortest paths is the quickest for messages of a few flits.

Trees of an all-reduce share no link. The rules are the same, but that sums are added up where they
meet. Each chunk goes up a tree of its own to the root of that, and the complete sum goes down the
same tree the other way. Trees share no link, so that an arc carries one chunk, up or down: in
hardware every out-port is fed by one source for good, and sums stream up while complete ones stream
down. With L flits on a torus of d axes it takes L / d cycles, as little as links allow, and three
for each hop of the depth. There are d trees, for N - 1 of the d N links are in each.

Sources: J. Edmonds, "Edge-disjoint branchings", in: Combinatorial Algorithms, 1973, for the number
of trees; K. Lakhotia and others, "In-network Allreduce with Multiple Spanning Trees on PolarFly",
SPAA 2023, for all-reduces. The trees of a torus with any sides are our own.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...collective import Collective
from ...schedule import Rounds, Schedule
from ...topology import CayleyGraph, Torus
from ..algorithm import Options
from ..network.trees import MOST_NODES, link_disjoint_trees_of
from .shallow_trees import Trees, shallower, tree_pattern, up_and_down

__all__ = ["disjoint_trees", "link_disjoint_trees", "misfit", "nearer_trees", "plan",
           "shallow_trees", "shortest_tree"]  # fmt: skip

#: More hops than the diameter are worth the search of trees as on any network.
FEW = 2


def link_disjoint_trees(torus: Torus) -> Trees:
    """Spanning trees, one for each axis, that share no link.

    Notes
    -----
    The tree of axis a has all nodes on a line along a, from coordinate 0 to the end; from each of
    these a line along the next axis, from all of these along the one after that, and so on, none of
    which wraps. Missing are then nodes of coordinate 0 on a, which come last, over wrapping links
    of a. The root is amid the first line. So its height is half the side of a, rounded up, and the
    sum over all other sides s of s - 1.

    Examples
    --------
    >>> link_disjoint_trees(Torus(8, 8)).height
    11
    """
    axes, place = torus.dimensions, torus.coordinates(np.arange(torus.nodes))
    entry, depth = np.zeros((2, axes, torus.nodes), int)
    for axis in range(axes):
        last = np.full(torus.nodes, axis)
        for later in range(axis + 1, axis + axes):
            last = np.where(place[later % axes] > 0, later % axes, last)
        beside, first = place.sum(axis=0) - place[axis], torus.sides[axis] // 2
        wraps = (place[axis] == 0) & (beside > 0)
        before = (place[axis] < first) & (beside == 0)
        port = 2 * np.where(wraps, axis, last) + before
        entry[axis] = torus.opposite[port]
        along = np.where(wraps, torus.sides[axis] - first, abs(place[axis] - first))
        depth[axis] = along + beside
    return Trees(entry, depth)


@lru_cache(maxsize=16)
def _shallow_trees(torus: Torus) -> Trees:
    """Such trees, mostly not much deeper than the diameter."""
    found = shallower(torus, link_disjoint_trees(torus), links=True, least=torus.diameter)
    if found.height <= torus.diameter + FEW or torus.nodes > MOST_NODES:
        return found
    return min(found, link_disjoint_trees_of(torus, len(torus.sides)), key=lambda one: one.height)


def plan_allreduce(torus: Torus, collective: Collective) -> Rounds:
    """Plan an all-reduce over a tree for each axis: chunk c goes up tree c, and down it.

    Returns
    -------
    Rounds
        Twice as many steps as the deepest tree is deep.
    """
    trees = _shallow_trees(torus)
    return up_and_down(torus, collective, trees, trees)


#: A side of so many nodes has one beside the root that is on both sides of it.
TWO_SIDES = 2


def disjoint_trees(torus: Torus) -> Trees:
    """Spanning trees out of node 0, one for each port, that share no arc.

    Notes
    -----
    The tree of direction +a goes from the root along axis a to the end of its ring, from each node
    there along the next axis to the end, and so on cyclically, and never wraps. Nodes whose
    coordinate on a is that of the root come last, over the wrapping arcs of a. The trees of - are
    the mirror images. So the trees of + use all arcs of + but those into the root, each once, and
    no tree is deeper than 1 plus the sum over all sides s of s - 1.

    Examples
    --------
    >>> trees = disjoint_trees(Torus(8, 8))
    >>> trees.entry.shape, trees.height
    ((4, 64), 15)
    """
    axes, place = torus.dimensions, torus.coordinates(np.arange(torus.nodes))
    sides = np.array(torus.sides)[:, None]
    port, depth = np.zeros((2, torus.ports, torus.nodes), int)
    for sign in range(2):
        ahead = -place % sides if sign else place
        for axis in range(axes):
            last = np.full(torus.nodes, axis)
            for later in range(axis + 1, axis + axes):
                last = np.where(ahead[later % axes] > 0, later % axes, last)
            wraps = ahead[axis] == 0
            port[2 * axis + sign] = 2 * np.where(wraps, axis, last) + sign
            depth[2 * axis + sign] = ahead.sum(axis=0) + wraps * torus.sides[axis]
    depth[:, 0] = 0
    return Trees(torus.opposite[port], depth)


def nearer_trees(torus: Torus) -> Trees:
    """As `disjoint_trees`, but no deeper than the diameter and half the longest side and 1.

    Notes
    -----
    The tree of direction +a reaches nodes ahead of the root along a, up to half way around, by
    shortest paths: along a first, and then along the axes in the order a - 1, a - 2, .. cyclically.
    From there it goes on around a to the nodes behind the root, and to those beside it, whose
    coordinate on a is that of the root, a hop back. So at a node the trees of its side on each axis
    come by the in-ports of these sides, those of the others by the others. No side may be 2: there,
    both are the same.

    Examples
    --------
    >>> nearer_trees(Torus(8, 8)).height, nearer_trees(Torus(49, 49, 49)).height
    (11, 96)
    """
    axes, sides = torus.dimensions, np.array(torus.sides)[:, None]
    place = torus.coordinates(np.arange(torus.nodes))
    side = np.where(2 * place > sides, -1, np.minimum(place, 1))
    away = np.where(side < 0, sides - place, place)
    port, depth = np.zeros((2, torus.ports, torus.nodes), int)
    for axis in range(axes):
        last = np.full(torus.nodes, axis)
        for later in range(axis + axes - 1, axis, -1):
            last = np.where(side[later % axes] != 0, later % axes, last)
        nearer = 2 * last + (np.take_along_axis(side, last[None], axis=0)[0] < 0)
        for sign, ahead in enumerate((1, -1)):
            tree, cases = 2 * axis + sign, [side[axis] == ahead, side[axis] == 0]
            port[tree] = np.select(cases, [nearer, 2 * axis + 1 - sign], tree)
            more = np.select(cases, [0, 2], sides[axis] - 2 * away[axis])
            depth[tree] = away.sum(axis=0) + more
    depth[:, 0] = 0
    return Trees(torus.opposite[port], depth)


@lru_cache(maxsize=16)
def shallow_trees(torus: Torus) -> Trees:
    """As `disjoint_trees` or `nearer_trees`, but mostly not much deeper than the diameter.

    Tori of thousands of nodes have trees as deep as those, and so have rings, of which there are no
    others.

    Examples
    --------
    >>> shallow_trees(Torus(8, 8)).height
    9
    """
    trees = disjoint_trees(torus)
    if torus.dimensions == 1:
        return trees
    found = shallower(torus, trees, links=False, least=torus.diameter + 1)
    if min(torus.sides) > TWO_SIDES and (near := nearer_trees(torus)).height < found.height:
        found = shallower(torus, near, links=False, least=torus.diameter + 1)
    return found


def shortest_tree(topology: CayleyGraph) -> Trees:
    """A spanning tree of shortest paths out of node 0.

    Examples
    --------
    >>> shortest_tree(Torus(8, 8)).height
    8
    """
    nodes, distance = np.arange(topology.nodes), topology.distances
    parent = topology.subtract(nodes[:, None], topology.generators[None, :])
    nearer = distance[parent] < distance[:, None]
    return Trees(topology.opposite[nearer.argmax(axis=1)][None], distance[None].astype(int))


def misfit(topology: Torus, collective: Collective, options: Options) -> str | None:
    """What the trees of a torus need and do not get, or None."""
    if options.ports not in (None, topology.ports):
        return f"--ports {topology.ports}"
    able = (topology.dimensions,) if collective.kind == "allreduce" else (1, topology.ports)
    if options.trees not in (None, *able):
        return f"--trees {' or '.join(map(str, able))}"
    trees = options.trees or able[-1]
    if options.chunks not in (None, trees):
        return f"--chunks {trees}, one for each tree"
    for name in ("packets", "times", "duplex", "latency"):
        if name in options.given():
            return f"--{name} left out on a torus, where messages stream flit by flit"
    return None


def plan(topology: Torus, collective: Collective, options: Options) -> Schedule:
    """Plan a broadcast over a tree a port, or over one; or an all-reduce, see `plan_allreduce`.

    Chunk c goes down tree c. It takes as many steps as the deepest tree is deep.

    Examples
    --------
    >>> from torusfabric.algorithms import Options, find
    >>> from torusfabric.collective import parse_collective
    >>> broadcast = parse_collective("broadcast")
    >>> find("spanning-tree")(Torus(5, 7), broadcast).round_count
    7
    >>> find("spanning-tree")(Torus(5, 7), broadcast, Options(trees=1)).round_count
    5
    """
    if collective.kind == "allreduce":
        return plan_allreduce(topology, collective)
    entry, depth = shortest_tree(topology) if options.trees == 1 else shallow_trees(topology)
    offset = topology.subtract(np.arange(topology.nodes), collective.root or 0)
    trees = Trees(entry[:, offset], depth[:, offset])
    return tree_pattern(topology, collective, trees)
