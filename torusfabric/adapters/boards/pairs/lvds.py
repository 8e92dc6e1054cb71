"""Links on differential pairs of an ECP5: four bits a cycle of a clock that goes with them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal, Value
from amaranth.lib import io

from ....errors import InputError
from ....fpga.board.platforms import pll
from .links import Layer, pairs_of
from .words import Bits

__all__ = ["LvdsLayer"]

#: Mbit/s of a pair with gears of four bits, by the speed grade of an ECP5: its data sheet,
#: FPGA-DS-02012, external switching characteristics of GDDRX2.
RATES = {"6": 624, "7": 700, "8": 800}

#: The least cycles of the faster clock in one of the fabric.
LEAST_CYCLES = 5

#: The domain of what sends on all pairs, and what its name and that of others begin with.
SENDING = "lvds"

#: A clock as what it is sent as: a change in each bit.
CLOCK = 0b0101


class LvdsLayer(Layer):
    """Pairs for data, and one for their clock, to and from each neighbour: gears of four bits.

    Raises
    ------
    InputError
        If the platform has no such pairs, or its clock is too fast for them.
    """

    resource = "lvds"

    def __init__(self, platform: Any) -> None:
        rate = RATES.get(getattr(platform, "speed", ""), 0)
        self._mhz = platform.default_clk_frequency / 1e6
        if not rate or not pairs_of(platform, self.resource, 0):
            raise InputError("Board for lvds must be an ECP5 with a resource lvds, not without")
        self._cycles = int(rate // (Bits.gear * self._mhz))
        if self._cycles < LEAST_CYCLES:
            raise InputError(
                f"Clock of the board must be at most {rate / Bits.gear / LEAST_CYCLES:g} MHz for "
                f"pairs of {rate} Mbit/s, not {self._mhz:g}"
            )
        self.units = Bits(self._cycles)

    def sending(self, bundle: int) -> str:
        """Return the one domain of all bundles."""
        return SENDING

    def begin(self, m: Module, platform: Any) -> None:
        """Make the clock of what sends, so many times as fast as that of the fabric.

        It has a clock for bits, twice as fast, and the same a quarter of a cycle later: a clock
        that goes with the data has its edges in the middle of bits.
        """
        fast, quarter = (Signal(name=f"pll_{name}") for name in ("fast", "quarter"))
        m.submodules.pll = pll(
            ClockSignal(), fast, times=2 * self._cycles, divided=2, o_CLKOS=quarter,
            # A quarter of a cycle of the bits is half a cycle of the oscillator, in eighths of
            # that.
            p_CLKOS_ENABLE="ENABLED", p_CLKOS_DIV=2, p_CLKOS_CPHASE=1, p_CLKOS_FPHASE=4,
        )  # fmt: skip
        self._edges = _divided(m, fast, SENDING), _edge(m, quarter, f"{SENDING}_late")

    def attach(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Add the pins of a bundle: send four bits a cycle on each pair, and their clock."""
        port, count = platform.request(self.resource, bundle, dir="-"), len(sent) // Bits.gear
        m.submodules.tx_buffer = data = io.Buffer("o", port.tx[:count])
        m.submodules.tx_clk_buffer = clock = io.Buffer("o", port.tx_clk)
        edge, late = self._edges
        pairs = [(data.o[k], sent.word_select(k, Bits.gear), edge) for k in range(count)]
        for name, (pair, bits, at) in enumerate([*pairs, (clock.o, Const(CLOCK, Bits.gear), late)]):
            m.submodules[f"out_{name}"] = Instance(
                "ODDRX2F",
                i_SCLK=ClockSignal(SENDING), i_ECLK=at, i_RST=Const(0), o_Q=pair,
                **{f"i_D{k}": bits[k] for k in range(Bits.gear)},
            )  # fmt: skip
        came, rx_clock = _receive_pairs(m, port, count, self.receiving(bundle))
        platform.add_clock_constraint(rx_clock, 2e6 * self._cycles * self._mhz)
        return came


def _edge(m: Module, clock: Signal, name: str) -> Signal:
    """An edge clock."""
    edge = Signal(name=f"{name}_edge")
    m.submodules[f"{name}_edge"] = Instance(
        "ECLKSYNCB", i_ECLKI=clock, i_STOP=Const(0), o_ECLKO=edge
    )
    return edge


def _divided(m: Module, clock: Signal, domain: str) -> Signal:
    """An edge clock, and a domain of half its frequency."""
    edge = _edge(m, clock, domain)
    m.domains += ClockDomain(domain, reset_less=True)
    m.submodules[f"{domain}_half"] = Instance(
        "CLKDIVF", p_DIV="2.0", i_CLKI=edge, i_RST=Const(0), i_ALIGNWD=Const(0),
        o_CDIVX=ClockSignal(domain),
    )  # fmt: skip
    return edge


def _receive_pairs(m: Module, port: Any, count: int, domain: str) -> tuple[Signal, Signal]:
    """Receive four bits a cycle by each pair of a bundle; its clock makes a domain.

    Returns those of all pairs, the first bit lowest, and the clock as it comes.
    """
    m.submodules.rx_buffer = data = io.Buffer("i", port.rx[:count])
    m.submodules.rx_clk_buffer = clock = io.Buffer("i", port.rx_clk)
    came = Signal(name=f"{domain}_clock", attrs={"keep": True})
    m.d.comb += came.eq(clock.i)
    edge = _divided(m, came, domain)
    nibbles = Signal(count * Bits.gear, name=f"{domain}_nibbles")
    for pair in range(count):
        delayed = Signal(name=f"delayed_{pair}")
        m.submodules[f"delay_{pair}"] = Instance(
            "DELAYG", p_DEL_MODE="ECLK_CENTERED", i_A=data.i[pair], o_Z=delayed
        )
        m.submodules[f"in_{pair}"] = Instance(
            "IDDRX2F",
            i_D=delayed, i_SCLK=ClockSignal(domain), i_ECLK=edge, i_RST=Const(0),
            i_ALIGNWD=Const(0),
            **{f"o_Q{k}": nibbles[Bits.gear * pair + k] for k in range(Bits.gear)},
        )  # fmt: skip
    return nibbles, came
