"""Moves of words that stream along trees: one row, in which every word passes on as it comes.

Down trees, one node sends, and every arc carries one block: a round of circuits that branch.

Up trees, sums are made on the way. Every in-port brings the sums of one child in one tree. The
operators behind the in-ports of a node's children stand in a chain: the first combines what arrives
with the node's own word, each other one with the result of the one before, and the result of the
last leaves. A child's words come as much later than those of the child before as an operator takes,
the deepest subtree last, so that nothing waits. A node's own word is read when its first child's
comes: readers differ by how late they read, and each node has those of its own places in the trees.

Of an all-reduce the complete sum goes on from its root, down the same links the other way, in the
cycle in which a root of a reduction would store it: every node stores it as it passes by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..schedule import Pattern
from .address_map import AddressMap, DirectMap, NodeMap, OffsetMap
from .fields import IDLE, Action, Loop, Memory, Order, Sources, memories_of
from .mode import CycleCost
from .moves import Moves, Points, join_nodes, slot_words
from .timing import COMBINE, PASS, ROUND_SETUP, round_pause

if TYPE_CHECKING:
    from ..schedule.sum_trees import SumTrees
    from ..topology import IntArray, Topology
    from .moves import Request

__all__ = ["stream_moves"]


class _Streams(NamedTuple):
    """Moves of one row at each node.

    Parameters
    ----------
    sources : Sources
    points : list of Points
    memories : tuple of Memory
    depth : ndarray of int, shape (nodes, memories)
    late : ndarray of int, shape (nodes, ports)
        As of `Loop.streams`.
    located : ndarray of int, shape (2, nodes, chunks), or None
        Memory and slot of the chunks that nodes receive; None where chunk k lies in memory k.
    links : int
        Cycles of links until the last word of the first flits is stored.
    """

    sources: Sources
    points: list[Points]
    memories: tuple[Memory, ...]
    depth: IntArray
    late: IntArray
    located: IntArray | None
    links: int


def stream_moves(request: Request, trees: SumTrees | None = None) -> Moves:
    """Return the moves of a pattern that streams down trees, or of sums up trees.

    Examples
    --------
    A hop of a sum takes a cycle, and each further child of a node one more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "reduce", algorithm="spanning-tree")
    >>> tf.compile(schedule, flits=64).cycles()
    26
    """
    row = _down_trees(request) if trees is None else _up_trees(request, trees)
    topology, layout, block = request.topology, request.schedule.layout, request.block
    points, depth, variant_of = join_nodes(row.points, row.depth)
    own = [memory.own for memory in row.memories].index(True)
    send_map = DirectMap(own, layout.part_chunks, block, by_chunk=True)
    receive_map: AddressMap
    if request.any_root:
        receive_map = replace(send_map, base=request.slot_words)
    elif row.located is None:
        chunks = np.arange(layout.part_chunks)[None]
        receive_map = OffsetMap(topology, chunks, 0 * chunks)
    else:
        shape = topology.nodes, layout.recv_parts, layout.part_chunks
        memory, slot = (each.reshape(shape) for each in row.located)
        receive_map = NodeMap(memory, slot_words(slot, block), variant_of)
    # Where links differ, or sums wait on the way, a hop of several cycles counts as so many.
    each = 1 if row.sources.results else topology.one_latency or 1
    return Moves(
        loop=Loop(
            order=Order.ROW,
            flits=block,
            pause=round_pause(np.array([row.links])),
            blocks=np.ones(1, int),
            sources=row.sources,
            departure=np.zeros((1, topology.ports), int),
            streams=row.late,
        ),
        points=points,
        memories=row.memories,
        depth=depth,
        variant_of=variant_of,
        send_map=send_map,
        receive_map=receive_map,
        known_by="the root" if request.any_root else "the in-port",
        cost=CycleCost(1, row.links // each, block, alpha=ROUND_SETUP, hop_cycles=each),
    )


def _down_trees(request: Request) -> _Streams:
    """Return the moves of messages that stream from the root.

    Words are stored in a memory for each in-port. With any root they are stored in a memory for
    each chunk, behind what the node would send as the root.
    """
    pattern, topology = request.schedule, request.topology
    assert isinstance(pattern, Pattern)
    chunks, ports, root = pattern.chunks, topology.ports, pattern.collective.root or 0
    select, streams, (node, chunk, source, links) = _branches(pattern)
    numbers, by_chunk = np.arange(chunks), request.any_root
    own, slot = (0, 1) if by_chunk else (ports, 0)
    memory, count = (chunk, chunks) if by_chunk else (source, ports)
    reads = np.full((2, 1, topology.nodes, chunks), IDLE)
    reads[:, 0, root] = own + numbers, 0 * numbers
    stores = np.full((3, 1, topology.nodes, count), IDLE)
    stores[:, 0, node, memory] = np.full_like(source, slot), source, links
    depth = np.zeros((topology.nodes, own + chunks), int)
    depth[node, memory] = depth[root, own:] = 1
    located = np.full((2, topology.nodes, chunks), IDLE)
    located[:, node, chunk], located[:, root] = (memory, 0 * memory), (own + numbers, 0 * numbers)
    memories = memories_of(range(ports), chunks)
    if by_chunk:
        depth[:] = 2
        memories = tuple(
            Memory(tuple(np.unique(source[chunk == k]).tolist()), own=True) for k in range(chunks)
        )
    return _Streams(
        sources=Sources(ports, injections=tuple((k,) for k in range(chunks))),
        points=[
            Points({Action.SELECT: select[None]}),
            Points(dict(zip((Action.MEMORY, Action.READ), reads, strict=True))),
            Points(dict(zip((Action.WRITE, Action.SOURCE, Action.TAP), stores, strict=True))),
        ],
        memories=memories,
        depth=depth,
        located=located,
        late=streams,
        links=int(links.max(initial=0)),
    )


def _branches(pattern: Pattern) -> tuple[IntArray, IntArray, IntArray]:
    """The settings of trees, the cycles from the root to what sends, and what nodes receive.

    Of the first arrival of each chunk these are columns: node, chunk, in-port and cycles of links.
    """
    topology = pattern.topology
    node: IntArray
    chunk: IntArray
    entry: IntArray
    select = np.full(pattern.feed.shape, IDLE, np.int16)
    late = np.zeros(pattern.feed.shape, int)
    held = np.zeros((topology.nodes, pattern.chunks), bool)
    held[pattern.collective.root or 0] = True
    node, port = np.nonzero(pattern.inject >= 0)
    chunk, entry = pattern.inject[node, port], topology.ports + pattern.inject[node, port]
    cycles = np.zeros_like(node)
    found = [np.zeros((0, 4), int)]
    for _ in range(pattern.steps):
        select[node, port], late[node, port] = entry, cycles
        cycles = cycles + topology.cycles_of_arc[node, port]
        node, entry = topology.neighbours[node, port], topology.opposite[port]
        arrived = np.stack([node, chunk, entry, cycles], axis=1)
        new = arrived[~held[node, chunk]]
        new = new[np.unique(new[:, :2], axis=0, return_index=True)[1]]
        held[new[:, 0], new[:, 1]] = True
        found.append(new)
        branch, port = np.nonzero(pattern.feed[node] == entry[:, None])
        node, chunk, entry = node[branch], chunk[branch], entry[branch]
        cycles = cycles[branch]
    return select, late, np.concatenate(found).T


def _up_trees(request: Request, trees: SumTrees) -> _Streams:
    """Return the moves of a reduction, or of an all-reduce, along trees."""
    topology, ports = request.topology, request.topology.ports
    chunks, nodes = len(trees.up), topology.nodes
    made, to_root = request.fixed, request.schedule.collective.to_root
    times = _times(topology, trees, request.latency, 0 if made else PASS)
    count, reader = _readers(times.read)
    sources = Sources(ports, results=True, injections=tuple((k,) for k in range(count)), made=made)
    kept = _kept(trees, times, sources, to_root=to_root)
    received, late = len(kept.ports), np.zeros(count, int)
    late[reader] = times.read
    select, operand, streams = _settings(topology, trees, times, sources, reader)
    memory = np.full((1, nodes, count), IDLE)
    memory[0, np.arange(nodes), reader] = received + np.arange(chunks)[:, None]
    stores = kept.source >= 0
    located = np.full((2, nodes, chunks), [[[0]], [[IDLE]]])
    located[:, trees.roots[0]] = kept.memory, 0 * kept.memory
    return _Streams(
        sources=sources,
        points=[
            Points({Action.SELECT: select}),
            Points({Action.OPERAND: operand}, PASS),
            Points({Action.MEMORY: memory, Action.READ: np.minimum(memory, 0)}, late.tolist()),
            Points(
                {
                    Action.WRITE: np.where(stores, 0, IDLE)[None],
                    Action.SOURCE: kept.source[None],
                    Action.TAP: np.where(stores, kept.links, IDLE)[None],
                },
                times.cycles - PASS,
            ),
        ],
        memories=(*map(Memory, kept.ports), *memories_of((), chunks)),
        depth=np.hstack([stores, np.ones((nodes, chunks), bool)]).astype(int),
        located=located if to_root else None,
        late=streams,
        links=times.duration - ROUND_SETUP,
    )


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
