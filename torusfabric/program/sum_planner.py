"""How one node carries out a table of sums: when it adds what to what, and where sums wait.

Every in-port has an adder. A word that arrives is combined at once with what is there of the sum it
belongs to: the node's own contribution if it is the first, else what the arrival before it made.
The result is in a register behind the adder one cycle later, or more where the hardware of the
operator takes some. From there an out-port or another adder takes it, or a register behind that, or
a memory, as words of other tables are taken off their in-ports (see `table_planner`).

When that happens is decided by `sum_timing`: by the cycle, or by the step. Skews cost nothing in
the nodes, for only the sequencer delays their signals; but memories that are read with different
skews cannot be one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ..schedule import SumTable, Table
from ..topology import IntArray
from .fields import Source, Stage
from .node_plan import FOREVER, NodePlan, PlannedMemory, number_sources, slots_of
from .sum_timing import Arrival, Departure, SumKey, SumTiming, SumTransfers, by_cycle, by_step
from .timing import COMBINE, MEMORY_AGE

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
    transfers = SumTransfers(table, latency)
    timings = [by_cycle(transfers)]
    if flits > 1 and isinstance(table, Table):
        timings.append(by_step(transfers, table.round_count, flits))
    plans = [_Planner(table, transfers, timing, flits).plan() for timing in timings]
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
    transfers = SumTransfers(table, latency)
    long = transfers.reach + latency + MEMORY_AGE
    timing = by_step(transfers, table.round_count, long)
    wanted = _Planner(table, transfers, timing, flits).plan()
    for period in range(1, long):
        timing = replace(timing, period=period)
        if timing.keeps_rules(transfers):
            plan = _Planner(table, transfers, timing, flits).plan()
            if plan.does_the_same(wanted):
                return plan
    return wanted


class _Consumer(NamedTuple):
    """What takes a word a cycle at most: an out-port, or the adder behind an in-port."""

    port: int
    adds: bool


class _Word(NamedTuple):
    """A word that a consumer takes, and where it is to be found first.

    Of an arrival, what the adder made of it, or at `Stage.PORT` the word as it came; of a sum, at
    `Stage.INJECTION`, the node's own contribution.
    """

    stage: Stage
    of: Arrival | SumKey = (0, 0)


#: Where words are a cycle later, unless in memory.
LATER = {Stage.PORT: Stage.LATER, Stage.RESULT: Stage.LATER_RESULT}

#: What each consumer reads in each step.
_Reads: TypeAlias = dict[_Consumer, dict[int, _Word]]


class _SharedMemory(NamedTuple):
    """A memory that several consumers read: what in each row, and with which skew.

    Readers are names: each is a consumer, with what it reads the memory for.
    """

    readers: list[Hashable]
    rows: dict[int, _Word]
    skew: int


class _Planner:
    """Plans one timing of a table.

    A consumer takes a word a cycle at most, so that a memory of its own is always free for it;
    memories of several consumers are made one where they never are read at once.
    """

    def __init__(
        self, table: Table | SumTable, transfers: SumTransfers, timing: SumTiming, flits: int
    ) -> None:
        self.table, self.transfers, self.timing, self.flits = table, transfers, timing, flits
        self.ports, self.combine = table.topology.ports, transfers.combine
        self.opposite: list[int] = table.topology.opposite.tolist()
        self.words: _Reads = defaultdict(dict)
        self.last_use: dict[_Word, int] = defaultdict(int)
        self.source: dict[tuple[_Consumer, int], Source] = {}
        self.complete: dict[SumKey, _Word] = {}
        self.memory_of: dict[Hashable, int] = {}
        self._follow()

    def _link(self, consumer: _Consumer) -> int:
        """The out-port of the link in front of or behind a consumer."""
        return self.opposite[consumer.port] if consumer.adds else consumer.port

    def _takes(self, consumer: _Consumer, step: int) -> int:
        """The cycle in which a consumer takes a word."""
        if consumer.adds:
            return self._arrives(Arrival(step, self._link(consumer)))
        return self.timing.time(step, consumer.port) - 1

    def _arrives(self, arrival: Arrival) -> int:
        """The cycle in which the first flit of an arrival is at its in-port."""
        return self.timing.time(*arrival) + self.transfers.longer[arrival.port]

    def _read(self, consumer: _Consumer, step: int) -> tuple[int, int]:
        """The row and skew in which a consumer reads a memory."""
        link = self._link(consumer)
        return self.timing.row_at(step, link, consumer.adds * (1 + self.transfers.longer[link]))

    def _written(self, word: _Word) -> int:
        """The cycle in which a word of an arrival can be taken or written."""
        assert isinstance(word.of, Arrival)
        return self._arrives(word.of) + self.combine * (word.stage is Stage.RESULT)

    def _follow(self) -> None:
        """Find out what every consumer takes when."""
        results: dict[SumKey, _Word] = {}
        for key, arrivals in self.transfers.joins.items():
            before = _Word(Stage.INJECTION, key)
            for arrival in sorted(arrivals, key=self._arrives):
                before = results[key] = self._add(arrival, before)
        self.complete = {key: word for key, word in results.items() if key[0] == 0}
        for key, arrival in self.transfers.passes.items():
            self.complete[key] = self._add(arrival, _Word(Stage.IDENTITY))
        for leaving in self.transfers.departures:
            self._take(
                _Consumer(leaving.port, adds=False), leaving.step, self._sent(leaving, results)
            )

    def _sent(self, leaving: Departure, results: dict[SumKey, _Word]) -> _Word:
        """The word that leaves."""
        own = _Word(Stage.INJECTION, leaving.key)
        if leaving.passed:
            return _Word(Stage.PORT, leaving.passed)
        if self.transfers.kept:
            before = [_Word(Stage.RESULT, a) for a in self.transfers.feeding(leaving)]
            return max(before, key=self._written, default=own)
        return (results if leaving.partial else self.complete).get(leaving.key, own)

    def _add(self, arrival: Arrival, word: _Word) -> _Word:
        """Combine an arrival with a word; the result."""
        self._take(_Consumer(self.opposite[arrival.port], adds=True), arrival.step, word)
        return _Word(Stage.RESULT, arrival)

    def _take(self, consumer: _Consumer, step: int, word: _Word) -> None:
        self.words[consumer][step] = word
        self.last_use[word] = max(self.last_use[word], self._takes(consumer, step))

    def plan(self) -> NodePlan:
        """The plan."""
        receive, location = self._receive_memories(self._waiting())
        send, send_memory, send_slot = self._send_memories(len(receive))
        sources, readers, number = number_sources(
            self.ports,
            set(self.source.values()),
            self.memory_of,
            results=True,
            latency=self.combine - COMBINE,
        )
        select, operand = self._settings(number)
        memory, slot = np.full((2, *send_memory.shape), -1)
        for (offset, chunk), word in self.complete.items():
            memory[offset, chunk], slot[offset, chunk] = location[word]
        alike = self.table.collective.personal or self.transfers.kept
        return NodePlan(
            by_waves=self.timing.by_cycle,
            flits=self.flits,
            sources=sources,
            readers=readers,
            receive_memories=receive,
            send_memories=send,
            select=select,
            operand=operand,
            memory=memory[:1] if alike else memory,
            slot=slot[:1] if alike else slot,
            send_memory=send_memory[:1] if self.transfers.kept else send_memory,
            send_slot=send_slot[:1] if self.transfers.kept else send_slot,
            departure=self._departure(),
            period=self.timing.period,
            skew=tuple(self.timing.skew),
        )

    def _departure(self) -> IntArray:
        """The row in which each word leaves, by step and port."""
        row = np.full(self.table.chunk.shape, -1)
        for step, port, *_ in self.transfers.departures:
            row[step, port], _ = self.timing.row_at(step, port)
        return row

    def _settings(self, number: dict[Source, int]) -> IntArray:
        """What feeds each out-port and adder in each row, shape (2, rows, ports)."""
        settings = np.full((2, self.timing.rows, self.ports), -1)
        for (consumer, step), source in self.source.items():
            row, _ = self.timing.row_at(step, self._link(consumer))
            settings[int(consumer.adds), row, consumer.port] = number[source]
        return settings

    def _waiting(self) -> dict[tuple[int, Stage], _Reads]:
        """Choose where consumers take words; what waits in memories, by in-port and stage."""
        waiting: dict[tuple[int, Stage], _Reads] = defaultdict(lambda: defaultdict(dict))
        for consumer, words in self.words.items():
            for step, word in words.items():
                self.source[consumer, step] = self._taken_from(consumer, step, word)
                stage, name = self.source[consumer, step]
                if word.stage in LATER and stage is Stage.INJECTION:
                    waiting[name[1:]][consumer][step] = word
        return waiting

    def _taken_from(self, consumer: _Consumer, step: int, word: _Word) -> Source:
        """Where a consumer takes a word; a memory is known by the consumer and what it keeps."""
        if word.stage is Stage.IDENTITY:
            return word.stage, 0
        if word.stage is Stage.INJECTION:
            return word.stage, (consumer, word.of[1] if self.transfers.kept else 0)
        port = self.opposite[word.of[1]]
        age = self._takes(consumer, step) - self._written(word)
        if age >= MEMORY_AGE - COMBINE:
            return Stage.INJECTION, (consumer, port, word.stage)
        return (LATER[word.stage] if age else word.stage), port

    def _of_consumers(self, reads: _Reads, *facts: Hashable) -> Iterator[_SharedMemory]:
        """A memory for each consumer, those first that read most."""
        for consumer, words in sorted(reads.items(), key=lambda item: -len(item[1])):
            rows = {self._read(consumer, step)[0]: word for step, word in words.items()}
            skew = self._read(consumer, next(iter(words)))[1]
            yield _SharedMemory([(consumer, *facts)], rows, skew)

    def _of_words(self, reads: _Reads) -> Iterable[_SharedMemory]:
        """A memory for each contribution, which several consumers may take."""
        found: dict[_Word, _SharedMemory] = {}
        for consumer, words in reads.items():
            for step, word in words.items():
                memory = found.setdefault(word, _SharedMemory([], {}, 0))
                memory.readers.append((consumer, word.of[1]))
                memory.rows[self._read(consumer, step)[0]] = word
        return found.values()

    def _receive_memories(
        self, waiting: dict[tuple[int, Stage], _Reads]
    ) -> tuple[tuple[PlannedMemory, ...], dict[_Word, tuple[int, int]]]:
        """Memories of results, and of what is passed on; memory and slot of each complete sum."""
        memories: list[PlannedMemory] = []
        location: dict[_Word, tuple[int, int]] = {}
        for port in range(self.ports):
            kept = {w for w in self.complete.values() if self.opposite[w.of[1]] == port}
            groups = _shared(self._of_consumers(waiting[port, Stage.RESULT], port, Stage.RESULT))
            if kept and not groups:
                groups = [_SharedMemory([], {}, 0)]
            raw = _shared(self._of_consumers(waiting[port, Stage.PORT], port, Stage.PORT))
            for number, group in enumerate(groups + raw):
                self.memory_of |= dict.fromkeys(group.readers, len(memories))
                stay = set() if number else kept
                slots, memory = self._fill(port, group, stay)
                location |= {word: (len(memories), slots[word]) for word in stay}
                memories.append(memory._replace(sums=number < len(groups)))
        return tuple(memories), location

    def _fill(
        self, port: int, group: _SharedMemory, stay: set[_Word]
    ) -> tuple[dict[_Word, int], PlannedMemory]:
        """Give each word of a memory a slot; it may be written just after the last read there."""
        words = sorted({*group.rows.values(), *stay}, key=self._written)
        until = {word: FOREVER if word in stay else self.last_use[word] for word in words}
        slots = slots_of((word, self._written(word), until[word]) for word in words)
        write, read = np.full((2, self.timing.rows), -1)
        for word, slot in slots.items():
            write[self.timing.row_at(*word.of)[0]] = slot
        for row, word in group.rows.items():
            read[row] = slots[word]
        depth = max(slots.values(), default=-1) + 1
        return slots, PlannedMemory(port, depth, write, read, group.skew)

    def _send_memories(self, first: int) -> tuple[tuple[PlannedMemory, ...], IntArray, IntArray]:
        """Memories of what a node contributes, and where each contribution lies, by node and chunk.

        All contributions are read.
        """
        topology, chunks = self.table.topology, 1 + int(self.table.chunk.max())
        reads: _Reads = defaultdict(dict)
        for consumer, words in self.words.items():
            own = {step: w for step, w in words.items() if w.stage is Stage.INJECTION}
            reads |= {consumer: own} if own else {}
        memory, slot = np.empty((2, topology.nodes, chunks), int)
        memories: list[PlannedMemory] = []
        each = self._of_words(reads) if self.transfers.kept else self._of_consumers(reads, 0)
        for group in _shared(each):
            self.memory_of |= dict.fromkeys(group.readers, first + len(memories))
            write, read = np.full((2, self.timing.rows), -1)
            slots: dict[_Word, int] = {}
            for row, word in sorted(group.rows.items()):
                read[row] = slots.setdefault(word, len(slots))
            for (_, (offset, chunk)), number in slots.items():
                goal = int(topology.subtract(0, offset))
                memory[goal, chunk], slot[goal, chunk] = len(memories), number
            memories.append(PlannedMemory(-1, len(slots), write, read, group.skew))
        return tuple(memories), memory, slot


def _shared(memories: Iterable[_SharedMemory]) -> list[_SharedMemory]:
    """The same, as few as can be: each is one with the first that has nothing else to read then."""
    groups: list[_SharedMemory] = []
    for memory in memories:
        for group in groups:
            clash = any(group.rows.get(row, word) != word for row, word in memory.rows.items())
            if memory.skew == group.skew and not clash:
                group.readers.extend(memory.readers)
                group.rows.update(memory.rows)
                break
        else:
            groups.append(memory)
    return groups
