"""Store-and-forward broadcast on the arrowhead torus, over spanning trees, pipelined.

A message is sent over one spanning tree, or half of it over each of two. The part of a tree is cut
into one or more *packets*, which follow each other down the tree. Rules of the model:

* store and forward: a step is one hop, and a packet that arrives in a step leaves in a later one;
* an arc carries one packet a step, and in half duplex a link carries one;
* one tree uses three ports of each node, two trees use all six.

Source: Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827,
1996, section 4. In half duplex, packets are injected in every second step only, so that the packets
of two trees never need the same link in the same step. This is not in the paper.
"""

import math

import numpy as np

from ...collective import Collective
from ...errors import InputError
from ...schedule import Duplex, Rounds, Schedule, Transfers
from ...topology import Arrowhead, Topology, Torus
from ..algorithm import Algorithm, Options
from ..oblivious import spanning_trees
from ..reversal import with_reversed_collectives

__all__ = ["SPANNING_TREE", "best_packet_count", "step_count", "build_tree"]

#: The largest number of packets. A larger one comes from a mistake in the times.
MOST_PACKETS = 2**16


def build_tree(topology: Arrowhead, index: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a spanning tree out of node 0, of depth 2^n - 1 on the arrowhead torus of order n.

    Parameters
    ----------
    index : int
        0 for the tree along the directions N, SW and SE; 1 for its mirror image along S, NE and NW.

    Returns
    -------
    port, depth : ndarray of int, shape (nodes,)
        For each node, the out-port by which its parent sends to it, and its depth in the tree. Node
        0 has depth 0 and no meaningful port.

    Notes
    -----
    The number of a node has n digits q_k to the base 4; digits 1, 2 and 3 stand for N, SW and SE.
    In tree 0, the lowest non-zero digit of a node is the direction from its parent to the node. The
    depth is the sum of 2^k over all non-zero digits q_k (Deserable 1996, Proposition 5). Tree 1 is
    tree 0 with each node replaced by its negative, which has the same lowest non-zero digit.
    """
    nodes = np.arange(topology.nodes)
    labels = topology.subtract(0, nodes) if index else nodes
    port, depth = np.zeros((2, topology.nodes), np.int32)
    for k in reversed(range(topology.order)):
        digit = labels >> 2 * k & 3
        depth += (digit > 0) << k
        port = np.where(digit > 0, digit - 1 + 3 * index, port)
    return port, depth


def _tree_count(options: Options) -> int:
    """Return the number of spanning trees over which a broadcast with `options` sends."""
    return options.trees or (options.ports or 6) // 3


def _packet_stride(options: Options, packets: int) -> int:
    """Return the number of steps from the start of one packet of a tree to that of the next one.

    The result is 1, except in half duplex with two trees and several packets. There a link carries
    one packet a step for both trees, and it has an even depth in one tree and an odd depth in the
    other (Deserable 1996, Lemma 6). A packet needs `latency` steps for each hop. So the trees never
    use the link in the same step if the result is twice the largest power of two that divides the
    latency. `options` has the duplex, the number of trees and the latency; `packets` is the number
    of packets in each tree.
    """
    both = options.duplex == Duplex.HALF and _tree_count(options) == 2 and packets > 1
    return 2 * (options.latency & -options.latency) if both else 1


def step_count(order: int, options: Options, packets: int = 1) -> int:
    """Return the number of steps of a broadcast over spanning trees of an arrowhead torus.

    With a latency of 1 and P packets in each tree, the number is 2^n - 1 + P - 1 in full duplex,
    and 2^n - 1 + 2 (P - 1) in half duplex over two trees.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead torus.
    options : Options
        The duplex, the latency of a hop in steps, and the number of trees, given by ``trees`` or
        ``ports`` (three for each tree).
    packets : int
        P, the number of packets in each tree.
    """
    if order == 0:
        return 0
    return (
        1 + options.latency * ((1 << order) - 2) + _packet_stride(options, packets) * (packets - 1)
    )


def best_packet_count(order: int, options: Options) -> int:
    """Return the number of packets in each tree for which the broadcast takes the least time.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead.
    options : Options
        ``times`` has the start-up time beta of a step, the time tau to send a unit of data, and the
        length of the message in units.

    Returns
    -------
    int
        The P >= 1 that minimises the number of steps for P packets (`step_count`) times the time of
        a step, beta + length * tau / (trees * P). The smallest such P if there are several.

    Raises
    ------
    InputError
        If beta is not positive (the time then falls with every further packet), or if beta or the
        time to send the message is no finite number.

    Notes
    -----
    Corollary 8 of Deserable (1996) takes the minimum over real P.
    """
    beta, tau, length = options.times or (0.0, 0.0, 0.0)
    share = length * tau / _tree_count(options)
    if not 0 < beta < math.inf:
        raise InputError(f"Start-up time beta must be finite and more than 0, not {beta!r}")
    if not 0 <= share < math.inf:
        raise InputError(f"Length times tau must be finite and not negative, not {length * tau!r}")
    apart = _packet_stride(options, 2)
    # steps(P) = fixed + apart P for P > 1, so that the cost is convex there
    fixed = step_count(order, options, 2) - 2 * apart
    lowest = math.sqrt(max(fixed, 0) * share / (apart * beta))

    def broadcast_time(packets: int) -> float:
        return step_count(order, options, packets) * (beta + share / packets)

    return min((1, max(1, math.floor(lowest)), max(1, math.ceil(lowest))), key=broadcast_time)


def _packet_count(order: int, options: Options) -> int:
    """Return the number of packets into which the part of the message of each tree is cut.

    `options` has this number as ``packets``, or for all trees together as ``chunks``, or has the
    ``times`` for which `best_packet_count` finds the best number. By default it is 1. `order` is
    the order n of the arrowhead torus.
    """
    if options.times:
        return best_packet_count(order, options)
    trees = _tree_count(options)
    return options.packets or max((options.chunks or trees) // trees, 1)


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if isinstance(topology, Torus):
        return spanning_trees.unsupported_reason(topology, collective, options)
    if not isinstance(topology, Arrowhead) or collective.reducing:
        return "a torus" if collective.reducing else "a torus, or an arrowhead torus"
    if options.ports not in (None, 3, 6):
        return "--ports 3 or 6"
    if options.trees not in (None, 1, 2):
        return "--trees 1 or 2"
    trees = _tree_count(options)
    if options.ports not in (None, 3 * trees):
        return f"--ports {3 * trees} for --trees {trees}"
    if options.times and (options.packets or options.chunks):
        return "either --times or a number of packets"
    packets = _packet_count(topology.order, options)
    if options.times and packets > MOST_PACKETS:
        return f"--times for at most {MOST_PACKETS} packets"
    if options.chunks not in (None, trees * packets):
        return f"--chunks {trees * packets}, {packets} for each of {trees} trees"
    return None


def plan(topology: Torus | Arrowhead, collective: Collective, options: Options) -> Schedule:
    """Plan a broadcast over spanning trees on an arrowhead torus or a torus; or an all-reduce.

    The arrowhead torus has broadcasts only, planned by `plan_arrowhead`. For a torus, `plan` of the
    module `oblivious.spanning_trees` plans both collectives.
    """
    if isinstance(topology, Arrowhead):
        return plan_arrowhead(topology, collective, options)
    return spanning_trees.plan(topology, collective, options)


def plan_arrowhead(topology: Arrowhead, collective: Collective, options: Options) -> Rounds:
    """Plan a broadcast on an arrowhead torus, over one spanning tree or two, in one packet or more.

    With two trees, each carries half of the message. The part of a tree is cut into *packets*,
    which follow each other down the tree.

    Parameters
    ----------
    topology : Arrowhead
        The arrowhead torus, of order n.
    collective : Collective
        The broadcast, with its root.
    options : Options
        The number of trees is ``trees``, or a third of ``ports``; the default is 2. The number of
        packets in each tree is ``packets``, or ``chunks`` divided by the number of trees; the
        default is 1. If ``times`` is given, it is the number for which the broadcast takes the
        least time: ``times`` has the start-up time beta of a step, the time tau to send a unit of
        data, and the length of the message in units. ``duplex``, and ``latency`` in steps, say
        when links are free.

    Returns
    -------
    Rounds
        The schedule, with a round for each step. The function `step_count` returns the number of
        steps. With one packet in each tree and a latency of 1, it is 2^n - 1, at most 3/2 of the
        lower bound, which is the diameter.

    Notes
    -----
    With a latency of 1, packet j (from 0) of a tree arrives at a node of depth d in step d + j
    (from 1), or in step d + 2 j where two trees share half-duplex links. With P packets in each
    tree, packet j of tree t is chunk t P + j.

    Source: Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996:
    Proposition 5 for one tree, Lemma 6 for two, Corollary 8 for several packets.

    Examples
    --------
    On 64 nodes (order 3), a broadcast over two trees takes 7 steps. If each half of the message is
    cut into four packets, it takes 3 steps more:

    >>> import torusfabric as tf
    >>> arrowhead, broadcast = tf.parse_topology("arrowhead:3"), tf.parse_collective("broadcast")
    >>> SPANNING_TREE(arrowhead, broadcast).round_count
    7
    >>> SPANNING_TREE(arrowhead, broadcast, tf.Options(packets=4)).round_count
    10
    """
    trees, packets = _tree_count(options), _packet_count(topology.order, options)
    root, stride = collective.root or 0, _packet_stride(options, packets)
    sent = []
    for index in range(trees):
        port, depth = build_tree(topology, index)
        child = np.argsort(depth, kind="stable")[1:]
        port, level = port[child], options.latency * (depth[child] - 1)
        source = topology.add(topology.subtract(child, topology.generators[port]), root)
        for packet in range(packets):
            chunk = np.full_like(port, index * packets + packet)
            sent.append(np.stack([level + stride * packet, source, port, chunk], dtype=np.int32))
    return Rounds(
        topology=topology,
        collective=collective,
        ports=3 * trees,
        chunks=trees * packets,
        duplex=options.duplex,
        transfers=Transfers.by_step(*np.concatenate(sent, axis=1)),
    )


SPANNING_TREE = Algorithm(
    name="spanning-tree",
    source="Edmonds 1973; Deserable 1996, section 4",
    summary="arc-disjoint trees, down which long messages stream; on an arrowhead of 4^n nodes "
    "2^n - 1 steps, and one more for each further packet",
    collectives=("broadcast", "reduce", "allreduce"),
    options=("ports", "chunks", "trees", "packets", "times", "duplex", "latency"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(plan, {"reduce": "broadcast"}),
    variants=lambda topology, collective: () if collective.kind == "allreduce" else ({"trees": 1},),
)
