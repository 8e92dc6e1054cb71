"""The planner for blocks of a pattern (a schedule in which all steps forward alike).

A word enters the network by *injection*: an out-port takes it from a memory of its node. It is
*forwarded* if an out-port takes it from an in-port. The *in-arc* of a port is the arc that leads
into it.

A pattern that does not stream (`Pattern.streams`) proceeds in *waves*. Every router has two
settings: one for injection in the first row of a wave, and one for forwarding in all later rows. A
message of L flits in C chunks travels as L / C waves, one after another without a gap. With three
steps and two waves::

    cycle   0       1        2        3       4        5
    wave    0       0        0        1       1        1
    row     0       1        2        0       1        2
    router  inject  forward  forward  inject  forward  forward

The word that arrives in row r is stored in slot r of its in-port's memory, at every node. The block
that it belongs to follows from the position of the in-arc on its *flow*, the cycle or chain of arcs
along which all words of an in-port come. On a flow of length m, the word that arrives in step t by
the arc with index i was injected at index ``i - t + 1`` (modulo m). So the step in which a block
arrives is the difference of two numbers: one of the node and one of the origin.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Pattern
from ..schedule.pattern import Flows
from .address_map import AddressMap, Coordinate, direction_free_positions
from .fields import IDLE, Action, Loop, Order, Sources, make_node_memories, number_by_value
from .moves import Moves, Points
from .timing import MEMORY_AGE, PASS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..topology import BoolArray, IntArray
    from .moves import CompileRequest

__all__ = ["block_moves"]


def block_moves(request: CompileRequest) -> Moves:
    """Return the moves of blocks in a pattern: the actions of all nodes, row by row.

    In the first row nodes send chunks of their own messages. In each later row, every out-port
    forwards the words that arrived at its in-port in the row before. If all links take one cycle, a
    row moves one flit, so that words are forwarded as they arrive. On longer links a row moves all
    flits of a block, and takes at least the cycles of the longest link. When a word is forwarded,
    it is at its in-port, in the register behind the in-port, or in a memory. A node has a memory
    for each in-port, and one for each chunk of its own message.

    Parameters
    ----------
    request : CompileRequest
        The schedule, a `Pattern` whose property `streams` is False (others are for `tree_plan`),
        and the properties that its program must have.
    """
    pattern = request.schedule
    assert isinstance(pattern, Pattern)
    topology, block, steps = pattern.topology, request.block_flits, pattern.steps
    ports, chunks, links = topology.ports, pattern.chunks, topology.cycles_of_port
    least, by_flit = topology.longest_link, topology.longest_link == 1
    open_length = request.any_length and not by_flit
    if open_length and (block > least or not isinstance(topology.link_latency, int)):
        least += MEMORY_AGE - PASS  # so that words of any length are in memory by then
    takes = least if by_flit or open_length else max(block, least)
    age = takes - links + PASS
    # In-ports whose words are read from memory have a reader each, after the readers of chunks.
    rests = np.flatnonzero(age >= MEMORY_AGE)
    delayed = np.flatnonzero((age > PASS) & (age < MEMORY_AGE))
    injections = tuple((k,) for k in range(chunks + len(rests)))
    sources = Sources(ports, tuple(delayed.tolist()), injections=injections)
    entry = np.append(np.arange(ports), IDLE)
    entry[delayed] = ports + np.arange(len(delayed))
    entry[rests] = sources.first_injection + chunks + np.arange(len(rests))
    inject = np.where(pattern.inject >= 0, sources.first_injection + pattern.inject, IDLE)
    forward = entry[pattern.feed]
    variant_of, first = number_by_value(map(bytes, np.hstack([inject, forward])))
    select = np.broadcast_to(forward[first], (steps, len(first), ports)).astype(np.int16)
    select[0] = inject[first]
    row = np.arange(steps)[:, None, None]
    # Chunks are read in the first row; words of the previous row are read in all later rows.
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
            Points.from_readers(read, np.where(own == (row == 0), np.where(own, 0, row - 1), IDLE)),
            Points.from_memories(row, np.arange(ports), links),
        ),
        memories=make_node_memories(range(ports), chunks),
        depth=np.tile([steps] * ports + [1] * chunks, (len(first), 1)),
        variant_of=variant_of,
        send_map=AddressMap.from_chunk_memories(ports, chunks),
        receive_map=_receive_map(pattern, ports, 1 if by_flit else block),
        known_by="position on the stream",
    )


def _receive_map(pattern: Pattern, own: int, apart: int) -> AddressMap:
    """Return the table of addresses of the blocks that nodes receive in a pattern.

    A block that arrives in step t is stored at address ``(t - 1) * apart`` of the memory of its
    in-port. So `apart` is the distance between the blocks of successive steps: one word if rows are
    executed flit by flit, otherwise the words of a block. A node's own blocks lie in the memories
    of its own message, the first of which is memory `own`.
    """
    ways = [*_receive_maps(pattern, own, apart)]
    nodes = np.arange(pattern.topology.nodes)[:, None]
    itself = ways[0].coordinates[-1]
    if itself.modulus != len(nodes) or (itself.node_values != itself.part_values).any():
        itself = Coordinate(nodes, nodes, len(nodes))
    base = np.where(np.arange(len(nodes)) == 0, 0, -1)[None, :, None]
    found: AddressMap | None = None
    for way in reversed(ways):
        found = replace(way, otherwise=found)
    return AddressMap(own + np.arange(pattern.chunks)[None, None], base, (itself,), otherwise=found)


def _receive_maps(pattern: Pattern, own: int, apart: int) -> Iterator[AddressMap]:
    """Yield tables of addresses, each for the received blocks of one chunk and one flow.

    A *flow* is a cycle or chain of arcs along which all words of an in-port come. The step in which
    a block arrives is a difference of two positions on the flow: that of the arc into the receiver,
    and that of the arc into which the origin sends the chunk. An arc that branches off a cycle, k
    hops away from it, carries words of the cycle only after k steps; k is its *tail*. The
    parameters are those of `_receive_map`.

    Examples
    --------
    On a torus, two Hamiltonian cycles in both directions are four flows, along each of which every
    node receives. So there are four tables, each with a key for each of the nine positions on a
    cycle:

    >>> import torusfabric as tf
    >>> pattern = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> [way.base.shape for way in _receive_maps(pattern, own=4, apart=1)]
    [(1, 9, 1), (1, 9, 1), (1, 9, 1), (1, 9, 1)]
    """
    topology, flows = pattern.topology, Flows.from_pattern(pattern)
    ports, upstream = np.arange(topology.ports), topology.upstream
    arriving, index = flows.flow[upstream], flows.index[upstream]
    # The tail of an arc: first steps in which it does not carry words of its flow yet. An arc that
    # leaves a flow has no tail if it injects the chunk that the next arc of the flow injects.
    tail = np.array(flows.tail)
    nodes, outs = np.nonzero(tail == 1)
    fed_alike = pattern.feed[nodes] == pattern.feed[nodes, outs][:, None]
    twin = (fed_alike & flows.on_cycle[nodes]).argmax(axis=1)
    same = pattern.inject[nodes, outs] == pattern.inject[nodes, twin]
    tail[nodes[same], outs[same]] = 0
    tail = tail[upstream]
    for flow, length in enumerate(flows.length.tolist()):
        positions = list(_rank_arcs(arriving == flow, ports, index, tail))
        # Where chains branch, chunks injected above the branch are on all branches.
        along = np.zeros(pattern.inject.shape, bool)
        along.ravel()[flows.arcs[flows.indptr[flow] : flows.indptr[flow + 1]]] = True
        for chunk in np.unique(pattern.inject[along & (pattern.inject >= 0)]).tolist():
            entries = _rank_arcs(along & (pattern.inject == chunk), ports, flows.index)
            for (_, entry), (port, position, late) in product(entries, positions):
                at, of, before = _cycle_numbers(position, entry, length)
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


def _cycle_numbers(
    position: IntArray, entry: IntArray, length: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return numbers of receivers and origins, from whose difference the step of arrival follows.

    The result has three arrays (at, of, before). A block of an origin with number ``of[origin]``
    arrives at a node with number ``at[node]`` in step ``1 + before[(at - of) % len(before)]``; -1
    in `before` means that it never arrives. Where possible, `at` and `of` are equal, and the same
    for both directions of a cycle, so that hardware needs one table for both.

    Parameters
    ----------
    position : ndarray of int, shape (nodes,)
        Position of the arc by which each node receives, on the cycle or chain of arcs.
    entry : ndarray of int, shape (nodes,)
        Position of the arc into which each node sends its own block; -1 if there is none.
    length : int
        Number of arcs of the cycle, or 0 for a chain. On a chain, nothing arrives from nodes
        further down.
    """
    if not length:
        last = max(int(position.max()), int(entry.max()))
        return position, entry, np.append(np.arange(last + 1), np.full(last + 1, -1))
    before, shift = np.arange(length), (entry - position) % length
    if (position < 0).any() or (entry < 0).any() or np.ptp(shift):
        return position, entry, before
    numbers, sign = direction_free_positions(position, length)
    return numbers, numbers, (sign * before - shift[0]) % length


def _rank_arcs(
    chosen: BoolArray, ports: IntArray, *values: IntArray
) -> Iterator[tuple[IntArray, ...]]:
    """Yield, for all nodes at once, the first chosen arc of each node, then the second, and so on.

    The arrays `chosen`, `ports` and `values` have the shape (nodes, arcs). Result k is a tuple of
    arrays with one entry for each node: the port of its k-th arc for which `chosen` is True, and
    the entry of this arc in each array of `values`. A node with fewer chosen arcs has port 0 and
    values -1.
    """
    rank = np.cumsum(chosen, axis=1) * chosen
    for k in range(1, int(rank.max(initial=0)) + 1):
        this = rank == k
        found = this.any(axis=1)
        yield (
            (this * ports).sum(axis=1),
            *(np.where(found, (this * value).sum(axis=1), -1) for value in values),
        )
