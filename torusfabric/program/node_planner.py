"""How one node carries out a table, once it is known what moves when: where words wait meanwhile.

What arrived is taken straight off its in-port, out of a register behind it, or out of a memory; and
so is what an adder behind an in-port makes. Which consumers share a memory is for `table_planner`
and `sum_planner` to say: here all of it gets addresses, and settings.

Skews cost nothing in the nodes, for only the sequencer delays their signals; but memories that are
read with different skews cannot be one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ..topology import IntArray
from .fields import Source, Stage
from .node_plan import FOREVER, NodePlan, PlannedMemory, number_sources, slots_of
from .table_timing import Arrival, Key, TableTiming, TableTransfers
from .timing import COMBINE, MEMORY_AGE, PASS

__all__ = ["Consumer", "Moves", "SharedMemory", "Use", "Word", "plan_node"]


class Consumer(NamedTuple):
    """What takes a word a cycle at most: an out-port, or the adder behind an in-port."""

    port: int
    adds: bool


class Word(NamedTuple):
    """A word that a consumer takes, and where it is to be found first.

    Of an arrival, what the adder made of it, or at `Stage.PORT` the word as it came; at
    `Stage.INJECTION`, the node's own block or contribution.
    """

    stage: Stage
    of: Arrival | Key = (0, 0)


class Use(NamedTuple):
    """A consumer, the step in which it takes a word, and the word."""

    consumer: Consumer
    step: int
    word: Word


#: Where words are a cycle later, unless in memory.
LATER = {Stage.PORT: Stage.LATER, Stage.RESULT: Stage.LATER_RESULT}


@dataclass(eq=False)
class SharedMemory:
    """A memory that several consumers read.

    Parameters
    ----------
    port : int
        The in-port whose words it stores; -1 of what the node sends.
    sums : bool
        Whether it stores what the adder there makes of them.
    skew : int
        As of `PlannedMemory`.
    uses : list of Use
        Who takes words of it.
    rows : dict of int to Word
        What is read in each row.
    held : dict of Word to int
        Until which cycle each word is held; `FOREVER` where the host reads or writes it.
    """

    port: int = -1
    sums: bool = False
    skew: int = 0
    uses: list[Use] = field(default_factory=list)
    rows: dict[int, Word] = field(default_factory=dict)
    held: dict[Word, int] = field(default_factory=dict)

    def add(self, use: Use, row: int) -> None:
        """Let a consumer take a word of it, which is read in some row."""
        self.uses.append(use)
        self.rows[row] = use.word


@dataclass(frozen=True, eq=False)
class Moves:
    """What moves at a node, and when.

    Parameters
    ----------
    taken : list of Use
        In any order.
    complete : dict of Key to Word
        What is delivered, by offset, or its number, and chunk.
    """

    transfers: TableTransfers
    timing: TableTiming
    taken: list[Use]
    complete: dict[Key, Word]

    @cached_property
    def uses(self) -> list[Use]:
        """What is taken, consumer by consumer."""
        rank: dict[Consumer, int] = {}
        return sorted(self.taken, key=lambda use: rank.setdefault(use.consumer, len(rank)))

    def in_port(self, word: Word) -> int:
        """The in-port by which a word came."""
        return self.transfers.opposite[word.of[1]]

    def link(self, consumer: Consumer) -> int:
        """The out-port of the link in front of or behind a consumer."""
        return self.transfers.opposite[consumer.port] if consumer.adds else consumer.port

    def arrives(self, arrival: Arrival) -> int:
        """The cycle in which the first flit of an arrival is at its in-port."""
        return self.timing.time(*arrival) + self.transfers.longer[arrival.port]

    def takes(self, use: Use) -> int:
        """The cycle in which a consumer takes a word."""
        link = self.link(use.consumer)
        if use.consumer.adds:
            return self.arrives(Arrival(use.step, link))
        return self.timing.time(use.step, link) - PASS

    def written(self, word: Word) -> int:
        """The cycle in which a word can be taken or written; the node's own is there before."""
        if not isinstance(word.of, Arrival):
            return 0
        return self.arrives(word.of) + self.transfers.combine * (word.stage is Stage.RESULT)

    def read_at(self, use: Use) -> tuple[int, int]:
        """The row and skew in which a consumer reads a memory."""
        link = self.link(use.consumer)
        late = use.consumer.adds * (PASS + self.transfers.longer[link])
        return self.timing.row_at(use.step, link, late)

    @cached_property
    def sources(self) -> dict[Use, Source]:
        """Where consumers take words: a memory is known by who takes a word of it, and when."""
        found: dict[Use, Source] = {}
        for use in self.uses:
            stage, port = use.word.stage, 0
            if stage in LATER:
                port = self.in_port(use.word)
                age = self.takes(use) - self.written(use.word)
                if age >= MEMORY_AGE - PASS:
                    stage = Stage.INJECTION
                elif age:
                    stage = LATER[stage]
            found[use] = (stage, use) if stage is Stage.INJECTION else (stage, port)
        return found

    @cached_property
    def waits(self) -> dict[tuple[int, Stage], list[Use]]:
        """What waits in memories, by in-port and stage."""
        found: dict[tuple[int, Stage], list[Use]] = defaultdict(list)
        for use, (stage, _) in self.sources.items():
            if stage is Stage.INJECTION and use.word.stage is not Stage.INJECTION:
                found[self.in_port(use.word), use.word.stage].append(use)
        return found

    def kept(self, port: int) -> dict[Word, int]:
        """The words that are delivered that come by an in-port: held for ever."""
        there = (word for word in self.complete.values() if self.in_port(word) == port)
        return dict.fromkeys(there, FOREVER)

    def part(self, word: Word) -> tuple[int, int]:
        """Part and chunk of a word of the node's own."""
        *_, part, chunk = word.of
        sums, topology = self.transfers.sums, self.transfers.table.topology
        return int(topology.subtract(0, part)) if sums else part, chunk


