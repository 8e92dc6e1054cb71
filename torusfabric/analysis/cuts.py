"""Lower bounds from cuts: the set of nodes whose incoming arcs limit a collective the most.

All messages that a set of nodes must receive from outside pass over the arcs into the set. Messages
divided by arcs is a lower bound on the time, in message times. The best bound is the largest
quotient over all sets; for an all-gather, ForestColl (Zhao et al., 2024) proves that schedules
reach it.

The best set is found by Newton's method. For a time T, every arc gets capacity T. If not all
messages can flow, the minimum cut is a set that needs more than T, and its quotient is the next T.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..collective import Collective
from ..topology import IntArray, Topology

if TYPE_CHECKING:
    from ..topology import BoolArray

__all__ = ["Cut", "MessageFlows", "cut_text", "max_flow_and_reachable", "worst_cut",
           "worst_cut_of_flows"]  # fmt: skip

#: On larger networks, only the cuts around single nodes are tried.
MOST_NODES = 600


class Cut(NamedTuple):
    """A set of nodes, with the number of messages that must enter or leave it, and of its arcs.

    Parameters
    ----------
    inside : tuple of int
        The nodes of the set.
    messages : int
        Number of messages that must enter the set from outside, or leave it.
    arcs : int
        Number of arcs that lead into the set, or out of it.
    leaving : bool
        False if messages and arcs are those into the set, True if those out of it, as in a gather.
    """

    inside: tuple[int, ...]
    messages: int
    arcs: int
    leaving: bool = False

    @property
    def message_times(self) -> Fraction:
        """The message times until all messages have passed the arcs: messages divided by arcs."""
        return Fraction(self.messages, self.arcs)


def cut_text(topology: Topology, cut: Cut, unit: str = "message") -> str:
    """Return the description of a cut for people.

    Parameters
    ----------
    unit : str
        Noun for the data that pass the cut, such as "message" or "flit".

    Examples
    --------
    Node 0 has lost one of its four links:

    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("8x8!0:+0")
    >>> cut_text(topology, worst_cut(topology, tf.parse_collective("allgather")))
    '63 messages over 3 links into node 0 (0,0)'
    """
    count, inside = len(cut.inside), [f"{v} {topology.node_name(v)}" for v in cut.inside[:3]]
    more = f" and {count - 3} more" if count > 3 else ""
    where = f"node{'s' * (count > 1)} {', '.join(inside)}{more}"
    messages = f"{cut.messages} {unit}{'s' * (cut.messages != 1)}"
    links = f"{cut.arcs} link{'s' * (cut.arcs != 1)}"
    return f"{messages} over {links} {'out of' if cut.leaving else 'into'} {where}"


def worst_cut(topology: Topology, collective: Collective) -> Cut | None:
    """Return the set of nodes whose arcs limit a collective the most; None for a single node.

    The messages that must enter (or leave) the set, divided by its arcs, are a lower bound on the
    time. For an all-reduce, this is the worst cut of a broadcast from any node. For an all-to-all,
    only some cuts are tried: around each node, across the grid, and along the second eigenvector of
    the graph Laplacian.

    Examples
    --------
    A corner of the mesh receives 23 messages by two links:

    >>> import torusfabric as tf
    >>> worst_cut(tf.parse_topology("mesh:4x6"), tf.parse_collective("allgather")).message_times
    Fraction(23, 2)
    """
    if topology.nodes == 1:
        return None
    if collective.from_each and collective.personal and not collective.reducing:
        return _worst_exchange_cut(topology)
    backwards = collective.to_root or (collective.reducing and not collective.to_all)
    network = topology.backwards if backwards else topology
    root = collective.root if collective.rooted else None
    several = collective.personal or collective.from_each
    cut = _worst_flow_cut(network, root, several=several)
    return cut._replace(leaving=backwards)


@lru_cache(maxsize=64)
def _worst_flow_cut(topology: Topology, root: int | None, *, several: bool) -> Cut:
    """Return the cut that takes the longest if data go from `root` to all nodes.

    If `root` is None, data go from each node to all nodes. `several` is True if a root has a
    different message for each node, or if each node has a message for all nodes. It is False if the
    root has one message for all nodes, and for an all-reduce.
    """
    if root is None and not several:
        # All-reduce: data of every node must reach every other node, so each root gives a bound.
        # Two roots are tried.
        cuts = [_worst_flow_cut(topology, node, several=False) for node in (0, topology.nodes - 1)]
        return max(cuts, key=lambda cut: cut.message_times)
    return worst_cut_of_flows(MessageFlows(topology, root, several=several))


def worst_cut_of_flows(flows: MessageFlows) -> Cut:
    """Return the worst cut between the origins of messages and one of their receivers.

    Parameters
    ----------
    flows : MessageFlows
        The messages. On networks of more than `MOST_NODES` nodes, only cuts around single nodes are
        tried.
    """
    best = max((flows.cut_around(node) for node in flows.sinks), key=lambda cut: cut.message_times)
    if flows.topology.nodes > MOST_NODES:
        return best
    for sink in flows.sinks:
        while (
            cut := flows.cut_slower_than(best.message_times, sink)
        ) is not None and cut.message_times > best.message_times:
            best = cut
    return best


@lru_cache(maxsize=64)
def _worst_exchange_cut(topology: Topology) -> Cut:
    """Return the worst of the cuts that `worst_cut` tries for an all-to-all."""
    nodes = np.arange(topology.nodes)
    tail, port = np.nonzero(topology.linked)
    head, levels = topology.neighbours[tail, port], list(topology.grid[1])
    if 2 < topology.nodes <= MOST_NODES:
        links = np.zeros((topology.nodes, topology.nodes))
        np.add.at(links, (tail, head), 1)
        links = links + links.T
        swing = np.linalg.eigh(np.diag(links.sum(axis=1)) - links)[1]
        levels.append(np.round(swing[:, 1], 9))
    # On large networks only the nodes with the fewest arcs are tried: a cut around any other node
    # does not take longer.
    fewest = [np.bincount(end, minlength=len(nodes)).argmin() for end in (head, tail)]
    alone = nodes if len(nodes) <= MOST_NODES else nodes[fewest]
    sets = [nodes == node for node in alone]
    sets += [row <= level for row in levels for level in np.unique(row)[:-1]]
    found = []
    for inside in (way for side in sets for way in (side, ~side)):
        arcs, within = int((~inside[tail] & inside[head]).sum()), int(inside.sum())
        messages = within * (topology.nodes - within)
        found.append(Cut(tuple(np.flatnonzero(inside).tolist()), messages, arcs))
    return max(found, key=lambda cut: cut.message_times)


class MessageFlows:
    """Network flow that tells if all messages of a collective can be sent in a time T.

    Each arc has the capacity T. If not all messages can flow, the minimum cut is a set of nodes
    that needs more time than T.

    Parameters
    ----------
    root : int or None
        The origin of all messages; None if each node is an origin.
    several : bool
        True if the root has a different message for each destination, or if each node has a message
        of its own.
    among : sequence of int, optional
        The nodes that send and receive; by default all. The others relay.
    """

    def __init__(
        self,
        topology: Topology,
        root: int | None,
        *,
        several: bool,
        among: Sequence[int] | None = None,
    ) -> None:
        self.topology, nodes = topology, topology.nodes
        self.tail, port = np.nonzero(topology.linked)
        self.head = topology.neighbours[self.tail, port].astype(np.int64)
        self.loop = self.tail == self.head
        everyone = np.arange(nodes)
        member = np.ones(nodes, bool) if among is None else np.isin(everyone, among)
        self.supply = (member if root is None else everyone == root).astype(int)
        self.demand: IntArray | None = None
        self.sinks = [node for node in np.flatnonzero(member).tolist() if node != root]
        if root is not None and several:
            # The root has a message for each node: a single flow of which each node consumes one.
            self.supply = self.supply * len(self.sinks)
            self.demand = (member & (everyone != root)).astype(int)

    def cut_around(self, sink: int) -> Cut:
        """Return the cut with only the node `sink` inside: its messages, and its arcs."""
        return self._cut_of_nodes(np.arange(self.topology.nodes) == sink)

    def _cut_of_nodes(self, inside: BoolArray) -> Cut:
        """Return the cut whose set of nodes is given by the mask `inside`, shape (nodes,)."""
        messages = self.supply[~inside] if self.demand is None else self.demand[inside]
        arcs = (~inside[self.tail] & inside[self.head]).sum()
        return Cut(tuple(np.flatnonzero(inside).tolist()), int(messages.sum()), int(arcs))

    def cut_slower_than(self, time: Fraction, sink: int) -> Cut | None:
        """Return a cut that takes longer than `time`, with node `sink` inside.

        The result is None if there is no such cut.
        """
        if self.demand is not None and sink != self.sinks[0]:
            return None
        value, reached = self._max_flow(time, sink)
        if value == int(self.supply.sum()) * time.denominator:
            return None
        return self._cut_of_nodes(~reached[: self.topology.nodes])

    def _max_flow(self, time: Fraction, sink: int) -> tuple[int, BoolArray]:
        """Return the largest number of messages that can reach node `sink` within `time`.

        Each arc has the capacity `time`. If the root has a different message for each node, the
        flow ends at all nodes instead of `sink`. The result is that of `max_flow_and_reachable`;
        the number is multiplied by the denominator of `time`, because capacities must be integers.
        """
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
        return max_flow_and_reachable(table, source, sink)


def max_flow_and_reachable(capacities: Any, source: int, sink: int) -> tuple[int, BoolArray]:
    """Compute a maximum flow from node `source` to node `sink`; returns its value and a mask.

    `capacities` is a sparse matrix with the capacity from each node (row) to each node (column).
    The mask has one entry for each node. It is True on the source side of the minimum cut: for
    nodes that can still be reached from `source` by capacities that the flow leaves.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    given = csr_array(capacities)
    found = maximum_flow(given, source, sink)
    left = csr_array(given - found.flow)
    left.eliminate_zeros()
    reached: BoolArray = np.zeros(given.shape[0], bool)
    reached[breadth_first_order(left, source, return_predecessors=False)] = True
    return int(found.flow_value), reached
