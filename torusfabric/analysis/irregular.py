"""Lower bounds for irregular collectives: listed nodes, listed messages, unequal lengths.

Data may pass through any node of the network. The bounds hold for any way to cut messages, any
paths and any schedule. Times are in message times, as in `volume`; the message is the longest one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..collective import Collective
from ..topology import IntArray, Topology
from .congestion import congestion_time
from .cuts import Cut, MessageFlows, worst_cut_of_flows

__all__ = ["group_worst_cut", "irregular_least_time", "irregular_longest_distance"]

#: The largest denominator of a bound; the bound of a larger one is rounded down.
LARGEST_DENOMINATOR = 1000


class _Deliveries(NamedTuple):
    """The data that an irregular collective moves between nodes, each message once.

    A reduction is described backwards, as the broadcast or all-gather with all arcs reversed.

    Parameters
    ----------
    network : Topology
        The network, or for a reduction the network with all arcs reversed.
    source, target, message : ndarray of int, shape (deliveries,)
        Each delivery brings the message with this number from a source to a target.
    flits : ndarray of int, shape (messages,)
        Length of each message.
    longest : int
        Flits of the longest message.
    """

    network: Topology
    source: IntArray
    target: IntArray
    message: IntArray
    flits: IntArray
    longest: int


def _find_deliveries(topology: Topology, collective: Collective) -> _Deliveries:
    """Return the deliveries of an irregular collective between different nodes."""
    network, forward = topology, collective
    if collective.reducing:
        kind = {"reduce": "broadcast", "reduce-scatter": "allgather", "allreduce": "allgather"}
        each = tuple((count,) for row in collective.lengths for count in row)
        forward = replace(collective, kind=kind[collective.kind], lengths=each)
        network = topology.backwards
    blocks = forward.blocks(network, 1)
    ids = np.arange(blocks.n_blocks)
    source, (target, message) = blocks.origin_nodes(ids), blocks.required_copies(ids)
    flits, lengths = np.ones(blocks.n_blocks, int), blocks.message_lengths
    if lengths is not None:
        flits = lengths.ravel()
    moved = source[message] != target
    return _Deliveries(network, source[message][moved], target[moved], message[moved], flits,
                       int(flits.max()))  # fmt: skip


def irregular_least_time(topology: Topology, collective: Collective, ports: int | None) -> Fraction:
    """Return the message times that every schedule of an irregular collective needs.

    Parameters
    ----------
    collective : Collective
        The collective, with the nodes of each group, the messages or their lengths.
    ports : int or None
        Messages that a node may send, or receive, at once; None for one at each of its ports.

    Notes
    -----
    The bound is the largest of:

    - The load of the busiest arc, if each message goes by the best paths to the farthest of its
      receivers: the linear program of `congestion_time`. If each message has one receiver, no
      other bound is larger.
    - At each node, the flits that it receives divided by its in-ports; and the flits that it sends
      divided by its out-ports. A message for several nodes leaves its source once.
    - The flits of all deliveries divided by the arcs: each message makes at least as many hops as
      it has receivers.
    - In a broadcast, an all-gather and their reverses, the worst cut between the origins of a group
      and one of its nodes.

    For an all-reduce only the cuts hold, because nodes combine messages on their way.

    Examples
    --------
    The two arcs into node 0 bring the messages of three other nodes:

    >>> import torusfabric as tf
    >>> irregular_least_time(tf.Torus(8), tf.parse_collective("allgather@{0,1,3,6}"), None)
    Fraction(3, 2)
    """
    found = [_least_time_by_links(topology, collective)]
    if ports is not None and not (collective.reducing and collective.to_all):
        found.append(_least_time_at_nodes(_find_deliveries(topology, collective), ports))
    return max(found)


@lru_cache(maxsize=64)
def _least_time_by_links(topology: Topology, collective: Collective) -> Fraction:
    """Return the part of `irregular_least_time` that holds for any number of ports."""
    cut = group_worst_cut(topology, collective)
    least = Fraction(0) if cut is None else cut.message_times
    if collective.reducing and collective.to_all:
        return least
    moved = _find_deliveries(topology, collective)
    network, flits = moved.network, moved.flits[moved.message]
    demand = np.zeros((network.nodes, network.nodes), np.int64)
    away = network.distance(moved.source, moved.target)
    order = np.lexsort((-away, moved.message))
    first = order[np.unique(moved.message[order], return_index=True)[1]]
    np.add.at(demand, (moved.source[first], moved.target[first]), flits[first])
    arcs = int(network.linked.sum())
    congestion = congestion_time(network, demand) / moved.longest
    if congestion.denominator > LARGEST_DENOMINATOR:
        # An estimate of large networks has long fractions; a smaller number is a bound, too.
        congestion = Fraction(int(congestion * LARGEST_DENOMINATOR), LARGEST_DENOMINATOR)
    return max(
        least,
        congestion,
        Fraction(int(flits.sum()), arcs * moved.longest),
        _least_time_at_nodes(moved, None),
    )


def _least_time_at_nodes(moved: _Deliveries, ports: int | None) -> Fraction:
    """Return the message times in which the busiest node sends, or receives, its messages.

    `ports` is the number of ports that a node may use at once, None for all.
    """
    network, flits = moved.network, moved.flits[moved.message]
    received, sent = np.zeros((2, network.nodes), np.int64)
    np.add.at(received, moved.target, flits)
    once = np.unique(moved.message, return_index=True)[1]
    np.add.at(sent, moved.source[once], flits[once])
    most = network.ports if ports is None else ports
    return max(
        Fraction(int(count), int(min(arcs, most)) * moved.longest)
        for counts, links in ((received, network.backwards.linked), (sent, network.linked))
        for count, arcs in zip(counts, links.sum(axis=1), strict=True)
        if count
    )


@lru_cache(maxsize=64)
def group_worst_cut(topology: Topology, collective: Collective) -> Cut | None:
    """Return the cut that takes one of the listed groups the longest; None if cuts give no bound.

    Parameters
    ----------
    collective : Collective
        Cuts give a bound if several nodes receive the same data, or in the reverse of this.
    """
    exchange = collective.from_each and (collective.personal or collective.to_root)
    if collective.local or collective.lengths or exchange or not collective.members:
        return None
    backwards = collective.to_root or (collective.reducing and not collective.to_all)
    network = topology.backwards if backwards else topology
    several = collective.personal or collective.from_each
    found: list[Cut] = []
    for group in collective.members:
        roots: list[int | None] = [group[collective.root] if collective.root is not None else None]
        if collective.reducing and collective.to_all:
            # Data of every node must reach every other node of its group; two roots are tried.
            roots = [group[0], group[-1]]
        flows = (MessageFlows(network, root, several=several, among=group) for root in roots)
        found += [worst_cut_of_flows(each) for each in flows]
    worst = max(found, key=lambda cut: cut.message_times)
    return worst._replace(leaving=backwards)


def irregular_longest_distance(
    topology: Topology, collective: Collective, *, in_cycles: bool = False
) -> int:
    """Return the largest distance over which data move.

    Parameters
    ----------
    collective : Collective
        The collective, with the nodes of each group, the messages or their lengths.
    in_cycles : bool
        True to count the link latency in cycles instead of hops.

    Examples
    --------
    >>> import torusfabric as tf
    >>> irregular_longest_distance(tf.Torus(8), tf.parse_collective("gather@{0,1,3}", root=1))
    2
    """
    moved = _find_deliveries(topology, collective)
    network = moved.network
    if not in_cycles or network.one_latency is not None:
        hops = int(network.distance(moved.source, moved.target).max(initial=0))
        return hops * (network.one_latency or 1 if in_cycles else 1)
    return max(
        int(network.cycles_from(source)[moved.target[moved.source == source]].max())
        for source in np.unique(moved.source).tolist()
    )
