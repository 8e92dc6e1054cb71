# amaranth: UnusedElaboratable=no
"""The plan of a build: the files and the script that Amaranth's platform makes for a bitstream."""

from typing import TYPE_CHECKING, Any

from amaranth.build import Platform
from amaranth.build.run import BuildPlan
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import io

from ...rtl.amaranth_private import no_inferred_names
from ..bridge import BAUD
from ..bridge.gateware import TIMEOUT_SECONDS, Gateware, clock_divisor
from .catalogue import Board

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["NAME", "REPORT", "SCRIPT", "BoardTop", "plan_build"]

#: Stem of the names of all files of a build.
NAME = "fabric"

#: Report of place and route.
REPORT = f"{NAME}.report.json"

#: Script that runs the tools.
SCRIPT = f"build_{NAME}.sh"


class BoardTop(Elaboratable):
    """The top of a bitstream: a fabric with its bridge, on the serial line and LEDs of a board.

    Parameters
    ----------
    gateware : Gateware
        The fabric with its bridge, or an empty design with the same pins.
    """

    def __init__(self, gateware: Any, board: Board) -> None:
        self._gateware, self._board = gateware, board

    def elaborate(self, platform: Any) -> Module:
        """Connect the gateware to the pins."""
        m = Module()
        # Place and route depends on the names of cells: another name here gives another result.
        m.submodules.image = gateware = self._gateware
        uart = platform.request(*self._board.uart, dir="-")
        m.submodules.rx_buffer = rx = io.Buffer("i", uart.rx)
        m.submodules.tx_buffer = tx = io.Buffer("o", uart.tx)
        m.d.comb += [gateware.rx.eq(rx.i), tx.o.eq(gateware.tx)]
        groups: dict[tuple[str, int], Any] = {}
        for lamp, (name, number, *part) in self._board.lamps.items():
            if (name, number) not in groups:
                groups[name, number] = platform.request(name, number, dir="-")
            group = groups[name, number]
            port = getattr(group, part[0]) if part else group
            m.submodules[f"{lamp}_buffer"] = buffer = io.Buffer("o", port)
            m.d.comb += buffer.o.eq(getattr(gateware, lamp))
        return m


def plan_build(
    fabric: "Fabric",
    board: Board,
    *,
    baud: int = BAUD,
    router: str | None = None,
    placer: str | None = None,
) -> tuple[BuildPlan, Platform]:
    """Return the inputs of the tools for a build: files, and a script that calls the tools.

    A second result is the platform of Amaranth that has made them.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top.
    baud : int
        Bits a second of the serial line.
    router, placer : str, optional
        Router and placer of place and route; by default the first ones of the board.
    """
    platform = board.make_platform()
    frequency = platform.default_clk_frequency
    gateware = Gateware(fabric, clock_divisor(frequency, baud), round(TIMEOUT_SECONDS * frequency))
    arguments = [f"--report {REPORT}"]
    for name, given, all_ in (("router", router, board.routers), ("placer", placer, board.placers)):
        if chosen := given or next(iter(all_), None):
            arguments.append(f"--{name} {chosen}")
    arguments.append(board.options.get("nextpnr_opts", ""))
    options: dict[str, Any] = board.options | {"nextpnr_opts": " ".join(arguments).strip()}
    with no_inferred_names():
        plan = platform.prepare(BoardTop(gateware, board), NAME, emit_src=False, **options)
    return plan, platform
