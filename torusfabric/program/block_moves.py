"""Moves of blocks: in patterns, in tables, and in rounds.

A pattern that does not stream goes in waves. Every router knows two settings: inject (the first row
of a wave) and forward (all later rows). A message of L flits in C chunks travels as L / C waves,
one after another without a gap. Whatever arrives in a row is stored in slot ``row`` of its
in-port's memory, in every node alike; which block that is follows from the position of the in-arc
on its flow.

All that arrives at an in-port comes along one flow. On a flow of length m, what a node receives in
step t over the in-arc with index i was injected at index ``i - t + 1`` (modulo m). So the step in
which a block arrives is a difference of two numbers, one for the node and one for the origin.

Tables are planned by `table_planner`, rounds by `rounds`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..schedule import Pattern, Table
from ..schedule.pattern import Flows
from ..topology import Faulty
from .address_map import AddressMap, Coordinate, count_both_ways
from .fields import IDLE, Action, Loop, Order, Sources, memories_of, number_equal
from .moves import Moves, Points
from .rounds import round_moves
from .table_planner import plan_table
from .timing import MEMORY_AGE, PASS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..topology import BoolArray, IntArray
    from .moves import Request

__all__ = ["Route", "block_moves", "routes_of"]


def block_moves(request: Request) -> Moves:
    """Return the moves of blocks, by the form of the schedule.

    In the rows of a pattern every in-port, and every chunk, has a memory. Flit by flit all nodes
    forward as words come. On links of several cycles all flits of a block go in each row, which
    takes as many cycles as the longest link, or as there are flits. What has arrived in a row goes
    on in the next: off its in-port, out of the register behind that, or out of its memory,
    whichever has it then.
    """
    pattern = request.schedule
    slow = isinstance(pattern.topology, Faulty) and pattern.topology.slow_links
    if isinstance(pattern, Table):
        return plan_table(request)
    if not isinstance(pattern, Pattern) or slow or request.any_root:
        return round_moves(request)
    topology, block, steps = pattern.topology, request.block, pattern.steps
    ports, chunks, links = topology.ports, pattern.chunks, topology.cycles_of_port
    least, by_flit = topology.longest_link, topology.longest_link == 1
    open_length = request.any_length and not by_flit
    if open_length and (block > least or not isinstance(topology.link_latency, int)):
        least += MEMORY_AGE - PASS  # then whatever the length, all is in memory
    takes = least if by_flit or open_length else max(block, least)
    age = takes - links + PASS
    # Words that are read from memory have a reader each, behind those of chunks.
    rests = np.flatnonzero(age >= MEMORY_AGE)
    delayed = np.flatnonzero((age > PASS) & (age < MEMORY_AGE))
    injections = tuple((k,) for k in range(chunks + len(rests)))
    sources = Sources(ports, tuple(delayed.tolist()), injections=injections)
    entry = np.append(np.arange(ports), IDLE)
    entry[delayed] = ports + np.arange(len(delayed))
    entry[rests] = sources.first_injection + chunks + np.arange(len(rests))
    inject = np.where(pattern.inject >= 0, sources.first_injection + pattern.inject, IDLE)
    forward = entry[pattern.feed]
    variant_of, first = number_equal(map(bytes, np.hstack([inject, forward])))
    select = np.broadcast_to(forward[first], (steps, len(first), ports)).astype(np.int16)
    select[0] = inject[first]
    row = np.arange(steps)[:, None, None]
    # Chunks are read in the first row, and in all later ones what came in the row before.
    read = np.append(ports + np.arange(chunks), rests)
    own = np.arange(len(read)) < chunks
    routes = routes_of(pattern, Flows.of(pattern))
    return Moves(
        loop=Loop(
            order=Order.FLIT if by_flit else Order.ROW,
            flits=block,
            pause=np.zeros(steps, int),
            blocks=np.ones(steps, int),
            least=least,
            sources=sources,
            pitch=(steps,) * ports * by_flit,
            departure=np.broadcast_to(np.arange(steps)[:, None], (steps, ports)),
        ),
        points=(
            Points({Action.SELECT: select}),
            Points.of_readers(read, np.where(own == (row == 0), np.where(own, 0, row - 1), IDLE)),
            Points.of_memories(row, np.arange(ports), links),
        ),
        memories=memories_of(range(ports), chunks),
        depth=np.tile([steps] * ports + [1] * chunks, (len(first), 1)),
        variant_of=variant_of,
        send_map=AddressMap.chunk_by_chunk(ports, chunks),
        receive_map=_receive_map(routes, steps, chunks, ports, 1 if by_flit else block),
        known_by="position on the stream",
    )


class Route(NamedTuple):
    """One way by which blocks of one chunk reach nodes.

    Parameters
    ----------
    at, of : ndarray of int, shape (nodes,)
        Positions on the flow: the index of a node's in-arc, and that of the arc by which an origin
        injects the chunk; -1 for none.
    before : ndarray of int
        For each difference of both the steps before the block arrives; -1 if it never does.
    port : ndarray of int, shape (nodes,)
        The in-port of a node.
    tail : ndarray of int, shape (nodes,)
        Steps after which a node's in-arc carries the flow; before, it carries what was injected
        on the way from the flow to the node.
    """

    chunk: int
    at: IntArray
    of: IntArray
    before: IntArray
    port: IntArray
    tail: IntArray


def _receive_map(routes: list[Route], steps: int, chunks: int, own: int, apart: int) -> AddressMap:
    """Return where blocks lie that reach nodes by routes.

    What arrives in step t is stored at base ``(t - 1) * apart`` of the memory of its in-port; the
    step is a difference of two positions (see `Route`). What is a node's own lies in its send
    memories, the first of which is `own`.
    """
    grouped: dict[tuple[bytes, int], dict[int, Route]] = {}
    for route in routes:
        known = (grouped.setdefault((route.before.tobytes(), rank), {}) for rank in count())
        next(group for group in known if route.chunk not in group)[route.chunk] = route
    nodes = np.arange(len(routes[0].at))[:, None]
    itself = Coordinate(nodes, nodes, len(nodes))
    found: AddressMap | None = None
    for group in reversed(grouped.values()):
        found = _route_map(group, steps, chunks, own, apart, found)
        along = found.coordinates[-1]
        if along.modulus == len(nodes) and (along.at == along.of).all():
            itself = along
    base = np.where(np.arange(len(nodes)) == 0, 0, -1)[None, :, None]
    return AddressMap(own + np.arange(chunks)[None, None], base, (itself,), otherwise=found)


def _route_map(
    group: Mapping[int, Route], steps: int, chunks: int, own: int, apart: int,
    otherwise: AddressMap | None,
) -> AddressMap:  # fmt: skip
    """Return where blocks lie that arrive by one route of each of some chunks."""
    before, nodes = next((route.before, len(route.at)) for route in group.values())
    tails = np.unique([route.tail for route in group.values()])
    arrives = (before >= tails[:, None]) & (before < steps)
    base = np.where(arrives, before * apart, -1).reshape(1, -1, 1)
    at, of, late = np.zeros((3, nodes, chunks), int)
    memory = np.tile(own + np.arange(chunks), (nodes, 1, 1))
    for chunk, route in group.items():
        at[:, chunk], of[:, chunk] = route.at, route.of
        late[:, chunk] = np.searchsorted(tails, route.tail)
        memory[:, 0, chunk] = np.where(route.at >= 0, route.port, memory[:, 0, chunk])
    coordinates = (
        Coordinate(late, np.zeros((1, 1), int), len(tails)),
        Coordinate(at, of, len(before)),
    )
    base = np.where(np.isin(np.arange(chunks), [*group]), base, -1)
    return AddressMap(memory, base, coordinates, otherwise=otherwise)


def routes_of(pattern: Pattern, flows: Flows) -> list[Route]:
    """All routes of an oblivious schedule.

    Examples
    --------
    A ring of four in both directions: two flows, along each of which every node receives.

    >>> import torusfabric as tf
    >>> from torusfabric.schedule.pattern import Flows
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> routes = routes_of(pattern, Flows.of(pattern))
    >>> len(routes), len(routes[0].before)
    (4, 9)
    """
    topology = pattern.topology
    ports = np.arange(topology.ports)
    upstream = topology.upstream
    arriving, index = flows.flow[upstream], flows.index[upstream]
    # Steps in which each arc does not carry its flow yet. An arc that leaves a flow carries it from
    # the first step on if it injects what the next arc of the flow injects.
    tail = np.array(flows.tail)
    nodes, outs = np.nonzero(tail == 1)
    fed_alike = pattern.feed[nodes] == pattern.feed[nodes, outs][:, None]
    twin = (fed_alike & flows.on_cycle[nodes]).argmax(axis=1)
    same = pattern.inject[nodes, outs] == pattern.inject[nodes, twin]
    tail[nodes[same], outs[same]] = 0
    tail = tail[upstream]
    routes = []
    for flow, length in enumerate(flows.length.tolist()):
        positions = list(_ranked(arriving == flow, ports, index, tail))
        # Where chains branch, what is injected above the branch is on each of them.
        along = np.zeros(pattern.inject.shape, bool)
        along.ravel()[flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]]] = True
        for chunk in np.unique(pattern.inject[along & (pattern.inject >= 0)]).tolist():
            for _, entry in _ranked(along & (pattern.inject == chunk), ports, flows.index):
                routes += [
                    Route(chunk, *_numbers(position, entry, length), port, late.clip(0))
                    for port, position, late in positions
                ]
    return routes


def _numbers(
    position: IntArray, entry: IntArray, length: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return numbers of nodes and of origins, and the steps before arrival for each difference.

    Where every node injects just behind its in-arc, both numbers are one, and the same for both
    directions of a cycle. On a chain nothing comes from further down it.
    """
    if not length:
        last = max(int(position.max()), int(entry.max()))
        return position, entry, np.append(np.arange(last + 1), np.full(last + 1, -1))
    before, shift = np.arange(length), (entry - position) % length
    if (position < 0).any() or (entry < 0).any() or np.ptp(shift):
        return position, entry, before
    numbers, sign = count_both_ways(position, length)
    return numbers, numbers, (sign * before - shift[0]) % length


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
