"""Locators that look blocks up in a table: by nodes and origins, offsets, or places on cycles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ...program import AddressMap, CycleMap, DirectMap, NodeMap, OffsetMap, PartMap, Program
from ...topology import CayleyGraph, IntArray, Topology, cayley
from ..memories import Columns, constant_at
from ..modules import delayed
from . import Locator, affine

__all__ = ["BlockTable", "CycleLocator", "TableLocator", "block_table"]

#: A table of at most so many rows is addressed by node and origin; it needs no subtraction.
DIRECT_ROWS = 4096


class BlockTable(NamedTuple):
    """Where blocks lie, with as few rows as are needed.

    Parameters
    ----------
    topology : Topology
        Of the group.
    memory, base : ndarray of int, shape (nodes, parts, chunks)
        An axis of length 1 is one that does not matter.
    by_offset : bool
        Whether parts are known by offsets between them and nodes.
    ahead : bool
        Whether these are offsets of the part from the node, rather than the other way round.
    variant_of : ndarray of int, shape (nodes,), or None
        Where nodes are known by their variants.
    """

    topology: Topology
    memory: IntArray
    base: IntArray
    by_offset: bool = False
    ahead: bool = False
    variant_of: IntArray | None = None


def block_table(mapped: AddressMap, program: Program, *, first: int = 0) -> BlockTable:
    """The table of an address map, whose memories are numbered from `first`.

    Where all nodes of a variant store what has the same offset from them at the same address, a
    large table has a row for each variant and offset; else one for each node and origin.
    """
    topology = program.groups.torus
    match mapped:
        case OffsetMap():
            known = BlockTable(
                mapped.topology, mapped.memory[None], mapped.base[None], len(mapped.memory) > 1,
                mapped.ahead,
            )  # fmt: skip
        case PartMap():
            known = BlockTable(topology, mapped.memory[None], mapped.base[None])
        case NodeMap():
            known = BlockTable(topology, mapped.memory, mapped.base)
            if mapped.memory.shape[1] > 1 and mapped.memory.size > DIRECT_ROWS:
                known = _by_variant(known, mapped.variant_of) or known
        case _:
            assert isinstance(mapped, DirectMap)
            parts, chunks = np.ogrid[: program.layout.send_parts, : program.layout.part_chunks]
            memory, base = mapped.locate(0, parts, chunks)
            known = BlockTable(topology, memory[None], base[None])
    there = known.base >= 0
    return known._replace(
        memory=np.where(there, known.memory - first, 0), base=np.where(there, known.base, 0)
    )


def _by_variant(table: BlockTable, variant_of: IntArray) -> BlockTable | None:
    """A table by node as one by variant and offset, or None where nodes of a variant differ."""
    topology = table.topology
    if not isinstance(topology, CayleyGraph):
        return None
    nodes = np.arange(topology.nodes)
    part = topology.add(nodes[:, None], nodes[None, :])
    first = np.unique(variant_of, return_index=True)[1]
    memory, base = (values[nodes[:, None], part] for values in (table.memory, table.base))
    if any((values[first][variant_of] != values).any() for values in (memory, base)):
        return None
    return BlockTable(
        table.topology, memory[first], base[first], by_offset=True, ahead=True,
        variant_of=variant_of,
    )  # fmt: skip


class TableLocator(Locator):
    """Finds blocks in a table.

    Parameters
    ----------
    flits : int
        Flits of a block.
    memories : int
        How many memories there are.
    """

    def __init__(self, table: BlockTable, *, flits: int, memories: int) -> None:
        self._table, self._flits = table, flits
        self.latency = 4 if table.by_offset else 2
        super().__init__(
            nodes=table.topology.nodes,
            parts=table.memory.shape[1],
            chunks=table.memory.shape[2],
            flits=flits,
            memories=memories,
            depth=int(table.base.max()) + flits,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the table, and before it the subtraction of coordinates."""
        m, (nodes, parts, chunks) = Module(), self._table.memory.shape
        if self._table.by_offset:
            key = self._key_by_offset(m)
        else:
            key = [self.node] * (nodes > 1) + [self.origin] * (parts > 1)
        wait = self.latency - 2
        if chunks > 1:
            key.append(delayed(m, self.chunk, wait))
        rows = Columns(Cat(*reversed(key)))
        bank = rows.read(self._rows(self._table.memory, key))
        base, flit = self._rows(self._table.base, key), delayed(m, self.flit, wait + 1)
        address = rows.read(base) if self._flits == 1 else rows.address(base, flit)
        rows.build(m, "table")
        m.d.sync += [self.bank.eq(bank), self.address.eq(address)]
        return m

    def _rows(self, values: IntArray, key: list[Value]) -> IntArray:
        """A table as rows that are addressed by the parts of the key, side by side."""
        shape = values.shape
        if self._table.by_offset:
            moduli = cayley(self._table.topology).moduli
            order = np.argsort(np.ravel_multi_index(tuple(self._coordinates()), moduli))
            values, shape = values[:, order], (shape[0], *moduli, shape[2])
        values = values.reshape([side for side in shape if side > 1])
        # Of the first part of the key, what is past its end is never asked for.
        pads = [(0, (1 << len(part)) - size) for part, size in
                zip(key[1:], values.shape[1:], strict=True)]  # fmt: skip
        return np.pad(values, [(0, 0), *pads], mode="edge").ravel()

    def _coordinates(self) -> list[IntArray]:
        """The coordinates of all nodes along each axis."""
        topology = cayley(self._table.topology)
        return [*topology.coordinates(np.arange(topology.nodes))]

    def _key_by_offset(self, m: Module) -> list[Value]:
        """Variant, where it matters, and the offset in each cyclic group, after two cycles."""
        by_node, by_origin = Columns(self.node), Columns(self.origin)
        key: list[Value] = []
        moduli = cayley(self._table.topology).moduli
        if self._table.variant_of is not None:
            key.append(delayed(m, by_node.read(self._table.variant_of), 1))
        for values, side in zip(self._coordinates(), moduli, strict=True):
            if side == 1:
                continue
            node, origin = by_node.read(values), by_origin.read(values)
            difference = origin - node if self._table.ahead else node - origin
            offset = Signal(range(max(side, 2)), reset_less=True, name="offset")
            m.d.sync += offset.eq(Mux(difference < 0, difference + side, difference))
            key.append(offset)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        return key


