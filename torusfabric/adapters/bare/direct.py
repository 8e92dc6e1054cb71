"""`DirectCount`: the outputs that all nodes of a core without memories share.

By these outputs the user's design knows which flit to inject, and which of its words arrive.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ...program.timing import DISTRIBUTION
from ...rtl.core.direct_port import DirectPort
from ...rtl.modules import Leaf, delayed

__all__ = ["DirectCount"]


class DirectCount(Leaf):
    """Module that outputs the number of the flit to inject, and counts the arriving words.

    It delays signals of the sequencer by `DISTRIBUTION`, as the registers on the way to the nodes
    do.

    Parameters
    ----------
    port : DirectPort
        The port of the nodes, which gives the widths.

    Members
    -------
    flit : In
        Number of the flit to inject, from the sequencer.
    arrives : In(1)
        High for cycles in which words arrive, from the sequencer.
    tx_address : Out
        Number of the flit to inject.
    rx_enable : Out(1)
        High in each cycle in which words arrive.
    rx_address : Out
        Number of cycles with `rx_enable` before this cycle, since the begin of the run.
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
        """Build the delay registers and the counter."""
        m = Module()
        m.d.comb += [
            self.tx_address.eq(delayed(m, self.value("flit"), DISTRIBUTION, "flit")),
            self.rx_enable.eq(delayed(m, self.value("arrives"), DISTRIBUTION, "arrives")),
        ]
        m.d.sync += self.rx_address.eq(Mux(self.rx_enable, self.rx_address + 1, 0))
        return m
