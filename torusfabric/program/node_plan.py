"""What the plans of tables of blocks and of sums have in common: memories, and settings by row."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from ..topology import IntArray

__all__ = ["FOREVER", "NodePlan", "PlannedMemory"]

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
    """

    port: int
    depth: int
    write: IntArray
    read: IntArray
    skew: int = 0


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
