"""How one node carries out a table: the cheapest order in which words can move without a pause.

A word that arrived ``k`` cycles ago is taken straight off its in-port (k = 1), out of a register
behind it (k = 2), or out of a memory (k >= 3: it is written, read, and on its way again). So a
table runs at a step a cycle whatever its latency, and a table that never lets a word rest needs no
memory on its way. Where links take several cycles, a word has not come a step later, unless all
flits of a block move in each step, as many as those cycles; for fewer, every word leaves as soon as
it can, in the order of the steps.

Each memory has one write port and one read port; where two words that came by the same in-port
leave in the same step, the second has a further memory of that in-port, which keeps words only
while they wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from typing_extensions import override

from ..schedule import Table
from ..topology import IntArray
from .fields import Stage
from .node_plan import NodePlan, PlannedMemory
from .node_planner import Consumer, NodePlanner, Reads, SharedMemory, Word
from .table_timing import Arrival, TableTiming, TableTransfers, by_cycle, by_step, in_order
from .timing import MEMORY_AGE

if TYPE_CHECKING:
    from ..schedule import SumTable

__all__ = ["plan_sums", "plan_table"]

#: A block of a node's own: (offset of the destination, chunk).
SentBlock: TypeAlias = tuple[int, ...]

#: The rows in which each leaves, and by which out-ports.
_Sent: TypeAlias = dict[SentBlock, list[tuple[int, int]]]


def plan_table(
    table: Table, flits: int, *, any_length: bool = False, short: bool = False
) -> NodePlan:
    """Plan what a node does.

    Parameters
    ----------
    table : Table
        Not a reduction.
    flits : int
        Flits of a block.
    any_length : bool
        Whether blocks may have fewer flits.
    short : bool
        Whether to be quick for few flits, where that makes a difference.

    Returns
    -------
    NodePlan
        The cheapest of all orders in which words can move without a pause; on links of several
        cycles the cheapest of the quickest.

    Examples
    --------
    In four steps a node receives fifteen blocks over four in-ports; none waits for longer than a
    cycle before it is sent on, so that nothing is read but what a node sends itself.

    >>> import torusfabric as tf
    >>> plan = plan_table(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"), flits=1)
    >>> plan.steps, len(plan.receive_memories), len(plan.send_memories)
    (4, 4, 1)
    >>> [bool((memory.read >= 0).any()) for memory in plan.receive_memories]
    [False, False, False, False]
    """
    transfers, longest = TableTransfers(table), table.topology.longest_link
    orders = [True, False]
    if short or (longest == 1 and (any_length or flits == 1)):
        orders = [True]
    # Of any length, words that go on are all taken out of memories.
    age = MEMORY_AGE if any_length else 1
    plans = []
    for by_waves in orders:
        soon = by_waves and longest > 1
        timing = by_cycle(transfers) if soon else in_order(transfers, table.round_count)
        # Where each block comes once, the last of its arrivals is the first.
        for latest in (True, False)[: 1 + any(len(a) > 1 for a in transfers.arrivals.values())]:
            planner = _BlockPlanner(
                table, transfers, timing, flits,
                soon=soon, age=None if by_waves else age, latest=latest,
            )  # fmt: skip
            plans.append(planner.plan())
    return min(plans, key=lambda plan: (plan.rows_cycles, plan.cost))


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
    plans = [NodePlanner(table, transfers, timing, flits).plan() for timing in timings]
    # Rows by the cycle include those of a link.
    longer = table.topology.longest_link - 1
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
    wanted = NodePlanner(table, transfers, timing, flits).plan()
    for period in range(1, long):
        timing = replace(timing, period=period)
        if timing.keeps_rules(transfers):
            plan = NodePlanner(table, transfers, timing, flits).plan()
            if plan.does_the_same(wanted):
                return plan
    return wanted


class _BlockPlanner(NodePlanner):
    """Plans one order of the words.

    Parameters
    ----------
    timing : TableTiming
        As if each row were a cycle.
    soon : bool
        Whether every block leaves as soon as it can; else in the step of the table.
    age : int or None
        The least cycles that a block waits, from its arrival on, where all flits of it move in each
        step; None where all steps are for one flit.
    latest : bool
        Whether of several arrivals of a block the last is sent on; else the first.
    """

    table: Table

    def __init__(
        self,
        table: Table,
        transfers: TableTransfers,
        timing: TableTiming,
        flits: int,
        *,
        soon: bool,
        age: int | None,
        latest: bool,
    ) -> None:
        self._soon, self._age, self._latest = soon, age, latest
        super().__init__(table, transfers, timing, flits)

    def _there(self, arrival: Arrival) -> int:
        """The first row in which what arrived can be sent on."""
        return self.timing.row[arrival] + 1 + self._soon * self.transfers.longer[arrival.port]

    @override
    def _follow(self) -> None:
        came = {
            block: sorted(arrivals, key=self._there) if len(arrivals) > 1 else arrivals
            for block, arrivals in self.transfers.arrivals.items()
        }
        consumers, waits = [Consumer(port, adds=False) for port in range(self.ports)], []
        for step, port, block, *_ in self.transfers.departures:
            word = Word(Stage.INJECTION, block)
            if block[0]:
                row = self.timing.row[step, port]
                before = came[block]
                if len(before) > 1:
                    before = [arrival for arrival in before if self._there(arrival) <= row]
                arrival = before[-self._latest]
                word = Word(Stage.PORT, arrival)
                waits.append((step - arrival.step, self.transfers.longer[arrival.port]))
            self.words[consumers[port]][step] = word
        self._least = 1
        if self._age is not None:
            least = (-(-(longer + self._age) // steps) for steps, longer in waits)
            self._least = max(least, default=1)
            period = max(self._least, self.flits)
            self.timing = replace(self.timing, period=period, by_cycle=False)
        personal, blocks = self.table.destination is not None, self.table.blocks
        # How each block arrives that is delivered, by offset, or its number, and chunk.
        if self.table.collective.local:
            kept = {
                (part, chunk): came[offset, part if personal else 0, chunk]
                for part, offset in enumerate(blocks.targets[0].tolist())
                for chunk in range(self.table.chunks)
            }
        else:
            kept = {
                (offset, chunk): arrivals
                for (offset, goal, chunk), arrivals in came.items()
                if not personal or offset == goal
            }
        self.complete = {at: Word(Stage.PORT, first) for at, (first, *_) in kept.items()}

    @override
    def plan(self) -> NodePlan:
        return replace(super().plan(), period=self._least)

    @override
    def _departure(self) -> IntArray:
        row = super()._departure()
        return np.where(row < 0, np.arange(len(row))[:, None], row)

    @override
    def _delivered(
        self, location: dict[Word, tuple[int, int]], own: IntArray, own_slot: IntArray
    ) -> tuple[IntArray, IntArray]:
        memory, slot = np.full((2, self.table.blocks.parts, own.shape[1]), -1)
        if not self.table.collective.local:
            memory[0], slot[0] = own[0], own_slot[0]
        for at, word in self.complete.items():
            memory[at], slot[at] = location[word]
        return memory, slot

    @override
    def _groups(
        self, waiting: dict[tuple[int, Stage], Reads]
    ) -> Iterator[tuple[int, SharedMemory, set[Word], bool]]:
        """Of the words that leave in one row each is in a memory of its own."""
        others: list[tuple[int, SharedMemory, set[Word], bool]] = []
        for port in range(self.ports):
            groups, leaving = [SharedMemory([], {}, 0)], defaultdict[int, list[Word]](list)
            reads = waiting[port, Stage.PORT].items()
            uses = (
                (step, consumer, word) for consumer, each in reads for step, word in each.items()
            )
            for step, consumer, word in sorted(uses):
                row = self.timing.row[step, consumer.port]
                words = leaving[row]
                if word not in words:
                    words.append(word)
                number = words.index(word)
                if number == len(groups):
                    groups.append(SharedMemory([], {}, 0))
                groups[number].readers.append((consumer, step))
                groups[number].rows[row] = word
            yield port, groups[0], self._kept(port), False
            others += [(port, group, set(), False) for group in groups[1:]]
        yield from others

    @override
    def _until(self, group: SharedMemory) -> dict[Word, int]:
        """A slot may be written again in the row in which it is read last."""
        period, longer = self.timing.period, self.transfers.longer
        rows = sorted(group.rows.items())
        return {word: row * period + longer[word.of[1]] for row, word in rows}

    @override
    def _send_memories(self, first: int) -> tuple[tuple[PlannedMemory, ...], IntArray, IntArray]:
        """Blocks that leave in one row are in different ones."""
        shape = self.table.blocks.goals, self.table.chunks
        sent: _Sent = defaultdict(list)
        own = [(step, port, block[1:])
               for step, port, block, *_ in self.transfers.departures if not block[0]]  # fmt: skip
        for step, port, block in own:
            sent[block].append((self.timing.row[step, port], port))
        blocks: list[SentBlock] = list(np.ndindex(shape))
        number = _number_apart(blocks, sent)
        memory, slot = np.zeros((2, *shape), int)
        depth = [0] * (max(number.values()) + 1)
        # In the order in which they leave, unless one memory holds a message as the host writes it.
        last = [(self.timing.rows, 0)]
        order = sorted(number, key=lambda block: sent.get(block, last)[0])
        in_order = len(depth) > 1 or self.table.destination is not None
        for block in order if in_order else blocks:
            memory[block], slot[block] = number[block], depth[number[block]]
            depth[number[block]] += 1
        read = np.full((len(depth), self.timing.rows), -1)
        for step, port, block in own:
            read[memory[block], self.timing.row[step, port]] = slot[block]
            self.memory_of[Consumer(port, adds=False), step] = first + int(memory[block])
        none = np.full(self.timing.rows, -1)
        memories = tuple(PlannedMemory(-1, d, none, r) for d, r in zip(depth, read, strict=True))
        return memories, memory, slot


def _number_apart(blocks: list[SentBlock], sent: _Sent) -> dict[SentBlock, int]:
    """Number the memories of a node's own blocks, so that no two that leave in one step share one.

    All are in one memory if that will do, else by the port where each leaves by one port only, else
    in the first memory without a block that leaves in the same step.
    """
    leaving: dict[int, set[SentBlock]] = defaultdict(set)
    for block, departures in sent.items():
        for step, _ in departures:
            leaving[step].add(block)
    if all(len(together) == 1 for together in leaving.values()):
        return dict.fromkeys(blocks, 0)
    number: dict[SentBlock, int] = {}
    if all(len({port for _, port in departures}) == 1 for departures in sent.values()):
        ports = sorted({departures[0][1] for departures in sent.values()})
        number = {block: ports.index(leaves[0][1]) for block, leaves in sent.items()}
    else:
        for block in sorted(sent, key=lambda block: sent[block][0]):
            rivals: set[SentBlock] = set().union(*(leaving[step] for step, _ in sent[block]))
            used = {number.get(rival) for rival in rivals}
            number[block] = next(k for k in range(len(blocks)) if k not in used)
    return dict.fromkeys(blocks, 0) | number
