"""Scatter and gather over arc-disjoint spanning trees, without a rest: the farthest first.

Rules of the model:

* store and forward: a step is one hop, and what arrives in a step is sent on in the next;
* a block an arc a step, on all ports.

From each port of the root a tree reaches every node, and no two trees share an arc. A block goes
down one of them, and nothing on a tree catches up with what was sent before. So the root sends by
each port the blocks for the farthest nodes first, and while the near ones leave the far ones
arrive: all are there in about as many steps as the root needs to send them. In hardware a block
passes every node in a cycle, and a router never changes what it selects. A gather is a scatter
backwards.

Source: the trees are those of `spanning_trees`. Sending the farthest first is optimal on a tree, as
in Y. Saad and M. H. Schultz, "Data communication in parallel architectures", Parallel Computing 11,
1989.
"""

from __future__ import annotations

import numpy as np

from ...collective import Collective
from ...schedule import Listed, Rounds, Transfers
from ...topology import IntArray, Topology, Torus
from ..algorithm import Algorithm, Options, every_port
from ..reversal import also_backwards
from .spanning_trees import disjoint_trees

__all__ = ["FARTHEST_FIRST", "misfit", "plan"]


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Why a selection does not fit, or None."""
    if not isinstance(topology, Torus):
        return "a torus"
    if options.chunks not in (None, 1, 2, topology.ports):
        return f"--chunks 1, 2 or {topology.ports}"
    return every_port(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a scatter.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message: 1 (the default), 2, or as many as ports.

    Returns
    -------
    Rounds
        With P ports and M chunks, ceil(M (N - 1) / P) steps, the least, or the diameter if that is
        more; or a step more where no choice of trees lets all blocks arrive by then, as on 3x3.

    Notes
    -----
    A maximum flow divides the blocks among the trees, so that at each depth and below no tree has
    more than there is time for. Blocks of a node go down different trees. Of the choices it takes
    one in which the longest detour is the least.

    Examples
    --------
    >>> from torusfabric.algorithms import find
    >>> from torusfabric.collective import parse_collective
    >>> scatter = find("farthest-first")(Torus(8, 8), parse_collective("scatter"))
    >>> scatter.round_count, (64 - 1) / 4
    (16, 15.75)
    """
    root, chunks = collective.root or 0, options.chunks or 1
    entry, depth = disjoint_trees(topology)
    steps, (tree, node) = _divided(topology, depth, chunks)
    step, index, sender, out = _hops(topology, topology.opposite[entry], depth, tree, node)
    chunk = np.arange(len(node)) - np.searchsorted(node, node)
    blocks = collective.blocks(topology, chunks)
    block = blocks.encode(root, chunk, topology.add(node, root))
    of_step = (np.flatnonzero(step == number) for number in range(steps))
    return Rounds(
        topology=topology,
        collective=collective,
        chunks=chunks,
        transfers=tuple(
            Transfers(
                topology.add(sender[k], root),
                out[k][:, None].astype(np.int8),
                Listed.single(block[index[k]]),
            )
            for k in of_step
        ),
    )


def _divided(torus: Torus, depth: IntArray, chunks: int) -> tuple[int, IntArray]:
    """The fewest steps, and the trees of all blocks, as `_choice` says."""
    steps = max(-(-chunks * (torus.nodes - 1) // torus.ports), torus.diameter)
    deepest = int(depth.max())
    while (some := _choice(torus, depth, chunks, steps, deepest)) is None:
        steps += 1
    found = (_choice(torus, depth, chunks, steps, detour) for detour in range(deepest))
    return steps, next((choice for choice in found if choice is not None), some)


def _choice(torus: Torus, depth: IntArray, chunks: int, steps: int, detour: int) -> IntArray | None:
    """A tree for each block, with so many hops more than the distance at the most; None if none.

    Of those at some depth and below, a tree takes as many as can be sent in time for that depth. So
    a flow goes from nodes to the trees at their depths, and on from depth to depth. Rows of what
    comes out are the tree and the node of each block, by nodes.
    """
    # Imported here, since that takes longer than a plan that does without it.
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    (trees, nodes), deepest = depth.shape, int(depth.max())
    source, sink, first, node = 0, nodes, nodes + 1, np.arange(1, nodes)
    fits, fitting = np.nonzero(depth[:, 1:] <= torus.distances[1:] + detour)
    level = first + deepest * np.arange(trees)[:, None] + np.arange(deepest)
    above = np.hstack([np.full((trees, 1), sink), level[:, :-1]])
    room = np.maximum(steps - np.arange(deepest), 0) + np.zeros((trees, 1), int)
    tail = np.concatenate([0 * node + source, fitting + 1, level.ravel()])
    head = np.concatenate([node, level[fits, depth[fits, fitting + 1] - 1], above.ravel()])
    units = np.concatenate([0 * node + chunks, 0 * fits + 1, room.ravel()]).astype(np.int32)
    shape = (first + trees * deepest,) * 2
    found = maximum_flow(csr_array(coo_array((units, (tail, head)), shape=shape)), source, sink)
    if found.flow_value < chunks * len(node):
        return None
    taken, at = np.nonzero(found.flow[node][:, first:].toarray() > 0)
    choice: IntArray = np.stack([at // deepest, taken + 1])
    return choice


def _hops(
    torus: Torus, port: IntArray, depth: IntArray, tree: IntArray, node: IntArray
) -> IntArray:
    """All hops of blocks for nodes down trees, in each of these the farthest first.

    Rows are the step, the index of the block, the sender and its out-port.
    """
    length = depth[tree, node]
    order = np.lexsort((-length, tree))
    start = np.empty_like(length)
    start[order] = np.arange(len(order)) - np.searchsorted(tree[order], tree[order])
    found, index = [], np.arange(len(node))
    for back in range(int(length.max(initial=0))):
        index = index[length[index] > back]
        out = port[tree[index], node[index]]
        node = node.copy()
        node[index] = torus.subtract(node[index], torus.generators[out])
        found.append(np.stack([(start + length)[index] - 1 - back, index, node[index], out]))
    return np.concatenate(found, axis=1)


FARTHEST_FIRST = Algorithm(
    name="farthest-first",
    source="beyond the papers; compare Saad and Schultz 1989",
    summary="blocks pass on without a rest, those for the farthest nodes first",
    collectives=("scatter", "gather"),
    options=("ports", "chunks"),
    misfit=misfit,
    plan=also_backwards(plan, {"gather": "scatter"}),
    variants=lambda topology, collective: [
        {"chunks": chunks} for chunks in sorted({2, topology.ports})
    ],
)
