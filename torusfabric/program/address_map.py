"""Address maps: the addresses of blocks in the memories of nodes.

Flit f of a block has the address ``base + f * pitch``. The *base* is the address of its first flit,
and the *pitch* the distance between its flits, a constant of each memory. Memory and base follow
from the node, the *part* and the chunk. The part is the number of the node that the block belongs
to: its origin, its destination, or the node whose share of a sum it is. It is 0 if the part is the
same for all blocks. Nodes and parts are given by their positions in their group.

A map is a table with three axes::

    table[index of the node, key, chunk] -> memory, base

The *key* is the part itself, or a difference between numbers of the node and of the part, such as
the offset of one from the other, or their distance along a cycle. An axis that does not matter has
length 1, so a map is as small as the symmetry of the program allows.

One table may not be enough, for instance if blocks arrive along several cycles, each with keys of
its own. A map then has a second map for the blocks that its own table lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..topology import CayleyGraph, IntArray, require_cayley_graph

if TYPE_CHECKING:
    from ..topology import Topology

__all__ = ["AddressMap", "Coordinate", "direction_free_positions"]

#: A pair of arrays: memories, and bases or addresses.
Located: TypeAlias = tuple[IntArray, IntArray]

#: The largest table, in entries, that is addressed by node and part directly. A larger one is
#: addressed by differences, which costs hardware a subtraction.
MOST_DIRECT_ENTRIES = 4096


class Coordinate(NamedTuple):
    """A number by which an `AddressMap` finds the address of a block at a node.

    It is a difference ``(node_values[node, chunk] - part_values[part, chunk]) % modulus``, such as
    the offset along one axis from the origin of the block to the node. The *part* is the number of
    the node that the block belongs to: its origin, its destination, or the owner of its share.

    Parameters
    ----------
    node_values, part_values : ndarray of int, shapes (nodes, chunks) and (parts, chunks)
        Numbers less than the modulus; -1 for a node or part whose blocks the map does not have. An
        axis that does not matter has length 1.
    modulus : int
        Number of values of the coordinate.
    """

    node_values: IntArray
    part_values: IntArray
    modulus: int


@dataclass(frozen=True, eq=False)
class AddressMap:
    """A map from (node, part, chunk) to the memory and base address of a block.

    The *part* is the number of the node that the block belongs to: its origin, its destination, or
    the owner of its share of a sum. The *base* is the address of the first flit. The map is a
    table, in which a block is found by a *key*: the part itself, or a number made of coordinates.

    Parameters
    ----------
    memory, base : ndarray of int, shape (indices, keys, chunks)
        Memory and base of each block. The base is -1 if the node never holds the block.
    coordinates : tuple of Coordinate
        Coordinates whose values together, in row-major order, number the keys; empty if the key is
        the part.
    row_of : ndarray of int, shape (nodes,), optional
        Index of each node in the first axis of the table; by default the node itself.
    otherwise : AddressMap, optional
        A second map, used for blocks whose base is -1 in this one.

    Examples
    --------
    Two nodes and two parts; node 1 never holds part 0.

    >>> base = np.array([[[0], [4]], [[-1], [0]]])
    >>> AddressMap(0 * base, base).locate([[0], [1]], [[0, 1]], 0)[1].tolist()
    [[0, 4], [-1, 0]]

    On a Hamiltonian cycle of nine nodes in two directions, a block takes at most four steps. It
    lies at address 0 to 3 in the memory of the in-port by which it arrived. A node's own block lies
    in memory 4.

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
    def from_sequence(cls, memory: int, parts: int, chunks: int, flits: int) -> AddressMap:
        """Return the map of blocks that lie one after another in one memory, part by part.

        A part is the data of one origin or destination, or one share of a sum.

        Parameters
        ----------
        memory : int
            Memory of all blocks.
        parts : int
            Number of parts in the memory.
        chunks : int
            Number of chunks of each part.
        flits : int
            Flits of a block.

        Examples
        --------
        Chunk 1 of part 2, with two chunks of four flits a part, is the sixth block of memory 3.

        >>> memory, base = AddressMap.from_sequence(3, 8, chunks=2, flits=4).locate(0, 2, 1)
        >>> int(memory), int(base)
        (3, 20)
        """
        base = flits * np.arange(parts * chunks).reshape(1, parts, chunks)
        return cls(np.full((1, 1, 1), memory), base)

    @classmethod
    def from_chunk_memories(cls, memory: int, chunks: int, base: int = 0) -> AddressMap:
        """Return the map of a message whose chunks lie in different memories, at the same address.

        Chunk c, of `chunks` chunks, lies at address `base` of memory ``memory + c``.
        """
        return cls(memory + np.arange(chunks)[None, None], np.full((1, 1, 1), base))

    @classmethod
    def from_offset_table(
        cls, memory: IntArray, base: IntArray, topology: Topology, *, ahead: bool = False,
        row_of: IntArray | None = None,
    ) -> AddressMap:  # fmt: skip
        """Return the map of blocks that are found by the offset between node and part.

        The part is the node that the block belongs to, such as its origin. With this map, nodes
        that act alike share the entries of a table.

        Parameters
        ----------
        memory, base : ndarray of int, shape (indices, offsets, chunks)
            Memory and address of the block at each offset; the address is -1 if the node never
            holds the block.
        topology : Topology
            Network of the nodes that exchange the blocks: all nodes, or one group. If the axis of
            offsets is longer than 1, it must be a Cayley graph, in which offsets are defined.
        ahead : bool
            True for the offset of the part from the node, False for the offset of the node from the
            part.
        row_of : ndarray of int, shape (nodes,), optional
            Index of each node in the first axis of the tables; by default the node itself.

        Examples
        --------
        On a ring of three, a block at offset 1 from its origin lies in memory 1: at node 0, this is
        the block of node 2.

        >>> from torusfabric.topology import Torus
        >>> memory = np.array([[[0], [1], [2]]])
        >>> offsets = AddressMap.from_offset_table(memory, 0 * memory, Torus(3))
        >>> offsets.locate([0, 0, 0], [0, 1, 2], 0)[0].tolist()
        [0, 2, 1]
        """
        if memory.shape[1] == 1:
            return cls(memory, base, row_of=row_of)
        graph = require_cayley_graph(topology)
        numbers = tuple(graph.coordinates(np.arange(graph.nodes)))
        order = np.argsort(np.ravel_multi_index(numbers, graph.moduli))
        coordinates = []
        for each, side in zip(numbers, graph.moduli, strict=True):
            signed = (-each if ahead else each)[:, None] % side
            coordinates.append(Coordinate(signed, signed, side))
        return cls(memory[:, order], base[:, order], tuple(coordinates), row_of)

    @classmethod
    def from_table(
        cls, memory: IntArray, base: IntArray, topology: Topology, variant_of: IntArray
    ) -> AddressMap:
        """Return the map of a table with a row for each node and a column for each part.

        A part is the data of one origin or destination, or one share of a sum. A table of more than
        `MOST_DIRECT_ENTRIES` entries is reduced to a row for each variant (set of nodes with equal
        actions) and a column for each offset from the node to the part. This is possible if all
        nodes of a variant store blocks with equal offsets at equal addresses; otherwise the table
        stays as it is.

        Parameters
        ----------
        memory, base : ndarray of int, shape (nodes, parts, chunks)
            Memory and base of each block.
        topology : Topology
            Network of the nodes that exchange the blocks: all nodes, or one group.
        variant_of : ndarray of int, shape (nodes,)
            Variant of each node.
        """
        table, nodes = cls(memory, base), np.arange(len(variant_of))[:, None]
        small = memory.size <= MOST_DIRECT_ENTRIES or memory.shape[1] < len(nodes)
        if small or not isinstance(topology, CayleyGraph):
            return table
        part = topology.add(nodes, nodes.T)
        first = np.unique(variant_of, return_index=True)[1]
        memories, bases = memory[nodes, part], base[nodes, part]
        if any((values[first][variant_of] != values).any() for values in (memories, bases)):
            return table
        return cls.from_offset_table(
            memories[first], bases[first], topology, ahead=True, row_of=variant_of
        )

    def locate(self, nodes: ArrayLike, part: ArrayLike, chunk: ArrayLike) -> Located:
        """Return two arrays: memory and base of each block, given its node, part and chunk.

        Parameters
        ----------
        nodes, part, chunk : array_like of int
            Node, part and chunk of each block, with any shapes that broadcast against each other.

        Returns
        -------
        memory, base : ndarray of int
            Arrays of the broadcast shape. The base is -1 if the node never holds the block.
        """
        nodes, part, chunk = map(np.asarray, (nodes, part, chunk))
        key, known = np.asarray(0) if self.coordinates else part, np.ones((), bool)
        for at, of, modulus in self.coordinates:
            here, there = _table_entries(at, nodes, chunk), _table_entries(of, part, chunk)
            key = key * modulus + (here - there) % modulus
            known = known & (here >= 0) & (there >= 0)
        row = nodes if self.row_of is None else self.row_of[nodes]
        memory, base = (
            _table_entries(table, row, key, chunk) for table in (self.memory, self.base)
        )
        base = np.where(known, base, -1)
        if self.otherwise is not None:
            found = base >= 0
            others = self.otherwise.locate(nodes, part, chunk)
            memory, base = np.where(found, memory, others[0]), np.where(found, base, others[1])
        shape = np.broadcast_shapes(nodes.shape, part.shape, chunk.shape)
        return np.broadcast_to(memory, shape), np.broadcast_to(base, shape)

    def memories_at(self, nodes: IntArray) -> set[int]:
        """Return the memories that hold any block at any of these nodes."""
        rows, found = nodes if self.row_of is None else np.unique(self.row_of[nodes]), set[int]()
        for each in self.map_chain:
            memory, base = (table[rows] if len(table) > 1 else table
                            for table in (each.memory, each.base))  # fmt: skip
            within = tuple(axis for axis, size in enumerate(memory.shape) if size == 1)
            there = np.logical_or.reduce(base >= 0, axis=within, keepdims=True)
            found |= set(np.unique(memory[np.broadcast_to(there, memory.shape)]).tolist())
        return found

    def renumber_memories(self, numbers: IntArray) -> AddressMap:
        """Return the same map with another number for each memory.

        Parameters
        ----------
        numbers : ndarray of int, shape (memories,) or (indices, memories)
            New number of each memory, the same for all nodes, or for each index of a node.
        """
        row = np.arange(len(numbers))[:, None, None]
        named = numbers[self.memory] if numbers.ndim == 1 else numbers[row, self.memory]
        return replace(
            self,
            memory=np.where(self.memory < 0, self.memory, named),
            otherwise=self.otherwise and self.otherwise.renumber_memories(numbers),
        )

    @property
    def map_chain(self) -> Iterator[AddressMap]:
        """The map itself, then its second map `otherwise`, the second map of that, and so on."""
        way: AddressMap | None = self
        while way is not None:
            yield way
            way = way.otherwise


