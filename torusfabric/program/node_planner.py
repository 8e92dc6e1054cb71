"""The planner of a node that executes a table: where words wait between arrival and departure.

A *consumer* is an out-port, or the adder behind an in-port. It takes an arrived word, or a result
of an adder, from one of three locations: the in-port (or the adder) itself, the register behind it
one cycle later, or, after that, a memory. `table_planner` and `sum_planner` decide which
consumers share a memory. This module assigns addresses and settings.

A *skew* is a number of cycles by which a link carries its words later than the row begins (see
`table_timing`). It costs nothing in the nodes, because the sequencer delays the signals. But words
that are read with different skews cannot be in the same memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import AddressMap
from .fields import IDLE, Action, Loop, Order, Source, Sources, Stage, make_node_memories
from .moves import Moves, Points, slot_addresses
from .table_timing import Key, TableArrival, TableTiming, TableTransfers
from .timing import COMBINE, MEMORY_AGE, PASS

if TYPE_CHECKING:
    from ..schedule import SumTable, Table
    from ..topology import IntArray
    from .moves import CompileRequest

__all__ = ["FOREVER", "Consumer", "SharedMemory", "TableTraffic", "WordUse", "Word", "plan_node"]

#: The cycle until which a word is held that the host may read.
FOREVER = 1 << 60


class Consumer(NamedTuple):
    """A component that takes at most one word a cycle: an out-port, or an in-port's adder."""

    port: int
    adds: bool


class Word(NamedTuple):
    """A word that an out-port or an adder takes, with its origin.

    By `stage`, the word is a word as it arrived at an in-port (`Stage.PORT`), the result of the
    adder for an arrived word (`Stage.RESULT`), or the node's own block or contribution
    (`Stage.INJECTION`). For the first two, `origin` is the arrival; for the last, it is the key of
    the block or sum.
    """

    stage: Stage
    origin: TableArrival | Key = (0, 0)


class WordUse(NamedTuple):
    """The fact that a consumer (an out-port or an adder) takes a word in a step of the table."""

    consumer: Consumer
    step: int
    word: Word


#: The stage of a word one cycle later, unless the word is in a memory.
DELAYED_STAGE = {Stage.PORT: Stage.DELAYED, Stage.RESULT: Stage.DELAYED_RESULT}


@dataclass(eq=False)
class SharedMemory:
    """A memory that one or several consumers (out-ports, or adders behind in-ports) read.

    Parameters
    ----------
    port : int
        In-port whose words the memory stores; -1 for words of the node's own message.
    sums : bool
        True if it stores the results of the adder behind the in-port.
    skew : int
        Cycles by which a word is read later than the beginning of its row.
    uses : list of WordUse
        Consumers and the words that they take from the memory.
    rows : dict of int to Word
        Word that is read in each row.
    held : dict of Word to int
        Cycle until which each word must stay in the memory; `FOREVER` if the host reads or writes
        the word.
    """

    port: int = -1
    sums: bool = False
    skew: int = 0
    uses: list[WordUse] = field(default_factory=list)
    rows: dict[int, Word] = field(default_factory=dict)
    held: dict[Word, int] = field(default_factory=dict)

    def add_use(self, use: WordUse, row: int) -> None:
        """Record `use`: an out-port or adder takes a word from this memory, read in row `row`."""
        self.uses.append(use)
        self.rows[row] = use.word


