"""Address maps: where each block lies in a node's memories.

The address of flit f of a block is ``base + f * pitch``. Memory and base follow from the node, the
*part* (the origin, destination or owner, or 0 where there is only one) and the chunk; the pitch is
a constant of the memory. Nodes and parts are known by their positions in their group.

A map is a table with three axes: the row of the node, the *key*, and the chunk. The key is the part
itself, or a difference of numbers of the node and of the part: the offset of one from the other, or
their distance along a cycle. An axis of length 1 is one that does not matter, so that a map is as
small as the symmetry of the program allows. Where a block can lie in one of several ways, as on
several cycles, a map has another one for the blocks that its own table lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..topology import CayleyGraph, IntArray, cayley

if TYPE_CHECKING:
    from ..topology import Topology

__all__ = ["AddressMap", "Coordinate", "count_both_ways"]

#: Memories and bases.
Located: TypeAlias = tuple[IntArray, IntArray]

#: A table of at most so many rows is addressed by node and part; it needs no subtraction.
DIRECT_ROWS = 4096


class Coordinate(NamedTuple):
    """A coordinate of keys: ``(at[node, chunk] - of[part, chunk]) mod modulus``.

    Parameters
    ----------
    at, of : ndarray of int, shapes (nodes, chunks) and (parts, chunks)
        Numbers less than the modulus; -1 for a node, or a part, that has no key. An axis of length
        1 is one that does not matter.
    """

    at: IntArray
    of: IntArray
    modulus: int


@dataclass(frozen=True, eq=False)
class AddressMap:
    """Where blocks lie in the memories of nodes.

    Parameters
    ----------
    memory, base : ndarray of int, shape (rows, keys, chunks)
        The base is -1 where a block never lies.
    coordinates : tuple of Coordinate
        The coordinates of a key, which is their place in row-major order; none where the key is the
        part.
    row_of : ndarray of int, shape (nodes,), optional
        The row of each node; by default its number.
    otherwise : AddressMap, optional
        The map of the blocks that do not lie where this one says.

    Examples
    --------
    Two nodes and two parts; node 1 never holds part 0.

    >>> base = np.array([[[0], [4]], [[-1], [0]]])
    >>> AddressMap(0 * base, base).locate([[0], [1]], [[0, 1]], 0)[1].tolist()
    [[0, 4], [-1, 0]]

    On a Hamiltonian cycle of nine nodes in two directions, a block takes four steps at most, so
    that it lies at 0 to 3 of the memory of the in-port it arrived by. What is a node's own lies in
    memory 4.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "allgather", algorithm="hamiltonian")
    >>> memory, base = tf.compile(schedule, flits=2).form.receive_map.locate(0, np.arange(9), 0)
    >>> int(base.max()), int(memory[0])
    (3, 4)
    """

    memory: IntArray
    base: IntArray
    coordinates: tuple[Coordinate, ...] = ()
    row_of: IntArray | None = None
    otherwise: AddressMap | None = None

    @classmethod
    def in_sequence(cls, memory: int, parts: int, chunks: int, flits: int) -> AddressMap:
        """Return the map of blocks of so many flits, one after another in one memory.

        Examples
        --------
        Chunk 1 of part 2, with two chunks of four flits a part, is the sixth block of memory 3.

        >>> memory, base = AddressMap.in_sequence(3, 8, chunks=2, flits=4).locate(0, 2, 1)
        >>> int(memory), int(base)
        (3, 20)
        """
        base = flits * np.arange(parts * chunks).reshape(1, parts, chunks)
        return cls(np.full((1, 1, 1), memory), base)

    @classmethod
    def chunk_by_chunk(cls, memory: int, chunks: int, base: int = 0) -> AddressMap:
        """Return the map of a message of which each chunk has a memory, from that of chunk 0 on."""
        return cls(memory + np.arange(chunks)[None, None], np.full((1, 1, 1), base))

    @classmethod
    def by_offset(
        cls, memory: IntArray, base: IntArray, topology: Topology, *, ahead: bool = False,
        row_of: IntArray | None = None,
    ) -> AddressMap:  # fmt: skip
        """Return the map of tables of which the second axis is an offset within a group.

        Parameters
        ----------
        topology : Topology
            The topology of a group: a Cayley graph, if there are several offsets.
        ahead : bool
            True for offsets of the part from the node, rather than the other way round.

        Examples
        --------
        On a ring of three, what is at offset 1 from its origin lies in memory 1: for node 0, what
        comes from node 2.

        >>> from torusfabric.topology import Torus
        >>> memory = np.array([[[0], [1], [2]]])
        >>> offsets = AddressMap.by_offset(memory, 0 * memory, Torus(3))
        >>> offsets.locate([0, 0, 0], [0, 1, 2], 0)[0].tolist()
        [0, 2, 1]
        """
        if memory.shape[1] == 1:
            return cls(memory, base, row_of=row_of)
        graph = cayley(topology)
        numbers = tuple(graph.coordinates(np.arange(graph.nodes)))
        order = np.argsort(np.ravel_multi_index(numbers, graph.moduli))
        coordinates = []
        for each, side in zip(numbers, graph.moduli, strict=True):
            signed = (-each if ahead else each)[:, None] % side
            coordinates.append(Coordinate(signed, signed, side))
        return cls(memory[:, order], base[:, order], tuple(coordinates), row_of)

    @classmethod
    def of_nodes(
        cls, memory: IntArray, base: IntArray, topology: Topology, variant_of: IntArray
    ) -> AddressMap:
        """Return the map of a table by node and part.

        A large table gets a row for each variant and offset, if all nodes of a variant store what
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
        return cls.by_offset(memories[first], bases[first], topology, ahead=True, row_of=variant_of)

    def locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        """Return memories and bases, elementwise; the base is -1 where a block never lies."""
        nodes, part, chunk = map(np.asarray, (nodes, part, chunk))
        key, known = np.asarray(0) if self.coordinates else part, np.ones((), bool)
        for at, of, modulus in self.coordinates:
            here, there = _entry(at, nodes, chunk), _entry(of, part, chunk)
            key = key * modulus + (here - there) % modulus
            known = known & (here >= 0) & (there >= 0)
        row = nodes if self.row_of is None else self.row_of[nodes]
        memory, base = (_entry(table, row, key, chunk) for table in (self.memory, self.base))
        base = np.where(known, base, -1)
        if self.otherwise is not None:
            found = base >= 0
            others = self.otherwise.locate(nodes, part, chunk)
            memory, base = np.where(found, memory, others[0]), np.where(found, base, others[1])
        shape = np.broadcast_shapes(nodes.shape, part.shape, chunk.shape)
        return np.broadcast_to(memory, shape), np.broadcast_to(base, shape)

    def memories(self, nodes: IntArray) -> set[int]:
        """Return the memories in which any block of any of these nodes lies."""
        rows, found = nodes if self.row_of is None else np.unique(self.row_of[nodes]), set[int]()
        for each in self.ways:
            memory, base = (table[rows] if len(table) > 1 else table
                            for table in (each.memory, each.base))  # fmt: skip
            within = tuple(axis for axis, size in enumerate(memory.shape) if size == 1)
            there = np.logical_or.reduce(base >= 0, axis=within, keepdims=True)
            found |= set(np.unique(memory[np.broadcast_to(there, memory.shape)]).tolist())
        return found

    def renumbered(self, numbers: IntArray) -> AddressMap:
        """Return the same map, given another number for each memory."""
        return replace(
            self,
            memory=np.where(self.memory < 0, self.memory, numbers[self.memory]),
            otherwise=self.otherwise and self.otherwise.renumbered(numbers),
        )

    @property
    def ways(self) -> Iterator[AddressMap]:
        """The map itself, and those that follow it for the blocks that it lacks."""
        way: AddressMap | None = self
        while way is not None:
            yield way
            way = way.otherwise


def _entry(table: IntArray, *index: IntArray) -> IntArray:
    """The entry of a table at some indices, of which those along axes of length 1 are ignored."""
    entry: IntArray = table[
        tuple(0 if size == 1 else each for size, each in zip(table.shape, index, strict=True))
    ]
    return entry


def count_both_ways(positions: IntArray, length: int) -> tuple[IntArray, int]:
    """Return positions along a cycle that are the same for both of its directions.

    Parameters
    ----------
    positions : ndarray of int, shape (nodes,)
        Positions along a cycle of so many places.

    Returns
    -------
    numbers : ndarray of int, shape (nodes,)
        Distances from node 0.
    sign : int
        1 where they grow as the positions do, or else -1.

    Examples
    --------
    >>> [count_both_ways(np.array(way), 4) for way in ([2, 3, 0, 1], [1, 0, 3, 2])]
    [(array([0, 1, 2, 3]), 1), (array([0, 1, 2, 3]), -1)]
    """
    ahead = (positions - positions[0]) % length
    back = -ahead % length
    return (ahead, 1) if ahead.tolist() <= back.tolist() else (back, -1)
