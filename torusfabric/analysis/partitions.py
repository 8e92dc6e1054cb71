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

If only listed nodes take part, a part counts if one of them is inside. The worst partition is then
hard to find, so it is searched by simulated annealing; every partition proves a bound.

Source: S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science
220, 1983.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import NamedTuple

import numpy as np

from ..topology import Topology
from .cuts import max_flow_and_reachable

__all__ = ["Partition", "worst_group_partition", "worst_partition"]

#: On larger networks only the partition into single nodes is tried.
MOST_NODES = 256

#: A capacity larger than that of any set of arcs.
INFINITE_CAPACITY = 2**30

#: The searches by annealing, and the moves of each: for each node, and at most.
SEARCHES, MOVES_PER_NODE, MOST_MOVES = 8, 1_500, 100_000

#: The chance to make a member a part of its own; and the temperatures at the beginning and at the
#: end, relative to the arcs of a part.
SPLIT_CHANCE, HOT, COLD = 0.3, 0.15, 0.03


class Partition(NamedTuple):
    """A division of all nodes of a network into disjoint parts, by its size.

    Parameters
    ----------
    parts : int
        Number p of parts; of several groups, the sum of the parts that have a member of each.
    arcs : int
        Number of arcs from one part to another.
    groups : int
        Number of groups that each compute a sum.
    """

    parts: int
    arcs: int
    groups: int = 1

    @property
    def message_times(self) -> Fraction:
        """The message times that an all-reduce needs at least, because of this partition.

        They are 2 (p - 1) divided by the number of arcs; the module docstring has the proof. The
        messages of several groups add up.
        """
        return Fraction(2 * (self.parts - self.groups), self.arcs)

    def __str__(self) -> str:
        messages = 2 * (self.parts - self.groups)
        among = f" of {self.groups} groups" if self.groups > 1 else ""
        return f"{messages} messages over {self.arcs} links between {self.parts} parts{among}"


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


@lru_cache(maxsize=32)
def worst_group_partition(topology: Topology, groups: tuple[tuple[int, ...], ...]) -> Partition:
    """Return a partition from which a large bound on the all-reduces of some groups follows.

    Parameters
    ----------
    groups : tuple of (tuple of int)
        The nodes of each group, two or more. A node is in one group at most.

    Examples
    --------
    Five neighbours in a row of an 8x8 torus, and another node. Each of the five is a part of its
    own, with 16 arcs to the others, and 4 from one to the next:

    >>> from torusfabric.topology import parse_topology
    >>> print(worst_group_partition(parse_topology("8x8"), ((0, 1, 2, 3, 36),)))
    8 messages over 26 links between 5 parts
    """
    found = [_anneal_partition(topology, groups, seed) for seed in range(SEARCHES)]
    return max(found, key=lambda partition: partition.message_times)


def _anneal_partition(topology: Topology, groups: Sequence[Sequence[int]], seed: int) -> Partition:
    """Search once for a partition with few arcs between many parts; see `worst_group_partition`.

    At first, each member of a group is a part of its own, but one of them has all other nodes. In
    each move, a node goes to the part of a neighbour, or a member becomes a part of its own. A move
    to a worse partition is the rarer, the worse it is and the later it comes.
    """
    drawn, nodes = random.Random(seed), topology.nodes
    near = [row[linked].tolist() for row, linked in
            zip(topology.neighbours, topology.linked, strict=True)]  # fmt: skip
    for node, heads in enumerate([*map(tuple, near)]):
        for head in heads:
            near[head].append(node)
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    part = dict.fromkeys(range(nodes), drawn.choice([*group_of]))
    part |= {node: node for node in group_of}
    size = Counter(part.values())
    members = Counter((part[node], group) for node, group in group_of.items())
    arcs = sum(part[node] != part[other] for node in part for other in near[node]) // 2
    now = best = Partition(len(members), arcs, len(groups))
    price = 1 / float(best.message_times) * 2
    moves = min(MOST_MOVES, MOVES_PER_NODE * nodes)
    for move in range(moves):
        node = drawn.randrange(nodes)
        old, group = part[node], group_of.get(node)
        if group is not None and drawn.random() < SPLIT_CHANCE and members[old, group] > 1:
            new = next(free for free in range(nodes) if not size[free])
        elif (new := part[drawn.choice(near[node])]) == old:
            continue
        others = [part[other] for other in near[node]]
        arcs = others.count(old) - others.count(new)
        parts = 0
        if group is not None:
            parts = (not members[new, group]) - (members[old, group] == 1)
        worse = arcs - price * parts
        heat = price * (HOT + (COLD - HOT) * move / moves)
        if worse > 0 and drawn.random() >= exp(-worse / heat):
            continue
        part[node] = new
        size[old], size[new] = size[old] - 1, size[new] + 1
        if group is not None:
            members[old, group] -= 1
            members[new, group] += 1
        now = now._replace(parts=now.parts + parts, arcs=now.arcs + arcs)
        if now.parts > now.groups and now.message_times > best.message_times:
            best, price = now, 2 / float(now.message_times)
    return best
