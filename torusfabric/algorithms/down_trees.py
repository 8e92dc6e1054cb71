"""Blocks from a root down trees that share no arc, without a rest, the farthest first.

Nothing on a tree catches up with what was sent before. So the root sends by each tree the blocks
for the farthest nodes first, and while the near ones leave the far ones arrive: all are there in
about as many steps as the root needs to send them.
"""

import numpy as np

from ..collective import Blocks
from ..schedule import Transfers
from ..topology import BoolArray, CayleyGraph, IntArray
from .oblivious.shallow_trees import Trees

__all__ = ["down_trees", "share_trees"]


def share_trees(
    trees: Trees, able: BoolArray, chunks: int, steps: int, *, most: int, latency: int = 1
) -> IntArray | None:
    """The tree of each block, if all can arrive in so many steps.

    Parameters
    ----------
    trees : Trees
        Out of node 0.
    able : ndarray of bool, shape (trees, nodes)
        Which trees each node may have its blocks from.
    most : int
        How many blocks of a node may go down the same tree.

    Returns
    -------
    ndarray of int, shape (2, blocks), or None
        The tree and the node of each block, by nodes.

    Notes
    -----
    Of those at some depth and below, a tree takes as many as can be sent in time for that depth.
    So a maximum flow goes from nodes to the trees at their depths, and on from depth to depth.
    """
    # Imported here, since that takes longer than a plan that does without it.
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    depth = trees.depth
    (count, nodes), deepest = depth.shape, int(depth.max())
    source, sink, first, node = 0, nodes, nodes + 1, np.arange(1, nodes)
    tree, fitting = np.nonzero(able[:, 1:])
    level = first + deepest * np.arange(count)[:, None] + np.arange(deepest)
    above = np.hstack([np.full((count, 1), sink), level[:, :-1]])
    room = np.maximum(steps - latency * np.arange(deepest), 0) + np.zeros((count, 1), int)
    tail = np.concatenate([0 * node + source, fitting + 1, level.ravel()])
    head = np.concatenate([node, level[tree, depth[tree, fitting + 1] - 1], above.ravel()])
    units = np.concatenate([0 * node + chunks, 0 * tree + most, room.ravel()]).astype(np.int32)
    graph = csr_array(coo_array((units, (tail, head)), shape=(first + count * deepest,) * 2))
    found = maximum_flow(graph, source, sink)
    if found.flow_value < chunks * len(node):
        return None
    flow = found.flow[node][:, first:].toarray()
    taken, at = np.nonzero(flow > 0)
    choice: IntArray = np.stack([at // deepest, taken + 1])
    return np.repeat(choice, flow[taken, at], axis=1)


def down_trees(
    topology: CayleyGraph, root: int, blocks: Blocks, trees: Trees, choice: IntArray,
    *, latency: int = 1,
) -> tuple[Transfers, ...]:  # fmt: skip
    """The steps in which blocks go down trees, given the tree and the node of each, by nodes."""
    tree, node = choice
    chunk = np.arange(len(node)) - np.searchsorted(node, node)
    block = blocks.encode(root, chunk, topology.add(node, root))
    length = trees.depth[tree, node]
    order = np.lexsort((-length, tree))
    start = np.empty_like(length)
    start[order] = np.arange(len(order)) - np.searchsorted(tree[order], tree[order])
    found, index = [], np.arange(len(node))
    for back in range(int(length.max(initial=0))):
        index = index[length[index] > back]
        out = topology.opposite[trees.entry[tree[index], node[index]]]
        node = node.copy()
        node[index] = topology.subtract(node[index], topology.generators[out])
        when = start[index] + latency * (length[index] - 1 - back)
        found.append(np.stack([when, topology.add(node[index], root), out, block[index]]))
    return Transfers.by_step(*np.concatenate(found, axis=1))
