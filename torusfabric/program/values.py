"""The program representation: what every router and endpoint does, as plain data.

A run steps through the *rows* of a `Loop`. In a row no crossbar setting changes: each out-port
passes on what one of its sources brings, readers stream runs of words out of memories, and
memories store what arrives. Nodes that do the same are of one *variant*; all data are arrays with
an axis of rows and an axis of variants. How variants become modules and ROM contents is decided by
`torusfabric.rtl`, from these arrays alone.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..topology import IntArray

__all__ = ["IDLE", "MADE", "NEUTRAL", "Drain", "Loop", "Memory", "Order", "Reads", "Run", "Writes"]

#: Setting of an out-port whose value does not matter in a row.
IDLE = -1

#: Memory number of the word that changes nothing (see `Operator.identity`).
NEUTRAL = -2

#: In-port number of what a node makes itself: the word of its first injection port.
MADE = -1


class Order(enum.Enum):
    """How a loop runs through rows and flits."""

    #: All rows for the first flit of each block, then for the second, ..
    FLIT = "flit"
    #: All flits in each row.
    ROW = "row"


class Run(NamedTuple):
    """Consecutive blocks of a memory that a reader reads: so many from address ``base`` on."""

    memory: int
    base: int
    blocks: int


@dataclass(frozen=True)
class Memory:
    """A memory that every node has, though it may be of no words in some variants.

    Parameters
    ----------
    ports : tuple of int
        The in-ports whose words, or results, it stores, or `MADE`.
    own : bool
        Whether the host writes into it what the node sends.
    layout : int
        By which of the send maps, where modes have different ones; the host writes by all of them.
    """

    ports: tuple[int, ...]
    own: bool = False
    layout: int = 0


@dataclass(frozen=True, eq=False)
class Reads:
    """What a reader reads: runs of each row and variant, one after another.

    Row ``r`` of variant ``v`` has the runs ``start[r, v]`` to ``start[r, v] + count[r, v] - 1``.

    Parameters
    ----------
    start, count : ndarray of int, shape (rows, variants)
    memory, base, blocks : ndarray of int, shape (runs,)
        The memory (or `NEUTRAL`), the first address, and the number of blocks; in a loop by flits
        a block is read flit by flit, one each time the row comes.
    skew : int
        By how many cycles it reads later than others.
    """

    start: IntArray
    count: IntArray
    memory: IntArray
    base: IntArray
    blocks: IntArray
    skew: int = 0

    @classmethod
    def single(cls, memory: int, base: IntArray, skew: int = 0) -> Reads:
        """Reads of at most one block a row, always of the same memory.

        Parameters
        ----------
        memory : int
        base : ndarray of int, shape (rows, variants)
            First addresses, -1 where nothing is read.
        skew : int
        """
        there = base >= 0
        count = there.astype(np.int32)
        start = (np.cumsum(count).reshape(count.shape) - count).astype(np.int32)
        bases = base[there]
        return cls(start, count, np.full(len(bases), memory), bases, np.ones(len(bases), int), skew)

    @classmethod
    def of_lists(cls, runs: list[list[tuple[Run, ...]]]) -> Reads:
        """Reads from a list of rows of a list of variants of runs."""
        count = np.array([[len(cell) for cell in row] for row in runs], np.int32)
        start = (np.cumsum(count).reshape(count.shape) - count).astype(np.int32)
        flat = [run for row in runs for cell in row for run in cell]
        table = np.array(flat, np.int64).reshape(-1, 3)
        return cls(start, count, table[:, 0], table[:, 1], table[:, 2])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.count.shape[0])

    def at(self, row: int, variant: int) -> tuple[Run, ...]:
        """The runs of a row of a variant."""
        first = int(self.start[row, variant])
        chosen = slice(first, first + int(self.count[row, variant]))
        columns = (self.memory[chosen], self.base[chosen], self.blocks[chosen])
        return tuple(Run(*map(int, run)) for run in zip(*columns, strict=True))

    def runs_of(self, variant: int) -> IntArray:
        """The memories of the runs of a variant in all rows."""
        start, count = self.start[:, variant], self.count[:, variant]
        before = np.cumsum(count) - count
        return self.memory[np.repeat(start - before, count) + np.arange(int(count.sum()))]

    def total(self, row: int, variant: int) -> int:
        """Blocks read in a row of a variant."""
        first = int(self.start[row, variant])
        return int(self.blocks[first : first + int(self.count[row, variant])].sum())


@dataclass(frozen=True, eq=False)
class Writes:
    """What a memory stores of what arrives.

    Parameters
    ----------
    base : ndarray of int, shape (rows, variants)
        The address of the first word, -1 where nothing is stored.
    blocks : ndarray of int, shape (rows, variants)
        Blocks stored; in a loop by flits one, of which a flit each time the row comes.
    hops : ndarray of int, shape (rows, variants)
        Hops from the sender; 0 for what the node makes itself.
    port : ndarray of int, shape (rows, variants)
        The source whose word it stores, as `Loop` numbers them: that of an in-port, a result or an
        injection port; or `MADE`.
    skew : int
        By how many cycles it stores later than others.
    """

    base: IntArray
    blocks: IntArray
    hops: IntArray
    port: IntArray
    skew: int = 0


class Drain(NamedTuple):
    """Cycles of a run besides its start and its rows, by what they are spent on.

    Parameters
    ----------
    sequencer : int
        From the sequencer's ROM to what it sends.
    distribution : int
        Registers through which control reaches the nodes.
    hop : int
        The last hop, where hops are not counted with the rounds.
    write : int
        The write of the last word, where it is not counted with its round.
    operators : int
        By which the last sum is written later than a word that is only passed on.
    """

    sequencer: int = 0
    distribution: int = 0
    hop: int = 0
    write: int = 0
    operators: int = 0


@dataclass(frozen=True, eq=False)
class Loop:
    """The rows of a run, and in which order they are stepped through.

    Blocks have n flits, at most `flits`. In a loop by rows, blocks of a row follow one another; a
    row takes ``max(least, pause + blocks * n)`` cycles. In a loop by flits a row takes a cycle each
    time it comes, n times.

    Sources are numbered: in-ports, and the registers behind those of `delayed`; where operators
    stand behind in-ports, their results, and the registers behind those of `delayed_results`; then
    injection ports.

    Parameters
    ----------
    order : Order
    flits : int
        The most flits of a block; in a loop by rows also the distance of the addresses of blocks.
    pause, blocks : ndarray of int, shape (rows,)
        Of each row of a loop by rows: cycles besides those of its blocks, and how many blocks those
        who send most send. In a loop by flits 0 and 1.
    least : int
        The least cycles of a row in a loop by rows.
    draining : Drain
        What `drain` is made of.
    padded : bool
        Whether blocks of fewer flits are filled up, so that every run is as long.
    select : ndarray of int16, shape (rows, variants, ports)
        The source that feeds each out-port, or `IDLE`.
    select_skew : tuple of int
        By how many cycles each out-port changes later than others.
    delayed : tuple of int
        The in-ports with a second register.
    injections : tuple of (tuple of int)
        The readers whose words are combined for each injection port; mostly one.
    reads : tuple of Reads
        One a reader.
    writes : tuple of Writes
        One a memory, as far as the fabric writes any that come later.
    pitch : tuple of int
        Of each memory, from the address of a flit of a block to that of the next; 1 in those that
        are not listed.
    results : bool
        Whether every in-port has an operator behind it, used in this loop or not.
    operand : ndarray of int16, shape (rows, 1, ports), or None
        Where results are used: the source that is combined with what arrives, `identity` for what
        is only passed on, `IDLE` where nothing arrives.
    operand_skew : tuple of int
    delayed_results : tuple of int
        The in-ports whose results have a second register.
    latency : int
        Cycles that the hardware of operators takes by itself.
    injection_delay : int
        Cycles by which all words leave later for operators in front of injection ports.
    departure : ndarray of int, shape (steps of the schedule, ports)
        The row in which a sender reads what it sends by a port.
    departure_skew : tuple of int
        By how many cycles it reads later by each port.
    """

    order: Order
    flits: int
    pause: IntArray
    blocks: IntArray
    draining: Drain
    select: IntArray
    delayed: tuple[int, ...]
    injections: tuple[tuple[int, ...], ...]
    reads: tuple[Reads, ...]
    writes: tuple[Writes, ...]
    departure: IntArray
    departure_skew: tuple[int, ...] = ()
    least: int = 1
    select_skew: tuple[int, ...] = ()
    pitch: tuple[int, ...] = ()
    results: bool = False
    operand: IntArray | None = None
    operand_skew: tuple[int, ...] = ()
    delayed_results: tuple[int, ...] = ()
    latency: int = 0
    injection_delay: int = 0
    padded: bool = False

    @property
    def drain(self) -> int:
        """Cycles from the last slot of the last row to `done`."""
        return sum(self.draining)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.pause)

    @property
    def variants(self) -> int:
        """Number of variants."""
        return int(self.select.shape[1])

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return int(self.select.shape[2])

    @property
    def first_result(self) -> int:
        """The number of the result of the first in-port among the sources."""
        return self.ports + len(self.delayed)

    @property
    def first_injection(self) -> int:
        """The number of the first injection port among the sources."""
        results = self.ports + len(self.delayed_results) if self.results else 0
        return self.first_result + results

    @property
    def identity(self) -> int:
        """The operand that changes nothing."""
        return self.first_injection + len(self.injections)

    @property
    def combining(self) -> bool:
        """Whether what arrives passes the operators behind in-ports."""
        return self.operand is not None

    def pitch_of(self, memory: int) -> int:
        """From the address of a flit of a block to that of the next, in a memory."""
        return self.pitch[memory] if memory < len(self.pitch) else 1

    def carried(self, flits: int) -> int:
        """Flits of each block that are sent, for blocks of so many."""
        return self.flits if self.padded else flits

    def pauses(self, flits: int) -> int:
        """Cycles of all rows besides those of their flits, for blocks of so many."""
        if self.order is Order.FLIT:
            return 0
        moving = self.blocks * self.carried(flits)
        return int(np.maximum(self.least - moving, self.pause).sum())

    def duration(self, flits: int) -> IntArray:
        """Cycles of each row each time that it comes, for blocks of so many flits."""
        if self.order is Order.FLIT:
            return np.ones(self.rows, int)
        moving = self.blocks * self.carried(flits)
        cycles: IntArray = np.maximum(self.least, self.pause + moving)
        return cycles

    def slots(self, flits: int) -> int:
        """Cycles in which a row and a flit are presented, for blocks of so many flits."""
        times = self.carried(flits) if self.order is Order.FLIT else 1
        return int(self.duration(flits).sum()) * times

    @property
    def interval(self) -> int:
        """Cycles from a flit of a block to the next."""
        return self.rows if self.order is Order.FLIT else 1
