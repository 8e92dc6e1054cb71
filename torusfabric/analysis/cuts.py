"""The cuts of a network that no collective can beat, found by maximum flows.

What a set of nodes must receive from outside comes over the arcs that lead into it. The time that
takes, in message times, is least for no schedule below the largest quotient of both over all sets:
for an all-gather this is the bound that ForestColl (Zhao et al., 2024) proves to be reached. It is
found by Newton's method: at a time that is tried, the arcs are given as much capacity; where that
does not let all messages through, the least cut names a set that takes longer.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..collective import Collective
from ..topology import IntArray, Topology

if TYPE_CHECKING:
    from ..topology import BoolArray

__all__ = ["Cut", "cut_in_words", "flow_and_reached", "worst_cut"]

#: More nodes than this have only the cuts around single nodes tried.
MOST_NODES = 600


class Cut(NamedTuple):
    """A set of nodes, and what must come into it.

    Parameters
    ----------
    inside : tuple of int
        The nodes of the set.
    messages : int
        How many messages must come in.
    arcs : int
        Over how many arcs.
    leaving : bool
        Whether messages go out of the set, rather than into it: of what runs backwards.
    """

    inside: tuple[int, ...]
    messages: int
    arcs: int
    leaving: bool = False

    @property
    def time(self) -> Fraction:
        """Message times that it takes."""
        return Fraction(self.messages, self.arcs)


def cut_in_words(topology: Topology, cut: Cut) -> str:
    """A cut for people.

    Examples
    --------
    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("8x8!0:+0")
    >>> cut_in_words(topology, worst_cut(topology, tf.parse_collective("allgather")))
    '63 messages over 3 links into node 0 (0,0)'
    """
    count, inside = len(cut.inside), [f"{v} {topology.node_name(v)}" for v in cut.inside[:3]]
    more = f" and {count - 3} more" if count > 3 else ""
    where = f"node{'s' * (count > 1)} {', '.join(inside)}{more}"
    messages = f"{cut.messages} message{'s' * (cut.messages != 1)}"
    links = f"{cut.arcs} link{'s' * (cut.arcs != 1)}"
    return f"{messages} over {links} {'out of' if cut.leaving else 'into'} {where}"


def worst_cut(topology: Topology, collective: Collective) -> Cut | None:
    """The cut that takes a collective the longest; None where it moves nothing.

    Of an all-reduce it is that of a broadcast from whichever node; of a total exchange it is the
    worst of those around a node, across a grid, and where springs in place of links would swing.

    Examples
    --------
    >>> import torusfabric as tf
    >>> worst_cut(tf.parse_topology("mesh:4x6"), tf.parse_collective("allgather")).time
    Fraction(23, 2)
    """
    if topology.nodes == 1:
        return None
    if collective.from_each and collective.personal and not collective.reducing:
        return _across(topology)
    backwards = collective.to_root or (collective.reducing and not collective.to_all)
    network = topology.backwards if backwards else topology
    root = collective.root if collective.rooted else None
    several = collective.personal or collective.from_each
    cut = _worst(network, root, several=several)
    return cut._replace(leaving=backwards)


@lru_cache(maxsize=64)
def _worst(topology: Topology, root: int | None, *, several: bool) -> Cut:
    """Of what goes from a root to all, the same or to each its own; or from each node to all."""
    if root is None and not several:
        # What all nodes reduce and receive: some node must get it from any other.
        cuts = [_worst(topology, node, several=False) for node in (0, topology.nodes - 1)]
        return max(cuts, key=lambda cut: cut.time)
    flows = _Flows(topology, root, several=several)
    best = max((flows.around(node) for node in flows.sinks), key=lambda cut: cut.time)
    if topology.nodes > MOST_NODES:
        return best
    for sink in flows.sinks:
        while (cut := flows.cut(best.time, sink)) is not None and cut.time > best.time:
            best = cut
    return best


@lru_cache(maxsize=64)
def _across(topology: Topology) -> Cut:
    """Of a total exchange."""
    nodes = np.arange(topology.nodes)
    tail, port = np.nonzero(topology.linked)
    head, levels = topology.neighbours[tail, port], list(topology.grid[1])
    if 2 < topology.nodes <= MOST_NODES:
        links = np.zeros((topology.nodes, topology.nodes))
        np.add.at(links, (tail, head), 1)
        links = links + links.T
        swing = np.linalg.eigh(np.diag(links.sum(axis=1)) - links)[1]
        levels.append(np.round(swing[:, 1], 9))
    # On large networks only the nodes with the fewest arcs: no cut around another takes longer.
    fewest = [np.bincount(end, minlength=len(nodes)).argmin() for end in (head, tail)]
    alone = nodes if len(nodes) <= MOST_NODES else nodes[fewest]
    sets = [nodes == node for node in alone]
    sets += [row <= level for row in levels for level in np.unique(row)[:-1]]
    found = []
    for inside in (way for side in sets for way in (side, ~side)):
        arcs, within = int((~inside[tail] & inside[head]).sum()), int(inside.sum())
        messages = within * (topology.nodes - within)
        found.append(Cut(tuple(np.flatnonzero(inside).tolist()), messages, arcs))
    return max(found, key=lambda cut: cut.time)


class _Flows:
    """Flows of the messages of a collective, for any time.

    Parameters
    ----------
    root : int or None
        Where all messages start; None where each node sends.
    several : bool
        Whether nodes send, or receive, messages of their own each.
    """

    def __init__(self, topology: Topology, root: int | None, *, several: bool) -> None:
        self.topology, nodes = topology, topology.nodes
        self.tail, port = np.nonzero(topology.linked)
        self.head = topology.neighbours[self.tail, port].astype(np.int64)
        self.loop = self.tail == self.head
        everyone = np.arange(nodes)
        self.supply = np.ones(nodes, int) if root is None else (everyone == root).astype(int)
        self.demand: IntArray | None = None
        self.sinks = [node for node in everyone.tolist() if node != root]
        if root is not None and several:
            # A message to each: a single flow from the root, of which each node takes one.
            self.supply, self.demand = self.supply * (nodes - 1), (everyone != root).astype(int)

    def around(self, sink: int) -> Cut:
        """The cut around a node."""
        return self._cut_of(np.arange(self.topology.nodes) == sink)

    def _cut_of(self, inside: BoolArray) -> Cut:
        """What comes into a set."""
        messages = self.supply[~inside] if self.demand is None else self.demand[inside]
        arcs = (~inside[self.tail] & inside[self.head]).sum()
        return Cut(tuple(np.flatnonzero(inside).tolist()), int(messages.sum()), int(arcs))

    def cut(self, time: Fraction, sink: int) -> Cut | None:
        """A cut that takes longer than a time, if any separates all from a sink."""
        if self.demand is not None and sink != self.sinks[0]:
            return None
        value, reached = self._flow(time, sink)
        if value == int(self.supply.sum()) * time.denominator:
            return None
        return self._cut_of(~reached[: self.topology.nodes])

    def _flow(self, time: Fraction, sink: int) -> tuple[int, BoolArray]:
        """A maximum flow of the messages of a time, see `flow_and_reached`."""
        from scipy.sparse import coo_array

        nodes, (capacity, unit) = self.topology.nodes, time.as_integer_ratio()
        everyone, source = np.arange(nodes), nodes
        tail = [self.tail, np.full(nodes, source)]
        head = [self.head, everyone]
        units = [np.where(self.loop, 0, capacity), self.supply * unit]
        if self.demand is not None:
            sink = nodes + 1
            tail, head = [*tail, everyone], [*head, np.full(nodes, sink)]
            units.append(self.demand * unit)
        ends = np.concatenate(tail), np.concatenate(head)
        size = nodes + 1 + (self.demand is not None)
        table = coo_array((np.concatenate(units).astype(np.int32), ends), shape=(size, size))
        return flow_and_reached(table, source, sink)


def flow_and_reached(capacities: Any, source: int, sink: int) -> tuple[int, BoolArray]:
    """The value of a maximum flow, and which nodes are reached by what capacity is left."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    given = csr_array(capacities)
    found = maximum_flow(given, source, sink)
    left = csr_array(given - found.flow)
    left.eliminate_zeros()
    reached: BoolArray = np.zeros(given.shape[0], bool)
    reached[breadth_first_order(left, source, return_predecessors=False)] = True
    return int(found.flow_value), reached
