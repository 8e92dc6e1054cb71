"""Programs of oblivious schedules: a `Pattern` is waves, or one round of trees.

Where one node alone sends, and every arc carries one block, the arcs are trees that never change: a
round of circuits that branch, through which messages stream flit by flit. Else messages go in
waves.

Every router knows two settings: inject (the first row of a wave) and forward (all later rows). A
message of L flits in C chunks travels as L / C waves, one after another without a gap. Whatever
arrives in a row is stored at ``wave * steps + row`` of its in-port's memory, in every node alike;
which block that is follows from the position of the in-arc on its flow.

All that arrives at an in-port comes along one flow. On a flow of length m, what a node receives in
step t over the in-arc with index i was injected at index ``i - t + 1`` (modulo m). So the step in
which a block arrives is a difference of two numbers, one for the node and one for the origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Pattern
from ..schedule.flows import Flows
from ..topology import IntArray
from .address_map import DirectMap, Route, RouteMap
from .fields import IDLE, Action, Field, Loop, Order, Sources, fields_of, memories_of, number_equal
from .form import CycleCost
from .request import Request
from .round_follower import Bursts, Receipts, RoundPlan
from .rounds import program_of
from .timing import ADDRESS, SETTING, store_delay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..topology import BoolArray
    from .program import Program

__all__ = ["Route", "compile_pattern", "routes_of", "tree_plan"]


def compile_pattern(request: Request) -> Program:
    """The program of an oblivious schedule.

    Examples
    --------
    Two flits in two chunks are one wave; every in-port has a memory, and so has every chunk.

    >>> import torusfabric as tf
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> program = compile_pattern(Request(pattern, flits=2))
    >>> pattern.chunks, program.loop.rows, len(program.memories)
    (2, 4, 6)
    """
    pattern = request.schedule
    assert isinstance(pattern, Pattern)
    if pattern.streams:
        return program_of(request, tree_plan(pattern))
    waves, steps = request.block, pattern.steps
    ports, chunks = pattern.topology.ports, pattern.chunks
    inject = np.where(pattern.inject >= 0, ports + pattern.inject, IDLE)
    forward = np.where(pattern.feed >= 0, pattern.feed, IDLE)
    variant_of, first = number_equal(map(bytes, np.hstack([inject, forward])))
    select = np.broadcast_to(forward[first], (steps, len(first), ports)).astype(np.int16)
    select[0] = inject[first]
    # Every chunk is injected in the first row, and every row is stored in all nodes alike.
    row, chunk, port = np.arange(steps), np.arange(chunks), np.arange(ports)
    later = row[:, None, None] > 0
    loop = Loop(
        order=Order.FLIT,
        flits=waves,
        pause=np.zeros(steps, int),
        blocks=np.ones(steps, int),
        sources=Sources(ports, injections=tuple((k,) for k in range(chunks))),
        fields=(
            *fields_of(Action.SELECT, select, SETTING),
            *_alike(Action.MEMORY, np.where(later, IDLE, ports + chunk), select, ADDRESS),
            *_alike(Action.READ, np.where(later, IDLE, 0 * chunk), select, ADDRESS),
            *_alike(Action.WRITE, row[:, None, None] + 0 * port, select, store_delay()),
            *_alike(Action.SOURCE, port, select, store_delay()),
            *_alike(Action.TAP, 1 + 0 * port, select, store_delay()),
        ),
        pitch=(steps,) * ports,
        departure=np.broadcast_to(np.arange(steps)[:, None], (steps, ports)),
    )
    form = request.form(
        loop,
        send_map=DirectMap(ports, chunks, waves, by_chunk=True),
        receive_map=RouteMap(tuple(routes_of(pattern, Flows.of(pattern))), steps, ports),
        moving=CycleCost(steps, 0, steps * waves),
        known_by="position on the stream",
    )
    return request.program(
        form,
        memories=memories_of(range(ports), chunks),
        depth=np.tile([steps * waves] * ports + [waves] * chunks, (len(first), 1)),
        variant_of=variant_of,
    )


def tree_plan(pattern: Pattern, *, by_chunk: bool = False) -> RoundPlan:
    """What all nodes do in the one round in which messages stream down the trees of a pattern.

    Parameters
    ----------
    pattern : Pattern
        That `streams`.
    by_chunk : bool
        Whether words are stored in a memory for each chunk, behind what the node would send as the
        root; else in one for each in-port.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plan = tree_plan(tf.plan("4x4", "broadcast", algorithm="spanning-tree"))
    >>> plan.hops.tolist(), plan.blocks.tolist(), len(plan.receipts.node)
    ([5], [1], 60)
    """
    topology, chunks, ports = pattern.topology, pattern.chunks, pattern.topology.ports
    root = pattern.collective.root or 0
    select, streams, (node, chunk, source, hops) = _branches(pattern)
    numbers, none = np.arange(chunks), np.zeros(chunks, int)
    own, slot = (0, 1) if by_chunk else (ports, 0)
    memory = chunk if by_chunk else source
    depth = np.zeros((topology.nodes, own + chunks), int)
    depth[node, memory] = 1 + slot
    depth[root, own + numbers] = 1
    located = np.full((2, topology.nodes, chunks), -1)
    located[:, node, chunk] = memory, np.full(len(memory), slot)
    located[:, root] = own + numbers, none
    stored = np.zeros_like(node)
    return RoundPlan(
        select=select[None],
        hops=np.array([hops.max(initial=0)]),
        blocks=np.ones(1, int),
        bursts=Bursts(
            none, none + root, numbers, none, none, own + numbers, none, np.ones(chunks, int)
        ),
        receipts=Receipts(stored, node, memory, source, hops, stored + slot, stored + 1),
        depth=depth,
        memory=located[0],
        slot=located[1],
        streams=streams,
    )


def _branches(pattern: Pattern) -> tuple[IntArray, IntArray, IntArray]:
    """The settings of trees, the hops from the root to what sends, and what nodes receive.

    Of the first arrival of each chunk these are columns: node, chunk, in-port and hops.
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
    found = [np.zeros((0, 4), int)]
    for hops in range(1, pattern.steps + 1):
        select[node, port], late[node, port] = entry, hops - 1
        node, entry = topology.neighbours[node, port], topology.opposite[port]
        arrived = np.stack([node, chunk, entry, np.full(len(node), hops)], axis=1)
        new = arrived[~held[node, chunk]]
        new = new[np.unique(new[:, :2], axis=0, return_index=True)[1]]
        held[new[:, 0], new[:, 1]] = True
        found.append(new)
        branch, port = np.nonzero(pattern.feed[node] == entry[:, None])
        node, chunk, entry = node[branch], chunk[branch], entry[branch]
    return select, late, np.concatenate(found).T


