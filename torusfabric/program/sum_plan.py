"""The plan of a table of sums: what a node adds to what, and which memory keeps what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..topology import IntArray
from .node_plan import NodePlan, PlannedMemory

__all__ = ["SumPlan"]


@dataclass(frozen=True, eq=False)
class SumPlan(NodePlan):
    """What a node does, the same for all.

    What feeds an out-port or an adder is numbered: in-ports, the registers behind those of
    `passed`, the results of adders, the registers behind those of `delayed`, memories, and the word
    that changes nothing.

    Parameters
    ----------
    by_waves : bool
        Whether the whole table is run for the first flit of each block, then for the second, ..;
        else all flits of a block move in each row.
    flits : int
        Flits of a block.
    period : int
        Cycles from one row to the next, at least `flits` unless by waves; where the length is
        chosen at the start of a run, the least.
    skew : ndarray of int, shape (ports,)
        By how many cycles words leave later by each out-port.
    departure : ndarray of int, shape (table steps, ports)
        The row in which what leaves by a port in a step of the table does so; -1 for nothing.
    passed : tuple of int
        The in-ports with a register behind them.
    delayed : tuple of int
        The adders with a second register.
    receive_memories, send_memories : tuple of PlannedMemory
        Memories for results, and for the node's own contributions.
    select : ndarray of int, shape (rows, ports)
        What feeds each out-port, -1 for nothing.
    operand : ndarray of int, shape (rows, ports)
        What is added to what arrives at each in-port, -1 where nothing arrives; `identity` for
        what is only passed on.
    memory, slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a node keeps complete sums, by its offset from their owner.
    send_memory, send_slot : ndarray of int, shape (nodes, chunks)
        Where a node keeps its contributions, by the offset to their owner.
    latency : int
        Cycles that the hardware of operators takes by itself.
    padded : bool
        Whether shorter blocks, too, are sent as such of `flits` flits.
    """

    by_waves: bool
    flits: int
    period: int
    skew: IntArray
    departure: IntArray
    passed: tuple[int, ...]
    delayed: tuple[int, ...]
    receive_memories: tuple[PlannedMemory, ...]
    send_memories: tuple[PlannedMemory, ...]
    select: IntArray
    operand: IntArray
    memory: IntArray
    slot: IntArray
    send_memory: IntArray
    send_slot: IntArray
    latency: int = 0
    padded: bool = False

    @property
    def result_memory(self) -> IntArray:
        """The number among `memories` of that in which a node keeps what is delivered to it."""
        return self.memory

    @property
    def tail(self) -> int:
        """Cycles by which the last word is written later than the last row ends."""
        if self.by_waves:
            return self.latency
        # Where lengths are chosen, the period is that of short blocks: long ones follow at once.
        idle = max(self.period - self.flits, 0)
        return max(int(self.skew.max()) + 1 + self.latency - idle, 0)

    @property
    def duration(self) -> int:
        """Cycles of all rows and of the tail."""
        return self.steps * self.period * (self.flits if self.by_waves else 1) + self.tail

    def does_the_same(self, other: SumPlan) -> bool:
        """Whether another plan differs in nothing but its period."""
        mine, others = (
            [
                plan.select, plan.operand, plan.memory, plan.slot, plan.send_memory, plan.send_slot,
                *(array for memory in plan.memories for array in (memory.read, memory.write)),
            ]
            for plan in (self, other)
        )  # fmt: skip
        return (
            (self.passed, self.delayed) == (other.passed, other.delayed)
            and len(mine) == len(others)
            and all(map(np.array_equal, mine, others))
        )

    @property
    def first_result(self) -> int:
        """The number of the result of the first adder."""
        return self.ports + len(self.passed)

    @property
    def first_memory(self) -> int:
        """The number of the first memory."""
        return 2 * self.ports + len(self.passed) + len(self.delayed)

    @property
    def identity(self) -> int:
        """The number of the word that changes nothing."""
        return self.first_memory + len(self.memories)
