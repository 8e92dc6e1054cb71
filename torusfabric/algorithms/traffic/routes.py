"""The routes of blocks of irregular traffic: paths and trees that load all arcs evenly.

The fractional routes of `torusfabric.analysis.fractional` are rounded: each demand gives every
route as many whole blocks as its share holds, and the blocks that are left go, one after another,
to the routes whose arcs are least busy. Blocks on arcs that still carry too many get other routes.
If there are too many demands for fractional routes, blocks take shortest routes, a part of the
blocks at a time, while busy arcs count as longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...topology import IntArray
from ..network.spread import RouteRelief, spread_messages

__all__ = ["round_routes", "spread_routes"]

#: The exponent by which the price of an arc grows with its load.
STEEPNESS = 8

#: Targets for the load of arcs, one after another, relative to the least load; and the most nodes
#: that are visited for them, if there are at most `FEW_BLOCKS` blocks and if there are more. Why:
#: another route is harder to find if each block is a larger part of the load.
LOAD_TARGETS, FEW_BLOCKS, MOST_LOOKS = (1.05, 1.02, 1.0), 64, (1_000_000, 200_000)


def round_routes(
    links: IntArray, counts: IntArray, routes: Sequence[Mapping[tuple[int, ...], float]], seed: int
) -> list[list[tuple[int, ...]]]:
    """Return a route for each block of each demand.

    Parameters
    ----------
    links : ndarray of int, shape (arcs,)
        The number of the link of each arc. Blocks on arcs of the same number count together.
    counts : ndarray of int
        Number of blocks of each demand.
    routes : sequence of (mapping of tuple to float)
        The routes of each demand with their shares, which add up to 1.

    Examples
    --------
    Three blocks take two routes, over arc 0 and over the arcs 1 and 2:

    >>> round_routes(np.arange(3), np.array([3]), [{(0,): 0.6, (1, 2): 0.4}], 0)
    [[(0,), (0,), (1, 2)]]
    """
    load, found, left = np.zeros(links.max() + 1), [], []
    arrays = [[links[np.array(route)] for route in each] for each in routes]
    for demand, (count, each) in enumerate(zip(counts.tolist(), routes, strict=True)):
        whole = [int(share * count + 1e-6) for share in each.values()]
        found.append(whole)
        left += [demand] * (count - sum(whole))
        for arcs, blocks in zip(arrays[demand], whole, strict=True):
            np.add.at(load, arcs, blocks)
    for demand in np.random.default_rng(seed).permutation(np.array(left, int)).tolist():
        most = max(1.0, load.max())
        price = [(((load[arcs] + 1) / most) ** STEEPNESS).sum() for arcs in arrays[demand]]
        # Among equal prices, the route that lost the most comes first.
        behind = [
            whole - share * counts[demand]
            for whole, share in zip(found[demand], routes[demand].values(), strict=True)
        ]
        chosen = min(range(len(price)), key=lambda k: (round(price[k], 6), behind[k]))
        found[demand][chosen] += 1
        np.add.at(load, arrays[demand][chosen], 1)
    return [
        [route for route, blocks in zip(each, whole, strict=True) for _ in range(blocks)]
        for each, whole in zip(routes, found, strict=True)
    ]


def spread_routes(
    arcs: WeightedArcs,
    source: IntArray,
    receivers: Sequence[tuple[int, ...]],
    most: float,
    seed: int,
    routes: list[list[int]] | None = None,
    links: IntArray | None = None,
) -> RouteRelief:
    """Find a route for each block, as the list of its arcs, so that no arc is much too busy.

    Parameters
    ----------
    source : ndarray of int
        The origin of each block.
    receivers : sequence of (tuple of int)
        The receivers of each block.
    most : float
        Load of the busiest arc that is expected, in blocks.
    routes : list of (list of int), optional
        Routes to begin with.
    links : ndarray of int, shape (arcs,), optional
        The number of the link of each arc, if the blocks on both arcs of a link count together.

    Returns
    -------
    RouteRelief
        The routes, as `best`, and the load of the busiest arc, as `least`.

    Examples
    --------
    On a row of three nodes, node 0 sends a block to node 1 and another to nodes 1 and 2:

    >>> from torusfabric.topology import parse_topology
    >>> arcs = WeightedArcs(parse_topology("mesh:3"))
    >>> spread_routes(arcs, np.array([0, 0]), [(1,), (1, 2)], 2.0, 0).best
    [[0], [0, 1]]
    """
    random = np.random.default_rng(seed)
    goals = [np.array(each) for each in receivers]

    def choose_routes(by: IntArray, part: IntArray) -> list[IntArray]:
        return [arcs.path_tree(by[source[k]], goals[k]) for k in part.tolist()]

    def choose_paths(by: IntArray, part: IntArray) -> list[IntArray]:
        return arcs.find_paths(by, source[part], targets[part])

    if routes is None:
        single = all(len(each) == 1 for each in receivers)
        targets = np.array([each[0] for each in receivers])
        choose = choose_paths if single else choose_routes
        routes = spread_messages(arcs, len(source), most, random, choose)
    looks = MOST_LOOKS[len(routes) > FEW_BLOCKS]
    relief = RouteRelief(arcs, routes, receivers, random, looks, links)
    for target in LOAD_TARGETS:
        if relief.least > (aim := max(ceil(target * most), 1)):
            relief.relieve_arcs(aim)
    return relief
