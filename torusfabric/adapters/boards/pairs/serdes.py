"""Links on transceivers of an ECP5. The 8b10b code carries the clock, so no clock pair is needed.

LiteICLink provides the transceiver as Verilog (`transceiver`).
"""

from __future__ import annotations

from typing import Any

from amaranth.build.res import ResourceError
from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Signal, Value

from ....errors import InputError
from .links import PhysicalLayer
from .words import ByteEncoding

__all__ = ["FABRIC_MHZ", "SerdesLayer"]

#: Rate of a pair in Mbit/s, with ten bits for a byte. Why 2500: transceivers of all speed grades
#: reach it, and so does the logic behind them, which would need 250 MHz at 5000 Mbit/s.
RATE = 2500

#: Cycles of the transceiver clock per cycle of the fabric clock.
CYCLES = 5

#: Frequency of the fabric clock, in MHz.
FABRIC_MHZ = RATE / 10 / ByteEncoding.gear / CYCLES

#: Length of the reset of the transceivers, in cycles of the fabric clock.
RESET_CYCLES = 1024


class SerdesLayer(PhysicalLayer):
    """Physical layer of transceivers: one to each neighbour, with one pair in each direction.

    Parameters
    ----------
    platform : Platform
        Platform of an ECP5 board with resources ``serdes``.

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
                "--phy serdes needs an ECP5 with a resource serdes in its board file, which this "
                "board is not; choose another board"
            ) from None
        from .transceiver import transceiver_files

        self._transceiver = transceiver_files
        self.units = ByteEncoding(CYCLES)

    def add_common_hardware(self, m: Module, platform: Any) -> None:
        """Add the common reset of all transceivers."""
        count = Signal(range(RESET_CYCLES + 1), name="reset_count")
        self._reset = Signal(name="transceiver_reset", init=1)
        m.d.sync += self._reset.eq(count != RESET_CYCLES)
        with m.If(count != RESET_CYCLES):
            m.d.sync += count.eq(count + 1)

    def attach_bundle(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Add the transceiver to one neighbour with pins and clocks; return the received bytes.

        `bundle` is the number of the neighbour among those of the board. `sent` has the bytes, each
        with its control flag, for one cycle of the sending domain.
        """
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
        for way, domain in (
            ("tx", self.sending_domain(bundle)),
            ("rx", self.receiving_domain(bundle)),
        ):
            clocks[f"o_{way}_clk_out"] = clock = Signal(
                name=f"{domain}_clock", attrs={"keep": True}
            )
            m.domains += ClockDomain(domain, reset_less=True)
            m.d.comb += ClockSignal(domain).eq(clock)
            platform.add_clock_constraint(clock, 1e6 * RATE / 10 / ByteEncoding.gear)
        m.submodules.transceiver = Instance(
            module,
            i_sys_clk=ClockSignal(), i_sys_rst=self._reset, i_refclk=platform.oscillator,
            o_tx_p=port.tx.p, o_tx_n=port.tx.n, i_rx_p=port.rx.p, i_rx_n=port.rx.n,
            i_sent=sent, o_came=came, **clocks,
        )  # fmt: skip
        return came
