"""Lower bounds on the time of a collective from the volume of its messages.

They hold for any way to cut messages, and for any schedule.

Times are in *message times*. One message time is the time in which a link carries one whole message
of a node; if each destination gets a message of its own, one such message. Message times compare
schedules whose steps have different lengths.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from ..collective import NO_NODE, Collective
from ..schedule import Duplex, Switching
from ..topology import CayleyGraph, Topology, Torus, at_equal_rates
from .congestion import congestion_time, exchange_time, symmetric_exchange_time
from .cuts import cut_text, worst_cut
from .irregular import irregular_least_time, irregular_limit_text, irregular_longest_distance
from .partitions import worst_partition

__all__ = ["busiest_arc_load", "least_beat", "least_path_length", "least_time", "cycle_limit",
           "limiting_cut_text", "longest_distance"]  # fmt: skip


def least_time(
    topology: Topology,
    collective: Collective,
    *,
    switching: Switching = Switching.STORE_AND_FORWARD,
    ports: int | None = None,
    duplex: Duplex = Duplex.FULL,
) -> Fraction:
    """Return a lower bound on the time of a collective, in message times, for every schedule.

    Parameters
    ----------
    collective : Collective
        The collective, in one group or several.
    ports : int, optional
        Messages that a node may send, or receive, at once; by default one for each port.

    Notes
    -----
    Let N be the nodes of a group, P the ports that a node may use, and S the sum of all distances
    from a node. If the network looks the same from each node:

    - Broadcast, reduce: each node, or the root, receives one message by P ports.
    - Scatter, gather: N - 1 messages leave the root, or arrive there, by P ports.
    - All-gather, reduce-scatter: each node receives N - 1 messages, or sends N - 1 sums. All nodes
      together receive N P messages at once, in half duplex at most one for each link.
    - All-reduce: all nodes together receive each part of a message 2 (N - 1) times, even if partial
      sums are copied. Proof: order the arrivals in time. Before the first node has the complete
      sum, each other node has sent once. After that, each other node still has to receive.
    - Exchange: a node receives a message for each offset. The messages also have to travel to their
      offsets, as in an all-to-all; on a torus this holds for each axis, with a choice between the
      two ways round. Halo: a node receives a message from each different node at an offset.
    - All-to-all: the messages travel N S hops in all; on a torus a similar bound holds for each
      axis (`busiest_arc_load`). A circuit holds all arcs of its path at once, so with circuit
      switching the limit is the number of arcs, even if a node uses few ports.

    On other networks the bound is that of `worst_cut`. For an all-reduce, `worst_partition` gives
    another bound, and for an all-to-all `exchange_time` does.

    Examples
    --------
    Each of 36 nodes receives 35 messages by four ports:

    >>> import torusfabric as tf
    >>> least_time(tf.Torus(6, 6), tf.parse_collective("allgather"))
    Fraction(35, 4)
    """
    if (multiple := topology.spacing_multiple) > 1:
        network, most = at_equal_rates(topology), None if ports is None else ports * multiple
        return multiple * least_time(
            network, collective, switching=switching, ports=most, duplex=duplex
        )
    if collective.is_irregular:
        return irregular_least_time(topology, collective, ports)
    if collective.axes is not None:
        topology, collective = collective.groups(topology).group_topology, collective.in_one_group
    nodes, degree = topology.nodes, topology.ports
    if nodes == 1:
        return Fraction(0)
    if not isinstance(topology, CayleyGraph):
        if collective.local:
            return _local_exchange_time(topology, collective)
        cut = worst_cut(topology, collective)
        assert cut is not None
        several = collective.personal or collective.from_each
        least = [cut.message_times]
        if ports is not None:
            least.append(Fraction(nodes - 1 if several else 1, ports))
        if collective.reducing and collective.to_all:
            least.append(worst_partition(topology).message_times)
        elif collective.from_each and collective.personal and not collective.reducing:
            least.append(exchange_time(topology, max(least)))
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
    return max(received, hops / arcs, busiest_arc_load(topology) * half)


def _shift_time(torus: Torus, offsets: np.ndarray) -> Fraction:
    """Return the least message times of the busiest axis in an exchange on a torus.

    `offsets` has each offset as the number of the node to which it leads from node 0; each node
    sends a message to each offset. Along an axis of side s, a message with offset d makes d hops
    one way or s - d hops the other way, and its parts may go different ways. The time is least when
    both directions are equally busy. To balance them, messages change direction in the order in
    which this costs the fewest additional hops.
    """
    least = Fraction(0)
    for side, moved in zip(torus.sides, torus.coordinates(offsets), strict=True):
        onward, back = int(moved.sum()), 0
        for hops in sorted(moved[moved > 0].tolist(), reverse=True):
            # Turn the part of this message that makes both directions equal, at most all of it.
            part = min(max(Fraction(onward - back, side), Fraction(0)), Fraction(1))
            onward, back = onward - part * hops, back + part * (side - hops)
        least = max(least, Fraction(onward), Fraction(back))
    return least


def cycle_limit(topology: Topology, collective: Collective, flits: int) -> int:
    """Return the cycles that any hardware needs if a link carries one flit a cycle.

    Parameters
    ----------
    collective : Collective
        The collective, in one group or several.
    flits : int
        Flits of a message.

    Returns
    -------
    int
        The larger of two bounds: the cycles for the volume on the links (`least_time`), and the
        link latency along the shortest path of the farthest flit.

    Examples
    --------
    A broadcast of 64 flits enters each node by four links, with 16 flits on each. A broadcast of a
    single flit is limited by the eight hops to the farthest node:

    >>> import torusfabric as tf
    >>> broadcast = tf.parse_collective("broadcast")
    >>> cycle_limit(tf.Torus(8, 8), broadcast, 64), cycle_limit(tf.Torus(8, 8), broadcast, 1)
    (16, 8)
    """
    if collective.is_irregular:
        far = longest_distance(topology, collective, in_cycles=True)
    else:
        group = collective.groups(topology).group_topology
        far = longest_distance(group, collective.in_one_group, in_cycles=True)
    return max(ceil(least_time(topology, collective) * flits), far)


def least_beat(topology: Topology, collective: Collective, flits: int) -> int:
    """Return the smallest beat (flits per cycle) with which a host port or stream is fast enough.

    With this beat, the port of a node takes no more cycles for the words of a run than its links.

    Parameters
    ----------
    flits : int
        Flits of a message.

    Returns
    -------
    int
        The least power of two, up to `flits`. The message of a node to itself is not counted,
        because it need not pass the port at the same time.

    Examples
    --------
    In a 4x4 torus, four links deliver the 15 messages of an all-gather. A port of four flits a
    cycle keeps up with them:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> [least_beat(Torus(4, 4), parse_collective(name), 64) for name in ("allgather", "alltoall")]
    [4, 2]
    """
    blocks = collective.blocks(topology, 1)
    messages, least = (
        max(blocks.messages_per_origin, blocks.messages_per_receiver),
        cycle_limit(topology, collective, flits),
    )
    found = 1
    while 2 * found <= flits and -(-flits // found) * max(messages - 1, 1) > least:
        found *= 2
    return found


def longest_distance(topology: Topology, collective: Collective, *, in_cycles: bool = False) -> int:
    """Return the largest distance in hops over which the collective has to move data.

    This is the distance from the root or to the root, or between any two nodes.

    Parameters
    ----------
    in_cycles : bool
        True to count the link latency in cycles instead of hops.

    Examples
    --------
    In a line of five nodes, the distance depends on the root. With a link latency of three cycles,
    the ends of the line are 12 cycles apart:

    >>> import torusfabric as tf
    >>> mesh = tf.parse_topology("mesh:5")
    >>> [longest_distance(mesh, tf.parse_collective("broadcast", root=root)) for root in range(3)]
    [4, 3, 2]
    >>> longest_distance(mesh.on_links(3), tf.parse_collective("allgather"), in_cycles=True)
    12
    """
    if collective.is_irregular:
        return irregular_longest_distance(topology, collective, in_cycles=in_cycles)
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


def least_path_length(topology: Topology, collective: Collective) -> int:
    """Return the hops of the longest path of data in schedules that send the fewest messages.

    An all-reduce sends at least 2 (N - 1) messages. With exactly that many, all contributions are
    gathered at one node: each of the N - 1 other nodes sends once before any node has the complete
    sum, and receives once after that. The path leads to that node and back. Any other collective
    has the value of `longest_distance`.

    Examples
    --------
    An all-gather on the mesh needs paths from corner to corner. An all-reduce needs paths to a node
    in the middle and back:

    >>> import torusfabric as tf
    >>> mesh = tf.parse_topology("mesh:8x8")
    >>> [least_path_length(mesh, tf.parse_collective(name)) for name in ("allgather", "allreduce")]
    [14, 16]
    """
    if collective.reducing and collective.to_all and not collective.is_irregular:
        away = topology.all_distances
        return int((away.max(axis=0) + away.max(axis=1)).min())
    return longest_distance(topology, collective)


def limiting_cut_text(topology: Topology, collective: Collective) -> str:
    """Return text about the set of nodes whose links determine `least_time`, if there is one.

    Otherwise the text is empty.

    Parameters
    ----------
    collective : Collective
        The collective, in one group or several.

    Examples
    --------
    Each of 12 nodes receives 12 messages from the other half of the mesh:

    >>> import torusfabric as tf
    >>> limiting_cut_text(tf.parse_topology("mesh:4x6"), tf.parse_collective("alltoall"))
    '144 messages over 4 links into nodes 0 (0,0), 1 (0,1), 2 (0,2) and 9 more'
    """
    if (multiple := topology.spacing_multiple) > 1:
        text = limiting_cut_text(at_equal_rates(topology), collective)
        return text and f"{text}, where a link of a flit a cycle counts {multiple} times"
    if collective.axes is not None:
        topology, collective = collective.groups(topology).group_topology, collective.in_one_group
    if collective.is_irregular:
        return irregular_limit_text(topology, collective)
    if isinstance(topology, CayleyGraph) or topology.nodes == 1 or collective.local:
        return ""
    cut, least = worst_cut(topology, collective), least_time(topology, collective)
    if (
        collective.reducing
        and collective.to_all
        and worst_partition(topology).message_times == least
    ):
        return str(worst_partition(topology))
    if cut is None or cut.message_times < least:
        return ""
    return cut_text(topology, cut)


@lru_cache(maxsize=64)
def _local_exchange_time(topology: Topology, collective: Collective) -> Fraction:
    """Return `least_time` for an exchange or halo on a network whose nodes are not alike.

    The number of messages that a node must receive (in an exchange, also that it must send) is
    divided by its number of links. The result is the largest quotient of all nodes. In an exchange,
    the result is at least the bound on the load of the busiest arc.
    """
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
    return max(least, congestion_time(topology, demand))


def _local_pairs(topology: Topology, collective: Collective) -> tuple[np.ndarray, np.ndarray]:
    """Return the origins and the receivers of all messages of `collective`, an exchange or halo.

    These are two arrays with one entry for each message.
    """
    targets = collective.targets(topology)
    origin, offset = np.nonzero(targets != NO_NODE)
    return origin, targets[origin, offset]


def busiest_arc_load(topology: CayleyGraph) -> Fraction:
    """Return a lower bound on the load of the busiest arc in an all-to-all.

    The load is the number of paths over the arc, if there is one path from each node to each other
    node. Let S be the sum of all distances from a node. The paths have at least N S hops in total,
    on N times degree arcs. On a torus, the same argument holds for each axis: an axis of side s has
    N (N / s) floor(s^2 / 4) hops on 2 N arcs. For k equal sides n this equals the arc-forwarding
    index n^(k-1) / 2 floor(n^2 / 4), which dimension-ordered routing reaches (Delmas and Perennes,
    Prop. 4.7).

    On other networks the bound is `symmetric_exchange_time`.

    Returns
    -------
    Fraction
        The mean load over those arcs. The largest load is at least this number, rounded up.
    """
    nodes = topology.nodes
    if not isinstance(topology, Torus):
        return symmetric_exchange_time(topology)
    loads = [Fraction(int(topology.distances.sum(dtype=np.int64)), topology.ports)]
    return max(loads + [Fraction(nodes // side * (side**2 // 4), 2) for side in topology.sides])
