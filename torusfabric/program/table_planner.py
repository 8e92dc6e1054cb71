"""The planner for tables of blocks: the cheapest order in which words can move without a pause.

A word that arrived k cycles ago is taken from one of three locations:

======  ==========================================================
k       location
======  ==========================================================
1       its in-port
2       the register behind the in-port
>= 3    a memory: the word has been written and read again
======  ==========================================================

So a table takes one cycle a step whatever the latency of a memory. A table in which no word rests
needs no memory for words on their way. On links of several cycles, a word has not arrived one step
later. Either all flits of a block move in each step, at least as many as the link has cycles; or,
for fewer flits, every word leaves as soon as it can, in the order of the steps.

Each memory has one write port and one read port. If two words that came by the same in-port leave
in the same step, the second waits in an additional memory of that in-port.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..schedule import Table
from .fields import Action, Stage
from .node_planner import FOREVER, Consumer, SharedMemory, TableTraffic, Word, WordUse, plan_node
from .table_timing import (
    Key,
    TableArrival,
    TableTiming,
    TableTransfers,
    plan_by_cycle,
    plan_in_order,
)
from .timing import MEMORY_AGE, PASS

if TYPE_CHECKING:
    from .moves import CompileRequest, Moves

__all__ = ["plan_table"]

#: One of a node's own blocks: (offset of the destination, chunk).
SentBlock: TypeAlias = tuple[int, ...]

#: The departures of each of these blocks: (row, out-port).
_Sent: TypeAlias = dict[SentBlock, list[tuple[int, int]]]


def plan_table(request: CompileRequest) -> Moves:
    """Plan the moves of a table of blocks: the actions of a node in each row.

    They are the same at all nodes.

    Parameters
    ----------
    request : CompileRequest
        A `Table`, with the properties that its program must have.

    Returns
    -------
    Moves
        The moves with the fewest cycles, and of these the moves with the least hardware. Two orders
        are compared: flit by flit, and all flits of a block in each step.

    Examples
    --------
    In four steps a node receives fifteen blocks over four in-ports. No block waits for more than
    one cycle before it is sent on, so only the node's own block is read from a memory.

    >>> import torusfabric as tf
    >>> from torusfabric.program.moves import CompileRequest
    >>> table = tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching")
    >>> moves = plan_table(CompileRequest(table, flits=1))
    >>> moves.loop.n_rows, len(moves.memories), moves.loop.sources.n_readers
    (4, 5, 1)
    """
    table, flits = request.schedule, request.block_flits
    assert isinstance(table, Table)
    transfers, longest = TableTransfers(table), table.topology.longest_link
    orders = [True, False]
    if request.short or (longest == 1 and (request.any_length or flits == 1)):
        orders = [True]
    # If the length is open, all words that go on are taken from memories.
    age = MEMORY_AGE if request.any_length else PASS
    plans = []
    for by_waves in orders:
        soon = by_waves and longest > 1
        timing = plan_by_cycle(transfers) if soon else plan_in_order(transfers, table.round_count)
        # If each block arrives only once, its last arrival is its first: one plan is enough.
        for latest in (True, False)[: 1 + any(len(a) > 1 for a in transfers.arrivals.values())]:
            traffic, least = _list_traffic(transfers, timing, by_waves=by_waves, latest=latest), 1
            if not by_waves:
                waits = (
                    -(
                        -(transfers.longer[use.word.origin[1]] + age)
                        // (use.step - use.word.origin[0])
                    )
                    for use in traffic.all_uses
                    if use.word.stage is Stage.PORT
                )
                least = max(waits, default=1)
                steady = replace(timing, period=max(least, flits), by_cycle=False)
                traffic = replace(traffic, timing=steady)
            memories = [*_receive_memories(traffic), *_send_memories(traffic)]
            plans.append(plan_node(request, traffic, memories, least=least))
    return min(plans, key=lambda plan: (plan.loop.n_slots(flits), _hardware_cost(plan)))


def _hardware_cost(moves: Moves) -> tuple[int, int, int]:
    """Return the hardware of moves as three numbers, the most important first.

    They are the LUTs for each bit of a flit, the number of memories for arriving words that are
    read, and the number of second registers behind in-ports.
    """
    select, *_, reads, stores = (each.values for each in moves.points)
    columns = select[Action.SELECT][:, 0].T
    inputs = [len(np.unique(column[column >= 0])) for column in columns]
    read = int((reads[Action.MEMORY] < len(stores[Action.SOURCE])).sum())
    luts = sum(-(-count // 2) for count in inputs if count > 1)
    return luts, read, len(moves.loop.sources.delayed)


def _list_traffic(
    transfers: TableTransfers, timing: TableTiming, *, by_waves: bool, latest: bool
) -> TableTraffic:
    """Return all words that the out-ports of a node take, with their cycles.

    The words are those of `transfers`, and `timing` has the cycles in which they are on links. If a
    block arrives several times, an out-port takes its latest arrival if `latest`, otherwise its
    first. If `by_waves`, a row is one cycle; a word from a link of k cycles can then leave only k
    rows later.
    """

    def first_send_row(arrival: TableArrival) -> int:
        """Return the first row in which the word of `arrival` can be sent on."""
        return timing.row[arrival] + PASS + by_waves * transfers.longer[arrival.port]

    came = {block: sorted(each, key=first_send_row) for block, each in transfers.arrivals.items()}
    taken = []
    for step, port, block, *_ in transfers.departures:
        word = Word(Stage.INJECTION, block)
        if block[0]:
            before = came[block]
            if len(before) > 1:
                before = [
                    arrival
                    for arrival in before
                    if first_send_row(arrival) <= timing.row[step, port]
                ]
            word = Word(Stage.PORT, before[-latest])
        taken.append(WordUse(Consumer(port, adds=False), step, word))
    table = transfers.table
    personal, local, blocks = table.collective.personal, table.collective.local, table.blocks
    # Arrivals of each delivered block, by (offset or number of the part, chunk).
    if local:
        kept = {
            (part, chunk): came[offset, part if personal else 0, chunk]
            for part, offset in enumerate(blocks.target_positions[0].tolist())
            for chunk in range(table.chunks)
        }
    else:
        kept = {
            (offset, chunk): arrivals
            for (offset, goal, chunk), arrivals in came.items()
            if not personal or offset == goal
        }
    complete: dict[Key, Word] = {at: Word(Stage.PORT, first) for at, (first, *_) in kept.items()}
    return TableTraffic(transfers, timing, taken, complete)


def _receive_memories(traffic: TableTraffic) -> list[SharedMemory]:
    """Return the memories of a node for arrived words, with the words of `traffic` that each holds.

    Every in-port has a memory. It has further ones for words that wait and leave in the same row,
    since a memory reads one word at a time.
    """
    timing, longer = traffic.timing, traffic.transfers.longer
    found: list[list[SharedMemory]] = []
    for port in range(traffic.transfers.ports):
        memories, leaving = [SharedMemory(port)], defaultdict[int, list[Word]](list)
        for use in sorted(
            traffic.waiting_uses[port, Stage.PORT], key=lambda use: (use.step, use.consumer)
        ):
            row = timing.row[use.step, use.consumer.port]
            words = leaving[row]
            if use.word not in words:
                words.append(use.word)
            number = words.index(use.word)
            if number == len(memories):
                memories.append(SharedMemory(port))
            memories[number].add_use(use, row)
        for memory in memories:
            # A slot may be overwritten in the row in which it is read for the last time.
            rows = sorted(memory.rows.items())
            memory.held = {word: row * timing.period + longer[word.origin[1]] for row, word in rows}
        memories[0].held |= traffic.delivered_words(port)
        found.append(memories)
    return [first for first, *_ in found] + [more for _, *others in found for more in others]


def _send_memories(traffic: TableTraffic) -> list[SharedMemory]:
    """Return the memories of a node for its own blocks, with the blocks that each holds.

    Blocks that leave in the same row are in different memories; the rows follow from `traffic`. The
    first of these assignments that is possible is taken: all blocks in one memory; a memory for
    each out-port, if every block leaves by a single out-port; each block in the first memory
    without a block that leaves in the same row.
    """
    table, timing = traffic.transfers.table, traffic.timing
    own = [use for use in traffic.taken if use.word.stage is Stage.INJECTION]
    sent: _Sent = defaultdict(list)
    for use in own:
        row = timing.row[use.step, use.consumer.port]
        sent[use.word.origin[1:]].append((row, use.consumer.port))
    blocks: list[SentBlock] = list(np.ndindex(table.blocks.messages_per_origin, table.chunks))
    leaving: dict[int, set[SentBlock]] = defaultdict(set)
    for block, departures in sent.items():
        for step, _ in departures:
            leaving[step].add(block)
    number = dict.fromkeys(blocks, 0)
    at_once = any(len(together) > 1 for together in leaving.values())
    by_port = all(len({port for _, port in departures}) == 1 for departures in sent.values())
    if at_once and by_port:
        ports = sorted({departures[0][1] for departures in sent.values()})
        number |= {block: ports.index(departures[0][1]) for block, departures in sent.items()}
    else:
        apart: dict[SentBlock, int] = {}
        for block in sorted(sent, key=lambda block: sent[block][0]):
            rivals: set[SentBlock] = set().union(*(leaving[step] for step, _ in sent[block]))
            used = {apart.get(rival) for rival in rivals}
            apart[block] = next(k for k in range(len(blocks)) if k not in used)
        number |= apart
    memories = [SharedMemory() for _ in range(max(number.values()) + 1)]
    # Blocks lie in the order in which they leave. A single memory of a message that is the same for
    # all destinations keeps the order of the host.
    last = [(timing.rows, 0)]
    order = sorted(number, key=lambda block: sent.get(block, last)[0])
    in_order = len(memories) > 1 or table.collective.personal
    for block in order if in_order else blocks:
        memories[number[block]].held[Word(Stage.INJECTION, (0, *block))] = FOREVER
    for use in own:
        memories[number[use.word.origin[1:]]].add_use(use, timing.row[use.step, use.consumer.port])
    return memories