def _alike(action: Action, values: IntArray, select: IntArray, delay: int) -> tuple[Field, ...]:
    """Fields whose values are the same in all variants; the last axis is that of points."""
    shape = (*select.shape[:2], values.shape[-1])
    return fields_of(action, np.broadcast_to(values, shape), delay)


def routes_of(pattern: Pattern, flows: Flows) -> list[Route]:
    """All routes of an oblivious schedule.

    Examples
    --------
    A ring of four in both directions: two flows, along each of which every node receives.

    >>> import torusfabric as tf
    >>> from torusfabric.schedule.flows import Flows
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> routes = routes_of(pattern, Flows.of(pattern))
    >>> len(routes), routes[0].length
    (4, 9)
    """
    topology = pattern.topology
    ports = np.arange(topology.ports)
    upstream = topology.upstream
    arriving, index = flows.flow[upstream], flows.index[upstream]
    tail = _tails(pattern, flows)[upstream]
    routes = []
    for flow, length in enumerate(flows.length.tolist()):
        positions = list(_ranked(arriving == flow, ports, index, tail))
        # Where chains branch, what is injected above the branch is on each of them.
        along = np.zeros(pattern.inject.shape, bool)
        along.ravel()[flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]]] = True
        for chunk in np.unique(pattern.inject[along & (pattern.inject >= 0)]).tolist():
            for _, entry in _ranked(along & (pattern.inject == chunk), ports, flows.index):
                routes += [
                    Route(chunk, length, position, port, entry, late)
                    for port, position, late in positions
                ]
    return routes


def _tails(pattern: Pattern, flows: Flows) -> IntArray:
    """Steps in which each arc does not carry its flow yet.

    An arc that leaves a flow carries it from the first step on if it injects what the next arc of
    the flow injects.
    """
    tail = np.array(flows.tail)
    nodes, ports = np.nonzero(tail == 1)
    fed_alike = pattern.feed[nodes] == pattern.feed[nodes, ports][:, None]
    twin = (fed_alike & flows.on_cycle[nodes]).argmax(axis=1)
    same = pattern.inject[nodes, ports] == pattern.inject[nodes, twin]
    tail[nodes[same], ports[same]] = 0
    return tail


def _ranked(
    chosen: BoolArray, ports: IntArray, *values: IntArray
) -> Iterator[tuple[IntArray, ...]]:
    """Port and values of the first chosen arc of each node, then of the second, ..; else 0, -1."""
    rank = np.cumsum(chosen, axis=1) * chosen
    for k in range(1, int(rank.max(initial=0)) + 1):
        this = rank == k
        found = this.any(axis=1)
        yield (
            (this * ports).sum(axis=1),
            *(np.where(found, (this * value).sum(axis=1), -1) for value in values),
        )
