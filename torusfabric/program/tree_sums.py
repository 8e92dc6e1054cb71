"""Programs of sums along trees: one row, in which every word passes on as soon as it comes.

Every in-port brings the sums of one child in one tree. The operators behind the in-ports of a
node's children stand in a chain: the first combines what arrives with the node's own word, each
other one with the result of the one before, and the result of the last leaves. A child's words come
as much later than those of the child before as an operator takes, the deepest subtree last, so that
nothing waits. A node's own word is read when its first child's comes: readers differ by how late
they read, and each node has those of its own places in the trees.

Of an all-reduce the complete sum goes on from its root, down the same links the other way, in the
cycle in which a root of a reduction would store it: every node stores it as it passes by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import OffsetMap
from .fields import IDLE, Memory, Sources
from .round_plan import Added, Bursts, Receipts, RoundPlan
from .rounds import program_of
from .timing import COMBINE, PASS, ROUND_SETUP

if TYPE_CHECKING:
    from ..schedule.sum_trees import SumTrees
    from ..topology import IntArray, Topology
    from .program import Program
    from .request import Request

__all__ = ["compile_tree_sums"]


class _Times(NamedTuple):
    """When what happens in the trees, in cycles; arrays of shape (chunks, nodes).

    Parameters
    ----------
    read : ndarray of int
        How much later than the first a node reads its own word.
    sent : ndarray of int
        When its sum is in the register of its out-port, or at the root could be, counted alike.
    leaving : int
        Cycles from the result of the last child to that register: none where it leaves as it is
        made, or those of the register.
    after : ndarray of int
        The in-port of the child after whose words its own come next in the chain of its parent;
        -1 for the first.
    last : ndarray of int
        The in-port whose result is its sum; -1 at leaves.
    cycles : int
        From the first read to the last results.
    down : ndarray of int
        Cycles of the complete sum from the root to a node.
    """

    read: IntArray
    sent: IntArray
    leaving: int
    after: IntArray
    last: IntArray
    cycles: int
    down: IntArray

    @property
    def stored(self) -> IntArray:
        """Cycles until nodes store the sum, from in front of out-ports, shape (chunks, nodes)."""
        # Where sums leave as they are made, results are in registers of their own just then.
        return np.where(self.down > 0, self.down, PASS - self.leaving)

    @property
    def duration(self) -> int:
        """From the first read to the last word at the node that stores it last."""
        return self.cycles + int(self.stored.max())


def _depth(ends: IntArray, ports: IntArray, roots: IntArray, cycles: IntArray) -> IntArray:
    """Cycles from each node to the roots, given the node at each port, and the ports towards them.

    Those of a hop from each node by each port are given, too.
    """
    nodes = np.arange(len(ends))
    above = parent = np.where(ports >= 0, ends[nodes, ports], nodes)
    of_hop = np.where(nodes != roots[:, None], cycles[nodes, ports], 0)
    depth: IntArray = of_hop
    while (above != roots[:, None]).any():
        depth = depth + np.take_along_axis(of_hop, above, axis=1)
        above = np.take_along_axis(parent, above, axis=1)
    return depth


def _times(topology: Topology, trees: SumTrees, latency: int, leaving: int) -> _Times:
    """Plan when nodes read and send, as late as the roots allow."""
    ports, step = trees.up, COMBINE + latency
    nodes = np.arange(topology.nodes)
    parent = np.where(ports >= 0, topology.neighbours[nodes, ports], nodes)
    depth = _depth(topology.neighbours, ports, trees.roots, np.ones_like(topology.neighbours))
    # By what a link is longer than the register of an out-port.
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
    # Of a leaf the word goes from the reader into the register of the out-port.
    read = sent - np.where(children > 0, leaving + step * children, PASS)
    first = int(read.min())
    stays = (trees.down < 0).all()
    above, cycles = topology.upstream[0], topology.cycles_of_arc[topology.upstream]
    down = np.zeros_like(depth) if stays else _depth(above, trees.down, trees.roots, cycles)
    return _Times(read - first, sent - first, leaving, after, last, -first, down)


def compile_tree_sums(request: Request, trees: SumTrees) -> Program:
    """The program of a reduction, or of an all-reduce, along trees.

    Parameters
    ----------
    trees : SumTrees
        Those of its schedule.

    Examples
    --------
    A hop of a sum takes a cycle, and each further child of a node one more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "reduce", algorithm="spanning-tree")
    >>> tf.compile(schedule, flits=64).cycles()
    26
    """
    topology, ports = request.topology, request.topology.ports
    chunks, nodes = np.arange(len(trees.up)), np.arange(topology.nodes)
    made, to_root = request.fixed, request.schedule.collective.to_root
    times = _times(topology, trees, request.latency, 0 if made else PASS)
    count, reader = _readers(times.read)
    sources = Sources(ports, results=True, injections=tuple((k,) for k in range(count)), made=made)
    kept = _kept(trees, times, sources, to_root=to_root)
    received, late = len(kept.ports), np.zeros(count, int)
    late[reader] = times.read
    select, operand, streams = _settings(topology, trees, times, sources, reader)
    chunk, node = (each.ravel() for each in np.broadcast_arrays(chunks[:, None], nodes))
    none, (at, memory) = np.zeros_like(chunk), np.nonzero(kept.source >= 0)
    stored = np.zeros_like(at)
    depth = np.ones((topology.nodes, received + len(chunks)), int)
    depth[:, :received] = kept.source >= 0
    located = np.full((2, topology.nodes, len(chunks)), 0)
    located[1], located[:, trees.roots[0]] = -1, (kept.memory, 0 * chunks)
    plan = RoundPlan(
        select=select,
        links=np.array([times.duration - ROUND_SETUP]),
        blocks=np.ones(1, int),
        bursts=Bursts(none, node, reader.ravel(), none, none, received + chunk, none, none + 1),
        receipts=Receipts(
            stored, at, memory, kept.source[at, memory], kept.links[at, memory], stored,
            stored + 1,
        ),
        depth=depth,
        memories=tuple(map(Memory, kept.ports)),
        memory=located[0],
        slot=located[1],
        streams=streams,
        added=Added(operand, late.tolist(), times.cycles - PASS, made),
        receive_map=None if to_root else OffsetMap(topology, chunks[None], 0 * chunks[None]),
    )  # fmt: skip
    return program_of(request, plan)


class _Kept(NamedTuple):
    """What nodes store.

    Parameters
    ----------
    ports : tuple of (tuple of int)
        Of each memory, the in-ports whose words or results it stores.
    source : ndarray of int, shape (nodes, memories)
        What it stores; -1 for nothing.
    links : ndarray of int, shape (nodes, memories)
        As `_Times.stored` says.
    memory : ndarray of int, shape (chunks,)
        That of each chunk at the root.
    """

    ports: tuple[tuple[int, ...], ...]
    source: IntArray
    links: IntArray
    memory: IntArray


def _kept(trees: SumTrees, times: _Times, sources: Sources, *, to_root: bool) -> _Kept:
    """Complete sums in a memory for each chunk; to a root alone in one for each of its in-ports."""
    chunk, roots = np.arange(len(trees.up)), trees.roots
    last = times.last[chunk, roots]
    if to_root:
        results, memory = np.unique(last, return_inverse=True)
        source = np.full((times.last.shape[1], len(results)), IDLE)
        source[roots[0]] = sources.first_result + results
        ports = tuple((port,) for port in results.tolist())
        return _Kept(ports, source, np.full_like(source, PASS - times.leaving), memory)
    # Results at its root, what arrives elsewhere.
    source = trees.down.copy()
    source[chunk, roots] = sources.first_result + last
    ports = tuple(
        tuple(np.unique([*down[down >= 0], port]).tolist())
        for down, port in zip(trees.down, last, strict=True)
    )
    return _Kept(ports, source.T, times.stored.T, chunk)


def _readers(late: IntArray) -> tuple[int, IntArray]:
    """As many readers as any node needs that read so late: how many in all, and that of each."""
    chunk = np.arange(len(late))
    same = late[:, None] == late[None, :]
    rank = (same & (chunk[:, None] > chunk[None, :])[..., None]).sum(axis=1)
    keys, reader = np.unique(late * len(late) + rank, return_inverse=True)
    return len(keys), reader.reshape(late.shape)


def _settings(
    topology: Topology, trees: SumTrees, times: _Times, sources: Sources, reader: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """What feeds out-ports, what operators combine with what arrives, and how late words leave.

    That is how much later than a word read in the first slot, shape (nodes, ports).
    """
    nodes, ports, injection = topology.nodes, topology.ports, sources.first_injection + reader
    made = sources.first_made if sources.made else sources.first_result
    select, operand = np.full((2, 1, nodes, ports), IDLE, np.int16)
    passed = np.where(times.last >= 0, made + times.last, injection)
    tree, child = np.nonzero(trees.up >= 0)
    out = trees.up[tree, child]
    select[0, child, out] = passed[tree, child]
    late = np.zeros((nodes, ports), int)
    late[child, out] = times.sent[tree, child] - PASS
    parent, port = topology.neighbours[child, out], topology.opposite[out]
    after = times.after[tree, child]
    earlier = sources.first_result + after
    operand[0, parent, port] = np.where(after >= 0, earlier, injection[tree, parent])
    # Complete sums go on from roots as their own sum would, and elsewhere as they come.
    source = np.where(trees.down >= 0, trees.down, passed)
    tree, child = np.nonzero(trees.down >= 0)
    above = trees.down[tree, child]
    parent, port = (end[child, above] for end in topology.upstream)
    select[0, parent, port] = source[tree, parent]
    late[parent, port] = times.cycles - PASS + times.down[tree, parent]
    return select, operand, late
