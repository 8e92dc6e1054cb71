"""`FlitCounter`: the outputs that all nodes of a direct core share.

In a direct core, nodes have no memories; the user's design *injects* flits into the network, and
takes the words that arrive. By these outputs it knows which flit to inject, and which words
arrive. In this example flit k is asked for in cycle n, and words arrive from cycle a on::

    cycle        n        n + 1     ..   a        a + 1    a + 2
    tx_address   k                       rx_enable = 1
    inject                flit k         rx_address = 0    1        2
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ...program.timing import DISTRIBUTION
from ...rtl.core.direct_port import DirectPort
from ...rtl.modules import Leaf, delay_value

__all__ = ["FlitCounter"]


class FlitCounter(Leaf):
    """Module that tells the user's design which flit to inject, and which words arrive.

    It is for a core without memories: the design sends (*injects*) a flit in the cycle after its
    number is on `tx_address`.

    It delays signals of the sequencer by `DISTRIBUTION` cycles, because the registers between
    sequencer and nodes delay the settings of routers by as many.

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
        Number of this cycle among those in which words arrive, from 0. In the cycle with the number
        ``k * steps + s - 1`` a node receives flit k of the blocks that arrive in step s; ``steps``
        is the number of steps, and steps count from 1.
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
            self.tx_address.eq(delay_value(m, self.input_value("flit"), DISTRIBUTION, "flit")),
            self.rx_enable.eq(delay_value(m, self.input_value("arrives"), DISTRIBUTION, "arrives")),
        ]
        m.d.sync += self.rx_address.eq(Mux(self.rx_enable, self.rx_address + 1, 0))
        return m
