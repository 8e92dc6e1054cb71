"""All-gather along edge-disjoint Hamiltonian cycles.

Model: store-and-forward, full duplex, all ports, one hop a step, nothing stored on the way. On a
torus of d axes a message is cut into d chunks, and chunk i runs in both directions along cycle i of
d edge-disjoint Hamiltonian cycles.
"""

import numpy as np

from ....collective import Collective
from ....schedule import Pattern, Switching
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options
from ...requirements import every_port
from .cycles import colour_links, decomposable

__all__ = ["HAMILTONIAN", "pattern_of_colours"]


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """What the algorithm needs and does not get, or None."""
    if not isinstance(topology, Torus):
        return "a torus"
    if not decomposable(topology.sides):
        return "a torus other than 2 x odd, 2 x 2 x odd and 2 x 2 x 2"
    return every_port(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Pattern:
    """Plan an all-gather in ceil((N - 1) / 2) steps, the lower bound.

    Parameters
    ----------
    topology : Torus
        N nodes, any number of axes d, other than 2 x odd, 2 x 2 x odd and 2 x 2 x 2.
    collective : Collective
        All-gather.
    options : Options
        Nothing is left to choose.

    Returns
    -------
    Pattern
        Of d chunks, one for each cycle.

    Notes
    -----
    A node receives 2 d blocks a step and d (N - 1) in all, so that no algorithm with this many
    chunks takes fewer steps.

    References
    ----------
    .. [1] U. Meyer and J. F. Sibeyn, "Oblivious gossiping on tori", J. Algorithms 42 (2002),
       section 2.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> schedule = HAMILTONIAN(parse_topology("5x7"), parse_collective("allgather"))
    >>> schedule.round_count, schedule.chunks
    (17, 2)
    """
    return pattern_of_colours(topology, collective, colour_links(topology.sides))


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
        algorithm="hamiltonian",
        switching=Switching.STORE_AND_FORWARD,
        ports=topology.ports,
        chunks=links.shape[1],
        steps=topology.nodes // 2,
        feed=feed,
        inject=colours,
    )


HAMILTONIAN = Algorithm(
    name="hamiltonian",
    source="Meyer & Sibeyn 2002, section 2",
    summary="one chunk of every message both ways along each of d edge-disjoint Hamiltonian cycles",
    collectives=("allgather",),
    options=("ports",),
    misfit=misfit,
    plan=plan,
)
