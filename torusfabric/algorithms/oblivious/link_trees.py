"""All-reduce over spanning trees of a torus that share no link, by fixed forwarding.

Rules of the model are those of `spanning_trees`, but that sums are added up where they meet. Each
chunk goes up a tree of its own to the root of that, and the complete sum goes down the same tree
the other way. Trees share no link, so that an arc carries one chunk, up or down: in hardware every
out-port is fed by one source for good, and sums stream up while complete ones stream down. With L
flits on a torus of d axes it takes L / d cycles, as little as links allow, and three for each hop
of the depth. There are d trees, for N - 1 of the d N links are in each.

Source: K. Lakhotia and others, "In-network Allreduce with Multiple Spanning Trees on PolarFly",
SPAA 2023, for all-reduces over such trees. Those of a torus with any sides are our own.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ...collective import Collective
from ...schedule import Rounds
from ...topology import Torus
from ..network.link_forest import MOST_NODES, link_disjoint_trees_of
from .shallow_trees import Trees, shallower, up_and_down

#: More hops than the diameter are worth the search of trees as on any network.
FEW = 2

__all__ = ["link_disjoint_trees", "plan_allreduce"]


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