@dataclass(frozen=True, eq=False)
class TableTraffic:
    """The words that consumers take at a node that executes a table, with their cycles.

    A *consumer* is an out-port, or the adder behind an in-port.

    Parameters
    ----------
    transfers : TableTransfers
        Arrivals and departures at the node.
    timing : TableTiming
        Cycles of the words on links.
    taken : list of WordUse
        All pairs of a consumer and a word that it takes, in any order.
    complete : dict of Key to Word
        Delivered words. The key is (part, chunk); the part is an offset, or the number of a
        message.
    """

    transfers: TableTransfers
    timing: TableTiming
    taken: list[WordUse]
    complete: dict[Key, Word]

    @cached_property
    def all_uses(self) -> list[WordUse]:
        """All uses of words by out-ports and adders.

        Uses by the same out-port or adder follow one another.
        """
        rank: dict[Consumer, int] = {}
        return sorted(self.taken, key=lambda use: rank.setdefault(use.consumer, len(rank)))

    def in_port(self, word: Word) -> int:
        """Return the in-port by which a word arrived."""
        return self.transfers.opposite[word.origin[1]]

    def link_of_consumer(self, consumer: Consumer) -> int:
        """Return the link of a consumer (out-port or adder), as the out-port at its beginning.

        All nodes act alike, so an out-port names the same link at every node. For an out-port, it
        is the link that the out-port feeds. For an adder, it is the link into its in-port; the
        result is the out-port of the neighbour that feeds this link.
        """
        return self.transfers.opposite[consumer.port] if consumer.adds else consumer.port

    def arrival_cycle(self, arrival: TableArrival) -> int:
        """Return the cycle in which the first flit of an arrival is at its in-port."""
        return self.timing.link_cycle(*arrival) + self.transfers.longer[arrival.port]

    def take_cycle(self, use: WordUse) -> int:
        """Return the cycle in which an out-port or adder takes a word; `use` names both."""
        link = self.link_of_consumer(use.consumer)
        if use.consumer.adds:
            return self.arrival_cycle(TableArrival(use.step, link))
        return self.timing.link_cycle(use.step, link) - PASS

    def available_cycle(self, word: Word) -> int:
        """Return the first cycle in which a word can be taken, or be written into a memory.

        For an arrived word it is the cycle of the arrival, for the result of an adder some cycles
        later, and for the node's own words 0.
        """
        if not isinstance(word.origin, TableArrival):
            return 0
        return self.arrival_cycle(word.origin) + self.transfers.combine * (
            word.stage is Stage.RESULT
        )

    def read_row_and_skew(self, use: WordUse) -> tuple[int, int]:
        """Return the row in which the word of `use` is read from a memory, and its skew.

        The skew is the number of cycles by which the read comes later in the row. For an adder, it
        includes the cycles of the link into its in-port.
        """
        link = self.link_of_consumer(use.consumer)
        late = use.consumer.adds * (PASS + self.transfers.longer[link])
        return self.timing.row_and_skew(use.step, link, late)

    @cached_property
    def source_of_use(self) -> dict[WordUse, Source]:
        """The source from which each use of a word takes it: a pair of a stage and an in-port.

        A word is taken at its in-port (or adder), from the register behind it one cycle later, or
        else from a memory. `Stage.INJECTION` stands for a memory; the in-port is then 0.
        """
        found: dict[WordUse, Source] = {}
        for use in self.all_uses:
            stage, port = use.word.stage, 0
            if stage in DELAYED_STAGE:
                port = self.in_port(use.word)
                age = self.take_cycle(use) - self.available_cycle(use.word)
                if age >= MEMORY_AGE - PASS:
                    stage = Stage.INJECTION
                elif age:
                    stage = DELAYED_STAGE[stage]
            found[use] = stage, port
        return found

    @cached_property
    def waiting_uses(self) -> dict[tuple[int, Stage], list[WordUse]]:
        """The arrived words that wait in a memory, with the out-ports and adders that take them.

        A use is a word and the out-port or adder that takes it. The result maps the in-port and the
        stage of the word to its uses: `Stage.PORT` for words as they arrived, `Stage.RESULT` for
        results of the adder behind the in-port.
        """
        found: dict[tuple[int, Stage], list[WordUse]] = defaultdict(list)
        for use, (stage, _) in self.source_of_use.items():
            if stage is Stage.INJECTION and use.word.stage is not Stage.INJECTION:
                found[self.in_port(use.word), use.word.stage].append(use)
        return found

    def delivered_words(self, port: int) -> dict[Word, int]:
        """Return the words that an in-port delivers to the node, as {word: FOREVER}.

        The value is the cycle until which the word must stay in memory. It is `FOREVER`, because
        the host may read the word at any time.
        """
        there = (word for word in self.complete.values() if self.in_port(word) == port)
        return dict.fromkeys(there, FOREVER)

    def part_and_chunk(self, word: Word) -> tuple[int, int]:
        """Return the part and the chunk of one of the node's own words.

        A part is one of the messages, or one of the shares, that the node sends.
        """
        *_, part, chunk = word.origin
        sums, topology = self.transfers.sums, self.transfers.table.topology
        return int(topology.subtract(0, part)) if sums else part, chunk


