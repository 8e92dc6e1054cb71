"""What every locator has."""

from amaranth.hdl import Fragment, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..columns import Columns
from ..memories import address_width

__all__ = ["Locator"]


class Locator(wiring.Component):
    """What every locator has.

    Attributes
    ----------
    latency : int
        Cycles from a question to its answer; a question may be put in every cycle.

    Members
    -------
    node, origin, chunk, flit : In
        The question: node and origin are positions in a group, a flit counts within its chunk.
    bank, address : Out
        The answer.
    """

    latency: int

    def __init__(self, *, nodes: int, chunks: int, flits: int, memories: int, depth: int) -> None:
        super().__init__(
            {
                "node": In(address_width(nodes)),
                "origin": In(address_width(nodes)),
                "chunk": In(address_width(chunks)),
                "flit": In(address_width(flits)),
                "bank": Out(address_width(memories)),
                "address": Out(address_width(depth)),
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
