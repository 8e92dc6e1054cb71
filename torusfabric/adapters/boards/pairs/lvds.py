"""Links on differential pairs of an ECP5, with a clock pair beside the data pairs.

Each pair carries four bits in each cycle of a fast clock (gearing 4:1, GDDRX2). A PLL makes the
fast clock from the fabric clock. Clock edges lie in the middle of data bits.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal, Value
from amaranth.lib import io

from ....errors import InputError
from ....fpga.board.platforms import ecp5_pll
from .links import PhysicalLayer, count_pairs
from .words import BitEncoding

__all__ = ["LvdsLayer"]

#: Highest rate of a pair in Mbit/s with GDDRX2, by speed grade of the ECP5. Source: data sheet
#: FPGA-DS-02012, external switching characteristics.
RATES = {"6": 624, "7": 700, "8": 800}

#: Least cycles of the fast clock per cycle of the fabric clock.
LEAST_CYCLES = 5

#: Clock domain that sends on all pairs. Names of related clocks begin with it.
SENDING_DOMAIN = "lvds"

#: Bits that a clock pair sends in each cycle: one change per bit.
CLOCK_PATTERN = 0b0101


class LvdsLayer(PhysicalLayer):
    """Physical layer of differential pairs: data pairs and one clock pair to each neighbour.

    An equal number of data pairs and a clock pair lead from the neighbour to the board.

    Parameters
    ----------
    platform : Platform
        Platform of an ECP5 board with resources ``lvds``.

    Raises
    ------
    InputError
        If the platform has no such pairs, or its clock is too fast for the pairs.
    """

    resource = "lvds"

    def __init__(self, platform: Any) -> None:
        rate = RATES.get(getattr(platform, "speed", ""), 0)
        self._mhz = platform.default_clk_frequency / 1e6
        if not rate or not count_pairs(platform, self.resource, 0):
            raise InputError(
                "--phy lvds needs an ECP5 with a resource lvds in its board file, which this "
                "board is not; choose another board"
            )
        self._cycles = int(rate // (BitEncoding.gear * self._mhz))
        if self._cycles < LEAST_CYCLES:
            raise InputError(
                f"Clock of the board must be at most {rate / BitEncoding.gear / LEAST_CYCLES:g} "
                "MHz for "
                f"pairs of {rate} Mbit/s, not {self._mhz:g}"
            )
        self.units = BitEncoding(self._cycles)

    def sending_domain(self, bundle: int) -> str:
        """Return the clock domain that sends on the pairs to a neighbour, the same for all."""
        return SENDING_DOMAIN

    def add_common_hardware(self, m: Module, platform: Any) -> None:
        """Add the PLL and the sending clocks.

        The sending domain has the fast clock. The serializers also need an edge clock of twice that
        frequency. A second edge clock, a quarter of its cycle later, drives the clock pairs, so
        that clock edges lie in the middle of data bits.
        """
        fast, quarter = (Signal(name=f"pll_{name}") for name in ("fast", "quarter"))
        m.submodules.pll = ecp5_pll(
            ClockSignal(),
            fast,
            times=2 * self._cycles,
            divided=2,
            o_CLKOS=quarter,
            # A quarter cycle of the edge clock is half a cycle of the PLL's oscillator. FPHASE
            # counts eighths of an oscillator cycle.
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_DIV=2,
            p_CLKOS_CPHASE=1,
            p_CLKOS_FPHASE=4,
        )
        self._edges = (
            _add_half_clock(m, fast, SENDING_DOMAIN),
            _add_edge_clock(m, quarter, f"{SENDING_DOMAIN}_late"),
        )

    def attach_bundle(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Add the serializers, deserializers and pins of all pairs to one neighbour.

        `bundle` is the number of these pairs on the board. `sent` has four bits for each pair in
        one cycle of the sending domain. The result has the four received bits of each pair.
        """
        port, count = (
            platform.request(self.resource, bundle, dir="-"),
            len(sent) // BitEncoding.gear,
        )
        m.submodules.tx_buffer = data = io.Buffer("o", port.tx[:count])
        m.submodules.tx_clk_buffer = clock = io.Buffer("o", port.tx_clk)
        edge, late = self._edges
        pairs = [(data.o[k], sent.word_select(k, BitEncoding.gear), edge) for k in range(count)]
        for name, (pair, bits, at) in enumerate(
            [*pairs, (clock.o, Const(CLOCK_PATTERN, BitEncoding.gear), late)]
        ):
            m.submodules[f"out_{name}"] = Instance(
                "ODDRX2F",
                i_SCLK=ClockSignal(SENDING_DOMAIN),
                i_ECLK=at,
                i_RST=Const(0),
                o_Q=pair,
                **{f"i_D{k}": bits[k] for k in range(BitEncoding.gear)},
            )
        came, rx_clock = _add_pair_inputs(m, port, count, self.receiving_domain(bundle))
        platform.add_clock_constraint(rx_clock, 2e6 * self._cycles * self._mhz)
        return came


