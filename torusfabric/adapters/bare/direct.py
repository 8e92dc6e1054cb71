"""The ports that all nodes of a core without memories share."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ...program.timing import DISTRIBUTION
from ...rtl.core.direct_port import DirectPort
from ...rtl.modules import Leaf, delayed

__all__ = ["DirectCount"]


class DirectCount(Leaf):
    """Shows which flit all nodes send, and counts the words that arrive at each.

    Members
    -------
    flit, arrives : In
        The number of the flit to send, and a strobe for words that arrive, in the cycle in which
        the sequencer sends such signals to the nodes.
    tx_address : Out
        The number of the flit to send.
    rx_enable : Out(1)
        High in each cycle in which words arrive.
    rx_address : Out
        The number of such cycles before this one, in this run.
    """

    def __init__(self, port: DirectPort) -> None:
        super().__init__(
            {
                "flit": In(port.flit_bits),
                "arrives": In(1),
                "tx_address": Out(port.flit_bits),
                "rx_enable": Out(1),
                "rx_address": Out(port.arrival_bits),
            }
        )
        self.rx_address = Signal(port.arrival_bits, reset_less=True, name="rx_address")

    def elaborate(self, platform: object) -> Module:
        """Build the counter, behind the registers that signals pass on their way to the nodes."""
        m = Module()
        m.d.comb += [
            self.tx_address.eq(delayed(m, self.value("flit"), DISTRIBUTION, "flit")),
            self.rx_enable.eq(delayed(m, self.value("arrives"), DISTRIBUTION, "arrives")),
        ]
        m.d.sync += self.rx_address.eq(Mux(self.rx_enable, self.rx_address + 1, 0))
        return m
