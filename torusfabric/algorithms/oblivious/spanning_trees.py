"""Broadcast, reduction and all-reduce over spanning trees of a torus, by fixed forwarding.

Trees of a broadcast share no arc. Rules of the model:

* store and forward: a step is one hop, and a block that arrives in a step leaves in the next;
* an arc carries one block a step, on all ports;
* a message has one chunk for each tree, and chunk c goes down tree c.

Every in-port of a node belongs to one tree, so a node forwards in the same way all the time. In
hardware messages stream down the trees flit by flit: with L flits and T trees of depth D a
broadcast takes L / T + D cycles and a constant. By Edmonds' theorem there are at most as many trees
as the root has ports. A single tree of shortest paths is the quickest for messages of a few flits.

Trees of an all-reduce share no link. The rules are the same, except that sums are added where they
meet. Chunk c goes up tree c to its root, and the complete sum goes down the same tree. Because
trees share no link, an arc carries one chunk, up or down. In hardware every out-port therefore has
one source for good, and sums stream up while complete ones stream down. With L flits on a torus of
d axes this takes L / d cycles, the fewest that links allow, and three cycles for each hop of the
depth. There are d trees, because each has N - 1 of the d N links.

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
from .shallow_trees import Trees, make_shallower, tree_pattern, up_down_allreduce

__all__ = ["disjoint_trees", "link_disjoint_trees", "unsupported_reason", "bounded_disjoint_trees",
           "plan", "shallow_disjoint_trees", "shortest_path_tree"]  # fmt: skip

#: If trees are higher than the diameter by more hops than this, the search for any network is
#: tried.
FEW = 2


def link_disjoint_trees(torus: Torus) -> Trees:
    """Return spanning trees, one for each axis, that share no link.

    Parameters
    ----------
    torus : Torus
        The torus whose nodes the trees span.

    Notes
    -----
    The tree of axis a has all nodes on a line along a, from coordinate 0 to the end. Lines along
    the next axis start from all nodes of this line, lines along the axis after that from all nodes
    so far, and so on; no line wraps. The missing nodes have coordinate 0 on a. They come last, over
    wrapping links of a. The root is in the middle of the first line. So the height is half of side
    a, rounded up, plus the sum of s - 1 over all other sides s.

    Examples
    --------
    The deepest node of both trees is 11 hops from its root:

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
def _shallow_link_trees(torus: Torus) -> Trees:
    """Return spanning trees of `torus` that share no link.

    Most are not much deeper than the diameter.
    """
    found = make_shallower(torus, link_disjoint_trees(torus), links=True, least=torus.diameter)
    if found.height <= torus.diameter + FEW or torus.nodes > MOST_NODES:
        return found
    return min(found, link_disjoint_trees_of(torus, len(torus.sides)), key=lambda one: one.height)


def plan_allreduce(torus: Torus, collective: Collective) -> Rounds:
    """Plan an all-reduce over a tree for each axis: chunk c goes up tree c, and down it.

    Parameters
    ----------
    torus : Torus
        The torus whose nodes the trees span.
    collective : Collective
        The all-reduce.

    Returns
    -------
    Rounds
        Twice as many steps as the height of the highest tree.
    """
    trees = _shallow_link_trees(torus)
    return up_down_allreduce(torus, collective, trees, trees)


#: A side of this length has a node beside the root that is on both sides of it.
TWO_SIDES = 2


