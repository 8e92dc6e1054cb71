"""How one node carries out a table: where words wait, and which are added to which.

Of sums every in-port has an adder. A word that arrives is combined at once with what is there of
the sum it belongs to: the node's own contribution if it is the first, else what the arrival before
it made. The result is in a register behind the adder one cycle later, or more where the hardware of
the operator takes some. From there an out-port or another adder takes it, or a register behind
that, or a memory, as a block is taken off its in-port (see `table_planner`).

When that happens is decided by `table_timing`: by the cycle, or by the step. Skews cost nothing in
the nodes, for only the sequencer delays their signals; but memories that are read with different
skews cannot be one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from ..schedule import SumTable, Table
from ..topology import IntArray
from .fields import Source, Stage
from .node_plan import FOREVER, NodePlan, PlannedMemory, number_sources, slots_of
from .table_timing import Arrival, Departure, Key, TableTiming, TableTransfers
from .timing import COMBINE, MEMORY_AGE

__all__ = ["Consumer", "NodePlanner", "Reads", "SharedMemory", "Word"]


class Consumer(NamedTuple):
    """What takes a word a cycle at most: an out-port, or the adder behind an in-port."""

    port: int
    adds: bool


class Word(NamedTuple):
    """A word that a consumer takes, and where it is to be found first.

    Of an arrival, what the adder made of it, or at `Stage.PORT` the word as it came; of a sum, at
    `Stage.INJECTION`, the node's own contribution.
    """

    stage: Stage
    of: Arrival | Key = (0, 0)


#: Where words are a cycle later, unless in memory.
LATER = {Stage.PORT: Stage.LATER, Stage.RESULT: Stage.LATER_RESULT}

#: What each consumer reads in each step.
Reads: TypeAlias = dict[Consumer, dict[int, Word]]


#: A consumer, and the step in which it takes a word.
Use: TypeAlias = tuple[Consumer, int]


class SharedMemory(NamedTuple):
    """A memory that several consumers read: what in each row, and with which skew.

    Readers are the consumers that take words of it, each with the step in which it does.
    """

    readers: list[Use]
    rows: dict[int, Word]
    skew: int


class NodePlanner:
    """Plans one timing of a table.

    A consumer takes a word a cycle at most, so that a memory of its own is always free for it;
    memories of several consumers are made one where they never are read at once.
    """

    def __init__(
        self, table: Table | SumTable, transfers: TableTransfers, timing: TableTiming, flits: int
    ) -> None:
        self.table, self.transfers, self.timing, self.flits = table, transfers, timing, flits
        self.ports, self.combine = table.topology.ports, transfers.combine
        self.opposite: list[int] = table.topology.opposite.tolist()
        self.words: Reads = defaultdict(dict)
        self.last_use: dict[Word, int] = defaultdict(int)
        self.source: dict[Use, Source] = {}
        self.complete: dict[Key, Word] = {}
        self.memory_of: dict[Use, int] = {}
        self._follow()

    def _link(self, consumer: Consumer) -> int:
        """The out-port of the link in front of or behind a consumer."""
        return self.opposite[consumer.port] if consumer.adds else consumer.port

    def _takes(self, consumer: Consumer, step: int) -> int:
        """The cycle in which a consumer takes a word."""
        if consumer.adds:
            return self._arrives(Arrival(step, self._link(consumer)))
        return self.timing.time(step, consumer.port) - 1

    def _arrives(self, arrival: Arrival) -> int:
        """The cycle in which the first flit of an arrival is at its in-port."""
        return self.timing.time(*arrival) + self.transfers.longer[arrival.port]

    def _read(self, consumer: Consumer, step: int) -> tuple[int, int]:
        """The row and skew in which a consumer reads a memory."""
        link = self._link(consumer)
        return self.timing.row_at(step, link, consumer.adds * (1 + self.transfers.longer[link]))

    def _written(self, word: Word) -> int:
        """The cycle in which a word of an arrival can be taken or written."""
        assert isinstance(word.of, Arrival)
        return self._arrives(word.of) + self.combine * (word.stage is Stage.RESULT)

    def _follow(self) -> None:
        """Find out what every consumer takes when."""
        results: dict[Key, Word] = {}
        for key, arrivals in self.transfers.joins.items():
            before = Word(Stage.INJECTION, key)
            for arrival in sorted(arrivals, key=self._arrives):
                before = results[key] = self._add(arrival, before)
        self.complete = {key: word for key, word in results.items() if key[0] == 0}
        for key, arrival in self.transfers.passes.items():
            self.complete[key] = self._add(arrival, Word(Stage.IDENTITY))
        for leaving in self.transfers.departures:
            self._take(
                Consumer(leaving.port, adds=False), leaving.step, self._sent(leaving, results)
            )

    def _sent(self, leaving: Departure, results: dict[Key, Word]) -> Word:
        """The word that leaves."""
        own = Word(Stage.INJECTION, leaving.key)
        if leaving.passed:
            return Word(Stage.PORT, leaving.passed)
        if self.transfers.kept:
            before = [Word(Stage.RESULT, a) for a in self.transfers.feeding(leaving)]
            return max(before, key=self._written, default=own)
        return (results if leaving.partial else self.complete).get(leaving.key, own)

    def _add(self, arrival: Arrival, word: Word) -> Word:
        """Combine an arrival with a word; the result."""
        self._take(Consumer(self.opposite[arrival.port], adds=True), arrival.step, word)
        return Word(Stage.RESULT, arrival)

    def _take(self, consumer: Consumer, step: int, word: Word) -> None:
        self.words[consumer][step] = word
        self.last_use[word] = max(self.last_use[word], self._takes(consumer, step))

    def plan(self) -> NodePlan:
        """The plan."""
        receive, location = self._receive_memories(self._waiting())
        send, send_memory, send_slot = self._send_memories(len(receive))
        adds = any(consumer.adds for consumer in self.words)
        latency = self.combine - COMBINE
        sources, readers, number = number_sources(
            self.ports, set(self.source.values()), self.memory_of, results=adds, latency=latency
        )
        select, operand = self._settings(number)
        memory, slot = self._delivered(location, len(receive) + send_memory, send_slot)
        return NodePlan(
            by_waves=self.timing.by_cycle,
            flits=self.flits,
            sources=sources,
            readers=readers,
            receive_memories=receive,
            send_memories=send,
            select=select,
            operand=operand if adds else None,
            memory=memory,
            slot=slot,
            send_memory=send_memory[:1] if self.transfers.kept else send_memory,
            send_slot=send_slot[:1] if self.transfers.kept else send_slot,
            departure=self._departure(),
            period=self.timing.period,
            skew=tuple(self.timing.skew) if adds else (),
        )

    def _delivered(
        self, location: dict[Word, tuple[int, int]], own: IntArray, own_slot: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Where a node keeps what is delivered to it, given where it keeps what it sends."""
        memory, slot = np.full((2, *own.shape), -1)
        for (offset, chunk), word in self.complete.items():
            memory[offset, chunk], slot[offset, chunk] = location[word]
        alike = self.table.collective.personal or self.transfers.kept
        return (memory[:1], slot[:1]) if alike else (memory, slot)

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

    def _waiting(self) -> dict[tuple[int, Stage], Reads]:
        """Choose where consumers take words; what waits in memories, by in-port and stage."""
        waiting: dict[tuple[int, Stage], Reads] = defaultdict(lambda: defaultdict(dict))
        for consumer, words in self.words.items():
            for step, word in words.items():
                stage, port = word.stage, 0
                if stage in LATER:
                    port = self.opposite[word.of[1]]
                    age = self._takes(consumer, step) - self._written(word)
                    if age >= MEMORY_AGE - COMBINE:
                        waiting[port, stage][consumer][step] = word
                        stage = Stage.INJECTION
                    elif age:
                        stage = LATER[stage]
                # A memory is known by who takes a word of it, and when.
                name = (consumer, step) if stage is Stage.INJECTION else port
                self.source[consumer, step] = stage, name
        return waiting

    def _of_consumers(self, reads: Reads) -> Iterator[SharedMemory]:
        """A memory for each consumer, those first that read most."""
        for consumer, words in sorted(reads.items(), key=lambda item: -len(item[1])):
            rows = {self._read(consumer, step)[0]: word for step, word in words.items()}
            skew = self._read(consumer, next(iter(words)))[1]
            yield SharedMemory([(consumer, step) for step in words], rows, skew)

    def _of_words(self, reads: Reads) -> Iterable[SharedMemory]:
        """A memory for each contribution, which several consumers may take."""
        found: dict[Word, SharedMemory] = {}
        for consumer, words in reads.items():
            for step, word in words.items():
                memory = found.setdefault(word, SharedMemory([], {}, 0))
                memory.readers.append((consumer, step))
                memory.rows[self._read(consumer, step)[0]] = word
        return found.values()

    def _receive_memories(
        self, waiting: dict[tuple[int, Stage], Reads]
    ) -> tuple[tuple[PlannedMemory, ...], dict[Word, tuple[int, int]]]:
        """Memories of what arrives or is made; memory and slot of each word that is delivered."""
        memories: list[PlannedMemory] = []
        location: dict[Word, tuple[int, int]] = {}
        for port, group, stay, sums in self._groups(waiting):
            self.memory_of |= dict.fromkeys(group.readers, len(memories))
            slots, memory = self._fill(port, group, stay)
            location |= {word: (len(memories), slots[word]) for word in stay}
            memories.append(memory._replace(sums=sums))
        return tuple(memories), location

    def _kept(self, port: int) -> set[Word]:
        """The words that are delivered that come by an in-port."""
        return {word for word in self.complete.values() if self.opposite[word.of[1]] == port}

    def _groups(
        self, waiting: dict[tuple[int, Stage], Reads]
    ) -> Iterator[tuple[int, SharedMemory, set[Word], bool]]:
        """In-port, memory, what stays in it, and whether that is sums; first those of results."""
        for port in range(self.ports):
            kept = self._kept(port)
            groups = _shared(self._of_consumers(waiting[port, Stage.RESULT]))
            if kept and not groups:
                groups = [SharedMemory([], {}, 0)]
            raw = _shared(self._of_consumers(waiting[port, Stage.PORT]))
            for number, group in enumerate(groups + raw):
                yield port, group, set() if number else kept, number < len(groups)

    def _until(self, group: SharedMemory) -> dict[Word, int]:
        """Until when words are held: just after the last read, another one may be written."""
        return {word: self.last_use[word] for word in group.rows.values()}

    def _fill(
        self, port: int, group: SharedMemory, stay: set[Word]
    ) -> tuple[dict[Word, int], PlannedMemory]:
        """Give each word of a memory a slot."""
        held = self._until(group) | dict.fromkeys(stay, FOREVER)
        words = sorted(held, key=self._written)
        slots = slots_of((word, self._written(word), held[word]) for word in words)
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
        reads: Reads = defaultdict(dict)
        for consumer, words in self.words.items():
            own = {step: w for step, w in words.items() if w.stage is Stage.INJECTION}
            reads |= {consumer: own} if own else {}
        memory, slot = np.empty((2, topology.nodes, chunks), int)
        memories: list[PlannedMemory] = []
        each = self._of_words(reads) if self.transfers.kept else self._of_consumers(reads)
        for group in _shared(each):
            self.memory_of |= dict.fromkeys(group.readers, first + len(memories))
            write, read = np.full((2, self.timing.rows), -1)
            slots: dict[Word, int] = {}
            for row, word in sorted(group.rows.items()):
                read[row] = slots.setdefault(word, len(slots))
            for (_, (offset, chunk)), number in slots.items():
                goal = int(topology.subtract(0, offset))
                memory[goal, chunk], slot[goal, chunk] = len(memories), number
            memories.append(PlannedMemory(-1, len(slots), write, read, group.skew))
        return tuple(memories), memory, slot


def _shared(memories: Iterable[SharedMemory]) -> list[SharedMemory]:
    """The same, as few as can be: each is one with the first that has nothing else to read then."""
    groups: list[SharedMemory] = []
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