def plan_node(
    request: CompileRequest,
    traffic: TableTraffic,
    memories: Sequence[SharedMemory],
    least: int = 0,
) -> Moves:
    """Return the moves of a table: the actions of a node in each row, the same at all nodes.

    The function selects the source of each word, assigns memory slots, and makes the address maps.

    Parameters
    ----------
    request : CompileRequest
        Schedule and properties of the program.
    traffic : TableTraffic
        Words that out-ports and adders take, with their cycles.
    memories : sequence of SharedMemory
        Memories of a node; those of its own message come last.
    least : int, optional
        Least number of cycles of a row; by default the cycles of a row in `traffic.timing`.
    """
    transfers, timing, block = traffic.transfers, traffic.timing, request.block_flits
    table, topology, least = transfers.table, transfers.table.topology, least or timing.period
    memory_of = {use: number for number, memory in enumerate(memories) for use in memory.uses}
    used: dict[Stage, set[int]] = defaultdict(set)
    for use, (stage, port) in traffic.source_of_use.items():
        used[stage].add(memory_of[use] if stage is Stage.INJECTION else port)
    # Each memory that is read has an injection port.
    readers = sorted(used[Stage.INJECTION])
    sources = Sources(
        transfers.ports,
        tuple(sorted(used[Stage.DELAYED])),
        results=transfers.sums,
        delayed_results=tuple(sorted(used[Stage.DELAYED_RESULT])),
        injections=tuple((k,) for k in range(len(readers))),
        latency=transfers.combine - COMBINE,
    )
    numbers = {source: k for k, source in enumerate(sources.by_number)}
    settings = np.full((2, timing.rows, 1, transfers.ports), IDLE)
    for use, (stage, port) in traffic.source_of_use.items():
        row, _ = timing.row_and_skew(use.step, traffic.link_of_consumer(use.consumer))
        if stage is Stage.INJECTION:
            port = readers.index(memory_of[use])
        settings[int(use.consumer.adds), row, 0, use.consumer.port] = numbers[stage, port]
    departure = np.full(table.chunk.shape, IDLE)
    for at, row in timing.row.items():
        departure[at] = row
    slots = [
        assign_slots((word, traffic.available_cycle(word), memory.held[word])
                 for word in sorted(memory.held, key=traffic.available_cycle))
        for memory in memories
    ]  # fmt: skip
    received = sum(memory.port >= 0 for memory in memories)
    write, read = np.full((2, timing.rows, 1, len(memories)), IDLE)
    for number, (memory, slot_of) in enumerate(zip(memories, slots, strict=True)):
        for word, slot in slot_of.items():
            if isinstance(word.origin, TableArrival):
                write[timing.row_and_skew(*word.origin)[0], 0, number] = slot
        for row, word in memory.rows.items():
            read[row, 0, number] = slot_of[word]
    skew = np.array(timing.skew)
    near, links, stored = skew[topology.opposite], topology.cycles_of_port, memories[:received]
    ports = np.array([memory.port for memory in stored], int)
    result = np.array([memory.sums for memory in stored], bool)
    points = [
        Points({Action.SELECT: settings[0]}, skew),
        *([Points({Action.OPERAND: settings[1]}, near + links)] if transfers.sums else []),
        Points.from_readers(
            np.array(readers, int), read[..., readers], [memories[k].skew for k in readers]
        ),
        Points.from_memories(
            write[..., :received],
            ports + sources.first_of_stage(Stage.RESULT) * result,
            links[ports],
            near[ports] + transfers.combine * result,
        ),
    ]
    located, own = _locate_words(traffic, memories, slots)
    collective = table.collective
    if received + 1 == len(memories) and not collective.reducing and not collective.personal:
        send_map = AddressMap.from_sequence(received, 1, table.chunks, block)
    else:
        send_map = _make_map(table, own, block, ahead=True)
    return Moves(
        loop=Loop(
            order=Order.FLIT if timing.by_cycle else Order.ROW,
            flits=block,
            pause=np.full(timing.rows, 0 if timing.by_cycle else max(least - block, 0)),
            blocks=np.ones(timing.rows, int),
            least=least,
            sources=sources,
            departure=departure,
            departure_skew=skew,
        ),
        points=points,
        memories=make_node_memories(ports.tolist(), len(memories) - received),
        depth=np.array([[max(slot_of.values(), default=-1) + 1 for slot_of in slots]]),
        variant_of=np.zeros(topology.nodes, np.int32),
        send_map=send_map,
        receive_map=_make_map(table, located, block),
        known_by="step and port",
    )


