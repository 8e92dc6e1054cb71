"""Lower bounds on the load of the busiest arc, for messages between all or some pairs of nodes.

Give every arc a length. Each message travels at least the distance between its ends, so the total
of loads times lengths is at least the sum of all distances. The busiest arc therefore carries at
least the sum of all distances divided by the sum of all lengths. This holds for any choice of
lengths; it is the dual of the linear program of multicommodity flow.

The best lengths are found by that linear program on small networks. On large networks, good lengths
are found by multiplicative weights (Garg and Koenemann): all messages take shortest paths, and the
length of an arc grows with its load. If these lengths may be far from the best ones, cutting planes
(Kelley) improve them.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property, lru_cache
from math import lcm

import numpy as np

from ..topology import CayleyGraph, IntArray, Topology

__all__ = ["WeightedArcs", "symmetric_exchange_time", "congestion_time", "exchange_time"]

#: Iterations of multiplicative weights, times nodes, so that large networks get fewer iterations;
#: and the most iterations.
WORK_LIMIT, MOST_TRIES = 4096, 64

#: The largest product of nodes and arcs for which the linear program is solved, in about a second.
MOST_EXACT_CELLS = 6_000

#: The largest product of nodes and arcs for which cutting planes are used, and the most pivots of
#: the simplex method, which take a few seconds. Cutting planes are used if the loads of the paths
#: found are larger than the bound by the factor `FAR`, and end when no bound is larger by `NEAR`.
MOST_CUT_CELLS, MOST_PIVOTS, FAR, NEAR = 30_000, 9_000, 1.08, 1.01

#: The part of the best lengths so far in the next lengths that are tried.
KEPT_PART = 0.2

#: Cycles through the memory of a node that forwards a word, in addition to the link latency.
MEMORY_CYCLES = 2

#: The largest denominator of lengths, if all arcs of a port have the same length.
LARGEST_PART = 64

#: A multiple of 1 to 16, by which the best lengths are multiplied before they are rounded. They are
#: mostly ratios of small numbers, so the bound is then exact.
COMMON_MULTIPLE = 720_720

#: The exponent by which a full load changes a length in one iteration, and the units in the largest
#: length when lengths are rounded to integers.
PACE, UNIT = 0.5, 1 << 20


class WeightedArcs:
    """The arcs of a topology, with methods that need a length for each arc.

    They return shortest paths, the loads of arcs, and the bound on the busiest arc that follows
    from the lengths. An arc has an index; arrays over arcs have one entry for each.

    Parameters
    ----------
    demand : ndarray of int, shape (nodes, nodes), optional
        Number of messages from each node (row) to each node (column); by default one for each pair.

    Attributes
    ----------
    tail, port, head : ndarray of int, shape (arcs,)
        For each arc, the node where it begins, its out-port, and the node where it ends. Arcs are
        ordered by tail and port.
    """

    def __init__(self, topology: Topology, demand: IntArray | None = None) -> None:
        self._topology, self.nodes = topology, topology.nodes
        every = np.ones((self.nodes, self.nodes), np.int64)
        self.demand = every if demand is None else demand
        self.tail, self.port = np.nonzero(topology.linked)
        self.head = topology.neighbours[self.tail, self.port].astype(np.int64)
        self._pair = self.tail * self.nodes + self.head
        self._cycles = topology.cycles_of_arc[self.tail, self.port]
        self._slow = topology.spacing_multiple > 1

    def backwards(self) -> tuple[WeightedArcs, IntArray]:
        """Return the arcs of the network with all arcs reversed, and the number of each one here.

        Entry k of the second result is the arc that leads the opposite way to arc k of the first.
        """
        network = self._topology.backwards
        reverse, opposite = WeightedArcs(network), network.opposite
        order = {end: arc for arc, end in enumerate(zip(self.tail.tolist(), self.port.tolist(),
                                                        strict=True))}  # fmt: skip
        ends = zip(reverse.head.tolist(), opposite[reverse.port].tolist(), strict=True)
        return reverse, np.array([order[end] for end in ends])

    @cached_property
    def opposite_arcs(self) -> IntArray | None:
        """For each arc, an arc that leads the opposite way; None if links lead one way only."""
        ahead = np.lexsort((self.port, self.head, self.tail))
        back = np.lexsort((self.port, self.tail, self.head))
        apart = (self.tail[back] != self.head[ahead]) | (self.head[back] != self.tail[ahead])
        if apart.any():
            return None
        found = np.empty_like(ahead)
        found[ahead] = back
        return found

    @property
    def forwarding_steps(self) -> list[int]:
        """The number of steps, for each arc, after which its receiver can forward a block.

        The number is 1, or more for a slow arc. A step is the time until a block that went over the
        fastest link can be forwarded: the link latency and `MEMORY_CYCLES`. If a block has more
        flits than these cycles, steps are longer. On a network with slow links, a step is a cycle.
        """
        if self._slow:
            return (MEMORY_CYCLES + self._cycles).tolist()  # type: ignore[no-any-return]
        quickest = MEMORY_CYCLES + int(self._cycles.min())
        apart: list[int] = (-(-(MEMORY_CYCLES + self._cycles) // quickest)).tolist()
        return apart

    @property
    def relative_forwarding_time(self) -> np.ndarray:
        """The time until a block is forwarded, relative to the fastest arc, for each arc.

        The time of an arc is its latency and `MEMORY_CYCLES`.
        """
        cycles = MEMORY_CYCLES + self._cycles
        hops: np.ndarray = cycles / cycles.min()
        return hops

    def shortest_paths(self, length: IntArray) -> tuple[np.ndarray, IntArray]:
        """Return the distances between all nodes, and the last arc of each shortest path.

        ``length[arc]`` is the length of an arc. Both results are arrays of shape (nodes, nodes),
        with a row for each start: the length of the path, and the index of its last arc, -1 for the
        start itself. Of parallel arcs the shortest is used, and the first if several are equal.
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

    def path_tree(self, by: IntArray, goals: IntArray) -> IntArray:
        """Return the arcs on the shortest paths from one start to the nodes in `goals`, each once.

        An arc comes after the arcs on the way to its tail.

        ``by[node]`` is the last arc of the shortest path from the start to a node: one row of the
        second result of `shortest_paths`.
        """
        found: dict[int, None] = {}
        for goal in goals.tolist():
            path, arc = list[int](), int(by[goal])
            while arc >= 0 and arc not in found:
                path.append(arc)
                arc = int(by[self.tail[arc]])
            found.update(dict.fromkeys(reversed(path)))
        return np.array([*found], np.int64)

    def find_paths(self, by: IntArray, source: IntArray, target: IntArray) -> list[IntArray]:
        """Return, for each pair of a source and a target, the arcs of the shortest path in order.

        `by` is the second result of `shortest_paths`. Paths are followed backwards from the target.
        """
        found, here = [], target.copy()
        while (here != source).any():
            arc = np.where(here != source, by[source, here], -1)
            found.append(arc)
            here = np.where(arc >= 0, self.tail[arc], here)
        columns = np.array(found[::-1]).reshape(len(found), len(source)).T
        return [row[row >= 0] for row in columns]

    def short_tree(
        self, distance: np.ndarray, by: IntArray, start: int, goals: IntArray, tilt: float
    ) -> list[int]:
        """Return the arcs of a short tree from one start to the nodes in `goals`.

        The nearest goal is joined to the tree by a shortest path, then the goal that is nearest to
        the tree so far, and so on. An arc comes after the arcs on the way to its tail.

        Parameters
        ----------
        distance, by : ndarray, shape (nodes, nodes)
            The results of `shortest_paths`.
        tilt : float
            Additional distance for each hop between the start and the place where a goal is joined.
        """
        tree: list[int] = []
        depth, left = {start: 0}, goals
        near, join = distance[start, left], np.full(len(left), start)
        while len(left):
            goal = int(left[nearest := int(near.argmin())])
            path, here, begin = list[int](), goal, join[nearest]
            while here not in depth:
                path.append(arc := int(by[begin, here]))
                here = int(self.tail[arc])
            for arc in reversed(path):
                depth[int(self.head[arc])] = depth[int(self.tail[arc])] + 1
            tree += reversed(path)
            rest = left != goal
            left, near, join = left[rest], near[rest], join[rest]
            new = np.array([int(self.head[arc]) for arc in path], int)
            if len(new) and len(left):
                away = distance[np.ix_(new, left)]
                away = away + tilt * np.array([depth[node] for node in new.tolist()])[:, None]
                closest = away.argmin(axis=0)
                closer = away[closest, np.arange(len(left))] < near
                near = np.where(closer, away.min(axis=0), near)
                join = np.where(closer, new[closest], join)
        return tree

    def integer_lengths(self, weight: np.ndarray) -> IntArray:
        """Return integer lengths of at least 1, proportional to `weight` as far as possible."""
        length: IntArray = np.maximum(1, np.rint(weight / weight.max() * UNIT)).astype(np.int64)
        return length

    def load_bound(self, length: IntArray, distance: np.ndarray | None = None) -> Fraction:
        """Return a lower bound on the load of the busiest arc: total distance / total length.

        Each message travels at least the distance between its ends, so the sum of loads times
        lengths is at least the sum of the distances of all messages.

        Parameters
        ----------
        length : ndarray of int, shape (arcs,)
            Length of each arc.
        distance : ndarray, shape (nodes, nodes), optional
            Distances between all nodes with these lengths, if they are known.
        """
        apart = self.shortest_paths(length)[0] if distance is None else distance
        return Fraction(int(np.rint((apart * self.demand).sum())), int(length.sum()))

    def arc_loads(self, distance: np.ndarray, by: IntArray) -> IntArray:
        """Return the loads of arcs if all messages take the given paths.

        The result has the shape (nodes, arcs): the number of messages from each node on each arc.
        `distance` and `by`, the results of `shortest_paths`, describe the paths.
        """
        below = self.demand.copy()
        row = np.arange(self.nodes)
        load = np.zeros((self.nodes, len(self.tail)), np.int64)
        for node in np.argsort(-distance, axis=1, kind="stable").T:
            arc = by[row, node]
            start, used = row[arc >= 0], arc[arc >= 0]
            amount = below[start, node[arc >= 0]]
            load[start, used] = amount
            below[start, self.tail[used]] += amount
        return load