class CycleLocator(Locator):
    """Finds blocks by the difference of two positions on the cycle of their chunk.

    It takes four cycles: to look up the positions, for their difference, to bring that into the
    range of the cycle, and to add what it says to the base of the chunk. Cycles that go the same
    way as others, or back, share the positions of these.

    Parameters
    ----------
    first : int
        The number of the first memory.
    memories : int
        How many there are.
    flits : int
        Flits of a block.
    """

    latency = 4

    def __init__(self, mapped: CycleMap, *, first: int, memories: int, flits: int) -> None:
        self._map, self._first = mapped, first
        nodes = mapped.index.shape[1]
        last = int((mapped.first + mapped.stride * (nodes - 1)).max())
        super().__init__(
            nodes=nodes,
            chunks=len(mapped.cycle),
            flits=flits,
            memories=memories,
            depth=last + flits,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the tables, and what follows from them."""
        m, mapped = Module(), self._map
        nodes = mapped.index.shape[1]
        numbering, back = _numbered(mapped.index)
        cycle = self._of_chunk(mapped.cycle, 0, m)
        row = constant_at(numbering.tolist(), cycle)
        distinct = [int((numbering == k).argmax()) for k in range(numbering.max() + 1)]
        position = mapped.index[distinct]
        at = self._look_up(m, "nodes", row, self.node, position)
        of = self._look_up(m, "parts", row, self.origin, position)
        bank = self._look_up(m, "banks", cycle, self.node, mapped.memory - self._first)
        way = delayed(m, constant_at(back.astype(int).tolist(), cycle), 1)
        difference = Signal(range(-nodes, nodes), reset_less=True, name="difference")
        behind = Signal(range(nodes), reset_less=True, name="behind")
        lead = mapped.lead
        m.d.sync += [
            difference.eq(Mux(way, of - at, at - of)),
            behind.eq(Mux(difference < lead, difference + (nodes - lead), difference - lead)),
            self.bank.eq(delayed(m, bank, 2)),
            self.address.eq(
                behind * self._of_chunk(mapped.stride, 3, m)
                + self._of_chunk(mapped.first, 3, m)
                + delayed(m, self.flit, 3)
            ),
        ]
        return m

    def _of_chunk(self, values: IntArray, cycles: int, m: Module) -> Value:
        """A value of each chunk, so many cycles later."""
        return constant_at(values.tolist(), delayed(m, self.chunk, cycles))

    def _look_up(self, m: Module, name: str, row: Value, node: Value, values: IntArray) -> Value:
        """A value of a cycle and a node, a cycle later."""
        rows, nodes = values.shape
        padded = np.pad(values, [(0, 0), (0, (1 << len(node)) - nodes)], mode="edge")
        table = Columns(Cat(node, row) if rows > 1 else node)
        found = table.read(padded.ravel())
        table.build(m, name)
        return found


def _numbered(index: IntArray) -> tuple[IntArray, IntArray]:
    """Of each cycle, the number of that whose positions it goes by, and whether it goes back."""
    known: list[IntArray] = []
    numbering, back = np.zeros(len(index), int), np.zeros(len(index), bool)
    for cycle, positions in enumerate(index):
        ways = enumerate(affine(base, positions, len(positions)) for base in known)
        number, way = next((each for each in ways if each[1]), (len(known), None))
        numbering[cycle], back[cycle] = number, way is not None and way.sign < 0
        if way is None:
            known.append(positions)
    return numbering, back
