"""Store-and-forward broadcast on the arrowhead torus, over spanning trees, pipelined.

Rules of the model:

* store and forward: a step is one hop, and what arrives in a step is sent on in a later one;
* a message an arc a step, and in half duplex a message a link;
* three ports for one tree, six for two, each with half of the message.

Source: Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827,
1996, section 4. Injection every second step, which keeps pipelining legal in half duplex, is not in
the paper.
"""

import math

import numpy as np

from ...errors import InputError
from ...schedule import Duplex, Listed, Rounds, Switching, Transfers
from ...topology import Arrowhead
from ..algorithm import Algorithm

__all__ = ["SPANNING_TREE", "best_packets", "step_count", "tree"]


def tree(topology, index=0):
    """A spanning tree from node 0, of depth 2^n - 1.

    Parameters
    ----------
    topology : Arrowhead
        The torus to span.
    index : int
        0: the tree along N, SW, SE; 1: its image under negation, along S, NE, NW.

    Returns
    -------
    port, depth : ndarray of int, shape (nodes,)
        The out-port of its parent by which each node is reached, and at which depth; node 0 has
        depth 0 and no meaningful port.

    Notes
    -----
    A node is reached along the generator of its lowest non-zero digit, the same for a node and its
    negative; its depth in tree 0 is the sum of 2^k over its non-zero digits q_k (Proposition 5).
    """
    nodes = np.arange(topology.nodes)
    labels = topology.subtract(0, nodes) if index else nodes
    port, depth = np.zeros((2, topology.nodes), np.int32)
    for k in reversed(range(topology.order)):
        digit = labels >> 2 * k & 3
        depth += (digit > 0) << k
        port = np.where(digit > 0, digit - 1 + 3 * index, port)
    return port, depth


def _stride(trees, packets, duplex, latency):
    """How many steps lie between two packets of a tree.

    In half duplex the two trees use a link at depths of different parity (Lemma 6), so that packets
    must be apart by twice the power of two in the latency of a hop.
    """
    return 2 * (latency & -latency) if duplex == Duplex.HALF and trees == 2 and packets > 1 else 1


def step_count(order, *, trees=2, packets=1, duplex=Duplex.FULL, latency=1):
    """Steps of the broadcast: 2^n - 1 + P - 1 in full duplex, 2^n - 1 + 2 (P - 1) in half duplex.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead.
    trees, packets, duplex, latency
        As in `Options`; packets counts those of one tree.
    """
    if order == 0:
        return 0
    stride = _stride(trees, packets, duplex, latency)
    return 1 + latency * (2**order - 2) + stride * (packets - 1)


def best_packets(order, beta, tau, length, *, trees=2, duplex=Duplex.FULL, latency=1):
    """Number of packets a tree for which the broadcast takes the least time.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead.
    beta : float
        Start-up time of a step, more than 0.
    tau : float
        Time to send a message of unit length over one link.
    length : float
        Length of the message.
    trees, duplex, latency
        As in `Options`.

    Returns
    -------
    int
        The P >= 1 that minimises steps(P) * (beta + length * tau / (trees * P)); the smallest such
        P if there are several.

    Raises
    ------
    InputError
        If beta is not positive (the more packets the better, without end), or if beta or the time
        to send the message is no finite number.

    Notes
    -----
    Corollary 8 of the paper takes the minimum over real P.
    """
    share = length * tau / trees
    if not 0 < beta < math.inf:
        raise InputError(f"Start-up time beta must be finite and more than 0, not {beta!r}")
    if not 0 <= share < math.inf:
        raise InputError(f"Length times tau must be finite and not negative, not {length * tau!r}")
    apart = _stride(trees, 2, duplex, latency)
    # steps(P) = fixed + apart P for P > 1, so that the cost is convex there
    fixed = step_count(order, trees=trees, packets=2, duplex=duplex, latency=latency) - 2 * apart
    lowest = math.sqrt(max(fixed, 0) * share / (apart * beta))

    def cost(packets):
        steps = step_count(order, trees=trees, packets=packets, duplex=duplex, latency=latency)
        return steps * (beta + share / packets)

    return min((1, max(1, math.floor(lowest)), max(1, math.ceil(lowest))), key=cost)


