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

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import DirectMap, NodeMap, OffsetMap
from .fields import (
    IDLE,
    Action,
    Field,
    Loop,
    Memory,
    Order,
    Sources,
    fields_of,
    memories_of,
    number_equal,
)
from .form import CycleCost
from .timing import ADDRESS, COMBINE, LINK, SETTING

if TYPE_CHECKING:
    from ..schedule.sum_trees import SumTrees
    from ..topology import IntArray, Topology
    from .address_map import AddressMap
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
        Cycles from the result of the last child to that register: none, or one.
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
        """Cycles from the last results until nodes store the sum, of shape (chunks, nodes)."""
        # Results stay a cycle longer in their registers where sums leave as they are made.
        return np.where(self.down > 0, self.down, 1 - self.leaving)

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
    longer = topology.cycles_of_arc[nodes, ports] - 1
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
    read = sent - np.where(children > 0, leaving + step * children, 1)
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
    topology, block = request.topology, request.block
    chunks, ports = len(trees.up), topology.ports
    made = request.fixed
    times = _times(topology, trees, request.latency, int(not made))
    count, reader = _readers(times.read)
    sources = Sources(ports, results=True, injections=tuple((k,) for k in range(count)), made=made)
    kept = (_kept_at_root if request.schedule.collective.to_root else _kept_everywhere)(
        topology, trees, times, sources
    )
    received = len(kept.ports)
    settings, stores = _settings(topology, trees, times, sources, reader), _stores(kept, times)
    there = (kept.source >= 0).astype(int)
    # What nodes read follows from their readers.
    alike = [*(field.values.T for field in (*settings, *stores)), reader.T]
    variant_of, first = number_equal(map(bytes, np.concatenate(alike, axis=1, dtype=np.int32)))
    read = _reads(times, reader, first, received)
    of_first = (*(replace(f, values=f.values[:, first]) for f in settings), *read,
                *(replace(f, values=f.values[:, first]) for f in stores))  # fmt: skip
    loop = Loop(
        order=Order.ROW,
        flits=block,
        pause=np.array([times.duration]),
        blocks=np.ones(1, int),
        sources=sources,
        fields=of_first,
        departure=np.zeros((1, ports), int),
        streams=_departures(topology, trees, times),
    )
    depth = np.full((topology.nodes, received + chunks), block)
    depth[:, :received] = there * block
    return request.program(
        loop,
        send_map=DirectMap(received, chunks, block, by_chunk=True),
        receive_map=kept.addresses(variant_of),
        moving=CycleCost(1, times.duration - 1, block, alpha=1, hop_cycles=1),
        known_by="the in-port",
        memories=(*map(Memory, kept.ports), *memories_of((), chunks)),
        depth=depth[first],
        variant_of=variant_of,
    )


class _Kept(NamedTuple):
    """What nodes store.

    Parameters
    ----------
    ports : tuple of (tuple of int)
        Of each memory, the in-ports whose words or results it stores.
    source : ndarray of int, shape (nodes, memories)
        What it stores; -1 for nothing.
    links : ndarray of int, shape (nodes, memories)
        How many cycles after the last results.
    addresses : function of (ndarray of int) -> AddressMap
        Where the host finds it, given the variants of nodes.
    """

    ports: tuple[tuple[int, ...], ...]
    source: IntArray
    links: IntArray
    addresses: Callable[[IntArray], AddressMap]


def _kept_at_root(topology: Topology, trees: SumTrees, times: _Times, sources: Sources) -> _Kept:
    """Results in a memory for each in-port of the root behind which there are any."""
    chunks, root = len(trees.up), trees.roots[0]
    results = np.unique(times.last[:, root])
    source = np.full((topology.nodes, len(results)), IDLE)
    source[root] = sources.first_result + results
    memory, base = np.zeros((2, topology.nodes, 1, chunks), int)
    memory[root, 0], base[:] = np.searchsorted(results, times.last[:, root]), -1
    base[root] = 0

    def addresses(variant_of: IntArray) -> AddressMap:
        return NodeMap(memory, base, variant_of)

    ports = tuple((int(port),) for port in results)
    return _Kept(ports, source, np.full_like(source, 1 - times.leaving), addresses)