@lru_cache(maxsize=16)
def exchange_time(topology: Topology, known: Fraction = Fraction(0)) -> Fraction:
    """Return a number of message times that every all-to-all needs: a bound by the busiest arc.

    `known` is a bound that is known; the search ends early if it cannot be exceeded by much.

    Examples
    --------
    In a 4x4 mesh, every all-to-all takes more than 14 message times:

    >>> from torusfabric.topology import parse_topology
    >>> float(exchange_time(parse_topology("mesh:4x4"))) > 14
    True
    """
    return congestion_time(topology, known=known)


@lru_cache(maxsize=64)
def symmetric_exchange_time(topology: CayleyGraph) -> Fraction:
    """Return a number of message times that every all-to-all needs, as `exchange_time` does.

    The topology must look the same from every node. The bound follows from lengths that are given
    to arcs, and a linear program finds the best lengths. On such a topology all arcs of a port can
    have the same length, so that the linear program is small.

    Examples
    --------
    In 8x4~4, a twisted torus, distances are shorter than in 8x4, and so is the time:

    >>> from torusfabric.topology import parse_topology
    >>> [str(symmetric_exchange_time(parse_topology(name))) for name in ("8x4", "8x4~4")]
    ['32', '21']
    """
    arcs = WeightedArcs(topology)
    found = _best_lengths(arcs, arcs.port, 1)
    parts = found / found.max()
    exact = [Fraction(part).limit_denominator(LARGEST_PART) for part in parts.tolist()]
    whole = lcm(*(part.denominator for part in exact))
    return arcs.load_bound(np.array([int(part * whole) for part in exact])[arcs.port])


