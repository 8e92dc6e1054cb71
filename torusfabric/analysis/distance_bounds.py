"""Lower bounds on steps of one hop that follow from distances alone.

They hold on any Cayley graph of an abelian group, where all nodes see the same distances. Planners
aim at them, and `bounds` compares their schedules with them.
"""

import numpy as np

from ..topology import CayleyGraph, IntArray

__all__ = ["delivery_steps", "parities", "bufferless_steps"]


def delivery_steps(
    topology: CayleyGraph, chunks: int = 1, latency: int = 1, capacity: int | None = None
) -> int:
    """Steps that no all-gather, and no scatter, can do without.

    Parameters
    ----------
    chunks : int
        M, the chunks of a message.
    latency : int
        Steps from the arrival of a block to its departure.
    capacity : int, optional
        Blocks that a node may receive in a step, by default one a port.

    Notes
    -----
    An all-gather delivers at most so many blocks in a step, and none farther than the steps so far
    allow; in a scatter, the same holds for blocks that leave the root, counted from the last step
    back. On a torus with sides of at least 3 and latency 1 this comes to
    max(ceil(M (N - 1) / ports), diameter). Sides of 2, with two links to the same node, can add a
    step for M = 1: not all ports have a block to deliver in the first step.

    Examples
    --------
    >>> from torusfabric.topology import Torus
    >>> delivery_steps(Torus(8, 8))
    16
    """
    capacity = capacity or topology.ports
    within = chunks * (np.cumsum(np.bincount(topology.distances)) - 1)
    delivered = steps = 0
    while delivered < within[-1]:
        farthest = min(1 + steps // latency, len(within) - 1)
        if farthest == len(within) - 1:
            return steps + -(-(int(within[-1]) - delivered) // capacity)
        delivered = min(delivered + capacity, int(within[farthest]))
        steps += 1
    return steps


def bufferless_steps(topology: CayleyGraph, chunks: int = 1) -> int:
    """Steps that no all-gather can do without in which no block ever rests.

    Parameters
    ----------
    chunks : int
        M, the chunks of a message, which all leave their origin in the first step.

    Notes
    -----
    `delivery_steps` holds. If the network is bipartite (a torus with all sides even), only offsets
    at an odd distance are reached in odd steps and only others in even steps: with G ports and half
    of the nodes in each part, max(2 ceil((M N / 2) / G) - 1, 2 ceil(M (N / 2 - 1) / G)). The first
    step reaches fewer than G where two ports lead to the same node.
    """
    least, ports = delivery_steps(topology, chunks), topology.ports
    parity = parities(topology)
    if not parity.any():
        return least
    odd = int(parity.sum())
    even = topology.nodes - odd - 1
    after_first = chunks * odd - min(ports, chunks * len(np.unique(topology.generators)))
    return max(least, 2 * -(-after_first // ports) + 1, 2 * -(-chunks * even // ports))


def parities(topology: CayleyGraph) -> IntArray:
    """Parity of the distance of each node if the network is bipartite, else 0."""
    parity = topology.distances % 2
    bipartite = (parity[topology.neighbours] != parity[:, None]).all()
    return parity if bipartite and topology.nodes > 1 else np.zeros_like(parity)
