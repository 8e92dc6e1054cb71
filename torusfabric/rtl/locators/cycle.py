"""Locators of patterns of sums: by how far behind a node parts are on cycles."""

from __future__ import annotations

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ...program import CycleMap
from ...topology import IntArray
from ..memories import constant_at
from ..modules import delayed
from . import Locator

__all__ = ["CycleLocator"]


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
        table = self.columns(Cat(node, row) if rows > 1 else node)
        found = table.read(padded.ravel())
        table.build(m, name)
        return found


def _numbered(index: IntArray) -> tuple[IntArray, IntArray]:
    """Of each cycle, the number of that whose positions it goes by, and whether it goes back."""
    nodes = index.shape[1]
    known: list[IntArray] = []
    numbering, back = np.zeros(len(index), int), np.zeros(len(index), bool)
    for cycle, positions in enumerate(index):
        for number, base in enumerate(known):
            ways = [(positions - sign * base) % nodes for sign in (1, -1)]
            same = [bool((way == way[0]).all()) for way in ways]
            if any(same):
                numbering[cycle], back[cycle] = number, not same[0]
                break
        else:
            numbering[cycle] = len(known)
            known.append(positions)
    return numbering, back
