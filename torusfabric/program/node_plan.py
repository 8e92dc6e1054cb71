"""The plan of a table: which memory of a node keeps what, and what feeds out-ports and operators.

Blocks and sums are planned alike: where nothing is combined there are no operands and no skews.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..topology import IntArray
from .fields import Source, Sources, Stage
from .timing import COMBINE

__all__ = ["FOREVER", "NodePlan", "PlannedMemory", "number_sources", "slots_of"]

#: Step until which a word is kept that the host may ask for.
FOREVER = 1 << 60

Word = TypeVar("Word", bound=Hashable)


class PlannedMemory(NamedTuple):
    """A memory of a node.

    Parameters
    ----------
    port : int
        The in-port that writes it, -1 for one that the host writes.
    depth : int
        Blocks that it holds.
    write, read : ndarray of int, shape (rows,)
        The slot written and read in each row, -1 for none.
    skew : int
        By how many cycles it is read later than words are that leave in the same row.
    sums : bool
        Whether it keeps results of the operator behind its in-port.
    """

    port: int
    depth: int
    write: IntArray
    read: IntArray
    skew: int = 0
    sums: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class NodePlan:
    """What a node does that carries out a table, the same for all nodes.

    Parameters
    ----------
    by_waves : bool
        Whether the whole table is run for the first flit of each block, then for the second, ..;
        else all flits of a block move in each row.
    flits : int
        Flits of a block.
    sources : Sources
        What out-ports and operators select from.
    readers : tuple of int
        The memory that each injection port reads.
    receive_memories, send_memories : tuple of PlannedMemory
        Memories of what arrives or is combined, and of what the host writes.
    select : ndarray of int, shape (rows, ports)
        What feeds each out-port, -1 for nothing.
    operand : ndarray of int, shape (rows, ports), or None
        What is combined with what arrives at each in-port, -1 where nothing arrives.
    memory, slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a node keeps what is delivered to it, by its offset from the origin or owner.
    send_memory, send_slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a node keeps what it sends, by the offset to its destination or owner if it has one;
        memories are counted among `send_memories`.
    departure : ndarray of int, shape (table steps, ports)
        The row in which what leaves by a port in a step of the table does so; -1 for nothing.
    period : int
        The least cycles of a row; of sums at least `flits` unless by waves; where the length is
        chosen at the start of a run, the least of any.
    skew : tuple of int
        By how many cycles words leave later by each out-port; none where nothing is combined.
    padded : bool
        Whether shorter blocks, too, are sent as such of `flits` flits.
    """

    by_waves: bool
    flits: int
    sources: Sources
    readers: tuple[int, ...]
    receive_memories: tuple[PlannedMemory, ...]
    send_memories: tuple[PlannedMemory, ...]
    select: IntArray
    operand: IntArray | None = None
    memory: IntArray
    slot: IntArray
    send_memory: IntArray
    send_slot: IntArray
    departure: IntArray
    period: int = 1
    skew: tuple[int, ...] = ()
    padded: bool = False

    @property
    def memories(self) -> tuple[PlannedMemory, ...]:
        """All memories, those of what arrives first."""
        return self.receive_memories + self.send_memories

    @property
    def settings(self) -> tuple[IntArray, ...]:
        """What feeds out-ports, and what operators combine if there are any."""
        return (self.select,) if self.operand is None else (self.select, self.operand)

    @property
    def steps(self) -> int:
        """Number of rows: of steps, or of cycles."""
        return len(self.select)

    @property
    def cost(self) -> tuple[int, int, int]:
        """What to keep small: look-up tables a bit, memories that are read, registers."""
        inputs = [len(np.unique(column[column >= 0])) for column in self.select.T]
        read = sum(bool((memory.read >= 0).any()) for memory in self.receive_memories)
        tables = sum(-(-count // 2) for count in inputs if count > 1)
        return tables, read, len(self.sources.delayed)

    @property
    def rows_cycles(self) -> int:
        """Cycles of all rows."""
        each = self.flits if self.by_waves else max(self.period, self.flits)
        return self.steps * each

    @property
    def duration(self) -> int:
        """Cycles of all rows of sums, and by which the last word is written later."""
        if self.by_waves:
            return self.steps * self.period * self.flits + self.sources.latency
        # Where lengths are chosen, the period is that of short blocks: long ones follow at once.
        idle = max(self.period - self.flits, 0)
        return self.steps * self.period + max(
            max(self.skew) + COMBINE + self.sources.latency - idle, 0
        )

    def does_the_same(self, other: NodePlan) -> bool:
        """Whether another plan of sums differs in nothing but its period."""
        mine, others = (
            [
                *plan.settings, plan.memory, plan.slot, plan.send_memory, plan.send_slot,
                *(array for memory in plan.memories for array in (memory.read, memory.write)),
            ]
            for plan in (self, other)
        )  # fmt: skip
        return self.sources == other.sources and all(map(np.array_equal, mine, others))


def number_sources(
    ports: int, chosen: Collection[Source], memories: Mapping[Any, int], **others: Any
) -> tuple[Sources, tuple[int, ...], dict[Source, int]]:
    """The sources that are chosen, the memory that each injection port reads, and all numbers.

    Each memory that is read has an injection port. Sources name memories, each of some number;
    others are what else is said of `Sources`.

    Examples
    --------
    >>> chosen = [(Stage.LATER, 2), (Stage.INJECTION, "own")]
    >>> sources, readers, number = number_sources(4, chosen, {"kept": 0, "own": 1})
    >>> sources.delayed, readers, [number[source] for source in chosen]
    ((2,), (1,), [4, 5])
    """
    named = {name: memories[name] for stage, name in chosen if stage is Stage.INJECTION}
    readers = tuple(sorted(set(named.values())))
    delayed, delayed_results = (
        tuple(sorted({port for at, port in chosen if at is stage}))
        for stage in (Stage.LATER, Stage.LATER_RESULT)
    )
    sources = Sources(
        ports,
        delayed,
        delayed_results=delayed_results,
        injections=tuple((k,) for k in range(len(readers))),
        **others,
    )
    number = {source: k for k, source in enumerate(sources.listed)}
    reader = {memory: sources.first_injection + k for k, memory in enumerate(readers)}
    number |= {(Stage.INJECTION, name): reader[memory] for name, memory in named.items()}
    return sources, readers, number


def slots_of(held: Iterable[tuple[Word, int, int]]) -> dict[Word, int]:
    """Give each word of a memory a slot, which is used again as soon as what it held has left.

    Parameters
    ----------
    held : iterable of (word, int, int)
        From when until when each is held, in the order in which they come.

    Examples
    --------
    >>> slots_of([("a", 0, 2), ("b", 1, 9), ("c", 2, 9)])
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
