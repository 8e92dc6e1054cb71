"""Fractional routes of messages, and the bound that they prove: one linear program for both.

A *demand* is an amount of data that goes from a source to one or several receivers. Its data may be
split over several *routes*: paths, or trees if there are several receivers. The linear program
shares the data of each demand among its routes so that the busiest arc carries as little as
possible. Planners round these shares to whole blocks.

Routes are found by column generation. The linear program begins with a few routes of each demand.
Its dual values are lengths of the arcs; the shortest routes for these lengths are added, and the
linear program is solved again. For any lengths, the amounts times the lengths of the shortest
routes, divided by the sum of all lengths, are a bound on the load of the busiest arc. The search
ends when the largest bound comes near the load of the linear program.

A shortest tree to few receivers is found by dynamic programming (S. E. Dreyfus, R. A. Wagner, "The
Steiner problem in graphs", 1971). For more receivers, its place is taken by a short tree (H.
Takahashi, A. Matsuyama, "An
approximate solution for the Steiner problem in graphs", 1980), and in the bound by a number that no
tree can be shorter than (R. T. Wong, "A dual ascent approach for Steiner tree problems on a
directed graph", 1984).

Source: L. R. Ford, D. R. Fulkerson, "A suggested computation for maximal multi-commodity network
flows", Management Science 5, 1958, for the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..topology import IntArray
from .congestion import WeightedArcs

__all__ = ["Demand", "FractionalRoutes", "find_fractional_routes",
           "least_tree_length", "length_bound", "share_blocks"]  # fmt: skip

#: The rounds of multiplicative weights before the first linear program, if all routes are paths and
#: if some are trees, but more for the trees of few demands; and the most linear programs.
PATH_ROUNDS, TREE_ROUNDS, FIRST_TREES, MOST_PROGRAMS = 64, 8, 300, 40

#: In the first round, the weight of the busiest link grows by the factor exp(`PACE`); after
#: `SLOWING` rounds, the logarithm of this factor is half as large. Why: if weights grow by equal
#: factors for ever, the lengths alternate about the best ones.
PACE, SLOWING = 1.5, 8

#: The routes with which no more are added before the first linear program, the most pivots of the
#: simplex method, and the load, relative to the bound, with which the search ends.
FIRST_COLUMNS, MOST_PIVOTS, NEAR = 2_500, 80_000, 1.003

#: The weight of the mean load in the objective, beside the load of the busiest arc. Why: of equally
#: good routes, those with the fewest hops are better.
MEAN_PART = 0.003

#: The most receivers to which shortest trees are found.
MOST_EXACT = 6

#: The parts of the best lengths so far in the next lengths: the first with which there are new
#: routes. The part of the last dual values in their mean. Why: each linear program has many dual
#: values, and the first ones found are often those of few arcs.
KEPT_PARTS, FRESH_PART = (0.7, 0.3, 0.0), 0.4

#: The additional length of an arc in a tree for each hop before it, relative to the mean length.
#: Why: of two equally long trees, the shallow one is better.
DEPTH_PART = 0.1


class Demand(NamedTuple):
    """An amount of data that goes from a source to all of some receivers.

    Parameters
    ----------
    source : int
        The node that sends the data.
    receivers : tuple of int
        The nodes that receive the data; the source is none of them.
    amount : int
        Number of flits.
    """

    source: int
    receivers: tuple[int, ...]
    amount: int


class FractionalRoutes(NamedTuple):
    """The shares of the routes of some demands, with the bound that was found on the way.

    Parameters
    ----------
    routes : list of (dict of tuple to float)
        For each demand, the routes that are known with the part of the demand that each carries.
        A route is a tuple of arc numbers; an arc comes after the arcs on the way to its tail.
    load : float
        The amount on the busiest arc, or on the busiest link.
    bound : Fraction
        A lower bound on the load of the busiest arc, for any routes.
    lengths : ndarray of int, shape (arcs,)
        The lengths of arcs from which the bound follows.
    """

    routes: list[dict[tuple[int, ...], float]]
    load: float
    bound: Fraction
    lengths: IntArray


def find_fractional_routes(
    arcs: WeightedArcs,
    demands: Sequence[Demand],
    known: Fraction = Fraction(0),
    links: IntArray | None = None,
) -> FractionalRoutes:
    """Share the data of demands among routes so that the busiest arc carries nearly the least.

    Parameters
    ----------
    arcs : WeightedArcs
        The arcs of the network.
    demands : sequence of Demand
        The demands, at least one.
    known : Fraction
        A lower bound that is known. The search ends early if the load comes near it.
    links : ndarray of int, optional
        The number of the link of each arc, if the data on both arcs of a link count together.

    Examples
    --------
    Node 0 of a ring of three sends ten flits to node 1. A half goes directly, a half by node 2:

    >>> import torusfabric as tf
    >>> arcs = WeightedArcs(tf.Torus(3))
    >>> found = find_fractional_routes(arcs, [Demand(0, (1,), 10)])
    >>> found.load, round(float(found.bound), 2), found.routes
    (5.0, 5.0, [{(0,): 0.5, (1, 5): 0.5}])
    """
    search = _ColumnSearch(arcs, demands, links)
    weight, rounds = np.ones(search.link_count), PATH_ROUNDS
    if not search.all_paths:
        rounds = max(TREE_ROUNDS, FIRST_TREES // len(demands))
    for number in range(rounds):
        load = search.add_routes(weight, keep=len(search.columns) <= FIRST_COLUMNS)
        weight = weight * np.exp(PACE / (1 + number / SLOWING) * load / max(load.max(), 1))
    mean = np.zeros(len(weight))
    for number in range(MOST_PROGRAMS):
        share, most, lengths = search.solve_program()
        columns = [*search.columns]
        mean = lengths if not number else FRESH_PART * lengths + (1 - FRESH_PART) * mean
        enough = most <= NEAR * max(search.estimate, known) or search.pivots > MOST_PIVOTS
        if enough or number == MOST_PROGRAMS - 1:
            break
        search.drop_columns(share)
        before = len(search.columns)
        for part in KEPT_PARTS:
            kept = search.lengths / search.lengths.sum()
            search.add_routes(part * kept + (1 - part) * (mean if part else lengths))
            if len(search.columns) > before:
                break
        else:
            break
    routes: list[dict[tuple[int, ...], float]] = [{} for _ in demands]
    for (demand, route), amount in zip(columns, share.tolist(), strict=True):
        routes[demand][route] = amount / demands[demand].amount
    return FractionalRoutes(routes, most, *search.find_bound(lengths))


class _ColumnSearch:
    """Column generation: the routes that are known, and the best bound so far.

    Attributes
    ----------
    columns : dict of (int, tuple of int) to None
        The demand and the arcs of each route.
    estimate : Fraction
        The largest bound so far if trees are counted as the shortest ones that were found.
    lengths : ndarray of int, shape (links,)
        The lengths of links from which `estimate` follows.
    link_count : int
        The number of links; of arcs, unless the two arcs of a link count together.
    """

    def __init__(
        self, arcs: WeightedArcs, demands: Sequence[Demand], links: IntArray | None
    ) -> None:
        self.arcs, self.demands = arcs, demands
        self.link = np.arange(len(arcs.tail)) if links is None else links
        self.link_count = int(self.link.max()) + 1
        self.columns: dict[tuple[int, tuple[int, ...]], None] = {}
        self.estimate, self.pivots = Fraction(0), 0
        self.lengths: IntArray = np.ones(self.link_count, np.int64)
        self.amount = np.array([demand.amount for demand in demands])
        one = np.array([len(demand.receivers) == 1 for demand in demands])
        self._single, self._several = np.flatnonzero(one), np.flatnonzero(~one).tolist()
        self._ends = (
            np.array([demands[k].source for k in self._single.tolist()], int),
            np.array([demands[k].receivers[0] for k in self._single.tolist()], int),
        )

    @property
    def all_paths(self) -> bool:
        """True if each demand has one receiver."""
        return not self._several

    def add_routes(self, weight: np.ndarray, *, keep: bool = True) -> IntArray:
        """Add the shortest route of each demand, for links of lengths proportional to `weight`.

        The estimate is raised if these lengths give a larger one, and that is all without `keep`.
        The result is the load of each link if all data take these routes.
        """
        arcs, lengths = self.arcs, self.arcs.integer_lengths(weight)
        distance, by = arcs.shortest_paths(length := lengths[self.link])
        load = np.zeros(self.link_count, np.int64)
        found = zip(self._single.tolist(), arcs.find_paths(by, *self._ends), strict=True)
        routes = [(demand, path.tolist()) for demand, path in found]
        total = int(np.rint(distance[self._ends] @ self.amount[self._single]))
        tilt = DEPTH_PART * float(length.mean())
        for demand in self._several:
            source, receivers, amount = self.demands[demand]
            if len(receivers) <= MOST_EXACT:
                _, route = shortest_tree(arcs, distance, by, source, receivers)
            else:
                route = arcs.short_tree(distance, by, source, np.array(receivers), tilt)
            routes.append((demand, route))
            total += amount * int(length[route].sum())
        for demand, route in routes:
            np.add.at(load, self.link[route], self.amount[demand])
            if keep:
                self.columns[demand, tuple(route)] = None
        bound = Fraction(total, int(lengths.sum()))
        if bound > self.estimate:
            self.estimate, self.lengths = bound, lengths
        return load

    def drop_columns(self, share: np.ndarray) -> None:
        """Drop routes that carry nothing, given the amount on each; the newest ones stay."""
        new = len(self.columns) - (len(self.demands) + self.link_count)
        self.columns = {
            column: None
            for number, (column, amount) in enumerate(zip(self.columns, share, strict=True))
            if amount > 0 or number >= new
        }

    def find_bound(self, weight: np.ndarray) -> tuple[Fraction, IntArray]:
        """Return the largest bound that is known, and the lengths of arcs from which it follows.

        If there are trees, the bound of the best lengths so far is computed anew, and so is that of
        lengths proportional to `weight`.
        """
        if not self._several:
            return self.estimate, self.lengths[self.link]
        found = []
        for lengths in (self.lengths, self.arcs.integer_lengths(weight)):
            length = lengths[self.link]
            part = Fraction(int(length.sum()), int(lengths.sum()))
            found.append((part * length_bound(self.arcs, self.demands, length), length))
        return max(found, key=lambda one: one[0])

    def solve_program(self) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the amount on each route, the load of the busiest link, and the dual lengths."""
        found = _solve_program([*self.columns], self.amount, self.link)
        self.pivots += found.nit
        lengths = np.maximum(-found.ineqlin.marginals, 0) + MEAN_PART / self.link_count
        return np.maximum(found.x[:-1], 0), float(found.x[-1]), lengths / lengths.sum()


