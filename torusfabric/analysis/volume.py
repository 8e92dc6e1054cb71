"""The least time in which messages can be moved, however they are cut and whenever they are sent.

A time here is counted in *message times*: what a link takes to carry one whole message of a node
(where each destination gets a message of its own: one such message). It compares schedules whose
steps are of different length.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from ..collective import NO_NODE, Collective
from ..schedule import Duplex, Switching
from ..topology import CayleyGraph, Topology, Torus
from .congestion import alike_time, congestion, exchange_time
from .cuts import cut_in_words, worst_cut
from .partitions import worst_partition

__all__ = ["arc_load", "beat", "least_reach", "least_time", "limit", "network_cut", "reach"]


def least_time(
    topology: Topology,
    collective: Collective,
    *,
    switching: Switching = Switching.STORE_AND_FORWARD,
    ports: int | None = None,
    duplex: Duplex = Duplex.FULL,
) -> Fraction:
    """Message times that no schedule can do without.

    Parameters
    ----------
    ports : int, optional
        How many messages a node may send, and receive, at once; all ports by default.

    Notes
    -----
    With N nodes of a group, P ports, and S the sum of all distances from a node:

    - Broadcast, reduce: each node, or the root, receives one message at P ports.
    - Scatter, gather: N - 1 messages leave the root, or arrive there, by P ports.
    - All-gather: each node receives N - 1 messages; reduce-scatter: it sends N - 1 sums. All nodes
      together receive N P messages at once, in half duplex at most one a link.
    - All-reduce: N nodes receive each part of a message 2 (N - 1) times together, even if partial
      sums are copied. Take the receipts one after another: before the first node has a whole sum,
      each other node has sent once; after that, each other node still has to receive.
    - Exchange: a node receives a message for each offset, halo: from each node at an offset; and
      the messages of an exchange travel to their offsets as those of a total exchange do, on a
      torus also along each axis, one way round or the other.
    - Total exchange: the messages travel N S hops in all; on a torus also per axis (`arc_load`).
      Where a path is held, it takes up all arcs at once, however few ports a node uses.

    On networks that do not look the same from each node it is what `worst_cut` must let through;
    of an all-reduce also the receipts above, of nodes or of parts of the network (`partitions`), of
    a total exchange `exchange_time`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> least_time(tf.Torus(6, 6), tf.parse_collective("allgather"))
    Fraction(35, 4)
    """
    if collective.axes is not None:
        topology, collective = collective.groups(topology).torus, collective.in_one_group
    nodes, degree = topology.nodes, topology.ports
    if nodes == 1:
        return Fraction(0)
    if not isinstance(topology, CayleyGraph):
        if collective.local:
            return _local_anywhere(topology, collective)
        cut = worst_cut(topology, collective)
        assert cut is not None
        several = collective.personal or collective.from_each
        least = [cut.time]
        if ports is not None:
            least.append(Fraction(nodes - 1 if several else 1, ports))
        if collective.reducing and collective.to_all:
            least.append(worst_partition(topology).time)
        elif collective.from_each and collective.personal and not collective.reducing:
            least.append(exchange_time(topology))
        return max(least)
    ports = degree if ports is None else ports
    half = 2 if duplex == Duplex.HALF else 1
    each = Fraction(min(ports * half, degree), half)
    if collective.rooted:
        return Fraction(nodes - 1 if collective.personal or collective.from_each else 1, ports)
    if collective.reducing and collective.to_all:
        return 2 * Fraction(nodes - 1, nodes) / each
    if collective.local:
        offsets = collective.targets(topology)[0]
        if not collective.personal:
            return len(np.unique(offsets)) / each
        hops = int(topology.distances[offsets].sum(dtype=np.int64))
        axes = _shift_time(topology, offsets) if isinstance(topology, Torus) else Fraction(0)
        return max(max(len(offsets), hops) / each, axes)
    received = (nodes - 1) / each
    if collective.reducing or collective.to_all:
        return received
    hops = int(topology.distances.sum(dtype=np.int64))
    arcs = each if switching == Switching.STORE_AND_FORWARD else Fraction(degree, half)
    return max(received, hops / arcs, arc_load(topology) * half)


def _shift_time(torus: Torus, offsets: np.ndarray) -> Fraction:
    """Message times of the links of an axis, where each node sends a message to each offset.

    Along an axis of side s, a message that comes d farther makes d hops one way or s - d the other,
    or parts of it do either. Both ways are equally busy where those with the fewest hops for their
    turning round take the other way first.
    """
    least = Fraction(0)
    for side, moved in zip(torus.sides, torus.coordinates(offsets), strict=True):
        onward, back = int(moved.sum()), 0
        for hops in sorted(moved[moved > 0].tolist(), reverse=True):
            # So much of this message goes the other way that both are alike.
            part = min(max(Fraction(onward - back, side), Fraction(0)), Fraction(1))
            onward, back = onward - part * hops, back + part * (side - hops)
        least = max(least, Fraction(onward), Fraction(back))
    return least


def limit(topology: Topology, collective: Collective, flits: int) -> int:
    """Cycles that no hardware can do without, on all ports: a link carries a flit a cycle.

    Parameters
    ----------
    flits : int
        Of a message.

    Returns
    -------
    int
        The larger of what the links have to carry (`least_time`), and the cycles of the links on
        the shortest way of the farthest flit.

    Examples
    --------
    A broadcast of 64 flits enters each node by four links; one of a single flit goes eight hops.

    >>> import torusfabric as tf
    >>> broadcast = tf.parse_collective("broadcast")
    >>> limit(tf.Torus(8, 8), broadcast, 64), limit(tf.Torus(8, 8), broadcast, 1)
    (16, 8)
    """
    groups = collective.groups(topology)
    far = reach(groups.torus, collective.in_one_group, in_cycles=True)
    return max(ceil(least_time(topology, collective) * flits), far)


def beat(topology: Topology, collective: Collective, flits: int) -> int:
    """The flits of a word of a node's port with which it takes no longer than links do at best.

    Parameters
    ----------
    flits : int
        Of a message.

    Returns
    -------
    int
        The least power of two, up to the flits of a message. What a node has for itself is left
        out; it need not pass the port at the same time.

    Examples
    --------
    Four links bring 15 messages in less than four times their flits.

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> [beat(Torus(4, 4), parse_collective(name), 64) for name in ("allgather", "alltoall")]
    [4, 2]
    """
    blocks = collective.blocks(topology, 1)
    messages, least = max(blocks.goals, blocks.parts), limit(topology, collective, flits)
    found = 1
    while 2 * found <= flits and -(-flits // found) * max(messages - 1, 1) > least:
        found *= 2
    return found


def reach(topology: Topology, collective: Collective, *, in_cycles: bool = False) -> int:
    """Hops that some message has to go, whatever its way: from the root, or to it, or between any.

    Parameters
    ----------
    in_cycles : bool
        Whether to count the cycles of links in place of hops.

    Examples
    --------
    >>> import torusfabric as tf
    >>> mesh = tf.parse_topology("mesh:5")
    >>> [reach(mesh, tf.parse_collective("broadcast", root=root)) for root in range(3)]
    [4, 3, 2]
    >>> reach(mesh.on_links(3), tf.parse_collective("allgather"), in_cycles=True)
    12
    """
    latency = topology.one_latency if in_cycles else 1
    if latency is not None and collective.local:
        return latency * int(topology.distance(*_local_pairs(topology, collective)).max())
    if latency is not None and (isinstance(topology, CayleyGraph) or not collective.rooted):
        return latency * topology.diameter
    if latency is not None:
        away = topology.all_distances
        root = away[:, collective.root] if collective.to_root else away[collective.root]
        return latency * int(root.max())
    if collective.local:
        origin, target = _local_pairs(topology, collective)
        return max(int(topology.cycles_from(k)[target[origin == k]].max()) for k in set(origin))
    if collective.root is None:
        return topology.diameter_cycles
    network = topology.backwards if collective.to_root else topology
    return int(network.cycles_from(collective.root).max())


def least_reach(topology: Topology, collective: Collective) -> int:
    """Hops that some message goes, each of the fewest times: of sums of all for all, to and fro.

    An all-reduce in which 2 (N - 1) messages are sent, the fewest, comes together at one node: the
    N - 1 others have each sent once before any node has the whole sum, and each receives it then.

    Examples
    --------
    >>> import torusfabric as tf
    >>> mesh = tf.parse_topology("mesh:8x8")
    >>> [least_reach(mesh, tf.parse_collective(name)) for name in ("allgather", "allreduce")]
    [14, 16]
    """
    if collective.reducing and collective.to_all:
        away = topology.all_distances
        return int((away.max(axis=0) + away.max(axis=1)).min())
    return reach(topology, collective)


def network_cut(topology: Topology, collective: Collective) -> str:
    """The cut that makes `least_time`, for people; empty where something else does.

    Examples
    --------
    >>> import torusfabric as tf
    >>> network_cut(tf.parse_topology("mesh:4x6"), tf.parse_collective("alltoall"))
    '144 messages over 4 links into nodes 0 (0,0), 1 (0,1), 2 (0,2) and 9 more'
    """
    if collective.axes is not None:
        topology, collective = collective.groups(topology).torus, collective.in_one_group
    if isinstance(topology, CayleyGraph) or topology.nodes == 1 or collective.local:
        return ""
    cut, least = worst_cut(topology, collective), least_time(topology, collective)
    if collective.reducing and collective.to_all and worst_partition(topology).time == least:
        return str(worst_partition(topology))
    if cut is None or cut.time < least:
        return ""
    return cut_in_words(topology, cut)


@lru_cache(maxsize=64)
def _local_anywhere(topology: Topology, collective: Collective) -> Fraction:
    """`least_time` of an exchange or halo: what nodes send or receive, and what arcs carry."""
    origin, target = _local_pairs(topology, collective)
    leave, enter = topology.linked.sum(axis=1), topology.backwards.linked.sum(axis=1)
    if not collective.personal:
        pairs = np.unique(np.stack([origin, target]), axis=1)
        received = np.bincount(pairs[1], minlength=topology.nodes)
        return max(Fraction(int(a), int(b)) for a, b in zip(received, enter, strict=True))
    ends = [
        (np.bincount(node, minlength=topology.nodes), arcs)
        for node, arcs in ((origin, leave), (target, enter))
    ]
    least = max(Fraction(int(a), int(b)) for pair in ends for a, b in zip(*pair, strict=True))
    if topology.distance(origin, target).max() == 1:
        return least
    demand = np.zeros((topology.nodes, topology.nodes), np.int64)
    np.add.at(demand, (origin, target), 1)
    return max(least, congestion(topology, demand))


def _local_pairs(topology: Topology, collective: Collective) -> tuple[np.ndarray, np.ndarray]:
    """The origin and the target of each message of an exchange or halo."""
    targets = collective.targets(topology)
    origin, offset = np.nonzero(targets != NO_NODE)
    return origin, targets[origin, offset]


def arc_load(topology: CayleyGraph) -> Fraction:
    """How many of the N (N - 1) paths between all nodes some arc must carry at least.

    The paths have at least N S hops together, S the sum of all distances from a node, and there are
    N times degree arcs. On a torus the same holds for each axis: N (N / s) floor(s^2 / 4) hops on
    2 N arcs for a side s. For k equal sides this is the arc-forwarding index n^(k-1) / 2
    floor(n^2 / 4) itself, which dimension-ordered routing meets (Delmas and Perennes, Prop. 4.7).

    Other networks have it by `alike_time`.

    Returns
    -------
    Fraction
        The mean over those arcs; the largest load is at least that, rounded up.
    """
    nodes = topology.nodes
    if not isinstance(topology, Torus):
        return alike_time(topology)
    loads = [Fraction(int(topology.distances.sum(dtype=np.int64)), topology.ports)]
    return max(loads + [Fraction(nodes // side * (side**2 // 4), 2) for side in topology.sides])
