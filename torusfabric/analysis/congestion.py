"""How much some arc must carry where nodes send messages to others: to all, or to some.

Whatever lengths the arcs are given, messages go at least as far as their ends are apart; so the
busiest arc carries no less than all distances together, divided by all lengths together. This is
the dual of the linear program of multicommodity flow. Lengths that make the bound the largest are
found by that program on few nodes; on more, good ones by multiplicative weights (Garg and
Koenemann): all messages go on shortest paths, and arcs become the longer the more they carry.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np

from ..topology import CayleyGraph, IntArray, Topology

__all__ = ["Lengths", "alike_time", "congestion", "exchange_time"]

#: How often lengths are changed, times nodes; more nodes have fewer tries.
WORK, MOST_TRIES = 4096, 64

#: Nodes times arcs up to which the linear program is solved, about a second.
SOLVED = 6_000

#: Cycles that a word takes through a memory from which it is sent on, besides those of its link.
THROUGH_MEMORY = 2

#: The largest denominator of lengths in proportion, where all arcs behind a port are as long.
LARGEST_PART = 64

#: How far lengths are changed at once, and how much of a length is a unit.
PACE, UNIT = 0.5, 1 << 20


class Lengths:
    """Arcs with lengths, and shortest paths between all nodes.

    Parameters
    ----------
    demand : ndarray of int, shape (nodes, nodes), optional
        How many messages go from each node (a row) to each other, of a bound; by default one.

    Attributes
    ----------
    tail, port, head : ndarray of int, shape (arcs,)
        The arcs in order of tail and port.
    """

    def __init__(self, topology: Topology, demand: IntArray | None = None) -> None:
        self.nodes = topology.nodes
        every = np.ones((self.nodes, self.nodes), np.int64)
        self.demand = every if demand is None else demand
        self.tail, self.port = np.nonzero(topology.linked)
        self.head = topology.neighbours[self.tail, self.port].astype(np.int64)
        self._pair = self.tail * self.nodes + self.head
        self._cycles = topology.cycles_of_arc[self.tail, self.port]

    @property
    def steps_apart(self) -> list[int]:
        """Of each arc, how many steps later what comes over it is sent on: by the slowest more.

        A step takes as long as what comes over the quickest link waits until it can be sent on, or
        as long as the flits of a block, if these are more.
        """
        quickest = THROUGH_MEMORY + int(self._cycles.min())
        apart: list[int] = (-(-(THROUGH_MEMORY + self._cycles) // quickest)).tolist()
        return apart

    @property
    def hop(self) -> np.ndarray:
        """Cycles until what comes over each arc is sent on, in those of the quickest."""
        cycles = THROUGH_MEMORY + self._cycles
        hops: np.ndarray = cycles / cycles.min()
        return hops

    def shortest(self, length: IntArray) -> tuple[np.ndarray, IntArray]:
        """Distances, and the arc by which the path from each node (a row) comes to each other.

        Of parallel arcs it is the shortest, the first of several. -1 where there is no arc.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        order = np.lexsort((length, self._pair))
        pair, first = np.unique(self._pair[order], return_index=True)
        arc = order[first]
        shape = self.nodes, self.nodes
        graph = csr_array((length[arc].astype(float), np.divmod(pair, self.nodes)), shape=shape)
        distance, before = dijkstra(graph, return_predecessors=True)
        node = np.arange(self.nodes)
        found = np.searchsorted(pair, np.where(before >= 0, before * self.nodes + node, 0))
        return distance, np.where(before >= 0, arc[np.minimum(found, len(arc) - 1)], -1)

    def tree(self, by: IntArray, goals: IntArray) -> IntArray:
        """The arcs of the shortest paths to some nodes, given the arc into each node."""
        found: dict[int, None] = {}
        for goal in goals.tolist():
            arc = int(by[goal])
            while arc >= 0 and arc not in found:
                found[arc] = None
                arc = int(by[self.tail[arc]])
        return np.array([*found], np.int64)

    def in_units(self, weight: np.ndarray) -> IntArray:
        """Whole lengths, from 1 on, in about these proportions."""
        length: IntArray = np.maximum(1, np.rint(weight / weight.max() * UNIT)).astype(np.int64)
        return length

    def bound(self, length: IntArray, distance: np.ndarray | None = None) -> Fraction:
        """What some arc must carry, by these lengths, and perhaps the distances that they make."""
        apart = self.shortest(length)[0] if distance is None else distance
        return Fraction(int(np.rint((apart * self.demand).sum())), int(length.sum()))

    def carried(self, distance: np.ndarray, by: IntArray) -> IntArray:
        """What each arc carries if all messages go on these paths."""
        below = self.demand.copy()
        row = np.arange(self.nodes)
        load = np.zeros(len(self.tail), np.int64)
        for node in np.argsort(-distance, axis=1, kind="stable").T:
            arc = by[row, node]
            there = arc >= 0
            amount = below[row[there], node[there]]
            np.add.at(load, arc[there], amount)
            below[row[there], self.tail[arc[there]]] += amount
        return load


