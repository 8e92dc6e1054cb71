"""Lower bounds for collectives in groups of listed nodes, whose data may pass through any node.

The bounds hold for any way to cut messages, any paths and any schedule. Times are in message times,
as in `volume`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ..collective import NO_NODE, Collective
from ..topology import IntArray, Topology
from .congestion import congestion_time
from .cuts import Cut, MessageFlows, worst_cut_of_flows

__all__ = ["group_least_time", "group_longest_distance", "group_worst_cut"]


def group_least_time(topology: Topology, collective: Collective, ports: int | None) -> Fraction:
    """Return the message times that every schedule needs, where a user lists the nodes of groups.

    Parameters
    ----------
    collective : Collective
        The collective, with the nodes of each group.
    ports : int or None
        Messages that a node may send, or receive, at once; None for one at each of its ports.

    Notes
    -----
    - Scatter, gather, all-to-all, exchange: the load of the busiest arc, if each message takes the
      best paths, by the linear program of `congestion_time`.
    - Broadcast, all-gather, halo, reduce, reduce-scatter: the worst cut between the origins of
      a group and one of its nodes. Additionally the hops of all blocks together, where each block
      makes at least as many hops as it has receivers, divided by the number of arcs.
    - All-reduce: the cut of a broadcast from any node of the group.

    Examples
    --------
    The two arcs into node 0 bring the messages of three other nodes:

    >>> import torusfabric as tf
    >>> group_least_time(tf.Torus(8), tf.parse_collective("allgather@{0,1,3,6}"), None)
    Fraction(3, 2)
    """
    found = [_least_time_by_links(topology, collective)]
    if ports is not None:
        sent, received = _messages_at_nodes(topology, collective)
        found.append(Fraction(max(int(sent.max()), int(received.max())), ports))
    return max(found)


@lru_cache(maxsize=64)
def _least_time_by_links(topology: Topology, collective: Collective) -> Fraction:
    """Return the part of `group_least_time` that holds for any number of ports."""
    blocks = collective.blocks(topology, 1)
    forward = collective.personal and not collective.reducing
    if forward or (collective.from_each and collective.to_root):
        demand = np.zeros((topology.nodes, topology.nodes), np.int64)
        ids = np.arange(blocks.n_blocks)
        origin, target = blocks.initial_copies(ids)[0], blocks.required_copies(ids)
        np.add.at(demand, (origin[target[1]], target[0]), 1)
        np.fill_diagonal(demand, 0)
        return congestion_time(topology, demand)
    cut = group_worst_cut(topology, collective)
    least = Fraction(0) if cut is None else cut.message_times
    if not (collective.reducing and collective.to_all):
        received = _messages_at_nodes(topology, collective)[1]
        least = max(least, Fraction(int(received.sum()), int(topology.linked.sum())))
    return least


def _messages_at_nodes(topology: Topology, collective: Collective) -> tuple[IntArray, IntArray]:
    """Return the least number of messages that each node sends, and that it receives.

    A message for several nodes leaves its origin once. A reduce-scatter sends as many sums as an
    all-gather receives messages.
    """
    groups, size = collective.groups(topology), len(collective.members[0])
    sent, received = np.zeros((2, topology.nodes), np.int64)
    members, root = groups.members, collective.root or 0
    if collective.local:
        ids = np.arange((blocks := collective.blocks(topology, 1)).n_blocks)
        nodes, block = blocks.required_copies(ids)
        origin = blocks.initial_copies(ids)[0]
        there = origin[block] != nodes
        pairs = np.stack([origin[block], nodes])[:, there]
        if not collective.personal:
            pairs = np.unique(pairs, axis=1)
        np.add.at(received, pairs[1], 1)
        return (np.bincount(pairs[0], minlength=topology.nodes), received)
    each = size - 1 if collective.personal or collective.from_each else 1
    if collective.rooted:
        others = np.delete(members, root, axis=1)
        sent[others if collective.to_root else members[:, root]] = 1 if collective.to_root else each
        received[members[:, root] if collective.to_root else others] = (
            each if collective.to_root else 1
        )
        return sent, received
    sent[members] = each if collective.personal else 1
    received[members] = 1 if collective.reducing else each
    return (sent, received) if not collective.reducing else (sent, np.maximum(received, 1))


@lru_cache(maxsize=64)
def group_worst_cut(topology: Topology, collective: Collective) -> Cut | None:
    """Return the cut that takes one of the groups the longest, or None if cuts give no bound.

    Parameters
    ----------
    collective : Collective
        A collective in which several nodes receive the same data, or its reverse.
    """
    if collective.local:
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


def group_longest_distance(
    topology: Topology, collective: Collective, *, in_cycles: bool = False
) -> int:
    """Return the largest distance over which data of a group move.

    Parameters
    ----------
    collective : Collective
        The collective, with the nodes of each group.
    in_cycles : bool
        True to count the link latency in cycles instead of hops.

    Examples
    --------
    >>> import torusfabric as tf
    >>> group_longest_distance(tf.Torus(8), tf.parse_collective("gather@{0,1,3}", root=1))
    2
    """
    if in_cycles and topology.one_latency is not None:
        return topology.one_latency * group_longest_distance(topology, collective)
    forward = replace(collective, kind="gather") if collective.kind == "reduce" else collective
    if collective.local:
        targets = collective.targets(topology)
        position, offset = np.nonzero(targets != NO_NODE)
        pairs = [(position, targets[position, offset])]
    elif forward.rooted:
        others = np.arange(len(collective.members[0]))
        root = np.full_like(others, collective.root or 0)
        pairs = [(others, root) if collective.to_root else (root, others)]
    else:
        a, b = np.indices((len(collective.members[0]),) * 2).reshape(2, -1)
        pairs = [(a, b)]
    longest, members = 0, collective.groups(topology).members
    for start, end in pairs:
        for nodes in members:
            if in_cycles:
                for origin in np.unique(nodes[start]).tolist():
                    away = topology.cycles_from(origin)
                    longest = max(longest, int(away[nodes[end][nodes[start] == origin]].max()))
            else:
                longest = max(longest, int(topology.distance(nodes[start], nodes[end]).max()))
    return longest
