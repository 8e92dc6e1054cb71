"""The planner for tables of sums: which words are added to which.

Every in-port has an adder. An arriving word is combined at once with the sum that it belongs to:
with the node's own contribution if it is the first, otherwise with the result for the previous
arrival. The result is in a register behind the adder one cycle later, plus the latency of the
operator. An out-port or another adder takes the result from that register, from the register behind
it, or from a memory (see `node_planner`).

`table_timing` decides the cycles: by cycle or by step. A consumer takes at most one word a cycle,
so a memory of its own is always free for it. Memories of several consumers are merged if they are
never read at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import SumTable, Table
from .fields import Order, Stage
from .node_planner import FOREVER, Consumer, SharedMemory, TableTraffic, Use, Word, plan_node
from .table_timing import Arrival, TableTiming, TableTransfers, by_cycle, by_step, table_rules
from .timing import COMBINE, MEMORY_AGE

if TYPE_CHECKING:
    from .moves import Moves, Request

__all__ = ["plan_sums"]


def plan_sums(request: Request) -> Moves:
    """Plan the moves of a table of sums.

    If the length is open, one plan must serve all lengths: only the interval of steps may depend on
    the length. The plan is that for long blocks. Shorter blocks use the least interval for which
    the plan stays the same. If the longest blocks take no more cycles in a plan of their own, that
    plan is used instead, and all blocks are filled up to that length (`padded`).

    Returns
    -------
    Moves
        The plan with fewer cycles: by cycle, or by step. If the length is open, it is by step,
        unless it is padded, or nodes keep their sums, or short messages are preferred.

    Examples
    --------
    >>> import torusfabric as tf
    >>> table = tf.plan(tf.Torus(3), "reduce-scatter", algorithm="matching")
    >>> [tf.compile(table, flits=flits).loop.order.value for flits in (1, 300)]
    ['flit', 'row']
    >>> tf.compile(table, max_flits=300).loop.least
    1
    >>> table = tf.plan(tf.Torus(4, 4), "allreduce", algorithm="matching")
    >>> tf.compile(table, max_flits=16).loop.padded
    True
    """
    table, latency = request.schedule, request.latency
    assert isinstance(table, Table | SumTable)
    transfers = TableTransfers(table, latency)
    timings = [by_cycle(transfers)]
    # In short messages all rows are for each flit; they serve for any number of flits.
    by_steps = isinstance(table, Table) and not request.short
    if request.block > 1 and by_steps:
        timings.append(by_step(transfers, table.round_count, request.block))

    def plan(timing: TableTiming) -> Moves:
        traffic = _traffic(transfers, timing)
        return plan_node(request, traffic, [*_received(traffic), *_sent(traffic)])

    def duration(moves: Moves) -> int:
        """Return the cycles of all rows, and the cycles until the last word is written."""
        loop = moves.loop
        if loop.order is Order.FLIT:
            return loop.slots(request.block) + latency
        late = int(loop.departure_skew.max()) + COMBINE + latency - int(loop.pause[0])
        # Rows by the cycle include those of a link.
        return loop.rows * loop.least + max(late, 0) + max(transfers.longer)

    plans = [plan(timing) for timing in timings]
    durations = [duration(each) for each in plans]
    longest = int(np.argmin(durations))
    if not (request.any_length and by_steps):
        return plans[longest]
    # The length of a run is to change nothing but the interval of steps.
    long = transfers.reach + latency + MEMORY_AGE
    timing = by_step(transfers, table.round_count, long)
    found = wanted = plan(timing)
    rules = table_rules(transfers)
    for period in range(1, long):
        if all(rule.is_kept(period, timing.skew, transfers) for rule in rules):
            shorter = plan(replace(timing, period=period))
            if _is_alike(shorter, wanted):
                found = shorter
                break
    if durations[longest] <= duration(found):
        padded = plans[longest]
        return replace(padded, loop=replace(padded.loop, padded=True))
    return found


def _is_alike(moves: Moves, other: Moves) -> bool:
    """Return True if two plans of a table differ in nothing but the period of rows."""
    mine, others = (
        [
            *(array for points in each.points for array in points.values.values()),
            *(array for at in (each.send_map, each.receive_map) for array in (at.memory, at.base)),
        ]
        for each in (moves, other)
    )
    return moves.loop.sources == other.loop.sources and all(map(np.array_equal, mine, others))


def _traffic(transfers: TableTransfers, timing: TableTiming) -> TableTraffic:
    """Return the words that all consumers take."""
    traffic = TableTraffic(transfers, timing, [], {})

    def added(arrivals: Iterable[Arrival], word: Word) -> Word:
        """Combine arrivals with a word, one after another, and return the result."""
        for arrival in sorted(arrivals, key=traffic.arrives):
            adder = Consumer(transfers.opposite[arrival.port], adds=True)
            traffic.taken.append(Use(adder, arrival.step, word))
            word = Word(Stage.RESULT, arrival)
        return word

    joined = {key: added(came, Word(Stage.INJECTION, key)) for key, came in transfers.joins.items()}
    passed = {key: added(came, Word(Stage.IDENTITY)) for key, came in transfers.passes.items()}
    last = joined | passed
    to_all = transfers.table.collective.to_all
    traffic.complete.update({key: word for key, word in last.items() if to_all or key[0] == 0})
    for leaving in transfers.departures:
        word = own = Word(Stage.INJECTION, leaving.key)
        if leaving.passed:
            word = Word(Stage.PORT, leaving.passed)
        elif transfers.kept:
            come = [Word(Stage.RESULT, a) for a in transfers.feeding(leaving)]
            word = max(come, key=traffic.written, default=own)
        else:
            word = (joined if leaving.partial else last).get(leaving.key, own)
        traffic.taken.append(Use(Consumer(leaving.port, adds=False), leaving.step, word))
    return traffic


def _received(traffic: TableTraffic) -> Iterator[SharedMemory]:
    """Yield the memories of each in-port, those of results first."""
    last: dict[Word, int] = defaultdict(int)
    for use in traffic.uses:
        last[use.word] = max(last[use.word], traffic.takes(use))
    for port in range(traffic.transfers.ports):
        kept = traffic.kept(port)
        results, raw = (
            _shared(_of_consumers(traffic, traffic.waits[port, stage]))
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


def _sent(traffic: TableTraffic) -> Iterator[SharedMemory]:
    """Yield the memories of contributions, all of which are read."""
    uses = [use for use in traffic.uses if use.word.stage is Stage.INJECTION]
    # If nodes keep their sums, several consumers take a contribution.
    kept = traffic.transfers.kept
    each = _memories(traffic, uses, lambda use: use.word) if kept else _of_consumers(traffic, uses)
    for memory in _shared(each):
        memory.held = {word: FOREVER for _, word in sorted(memory.rows.items())}
        yield memory


def _of_consumers(traffic: TableTraffic, uses: Iterable[Use]) -> list[SharedMemory]:
    """Return a memory for each consumer, beginning with those that are read most."""
    memories = _memories(traffic, uses, lambda use: use.consumer)
    return sorted(memories, key=lambda memory: -len(memory.uses))


def _memories(
    traffic: TableTraffic, uses: Iterable[Use], of: Callable[[Use], Hashable]
) -> Iterable[SharedMemory]:
    """Return a memory for each word, or for each consumer, as `of` selects."""
    found: dict[Hashable, SharedMemory] = {}
    for use in uses:
        row, skew = traffic.read_at(use)
        found.setdefault(of(use), SharedMemory(skew=skew)).add(use, row)
    return found.values()


def _shared(memories: Iterable[SharedMemory]) -> list[SharedMemory]:
    """Merge memories that are never read at once: each with the first that it can share with."""
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
