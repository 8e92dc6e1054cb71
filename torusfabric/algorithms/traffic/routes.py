"""The routes of blocks of irregular traffic: paths and trees that load all arcs evenly.

The fractional routes of `torusfabric.analysis.fractional` are rounded: each demand gives every
route as many whole blocks as its share holds, and the blocks that are left go, one after another,
to the routes whose arcs are least busy. Then blocks move, one at a time, to other known routes of
their demand, while this makes the busiest arcs less busy. Blocks on arcs that still carry too many
get new routes.
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

#: The exponents by which the price of a link grows with its load: for the blocks that are placed,
#: and for those that are moved; the most moves, and the routes that are tried for each.
STEEPNESS, STEEPNESS_MOVES, MOST_MOVES, TRIED_ROUTES = 8, 64, 1000, 16

#: Targets for the load of arcs, one after another, relative to the least load; and the most nodes
#: that are visited for them, if there are at most `FEW_BLOCKS` blocks and if there are more. Why:
#: another route is harder to find if each block is a larger part of the load.
LOAD_TARGETS, FEW_BLOCKS, MOST_LOOKS = (1.05, 1.02, 1.0), 64, (1_000_000, 200_000)


def round_routes(
    links: IntArray,
    counts: IntArray,
    routes: Sequence[Mapping[tuple[int, ...], float]],
    seed: int,
    factor: np.ndarray | None = None,
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
    factor : ndarray of float, optional
        The factor with which a block on each route counts in the loads of its links.

    Examples
    --------
    Three blocks take two routes, over arc 0 and over the arcs 1 and 2:

    >>> round_routes(np.arange(3), np.array([3]), [{(0,): 0.6, (1, 2): 0.4}], 0)
    [[(0,), (0,), (1, 2)]]
    """
    rounding = _Rounding(links, counts, routes, factor)
    rounding.place_others(counts, np.random.default_rng(seed))
    rounding.move_blocks()
    whole = iter(rounding.whole.tolist())
    return [[route for route in each for _ in range(next(whole))] for each in routes]


class _Rounding:
    """The number of blocks on each route, as whole numbers, and the loads of links.

    Parameters
    ----------
    links, counts, routes, factor
        The parameters of `round_routes`.
    """

    def __init__(
        self,
        links: IntArray,
        counts: IntArray,
        routes: Sequence[Mapping[tuple[int, ...], float]],
        factor: np.ndarray | None,
    ) -> None:
        sizes = np.array([len(route) for each in routes for route in each])
        self._link = links[np.concatenate([route for each in routes for route in each])]
        #: The place in `_link` at which each route begins, and the end.
        self._first = np.append(0, np.cumsum(sizes))
        self._begin = np.cumsum([0, *map(len, routes)])
        self._weight = np.repeat(np.ones(len(sizes)) if factor is None else factor, sizes)
        share = np.array([part for each in routes for part in each.values()])
        self._demand = np.repeat(np.arange(len(routes)), [len(each) for each in routes])
        self._exact = share * counts[self._demand]
        #: The number of blocks on each route.
        self.whole = (self._exact + 1e-6).astype(int)
        self._load = np.zeros(links.max() + 1)
        np.add.at(self._load, self._link, self._weight * np.repeat(self.whole, sizes))

    def place_others(self, counts: IntArray, random: np.random.Generator) -> None:
        """Place the blocks that are left, one after another, where links are least busy."""
        placed = np.add.reduceat(self.whole, self._begin[:-1])
        for demand in random.permutation(np.repeat(np.arange(len(placed)), counts - placed)):
            part, price = self._find_prices(demand, STEEPNESS)
            # Among equal prices, the route that lost the most comes first.
            behind = self.whole[part] - self._exact[part]
            self._add_blocks(part.start + int(np.lexsort((behind, np.round(price, 6)))[0]), 1)

    def move_blocks(self) -> None:
        """Move blocks to other routes of their demands while the busiest links get less busy."""
        for _ in range(MOST_MOVES):
            price = (self._load / self._load.max()) ** STEEPNESS_MOVES
            cost = np.add.reduceat(price[self._link] * self._weight, self._first[:-1])
            busy = np.argsort(-cost * (self.whole > 0), kind="stable")[:TRIED_ROUTES]
            if not any(self._move_block(route) for route in busy.tolist() if self.whole[route]):
                break

    def _move_block(self, route: int) -> bool:
        """Move a block from a route to the best one; False if it is the same."""
        self._add_blocks(route, -1)
        part, price = self._find_prices(self._demand[route], STEEPNESS_MOVES)
        best = part.start + int(price.argmin())
        moved = bool(price[best - part.start] < price[route - part.start] * (1 - 1e-9))
        self._add_blocks(best if moved else route, 1)
        return moved

    def _find_prices(self, demand: int, steepness: int) -> tuple[slice, np.ndarray]:
        """Return the routes of a demand, and the price of another block on each of them."""
        part = slice(self._begin[demand], self._begin[demand + 1])
        first = self._first[part]
        used = slice(first[0], self._first[part.stop])
        load, most = self._load[self._link[used]], max(1.0, self._load.max())
        more = ((load + self._weight[used]) / most) ** steepness - (load / most) ** steepness
        return part, np.add.reduceat(more, first - first[0])

    def _add_blocks(self, route: int, count: int) -> None:
        """Add blocks to a route."""
        self.whole[route] += count
        used = slice(self._first[route], self._first[route + 1])
        self._load[self._link[used]] += count * self._weight[used]


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
