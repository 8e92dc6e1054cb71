"""Locators that know blocks by offsets: one table for all nodes."""

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ...topology import IntArray, Topology
from ..memories import address_width
from ..registers import delayed
from .base import Locator

__all__ = ["OffsetLocator"]


def block_address(slot: Value, flit: Value, flits: int) -> Value:
    """The address of a flit of a block, given the number that `block_base` made of its slot."""
    if flits == 1:
        return slot
    return slot + flit if flits & (flits - 1) else Cat(flit[: address_width(flits)], slot)


def block_base(slot: IntArray, flits: int) -> IntArray:
    """What a ROM keeps of slots, counted in blocks: the first address, or only its upper bits."""
    return slot * flits if flits & (flits - 1) else slot


class OffsetLocator(Locator):
    """Finds blocks by the offset between two nodes, and the chunk.

    Parameters
    ----------
    topology : Topology
    memory, slot : ndarray of int, shape (nodes, chunks) or (1, chunks)
        Where a block lies, by the offset; with one row the offset does not matter.
    flits : int
        Flits of a block.
    memories : int
        How many memories there are.
    ahead : bool
        Whether offsets are those of `origin` from `node`, rather than the other way round.
    """

    def __init__(
        self,
        topology: Topology,
        memory: IntArray,
        slot: IntArray,
        *,
        flits: int,
        memories: int,
        ahead: bool = False,
    ) -> None:
        self._topology, self._memory, self._slot = topology, memory, np.maximum(slot, 0)
        self._flits, self._ahead = flits, ahead
        self.latency = 4 if len(memory) > 1 else 2
        depth = (int(self._slot.max()) + 1) * flits
        super().__init__(
            nodes=topology.nodes,
            chunks=memory.shape[1],
            flits=flits,
            memories=memories,
            depth=depth,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the table, and before it the subtraction of coordinates."""
        m = Module()
        key = self._offsets(m) if len(self._memory) > 1 else []
        wait = self.latency - 2
        if self._memory.shape[1] > 1:
            key.append(delayed(m, self.chunk, wait))
        table = self.columns(Cat(*reversed(key)))
        bank = table.read(self._rows(self._memory, key))
        slot = table.read(block_base(self._rows(self._slot, key), self._flits))
        table.build(m, "table")
        flit = delayed(m, self.flit, wait + 1)
        m.d.sync += [self.bank.eq(bank), self.address.eq(block_address(slot, flit, self._flits))]
        return m

    def _rows(self, values: IntArray, key: list[Value]) -> IntArray:
        """A table as rows that are addressed by the parts of the key, side by side."""
        if not key:
            return values.ravel()
        topology = self._topology
        shape: tuple[int, ...] = (values.shape[1],)
        if len(values) > 1:
            coordinates = tuple(topology.coordinates(np.arange(topology.nodes)))
            order = np.argsort(np.ravel_multi_index(coordinates, topology.moduli))
            values, shape = values[order], (*topology.moduli, *shape)
        values = values.reshape(shape)
        if shape[-1] == 1:
            values = values[..., 0]
        bits = [len(part) for part in key]
        pads = [(0, (1 << b) - n) for b, n in zip(bits, values.shape, strict=True)]
        return np.pad(values, pads, mode="edge").ravel()

    def _offsets(self, m: Module) -> list[Value]:
        """The offset in each cyclic group, after two cycles."""
        topology = self._topology
        by_node, by_origin = self.columns(self.node), self.columns(self.origin)
        coordinates = topology.coordinates(np.arange(topology.nodes))
        offsets = []
        for values, side in zip(coordinates, topology.moduli, strict=True):
            node, origin = by_node.read(values), by_origin.read(values)
            difference = origin - node if self._ahead else node - origin
            offset = Signal(range(max(side, 2)), reset_less=True, name="offset")
            m.d.sync += offset.eq(Mux(difference < 0, difference + side, difference))
            offsets.append(offset)
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        return offsets
