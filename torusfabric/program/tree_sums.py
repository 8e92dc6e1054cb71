"""Programs of sums along trees: one row, in which every word passes on as soon as it comes.

Every in-port brings the sums of one child in one tree. The operators behind the in-ports of a
node's children stand in a chain: the first combines what arrives with the node's own word, each
other one with the result of the one before, and the result of the last leaves. A child's words come
as much later than those of the child before as an operator takes, the deepest subtree last, so that
nothing waits. A node's own word is read when its first child's comes: readers differ by how late
they read, and each node has those of its own places in the trees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import DirectMap, NodeMap
from .fields import (
    IDLE,
    Action,
    Field,
    Loop,
    Order,
    Sources,
    fields_of,
    memories_of,
    number_equal,
)
from .form import CycleCost
from .timing import ADDRESS, COMBINE, LINK, SETTING

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..topology import IntArray
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
        When its sum is in the register of its out-port, counted alike.
    after : ndarray of int
        The in-port of the child after whose words its own come next in the chain of its parent;
        -1 for the first.
    last : ndarray of int
        The in-port whose result is its sum; -1 at leaves.
    cycles : int
        From the first read to the last results.
    """

    read: IntArray
    sent: IntArray
    after: IntArray
    last: IntArray
    cycles: int


def _times(schedule: Schedule, trees: IntArray, latency: int) -> _Times:
    """Plan when nodes read and send, as late as the root allows."""
    topology, chunks = schedule.topology, len(trees)
    root, step = schedule.collective.root or 0, COMBINE + latency
    nodes = np.arange(topology.nodes)
    parent = np.where(trees >= 0, topology.neighbours[nodes, trees], nodes)
    depth = np.zeros_like(parent)
    above = parent
    while (above != root).any():
        depth += above != root
        above = np.take_along_axis(parent, above, axis=1)
    depth += nodes != root
    height, rank = np.zeros((2, *parent.shape), int)
    after, last, children = np.full((3, *parent.shape), -1)
    children[:] = 0
    levels = [np.nonzero(depth == level) for level in range(1, int(depth.max()) + 1)]
    for tree, child in reversed(levels):
        up = parent[tree, child]
        order = np.lexsort((-height[tree, child], up, tree))
        tree, child, up = tree[order], child[order], up[order]
        group = tree * topology.nodes + up
        here = np.arange(len(group)) - np.searchsorted(group, group)
        rank[tree, child] = here
        port = topology.opposite[trees[tree, child]]
        np.add.at(children, (tree, up), 1)
        np.maximum.at(height, (tree, up), height[tree, child] + 1 + step * (1 + here))
        last[tree[here == 0], up[here == 0]] = port[here == 0]
        earlier = np.flatnonzero(here[1:] > 0)
        after[tree[earlier], child[earlier]] = port[earlier + 1]
    sent = np.zeros_like(depth)
    for tree, child in levels:
        late = 1 + step * (1 + rank[tree, child])
        sent[tree, child] = sent[tree, parent[tree, child]] - late
    read = sent - 1 - step * children
    first = int(read.min())
    assert chunks == len(read)
    return _Times(read - first, sent - first, after, last, -first)


