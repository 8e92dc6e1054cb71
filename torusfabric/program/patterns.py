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
from ..schedule.pattern import Flows
from ..topology import Faulty, IntArray
from .address_map import DirectMap, Route, RouteMap
from .fields import IDLE, Action, Field, Loop, Order, Sources, fields_of, memories_of, number_equal
from .request import Request
from .round_plan import Bursts, Receipts, RoundPlan
from .rounds import compile_rounds, program_of
from .timing import ADDRESS, MEMORY_AGE, PASS, SETTING, store_delay

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
    if isinstance(pattern.topology, Faulty) and pattern.topology.slow_links:
        return compile_rounds(request)
    routes = tuple(routes_of(pattern, Flows.of(pattern)))
    return _compile_rows(request, pattern, routes, by_flit=pattern.topology.longest_link == 1)


def _compile_rows(
    request: Request, pattern: Pattern, routes: tuple[Route, ...], *, by_flit: bool
) -> Program:
    """The program of rows in which every in-port, and every chunk, has a memory.

    Flit by flit all nodes forward as words come. On links of several cycles all flits of a block go
    in each row, which takes as many cycles as the longest link, or as there are flits. What has
    arrived in a row goes on in the next: off its in-port, out of the register behind that, or out
    of its memory, whichever has it then.
    """
    topology, block, steps = pattern.topology, request.block, pattern.steps
    ports, chunks, links = topology.ports, pattern.chunks, topology.cycles_of_port
    least, apart = topology.longest_link, 1 if by_flit else block
    open_length = request.any_length and not by_flit
    if open_length and (block > least or not isinstance(topology.link_latency, int)):
        least += MEMORY_AGE - PASS  # then whatever the length, all is in memory
    takes = least if by_flit or open_length else max(block, least)
    sources, entry, rests = _entries(takes - links + PASS, chunks)
    inject = np.where(pattern.inject >= 0, sources.first_injection + pattern.inject, IDLE)
    forward = entry[pattern.feed]
    variant_of, first = number_equal(map(bytes, np.hstack([inject, forward])))
    select = np.broadcast_to(forward[first], (steps, len(first), ports)).astype(np.int16)
    select[0] = inject[first]
    row, port = np.arange(steps)[:, None, None], np.arange(ports)
    # Chunks are read in the first row, and in all later ones what came in the row before.
    read = np.append(ports + np.arange(chunks), rests)
    own = np.arange(len(read)) < chunks
    there, base = own == (row == 0), np.where(own, 0, row - 1) * block
    return request.program(
        Loop(
            order=Order.FLIT if by_flit else Order.ROW,
            flits=block,
            pause=np.zeros(steps, int),
            blocks=np.ones(steps, int),
            least=least,
            sources=sources,
            fields=(
                *fields_of(Action.SELECT, select, SETTING),
                *_alike(Action.MEMORY, np.where(there, read, IDLE), select, ADDRESS),
                *_alike(Action.READ, np.where(there, base, IDLE), select, ADDRESS),
                *_alike(Action.WRITE, row * apart + 0 * port, select, store_delay()),
                *_alike(Action.SOURCE, port + 0 * row, select, store_delay()),
                *_alike(Action.TAP, links + 0 * row, select, store_delay()),
            ),
            pitch=(steps,) * ports * by_flit,
            departure=np.broadcast_to(np.arange(steps)[:, None], (steps, ports)),
        ),
        send_map=DirectMap(ports, chunks, block, by_chunk=True),
        receive_map=RouteMap(routes, steps, ports, apart),
        known_by="position on the stream",
        memories=memories_of(range(ports), chunks),
        depth=np.tile([steps * block] * ports + [block] * chunks, (len(first), 1)),
        variant_of=variant_of,
    )


def _entries(age: IntArray, chunks: int) -> tuple[Sources, IntArray, IntArray]:
    """Where what came by each in-port is when it goes on, so many cycles after its arrival.

    Those are the sources, the number among them of each in-port, and the in-ports whose words are
    read from memory, by a reader each behind those of chunks.
    """
    ports = len(age)
    rests = np.flatnonzero(age >= MEMORY_AGE)
    delayed = np.flatnonzero((age > PASS) & (age < MEMORY_AGE))
    injections = tuple((k,) for k in range(chunks + len(rests)))
    sources = Sources(ports, tuple(delayed.tolist()), injections=injections)
    entry = np.append(np.arange(ports), IDLE)
    entry[delayed] = ports + np.arange(len(delayed))
    entry[rests] = sources.first_injection + chunks + np.arange(len(rests))
    return sources, entry, rests


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
    >>> plan.links.tolist(), plan.blocks.tolist(), len(plan.receipts.node)
    ([5], [1], 60)
    """
    topology, chunks, ports = pattern.topology, pattern.chunks, pattern.topology.ports
    root = pattern.collective.root or 0
    select, streams, (node, chunk, source, links) = _branches(pattern)
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
        links=np.array([links.max(initial=0)]),
        blocks=np.ones(1, int),
        bursts=Bursts(
            none, none + root, numbers, none, none, own + numbers, none, np.ones(chunks, int)
        ),
        receipts=Receipts(stored, node, memory, source, links, stored + slot, stored + 1),
        depth=depth,
        memories=memories_of(range(ports), 0),
        memory=located[0],
        slot=located[1],
        streams=streams,
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
    >>> from torusfabric.schedule.pattern import Flows
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