def disjoint_trees(torus: Torus) -> Trees:
    """Return spanning trees out of node 0, one for each port, that share no arc.

    Parameters
    ----------
    torus : Torus
        The torus whose nodes the trees span.

    Notes
    -----
    The tree of direction +a goes from the root along axis a to the end of its ring, from each node
    there along the next axis to the end, and so on cyclically, and never wraps. The missing nodes
    have the root's coordinate on a. They come last, over the wrapping arcs of a. The trees of the -
    directions are the mirror images. So the trees of + together use each arc of + once, except
    those into the root, and no tree is deeper than 1 plus the sum of s - 1 over all sides s.

    Depths of the tree of +0 on 4 x 4, where axis 0 goes down and the root is at the top left::

        0 5 6 7
        1 2 3 4
        2 3 4 5
        3 4 5 6

    Examples
    --------
    Four trees of 64 nodes; the deepest has 15 levels below the root:

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


def bounded_disjoint_trees(torus: Torus) -> Trees:
    """Return arc-disjoint trees no deeper than the diameter plus half the longest side plus 1.

    Parameters
    ----------
    torus : Torus
        The torus whose nodes the trees span.

    Notes
    -----
    No side may be 2. The tree of direction +a first reaches the nodes ahead of the root along a, up
    to half way around, by shortest paths: along a, and then along the axes in the order a - 1, a -
    2, .. cyclically. From there it continues around a to the nodes behind the root, and goes one
    hop back to the nodes whose coordinate on a is that of the root. At a node, the trees of the
    node's own side on each axis thus arrive by the in-ports of that side, and the other trees by
    the other in-ports. On a side of 2 both would be the same.

    Examples
    --------
    The largest depths, where the diameters are 8 and 72:

    >>> bounded_disjoint_trees(Torus(8, 8)).height, bounded_disjoint_trees(Torus(49, 49, 49)).height
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
def shallow_disjoint_trees(torus: Torus) -> Trees:
    """Return arc-disjoint trees, one for each port, mostly not much deeper than the diameter.

    On tori of thousands of nodes the trees are those of `disjoint_trees` or
    `bounded_disjoint_trees`. On a ring there are no others than those of `disjoint_trees`.

    Parameters
    ----------
    torus : Torus
        The torus whose nodes the trees span.

    Examples
    --------
    The largest depth, where the diameter is 8:

    >>> shallow_disjoint_trees(Torus(8, 8)).height
    9
    """
    trees = disjoint_trees(torus)
    if torus.dimensions == 1:
        return trees
    found = make_shallower(torus, trees, links=False, least=torus.diameter + 1)
    if (
        min(torus.sides) > TWO_SIDES
        and (near := bounded_disjoint_trees(torus)).height < found.height
    ):
        found = make_shallower(torus, near, links=False, least=torus.diameter + 1)
    return found


def shortest_path_tree(topology: CayleyGraph) -> Trees:
    """Return a spanning tree of shortest paths out of node 0.

    Examples
    --------
    The depth is the diameter:

    >>> shortest_path_tree(Torus(8, 8)).height
    8
    """
    nodes, distance = np.arange(topology.nodes), topology.distances
    parent = topology.subtract(nodes[:, None], topology.generators[None, :])
    nearer = distance[parent] < distance[:, None]
    return Trees(topology.opposite[nearer.argmax(axis=1)][None], distance[None].astype(int))


def unsupported_reason(topology: Torus, collective: Collective, options: Options) -> str | None:
    """Return the reason why trees of a torus cannot serve a selection, or None if they can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
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
    """Plan a broadcast, or an all-reduce, over spanning trees of a torus.

    A broadcast has a tree for each port of the root, or a single one. Chunk c goes down tree c. The
    number of steps is the height of the highest tree. For all-reduces see `plan_allreduce`.

    Parameters
    ----------
    collective : Collective
        The broadcast or all-reduce.
    options : Options
        ``trees`` is 1 for a broadcast over a single tree.

    Examples
    --------
    A broadcast takes 7 steps of a quarter of a message over four trees, 5 whole messages over one:

    >>> from torusfabric.algorithms import Options, find_algorithm
    >>> from torusfabric.collective import parse_collective
    >>> broadcast = parse_collective("broadcast")
    >>> find_algorithm("spanning-tree")(Torus(5, 7), broadcast).round_count
    7
    >>> find_algorithm("spanning-tree")(Torus(5, 7), broadcast, Options(trees=1)).round_count
    5
    """
    if collective.kind == "allreduce":
        return plan_allreduce(topology, collective)
    entry, depth = (
        shortest_path_tree(topology) if options.trees == 1 else shallow_disjoint_trees(topology)
    )
    offset = topology.subtract(np.arange(topology.nodes), collective.root or 0)
    trees = Trees(entry[:, offset], depth[:, offset])
    return tree_pattern(topology, collective, trees)
