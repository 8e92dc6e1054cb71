"""Links on transceivers of an ECP5: words in the 8b10b code, which carry their clock."""

from __future__ import annotations

from typing import Any

from amaranth.build.res import ResourceError
from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Signal, Value

from ....errors import InputError
from .links import Layer
from .words import Bytes

__all__ = ["FABRIC_MHZ", "SerdesLayer"]

#: Mbit/s of a pair: what transceivers of all speed grades carry, and what logic behind them can
#: take; 5,000 would be 250 MHz. Ten bits are a byte.
RATE = 2500

#: Cycles of the transceiver's clock in one of the fabric.
CYCLES = 5

#: The clock of the fabric.
FABRIC_MHZ = RATE / 10 / Bytes.gear / CYCLES

#: Cycles for which a transceiver is reset.
RESET = 1024


class SerdesLayer(Layer):
    """A pair to and from each neighbour of a board, at a transceiver of an ECP5, by LiteICLink.

    Raises
    ------
    InputError
        If the platform has no transceivers.
    """

    resource = "serdes"

    def __init__(self, platform: Any) -> None:
        try:
            platform.lookup(self.resource, 0)
            self._oscillator = platform.oscillator_mhz
        except (ResourceError, AttributeError):
            raise InputError(
                "Board for serdes must be an ECP5 with a resource serdes, not without"
            ) from None
        from .transceiver import transceiver

        self._transceiver = transceiver
        self.units = Bytes(CYCLES)

    def begin(self, m: Module, platform: Any) -> None:
        """Make what resets all transceivers."""
        count = Signal(range(RESET + 1), name="reset_count")
        self._reset = Signal(name="transceiver_reset", init=1)
        m.d.sync += self._reset.eq(count != RESET)
        with m.If(count != RESET):
            m.d.sync += count.eq(count + 1)

    def attach(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Add a transceiver."""
        dual, channel = platform.transceivers[bundle]
        module = f"transceiver_{dual}_{channel}"
        files = self._transceiver(
            module, dual=dual, channel=channel, mhz=self._oscillator, mbits=RATE
        )
        for name, text in files.items():
            platform.add_file(name, text)
        port = platform.request(self.resource, bundle, dir="-")
        came = Signal(len(sent), name="came")
        clocks = {}
        for way, domain in (("tx", self.sending(bundle)), ("rx", self.receiving(bundle))):
            clocks[f"o_{way}_clk_out"] = clock = Signal(
                name=f"{domain}_clock", attrs={"keep": True}
            )
            m.domains += ClockDomain(domain, reset_less=True)
            m.d.comb += ClockSignal(domain).eq(clock)
            platform.add_clock_constraint(clock, 1e6 * RATE / 10 / Bytes.gear)
        m.submodules.transceiver = Instance(
            module,
            i_sys_clk=ClockSignal(), i_sys_rst=self._reset, i_refclk=platform.oscillator,
            o_tx_p=port.tx.p, o_tx_n=port.tx.n, i_rx_p=port.rx.p, i_rx_n=port.rx.n,
            i_sent=sent, o_came=came, **clocks,
        )  # fmt: skip
        return came