def _table_entries(table: IntArray, *index: IntArray) -> IntArray:
    """Return the entries of `table` at an index for each axis.

    The indices are arrays that broadcast against each other. On an axis of length 1, all indices
    mean the only entry.
    """
    entry: IntArray = table[
        tuple(0 if size == 1 else each for size, each in zip(table.shape, index, strict=True))
    ]
    return entry


def direction_free_positions(positions: IntArray, length: int) -> tuple[IntArray, int]:
    """Return the distance of each node from node 0 along a cycle in a fixed direction.

    The direction does not depend on the one in which `positions` count: positions along the
    reversed cycle give equal distances. Why: blocks that go around a cycle in opposite directions
    can then be found by equal numbers.

    Parameters
    ----------
    positions : ndarray of int, shape (nodes,)
        Positions of the nodes along a cycle.
    length : int
        Nodes of the cycle.

    Returns
    -------
    numbers : ndarray of int, shape (nodes,)
        Distances from node 0, in the direction with the lexicographically smaller result.
    sign : int
        1 if the distances grow with the positions, -1 otherwise.

    Examples
    --------
    A cycle of four nodes, once in each direction.

    >>> [direction_free_positions(np.array(way), 4) for way in ([2, 3, 0, 1], [1, 0, 3, 2])]
    [(array([0, 1, 2, 3]), 1), (array([0, 1, 2, 3]), -1)]
    """
    ahead = (positions - positions[0]) % length
    back = -ahead % length
    return (ahead, 1) if ahead.tolist() <= back.tolist() else (back, -1)
