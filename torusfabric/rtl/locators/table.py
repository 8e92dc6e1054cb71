"""Locators that look blocks up in a table: by nodes and origins, offsets, or places on cycles."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ...program import CycleMap, TableMap
from ...topology import CayleyGraph, IntArray, cayley
from ..memories import Columns, constant_at
from ..modules import delayed
from . import Locator, affine

__all__ = ["CycleLocator", "TableLocator"]


class TableLocator(Locator):
    """Finds blocks in a table.

    Parameters
    ----------
    nodes : int
        Nodes of a group.
    first : int
        The number of the first memory.
    memories : int
        How many there are.
    flits : int
        Flits of a block.
    """

    def __init__(
        self, mapped: TableMap, *, nodes: int, first: int, memories: int, flits: int
    ) -> None:
        there = mapped.base >= 0
        self._table, self._flits = mapped, flits
        self._memory = np.where(there, mapped.memory - first, 0)
        self._base = np.where(there, mapped.base, 0)
        self._graph: CayleyGraph | None = None
        if mapped.topology is not None and mapped.memory.shape[1] > 1:
            self._graph = cayley(mapped.topology)
        self.latency = 4 if self._graph else 2
        super().__init__(
            nodes=nodes,
            parts=mapped.memory.shape[1],
            chunks=mapped.memory.shape[2],
            flits=flits,
            memories=memories,
            depth=int(self._base.max()) + flits,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the table, and before it the subtraction of coordinates."""
        m, (nodes, parts, chunks) = Module(), self._memory.shape
        if self._graph:
            key = self._key_by_offset(m, self._graph)
        else:
            key = [self.node] * (nodes > 1) + [self.origin] * (parts > 1)
        wait = self.latency - 2
        if chunks > 1:
            key.append(delayed(m, self.chunk, wait))
        rows = Columns(Cat(*reversed(key)))
        bank = rows.read(self._rows(self._memory, key))
        base, flit = self._rows(self._base, key), delayed(m, self.flit, wait + 1)
        address = rows.read(base) if self._flits == 1 else rows.address(base, flit)
        rows.build(m, "table")
        m.d.sync += [self.bank.eq(bank), self.address.eq(address)]
        return m

    def _rows(self, values: IntArray, key: list[Value]) -> IntArray:
        """A table as rows that are addressed by the parts of the key, side by side."""
        shape = values.shape
        if self._graph:
            moduli = self._graph.moduli
            order = np.argsort(np.ravel_multi_index(_coordinates(self._graph), moduli))
            values, shape = values[:, order], (shape[0], *moduli, shape[2])
        values = values.reshape([side for side in shape if side > 1])
        # Of the first part of the key, what is past its end is never asked for.
        pads = [(0, (1 << len(part)) - size) for part, size in
                zip(key[1:], values.shape[1:], strict=True)]  # fmt: skip
        return np.pad(values, [(0, 0), *pads], mode="edge").ravel()

    def _key_by_offset(self, m: Module, graph: CayleyGraph) -> list[Value]:
        """Variant, where it matters, and the offset in each cyclic group, after two cycles."""
        by_node, by_origin = Columns(self.node), Columns(self.origin)
        key: list[Value] = []
        if self._table.variant_of is not None:
            key.append(delayed(m, by_node.read(self._table.variant_of), 1))
        for values, side in zip(_coordinates(graph), graph.moduli, strict=True):
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


def _coordinates(graph: CayleyGraph) -> tuple[IntArray, ...]:
    """The coordinates of all nodes along each axis."""
    return tuple(graph.coordinates(np.arange(graph.nodes)))


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
