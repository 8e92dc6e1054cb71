"""Moves of blocks in a pattern.

A pattern that does not stream goes in waves. Every router knows two settings: inject (the first row
of a wave) and forward (all later rows). A message of L flits in C chunks travels as L / C waves,
one after another without a gap. Whatever arrives in a row is stored in slot ``row`` of its
in-port's memory, in every node alike; which block that is follows from the position of the in-arc
on its flow.

All that arrives at an in-port comes along one flow. On a flow of length m, what a node receives in
step t over the in-arc with index i was injected at index ``i - t + 1`` (modulo m). So the step in
which a block arrives is a difference of two numbers, one for the node and one for the origin.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Pattern
from ..schedule.pattern import Flows
from .address_map import AddressMap, Coordinate, count_both_ways
from .fields import IDLE, Action, Loop, Order, Sources, memories_of, number_equal
from .moves import Moves, Points
from .timing import MEMORY_AGE, PASS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..topology import BoolArray, IntArray
    from .moves import Request

__all__ = ["block_moves"]


def block_moves(request: Request) -> Moves:
    """Return the moves of the blocks of a pattern.

    In the rows of a pattern every in-port, and every chunk, has a memory. Flit by flit all nodes
    forward as words come. On links of several cycles all flits of a block go in each row, which
    takes as many cycles as the longest link, or as there are flits. What has arrived in a row goes
    on in the next: off its in-port, out of the register behind that, or out of its memory,
    whichever has it then.
    """
    pattern = request.schedule
    assert isinstance(pattern, Pattern)
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
        receive_map=_receive_map(pattern, ports, 1 if by_flit else block),
        known_by="position on the stream",
    )


def _receive_map(pattern: Pattern, own: int, apart: int) -> AddressMap:
    """Return where blocks lie that a pattern brings.

    What arrives in step t is stored at base ``(t - 1) * apart`` of the memory of its in-port. What
    is a node's own lies in its send memories, the first of which is `own`.
    """
    ways = [*_ways(pattern, own, apart)]
    nodes = np.arange(pattern.topology.nodes)[:, None]
    itself = ways[0].coordinates[-1]
    if itself.modulus != len(nodes) or (itself.at != itself.of).any():
        itself = Coordinate(nodes, nodes, len(nodes))
    base = np.where(np.arange(len(nodes)) == 0, 0, -1)[None, :, None]
    found: AddressMap | None = None
    for way in reversed(ways):
        found = replace(way, otherwise=found)
    return AddressMap(own + np.arange(pattern.chunks)[None, None], base, (itself,), otherwise=found)


def _ways(pattern: Pattern, own: int, apart: int) -> Iterator[AddressMap]:
    """Yield where blocks lie that arrive by one flow: those of one chunk, by one in-port a node.

    The step of arrival is a difference of two positions on the flow: that of the in-arc of a node,
    and that of the arc by which an origin injects the chunk. It is more than the `tail` of the
    in-arc, for up to then what arrives was injected on the way from the flow to the node.

    Examples
    --------
    On a torus, two Hamiltonian cycles in both directions are four flows, along each of which every
    node receives.

    >>> import torusfabric as tf
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> [way.base.shape for way in _ways(pattern, own=4, apart=1)]
    [(1, 9, 1), (1, 9, 1), (1, 9, 1), (1, 9, 1)]
    """
    topology, flows = pattern.topology, Flows.of(pattern)
    ports, upstream = np.arange(topology.ports), topology.upstream
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
    for flow, length in enumerate(flows.length.tolist()):
        positions = list(_ranked(arriving == flow, ports, index, tail))
        # Where chains branch, what is injected above the branch is on each of them.
        along = np.zeros(pattern.inject.shape, bool)
        along.ravel()[flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]]] = True
        for chunk in np.unique(pattern.inject[along & (pattern.inject >= 0)]).tolist():
            entries = _ranked(along & (pattern.inject == chunk), ports, flows.index)
            for (_, entry), (port, position, late) in product(entries, positions):
                at, of, before = _numbers(position, entry, length)
                tails, late = np.unique(late.clip(0), return_inverse=True)
                arrives = (before >= tails[:, None]) & (before < pattern.steps)
                goes = np.where(np.arange(pattern.chunks) == chunk, 0, -1)
                yield AddressMap(
                    np.where(at >= 0, port, own + chunk)[:, None, None],
                    np.where(arrives, before * apart, -1).reshape(1, -1, 1),
                    (
                        Coordinate(goes[None], np.zeros((1, 1), int), 1),
                        Coordinate(late[:, None], np.zeros((1, 1), int), len(tails)),
                        Coordinate(at[:, None], of[:, None], len(before)),
                    ),
                )


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