def _add_edge_clock(m: Module, clock: Signal, name: str) -> Signal:
    """Put a clock on an edge clock network, and return the clock on this network.

    An *edge clock* is a fast clock of the ECP5 for the cells at its pins. The names of the cell and
    of the returned signal begin with `name`.
    """
    edge = Signal(name=f"{name}_edge")
    m.submodules[f"{name}_edge"] = Instance(
        "ECLKSYNCB", i_ECLKI=clock, i_STOP=Const(0), o_ECLKO=edge
    )
    return edge


def _add_half_clock(m: Module, clock: Signal, domain: str) -> Signal:
    """Add a clock domain with half the frequency of a clock, and return that clock.

    The returned signal is on an edge clock network, for the fast cells at pins. `domain` is the
    name of the new domain.
    """
    edge = _add_edge_clock(m, clock, domain)
    m.domains += ClockDomain(domain, reset_less=True)
    m.submodules[f"{domain}_half"] = Instance(
        "CLKDIVF", p_DIV="2.0", i_CLKI=edge, i_RST=Const(0), i_ALIGNWD=Const(0),
        o_CDIVX=ClockSignal(domain),
    )  # fmt: skip
    return edge


def _add_pair_inputs(m: Module, port: Any, count: int, domain: str) -> tuple[Signal, Signal]:
    """Receive four bits a cycle on each pair of a bundle, in a domain of the received clock.

    `port` has the pins of the bundle, and `count` is the number of pairs that are used. `domain` is
    the name of the clock domain to add.

    Returns
    -------
    nibbles : Signal
        Four bits of each pair, the first bit lowest.
    clock : Signal
        Received clock, undivided.
    """
    m.submodules.rx_buffer = data = io.Buffer("i", port.rx[:count])
    m.submodules.rx_clk_buffer = clock = io.Buffer("i", port.rx_clk)
    came = Signal(name=f"{domain}_clock", attrs={"keep": True})
    m.d.comb += came.eq(clock.i)
    edge = _add_half_clock(m, came, domain)
    nibbles = Signal(count * BitEncoding.gear, name=f"{domain}_nibbles")
    for pair in range(count):
        delayed = Signal(name=f"delayed_{pair}")
        m.submodules[f"delay_{pair}"] = Instance(
            "DELAYG", p_DEL_MODE="ECLK_CENTERED", i_A=data.i[pair], o_Z=delayed
        )
        m.submodules[f"in_{pair}"] = Instance(
            "IDDRX2F",
            i_D=delayed, i_SCLK=ClockSignal(domain), i_ECLK=edge, i_RST=Const(0),
            i_ALIGNWD=Const(0),
            **{f"o_Q{k}": nibbles[BitEncoding.gear * pair + k] for k in range(BitEncoding.gear)},
        )  # fmt: skip
    return nibbles, came
