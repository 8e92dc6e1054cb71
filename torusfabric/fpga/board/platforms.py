"""Changes to Amaranth's platforms: current place-and-route tools, and slower clocks."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Const, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from ...errors import InputError

__all__ = ["ecp5_pll", "with_slower_clock", "with_current_tools"]

#: Range of the oscillator in an ECP5 PLL, in MHz, from its data sheet FPGA-DS-02012.
PLL_MHZ = 400, 800

#: Former place-and-route tool for Gowin, which Amaranth calls, and its successor.
_FORMER_TOOL, _CURRENT_TOOL = "nextpnr-gowin", "nextpnr-himbaechel-gowin"

#: Place-and-route tools that a build can run.
_KNOWN_TOOLS = {"nextpnr-ice40", "nextpnr-ecp5", _CURRENT_TOOL}

#: Amaranth's command for the former tool, with the options of its successor.
_PLACE_AND_ROUTE = rf"""
    {{{{invoke_tool("{_CURRENT_TOOL}")}}}}
        {{{{quiet("--quiet")}}}}
        {{{{get_override("nextpnr_opts")|options}}}}
        --log {{{{name}}}}.tim
        --device {{{{platform.part}}}}
        --vopt family={{{{platform._chipdb_device}}}}
        --vopt cst={{{{name}}}}.cst
        --json {{{{name}}}}.syn.json
        --write {{{{name}}}}.pnr.json
"""


def with_current_tools(platform: Any, board: str) -> Any:
    """Return a platform of Amaranth, changed so that it calls the present tools of its family.

    Amaranth's platforms of Gowin devices call a place-and-route tool that is no longer current.
    `board` is the name of the board, for an error message.

    Raises
    ------
    InputError
        If a build cannot run the tools of its family.
    """
    if _FORMER_TOOL in platform.required_tools:
        platform.__class__ = _himbaechel_class(type(platform))
    if _KNOWN_TOOLS.isdisjoint(platform.required_tools):
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


def _himbaechel_class(base: Any) -> type[Any]:
    """Return a platform class for Gowin devices that calls the present place-and-route tool.

    The tool is nextpnr with the architecture "himbaechel". `base` is Amaranth's platform class,
    which calls an older tool and from which the result inherits.
    """

    class Himbaechel(base):
        @property
        def required_tools(self) -> list[str]:
            """Tools that the build script calls."""
            return [
                _CURRENT_TOOL if tool == _FORMER_TOOL else tool for tool in super().required_tools
            ]

        @property
        def command_templates(self) -> list[str]:
            """Commands of the build script, with the current place-and-route command."""
            texts: list[str] = super().command_templates
            return [_PLACE_AND_ROUTE if f'"{_FORMER_TOOL}"' in text else text for text in texts]

    return Himbaechel


def ecp5_pll(
    clock: Any, out: Signal, *, times: int = 1, by: int = 1, divided: int, **more: Any
) -> Instance:
    """Return an ECP5 PLL, whose output has the frequency of `clock` times `times` / `by`.

    Parameters
    ----------
    clock : Value
        Input clock.
    out : Signal
        Output clock, which is also the feedback.
    times, by : int
        Feedback divider and input divider, which determine the output frequency.
    divided : int
        Output divider: the oscillator inside the PLL runs at the output frequency times `divided`,
        which must be within `PLL_MHZ`.
    **more
        Further ports and parameters of the instance, for example for other output clocks.
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


def with_slower_clock(platform: Any, mhz: float) -> Any:
    """Return an ECP5 platform, changed so that the fabric has a slower clock than the oscillator.

    Raises
    ------
    InputError
        If the device is no ECP5, or the oscillator no multiple of `mhz`.
    """
    oscillator = platform.default_clk_frequency / 1e6
    if getattr(platform, "family", None) != "ecp5" or oscillator % mhz:
        raise InputError(
            f"Board must be an ECP5 with an oscillator of a multiple of {mhz:g} MHz, not "
            f"{oscillator:g} MHz"
        )
    platform.__class__ = _slower_clock_class(type(platform), mhz)
    return platform


def _slower_clock_class(base: Any, mhz: float) -> type[Any]:
    """Return a platform class with a PLL between the oscillator and the design.

    `base` is the platform class from which the result inherits, and `mhz` the clock rate of the
    design in MHz.
    """

    class SlowerClock(base):
        #: Clock of the board, before the PLL.
        oscillator = Signal(name="oscillator")

        @property
        def oscillator_mhz(self) -> float:
            """Frequency of the board's oscillator, in MHz."""
            return float(super().default_clk_frequency / 1e6)

        @property
        def default_clk_frequency(self) -> float:
            """Frequency of the design's clock, in Hz."""
            return 1e6 * mhz

        def create_missing_domain(self, name: str) -> Any:
            """Return the clock domain ``sync`` of the design, in reset until the PLL locks.

            A domain with another `name` is left to the base class.
            """
            if name != "sync":
                return super().create_missing_domain(name)
            m, made, locked = Module(), Signal(name="slower_clock"), Signal(name="pll_locked")
            port = self.request(self.default_clk, dir="-")
            m.submodules.clk_buffer = buffer = io.Buffer("i", port)
            by = round(self.oscillator_mhz / mhz)
            m.submodules.pll = ecp5_pll(
                buffer.i, made, by=by, divided=int(PLL_MHZ[1] // mhz), o_LOCK=locked
            )
            m.domains.sync = ClockDomain()
            m.d.comb += [self.oscillator.eq(buffer.i), ClockSignal().eq(made)]
            m.submodules.reset = ResetSynchronizer(~locked, domain="sync")
            return m

    return SlowerClock
