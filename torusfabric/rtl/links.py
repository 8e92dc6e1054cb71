# amaranth: UnusedElaboratable=no
"""Links of several cycles: the delay between the register of an out-port and an in-port.

The register of the out-port is the first cycle of a link. For the other cycles a short link has a
chain of registers, which placement can spread along the wire. A long link has a delay line in a
memory.
"""

from __future__ import annotations

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .memories import ReadPort, WritePort, add_memory, address_width, memory_cell
from .modules import UNMERGED, Leaf

__all__ = ["MOST_REGISTERS", "Link"]

#: Up to this number of registers, a chain is no larger than a memory with its counter.
MOST_REGISTERS = 4


class Link(Leaf):
    """A link behind the register of an out-port; it delays words by a fixed number of cycles.

    Parameters
    ----------
    cycles : int
        Cycles of the whole link, including the register of the out-port; at least 2.
    width : int
        Bits of a word.

    Members
    -------
    sent : In(width)
        The word in the register of the out-port.
    arrived : Out(width)
        The word that was at `sent` ``registers`` cycles ago.

    Attributes
    ----------
    registers : int
        Cycles that this module delays a word: `cycles` minus 1.
    """

    def __init__(self, cycles: int, width: int) -> None:
        self.registers, self._width = cycles - 1, width
        super().__init__({"sent": In(width), "arrived": Out(width)})
        # Synthesis must not merge the register with that of a parallel link with equal words.
        self.arrived = Signal(width, reset_less=True, name="arrived", attrs=UNMERGED)

    def elaborate(self, platform: object) -> Module:
        """Return the Amaranth module: a chain of registers, or a delay line if the link is long."""
        m = Module()
        word = self.input_value("sent")
        if self.registers > MOST_REGISTERS:
            m.d.comb += self.arrived.eq(self._delay_line(m))
            return m
        for number in range(1, self.registers):
            name = f"on_the_way_{number}"
            stage = Signal(self._width, reset_less=True, name=name, attrs=UNMERGED)
            m.d.sync += stage.eq(word)
            word = stage
        m.d.sync += self.arrived.eq(word)
        return m

    def _delay_line(self, m: Module) -> Signal:
        """Return the output of a delay line: a circular buffer with one word for each cycle.

        Each word is read one cycle before it is overwritten.
        """
        depth = self.registers
        bits = address_width(depth)
        # In hardware the counter needs no reset: from any value it is within the buffer one cycle
        # later. The reset is for simulators.
        at, after = Signal(bits, name="at", attrs=UNMERGED), Signal(bits, name="after")
        m.d.comb += after.eq(Mux(at >= depth - 1, 0, at + 1))
        m.d.sync += at.eq(after)
        cell = memory_cell("line", width=self._width, depth=depth)
        write = WritePort(at, self.input_value("sent"), Const(1, 1))
        return add_memory(m, "line", cell, write=write, read=ReadPort(after, Const(1, 1)))
