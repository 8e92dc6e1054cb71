"""Lower bounds on steps of one hop that follow from distances alone.

They hold for Cayley graphs of abelian groups, where all nodes see the same distances. Planners use
them as goals, and `bounds` compares schedules with them.
"""

import numpy as np

from ..topology import CayleyGraph, IntArray

__all__ = ["delivery_steps", "node_parities", "bufferless_steps"]


def delivery_steps(
    topology: CayleyGraph, chunks: int = 1, latency: int = 1, capacity: int | None = None
) -> int:
    """Return a number of steps that every all-gather, and every scatter, needs.

    Parameters
    ----------
    chunks : int
        Number M of chunks of a message.
    latency : int
        Steps from the arrival of a block to its departure.
    capacity : int, optional
        Blocks that a node may receive in a step; by default one for each port.

    Notes
    -----
    In each step of an all-gather, a node receives at most `capacity` blocks. With latency 1, a
    block received in step t has an origin at most t hops away. In a scatter, the same holds for the
    blocks that leave the root, counted from the last step backwards. On a torus with sides of at
    least 3 and latency 1 the result is max(ceil(M (N - 1) / ports), diameter). A side of 2, with
    two links to the same node, can add a step for M = 1, because not all ports have a block to
    deliver in the first step.

    Examples
    --------
    Each node receives 63 blocks, at most four in each step:

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
    """Return a number of steps that every all-gather without buffers needs.

    Without buffers no block ever rests: a node sends a block only in the step after its arrival.

    Parameters
    ----------
    chunks : int
        Number M of chunks of a message; all of them leave their origin in the first step.

    Notes
    -----
    The bound of `delivery_steps` holds. If the network is bipartite (such as a torus with all sides
    even), odd steps deliver only to offsets at an odd distance, and even steps only to the others.
    With G ports and half of the nodes in each part, this gives max(2 ceil((M N / 2) / G) - 1, 2
    ceil(M (N / 2 - 1) / G)). The first step delivers fewer than G blocks if two ports lead to the
    same node.
    """
    least, ports = delivery_steps(topology, chunks), topology.ports
    parity = node_parities(topology)
    if not parity.any():
        return least
    odd = int(parity.sum())
    even = topology.nodes - odd - 1
    after_first = chunks * odd - min(ports, chunks * len(np.unique(topology.generators)))
    return max(least, 2 * -(-after_first // ports) + 1, 2 * -(-chunks * even // ports))


def node_parities(topology: CayleyGraph) -> IntArray:
    """Return the distance of each node from node 0 modulo 2, as an array of 0 and 1.

    If the network is not bipartite, all entries are 0.
    """
    parity = topology.distances % 2
    bipartite = (parity[topology.neighbours] != parity[:, None]).all()
    return parity if bipartite and topology.nodes > 1 else np.zeros_like(parity)
