# amaranth: UnusedElaboratable=no
"""Links of several cycles: what lies between the register of an out-port and an in-port.

The register of the out-port is the first cycle of a link. The others are a chain of registers that
placement spreads along the wire, or where they are many a delay line in a memory.
"""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .memories import ReadPort, WritePort, add_memory, address_width, memory_cell
from .modules import APART, Leaf

__all__ = ["MOST_REGISTERS", "Link"]

#: Up to so many registers a chain of them is no larger than a memory with its counter.
MOST_REGISTERS = 4


class Link(Leaf):
    """A link behind the register of an out-port: words come out some cycles after they went in.

    Parameters
    ----------
    cycles : int
        Of that register and what is in here; at least 2.
    width : int
        Bits of a word.

    Members
    -------
    sent : In(width)
    arrived : Out(width)
        The word of ``registers`` cycles ago.

    Attributes
    ----------
    registers : int
        Those between the out-port and the in-port, each a cycle: all but that of the out-port.
    """

    def __init__(self, cycles: int, width: int) -> None:
        self.registers, self._width = cycles - 1, width
        super().__init__({"sent": In(width), "arrived": Out(width)})
        # A link beside it may hold the same.
        self.arrived = Signal(width, reset_less=True, name="arrived", attrs=APART)

    def elaborate(self, platform: object) -> Module:
        """Build the chain, or the delay line."""
        m = Module()
        word = self.value("sent")
        if self.registers > MOST_REGISTERS:
            m.d.comb += self.arrived.eq(self._delay_line(m))
            return m
        for number in range(1, self.registers):
            name = f"on_the_way_{number}"
            stage = Signal(self._width, reset_less=True, name=name, attrs=APART)
            m.d.sync += stage.eq(word)
            word = stage
        m.d.sync += self.arrived.eq(word)
        return m

    def _delay_line(self, m: Module) -> Signal:
        """A memory that is written all around; what is read next is overwritten a cycle later."""
        depth = self.registers
        bits = address_width(depth)
        # Wherever it begins, it is within the line a cycle later; the reset is for simulators.
        at, after = Signal(bits, name="at", attrs=APART), Signal(bits, name="after")
        m.d.comb += after.eq(Mux(at >= depth - 1, 0, at + 1))
        m.d.sync += at.eq(after)
        cell = memory_cell("line", width=self._width, depth=depth)
        write = WritePort(at, self.value("sent"), Const(1, 1))
        return add_memory(m, "line", cell, write=write, read=ReadPort(after, Const(1, 1)))
