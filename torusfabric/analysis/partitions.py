"""Lower bounds on an all-reduce from partitions of the network into parts.

Merge the nodes of each of p parts into one. Contributions of all parts must be added up, and every
part must receive the sum. Order the arrivals of messages in time. Before the first part has the
complete sum, each other part has sent at least once. After that, each other part still has to
receive. So at least 2 (p - 1) messages cross between parts, and divided by the number of arcs
between parts this bounds the time. If every link has an arc each way, spanning trees exist that
share the links in these proportions (Tutte; Nash-Williams, 1961), so that sums up and down these
trees meet the bound.

The worst partition is found by Newton's method. For a time T, the partition that minimises a
function of cuts (Dilworth truncation) shows whether another partition takes longer.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..topology import Topology
from .cuts import max_flow_and_reachable

__all__ = ["Partition", "worst_partition"]

#: On larger networks only the partition into single nodes is tried.
MOST_NODES = 256

#: A capacity larger than that of any set of arcs.
INFINITE_CAPACITY = 2**30


class Partition(NamedTuple):
    """A division of all nodes of a network into disjoint parts, by its size.

    Parameters
    ----------
    parts : int
        Number p of parts.
    arcs : int
        Number of arcs from one part to another.
    """

    parts: int
    arcs: int

    @property
    def message_times(self) -> Fraction:
        """The message times that an all-reduce needs at least, because of this partition.

        They are 2 (p - 1) divided by the number of arcs; the module docstring has the proof.
        """
        return Fraction(2 * (self.parts - 1), self.arcs)

    def __str__(self) -> str:
        return f"{2 * (self.parts - 1)} messages over {self.arcs} links between {self.parts} parts"


@lru_cache(maxsize=32)
def worst_partition(topology: Topology) -> Partition:
    """Return the partition from which the largest bound on an all-reduce follows.

    The network must have two nodes or more.

    Examples
    --------
    In an 8x8 torus without one link, the worst partition has each node as a part of its own:

    >>> from torusfabric.topology import parse_topology
    >>> print(worst_partition(parse_topology("8x8!0:+0")))
    126 messages over 254 links between 64 parts
    """
    nodes = topology.nodes
    tail, port = np.nonzero(topology.linked)
    head = topology.neighbours[tail, port].astype(np.int64)
    links = np.zeros((nodes, nodes), np.int64)
    np.add.at(links, (tail, head), 1)
    np.fill_diagonal(links, 0)
    links = links + links.T
    best = Partition(nodes, int(links.sum()) // 2)
    while nodes <= MOST_NODES:
        parts = _best_partition(links, Fraction(best.arcs, best.parts - 1))
        found = Partition(int(parts.max()) + 1, int(links[parts[:, None] != parts].sum()) // 2)
        if found.parts < 2 or found.message_times <= best.message_times:
            break
        best = found
    return best


def _best_partition(links: np.ndarray, price: Fraction) -> np.ndarray:
    """Return the partition with few links between many parts: the number of the part of each node.

    It minimises the number of links between parts, less `price` for each part. ``links[a, b]`` is
    the number of links between nodes a and b.

    Greedy algorithm (Barahona, 1992): nodes are added one after another. A minimum cut finds the
    set of the new node and some earlier nodes that limits the value of the new node the most. This
    set becomes a part, merged with the parts that it overlaps.
    """
    nodes, unit = len(links), price.denominator
    given, part = np.zeros(nodes, np.int64), np.arange(nodes)
    source, sink = nodes, nodes + 1
    table = np.zeros((nodes + 2, nodes + 2), np.int64)
    table[:nodes, :nodes] = links * unit
    for node in range(nodes):
        now = table.copy()
        now[source, :node] = np.maximum(given[:node], 0)
        now[:node, sink] = np.maximum(-given[:node], 0)
        now[source, node], now[node + 1 : nodes, sink] = INFINITE_CAPACITY, INFINITE_CAPACITY
        inside = max_flow_and_reachable(now.astype(np.int32), source, sink)[1][:nodes]
        leaving = int(links[np.ix_(inside, ~inside)].sum()) * unit
        others = int(given[inside].sum())
        given[node] = leaving - 2 * price.numerator - others
        for other in np.unique(part[inside]):
            part[part == other] = part[node]
    return np.unique(part, return_inverse=True)[1]
