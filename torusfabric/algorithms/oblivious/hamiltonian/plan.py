"""All-gather, reduce-scatter and all-reduce along edge-disjoint Hamiltonian cycles.

Model: store-and-forward, full duplex, all ports, one hop a step, nothing stored on the way. On a
torus of d axes a message of an all-gather is cut into d chunks, and chunk i runs in both directions
along cycle i of d edge-disjoint Hamiltonian cycles. Sums go once all around each cycle, one chunk
each way, so that a node does the same with all that passes; in an all-reduce results go around once
more.
"""

from dataclasses import replace

import numpy as np

from ....collective import Collective
from ....schedule import Pattern, Schedule, SumPattern
from ....schedule.flows import Flows
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options, every_port
from .cycles import colour_links, decomposable

__all__ = ["HAMILTONIAN", "pattern_of_colours"]

#: Chunks that take turns one way around a cycle. A sum waits a step at each node, in which it is
#: added to: with two, every link is busy all the time.
TURNS = 2


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs and does not get, or None."""
    if not isinstance(topology, Torus):
        return "a torus"
    if not decomposable(topology.sides):
        return "a torus other than 2 x odd, 2 x 2 x odd and 2 x 2 x 2"
    if collective.reducing and topology.nodes == 2:
        return "a torus of more than two nodes for sums"
    if collective.reducing and not isinstance(topology.link_latency, int):
        return "links of equal latency for sums"
    return every_port(options, topology.ports) or _fitting_chunks(topology, collective, options)


def _fitting_chunks(topology: Torus, collective: Collective, options: Options) -> str | None:
    """Need chunks that are as many for each way around each cycle."""
    if options.chunks is None:
        return None
    if not collective.reducing:
        return "--chunks left out"
    least = topology.ports * _shares(topology, collective)
    return f"--chunks divisible by {least}" if options.chunks % least else None


def _shares(topology: Torus, collective: Collective) -> int:
    """Into how many shares a message is cut before it is cut into chunks."""
    return topology.nodes if collective.to_all else 1


def plan(topology: Torus, collective: Collective, options: Options) -> Schedule:
    """Plan an all-gather in ceil((N - 1) / 2) steps, the lower bound, or sums.

    A reduce-scatter takes N - 1 steps for each chunk that goes one way around a cycle, an
    all-reduce twice as many: no schedule of so many chunks takes fewer.

    Parameters
    ----------
    options : Options
        ``chunks`` of sums, by default `TURNS` for each way around each cycle; of an all-reduce for
        each node.

    Returns
    -------
    Pattern or SumPattern
        Of d chunks, one for each cycle; or of sums.

    Notes
    -----
    A node receives 2 d blocks a step and d (N - 1) in all, so that no algorithm with this many
    chunks takes fewer steps.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = HAMILTONIAN(tf.parse_topology("5x7"), tf.parse_collective("allgather"))
    >>> schedule.round_count, schedule.chunks
    (17, 2)
    >>> schedule = HAMILTONIAN(tf.parse_topology("5x7"), tf.parse_collective("reduce-scatter"))
    >>> schedule.round_count, schedule.chunks
    (68, 8)
    """
    both_ways = replace(collective, kind="allgather")
    pattern = pattern_of_colours(topology, both_ways, colour_links(topology.sides))
    if not collective.reducing:
        return pattern
    shares = _shares(topology, collective)
    chunks = options.chunks or TURNS * topology.ports * shares
    turns = chunks // (topology.ports * shares)
    return SumPattern(
        topology=topology,
        collective=collective,
        chunks=chunks,
        feed=pattern.feed,
        inject=Flows.of(pattern).flow * turns,
        turns=turns,
    )


def pattern_of_colours(topology: Torus, collective: Collective, links: np.ndarray) -> Pattern:
    """The pattern in which chunk i of every message runs both ways along the cycle of colour i.

    Parameters
    ----------
    links : ndarray of int8, shape (nodes, axes)
        The colour of the link in the positive direction of each axis, from each node.
    """
    colours = np.empty((topology.nodes, topology.ports), np.int8)
    colours[:, 0::2] = links
    for axis in range(links.shape[1]):
        behind = topology.neighbours[:, 2 * axis + 1]
        colours[:, 2 * axis + 1] = links[behind, axis]
    # Sorted by colour, the two ports of a node on one cycle are side by side.
    order = np.argsort(colours, axis=1, kind="stable").astype(np.int8)
    feed = np.empty_like(colours)
    np.put_along_axis(feed, order[:, 0::2], order[:, 1::2], axis=1)
    np.put_along_axis(feed, order[:, 1::2], order[:, 0::2], axis=1)
    return Pattern(
        topology=topology,
        collective=collective,
        chunks=links.shape[1],
        steps=topology.nodes // 2,
        feed=feed,
        inject=colours,
    )


HAMILTONIAN = Algorithm(
    name="hamiltonian",
    source="Meyer & Sibeyn 2002, section 2",
    summary="all messages, or sums, both ways along each of d edge-disjoint Hamiltonian cycles",
    collectives=("allgather", "reduce-scatter", "allreduce"),
    options=("ports", "chunks"),
    misfit=misfit,
    plan=plan,
    last_for=("allreduce",),
)
