"""How one node carries out a table of sums: when it adds what to what, and where sums wait.

Every in-port has an adder. A word that arrives is combined at once with what is there of the sum it
belongs to: the node's own contribution if it is the first, else what the arrival before it made.
The result is in a register behind the adder one cycle later. From there an out-port or another
adder takes it, or a register behind that, or a memory, as words of other tables are taken off their
in-ports (see `table_plan`).

When that happens is told by `sum_timing`: by the cycle, or by the step. Skews cost nothing in
the nodes, for only the sequencer has to tell them later; but memories that are read with different
skews cannot be one.
"""

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from .node_plan import FOREVER, Bank, NodePlan
from .sum_timing import Arrival, ByCycle, ByStep, Sums
from .timing import MEMORY_AGE

__all__ = ["SumPlan", "plan_sums"]


@dataclass(frozen=True, eq=False)
class SumPlan(NodePlan):
    """The program of a node, the same for all.

    What feeds an out-port or an adder is numbered as in `TablePlan`, with the registers behind the
    adders in the place of the in-ports.

    Parameters
    ----------
    by_waves : bool
        Whether the whole table is run for the first flit of each block, then for the second, ..;
        else all flits of a block move in each row.
    flits : int
        Flits of a block.
    period : int
        Cycles from one row to the next, at least `flits` unless by waves.
    skew : ndarray of int, shape (ports,)
        By how many cycles words leave later by each out-port.
    leaves : ndarray of int, shape (table steps, ports)
        The cycle, counted from the first row, in which the first flit is on the link that leaves by
        a port in a step of the table; -1 for none.
    delayed : tuple of int
        The adders with a second register.
    banks, own : tuple of Bank
        Memories for results, and for the node's own contributions.
    select : ndarray of int, shape (rows, ports)
        What feeds each out-port, -1 for nothing.
    operand : ndarray of int, shape (rows, ports)
        What is added to what arrives at each in-port, -1 where nothing arrives; `identity` for
        what is only passed on.
    bank, slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a node keeps complete sums, by its offset from their owner.
    own_bank, own_slot : ndarray of int, shape (nodes, chunks)
        Where a node keeps its contributions, by the offset to their owner.
    """

    by_waves: bool
    flits: int
    period: int
    skew: np.ndarray
    leaves: np.ndarray
    delayed: tuple[int, ...]
    banks: tuple[Bank, ...]
    own: tuple[Bank, ...]
    select: np.ndarray
    operand: np.ndarray
    bank: np.ndarray
    slot: np.ndarray
    own_bank: np.ndarray
    own_slot: np.ndarray

    @property
    def result_bank(self):
        """Where a node keeps results, numbered over `banks` and `own`."""
        return self.bank

    @property
    def last(self):
        """The cycle in which the first flit of the last word is on its link."""
        return int(self.leaves.max())

    @property
    def tail(self):
        """Cycles by which the last word is written later than the last row ends."""
        idle = 0 if self.by_waves else self.period - self.flits
        return 0 if self.by_waves else max(int(self.skew.max()) + 1 - idle, 0)

    @property
    def duration(self):
        """Cycles of all rows and of the tail."""
        return self.steps * self.period * (self.flits if self.by_waves else 1) + self.tail

    @property
    def identity(self):
        """The number of the word that changes nothing."""
        return self.ports + len(self.delayed) + len(self.banks) + len(self.own)


def plan_sums(table, flits):
    """Plan what a node does.

    Parameters
    ----------
    table : Table
        A reduction.
    flits : int
        Flits of a block.

    Returns
    -------
    SumPlan
        The one that takes fewer cycles: by the cycle, or by the step.
    """
    sums = Sums(table)
    timings: list[ByCycle | ByStep] = [ByCycle(sums, table.topology)]
    if flits > 1:
        timings.append(ByStep(sums, table, flits))
    plans = [_Planner(table, sums, timing, flits).plan() for timing in timings]
    return min(plans, key=lambda plan: plan.duration)