def share_blocks(
    routes: Sequence[Mapping[tuple[int, ...], float]],
    counts: IntArray,
    links: IntArray,
    factor: np.ndarray,
) -> list[dict[tuple[int, ...], float]]:
    """Return the shares of known routes with which the busiest link carries the least.

    Parameters
    ----------
    routes : sequence of (mapping of tuple to float)
        The known routes of each demand.
    counts : ndarray of int
        Number of blocks of each demand.
    links : ndarray of int, shape (arcs,)
        The number of the link of each arc. Blocks on arcs of the same number count together.
    factor : ndarray of float
        The factor with which a block on each route counts in the loads of its links.

    Examples
    --------
    Twelve blocks take two routes, and on the longer one each counts twice:

    >>> routes = [{(0,): 0.5, (1, 2): 0.5}]
    >>> found = share_blocks(routes, np.array([12]), np.arange(3), np.array([1.0, 2.0]))
    >>> [round(12 * share, 2) for share in found[0].values()]
    [8.0, 4.0]
    """
    columns = [(demand, route) for demand, each in enumerate(routes) for route in each]
    found = _solve_program(columns, np.maximum(counts, 1), links, factor)
    shares: list[dict[tuple[int, ...], float]] = [{} for _ in routes]
    for (demand, route), amount in zip(columns, found.x[:-1].tolist(), strict=True):
        shares[demand][route] = max(amount, 0) / max(int(counts[demand]), 1)
    return shares


