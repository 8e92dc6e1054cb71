"""How one node carries out a table of sums: which words are added to which.

Every in-port has an adder. A word that arrives is combined at once with what is there of the sum it
belongs to: the node's own contribution if it is the first, else what the arrival before it made.
The result is in a register behind the adder one cycle later, or more where the hardware of the
operator takes some. From there an out-port or another adder takes it, or a register behind that, or
a memory, as a block is taken off its in-port (see `node_planner`).

When that happens is decided by `table_timing`: by the cycle, or by the step. A consumer takes a
word a cycle at most, so that a memory of its own is always free for it; memories of several
consumers are made one where they never are read at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace

from ..schedule import SumTable, Table
from .fields import Stage
from .node_plan import FOREVER, NodePlan
from .node_planner import Consumer, Moves, SharedMemory, Use, Word, plan_node
from .table_timing import Arrival, TableTiming, TableTransfers, by_cycle, by_step
from .timing import MEMORY_AGE

__all__ = ["plan_sums"]


def plan_sums(
    table: Table | SumTable, flits: int, latency: int = 0, *, any_length: bool = False
) -> NodePlan:
    """Plan what a node does.

    Where the length is open, nothing but the interval of the steps depends on it from some length
    on. Shorter blocks go by at the least interval at which all is as for long ones: the period of
    the plan. Where the longest blocks, in a plan of their own, take no more cycles than that, all
    are filled up to their length.

    Parameters
    ----------
    table : Table or SumTable
        A reduction.
    flits : int
        Flits of a block.
    latency : int
        Cycles that the hardware of operators takes by itself.
    any_length : bool
        Whether blocks may have fewer flits.

    Returns
    -------
    NodePlan
        The one that takes fewer cycles: by the cycle, or by the step. Of any length by the step,
        unless `padded`, or if nodes keep their sums.

    Examples
    --------
    >>> import torusfabric as tf
    >>> table = tf.plan(tf.Torus(3), "reduce-scatter", algorithm="matching")
    >>> plan = plan_sums(table, flits=1)
    >>> plan.by_waves, plan.duration
    (True, 3)
    >>> plan_sums(table, flits=100, any_length=True).period
    1
    >>> table = tf.plan(tf.Torus(4, 4), "allreduce", algorithm="matching")
    >>> plan_sums(table, flits=2, any_length=True).padded
    True
    """
    transfers = TableTransfers(table, latency)
    timings = [by_cycle(transfers)]
    if flits > 1 and isinstance(table, Table):
        timings.append(by_step(transfers, table.round_count, flits))
    plans = [_plan(transfers, timing, flits) for timing in timings]
    # Rows by the cycle include those of a link.
    longer = max(transfers.longer)
    duration = {plan: plan.duration + longer * (not plan.by_waves) for plan in plans}
    longest = min(plans, key=duration.__getitem__)
    if not any_length or not isinstance(table, Table):
        return longest
    plan = _plan_open_sums(table, flits, latency)
    padded = duration[longest] <= plan.duration + longer
    return replace(longest, padded=True) if padded else plan


def _plan_open_sums(table: Table, flits: int, latency: int) -> NodePlan:
    """The plan by the step in which the length of a run changes nothing but the interval."""
    transfers = TableTransfers(table, latency)
    long = transfers.reach + latency + MEMORY_AGE
    timing = by_step(transfers, table.round_count, long)
    wanted = _plan(transfers, timing, flits)
    for period in range(1, long):
        timing = replace(timing, period=period)
        if timing.keeps_rules(transfers):
            plan = _plan(transfers, timing, flits)
            if plan.does_the_same(wanted):
                return plan
    return wanted


def _plan(transfers: TableTransfers, timing: TableTiming, flits: int) -> NodePlan:
    """The plan of one timing."""
    moves = _moves(transfers, timing)
    return plan_node(moves, flits, [*_received(moves), *_sent(moves)])


def _moves(transfers: TableTransfers, timing: TableTiming) -> Moves:
    """What every consumer takes when."""
    moves = Moves(transfers, timing, [], {})

    def added(arrivals: Iterable[Arrival], word: Word) -> Word:
        """Combine arrivals with a word, one after another; the result."""
        for arrival in sorted(arrivals, key=moves.arrives):
            adder = Consumer(transfers.opposite[arrival.port], adds=True)
            moves.taken.append(Use(adder, arrival.step, word))
            word = Word(Stage.RESULT, arrival)
        return word

    joined = {key: added(came, Word(Stage.INJECTION, key)) for key, came in transfers.joins.items()}
    passed = {key: added(came, Word(Stage.IDENTITY)) for key, came in transfers.passes.items()}
    last = joined | passed
    to_all = transfers.table.collective.to_all
    moves.complete.update({key: word for key, word in last.items() if to_all or key[0] == 0})
    for leaving in transfers.departures:
        word = own = Word(Stage.INJECTION, leaving.key)
        if leaving.passed:
            word = Word(Stage.PORT, leaving.passed)
        elif transfers.kept:
            come = [Word(Stage.RESULT, a) for a in transfers.feeding(leaving)]
            word = max(come, key=moves.written, default=own)
        else:
            word = (joined if leaving.partial else last).get(leaving.key, own)
        moves.taken.append(Use(Consumer(leaving.port, adds=False), leaving.step, word))
    return moves


def _received(moves: Moves) -> Iterator[SharedMemory]:
    """The memories of each in-port, those of results first."""
    last: dict[Word, int] = defaultdict(int)
    for use in moves.uses:
        last[use.word] = max(last[use.word], moves.takes(use))
    for port in range(moves.transfers.ports):
        kept = moves.kept(port)
        results, raw = (
            _shared(_of_consumers(moves, moves.waits[port, stage]))
            for stage in (Stage.RESULT, Stage.PORT)
        )
        if kept and not results:
            results = [SharedMemory()]
        for number, memory in enumerate(results + raw):
            # Just after the last read of a word another one may be written.
            memory.held = {word: last[word] for word in memory.rows.values()}
            memory.held |= {} if number else kept
            memory.port, memory.sums = port, number < len(results)
            yield memory


def _sent(moves: Moves) -> Iterator[SharedMemory]:
    """The memories of contributions, all of which are read."""
    uses = [use for use in moves.uses if use.word.stage is Stage.INJECTION]
    # Several consumers take a contribution where nodes keep their sums.
    kept = moves.transfers.kept
    each = _memories(moves, uses, lambda use: use.word) if kept else _of_consumers(moves, uses)
    for memory in _shared(each):
        memory.held = {word: FOREVER for _, word in sorted(memory.rows.items())}
        yield memory


def _of_consumers(moves: Moves, uses: Iterable[Use]) -> list[SharedMemory]:
    """A memory for each consumer, those first that read most."""
    memories = _memories(moves, uses, lambda use: use.consumer)
    return sorted(memories, key=lambda memory: -len(memory.uses))


def _memories(
    moves: Moves, uses: Iterable[Use], of: Callable[[Use], Hashable]
) -> Iterable[SharedMemory]:
    """A memory for each of what is used, or of those who use it."""
    found: dict[Hashable, SharedMemory] = {}
    for use in uses:
        row, skew = moves.read_at(use)
        found.setdefault(of(use), SharedMemory(skew=skew)).add(use, row)
    return found.values()


def _shared(memories: Iterable[SharedMemory]) -> list[SharedMemory]:
    """The same, as few as can be: each is one with the first that has nothing else to read then."""
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
