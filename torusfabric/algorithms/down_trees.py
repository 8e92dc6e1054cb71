"""Scatter down arc-disjoint trees without a pause, blocks for the farthest nodes first.

On a tree, blocks move one hop a step, so no block catches up with a block sent before it. The root
sends by each tree the blocks for its farthest nodes first. While blocks for near nodes leave the
root, the far ones still travel, and all arrive in about as many steps as the root needs to send.

`assign_blocks_to_trees` assigns blocks to trees, and `schedule_down_trees` makes the steps. Users
are the algorithms `matching` and `farthest-first`.
"""

import numpy as np

from ..collective import Blocks
from ..schedule import Transfers
from ..topology import BoolArray, CayleyGraph, IntArray
from .oblivious.shallow_trees import Trees

__all__ = ["schedule_down_trees", "assign_blocks_to_trees"]


def assign_blocks_to_trees(
    trees: Trees, able: BoolArray, chunks: int, steps: int, *, most: int, latency: int = 1
) -> IntArray | None:
    """Assign blocks to trees so that all blocks arrive in a number of steps, if that is possible.

    Parameters
    ----------
    trees : Trees
        Arc-disjoint trees out of node 0.
    able : ndarray of bool, shape (trees, nodes)
        True where a node may receive blocks from a tree.
    chunks : int
        Number of blocks for each node, which is the number of chunks of a message.
    steps : int
        Steps after which all blocks must have arrived.
    most : int
        The largest number of blocks for one node that go down the same tree.
    latency : int
        Number of steps from the arrival of a block at a node to its departure.

    Returns
    -------
    ndarray of int, shape (2, blocks), or None
        The index of the tree and the node of each block, sorted by node; None if not all blocks can
        arrive in time.

    Notes
    -----
    A block for depth k has to leave the root by step `steps` - `latency` * (k - 1). So a tree can
    take at most that number of blocks for depth k and deeper. A maximum flow checks this: it goes
    from each node to the trees at the node's depth, then from depth k to depth k - 1 of the same
    tree with this capacity.
    """
    # Imported here, because the import takes longer than a plan without it.
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


def schedule_down_trees(
    topology: CayleyGraph, root: int, blocks: Blocks, trees: Trees, choice: IntArray,
    *, latency: int = 1,
) -> tuple[Transfers, ...]:  # fmt: skip
    """Return the transfers of each step of a scatter, in which each block goes down a given tree.

    The blocks of a tree leave the root one after another, those for the deepest nodes first.

    Parameters
    ----------
    root : int
        The root; `trees` are those of node 0, and are translated.
    blocks : Blocks
        The numbering of blocks.
    choice : ndarray of int, shape (2, blocks)
        The tree and the node of each block, as `assign_blocks_to_trees` returns them.
    latency : int
        Steps from the arrival of a block at a node to its departure.
    """
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
