"""Narrow cables: each flit of a slow link between boards is sent in parts.

If every link between boards carries a flit at most every n cycles, a cable has one n-th of the bits
of a flit, and takes n cycles for it. With flits of W bits and n = 3::

    cycle          c             c+1          c+2             c+L        L: latency of the link
    out-port       flit
    FlitSplitter   part 0        part 1       part 2
    FlitJoiner                                part 0 ..       flit

The router tells the splitter by a strobe when a flit begins. The joiner needs none: it shows the
last n parts, which are a flit in the cycle in which the schedule wants one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ....rtl.modules import Leaf

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["FlitJoiner", "FlitSplitter"]


class FlitSplitter(Leaf):
    """The sending end of a narrow cable: it cuts each flit into parts, lowest bits first.

    Members
    -------
    flit : In(flit_bits)
        The word of the out-port.
    sends : In(1)
        High in the cycle in which `flit` is to be sent.
    part : Out(width)
        Part 0 of the flit in that cycle, and one further part in each of the next cycles.
    """

    def __init__(self, plan: LinkPlan) -> None:
        self._bits, self._width = plan.flit_bits, plan.width
        super().__init__({"flit": In(self._bits), "sends": In(1), "part": Out(self._width)})

    def elaborate(self, platform: object) -> Module:
        """Build the register of the parts that are left."""
        m, left = Module(), Signal(self._bits - self._width, name="left", reset_less=True)
        word = Signal(self._bits, name="word")
        m.d.comb += [
            word.eq(Mux(self.input_value("sends"), self.input_value("flit"), left)),
            self.part.eq(word),
        ]
        m.d.sync += left.eq(word >> self._width)
        return m


class FlitJoiner(Leaf):
    """The receiving end of a narrow cable: it joins the last parts to a flit.

    Members
    -------
    came : In(width)
        The word that came over the cable.
    joined : Out(flit_bits)
        The flit whose last part is at `came`.
    """

    def __init__(self, plan: LinkPlan) -> None:
        self._bits, self._kept = plan.flit_bits, plan.width * (plan.parts - 1)
        super().__init__({"came": In(plan.width), "joined": Out(self._bits)})

    def elaborate(self, platform: object) -> Module:
        """Build the register of the parts before."""
        m, kept = Module(), Signal(self._kept, name="kept", reset_less=True)
        every = Cat(kept, self.input_value("came"))
        m.d.sync += kept.eq(every[len(every) - self._kept :])
        m.d.comb += self.joined.eq(every)
        return m
