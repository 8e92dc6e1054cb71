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
from dataclasses import replace
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from ..schedule import SumTable, Table
from ..topology import IntArray
from .node_plan import FOREVER, PlannedMemory
from .sum_plan import SumPlan
from .sum_timing import Arrival, ByCycle, ByStep, Departure, SumKey, SumTiming, SumTransfers
from .sum_words import (
    Consumer,
    FromAdder,
    FromMemory,
    FromPort,
    FromSend,
    Identity,
    Kept,
    Own,
    Passed,
    ReadWords,
    SharedMemory,
    Source,
    Word,
)
from .timing import COMBINE, MEMORY_AGE

__all__ = ["plan_sums", "plan_sums_of_any_length"]


def plan_sums(table: Table | SumTable, flits: int, latency: int = 0) -> SumPlan:
    """Plan what a node does.

    Parameters
    ----------
    table : Table
        A reduction.
    flits : int
        Flits of a block.
    latency : int
        Cycles that the hardware of operators takes by itself.

    Returns
    -------
    SumPlan
        The one that takes fewer cycles: by the cycle, or by the step.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plan = plan_sums(tf.plan(tf.Torus(3), "reduce-scatter", algorithm="matching"), flits=1)
    >>> plan.by_waves, plan.duration
    (True, 3)
    """
    transfers = SumTransfers(table, latency)
    timings: list[SumTiming] = [ByCycle(transfers, table.topology)]
    if flits > 1 and isinstance(table, Table):
        timings.append(ByStep(transfers, table, flits))
    plans = [_Planner(table, transfers, timing, flits).plan() for timing in timings]
    return min(plans, key=lambda plan: plan.duration)


def plan_sums_of_any_length(table: Table | SumTable, flits: int, latency: int = 0) -> SumPlan:
    """Plan what a node does for blocks of any number of flits up to `flits`.

    From some length on nothing but the interval of the steps depends on it. Shorter blocks go by
    at the least interval at which all is as for long ones: the period of the plan. Where the
    longest blocks, in a plan of their own, take no more cycles than that, all are filled up to
    their length.

    Parameters
    ----------
    table : Table
        A reduction.
    flits : int
    latency : int
        Cycles that the hardware of operators takes by itself.

    Returns
    -------
    SumPlan
        By the step, unless `padded`, or if nodes keep their sums.

    Examples
    --------
    >>> import torusfabric as tf
    >>> table = tf.plan(tf.Torus(3), "reduce-scatter", algorithm="matching")
    >>> plan_sums_of_any_length(table, flits=100).period
    1
    >>> table = tf.plan(tf.Torus(4, 4), "allreduce", algorithm="matching")
    >>> plan_sums_of_any_length(table, flits=2).padded
    True
    """
    if not isinstance(table, Table):
        return plan_sums(table, flits, latency)
    plan, longest = _plan_open_sums(table, flits, latency), plan_sums(table, flits, latency)
    return replace(longest, padded=True) if longest.duration <= plan.duration else plan


def _plan_open_sums(table: Table, flits: int, latency: int) -> SumPlan:
    """The plan by the step in which the length of a run changes nothing but the interval."""
    transfers = SumTransfers(table, latency)
    long = transfers.reach + latency + MEMORY_AGE
    wanted = _Planner(table, transfers, ByStep(transfers, table, long), flits).plan()
    for period in range(1, long):
        timing = ByStep(transfers, table, long, period)
        if timing.keeps_rules(transfers):
            plan = _Planner(table, transfers, timing, flits).plan()
            if plan.does_the_same(wanted):
                return plan
    return wanted


