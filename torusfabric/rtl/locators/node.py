"""Locators of programs without symmetry: by tables of nodes."""

from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ...program import NodeMap, Program
from ...topology import IntArray
from ..registers import delayed
from .base import Locator

__all__ = ["NodeLocator"]


class Locations(NamedTuple):
    """Tables of memories and of first addresses."""

    memory: IntArray
    base: IntArray


class NodeLocator(Locator):
    """Finds blocks in a table.

    Where all nodes of a variant store what has the same offset from them at the same address,
    the table has a row for each variant and offset; else one for each node and origin.

    Parameters
    ----------
    program : Program
        With a `NodeMap`.
    """

    def __init__(self, program: Program) -> None:
        mapped = program.mode.receive_map
        assert isinstance(mapped, NodeMap)
        self._program, self._map = program, mapped
        topology = program.groups.torus
        _, self._parts, self._chunks = self._map.memory.shape
        self._by_offset = self._rows_by_offset()
        self.latency = 2 if self._by_offset is None else 4
        super().__init__(
            nodes=topology.nodes,
            chunks=self._chunks,
            flits=program.block_flits,
            memories=len(program.memories),
            depth=max(int(program.depth.max()), 1),
        )

    def _locations(self) -> Locations:
        """Memory and base of each (node, part, chunk)."""
        base = np.maximum(self._map.base, 0)
        return Locations(self._drop_single(self._map.memory), self._drop_single(base))

    @staticmethod
    def _drop_single(table: IntArray) -> IntArray:
        """Leave out the axes of part and chunk where there is only one."""
        return table.squeeze(tuple(axis for axis in (1, 2) if table.shape[axis] == 1))

    def _rows_by_offset(self) -> Locations | None:
        """The table by variant and offset, or None where a table by node is smaller or needed."""
        program, topology = self._program, self._program.groups.torus
        if self._parts == 1 or topology.nodes**2 * self._chunks <= DIRECT_ROWS:
            return None
        nodes = np.arange(topology.nodes)
        origin = topology.add(nodes[:, None], nodes[None, :])
        memory, base = (table[nodes[:, None], origin] for table in self._locations())
        rows = []
        for number in range(len(program.depth)):
            members = np.nonzero(self._map.variant_of == number)[0]
            for table in (memory, base):
                if (table[members] != table[members[0]]).any():
                    return None
            rows.append((memory[members[0]], base[members[0]]))
        chunks = [self._chunks] if self._chunks > 1 else []
        shape = (len(rows), *topology.moduli, *chunks)
        key = np.ravel_multi_index(tuple(topology.coordinates(nodes)), topology.moduli)
        order = np.argsort(key)
        memories, bases = (
            np.stack(table)[:, order].reshape(shape) for table in zip(*rows, strict=True)
        )
        return Locations(memories, bases)

    def elaborate(self, platform: object) -> Module:
        """Build the table, and before it the subtraction where it is by offset."""
        m = Module()
        if self._by_offset is None:
            wait, tables = 0, self._locations()
            key = [self.node, *([self.origin] if self._parts > 1 else [])]
        else:
            wait, tables = 2, self._by_offset
            key = self._variant_and_offset(m)
        if self._chunks > 1:
            key.append(delayed(m, self.chunk, wait))
        table = self.columns(Cat(*reversed(key)))
        bits = [len(part) for part in key]
        bank, base = (table.read(_table(values, bits)) for values in tables)
        table.build(m, "table")
        flit = delayed(m, self.flit, wait + 1)
        m.d.sync += [self.bank.eq(bank), self.address.eq(base + flit)]
        return m

    def _variant_and_offset(self, m: Module) -> list[Value]:
        """The key of a table by variant and offset, after two cycles."""
        topology = self._program.groups.torus
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        number = delayed(m, by_node.read(self._map.variant_of), 1)
        coordinates = topology.coordinates(np.arange(topology.nodes))
        offsets = []
        for values, side in zip(coordinates, topology.moduli, strict=True):
            difference = by_origin.read(values) - by_node.read(values)
            offset = Signal(range(side), reset_less=True, name="offset")
            m.d.sync += offset.eq(Mux(difference < 0, difference + side, difference))
            offsets.append(offset)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        return [number, *offsets]


#: A table of at most so many rows is addressed by node and origin; it needs no subtraction.
DIRECT_ROWS = 4096


def _table(values: IntArray, bits: list[int]) -> IntArray:
    """A table as rows that are addressed by its indices, side by side.

    Parameters
    ----------
    values : ndarray of int
    bits : list of int
        Width of each index, that of the first axis first.
    """
    return np.pad(
        values, [(0, (1 << b) - n) for b, n in zip(bits, values.shape, strict=True)]
    ).ravel()