def plan_node(moves: Moves, flits: int, memories: Sequence[SharedMemory]) -> NodePlan:
    """The plan of a node, given what moves, and its memories: those of what it sends come last.

    Blocks are of so many flits.
    """
    transfers, timing = moves.transfers, moves.timing
    memory_of = {use: number for number, memory in enumerate(memories) for use in memory.uses}
    adds = any(use.consumer.adds for use in moves.uses)
    sources, readers, numbers = number_sources(
        transfers.ports, set(moves.sources.values()), memory_of,
        results=adds, latency=transfers.combine - COMBINE,
    )  # fmt: skip
    select, operand = np.full((2, timing.rows, transfers.ports), -1)
    for use, source in moves.sources.items():
        row, _ = timing.row_at(use.step, moves.link(use.consumer))
        (operand if use.consumer.adds else select)[row, use.consumer.port] = numbers[source]
    departure = np.full(transfers.table.chunk.shape, -1)
    for leaving in transfers.departures:
        departure[leaving.step, leaving.port] = timing.row[leaving.step, leaving.port]
    slots = [_slots(moves, memory) for memory in memories]
    planned = [*map(partial(_planned, timing), memories, slots)]
    received = sum(memory.port >= 0 for memory in memories)
    located, own = _located(moves, memories, slots, received)
    return NodePlan(
        by_waves=timing.by_cycle,
        flits=flits,
        sources=sources,
        readers=readers,
        receive_memories=tuple(planned[:received]),
        send_memories=tuple(planned[received:]),
        select=select,
        operand=operand if adds else None,
        memory=located[0],
        slot=located[1],
        send_memory=own[0] - received,
        send_slot=own[1],
        departure=departure,
        period=timing.period,
        skew=tuple(timing.skew) if adds else (),
    )


def _slots(moves: Moves, memory: SharedMemory) -> dict[Word, int]:
    """The slot of each word of a memory."""
    words = sorted(memory.held, key=moves.written)
    return slots_of((word, moves.written(word), memory.held[word]) for word in words)


def _planned(timing: TableTiming, memory: SharedMemory, slots: dict[Word, int]) -> PlannedMemory:
    """What a memory stores, and what is read of it, in each row."""
    write, read = np.full((2, timing.rows), -1)
    for word, slot in slots.items():
        if isinstance(word.of, Arrival):
            write[timing.row_at(*word.of)[0]] = slot
    for row, word in memory.rows.items():
        read[row] = slots[word]
    depth = max(slots.values(), default=-1) + 1
    return PlannedMemory(memory.port, depth, write, read, memory.skew, memory.sums)


def _located(
    moves: Moves, memories: Sequence[SharedMemory], slots: list[dict[Word, int]], received: int
) -> tuple[IntArray, IntArray]:
    """Memory and slot of what is delivered, and of what is sent, by part and chunk."""
    layout = moves.transfers.table.layout
    found = np.full((2, layout.recv_parts, layout.part_chunks), -1)
    own = np.zeros((2, layout.send_parts, layout.part_chunks), int)
    location = {
        word: (number, slots[number][word])
        for number, memory in enumerate(memories)
        for word, end in memory.held.items()
        if end == FOREVER
    }
    for word, at in location.items():
        if word.stage is Stage.INJECTION:
            part, chunk = moves.part(word)
            own[:, part, chunk] = at
    if not (moves.transfers.sums or moves.transfers.table.collective.local):
        found[:, 0] = own[:, 0]
    for (part, chunk), word in moves.complete.items():
        found[:, part, chunk] = location[word]
    return found, own
