"""Amaranth's platforms as builds take them: by tools of today, and of families with a flow."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from ...errors import InputError

__all__ = ["pll", "slower", "up_to_date"]

#: What the oscillator of a PLL of an ECP5 runs at, in MHz: its data sheet, FPGA-DS-02012.
PLL_MHZ = 400, 800

#: The place-and-route tool that Amaranth calls for Gowin, which is no more, and its successor.
_FORMER, _TODAY = "nextpnr-gowin", "nextpnr-himbaechel-gowin"

#: The place-and-route tools of families that builds know.
_FLOWS = {"nextpnr-ice40", "nextpnr-ecp5", _TODAY}

#: Amaranth's command of the former tool, with the options of its successor.
_PLACE_AND_ROUTE = rf"""
    {{{{invoke_tool("{_TODAY}")}}}}
        {{{{quiet("--quiet")}}}}
        {{{{get_override("nextpnr_opts")|options}}}}
        --log {{{{name}}}}.tim
        --device {{{{platform.part}}}}
        --vopt family={{{{platform._chipdb_device}}}}
        --vopt cst={{{{name}}}}.cst
        --json {{{{name}}}}.syn.json
        --write {{{{name}}}}.pnr.json
"""


def up_to_date(platform: Any, board: str) -> Any:
    """The platform of a board, changed so that it calls tools that there are.

    Raises
    ------
    InputError
        If no build knows the tools of its family.
    """
    if _FORMER in platform.required_tools:
        platform.__class__ = _himbaechel(type(platform))
    if _FLOWS.isdisjoint(platform.required_tools):
        classes = type(platform).__mro__
        vendors = (c for c in classes if c.__module__.startswith("amaranth.vendor."))
        vendor = next(vendors, type(platform)).__name__.removesuffix("Platform")
        family = getattr(platform, "family", None)
        device = f"{vendor} {family}" if isinstance(family, str) else vendor
        raise InputError(
            f"Platform of board {board} must be of iCE40 by IceStorm, ECP5 by Trellis or Gowin by "
            f"Apicula, not of {device} by {getattr(platform, 'toolchain', 'other tools')}"
        )
    return platform


def _himbaechel(base: Any) -> type[Any]:
    """A platform for Gowin with the place-and-route tool of today."""

    class Himbaechel(base):
        @property
        def required_tools(self) -> list[str]:
            """The tools that the build script calls."""
            return [_TODAY if tool == _FORMER else tool for tool in super().required_tools]

        @property
        def command_templates(self) -> list[str]:
            """The commands of the build script, that of place and route replaced."""
            texts: list[str] = super().command_templates
            return [_PLACE_AND_ROUTE if f'"{_FORMER}"' in text else text for text in texts]

    return Himbaechel


def pll(
    clock: Any, out: Signal, *, times: int = 1, by: int = 1, divided: int, **more: Any
) -> Instance:
    """A PLL of an ECP5: a clock times an integer, by another one.

    Parameters
    ----------
    out : Signal
        The clock that it makes.
    divided : int
        What its oscillator is divided by for that.
    **more
        Of its other clocks.
    """
    return Instance(
        "EHXPLLL",
        p_CLKI_DIV=by, p_CLKFB_DIV=times, p_FEEDBK_PATH="CLKOP",
        p_CLKOP_ENABLE="ENABLED", p_CLKOP_DIV=divided, p_CLKOP_CPHASE=divided - 1,
        p_CLKOP_FPHASE=0, p_PLLRST_ENA="DISABLED", p_STDBY_ENABLE="DISABLED",
        i_CLKI=clock, i_CLKFB=out, i_RST=Const(0), i_STDBY=Const(0),
        i_PHASESEL0=Const(0), i_PHASESEL1=Const(0), i_PHASEDIR=Const(1), i_PHASESTEP=Const(1),
        i_PHASELOADREG=Const(1), i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0), i_ENCLKOS=Const(0),
        o_CLKOP=out, **more,
    )  # fmt: skip


def slower(platform: Any, mhz: float) -> Any:
    """A platform of an ECP5, changed so that its fabric has a slower clock than its oscillator.

    Raises
    ------
    InputError
        If the oscillator is no whole number of times as fast.
    """
    oscillator = platform.default_clk_frequency / 1e6
    if getattr(platform, "family", None) != "ecp5" or oscillator % mhz:
        raise InputError(
            f"Board must be an ECP5 with an oscillator of a multiple of {mhz:g} MHz, not "
            f"{oscillator:g} MHz"
        )
    platform.__class__ = _slower(type(platform), mhz)
    return platform


def _slower(base: Any, mhz: float) -> type[Any]:
    """A platform with a PLL between its oscillator and all that it carries."""

    class Slower(base):
        #: The clock of the board.
        oscillator = Signal(name="oscillator")

        @property
        def oscillator_mhz(self) -> float:
            """Of the board."""
            return float(super().default_clk_frequency / 1e6)

        @property
        def default_clk_frequency(self) -> float:
            """Of what it carries."""
            return 1e6 * mhz

        def create_missing_domain(self, name: str) -> Any:
            """The domain of the fabric, which is reset until its clock is right."""
            if name != "sync":
                return super().create_missing_domain(name)
            m, made, locked = Module(), Signal(name="slower_clock"), Signal(name="pll_locked")
            port = self.request(self.default_clk, dir="-")
            m.submodules.clk_buffer = buffer = io.Buffer("i", port)
            by = round(self.oscillator_mhz / mhz)
            m.submodules.pll = pll(
                buffer.i, made, by=by, divided=int(PLL_MHZ[1] // mhz), o_LOCK=locked
            )
            m.domains.sync = ClockDomain()
            m.d.comb += [self.oscillator.eq(buffer.i), ClockSignal().eq(made)]
            m.submodules.reset = ResetSynchronizer(~locked, domain="sync")
            return m

    return Slower
