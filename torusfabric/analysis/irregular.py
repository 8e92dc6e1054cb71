"""Lower bounds for irregular collectives: listed nodes, listed messages, unequal lengths.

Data may pass through any node of the network. The bounds hold for any way to cut messages, any
paths and any schedule. Times are in message times, as in `volume`; the message is the longest one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

import numpy as np

from ..collective import Collective
from ..topology import IntArray, Topology
from .congestion import WeightedArcs, congestion_time
from .cuts import Cut, MessageFlows, cut_text, worst_cut_of_flows
from .fractional import Demand, FractionalRoutes, find_fractional_routes, length_bound
from .partitions import worst_group_partition

__all__ = ["TrafficDemands", "allreduce_demands", "allreduce_routes", "group_worst_cut",
           "irregular_least_steps", "irregular_least_time", "irregular_limit_text",
           "irregular_longest_distance", "traffic_demands", "traffic_routes"]  # fmt: skip

#: The largest denominator of a bound; the bound of a larger one is rounded down.
LARGEST_DENOMINATOR = 1000

#: The load of fractional routes, relative to their bound, from which on another bound is tried.
FAR = 1.02

#: The sets around each node that are tried as cuts; the bound of a cut, relative to that of the
#: linear program, from which on the cut is named; and the length of an arc, relative to the
#: longest, below which the arc does not limit the linear program.
MOST_LEVELS, NEAR_CUT, SMALL_LENGTH = 3, Fraction(995, 1000), 0.02

#: The most demands of traffic for which fractional routes are computed, and the most receivers of
#: all demands times nodes of the network.
MOST_DEMANDS, MOST_RECEIVERS = 2_500, 300_000


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


class TrafficDemands(NamedTuple):
    """The demands of an irregular collective: messages with the same ends are one demand.

    Parameters
    ----------
    network : Topology
        The network, or for a reduction the network with all arcs reversed.
    demands : list of Demand
        The demands, with the flits of all their messages.
    number : dict of (int, tuple of int) to int
        The number of each demand, by its source and its receivers in ascending order.
    demand_of : ndarray of int, shape (messages,)
        The demand of each message.
    flits : ndarray of int, shape (messages,)
        Length of each message.
    """

    network: Topology
    demands: list[Demand]
    number: dict[tuple[int, tuple[int, ...]], int]
    demand_of: IntArray
    flits: IntArray

    def blocks(self, flits: int) -> IntArray:
        """Return the number of blocks of each demand, if a block has this number of flits."""
        counts = np.zeros(len(self.demands), np.int64)
        np.add.at(counts, self.demand_of, -(-self.flits // flits))
        return counts


@lru_cache(maxsize=16)
def traffic_demands(topology: Topology, collective: Collective) -> TrafficDemands:
    """Return the demands of an irregular collective; of an all-reduce, those of an all-gather.

    Examples
    --------
    >>> import torusfabric as tf
    >>> gather = tf.parse_collective("allgather@{0,1,3}")
    >>> traffic_demands(tf.Torus(4), gather).demands[1]
    Demand(source=1, receivers=(0, 3), amount=1)
    """
    moved = _find_deliveries(topology, collective)
    number: dict[tuple[int, tuple[int, ...]], int] = {}
    order = np.lexsort((moved.target, moved.message))
    messages, first = np.unique(moved.message[order], return_index=True)
    targets = np.split(moved.target[order], first[1:])
    ends = [
        (source, tuple(each.tolist()))
        for source, each in zip(moved.source[order][first].tolist(), targets, strict=True)
    ]
    demand_of = np.array([number.setdefault(pair, len(number)) for pair in ends], int)
    flits = moved.flits[messages]
    amounts = np.zeros(len(number), np.int64)
    np.add.at(amounts, demand_of, flits)
    demands = [Demand(*pair, amount) for pair, amount in zip(number, amounts.tolist(), strict=True)]
    return TrafficDemands(moved.network, demands, number, demand_of, flits)


@lru_cache(maxsize=16)
def traffic_routes(topology: Topology, collective: Collective) -> FractionalRoutes | None:
    """Return fractional routes of an irregular collective; None if it has too many demands.

    The routes are those of `traffic_demands`.
    """
    found = traffic_demands(topology, collective)
    receivers = sum(len(demand.receivers) for demand in found.demands)
    several = receivers > len(found.demands)
    if (
        not found.demands
        or len(found.demands) > MOST_DEMANDS
        or (several and receivers * topology.nodes > MOST_RECEIVERS)
    ):
        return None
    moved = _find_deliveries(topology, collective)
    known = max(_least_time_by_cuts(topology, collective), _least_time_at_nodes(moved, None))
    known *= moved.longest
    return find_fractional_routes(WeightedArcs(found.network), found.demands, known)


@lru_cache(maxsize=16)
def allreduce_routes(topology: Topology, collective: Collective) -> FractionalRoutes | None:
    """Return fractional routes of the sum of each group of an all-reduce: trees of links.

    A sum goes up a tree and down the same one, so a route loads both arcs of each of its links. The
    routes are those of `allreduce_demands`; None if links lead one way only.
    """
    arcs, demands = WeightedArcs(topology), allreduce_demands(topology, collective)
    if (opposite := arcs.opposite_arcs) is None:
        return None
    known, links = _least_time_by_cuts(topology, collective), np.arange(len(opposite))
    return find_fractional_routes(arcs, demands, known, np.minimum(links, opposite))


def allreduce_demands(topology: Topology, collective: Collective) -> list[Demand]:
    """Return a demand for the sum of each group: from its most central member to the others."""
    demands = list[Demand]()
    for group in collective.members:
        members = np.array(group)
        away = np.array([topology.distance(node, members).max() for node in group])
        source = group[int(away.argmin())]
        demands.append(Demand(source, tuple(node for node in group if node != source), 1))
    return demands


@lru_cache(maxsize=16)
def irregular_least_steps(
    topology: Topology, collective: Collective, chunks: int, ports: int | None = None
) -> int:
    """Return a number of steps that every schedule in steps of one block needs.

    Messages are cut into blocks of equal length; a short message has fewer blocks. The bound is
    that of `irregular_least_time`, and that of the lengths of arcs found there for the blocks.

    Parameters
    ----------
    chunks : int
        Number of blocks of the longest message.
    ports : int or None
        Messages that a node may send, or receive, at once; None for one at each of its ports.

    Examples
    --------
    Two messages of one and of five flits go over one link of a ring that leads in one direction. If
    a block has five flits, they take two steps:

    >>> import torusfabric as tf
    >>> traffic = tf.Traffic([(0, 1, 1), (0, 1, 5)])
    >>> ring = tf.Graph([(0, 1), (1, 2), (2, 0)])
    >>> irregular_least_steps(ring, tf.Collective("pattern", traffic=traffic), 1)
    2
    """
    longest, times = collective.longest_flits, irregular_least_time(topology, collective, ports)
    if longest is None:
        return ceil(times * chunks)
    least = ceil(times * longest / -(-longest // chunks))
    if collective.reducing and collective.to_all:
        return least
    found = traffic_routes(topology, collective)
    demands, block = traffic_demands(topology, collective), -(-longest // chunks)
    cut = _worst_traffic_cut(topology, collective, block)
    if cut is not None:
        least = max(least, ceil(cut.message_times))
    if found is None:
        return least
    arcs, counts = WeightedArcs(demands.network), demands.blocks(block)
    weighed = [demand._replace(amount=n) for demand, n in zip(demands.demands, counts, strict=True)]
    return max(least, ceil(length_bound(arcs, weighed, found.lengths)))


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

    For an all-reduce only cuts and partitions (`worst_group_partition`) hold, because nodes combine
    messages on their way.

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
    least = _least_time_by_cuts(topology, collective)
    if collective.reducing and collective.to_all:
        return least
    moved = _find_deliveries(topology, collective)
    arcs, longest = int(moved.network.linked.sum()), moved.longest
    return max(
        least,
        _round_down(_least_load(topology, collective) / longest),
        _worst_traffic_time(topology, collective) / longest,
        Fraction(int(moved.flits[moved.message].sum()), arcs * longest),
        _least_time_at_nodes(moved, None),
    )


def _worst_traffic_time(topology: Topology, collective: Collective) -> Fraction:
    """Return the time of the worst cut in flits."""
    cut = _worst_traffic_cut(topology, collective)
    return Fraction(0) if cut is None else cut.message_times


def _least_time_by_cuts(topology: Topology, collective: Collective) -> Fraction:
    """Return the message times of the worst cut, 0 if cuts give no bound.

    For an all-reduce, partitions count as cuts.
    """
    cut = group_worst_cut(topology, collective)
    least = Fraction(0) if cut is None else cut.message_times
    if collective.reducing and collective.to_all:
        least = max(least, worst_group_partition(topology, collective.members).message_times)
    return least


def _least_load(topology: Topology, collective: Collective) -> Fraction:
    """Return a bound on the flits of the busiest arc, for any routes.

    It is the bound of `traffic_routes`. If there are too many demands for these, or their load is
    far from the bound, a message also counts for the farthest of its receivers only.
    """
    routes = traffic_routes(topology, collective)
    if routes is not None and routes.load <= FAR * routes.bound:
        return routes.bound
    moved = _find_deliveries(topology, collective)
    network, flits = moved.network, moved.flits[moved.message]
    demand = np.zeros((network.nodes, network.nodes), np.int64)
    away = network.distance(moved.source, moved.target)
    order = np.lexsort((-away, moved.message))
    first = order[np.unique(moved.message[order], return_index=True)[1]]
    np.add.at(demand, (moved.source[first], moved.target[first]), flits[first])
    found = congestion_time(network, demand)
    return found if routes is None else max(found, routes.bound)


def _round_down(bound: Fraction) -> Fraction:
    """Return a bound with a denominator of at most `LARGEST_DENOMINATOR`, and not much smaller."""
    if bound.denominator > LARGEST_DENOMINATOR:
        return Fraction(int(bound * LARGEST_DENOMINATOR), LARGEST_DENOMINATOR)
    return bound


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
def _worst_traffic_cut(topology: Topology, collective: Collective, block: int = 1) -> Cut | None:
    """Return the cut that takes the data of a collective the longest; None for an all-reduce.

    Data are counted in blocks of `block` flits; a short message fills its last block. Cuts around
    each node, across the grid, and around each node as far as the arcs reach that limit the linear
    program are tried. A message counts once if it comes from outside of the set and one of its
    receivers is inside.
    """
    if collective.reducing and collective.to_all:
        return None
    moved, routes = _find_deliveries(topology, collective), traffic_routes(topology, collective)
    network = moved.network
    arcs, nodes = WeightedArcs(network), np.arange(network.nodes)
    sets = [nodes == node for node in nodes]
    sets += [row <= level for row in topology.grid[1] for level in np.unique(row)[:-1]]
    if routes is not None:
        for row in arcs.shortest_paths(routes.lengths)[0]:
            size = np.sort(row)
            far = np.argsort(np.diff(size))[-MOST_LEVELS:]
            sets += [row <= level for level in size[far]]
    worst: Cut | None = None
    flits = np.zeros(len(moved.flits), np.int64)
    for leaving, mask in ((leaving, mask) for mask in sets for leaving in (False, True)):
        inside = ~mask if leaving else mask
        enter = int((~inside[arcs.tail] & inside[arcs.head]).sum())
        if not enter:
            continue
        flits[:] = 0
        crossing = moved.message[~inside[moved.source] & inside[moved.target]]
        flits[crossing] = -(-moved.flits[crossing] // block)
        cut = Cut(tuple(np.flatnonzero(mask).tolist()), int(flits.sum()), enter, leaving)
        if worst is None or cut.message_times > worst.message_times:
            worst = cut
    return worst


def irregular_limit_text(topology: Topology, collective: Collective) -> str:
    """Return text about the cut, or the links, that determine the bound of a collective.

    Examples
    --------
    Three messages arrive at node 0 over its two links:

    >>> import torusfabric as tf
    >>> gather = tf.parse_collective("gather@{0,1,3,6}")
    >>> irregular_limit_text(tf.Torus(8), gather)
    '3 messages over 2 links into node 0 (0)'
    """
    least = irregular_least_time(topology, collective, None)
    cut = group_worst_cut(topology, collective)
    if cut is not None and cut.message_times >= least:
        return cut_text(topology, cut)
    if collective.reducing and collective.to_all:
        return str(worst_group_partition(topology, collective.members))
    longest = collective.longest_flits
    cut = _worst_traffic_cut(topology, collective)
    if cut is not None and cut.message_times >= NEAR_CUT * least * (longest or 1):
        if collective.reducing:
            cut = cut._replace(leaving=not cut.leaving)
        return cut_text(topology, cut, "flit" if longest else "message")
    routes = traffic_routes(topology, collective)
    if routes is None:
        return ""
    arcs = WeightedArcs(traffic_demands(topology, collective).network)
    full = np.flatnonzero(routes.lengths > SMALL_LENGTH * routes.lengths.max())
    first = int(routes.lengths.argmax())
    name = topology.node_name(int(arcs.tail[first]))
    return (
        f"{len(full)} links that are full in the linear program, such as that from node "
        f"{arcs.tail[first]} {name} to node {arcs.head[first]}"
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