@lru_cache(maxsize=16)
def exchange_time(topology: Topology) -> Fraction:
    """Message times that no total exchange can do without, by what some arc must carry.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> float(exchange_time(parse_topology("mesh:4x4"))) > 14
    True
    """
    return congestion(topology)


@lru_cache(maxsize=64)
def alike_time(topology: CayleyGraph) -> Fraction:
    """As `exchange_time`, where all nodes look alike: all arcs behind a port may be as long.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> [str(alike_time(parse_topology(name))) for name in ("4x8", "4x8~1", "8x4~4")]
    ['32', '32', '21']
    """
    arcs = Lengths(topology)
    found = _best_lengths(arcs, arcs.port, 1)
    parts = found / found.max()
    exact = [Fraction(part).limit_denominator(LARGEST_PART) for part in parts.tolist()]
    whole = lcm(*(part.denominator for part in exact))
    return arcs.bound(np.array([int(part * whole) for part in exact])[arcs.port])


def congestion(topology: Topology, demand: IntArray | None = None) -> Fraction:
    """Message times that no schedule can do without, by what some arc must carry.

    Parameters
    ----------
    demand : ndarray of int, shape (nodes, nodes), optional
        As of `Lengths`.
    """
    if topology.nodes == 1:
        return Fraction(0)
    arcs = Lengths(topology, demand)
    if topology.nodes * len(arcs.tail) <= SOLVED:
        every = np.arange(len(arcs.tail))
        return arcs.bound(arcs.in_units(_best_lengths(arcs, every, arcs.nodes)))
    weight = np.ones(len(arcs.tail))
    best, sum_of_loads = Fraction(0), np.zeros(len(arcs.tail))
    for tried in range(1, 1 + max(4, min(MOST_TRIES, WORK // topology.nodes))):
        distance, by = arcs.shortest(length := arcs.in_units(weight))
        bound = arcs.bound(length, distance)
        best = max(best, bound)
        load = arcs.carried(distance, by)
        sum_of_loads += load
        mean = sum_of_loads / tried
        if bound and mean.max() <= bound:
            break
        weight = weight * np.exp(PACE * load / load.max())
    return best


def _best_lengths(arcs: Lengths, group: IntArray, starts: int) -> np.ndarray:
    """Lengths that make the bound the largest, by the linear program: one for each group of arcs.

    Its variables are these, and how far each of the first nodes (a row) is from each other: no
    farther than by an arc more than the tail of that arc.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    nodes, count = arcs.nodes, int(group.max()) + 1
    row = np.arange(starts * len(group))
    start, arc = np.divmod(row, len(group))
    head, tail = (count + start * nodes + end[arc] for end in (arcs.head, arcs.tail))
    ones, size = np.ones(len(row)), count + starts * nodes
    values, columns = np.concatenate([ones, -ones, -ones]), np.concatenate([head, tail, group[arc]])
    farther = coo_array((values, (np.tile(row, 3), columns)), shape=(len(row), size))
    most = np.full(size, np.inf)
    most[count + np.arange(starts) * (nodes + 1)] = 0
    found = linprog(
        np.append(np.zeros(count), -arcs.demand[:starts].ravel()),
        A_ub=farther.tocsr(),
        b_ub=np.zeros(len(row)),
        A_eq=np.repeat([1.0, 0.0], [count, starts * nodes])[None],
        b_eq=[1.0],
        bounds=np.stack([np.zeros(size), most], axis=1),
    )
    lengths: np.ndarray = np.maximum(found.x[:count], 0)
    return lengths