def compile_tree_sums(request: Request, trees: IntArray) -> Program:
    """The program of a reduction along trees.

    Parameters
    ----------
    trees : ndarray of int, shape (chunks, nodes)
        The trees of its schedule, see `sum_trees`.

    Examples
    --------
    A hop of a sum takes two cycles, and each further child of a node one more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "reduce", algorithm="spanning-tree")
    >>> tf.compile(schedule, flits=64).cycles()
    34
    """
    schedule, topology, block = request.schedule, request.topology, request.block
    root, chunks, ports = schedule.collective.root or 0, len(trees), topology.ports
    times = _times(schedule, trees, request.latency)
    results = np.unique(times.last[:, root])
    count, reader = _readers(times.read)
    sources = Sources(ports, results=True, injections=tuple((k,) for k in range(count)))
    stored = np.full((topology.nodes, len(results)), IDLE)
    place = np.searchsorted(results, times.last[:, root])
    stored[root, place] = 0
    fields = (
        *_settings(schedule, trees, times, sources.first_injection + reader),
        *_reads(times, reader, count, len(results)),
        *_stores(stored, results, sources, times.cycles),
    )
    variant_of, first = number_equal(
        map(bytes, np.concatenate([f.values.T for f in fields], axis=1).astype(np.int64))
    )
    loop = Loop(
        order=Order.ROW,
        flits=block,
        pause=np.array([times.cycles]),
        blocks=np.ones(1, int),
        sources=sources,
        fields=tuple(Field(f.point, f.values[:, first], f.delay) for f in fields),
        departure=np.zeros((1, ports), int),
        streams=_departures(trees, times, ports),
    )
    memory, base = np.zeros((2, topology.nodes, 1, chunks), int)
    memory[root, 0], base[:] = place, -1
    base[root] = 0
    form = request.form(
        loop,
        send_map=DirectMap(len(results), chunks, block, by_chunk=True),
        receive_map=NodeMap(memory, base, variant_of),
        moving=CycleCost(1, times.cycles - 1, block, alpha=1, hop_cycles=1),
        known_by="the in-port",
    )
    depth = np.full((topology.nodes, len(results) + chunks), block)
    depth[:, : len(results)] = np.where(stored >= 0, block, 0)
    return request.program(
        form,
        memories=memories_of(results.tolist(), chunks),
        depth=depth[first],
        variant_of=variant_of,
    )


def _readers(late: IntArray) -> tuple[int, IntArray]:
    """As many readers as any node needs that read so late: how many in all, and that of each."""
    chunk = np.arange(len(late))
    same = late[:, None] == late[None, :]
    rank = (same & (chunk[:, None] > chunk[None, :])[..., None]).sum(axis=1)
    keys, reader = np.unique(late * len(late) + rank, return_inverse=True)
    return len(keys), reader.reshape(late.shape)


def _settings(
    schedule: Schedule, trees: IntArray, times: _Times, injection: IntArray
) -> tuple[Field, ...]:
    """What feeds out-ports, and what operators combine with what arrives."""
    topology = schedule.topology
    nodes, ports = topology.nodes, topology.ports
    select, operand = np.full((2, 1, nodes, ports), IDLE, np.int16)
    # In-ports have no second registers here, so that results are numbered from `ports` on.
    passed = np.where(times.last >= 0, ports + times.last, injection)
    tree, child = np.nonzero(trees >= 0)
    out = trees[tree, child]
    select[0, child, out] = passed[tree, child]
    parent, port = topology.neighbours[child, out], topology.opposite[out]
    after = times.after[tree, child]
    operand[0, parent, port] = np.where(after >= 0, ports + after, injection[tree, parent])
    return (
        *fields_of(Action.SELECT, select, SETTING),
        *fields_of(Action.OPERAND, operand, LINK),
    )


def _reads(times: _Times, reader: IntArray, count: int, first: int) -> tuple[Field, ...]:
    """What readers read: a chunk of the node's own message each, from the memory of the chunk."""
    chunks, nodes = reader.shape
    memory, late = np.full((1, nodes, count), IDLE), np.zeros(count, int)
    late[reader] = times.read
    memory[0, np.arange(nodes), reader] = first + np.arange(chunks)[:, None]
    delays = (ADDRESS + late).tolist()
    return (
        *fields_of(Action.MEMORY, memory, delays),
        *fields_of(Action.READ, np.where(memory >= 0, 0, IDLE), delays),
    )


def _stores(
    stored: IntArray, results: IntArray, sources: Sources, cycles: int
) -> tuple[Field, ...]:
    """What the root stores: the results of the last in-port of each tree."""
    base, delay = stored[None], ADDRESS + cycles - 1
    source = np.where(base >= 0, sources.first_result + results, IDLE)
    return (
        *fields_of(Action.WRITE, base, delay),
        *fields_of(Action.SOURCE, source, delay),
        *fields_of(Action.TAP, np.where(base >= 0, 1, IDLE), delay),
    )


def _departures(trees: IntArray, times: _Times, ports: int) -> IntArray:
    """How much later than a word read in the first slot a sum leaves, shape (nodes, ports)."""
    late = np.zeros((trees.shape[1], ports), int)
    tree, node = np.nonzero(trees >= 0)
    late[node, trees[tree, node]] = times.sent[tree, node] - 1
    return late