def _kept_everywhere(topology: Topology, trees: SumTrees, times: _Times, sources: Sources) -> _Kept:
    """Complete sums in a memory for each chunk: results at its root, what arrives elsewhere."""
    chunk, roots = np.arange(len(trees.up)), trees.roots
    source = trees.down.copy()
    source[chunk, roots] = sources.first_result + times.last[chunk, roots]
    ports = tuple(
        tuple(np.unique([*down[down >= 0], last]).tolist())
        for down, last in zip(trees.down, times.last[chunk, roots], strict=True)
    )

    def addresses(variant_of: IntArray) -> AddressMap:
        return OffsetMap(topology, memory=chunk[None], base=0 * chunk[None])

    return _Kept(ports, source.T, times.stored.T, addresses)


def _readers(late: IntArray) -> tuple[int, IntArray]:
    """As many readers as any node needs that read so late: how many in all, and that of each."""
    chunk = np.arange(len(late))
    same = late[:, None] == late[None, :]
    rank = (same & (chunk[:, None] > chunk[None, :])[..., None]).sum(axis=1)
    keys, reader = np.unique(late * len(late) + rank, return_inverse=True)
    return len(keys), reader.reshape(late.shape)


def _settings(
    topology: Topology, trees: SumTrees, times: _Times, sources: Sources, reader: IntArray
) -> tuple[Field, ...]:
    """What feeds out-ports, and what operators combine with what arrives."""
    nodes, ports, injection = topology.nodes, topology.ports, sources.first_injection + reader
    made = sources.first_made if sources.made else sources.first_result
    select, operand = np.full((2, 1, nodes, ports), IDLE, np.int16)
    passed = np.where(times.last >= 0, made + times.last, injection)
    tree, child = np.nonzero(trees.up >= 0)
    out = trees.up[tree, child]
    select[0, child, out] = passed[tree, child]
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
    return (
        *fields_of(Action.SELECT, select, SETTING),
        *fields_of(Action.OPERAND, operand, LINK),
    )


def _reads(times: _Times, reader: IntArray, nodes: IntArray, first: int) -> tuple[Field, ...]:
    """What readers of some nodes read: a chunk of the message each, from its memory."""
    late = np.zeros(int(reader.max()) + 1, int)
    late[reader] = times.read
    memory = np.full((1, len(late), len(nodes)), IDLE).swapaxes(1, 2)
    chunk = np.arange(len(reader))[:, None]
    memory[0, np.arange(len(nodes)), reader[:, nodes]] = first + chunk
    delays = (ADDRESS + late).tolist()
    return (
        *fields_of(Action.MEMORY, memory, delays),
        *fields_of(Action.READ, np.where(memory >= 0, 0, IDLE), delays),
    )


def _stores(kept: _Kept, times: _Times) -> tuple[Field, ...]:
    """What nodes store: as many cycles after the roots have it as links take."""
    there, delay = kept.source[None] >= 0, ADDRESS + times.cycles - 1
    return (
        *fields_of(Action.WRITE, np.where(there, 0, IDLE), delay),
        *fields_of(Action.SOURCE, kept.source[None], delay),
        *fields_of(Action.TAP, np.where(there, 1 + kept.links[None], IDLE), delay),
    )


def _departures(topology: Topology, trees: SumTrees, times: _Times) -> IntArray:
    """How much later than a word read in the first slot a sum leaves, shape (nodes, ports)."""
    late = np.zeros((topology.nodes, topology.ports), int)
    tree, node = np.nonzero(trees.up >= 0)
    late[node, trees.up[tree, node]] = times.sent[tree, node] - 1
    tree, node = np.nonzero(trees.down >= 0)
    above = trees.down[tree, node]
    parent, port = (end[node, above] for end in topology.upstream)
    late[parent, port] = times.cycles - 1 + times.down[tree, parent]
    return late
