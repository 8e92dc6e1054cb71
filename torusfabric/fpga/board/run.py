"""Running the tools of a build, one placer and router after another until the clock is reached."""

import re
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from amaranth.build.run import BuildPlan

from ...errors import InputError, WorkFailed
from ...toolchain import tools
from ..synthesis.nextpnr import PlacerWatch, StuckPlacer, is_placed
from .capacity import advice, crowding, over_capacity
from .catalogue import Board
from .limits import Misfit
from .plan import NAME, REPORT, SCRIPT, plan_build
from .watch import STAGES, Progress, stage

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["LOGS", "ROUTING_LOG", "read_log", "run_plan", "run_plans"]

#: The logs that are kept of a build.
LOGS = (f"{NAME}.rpt", f"{NAME}.tim", "build.log")

#: Names that the netlist has on one platform or another.
NETLISTS = (f"{NAME}.json", f"{NAME}.syn.json")

#: The log of place and route.
ROUTING_LOG = f"{NAME}.tim"

#: Errors of place and route for a bitstream that has room by the numbers, and yet finds no location
#: for a cell or no path for a wire, or is too slow.
_MISFIT = re.compile(
    r"ERROR: .*([Uu]nable to (find|place)|[Ff]ailed to (find|place|expand|route)|"
    r"Routing design failed|\(FAIL at )"
)


class TooLarge(Misfit):
    """There are more cells than places, whatever places them."""


@dataclass(frozen=True)
class Patience:
    """How long a run of the tools is waited for.

    Parameters
    ----------
    end : float
        When it is given up, by the monotonic clock.
    leaves : bool
        Whether a placer that is stuck is left before.
    """

    end: float
    leaves: bool


def run_plans(
    fabric: "Fabric",
    board: Board,
    work: Path,
    *,
    baud: int,
    progress: Progress | None = None,
) -> None:
    """Run plans with one placer and router of the board after the other.

    That ends with the first that places everything, routes it and reaches the clock.

    Raises
    ------
    Misfit
        If the bitstream does not fit, none reaches the clock, or it takes longer than the minutes
        of the board.
    WorkFailed
        If a tool fails for another reason.
    """
    run = partial(_run_routers, fabric, board, work, baud=baud, progress=progress)
    end = time.monotonic() + 60 * board.minutes
    *others, last = board.placers or (None,)
    for placer in others:
        half = (time.monotonic() + end) / 2
        try:
            return run(placer, Patience(half, leaves=True))
        except TooLarge:
            raise
        except WorkFailed:
            pass  # the next one may come to an end
    return run(last, Patience(end, leaves=False))


def _run_routers(
    fabric: "Fabric",
    board: Board,
    work: Path,
    placer: str | None,
    patience: Patience,
    *,
    baud: int,
    progress: Progress | None,
) -> None:
    """Run plans with a placer and one router after the other; parameters as of `run_plans`."""
    *others, last = board.routers or (None,)
    for router in others:
        plan, _ = plan_build(fabric, board, baud=baud, router=router, placer=placer)
        try:
            return run_plan(plan, work, fabric, board, progress, patience)
        except TooLarge:
            raise
        except Misfit:
            if not is_placed(read_log(work / ROUTING_LOG)) or time.monotonic() >= patience.end:
                raise  # another router would change nothing
    plan, _ = plan_build(fabric, board, baud=baud, router=last, placer=placer)
    return run_plan(plan, work, fabric, board, progress, patience)


def run_plan(
    plan: BuildPlan,
    work: Path,
    fabric: "Fabric",
    board: Board,
    progress: Progress | None,
    patience: Patience,
) -> None:
    """Run a plan in a folder of its own; other parameters as of `run_plans`."""
    if work.exists():
        shutil.rmtree(work)
    try:
        plan.extract(work)
    except OSError as error:
        raise InputError(f"Folder must be writable, not {work} ({error.strerror})") from None
    for tool in ("yosys", *board.packer):
        tools.require(tool)  # a missing tool is reported before hours are spent
    tools.set_environment()
    watch_placer = PlacerWatch(work / ROUTING_LOG)

    def look() -> None:
        done, text = stage(work, NAME, board.products[0])
        if progress is not None:
            progress(done, STAGES, text)
        if time.monotonic() >= patience.end:
            raise _too_slow(work, fabric, board, text)
        if patience.leaves:
            watch_placer()

    try:
        tools.run("sh", [SCRIPT], folder=work, log="build.log", what=board.name,
                  look=look)  # fmt: skip
    except (Misfit, StuckPlacer):
        raise
    except WorkFailed as error:
        raise _without_result(work, board) or _reason(work, fabric, board) or error from None
    if failure := _without_result(work, board):
        raise failure
    for log in LOGS:
        (work / log).touch()


def _too_slow(work: Path, fabric: "Fabric", board: Board, doing: str) -> Misfit:
    """What a build was doing when its time was over, and what may be done about it."""
    used = crowding(read_log(work / ROUTING_LOG))
    state = f"{doing}; it takes {used}" if used else doing
    return Misfit(
        f"Build for {board.name} must end within {board.minutes:g} min, not still be at work "
        f"({state}): --minutes allows more, but fewer nodes, bits or flits are routed sooner; "
        f"{advice(fabric.program.topology, 1.0, board)} (log: {work / ROUTING_LOG})"
    )


def _without_result(work: Path, board: Board) -> WorkFailed | None:
    """The first tool of a build that ended without an error, and without its result."""
    results = (
        ("yosys", NETLISTS, f"{NAME}.rpt"),
        (board.packer[0], [REPORT], ROUTING_LOG),
        (board.packer[-1], board.products[:1], "build.log"),
    )
    for tool, names, log in results:
        if not any((work / name).exists() for name in names):
            if re.search("error", read_log(work / log), re.IGNORECASE):
                return None
            return WorkFailed(
                f"Tool {tool} {tools.origin(tool, tools.require(tool))} must write {names[0]}, "
                f"not end without it (log: {work / 'build.log'})"
            )
    return None


def read_log(path: Path) -> str:
    """The text of a log; empty if there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _reason(work: Path, fabric: "Fabric", board: Board) -> WorkFailed | None:
    """Why a build failed: by how much the bitstream is too large, or the line of the error."""
    for path in (work / ROUTING_LOG, work / "build.log"):
        if found := over_capacity(read_log(path), fabric.program.topology, board):
            return TooLarge(f"{found} (log: {path})")
    for path in (work / ROUTING_LOG, work / f"{NAME}.rpt", work / "build.log"):
        output = read_log(path)
        if "ERROR" in output:
            error = Misfit if _MISFIT.search(output) else WorkFailed
            line = tools.error_line(output)
            return error(f"Build failed on {board.name}: {line} (log: {path})")
    return None
