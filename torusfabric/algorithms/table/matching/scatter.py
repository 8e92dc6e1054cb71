"""Scatter at its lower bound: one tree a port of the root, no arc in two of them.

The root sends a block on each of its ports in every step, blocks for far nodes first, and every
block travels to its destination without a stop, on a shortest route. Blocks that left by the same
port can never meet: an arc lies at one distance from the root, and they left in different steps.
Blocks that left by different ports never meet because the trees of the ports share no arc.
"""

import numpy as np

from ....analysis.distance_bounds import delivery_steps
from ....collective import Blocks
from ....schedule import Listed, Transfers
from ....topology import CayleyGraph
from ..bipartite import match

__all__ = ["port_trees", "scatter"]


def port_trees(topology: CayleyGraph) -> np.ndarray:
    """Grow a tree of shortest routes from each port of node 0, no arc in two trees.

    Returns
    -------
    ndarray of int, shape (nodes, ports)
        For each node and tree the port of the last hop to the node, -1 where it is not in the tree.

    Notes
    -----
    Level by level, the arcs that lead to a node from the level before are matched to trees that
    have reached the arc's tail. On a torus this puts a node with j non-zero digits into j trees
    at least.
    """
    distance, neighbours = topology.distances, topology.neighbours
    last = np.full((topology.nodes, topology.ports), -1)
    opposite, sizes = topology.opposite.tolist(), [0] * topology.ports
    for node in np.argsort(distance, kind="stable").tolist():
        tails = [(port, neighbours[node, back]) for port, back in enumerate(opposite)]
        arcs = [(port, tail) for port, tail in tails if distance[tail] < distance[node]]
        if distance[node] == 1:
            reached = [[port] for port, _ in arcs]
        else:
            reached = [
                sorted(np.nonzero(last[tail] >= 0)[0].tolist(), key=sizes.__getitem__)
                for _, tail in arcs
            ]
        for arc, tree in match(reached).items():
            last[node, tree] = arcs[arc][0]
            sizes[tree] += 1
    return last


def scatter(
    topology: CayleyGraph, root: int, blocks: Blocks, latency: int = 1
) -> tuple[Transfers, ...]:
    """Plan a scatter in the fewest steps that these trees allow.

    Parameters
    ----------
    latency : int
        What arrives in step t leaves in step t + latency or later.

    Returns
    -------
    tuple of Transfers
        One entry a step; the bound is `delivery_steps`.
    """
    if topology.nodes == 1:
        return ()
    last, chunks = port_trees(topology), blocks.chunks
    steps = delivery_steps(topology, chunks, latency)
    while (shares := _share(topology, last, chunks, latency, steps)) is None:
        steps += 1
    destination, chunk, tree, launch = _launches(topology, shares)
    ids = blocks.encode(np.full_like(destination, root), chunk, topology.add(destination, root))
    hops = _climb(topology, last, destination, np.stack([tree, launch, ids]))
    step, tail, port, ids = np.concatenate(hops, axis=1)
    source = topology.add(tail, root)
    step = step + topology.distances[tail].astype(np.int64) * latency
    return tuple(
        Transfers(source[now], port[now, None].astype(np.int8), Listed.single(ids[now]))
        for now in (np.nonzero(step == number)[0] for number in range(steps))
    )


def _climb(
    topology: CayleyGraph, last: np.ndarray, node: np.ndarray, blocks: np.ndarray
) -> list[np.ndarray]:
    """The hops of blocks from their destinations back to node 0, an array for each distance.

    Its rows are the step in which the block was launched, tail and port of the hop, and the block.
    """
    hops = []
    while len(node):
        tree, launch, ids = blocks
        port = last[node, tree]
        node = topology.neighbours[node, topology.opposite[port]]
        hops.append(np.stack([launch, node, port, ids]))
        node, blocks = node[node != 0], blocks[:, node != 0]
    return hops


def _share(
    topology: CayleyGraph, last: np.ndarray, chunks: int, latency: int, steps: int
) -> np.ndarray | None:
    """How many chunks of each node each tree takes so that all arrive in time, or None.

    A tree must start its blocks for nodes at distance d or more within the first
    ``steps - (d - 1) * latency`` steps. For all d, these limits are the capacities of a chain of
    arcs, from far to near, so that a maximum flow finds the shares.
    """
    # Imported here, since that takes longer than a plan that does without it.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    nodes, ports, levels = topology.nodes, topology.ports, topology.diameter
    chain = nodes + np.arange(levels * ports).reshape(levels, ports)
    source, sink = 0, nodes + levels * ports
    room = np.maximum(steps - np.arange(levels) * latency, 0)
    below = np.concatenate([np.full((1, ports), sink), chain[:-1]])
    node, tree = np.nonzero(last >= 0)
    tail = np.concatenate([np.zeros(nodes - 1, int), node, chain.ravel()])
    head = np.concatenate(
        [np.arange(1, nodes), chain[topology.distances[node] - 1, tree], below.ravel()]
    )
    limit = np.concatenate([np.full(nodes - 1 + len(node), chunks), np.repeat(room, ports)])
    graph = coo_array((limit.astype(np.int32), (tail, head)), shape=(sink + 1, sink + 1))
    found = maximum_flow(graph.tocsr(), source, sink)
    if found.flow_value < chunks * (nodes - 1):
        return None
    shares = np.zeros((nodes, ports), dtype=np.int64)
    shares[node, tree] = found.flow[node, chain[topology.distances[node] - 1, tree]]
    return shares


def _launches(
    topology: CayleyGraph, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Destination, chunk, tree and step, counted from 0, of each block: far nodes first."""
    node, tree = np.nonzero(shares)
    count = shares[node, tree]
    before = np.cumsum(shares, axis=1) - shares
    chunk = _ramp(count) + np.repeat(before[node, tree], count)
    node, tree = np.repeat(node, count), np.repeat(tree, count)
    order = np.lexsort((chunk, node, -topology.distances[node], tree))
    node, tree, chunk = node[order], tree[order], chunk[order]
    return node, chunk, tree, _ramp(np.bincount(tree))


def _ramp(counts: np.ndarray) -> np.ndarray:
    """Concatenated ranges: 0 .. c - 1 for each count c."""
    before = np.cumsum(counts) - counts
    return np.asarray(np.arange(counts.sum()) - np.repeat(before, counts))
