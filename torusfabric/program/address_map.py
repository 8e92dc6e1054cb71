"""Address maps: where each block lies in a node's memories.

The address of flit f of a block is ``base + f * pitch``. Base and memory follow from the node, the
*part* (the origin, destination or owner, or 0 where there is only one) and the chunk; the pitch is
a constant of the memory. Nodes and parts are known by their positions in their group. A map is
structured as the program is, and never lists nodes times blocks where the structure says the same
in less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from ..topology import BoolArray, CayleyGraph, IntArray, cayley

if TYPE_CHECKING:
    from ..topology import Topology

__all__ = ["AddressMap", "CycleMap", "DirectMap", "Route", "RouteMap", "TableMap"]

#: Memories and bases.
Located: TypeAlias = tuple[IntArray, IntArray]

#: A table of at most so many rows is addressed by node and part; it needs no subtraction.
DIRECT_ROWS = 4096


@dataclass(frozen=True, eq=False, kw_only=True)
class AddressMap(ABC):
    """Where blocks lie in the memories of nodes.

    Parameters
    ----------
    numbers : ndarray of int, optional
        Where several modes share memories, the common number of each memory of this map.

    Examples
    --------
    >>> from dataclasses import replace
    >>> alone = DirectMap(0, chunks=1, flits=4)
    >>> memory, base = replace(alone, numbers=np.array([5])).locate(0, [1, 2], 0)
    >>> memory.tolist(), base.tolist()
    ([5, 5], [4, 8])
    """

    numbers: IntArray | None = None

    def locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        """Memories and bases, elementwise; the base is -1 where a block never lies."""
        memory, base = self._locate(nodes, part, chunk)
        return memory if self.numbers is None else self.numbers[memory], base

    def memories(self, nodes: IntArray) -> set[int]:
        """The memories in which any block of any of these nodes lies."""
        found = self._memories(nodes)
        return found if self.numbers is None else {int(self.numbers[memory]) for memory in found}

    @abstractmethod
    def _locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        """The same as `locate`, of memories by their own numbers."""

    @abstractmethod
    def _memories(self, nodes: IntArray) -> set[int]:
        """The same as `memories`, by their own numbers."""

    @property
    def nodes_alike(self) -> bool:
        """Whether these are the same, whichever nodes."""
        return False


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

    Examples
    --------
    Chunk 1 of part 2, with two chunks of four flits a part, is the sixth block of memory 3.

    >>> memory, base = DirectMap(3, chunks=2, flits=4).locate(0, 2, 1)
    >>> int(memory), int(base)
    (3, 20)
    """

    memory: int
    chunks: int
    flits: int
    by_chunk: bool = False
    base: int = 0

    @override
    def _locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        if self.by_chunk:
            return self.memory + chunk, np.full_like(part, self.base) + part * self.flits
        block = part * self.chunks + chunk
        return np.full_like(block, self.memory), self.base + block * self.flits

    @override
    def _memories(self, nodes: IntArray) -> set[int]:
        return set(range(self.memory, self.memory + (self.chunks if self.by_chunk else 1)))

    @property
    @override
    def nodes_alike(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class TableMap(AddressMap):
    """A table by node, part and chunk, as small as the symmetry of the program allows.

    Parameters
    ----------
    memory, base : ndarray of int, shape (rows, parts, chunks)
        A row for each node, or for each variant of nodes. An axis of length 1 is one that does not
        matter.
    topology : Topology, optional
        Where parts are known by their offsets from the node, the topology of the group; else they
        are known by their numbers.
    ahead : bool
        Whether these are offsets of the part from the node, rather than the other way round.
    variant_of : ndarray of int, shape (nodes,), optional
        The row of each node; by default its number.

    Examples
    --------
    On a ring of three, what is at offset 1 from its origin lies in memory 1: for node 0, what comes
    from node 2.

    >>> from torusfabric.topology import Torus
    >>> memory = np.array([[[0], [1], [2]]])
    >>> offsets = TableMap(memory, 0 * memory, Torus(3))
    >>> offsets.locate([0, 0, 0], [0, 1, 2], 0)[0].tolist()
    [0, 2, 1]

    Two nodes and two parts; node 1 never holds part 0.

    >>> base = np.array([[[0], [4]], [[-1], [0]]])
    >>> TableMap(0 * base, base).locate([[0], [1]], [[0, 1]], 0)[1].tolist()
    [[0, 4], [-1, 0]]
    """

    memory: IntArray
    base: IntArray
    topology: Topology | None = None
    ahead: bool = False
    variant_of: IntArray | None = None

    @classmethod
    def of_nodes(
        cls, memory: IntArray, base: IntArray, topology: Topology, variant_of: IntArray
    ) -> TableMap:
        """A table by node and part.

        A large table has a row for each variant and offset, if all nodes of a variant store what
        has the same offset from them at the same address.
        """
        table, nodes = cls(memory, base), np.arange(len(variant_of))[:, None]
        small = memory.size <= DIRECT_ROWS or memory.shape[1] < len(nodes)
        if small or not isinstance(topology, CayleyGraph):
            return table
        part = topology.add(nodes, nodes.T)
        first = np.unique(variant_of, return_index=True)[1]
        memories, bases = memory[nodes, part], base[nodes, part]
        if any((values[first][variant_of] != values).any() for values in (memories, bases)):
            return table
        return cls(memories[first], bases[first], topology, ahead=True, variant_of=variant_of)

    @override
    def _locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        rows, parts, _ = self.memory.shape
        if parts == 1:
            part = 0 * part
        elif self.topology is not None:
            pair = (part, nodes) if self.ahead else (nodes, part)
            part = cayley(self.topology).subtract(*pair)
        row = self._rows_of(nodes) if rows > 1 else 0 * nodes
        return self.memory[row, part, chunk], self.base[row, part, chunk]

    @override
    def _memories(self, nodes: IntArray) -> set[int]:
        rows = np.unique(self._rows_of(nodes)) if len(self.memory) > 1 else [0]
        return set(np.unique(self.memory[rows][self.base[rows] >= 0]).tolist())

    def _rows_of(self, nodes: IntArray) -> IntArray:
        return nodes if self.variant_of is None else self.variant_of[nodes]

    @property
    @override
    def nodes_alike(self) -> bool:
        return len(self.memory) == 1


@dataclass(frozen=True, eq=False)
class Route:
    """One way by which blocks of one chunk reach nodes.

    Parameters
    ----------
    length : int
        Length of the flow, or 0 where it does not close.
    position : ndarray of int, shape (nodes,)
        Index of a node's in-arc on the flow, -1 for none.
    port : ndarray of int, shape (nodes,)
        The in-port of that arc.
    entry : ndarray of int, shape (nodes,)
        Index of the arc by which an origin injects the chunk, -1 for none.
    tail : ndarray of int, shape (nodes,)
        Steps after which a node's in-arc carries the flow; before, it carries what was injected
        on the way from the flow to the node.
    """

    chunk: int
    length: int
    position: IntArray
    port: IntArray
    entry: IntArray
    tail: IntArray

    def step(self, nodes: IntArray, origin: IntArray) -> IntArray:
        """The step in which blocks of its chunk arrive; 0 where they never do on this route."""
        position, entry = (each.astype(np.int32) for each in
                           (self.position[nodes], self.entry[origin]))  # fmt: skip
        step: IntArray = position - entry
        if self.length:
            step %= self.length
        step += 1
        step[(step <= self.tail[nodes].astype(np.int32)) | (position < 0) | (entry < 0)] = 0
        return step


def _columns(there: BoolArray, given: IntArray) -> IntArray | slice:
    """Where something is along the last axis, if what is given depends on no other; else all."""
    if given.size > given.shape[-1]:
        return slice(None)
    return np.flatnonzero(there.reshape(-1, there.shape[-1])[0])


@dataclass(frozen=True, eq=False)
class RouteMap(AddressMap):
    """By the positions of nodes and origins on the routes of an oblivious schedule.

    What arrives in step t is stored at base ``(t - 1) * apart`` of the memory of its in-port; the
    step is a difference of two positions (see `Route`). What is a node's own lies in its send
    memories.

    Parameters
    ----------
    own : int
        The memory of the node's own chunk 0.
    apart : int
        From the address of a step to that of the next: 1 where steps come flit by flit.

    Examples
    --------
    On a Hamiltonian cycle of nine nodes in two directions, a block takes four steps at most, so
    that it lies at 0 to 3 of the memory of the in-port it arrived by.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> routes = tf.compile(schedule, flits=2).form.receive_map
    >>> memory, base = routes.locate(0, np.arange(9), 0)
    >>> int(base.max()), int(memory[0])
    (3, 4)
    """

    routes: tuple[Route, ...]
    steps: int
    own: int
    apart: int = 1

    @override
    def _locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        whole = np.broadcast_shapes(*map(np.shape, (nodes, part, chunk)))
        nodes, part, chunk = map(np.atleast_1d, (nodes, part, chunk))
        mine = np.broadcast_to(nodes == part, whole or (1,))
        memory = np.where(mine, self.own + chunk, 0)
        base = np.where(mine, 0, -1)
        for route in self.routes:
            columns = _columns(np.broadcast_to(chunk == route.chunk, mine.shape), chunk)
            node, origin = (each if each.shape[-1] == 1 else each[..., columns]
                            for each in (nodes, part))  # fmt: skip
            known = base[..., columns]
            step = route.step(node, origin)
            hit = (known < 0) & (step >= 1) & (step <= self.steps)
            if not isinstance(columns, np.ndarray):
                hit &= chunk == route.chunk
            places = np.where(hit, route.port[node], memory[..., columns])
            memory[..., columns] = places
            base[..., columns] = np.where(hit, (step - 1) * self.apart, known)
        return memory.reshape(whole), base.reshape(whole)

    @override
    def _memories(self, nodes: IntArray) -> set[int]:
        chunks = {route.chunk for route in self.routes}
        found = {self.own + chunk for chunk in chunks}
        for route in self.routes:
            found |= set(np.unique(route.port[nodes][route.position[nodes] >= 0]).tolist())
        return found


@dataclass(frozen=True, eq=False)
class CycleMap(AddressMap):
    """By how far behind a node its parts are on the cycles of a pattern of sums.

    Every chunk goes around one cycle through all nodes, along which parts lie one after another.

    Parameters
    ----------
    index, memory : ndarray of int, shape (cycles, nodes)
        Where each node is on each cycle, and the memory of what comes by there.
    cycle, first, stride : ndarray of int, shape (chunks,)
        Of each chunk its cycle, the base of the first part, and the distance to that of the next.
    lead : int
        How far behind a node the first part is.

    Examples
    --------
    On a cycle of nine nodes, the sum of the node behind comes by first, and the node's own last.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(9), "reduce-scatter", algorithm="hamiltonian")
    >>> mapped = tf.compile(schedule, flits=4).form.send_map
    >>> mapped.index[0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8]
    >>> memory, base = mapped.locate(4, [3, 2, 4], 0)
    >>> memory.tolist(), base.tolist()
    ([3, 3, 3], [0, 2, 16])
    """

    index: IntArray
    memory: IntArray
    cycle: IntArray
    first: IntArray
    stride: IntArray
    lead: int

    @override
    def _locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        nodes, part, chunk = np.broadcast_arrays(nodes, part, chunk)
        cycle = self.cycle[chunk]
        behind = self.index[cycle, nodes] - self.index[cycle, part] - self.lead
        base = self.first[chunk] + self.stride[chunk] * (behind % self.index.shape[1])
        return self.memory[cycle, nodes], base

    @override
    def _memories(self, nodes: IntArray) -> set[int]:
        return set(np.unique(self.memory[:, nodes]).tolist())
