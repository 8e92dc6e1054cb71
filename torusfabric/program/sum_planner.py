"""The planner for tables of sums: which words are added to which.

Every in-port has an adder. An arriving word is combined at once with the sum that it belongs to:
with the node's own contribution if it is the first, otherwise with the result for the previous
arrival. The result is in a register behind the adder one cycle later, plus the latency of the
operator. An out-port or another adder takes the result from that register, from the register behind
it, or from a memory (see `node_planner`).

`table_timing` decides the cycles of all words, *by cycle* (every word leaves as soon as it can) or
*by step* (all flits of a block go in each step). An out-port or an adder takes at most one word a
cycle, so that a memory of its own is always free for it. To save memories, those of several
out-ports and adders are merged if they are never read at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import SumTable, Table
from .fields import Order, Stage
from .node_planner import FOREVER, Consumer, SharedMemory, TableTraffic, Word, WordUse, plan_node
from .table_timing import (
    TableArrival,
    TableTiming,
    TableTransfers,
    link_rules,
    plan_by_cycle,
    plan_by_step,
)
from .timing import COMBINE, MEMORY_AGE

if TYPE_CHECKING:
    from .moves import CompileRequest, Moves

__all__ = ["plan_sums"]


def plan_sums(request: CompileRequest) -> Moves:
    """Plan the moves of a table of sums: the actions of a node in each row, the same at all nodes.

    There are two kinds of plans. By cycle, every word leaves as soon as it can. By step, a step of
    the table is a row, in which all flits of a block are sent. If each run chooses the length of
    messages, one plan must serve all lengths, and only the cycles of a row may depend on the
    length. A plan by step can do this. The alternative is a plan for blocks of the largest length
    only, to which all shorter blocks are filled up (`padded`). Its runs then take equal cycles for
    all lengths. It is taken if these are at most the cycles of the plan by step for the shortest
    blocks.

    Returns
    -------
    Moves
        The plan with fewer cycles: by cycle, or by step. If each run chooses the length, the plan
        is by step, unless blocks are padded, or nodes keep their sums, or `request.short` is true.

    Examples
    --------
    Blocks of one flit move by cycle (flit by flit), long ones by step (row by row):

    >>> import torusfabric as tf
    >>> table = tf.plan(tf.Torus(3), "reduce-scatter", algorithm="matching")
    >>> [tf.compile(table, flits=flits).loop.order.value for flits in (1, 300)]
    ['flit', 'row']

    If runs choose the length, a row takes at least one cycle here. In the second table, blocks are
    padded instead:

    >>> tf.compile(table, max_flits=300).loop.least
    1
    >>> table = tf.plan(tf.Torus(4, 4), "allreduce", algorithm="matching")
    >>> tf.compile(table, max_flits=16).loop.padded
    True
    """
    table, latency = request.schedule, request.latency
    assert isinstance(table, Table | SumTable)
    transfers = TableTransfers(table, latency)
    timings = [plan_by_cycle(transfers)]
    # In short messages all rows are for each flit; they serve for any number of flits.
    by_steps = isinstance(table, Table) and not request.short
    if request.block_flits > 1 and by_steps:
        timings.append(plan_by_step(transfers, table.round_count, request.block_flits))

    def plan_with_timing(timing: TableTiming) -> Moves:
        traffic = _list_traffic(transfers, timing)
        return plan_node(request, traffic, [*_receive_memories(traffic), *_send_memories(traffic)])

    def run_cycles(moves: Moves) -> int:
        """Return the cycles of a run of `moves`, from the first row to the last write."""
        loop = moves.loop
        if loop.order is Order.FLIT:
            return loop.n_slots(request.block_flits) + latency
        late = int(loop.departure_skew.max()) + COMBINE + latency - int(loop.pause[0])
        # Rows by the cycle include those of a link.
        return loop.n_rows * loop.least + max(late, 0) + max(transfers.longer)

    plans = [plan_with_timing(timing) for timing in timings]
    durations = [run_cycles(each) for each in plans]
    longest = int(np.argmin(durations))
    if not (request.any_length and by_steps):
        return plans[longest]
    # One plan must serve all lengths: only the interval of steps may depend on the length.
    long = transfers.reach + latency + MEMORY_AGE
    timing = plan_by_step(transfers, table.round_count, long)
    found = wanted = plan_with_timing(timing)
    rules = link_rules(transfers)
    for period in range(1, long):
        if all(rule.is_obeyed(period, timing.skew, transfers) for rule in rules):
            shorter = plan_with_timing(replace(timing, period=period))
            if _differs_in_period_only(shorter, wanted):
                found = shorter
                break
    if durations[longest] <= run_cycles(found):
        padded = plans[longest]
        return replace(padded, loop=replace(padded.loop, padded=True))
    return found


def _differs_in_period_only(moves: Moves, other: Moves) -> bool:
    """Return True if two plans, `moves` and `other`, differ only in the cycles of a row."""
    mine, others = (
        [
            *(array for points in each.points for array in points.values.values()),
            *(array for at in (each.send_map, each.receive_map) for array in (at.memory, at.base)),
        ]
        for each in (moves, other)
    )
    return moves.loop.sources == other.loop.sources and all(map(np.array_equal, mine, others))


def _list_traffic(transfers: TableTransfers, timing: TableTiming) -> TableTraffic:
    """Return all words that the out-ports and adders of a node take, with their cycles.

    The words are those of `transfers`, and `timing` has the cycles in which they are on links.
    """
    traffic = TableTraffic(transfers, timing, [], {})

    def add_arrivals(arrivals: Iterable[TableArrival], word: Word) -> Word:
        """Add arriving words to `word` one by one, note each addition, and return the sum."""
        for arrival in sorted(arrivals, key=traffic.arrival_cycle):
            adder = Consumer(transfers.opposite[arrival.port], adds=True)
            traffic.taken.append(WordUse(adder, arrival.step, word))
            word = Word(Stage.RESULT, arrival)
        return word

    joined = {
        key: add_arrivals(came, Word(Stage.INJECTION, key)) for key, came in transfers.joins.items()
    }
    passed = {
        key: add_arrivals(came, Word(Stage.IDENTITY)) for key, came in transfers.passes.items()
    }
    last = joined | passed
    to_all = transfers.table.collective.to_all
    traffic.complete.update({key: word for key, word in last.items() if to_all or key[0] == 0})
    for leaving in transfers.departures:
        word = own = Word(Stage.INJECTION, leaving.key)
        if leaving.passed:
            word = Word(Stage.PORT, leaving.passed)
        elif transfers.kept:
            come = [Word(Stage.RESULT, a) for a in transfers.required_arrivals(leaving)]
            word = max(come, key=traffic.available_cycle, default=own)
        else:
            word = (joined if leaving.partial else last).get(leaving.key, own)
        traffic.taken.append(WordUse(Consumer(leaving.port, adds=False), leaving.step, word))
    return traffic


def _receive_memories(traffic: TableTraffic) -> Iterator[SharedMemory]:
    """Yield the memories of a node for arrived words and for sums, in-port by in-port.

    They hold the words of `traffic` that wait, and those that are delivered. The memories for sums
    of an in-port come before those for the words as they arrived.
    """
    last: dict[Word, int] = defaultdict(int)
    for use in traffic.all_uses:
        last[use.word] = max(last[use.word], traffic.take_cycle(use))
    for port in range(traffic.transfers.ports):
        kept = traffic.delivered_words(port)
        results, raw = (
            _merge_memories(_consumer_memories(traffic, traffic.waiting_uses[port, stage]))
            for stage in (Stage.RESULT, Stage.PORT)
        )
        if kept and not results:
            results = [SharedMemory()]
        for number, memory in enumerate(results + raw):
            # A slot may be overwritten right after the last read of its word.
            memory.held = {word: last[word] for word in memory.rows.values()}
            memory.held |= {} if number else kept
            memory.port, memory.sums = port, number < len(results)
            yield memory


def _send_memories(traffic: TableTraffic) -> Iterator[SharedMemory]:
    """Yield the memories of a node for its own contributions to the sums in `traffic`.

    Each memory is read by at least one out-port or adder, and the host writes all contributions.
    """
    uses = [use for use in traffic.all_uses if use.word.stage is Stage.INJECTION]
    # If nodes keep their sums, several consumers take a contribution.
    kept = traffic.transfers.kept
    each = (
        _memories_by_key(traffic, uses, lambda use: use.word)
        if kept
        else _consumer_memories(traffic, uses)
    )
    for memory in _merge_memories(each):
        memory.held = {word: FOREVER for _, word in sorted(memory.rows.items())}
        yield memory


def _consumer_memories(traffic: TableTraffic, uses: Iterable[WordUse]) -> list[SharedMemory]:
    """Return a memory for each out-port or adder that takes words, with the words that it takes.

    `uses` are the words and their takers. The rows in which words are read follow from `traffic`.
    The memories with the most reads come first.
    """
    memories = _memories_by_key(traffic, uses, lambda use: use.consumer)
    return sorted(memories, key=lambda memory: -len(memory.uses))


def _memories_by_key(
    traffic: TableTraffic, uses: Iterable[WordUse], of: Callable[[WordUse], Hashable]
) -> Iterable[SharedMemory]:
    """Group uses of words by the value of a function, and return a memory for each group.

    The function `of` returns, for example, the out-port or adder that takes the word of a use. The
    memory holds the words of the group; the rows in which they are read follow from `traffic`.
    """
    found: dict[Hashable, SharedMemory] = {}
    for use in uses:
        row, skew = traffic.read_row_and_skew(use)
        found.setdefault(of(use), SharedMemory(skew=skew)).add_use(use, row)
    return found.values()


def _merge_memories(memories: Iterable[SharedMemory]) -> list[SharedMemory]:
    """Return fewer memories, by merging memories that are never read in the same row.

    Two memories may also be merged if, in each row in which both are read, the same word is read
    from both. Each memory is merged with the first one in the result for which this is possible.
    """
    groups: list[SharedMemory] = []
    for memory in memories:
        for group in groups:
            clash = any(group.rows.get(row, word) != word for row, word in memory.rows.items())
            if memory.skew == group.skew and not clash:
                group.uses.extend(memory.uses)
                group.rows.update(memory.rows)
                break
        else:
            groups.append(memory)
    return groups
