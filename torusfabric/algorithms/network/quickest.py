"""The quickest routes of blocks from one node to others, by flows over time.

All blocks start at the root, so blocks can exchange their routes. The *time-expanded network* has a
copy of each node for each step. Its maximum flow tells whether a number of steps is enough. Nodes
keep waiting blocks; an arc carries one block a step.

Source: L. R. Ford, D. R. Fulkerson, "Constructing maximal dynamic flows from static flows",
Operations Research 6, 1958.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...schedule import Transfers
from ...topology import BoolArray, IntArray

__all__ = ["quickest_steps"]

#: The most arcs times steps of a flow; this size takes about a second.
WORK_LIMIT = 60_000


def quickest_steps(
    arcs: WeightedArcs, root: int, target: IntArray, blocks: IntArray, steps: range
) -> tuple[Transfers, ...] | None:
    """Send blocks from a root in the fewest steps, and return the transfers of each step.

    An arc carries one block in a step, and nodes keep waiting blocks. Routes in which each hop
    leads away from the root are preferred.

    Parameters
    ----------
    arcs : WeightedArcs
        The arcs of the network.
    root : int
        The node from which all blocks start.
    target : ndarray of int
        The node that must receive each block.
    blocks : ndarray of int
        The number of each block.
    steps : range
        The numbers of steps to try, ascending; the first one that is enough is taken.

    Returns
    -------
    tuple of Transfers, or None
        The transfers of each step; None if no number in `steps` is enough, or if the search would
        take too long.

    Examples
    --------
    In a ring of four nodes, two steps are enough if block 2, for the opposite node, goes first:

    >>> from torusfabric.analysis.congestion import WeightedArcs
    >>> from torusfabric.topology import parse_topology
    >>> ring, others = WeightedArcs(parse_topology("4")), np.array([1, 2, 3])
    >>> found = quickest_steps(ring, 0, others, others, range(1, 4))
    >>> len(found), 2 in found[0].listed.ids
    (2, True)
    """
    away = arcs.shortest_paths(np.ones_like(arcs.tail))[0][root]
    outward = away[arcs.head] > away[arcs.tail]
    for count in steps:
        if count * len(arcs.tail) > WORK_LIMIT:
            return None
        for usable in (outward, outward | True):
            flow = _flow_over_time(
                arcs, usable, root, np.bincount(target, minlength=arcs.nodes), count
            )
            if flow is not None:
                hops = []
                paths = _paths_of_flow(arcs, root, len(blocks), flow)
                for number in np.argsort(target, kind="stable").tolist():
                    path = paths[target[number]].pop()
                    hops += [(step, arc, blocks[number]) for step, arc in path]
                step, arc, block = np.array(hops).T
                return Transfers.by_step(step, arcs.tail[arc], arcs.port[arc], block)
    return None


def _flow_over_time(
    arcs: WeightedArcs, usable: BoolArray, root: int, demand: IntArray, steps: int
) -> IntArray | None:
    """Return the number of blocks on each arc in each step, if all blocks can arrive in time.

    The result has the shape (steps, arcs) and values 0 and 1; it is None if some block cannot
    arrive within `steps` steps. All blocks start at node `root`, and ``demand[v]`` of them go to
    node v. Only arcs with True in `usable` carry blocks. The result is a maximum flow in a network
    with a copy of each node for each step; node v before step t has number t * nodes + v.
    """
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    nodes, total, apart = arcs.nodes, int(demand.sum()), np.array(arcs.forwarding_steps)
    step, arc = np.nonzero((np.arange(steps)[:, None] + apart <= steps) & usable)
    before = np.arange(steps * nodes)
    sink = (steps + 1) * nodes
    hop = step * nodes + arcs.tail[arc], (step + apart[arc]) * nodes + arcs.head[arc]
    tail = np.concatenate([hop[0], before, steps * nodes + np.arange(nodes)])
    head = np.concatenate([hop[1], before + nodes, np.full(nodes, sink)])
    room = np.concatenate([np.ones_like(arc), np.full_like(before, total), demand])
    table = csr_array(coo_array((room.astype(np.int32), (tail, head)), shape=(sink + 1,) * 2))
    found = maximum_flow(table, root, sink)
    if found.flow_value < total:
        return None
    carried: IntArray = np.zeros((steps, len(arcs.tail)), np.int64)
    carried[step, arc] = np.asarray(found.flow[hop]).ravel()
    # The matrix has the sum of parallel arcs. Give each of them one block until the sum is used up.
    pair = arcs.tail * arcs.nodes + arcs.head
    order = np.argsort(pair, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - np.searchsorted(pair[order], pair[order])
    return (carried > place).astype(np.int64)


#: The step and the arc of each hop.
Path: TypeAlias = list[tuple[int, int]]


def _paths_of_flow(arcs: WeightedArcs, root: int, count: int, flow: IntArray) -> list[list[Path]]:
    """Return, for each node, the paths of the blocks that end there, given the load of each arc.

    ``flow[step, arc]`` is the number of blocks on each arc in each step; `count` blocks start at
    `root`. A path is a list of pairs (step, arc). If the flow leads a block round a cycle, the path
    leaves the cycle out and the block waits.
    """
    apart, tail, head = arcs.forwarding_steps, arcs.tail.tolist(), arcs.head.tolist()
    there: list[list[Path]] = [[] for _ in range(arcs.nodes)]
    there[root] = [[] for _ in range(count)]
    arriving: defaultdict[int, list[tuple[int, Path]]] = defaultdict(list)
    for step in range(len(flow) + 1):
        for node, path in arriving.pop(step, []):
            there[node].append(path)
        for arc in np.flatnonzero(flow[step : step + 1].sum(axis=0)).tolist():
            path = there[tail[arc]].pop()
            left = [tail[before] for _, before in path]
            path = path[: left.index(head[arc])] if head[arc] in left else [*path, (step, arc)]
            arriving[step + apart[arc]].append((head[arc], path))
    return there