def assign_slots(held: Iterable[tuple[Word, int, int]]) -> dict[Word, int]:
    """Return a memory slot for each word, as {word: number}; slots are the spaces of blocks.

    After a word has left, another word may use its slot.

    Parameters
    ----------
    held : iterable of (word, int, int)
        Words with the cycles from which and until which they are held, in the order in which they
        arrive.

    Examples
    --------
    Word a leaves in cycle 2, in which word c arrives.

    >>> assign_slots([("a", 0, 2), ("b", 1, 9), ("c", 2, 9)])
    {'a': 0, 'b': 1, 'c': 0}
    """
    slots: dict[Word, int] = {}
    free: list[int] = []
    leaving: list[tuple[int, int]] = []
    for word, begin, end in held:
        while leaving and leaving[0][0] <= begin:
            heappush(free, heappop(leaving)[1])
        slots[word] = heappop(free) if free else len(leaving)
        heappush(leaving, (end, slots[word]))
    return slots


def _make_map(
    table: Table | SumTable, located: IntArray, block: int, *, ahead: bool = False
) -> AddressMap:
    """Return the table of memory addresses of the blocks of `table`.

    The two rows of `located` are the memory and the memory slot of each block, and a slot has
    `block` words. The blocks are found by the offset between the node and their origin or
    destination, in the direction that `ahead` tells (see `AddressMap.from_offset_table`). In an
    exchange or halo they are found by the number of the message instead.
    """
    memory, base = located[0][None], slot_addresses(located[1], block)[None]
    if table.collective.local:
        return AddressMap(memory, base)
    return AddressMap.from_offset_table(memory, base, table.topology, ahead=ahead)


def _locate_words(
    traffic: TableTraffic,
    memories: Sequence[SharedMemory],
    slots: list[dict[Word, int]],
) -> tuple[IntArray, IntArray]:
    """Return the locations of delivered words, and those of the words that the node sends.

    Each result has the shape (2, parts, chunks): the memory, and the memory slot in it. A part is
    one of the messages or shares of the node. `traffic` has the words, `memories` are all memories
    of the node, and ``slots[k]`` has the slot of each word in memory k.
    """
    layout = traffic.transfers.table.layout
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
            part, chunk = traffic.part_and_chunk(word)
            own[:, part, chunk] = at
    if not (traffic.transfers.sums or traffic.transfers.table.collective.local):
        found[:, 0] = own[:, 0]
    for (part, chunk), word in traffic.complete.items():
        found[:, part, chunk] = location[word]
    return found, own
