"""Address maps: where each block lies in a node's memories.

The address of flit f of a block is ``base + f * pitch``. Base and memory follow from the node, the
*part* (the origin, destination or owner, or 0 where there is only one) and the chunk; the pitch is
a constant of the memory. A map is structured as the program is, and never lists nodes times blocks
where the structure says the same in less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .values import IntArray

if TYPE_CHECKING:
    from ..topology import Topology
    from .routes import Route

__all__ = ["AddressMap", "DirectMap", "NodeMap", "OffsetMap", "RouteMap"]


class AddressMap(ABC):
    """Where blocks lie in the memories of nodes."""

    @abstractmethod
    def locate(
        self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike
    ) -> tuple[IntArray, IntArray]:
        """Memories and bases, elementwise.

        Parameters
        ----------
        nodes, part, chunk : array of int
            Broadcast against each other.

        Returns
        -------
        memory, base : ndarray of int
            The base is -1 where a block never lies.
        """

    @abstractmethod
    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""


@dataclass(frozen=True, eq=False)
class DirectMap(AddressMap):
    """All parts one after another in one memory, or a memory for each chunk.

    Parameters
    ----------
    memory : int
        The memory, or that of chunk 0.
    chunks : int
        Of a part.
    flits : int
        Of a block.
    by_chunk : bool
        Whether each chunk has a memory of its own.
    base : int
        Where the first block begins.
    """

    memory: int
    chunks: int
    flits: int
    by_chunk: bool = False
    base: int = 0

    def locate(
        self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike
    ) -> tuple[IntArray, IntArray]:
        """Memories and bases, elementwise."""
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        if self.by_chunk:
            return self.memory + chunk, np.full_like(part, self.base) + part * self.flits
        block = part * self.chunks + chunk
        return np.full_like(block, self.memory), self.base + block * self.flits

    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""
        return set(range(self.memory, self.memory + (self.chunks if self.by_chunk else 1)))


@dataclass(frozen=True, eq=False)
class OffsetMap(AddressMap):
    """By the offset between the node and the part: the same table for all nodes.

    Parameters
    ----------
    topology : Topology
    memory, base : ndarray of int, shape (nodes, chunks) or (1, chunks)
        By offset and chunk; with one row the offset does not matter.
    ahead : bool
        Whether offsets are those of the part from the node, rather than the other way round.
    """

    topology: Topology
    memory: IntArray
    base: IntArray
    ahead: bool = False

    def locate(
        self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike
    ) -> tuple[IntArray, IntArray]:
        """Memories and bases, elementwise."""
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        if len(self.memory) == 1:
            return self.memory[0, chunk], self.base[0, chunk]
        pair = (part, nodes) if self.ahead else (nodes, part)
        offset = self.topology.subtract(*pair)
        return self.memory[offset, chunk], self.base[offset, chunk]

    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""
        return set(np.unique(self.memory[self.base >= 0]).tolist())


@dataclass(frozen=True, eq=False)
class NodeMap(AddressMap):
    """A table by node, part and chunk, for programs without symmetry.

    Parameters
    ----------
    memory, base : ndarray of int, shape (nodes, parts, chunks)
    variant_of : ndarray of int, shape (nodes,)
        Nodes of a variant store what has the same offset from them in the same place, if any
        regularity is there at all.
    """

    memory: IntArray
    base: IntArray
    variant_of: IntArray

    def locate(
        self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike
    ) -> tuple[IntArray, IntArray]:
        """Memories and bases, elementwise."""
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        return self.memory[nodes, part, chunk], self.base[nodes, part, chunk]

    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""
        return set(np.unique(self.memory[nodes][self.base[nodes] >= 0]).tolist())


@dataclass(frozen=True, eq=False)
class RouteMap(AddressMap):
    """By the positions of nodes and origins on the routes of an oblivious schedule.

    What arrives in step t is stored at base ``t - 1`` of the memory of its in-port; the step is a
    difference of two positions (see `Route`). What is a node's own lies in its send memories.

    Parameters
    ----------
    routes : tuple of Route
    steps : int
    own : int
        The memory of the node's own chunk 0.
    """

    routes: tuple[Route, ...]
    steps: int
    own: int

    def locate(
        self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike
    ) -> tuple[IntArray, IntArray]:
        """Memories and bases, elementwise."""
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        mine = nodes == part
        memory = np.where(mine, self.own + chunk, 0)
        base = np.where(mine, 0, -1)
        for route in self.routes:
            step = route.step(nodes, part, chunk)
            hit = (base < 0) & (step >= 1) & (step <= self.steps)
            memory = np.where(hit, route.port[nodes], memory)
            base = np.where(hit, step - 1, base)
        return memory, base

    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""
        chunks = {route.chunk for route in self.routes}
        found = {self.own + chunk for chunk in chunks}
        for route in self.routes:
            found |= set(np.unique(route.port[nodes][route.position[nodes] >= 0]).tolist())
        return found
