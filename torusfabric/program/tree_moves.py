"""The planner for sums up trees: a single row, in which every word passes on as it arrives.

Every in-port brings the sums of one child in one tree. The operators behind the in-ports of a
node's children form a chain: the first combines the arriving word with the node's own word, each
other one with the result of the operator before it. The result of the last operator leaves the
node. The words of successive children arrive one operator latency apart, those of the deepest
subtree last, so no word waits. A node's own word is read when the word of its first child arrives.
Readers therefore differ by the cycle in which they read. Each node has a reader for each of the
different cycles in which it reads; they depend on its depth in each tree.

In an all-reduce, the complete sum goes down from the root, over the same links in the opposite
direction. It leaves the root in the cycle in which the root of a reduction would store it. Every
node stores it as it passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import AddressMap
from .fields import IDLE, Action, Loop, Memory, Order, Sources, Stage, make_node_memories
from .mode import CycleCost
from .moves import Moves, Points, group_equal_nodes
from .timing import COMBINE, PASS, ROUND_SETUP, round_pause_cycles

if TYPE_CHECKING:
    from ..schedule.sum_trees import SumTrees
    from ..topology import IntArray, Topology
    from .moves import CompileRequest

__all__ = ["tree_moves"]


def tree_moves(request: CompileRequest, trees: SumTrees) -> Moves:
    """Return the moves of a reduction, or of an all-reduce, along trees.

    In an all-reduce, every node stores the complete sums in a memory for each chunk. In a
    reduction, only the root stores them, in a memory for each in-port at which they are completed.

    Parameters
    ----------
    request : CompileRequest
        Schedule, with the properties that its program must have.
    trees : SumTrees
        Trees along which the sums move, one for each chunk.

    Examples
    --------
    A hop of a sum takes a cycle, and each further child of a node one more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "reduce", algorithm="spanning-tree")
    >>> tf.compile(schedule, flits=64).cycles()
    26
    """
    topology, ports, nodes = request.topology, request.topology.ports, request.topology.nodes
    made, to_root = request.fixed, request.schedule.collective.to_root
    # Sums that leave as they are made enter the out-port and the result register at once.
    leaving = 0 if made else PASS
    times = _plan_times(topology, trees, request.latency, leaving)
    stored = np.where(times.down > 0, times.down, PASS - leaving)
    chunk, roots = np.arange(len(trees.up)), trees.roots
    # Nodes read in different cycles. Each cycle has the readers that the busiest node needs in it.
    same = times.read[:, None] == times.read[None, :]
    rank = (same & (chunk[:, None] > chunk)[..., None]).sum(axis=1)
    keys, reader = np.unique(times.read * len(chunk) + rank, return_inverse=True)
    reader = reader.reshape(rank.shape)
    injections = tuple((k,) for k in range(len(keys)))
    sources = Sources(ports, results=True, injections=injections, made=made)
    injected, last = sources.first_injection + reader, times.last[chunk, roots]
    if to_root:
        results, memory = np.unique(last, return_inverse=True)
        of_memory: list[list[int]] = results[:, None].tolist()
        source = np.full((nodes, len(results)), IDLE)
        source[roots[0]] = sources.first_of_stage(Stage.RESULT) + results
    else:
        memory = chunk
        of_memory = [
            np.unique([*down[down >= 0], port]).tolist()
            for down, port in zip(trees.down, last, strict=True)
        ]
        source = trees.down.T.copy()
        source[roots, chunk] = sources.first_of_stage(Stage.RESULT) + last
    select, operand = np.full((2, 1, nodes, ports), IDLE, np.int16)
    late = np.zeros((nodes, ports), int)
    made_by = (
        sources.first_of_stage(Stage.EARLY_RESULT) if made else sources.first_of_stage(Stage.RESULT)
    )
    passed = np.where(times.last >= 0, made_by + times.last, injected)
    tree, child = np.nonzero(trees.up >= 0)
    out = trees.up[tree, child]
    select[0, child, out], late[child, out] = passed[tree, child], times.sent[tree, child] - PASS
    parent, port, after = topology.neighbours[child, out], topology.opposite[out], times.after
    operand[0, parent, port] = np.where(
        after[tree, child] >= 0,
        sources.first_of_stage(Stage.RESULT) + after[tree, child],
        injected[tree, parent],
    )
    # A root sends the complete sum like its own sum; other nodes pass it on from their in-port.
    going = np.where(trees.down >= 0, trees.down, passed)
    tree, child = np.nonzero(trees.down >= 0)
    above = trees.down[tree, child]
    parent, port = (end[child, above] for end in topology.upstream)
    select[0, parent, port] = going[tree, parent]
    late[parent, port] = times.cycles - PASS + times.down[tree, parent]
    read = np.full((1, nodes, len(keys)), IDLE)
    read[0, np.arange(nodes), reader] = len(of_memory) + chunk[:, None]
    stores, links = source >= 0, PASS - leaving if to_root else stored.T
    memories = (*(Memory(tuple(found)) for found in of_memory), *make_node_memories((), len(chunk)))
    points, depth, variant_of = group_equal_nodes(
        (
            Points({Action.SELECT: select}),
            Points({Action.OPERAND: operand}, PASS),
            Points.from_readers(read, np.minimum(read, 0), keys // len(chunk)),
            Points.from_memories(
                np.where(stores, 0, IDLE)[None],
                source[None],
                np.where(stores, links, IDLE)[None],
                times.cycles - PASS,
            ),
        ),
        np.hstack([stores, np.ones((nodes, len(chunk)), bool)]).astype(int),
    )
    layout, block = request.schedule.layout, request.block_flits
    if to_root:
        kept, base = np.full((2, nodes, 1, len(chunk)), [[[[0]]], [[[IDLE]]]])
        kept[roots[0], 0], base[roots[0], 0] = memory, 0
        receive_map = AddressMap.from_table(kept, base, topology, variant_of)
    else:
        receive_map = AddressMap.from_chunk_memories(0, layout.part_chunks)
    last_links = times.cycles + int(stored.max()) - ROUND_SETUP
    return Moves(
        loop=Loop(
            order=Order.ROW,
            flits=block,
            pause=round_pause_cycles(np.array([last_links])),
            blocks=np.ones(1, int),
            sources=sources,
            departure=np.zeros((request.schedule.round_count, ports), int),
            departure_skew=late,
        ),
        points=points,
        memories=memories,
        depth=depth,
        variant_of=variant_of,
        send_map=AddressMap.from_chunk_memories(len(of_memory), layout.part_chunks),
        receive_map=receive_map,
        known_by="the in-port",
        # Sums wait on the way, so a hop of k cycles counts as k hops.
        cost=CycleCost(1, last_links, block, alpha=ROUND_SETUP, hop_cycles=1),
    )


class _TreeTimes(NamedTuple):
    """The cycles in which nodes read and send their words in the trees.

    All arrays have the shape (chunks, nodes), because there is a tree for each chunk.

    At a node with several children, the operators behind its in-ports form a chain: each adds the
    word of one child to the result for the child before.

    Parameters
    ----------
    read : ndarray of int
        Cycle in which a node reads its own word, counted from the first read of any node.
    sent : ndarray of int
        Cycle in which the node's sum is in the register of its out-port, also counted from the
        first read. The root has no such out-port; its entry is the cycle in which the sum would be
        there.
    after : ndarray of int
        The words of a node pass one operator in the chain of its parent. This is, for each node,
        the in-port of the operator before it in that chain; -1 if the node is the first child in
        the chain.
    last : ndarray of int
        In-port at the end of the chain of a node, whose result is the node's sum; -1 at leaves.
    cycles : int
        Cycles from the first read to the complete sums at the roots.
    down : ndarray of int
        Cycles of the complete sum from the root to a node.
    """

    read: IntArray
    sent: IntArray
    after: IntArray
    last: IntArray
    cycles: int
    down: IntArray


def _depth_cycles(ends: IntArray, ports: IntArray, roots: IntArray, cycles: IntArray) -> IntArray:
    """Return the cycles from each node to the root of each tree.

    Parameters
    ----------
    ends : ndarray of int, shape (nodes, ports)
        Node at the end of each port.
    ports : ndarray of int, shape (chunks, nodes)
        Port of each node towards the root; -1 at the root.
    roots : ndarray of int, shape (chunks,)
        Root of each tree.
    cycles : ndarray of int, shape (nodes, ports)
        Cycles of a hop from each node by each port.
    """
    nodes = np.arange(len(ends))
    above = parent = np.where(ports >= 0, ends[nodes, ports], nodes)
    of_hop = np.where(nodes != roots[:, None], cycles[nodes, ports], 0)
    depth: IntArray = of_hop
    while (above != roots[:, None]).any():
        depth = depth + np.take_along_axis(of_hop, above, axis=1)
        above = np.take_along_axis(parent, above, axis=1)
    return depth


def _plan_times(topology: Topology, trees: SumTrees, latency: int, leaving: int) -> _TreeTimes:
    """Return the cycles in which all nodes read their own words and send their sums.

    Each cycle is as late as possible without a delay of the complete sums at the roots.

    Parameters
    ----------
    trees : SumTrees
        Trees along which sums move, one for each chunk.
    latency : int
        Cycles of the operator's own hardware.
    leaving : int
        Cycles from the register behind the last operator of a node to the register of its out-port;
        0 if sums enter both registers at once.
    """
    ports, step = trees.up, COMBINE + latency
    nodes = np.arange(topology.nodes)
    parent = np.where(ports >= 0, topology.neighbours[nodes, ports], nodes)
    depth = _depth_cycles(
        topology.neighbours, ports, trees.roots, np.ones_like(topology.neighbours)
    )
    # Cycles of a link beyond the register of the out-port.
    longer = topology.cycles_of_arc[nodes, ports] - PASS
    height, rank = np.zeros((2, *parent.shape), int)
    after, last, children = np.full((3, *parent.shape), -1)
    children[:] = 0
    levels = [np.nonzero(depth == level) for level in range(1, int(depth.max()) + 1)]
    for tree, child in reversed(levels):
        up = parent[tree, child]
        order = np.lexsort((-height[tree, child] - longer[tree, child], up, tree))
        tree, child, up = tree[order], child[order], up[order]
        group = tree * topology.nodes + up
        here = np.arange(len(group)) - np.searchsorted(group, group)
        rank[tree, child] = here
        port = topology.opposite[ports[tree, child]]
        np.add.at(children, (tree, up), 1)
        late = leaving + step * (1 + here) + longer[tree, child]
        np.maximum.at(height, (tree, up), height[tree, child] + late)
        last[tree[here == 0], up[here == 0]] = port[here == 0]
        earlier = np.flatnonzero(here[1:] > 0)
        after[tree[earlier], child[earlier]] = port[earlier + 1]
    sent = np.zeros_like(depth)
    for tree, child in levels:
        late = leaving + step * (1 + rank[tree, child]) + longer[tree, child]
        sent[tree, child] = sent[tree, parent[tree, child]] - late
    # The word of a leaf goes from the reader directly into the register of the out-port.
    read = sent - np.where(children > 0, leaving + step * children, PASS)
    first = int(read.min())
    stays = (trees.down < 0).all()
    above, cycles = topology.upstream[0], topology.cycles_of_arc[topology.upstream]
    down = np.zeros_like(depth) if stays else _depth_cycles(above, trees.down, trees.roots, cycles)
    return _TreeTimes(read - first, sent - first, after, last, -first, down)
