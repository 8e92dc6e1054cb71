"""The plan of a table: which memory of a node keeps what, and what feeds each out-port.

Plans of tables of blocks and of sums have memories and settings by row in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..topology import IntArray

__all__ = ["FOREVER", "NodePlan", "PlannedMemory", "TablePlan"]

#: Step until which a word is kept that the host may ask for.
FOREVER = 1 << 60


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


class NodePlan(ABC):
    """What a node does that carries out a table, the same for all nodes.

    Attributes
    ----------
    receive_memories, send_memories : tuple of PlannedMemory
        Memories of what arrives, and of what the host writes.
    select : ndarray of int, shape (rows, ports)
        What feeds each out-port, -1 for nothing.
    slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where in its memory a block lies that is delivered.
    send_memory, send_slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a node keeps what it sends.
    """

    receive_memories: tuple[PlannedMemory, ...]
    send_memories: tuple[PlannedMemory, ...]
    select: IntArray
    slot: IntArray
    send_memory: IntArray
    send_slot: IntArray

    @property
    def memories(self) -> tuple[PlannedMemory, ...]:
        """All memories, those of what arrives first."""
        return self.receive_memories + self.send_memories

    @property
    def first_result(self) -> int:
        """The number of the result of the operator behind the first in-port, if there are any."""
        return self.ports

    @property
    @abstractmethod
    def result_memory(self) -> IntArray:
        """The number among `memories` of that in which a node keeps what is delivered to it."""

    @property
    def steps(self) -> int:
        """Number of rows: of steps, or of cycles."""
        return len(self.select)

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return int(self.select.shape[1])


@dataclass(frozen=True, eq=False)
class TablePlan(NodePlan):
    """What a node does, the same for all.

    Parameters
    ----------
    by_waves : bool
        Whether the whole table is run for the first flit of each block, then for the second, ..;
        else all flits of a block move in each step.
    flits : int
        Flits of a block.
    delayed : tuple of int
        The in-ports with a register behind them.
    receive_memories : tuple of PlannedMemory
        What arrives is kept in the first `ports` of them, one for each in-port; those after that
        keep words that wait.
    send_memories : tuple of PlannedMemory
        What a node sends.
    select : ndarray of int, shape (steps, ports)
        What feeds each out-port, -1 for nothing: an in-port; numbered after those, a register of
        `delayed`; after those, one of `memories`.
    memory, slot : ndarray of int, shape (nodes, chunks)
        Where a node keeps what is delivered to it, by its offset from the origin; the memory of
        what is its own is counted in `send_memories`.
    send_memory, send_slot : ndarray of int, shape (destinations, chunks)
        Where a node keeps what it sends, by the offset to its destination if it has one.
    """

    by_waves: bool
    flits: int
    delayed: tuple[int, ...]
    receive_memories: tuple[PlannedMemory, ...]
    send_memories: tuple[PlannedMemory, ...]
    select: IntArray
    memory: IntArray
    slot: IntArray
    send_memory: IntArray
    send_slot: IntArray

    @property
    def period(self) -> int:
        """Cycles of a step."""
        return 1 if self.by_waves else self.flits

    @property
    def result_memory(self) -> IntArray:
        """The number among `memories` of that in which a node keeps what is delivered to it."""
        own = np.arange(len(self.memory)) == 0
        return self.memory + np.where(own[:, None], len(self.receive_memories), 0)

    @property
    def cost(self) -> tuple[int, int, int]:
        """What to keep small: look-up tables a bit, memories that are read, registers."""
        inputs = [len(np.unique(column[column >= 0])) for column in self.select.T]
        read = sum(bool((memory.read >= 0).any()) for memory in self.receive_memories)
        return sum(-(-count // 2) for count in inputs if count > 1), read, len(self.delayed)