#: What waits in memories, by in-port, and whether it is results that wait.
_Waiting: TypeAlias = dict[tuple[int, bool], ReadWords[Arrival | Passed]]


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
        self.words: dict[Consumer, dict[int, Word]] = defaultdict(dict)
        self.last_use: dict[Arrival | Passed, int] = defaultdict(int)
        self.source: dict[tuple[Consumer, int], Source] = {}
        self.complete: dict[SumKey, Arrival] = {}
        self.memory_of: dict[FromMemory, int] = {}
        self.send_memory_of: dict[FromSend, int] = {}
        self._follow()

    def _arrives(self, arrival: Arrival) -> int:
        """The cycle in which a word is at an in-port, and at the adder behind it."""
        return self.timing.time(arrival.step, arrival.port)

    def _link(self, consumer: Consumer) -> int:
        """The out-port of the link in front of or behind a consumer."""
        return self.opposite[consumer.port] if consumer.adds else consumer.port

    def _takes(self, consumer: Consumer, step: int) -> int:
        """The cycle in which a consumer takes a word."""
        return self.timing.time(step, self._link(consumer)) - (not consumer.adds)

    def _read(self, consumer: Consumer, step: int) -> tuple[int, int]:
        """The row and skew in which a consumer reads a memory."""
        return self.timing.row(step, self._link(consumer), int(consumer.adds))

    def _follow(self) -> None:
        """Find out what every consumer takes when."""
        results: dict[SumKey, Arrival] = {}
        for key, arrivals in self.transfers.joins.items():
            before: Word = Own(key)
            for arrival in sorted(arrivals, key=self._arrives):
                self._take(self._adder(arrival), arrival.step, before)
                before = results[key] = arrival
        for arrival in self.transfers.passes.values():
            self._take(self._adder(arrival), arrival.step, Identity())
        self.complete = {key: word for key, word in results.items() if key[0] == 0}
        self.complete |= self.transfers.passes
        for leaving in self.transfers.departures:
            word = Passed(leaving.passed) if leaving.passed else self._sum(leaving, results)
            self._take(Consumer(leaving.port, adds=False), leaving.step, word)

    def _sum(self, leaving: Departure, results: dict[SumKey, Arrival]) -> Word:
        """The sum that leaves."""
        if self.transfers.kept:
            before = self.transfers.feeding(leaving)
            return max(before, key=self._arrives) if before else Own(leaving.key)
        found = results if leaving.partial else self.complete
        return found.get(leaving.key, Own(leaving.key))

    def _adder(self, arrival: Arrival) -> Consumer:
        return Consumer(self.opposite[arrival.port], adds=True)

    def _take(self, consumer: Consumer, step: int, word: Word) -> None:
        self.words[consumer][step] = word
        if isinstance(word, Arrival | Passed):
            self.last_use[word] = max(self.last_use[word], self._takes(consumer, step))

    def plan(self) -> SumPlan:
        """The plan."""
        passed, delayed, waiting = self._bypass()
        receive, location = self._receive_memories(waiting)
        send, send_memory, send_slot = self._send_memories()
        select, operand = self._sources(passed, delayed, len(receive), len(send))
        memory, slot = np.full((2, *send_memory.shape), -1)
        for (offset, chunk), word in self.complete.items():
            memory[offset, chunk], slot[offset, chunk] = location[word]
        if self.table.collective.personal or self.transfers.kept:
            memory, slot = memory[:1], slot[:1]
        if self.transfers.kept:
            send_memory, send_slot = send_memory[:1], send_slot[:1]
        return SumPlan(
            by_waves=isinstance(self.timing, ByCycle),
            flits=self.flits,
            period=self.timing.period,
            skew=self.timing.skew,
            departure=self._departure(),
            passed=passed,
            delayed=delayed,
            receive_memories=receive,
            send_memories=send,
            select=select,
            operand=operand,
            memory=memory,
            slot=slot,
            send_memory=send_memory,
            send_slot=send_slot,
            latency=self.combine - COMBINE,
        )

    def _departure(self) -> IntArray:
        """The row in which each word leaves, by step and port."""
        row = np.full(self.table.chunk.shape, -1)
        for step, port, *_ in self.transfers.departures:
            row[step, port], _ = self.timing.row(step, port)
        return row

    def _sources(
        self, passed: tuple[int, ...], delayed: tuple[int, ...], receiving: int, sending: int
    ) -> tuple[IntArray, IntArray]:
        """What feeds each out-port and adder in each row, as numbers."""
        every = range(self.ports)
        known: list[Source] = [FromPort(q, later=False) for q in every]
        known += [FromPort(q, later=True) for q in passed]
        known += [FromAdder(q, later=False) for q in every]
        known += [FromAdder(q, later=True) for q in delayed]
        number: dict[Source, int] = {source: k for k, source in enumerate(known)}
        first = len(known)
        number |= {source: first + k for source, k in self.memory_of.items()}
        first += receiving
        number |= {source: first + k for source, k in self.send_memory_of.items()}
        number |= {Identity(): first + sending}
        select, operand = np.full((2, self.timing.rows, self.ports), -1)
        for (consumer, step), source in self.source.items():
            row, _ = self.timing.row(step, self._link(consumer))
            (operand if consumer.adds else select)[row, consumer.port] = number[source]
        return select, operand

    def _bypass(self) -> tuple[tuple[int, ...], tuple[int, ...], _Waiting]:
        """Choose what does not wait in a memory; the rest by in-port and consumer.

        Returns
        -------
        passed, delayed : tuple of int
            The in-ports, and adders, with a register more.
        waiting : dict of (int, bool) to ReadWords
            What waits, by in-port, and whether it is a result.
        """
        waiting: _Waiting = defaultdict(lambda: defaultdict(dict))
        registers: dict[bool, set[int]] = {False: set(), True: set()}
        for consumer, words in self.words.items():
            for step, word in words.items():
                if isinstance(word, Own):
                    chunk = word.key[1] if self.transfers.kept else 0
                    self.source[consumer, step] = FromSend(consumer, chunk)
                elif isinstance(word, Identity):
                    self.source[consumer, step] = word
                else:
                    self._pass_by(consumer, step, word, waiting, registers)
        return tuple(sorted(registers[False])), tuple(sorted(registers[True])), waiting

    def _pass_by(
        self,
        consumer: Consumer,
        step: int,
        word: Arrival | Passed,
        waiting: _Waiting,
        registers: dict[bool, set[int]],
    ) -> None:
        """Choose where a consumer takes a word that has arrived, or what was made of it."""
        sums = isinstance(word, Arrival)
        port = self.opposite[_arrival(word).port]
        age = self._takes(consumer, step) - self._written(word)
        if age >= MEMORY_AGE - COMBINE:
            waiting[port, sums][consumer][step] = word
            self.source[consumer, step] = FromMemory(consumer, port, sums)
        else:
            self.source[consumer, step] = (FromAdder if sums else FromPort)(port, later=age > 0)
            registers[sums] |= {port} if age > 0 else set()

    def _written(self, word: Arrival | Passed) -> int:
        """The cycle in which a word, or what was made of it, can be taken or written."""
        made = self.combine if isinstance(word, Arrival) else 0
        return self._arrives(_arrival(word)) + made

    def _share(self, reads: ReadWords[Kept]) -> list[SharedMemory[Kept]]:
        """Put consumers together that can share a memory, those that read most first."""
        groups: list[SharedMemory[Kept]] = []
        for consumer, words in sorted(reads.items(), key=lambda item: -len(item[1])):
            rows = {self._read(consumer, step)[0]: word for step, word in words.items()}
            skew = self._read(consumer, next(iter(words)))[1]
            for group in groups:
                clash = any(group.rows.get(row, word) != word for row, word in rows.items())
                if skew == group.skew and not clash:
                    group.consumers.append(consumer)
                    group.rows.update(rows)
                    break
            else:
                groups.append(SharedMemory([consumer], dict(rows), skew))
        return groups

    def _receive_memories(
        self, waiting: _Waiting
    ) -> tuple[tuple[PlannedMemory, ...], dict[Arrival, tuple[int, int]]]:
        """Memories for results.

        Returns
        -------
        memories : tuple of PlannedMemory
        location : dict of Arrival to (int, int)
            Memory and slot of each complete sum.
        """
        kept: dict[int, set[Arrival]] = defaultdict(set)
        for word in self.complete.values():
            kept[self.opposite[word.port]].add(word)
        memories: list[PlannedMemory] = []
        location: dict[Arrival, tuple[int, int]] = {}
        for port in range(self.ports):
            groups = self._share(waiting[port, True])
            if kept[port] and not groups:
                groups = [SharedMemory([], {}, 0)]
            raw = self._share(waiting[port, False])
            for number, group in enumerate(groups + raw):
                sums = number < len(groups)
                self.memory_of |= {
                    FromMemory(consumer, port, sums): len(memories) for consumer in group.consumers
                }
                stay = set() if number else kept[port]
                slots, memory = self._fill(port, group, stay)
                location |= {word: (len(memories), slots[word]) for word in stay}
                memories.append(memory._replace(sums=sums))
        return tuple(memories), location

    def _fill(
        self, port: int, group: SharedMemory[Arrival | Passed], stay: set[Arrival]
    ) -> tuple[dict[Arrival | Passed, int], PlannedMemory]:
        """Give each word of a memory a slot, which is used again once the word is not needed."""
        write, read = np.full((2, self.timing.rows), -1)
        slots: dict[Arrival | Passed, int] = {}
        free: list[int] = []
        leaving: list[tuple[int, int]] = []
        for word in sorted({*group.rows.values(), *stay}, key=self._written):
            # A word may be written just after the last read of another from its slot.
            while leaving and leaving[0][0] <= self._written(word):
                heappush(free, heappop(leaving)[1])
            slots[word] = heappop(free) if free else len(leaving)
            end = FOREVER if word in stay else self.last_use[word]
            heappush(leaving, (end, slots[word]))
            write[self.timing.row(*_arrival(word))[0]] = slots[word]
        for row, word in group.rows.items():
            read[row] = slots[word]
        depth = max(slots.values(), default=-1) + 1
        return slots, PlannedMemory(port, depth, write, read, group.skew)

    def _send_memories(self) -> tuple[tuple[PlannedMemory, ...], IntArray, IntArray]:
        """Memories for what a node contributes.

        Returns
        -------
        memories : tuple of PlannedMemory
        memory, slot : ndarray of int, shape (nodes, chunks)
            Where each contribution lies; each is read.
        """
        topology, chunks = self.table.topology, 1 + int(self.table.chunk.max())
        reads: ReadWords[SumKey] = defaultdict(dict)
        for consumer, words in self.words.items():
            for step, word in words.items():
                if isinstance(word, Own):
                    reads[consumer][step] = word.key
        memory, slot = np.empty((2, topology.nodes, chunks), int)
        memories: list[PlannedMemory] = []
        if self.transfers.kept:
            groups = self._share_copies(reads)
        else:
            groups = [(list(map(FromSend, group.consumers)), group) for group in self._share(reads)]
        for sources, group in groups:
            self.send_memory_of |= dict.fromkeys(sources, len(memories))
            write, read = np.full((2, self.timing.rows), -1)
            slots: dict[SumKey, int] = {}
            for row, key in sorted(group.rows.items()):
                read[row] = slots.setdefault(key, len(slots))
            for (offset, chunk), number in slots.items():
                goal = int(topology.subtract(0, offset))
                memory[goal, chunk], slot[goal, chunk] = len(memories), number
            memories.append(PlannedMemory(-1, len(slots), write, read, group.skew))
        return tuple(memories), memory, slot

    def _share_copies(
        self, reads: ReadWords[SumKey]
    ) -> list[tuple[list[FromSend], SharedMemory[SumKey]]]:
        """Put contributions together that several consumers take, and that can share a memory."""
        found: dict[SumKey, tuple[list[FromSend], SharedMemory[SumKey]]] = {}
        for consumer, words in reads.items():
            for step, key in words.items():
                sources, memory = found.setdefault(key, ([], SharedMemory([], {}, 0)))
                sources.append(FromSend(consumer, key[1]))
                memory.rows[self._read(consumer, step)[0]] = key
        groups: list[tuple[list[FromSend], SharedMemory[SumKey]]] = []
        for sources, memory in found.values():
            for others, group in groups:
                if group.rows.keys().isdisjoint(memory.rows):
                    others += sources
                    group.rows.update(memory.rows)
                    break
            else:
                groups.append((sources, memory))
        return groups


def _arrival(word: Arrival | Passed) -> Arrival:
    """The arrival of a word."""
    return word.arrival if isinstance(word, Passed) else word