def _solve_program(
    columns: Sequence[tuple[int, tuple[int, ...]]],
    amounts: IntArray,
    link: IntArray,
    factor: np.ndarray | float = 1.0,
) -> Any:
    """Return the solution of the linear program: the amount on each route, then the largest load.

    Parameters
    ----------
    columns : sequence of (int, tuple of int)
        The demand and the arcs of each route.
    amounts : ndarray
        The amount of each demand.
    factor : ndarray of float
        The factor with which the data on each route count in the loads of its links.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    count, links = len(columns), int(link.max()) + 1
    hops = np.array([len(route) for _, route in columns])
    used = link[np.concatenate([route for _, route in columns])]
    rows = np.append(used, np.arange(links))
    numbers = np.append(np.repeat(np.arange(count), hops), np.full(links, count))
    values = np.append(np.repeat(factor * np.ones(count), hops), np.full(links, -1.0))
    loads = coo_array((values, (rows, numbers)), shape=(links, count + 1))
    ends = np.array([demand for demand, _ in columns]), np.arange(count)
    sums = coo_array((np.ones(count), ends), shape=(len(amounts), count + 1))
    return linprog(
        np.append(MEAN_PART / links * hops, 1.0),
        A_ub=loads.tocsr(), b_ub=np.zeros(links), A_eq=sums.tocsr(), b_eq=amounts,
        method="highs-ds",
    )  # fmt: skip


def length_bound(arcs: WeightedArcs, demands: Sequence[Demand], length: IntArray) -> Fraction:
    """Return the bound on the load of the busiest arc that follows from lengths of arcs.

    It is the sum of the amounts times the least lengths of routes, divided by the sum of all
    lengths.
    """
    distance, by = arcs.shortest_paths(length)
    total = 0
    for source, receivers, amount in demands:
        if len(receivers) == 1:
            total += int(amount) * int(distance[source, receivers[0]])
        elif len(receivers) <= MOST_EXACT:
            total += int(amount) * shortest_tree(arcs, distance, by, source, receivers)[0]
        else:
            total += int(amount) * least_tree_length(arcs, length, source, receivers)
    return Fraction(total, int(length.sum()))


def shortest_tree(
    arcs: WeightedArcs, distance: np.ndarray, by: IntArray, source: int, receivers: Sequence[int]
) -> tuple[int, list[int]]:
    """Return the length of the shortest tree from a source to some receivers, and its arcs.

    For each set of receivers and each node, the length of the shortest tree from the node to the
    set is computed, from smaller sets to larger ones: either the tree begins with a path, or it
    splits at the node into two trees for two parts of the set. An arc of the result comes after the
    arcs on the way to its tail.

    Parameters
    ----------
    distance, by : ndarray, shape (nodes, nodes)
        The results of `WeightedArcs.shortest_paths`.

    Examples
    --------
    In a star, a tree from one leaf to two others has three arcs:

    >>> from torusfabric.topology import Graph
    >>> star = WeightedArcs(Graph([(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)]))
    >>> distance, by = star.shortest_paths(np.ones(6, int))
    >>> shortest_tree(star, distance, by, 1, (2, 3))
    (3, [3, 0, 2])
    """
    every, nodes = (1 << len(receivers)) - 1, np.arange(arcs.nodes)
    best: dict[int, np.ndarray] = {}
    turn: dict[int, IntArray] = {}
    split: dict[int, IntArray] = {}
    for chosen in range(1, every + 1):
        if chosen & (chosen - 1) == 0:
            best[chosen] = distance[:, receivers[chosen.bit_length() - 1]]
            continue
        lowest, parts = chosen & -chosen, list[int]()
        part = (chosen - 1) & chosen
        while part:
            if part & lowest:
                parts.append(part)
            part = (part - 1) & chosen
        sums = np.array([best[part] + best[chosen ^ part] for part in parts])
        least = sums.argmin(axis=0)
        split[chosen] = np.array(parts)[least]
        through = distance + sums[least, nodes]
        turn[chosen] = through.argmin(axis=1)
        best[chosen] = through[nodes, turn[chosen]]
    tree, waiting = list[int](), [(source, every)]
    while waiting:
        node, chosen = waiting.pop()
        alone = chosen & (chosen - 1) == 0
        end = receivers[chosen.bit_length() - 1] if alone else int(turn[chosen][node])
        path, here = list[int](), end
        while here != node:
            path.append(arc := int(by[node, here]))
            here = int(arcs.tail[arc])
        tree += reversed(path)
        if not alone:
            part = int(split[chosen][end])
            waiting += [(end, part), (end, chosen ^ part)]
    return int(best[every][source]), tree


def least_tree_length(
    arcs: WeightedArcs, length: IntArray, source: int, receivers: Sequence[int]
) -> int:
    """Return a number that no tree from a source to some receivers is shorter than.

    Nodes are joined to each receiver, as far as they lead to it by arcs of which no length is left.
    The arcs into such a set that does not contain the source lose length, until one has none left.
    Every tree has an arc into the set, so this length counts. It is repeated until the source leads
    to all receivers.

    Parameters
    ----------
    length : ndarray of int, shape (arcs,)
        Length of each arc.

    Examples
    --------
    In a star, a tree from one leaf to two others has three arcs:

    >>> from torusfabric.topology import Graph
    >>> star = WeightedArcs(Graph([(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)]))
    >>> least_tree_length(star, np.ones(6, int), 1, (2, 3))
    3
    """
    left, tail, head = length.copy(), arcs.tail, arcs.head
    total, waiting = 0, [*receivers]
    reached = {node: np.arange(arcs.nodes) == node for node in receivers}
    while waiting:
        # The smallest set comes first: sets then stay apart, and each arc loses length for few.
        node = min(waiting, key=lambda one: int(reached[one].sum()))
        inside = reached[node]
        into = np.flatnonzero(inside[head] & ~inside[tail])
        least = int(left[into].min())
        left[into] -= least
        total += least
        new = tail[into[left[into] == 0]].tolist()
        while new:
            begin = new.pop()
            if not inside[begin]:
                inside[begin] = True
                new += tail[(head == begin) & (left == 0)].tolist()
        if inside[source]:
            waiting.remove(node)
    return total
