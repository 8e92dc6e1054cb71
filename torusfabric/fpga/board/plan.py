"""The plan of a build: the files and the script that the platform makes for a bitstream."""

from typing import TYPE_CHECKING, Any

from amaranth.build import Platform
from amaranth.build.run import BuildPlan

from ...rtl.modules import given_names
from ..bridge import BAUD
from ..bridge.gateware import PATIENCE, Gateware
from ..bridge.uart import divisor_for
from .catalogue import Board
from .top import BoardTop

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["NAME", "REPORT", "SCRIPT", "plan_build"]

#: The name of all files of a build.
NAME = "fabric"

#: The report of place and route.
REPORT = f"{NAME}.report.json"

#: The script that runs the tools.
SCRIPT = f"build_{NAME}.sh"


def plan_build(
    fabric: "Fabric",
    board: Board,
    *,
    baud: int = BAUD,
    router: str | None = None,
    placer: str | None = None,
) -> tuple[BuildPlan, Platform]:
    """All that goes into a build, before any tool runs.

    Parameters
    ----------
    fabric : Fabric
        With the host top.
    baud : int
        Bits a second of the serial line.
    router : str, optional
        What to route with; by default the first router of the board.
    placer : str, optional
        What to place with; by default the first placer of the board.

    Returns
    -------
    plan : BuildPlan
    platform : Platform
    """
    platform = board.make_platform()
    frequency = platform.default_clk_frequency
    gateware = Gateware(fabric, divisor_for(frequency, baud), round(PATIENCE * frequency))
    arguments = [f"--report {REPORT}"]
    if router := router or next(iter(board.routers), None):
        arguments.append(f"--router {router}")
    if placer := placer or next(iter(board.placers), None):
        arguments.append(f"--placer {placer}")
    arguments.append(board.options.get("nextpnr_opts", ""))
    options: dict[str, Any] = board.options | {"nextpnr_opts": " ".join(arguments).strip()}
    with given_names():
        plan = platform.prepare(BoardTop(gateware, board), NAME, emit_src=False, **options)
    return plan, platform
