"""The partition of a network that no all-reduce can beat, found by minimum cuts.

Take the nodes of each part for one: messages of all parts are added up, and every part receives the
sums. Take the receipts one after another: before the first part has a whole sum, each other part
has sent once; after that, each other part has to receive. So 2 (p - 1) messages cross between p
parts. Where each link goes both ways, trees that share links in these proportions exist (Tutte;
Nash-Williams, 1961), so that sums up and down them meet this bound.

The worst partition is found by Newton's method: at a time that is tried, the least partition of a
function of cuts (Dilworth truncation) says whether another takes longer.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..topology import Topology
from .cuts import flow_and_reached

__all__ = ["Partition", "worst_partition"]

#: On more nodes each node is taken for a part.
MOST_NODES = 256

#: No arc is as wide as this.
ENDLESS = 2**30


class Partition(NamedTuple):
    """Parts of a network, and the arcs between them.

    Parameters
    ----------
    parts : int
        How many.
    arcs : int
        How many lead from one part to another.
    """

    parts: int
    arcs: int

    @property
    def time(self) -> Fraction:
        """Message times that an all-reduce takes."""
        return Fraction(2 * (self.parts - 1), self.arcs)

    def __str__(self) -> str:
        return f"{2 * (self.parts - 1)} messages over {self.arcs} links between {self.parts} parts"


@lru_cache(maxsize=32)
def worst_partition(topology: Topology) -> Partition:
    """The partition that takes an all-reduce the longest, of a network of at least two nodes.

    Examples
    --------
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
        parts = _least_parts(links, Fraction(best.arcs, best.parts - 1))
        found = Partition(int(parts.max()) + 1, int(links[parts[:, None] != parts].sum()) // 2)
        if found.parts < 2 or found.time <= best.time:
            break
        best = found
    return best


def _least_parts(links: np.ndarray, price: Fraction) -> np.ndarray:
    """The part of each node where the links between parts, less a price a part, are the fewest.

    Nodes come one after another; each is given as much as the sets with those before leave it, and
    sets that leave nothing become parts, joined where they overlap (Barahona, 1992).
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
        now[source, node], now[node + 1 : nodes, sink] = ENDLESS, ENDLESS
        inside = flow_and_reached(now.astype(np.int32), source, sink)[1][:nodes]
        leaving = int(links[np.ix_(inside, ~inside)].sum()) * unit
        others = int(given[inside].sum())
        given[node] = leaving - 2 * price.numerator - others
        for other in np.unique(part[inside]):
            part[part == other] = part[node]
    return np.unique(part, return_inverse=True)[1]