def congestion_time(
    topology: Topology, demand: IntArray | None = None, known: Fraction = Fraction(0)
) -> Fraction:
    """Return a number of message times that every schedule for some messages needs.

    It is a lower bound on the load of the busiest arc, for any choice of paths.

    Parameters
    ----------
    demand : ndarray of int, shape (nodes, nodes), optional
        Number of messages from each node (row) to each node (column); by default one for each pair.
    known : Fraction
        A lower bound that is known. The search ends early if it cannot be exceeded by much.
    """
    if topology.nodes == 1:
        return Fraction(0)
    arcs = WeightedArcs(topology, demand)
    if topology.nodes * len(arcs.tail) <= MOST_EXACT_CELLS:
        found = _best_lengths(arcs, np.arange(len(arcs.tail)), arcs.nodes)
        return arcs.load_bound(np.rint(found / found.max() * COMMON_MULTIPLE).astype(np.int64))
    weight = np.ones(len(arcs.tail))
    best, sum_of_loads = Fraction(0), np.zeros(len(arcs.tail))
    lengths = arcs.integer_lengths(weight)
    for tried in range(1, 1 + max(4, min(MOST_TRIES, WORK_LIMIT // topology.nodes))):
        distance, by = arcs.shortest_paths(length := arcs.integer_lengths(weight))
        bound = arcs.load_bound(length, distance)
        best = max(best, bound)
        if bound == best:
            lengths = length
        load = arcs.arc_loads(distance, by).sum(axis=0)
        sum_of_loads += load
        mean = sum_of_loads / tried
        if bound and mean.max() <= max(bound, known):
            break
        weight = weight * np.exp(PACE * load / load.max())
    far = mean.max() > FAR * max(best, known) and topology.nodes * len(arcs.tail) <= MOST_CUT_CELLS
    return max(best, _bound_by_cutting_planes(arcs, lengths)) if far else best


def _bound_by_cutting_planes(arcs: WeightedArcs, lengths: IntArray) -> Fraction:
    """Return a lower bound on the load of the busiest arc, beginning with the given lengths.

    Several linear programs are solved. Each finds lengths of arcs and, for each node, the sum of
    the distances of its messages. The constraints: all lengths add up to 1, and a sum of distances
    is at most the sum of the lengths of all hops, for each set of shortest paths found before.
    The objective is the sum of all distances. The shortest paths for these lengths, mixed with the
    best lengths so far, give the constraints for the next linear program.

    Source: J. E. Kelley, "The cutting-plane method for solving convex programs", Journal of the
    Society for Industrial and Applied Mathematics 8, 1960.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, vstack

    nodes, count = arcs.nodes, len(lengths)
    best, mixed = Fraction(0), lengths / lengths.sum()
    kept, most, cuts, pivots = mixed, np.inf, [], 0
    while pivots <= MOST_PIVOTS:
        distance, by = arcs.shortest_paths(length := arcs.integer_lengths(mixed))
        bound = arcs.load_bound(length, distance)
        if bound > best:
            best, kept = bound, mixed
        if most <= NEAR * best:
            break
        cuts.append(coo_array(np.hstack([-arcs.arc_loads(distance, by), np.eye(nodes)])))
        found = linprog(
            np.repeat([0.0, -1.0], [count, nodes]),
            A_ub=vstack(cuts).tocsr(),
            b_ub=np.zeros(nodes * len(cuts)),
            A_eq=np.repeat([1.0, 0.0], [count, nodes])[None],
            b_eq=[1.0],
        )
        most, pivots = -found.fun, pivots + found.nit
        mixed = KEPT_PART * kept + (1 - KEPT_PART) * np.maximum(found.x[:count], 0)
    return best


def _best_lengths(arcs: WeightedArcs, group: IntArray, starts: int) -> np.ndarray:
    """Return the lengths of arcs from which the largest bound on the busiest arc follows.

    ``group[arc]`` is the number of a set of arcs, all of which have the same length. The result has
    one length for each set; all are found by a linear program. Its variables are the lengths, and
    the distances from the first `starts` nodes to all nodes. The constraints: the distance to the
    head of an arc is at most the distance to its tail plus its length, and the lengths of all sets
    add up to 1. The objective is the sum of distances, weighted by the number of messages.
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
