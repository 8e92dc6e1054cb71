"""The pins of an ECP5: clocks of pairs, and four bits a cycle out of a pair and into one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import io

from .pairs import GEAR

__all__ = ["SENDING", "add_clocks", "receive_pairs", "receiving", "send_pairs"]

#: The domain of what sends on all pairs, and what its name and that of others begin with.
SENDING = "lvds"

#: A clock as what it is sent as: a change in each bit.
CLOCK = 0b0101


def receiving(bundle: int) -> str:
    """The domain of what receives on the pairs of a bundle."""
    return f"{SENDING}_rx_{bundle}"


def add_clocks(m: Module, cycles: int) -> tuple[Signal, Signal]:
    """Make the clock of what sends, so many times as fast as that of the fabric.

    Returns
    -------
    edge, late : Signal
        Its clock for bits, twice as fast, and the same a quarter of a cycle later: a clock that
        goes with the data has its edges in the middle of bits.
    """
    fast, quarter, locked = (Signal(name=f"pll_{name}") for name in ("fast", "quarter", "locked"))
    m.submodules.pll = Instance(
        "EHXPLLL",
        p_CLKI_DIV=1, p_CLKFB_DIV=2 * cycles, p_FEEDBK_PATH="CLKOP",
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_DIV=2, p_CLKOP_CPHASE=1, p_CLKOP_FPHASE=0,
        # A quarter of a cycle of the bits is half a cycle of the oscillator, in eighths of that.
        p_CLKOS_ENABLE="ENABLED", p_CLKOS_DIV=2, p_CLKOS_CPHASE=1, p_CLKOS_FPHASE=4,
        p_PLLRST_ENA="DISABLED", p_STDBY_ENABLE="DISABLED",
        i_CLKI=ClockSignal(), i_CLKFB=fast, i_RST=Const(0), i_STDBY=Const(0),
        i_PHASESEL0=Const(0), i_PHASESEL1=Const(0), i_PHASEDIR=Const(1), i_PHASESTEP=Const(1),
        i_PHASELOADREG=Const(1), i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0), i_ENCLKOS=Const(0),
        o_CLKOP=fast, o_CLKOS=quarter, o_LOCK=locked,
    )  # fmt: skip
    return _divided(m, fast, SENDING), _edge(m, quarter, f"{SENDING}_late")


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


def send_pairs(m: Module, port: Any, nibbles: Signal, edge: Signal, late: Signal) -> None:
    """Send four bits a cycle on each pair of a bundle, and its clock.

    Parameters
    ----------
    port : group of ports
        Of the platform, with ``tx`` and ``tx_clk``.
    nibbles : Signal
        Of all pairs in use.
    """
    m.submodules.tx_buffer = data = io.Buffer("o", port.tx[: len(nibbles) // GEAR])
    m.submodules.tx_clk_buffer = clock = io.Buffer("o", port.tx_clk)
    pairs = [(data.o[k], nibbles[GEAR * k : GEAR * (k + 1)], edge) for k in range(len(data.o))]
    for name, (pair, bits, at) in enumerate([*pairs, (clock.o, Const(CLOCK, GEAR), late)]):
        m.submodules[f"out_{name}"] = Instance(
            "ODDRX2F",
            i_SCLK=ClockSignal(SENDING), i_ECLK=at, i_RST=Const(0), o_Q=pair,
            **{f"i_D{k}": bits[k] for k in range(GEAR)},
        )  # fmt: skip


def receive_pairs(m: Module, port: Any, count: int, domain: str) -> tuple[Signal, Signal]:
    """Receive four bits a cycle by each pair of a bundle; its clock makes a domain.

    Returns
    -------
    nibbles : Signal
        Of all pairs, the first bit lowest.
    clock : Signal
        As it comes.
    """
    m.submodules.rx_buffer = data = io.Buffer("i", port.rx[:count])
    m.submodules.rx_clk_buffer = clock = io.Buffer("i", port.rx_clk)
    came = Signal(name=f"{domain}_clock")
    m.d.comb += came.eq(clock.i)
    edge = _divided(m, came, domain)
    nibbles = Signal(count * GEAR, name=f"{domain}_nibbles")
    for pair in range(count):
        delayed = Signal(name=f"delayed_{pair}")
        m.submodules[f"delay_{pair}"] = Instance(
            "DELAYG", p_DEL_MODE="ECLK_CENTERED", i_A=data.i[pair], o_Z=delayed
        )
        m.submodules[f"in_{pair}"] = Instance(
            "IDDRX2F",
            i_D=delayed, i_SCLK=ClockSignal(domain), i_ECLK=edge, i_RST=Const(0),
            i_ALIGNWD=Const(0),
            **{f"o_Q{k}": nibbles[GEAR * pair + k] for k in range(GEAR)},
        )  # fmt: skip
    return nibbles, came