def _resolve(order, options):
    """Number of trees and of packets a tree, or the misfit as a string."""
    if options.ports not in (None, 3, 6):
        return "--ports 3 or 6"
    trees = options.trees or (options.ports or 6) // 3
    if options.times and options.trees in (None, 1, 2):
        if options.packets or options.chunks:
            return "either --times or a number of packets"
        ways = {"duplex": options.duplex, "latency": options.latency}
        return trees, best_packets(order, *options.times, trees=trees, **ways)
    packets = options.packets or max((options.chunks or trees) // trees, 1)
    checks = (
        (options.trees in (None, 1, 2), "--trees 1 or 2"),
        (options.ports in (None, 3 * trees), f"--ports {3 * trees} for --trees {trees}"),
        (options.packets is None or options.packets >= 1, "--packets of at least 1"),
        (options.latency >= 1, "--latency of at least 1"),
        (
            options.chunks in (None, trees * packets),
            f"--chunks {trees * packets}, {packets} for each of {trees} trees",
        ),
    )
    return next((misfit for fits, misfit in checks if not fits), (trees, packets))


def _misfit(topology, collective, options):
    if not isinstance(topology, Arrowhead):
        return "an arrowhead torus"
    resolved = _resolve(topology.order, options)
    return resolved if isinstance(resolved, str) else None


def _plan(topology, collective, options):
    """One tree (Proposition 5), two (Lemma 6), or two with pipelining (Corollary 8).

    Notes
    -----
    Packet j of a tree enters a node at step depth + j, counted from 0, or depth + 2 j where two
    trees share half-duplex links. Packet j of tree t is chunk t * packets + j.
    """
    trees, packets = _resolve(topology.order, options)
    stride = _stride(trees, packets, options.duplex, options.latency)
    steps = step_count(
        topology.order,
        trees=trees,
        packets=packets,
        duplex=options.duplex,
        latency=options.latency,
    )
    arcs = [_arcs(topology, collective.root, index, options.latency) for index in range(trees)]
    rounds = [_step(arcs, packets, stride, now) for now in range(1, steps + 1)]
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm="spanning-tree",
        switching=Switching.STORE_AND_FORWARD,
        ports=3 * trees,
        chunks=trees * packets,
        duplex=options.duplex,
        transfers=tuple(rounds),
    )


def _arcs(topology, root, index, latency):
    """The arcs of a tree by the step of their first packet.

    Returns
    -------
    source, port : ndarray of int
        The arcs of all steps, one step after another.
    bounds : ndarray of int
        Those of step t, counted from 1, are ``bounds[t - 1]`` to ``bounds[t]``.
    """
    port, depth = tree(topology, index)
    child = np.argsort(depth, kind="stable")[1:]
    port, step = port[child], 1 + latency * (depth[child] - 1)
    source = topology.add(topology.subtract(child, topology.generators[port]), root)
    bounds = np.searchsorted(step, np.arange(1, step.max(initial=0) + 2))
    return source, port.astype(np.int8), bounds


def _step(arcs, packets, stride, now):
    """What all trees send in one step."""
    # no packet may be under way: between two packets on a very short tree
    sources, ports, chunks = [np.empty(0, int)], [np.empty(0, np.int8)], [np.empty(0, int)]
    for index, (source, port, bounds) in enumerate(arcs):
        oldest = max(0, math.ceil((now - len(bounds) + 1) / stride))
        for packet in range(oldest, min(packets, (now - 1) // stride + 1)):
            first = now - stride * packet
            part = slice(bounds[first - 1], bounds[first])
            sources.append(source[part])
            ports.append(port[part])
            chunks.append(np.full(len(source[part]), index * packets + packet))
    hops = np.concatenate(ports)[:, None]
    return Transfers(np.concatenate(sources), hops, Listed.single(np.concatenate(chunks)))


SPANNING_TREE = Algorithm(
    name="spanning-tree",
    source="Deserable 1996, section 4",
    summary="2^n - 1 steps on an arrowhead of 4^n nodes, and one more for each further packet",
    collectives=("broadcast",),
    options=("ports", "chunks", "trees", "packets", "times", "duplex", "latency"),
    misfit=_misfit,
    plan=_plan,
)
