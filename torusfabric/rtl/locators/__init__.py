"""Locators: where a node stores a flit, for the host that asks by origin.

Nodes store what arrives in the order in which it arrives. A locator turns (node, origin, chunk,
flit) into a memory and an address, once for the whole fabric: no flit carries a header, and no node
translates anything. There is one for each form of address map; as these do, locators know nodes by
their positions in their group.
"""

from collections.abc import Mapping
from types import MappingProxyType

from amaranth.hdl import Fragment, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from ...program import Program
from ..memories import Columns, address_width

__all__ = ["ChunkLocator", "Locator"]


class Locator(wiring.Component):
    """What every locator has.

    Parameters
    ----------
    given : mapping of str to Member
        Members that it has besides, as the host that has it: what is looked up elsewhere.

    Attributes
    ----------
    latency : int
        Cycles from a question to its answer; a question may be put in every cycle.

    Members
    -------
    node, origin, chunk, flit : In
        The question: node and origin are positions in a group, or the origin the number of an
        offset; a flit counts within its chunk.
    bank, address : Out
        The answer.
    """

    latency: int

    def __init__(
        self, *, nodes: int, chunks: int, flits: int, memories: int, depth: int, parts: int = 0,
        given: Mapping[str, Member] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.given = given
        super().__init__(
            {
                "node": In(address_width(nodes)),
                "origin": In(address_width(max(nodes, parts))),
                "chunk": In(address_width(chunks)),
                "flit": In(address_width(flits)),
                "bank": Out(address_width(memories)),
                "address": Out(address_width(depth)),
                **given,
            }
        )
        self._tables: list[Columns] = []

    def columns(self, address: Value) -> Columns:
        """A ROM of this locator."""
        self._tables.append(Columns(address))
        return self._tables[-1]

    def rom_bits(self) -> int:
        """Bits of all its ROMs."""
        self._tables.clear()
        Fragment.get(self, None)
        return sum(table.bits for table in self._tables)


class ChunkLocator(Locator):
    """Finds chunks, each in a memory of its own: the memory is the chunk, the address the flit.

    Parameters
    ----------
    program : Program
        With a `DirectMap` by chunk.
    """

    latency = 1

    def __init__(self, program: Program) -> None:
        nodes, chunks = program.groups.size, program.schedule.chunks
        flits = program.block_flits
        super().__init__(nodes=nodes, chunks=chunks, flits=flits, memories=chunks, depth=flits)

    def elaborate(self, platform: object) -> Module:
        """Register the answer."""
        m = Module()
        m.d.sync += [self.bank.eq(self.chunk), self.address.eq(self.flit)]
        return m