class _Planner:
    """Plans one timing of a table.

    A *consumer* is an out-port ``("out", g)`` or an adder ``("add", q)``. It takes a word a cycle
    at most, so that a memory of its own is always free for it; memories of several consumers are
    made one where they never are read at once.
    """

    def __init__(self, table, sums, timing, flits):
        self.table, self.sums, self.timing, self.flits = table, sums, timing, flits
        self.ports = table.topology.ports
        self.opposite = table.topology.opposite.tolist()
        self.taken: dict = defaultdict(dict)  # what each consumer takes in which step
        self.last_use: dict = defaultdict(int)
        self._follow()

    def _arrives(self, arrival):
        """The cycle in which a word is at an in-port, and at the adder behind it."""
        return self.timing.time(arrival.step, arrival.port)

    def _arc(self, consumer):
        """The out-port of the link in front of or behind a consumer."""
        kind, port = consumer
        return port if kind == "out" else self.opposite[port]

    def _takes(self, consumer, step):
        """The cycle in which a consumer takes a word."""
        return self.timing.time(step, self._arc(consumer)) - (consumer[0] == "out")

    def _read(self, consumer, step):
        """The row and skew in which a consumer reads a memory."""
        return self.timing.row(step, self._arc(consumer), int(consumer[0] == "add"))

    def _follow(self):
        """Find out what every consumer takes when."""
        results: dict = {}
        for key, arrivals in self.sums.joins.items():
            before: Arrival | tuple = ("own", key)
            for arrival in sorted(arrivals, key=self._arrives):
                self._take(("add", self.opposite[arrival.port]), arrival.step, before)
                before = arrival
            results[key] = before
        for arrival in self.sums.passes.values():
            self._take(("add", self.opposite[arrival.port]), arrival.step, ("identity",))
        self.complete: dict = {key: word for key, word in results.items() if key[0] == 0}
        self.complete |= self.sums.passes
        for step, port, key, partial, _ in self.sums.leaves:
            found = results if partial else self.complete
            self._take(("out", port), step, found.get(key, ("own", key)))

    def _take(self, consumer, step, word):
        self.taken[consumer][step] = word
        if isinstance(word, Arrival):
            self.last_use[word] = max(self.last_use[word], self._takes(consumer, step))

    def plan(self):
        """The plan."""
        delayed, waiting = self._bypass()
        banks, place = self._results(waiting)
        own, own_bank, own_slot = self._own()
        select, operand = self._sources(delayed, len(banks), len(own))
        bank, slot = np.full((2, *own_bank.shape), -1)
        for (offset, chunk), word in self.complete.items():
            bank[offset, chunk], slot[offset, chunk] = place[word]
        if self.table.collective.personal:
            bank, slot = bank[:1], slot[:1]
        return SumPlan(
            by_waves=isinstance(self.timing, ByCycle),
            flits=self.flits,
            period=self.timing.period,
            skew=self.timing.skew,
            leaves=self._leaves(),
            delayed=delayed,
            banks=banks,
            own=own,
            select=select,
            operand=operand,
            bank=bank,
            slot=slot,
            own_bank=own_bank,
            own_slot=own_slot,
        )

    def _leaves(self):
        leaves = np.full(self.table.offset.shape, -1)
        for step, port, *_ in self.sums.leaves:
            leaves[step, port] = self.timing.time(step, port)
        return leaves

    def _sources(self, delayed, banks, own):
        """What feeds each out-port and adder in each row, as numbers."""
        first = self.ports + len(delayed)
        number: dict[tuple, int] = {("sum", q): q for q in range(self.ports)}
        number |= {("delay", q): self.ports + k for k, q in enumerate(delayed)}
        number |= {("bank", consumer, q): first + k for (consumer, q), k in self.bank_of.items()}
        number |= {("own", consumer): first + banks + k for consumer, k in self.own_of.items()}
        number |= {("identity",): first + banks + own}
        select, operand = np.full((2, self.timing.rows, self.ports), -1)
        for (consumer, step), source in self.source.items():
            row, _ = self.timing.row(step, self._arc(consumer))
            (select if consumer[0] == "out" else operand)[row, consumer[1]] = number[source]
        return select, operand

    def _bypass(self):
        """Choose what does not wait in a memory; the rest by in-port and consumer."""
        self.source: dict = {}
        waiting: dict = defaultdict(lambda: defaultdict(dict))
        delayed = set()
        for consumer, words in self.taken.items():
            for step, word in words.items():
                if not isinstance(word, Arrival):
                    source = ("own", consumer) if word[0] == "own" else word
                    self.source[consumer, step] = source
                    continue
                q = self.opposite[word.port]
                age = self._takes(consumer, step) - self._arrives(word)
                if age >= MEMORY_AGE:
                    waiting[q][consumer][step] = word
                    self.source[consumer, step] = ("bank", consumer, q)
                else:
                    self.source[consumer, step] = ("sum" if age == 1 else "delay", q)
                    delayed |= {q} if age == 2 else set()
        return tuple(sorted(delayed)), waiting

    def _merge(self, taken):
        """Put consumers together that can share a memory.

        Parameters
        ----------
        taken : dict
            What each consumer reads in each step.

        Returns
        -------
        list of (list of consumers, dict of row to word, skew)
        """
        groups: list[tuple[list, dict, int]] = []
        for consumer, words in sorted(taken.items(), key=lambda item: -len(item[1])):
            rows = {self._read(consumer, step)[0]: word for step, word in words.items()}
            skew = self._read(consumer, next(iter(words)))[1]
            for members, there, other in groups:
                clash = any(there.get(row, word) != word for row, word in rows.items())
                if skew == other and not clash:
                    members.append(consumer)
                    there |= rows
                    break
            else:
                groups.append(([consumer], rows, skew))
        return groups

    def _results(self, waiting):
        """Memories for results.

        Returns
        -------
        banks : tuple of Bank
        place : dict
            Bank and slot of each complete sum.
        """
        kept: dict = defaultdict(set)
        for word in self.complete.values():
            kept[self.opposite[word.port]].add(word)
        self.bank_of: dict = {}
        banks: list[Bank] = []
        place: dict = {}
        for q in range(self.ports):
            groups = self._merge(waiting[q]) or [([], {}, 0)] * bool(kept[q])
            for number, (members, rows, skew) in enumerate(groups):
                self.bank_of |= {(consumer, q): len(banks) for consumer in members}
                stay = set() if number else kept[q]
                slots, bank = self._fill(q, rows, skew, stay)
                place |= {word: (len(banks), slots[word]) for word in stay}
                banks.append(bank)
        return tuple(banks), place

    def _fill(self, q, rows, skew, stay):
        """Give each word of a memory a place, which is used again once the word is not needed."""
        write, read = np.full((2, self.timing.rows), -1)
        slots: dict = {}
        free: list[int] = []
        leaving: list[tuple[int, int]] = []
        for word in sorted({*rows.values(), *stay}, key=self._arrives):
            # A word may be written just after the last read of another in its place.
            while leaving and leaving[0][0] <= self._arrives(word) + 1:
                heappush(free, heappop(leaving)[1])
            slots[word] = heappop(free) if free else len(leaving)
            end = FOREVER if word in stay else self.last_use[word]
            heappush(leaving, (end, slots[word]))
            write[self.timing.row(word.step, word.port)[0]] = slots[word]
        for row, word in rows.items():
            read[row] = slots[word]
        return slots, Bank(q, max(slots.values(), default=-1) + 1, write, read, skew)

    def _own(self):
        """Memories for what a node contributes."""
        topology, chunks = self.table.topology, 1 + int(self.table.chunk.max())
        taken: dict = defaultdict(dict)
        for consumer, words in self.taken.items():
            for step, word in words.items():
                if not isinstance(word, Arrival) and word[0] == "own":
                    taken[consumer][step] = word[1]
        bank, slot = np.full((2, topology.nodes, chunks), -1)
        self.own_of: dict = {}
        own: list[Bank] = []
        for members, rows, skew in self._merge(taken):
            self.own_of |= dict.fromkeys(members, len(own))
            write, read = np.full((2, self.timing.rows), -1)
            for place, (row, (offset, chunk)) in enumerate(sorted(rows.items())):
                goal = int(topology.subtract(0, offset))
                bank[goal, chunk], slot[goal, chunk] = len(own), place
                read[row] = place
            own.append(Bank(-1, len(rows), write, read, skew))
        return tuple(own), bank, slot
