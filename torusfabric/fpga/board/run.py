"""Running the tools of a build, one placer and router after another until the clock is reached.

The platform's script runs all tools in one go and prints nothing, and place and route of a large
fabric takes minutes. What they are doing is read from the logs that they write meanwhile. Its
routers count what they still have to do: where that number does not sink any more, the device is
too crowded.
"""

import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from amaranth.build.run import BuildPlan

from ...errors import InputError, WorkFailed
from ...toolchain import tools
from ...topology import Topology
from ..synthesis.nextpnr import NO_PLACE, PlacerWatch, StuckPlacer, is_placed, utilisation
from .catalogue import Board, Misfit
from .needs import advice
from .plan import NAME, REPORT, SCRIPT, plan_build

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["LOGS", "SCARCE", "STAGES", "Progress", "over_capacity", "run_plan", "run_plans",
           "stage"]  # fmt: skip

#: Called with the number of stages done, of all stages, and what is being done.
Progress = Callable[[int, int, str], object]

#: Stages of a build: synthesis, placing, routing and packing.
STAGES = 4

#: A line of nextpnr's first router: connections made with and without removing others, the same
#: of the last thousand, and those to go.
_TO_GO = re.compile(r"^Info:\s+\d+ \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s*(\d+)\|", re.MULTILINE)

#: A line of its second router: wires that are still used for more than one connection.
_OVERUSED = re.compile(r"^Info:\s+iter=\d+ wires=\d+ overused=(\d+) ", re.MULTILINE)

#: The log of place and route, and all that are kept of a build.
ROUTING_LOG = f"{NAME}.tim"
LOGS = (f"{NAME}.rpt", ROUTING_LOG, "build.log")

#: Names that the netlist has on one platform or another.
NETLISTS = (f"{NAME}.json", f"{NAME}.syn.json")

#: The names that place and route has for logic cells and block RAMs, which run out first.
SCARCE = ("ICESTORM_LC", "ICESTORM_RAM", "TRELLIS_COMB", "DP16KD", "LUT4", "BSRAM")

#: From this share on, what finds no place does so for want of room: flip-flops share a tile only
#: with those of the same enable and reset, so that many locations stay empty.
_CROWDED = 0.75

#: Errors of place and route for a bitstream that has room by the numbers, and yet finds no location
#: for a cell or no path for a wire, or is too slow.
_MISFIT = re.compile(
    r"ERROR: .*([Uu]nable to (find|place)|[Ff]ailed to (find|place|expand|route)|"
    r"Routing design failed|\(FAIL at )"
)


class TooLarge(Misfit):
    """There are more cells than places, whatever places them."""


class Build(NamedTuple):
    """What is built, and where."""

    topology: Topology
    board: Board
    work: Path
    progress: Progress | None


class Patience(NamedTuple):
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
    fabric: "Fabric", board: Board, work: Path, *, baud: int, progress: Progress | None = None
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
    build = Build(fabric.program.topology, board, work, progress)
    end = time.monotonic() + 60 * board.minutes
    placers, routers = board.placers or (None,), board.routers or (None,)
    for placer in placers:
        last = placer == placers[-1]
        half = (time.monotonic() + end) / 2
        patience = Patience(end if last else half, leaves=not last)
        for router in routers:
            try:
                plan, _ = plan_build(fabric, board, baud=baud, router=router, placer=placer)
                return run_plan(plan, build, patience)
            except TooLarge:
                raise
            except WorkFailed as error:
                failure = error
            placed = isinstance(failure, Misfit) and is_placed(read_log(work / ROUTING_LOG))
            if not placed or time.monotonic() >= patience.end:
                break  # another router would change nothing, but the next placer may
    raise failure


def run_plan(plan: BuildPlan, build: Build, patience: Patience) -> None:
    """Run a plan in a folder of its own; errors are as of `run_plans`."""
    board, work = build.board, build.work
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
        if build.progress is not None:
            build.progress(done, STAGES, text)
        if time.monotonic() >= patience.end:
            raise _too_slow(build, text)
        if patience.leaves:
            watch_placer()

    try:
        tools.run("sh", [SCRIPT], folder=work, log="build.log", what=board.name,
                  look=look)  # fmt: skip
    except (Misfit, StuckPlacer):
        raise
    except WorkFailed as error:
        raise _without_result(build) or _reason(build) or error from None
    if failure := _without_result(build):
        raise failure
    for log in LOGS:
        (work / log).touch()


def _too_slow(build: Build, doing: str) -> Misfit:
    """What a build was doing when its time was over, and what may be done about it."""
    board, log = build.board, build.work / ROUTING_LOG
    share, used = _scarcest(read_log(log), SCARCE)
    state = f"{doing}; it takes {used}, {100 * share:.0f} %" if used else doing
    return Misfit(
        f"Build for {board.name} must end within {board.minutes:g} min, not still be at work "
        f"({state}): --minutes allows more, but fewer nodes, bits or flits are routed sooner; "
        f"{advice(build.topology, 1.0, board)} (log: {log})"
    )


def _without_result(build: Build) -> WorkFailed | None:
    """The first tool of a build that ended without an error, and without its result."""
    board, work = build.board, build.work
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


def _reason(build: Build) -> WorkFailed | None:
    """Why a build failed: by how much the bitstream is too large, or the line of the error."""
    work, board = build.work, build.board
    for path in (work / ROUTING_LOG, work / "build.log"):
        if found := over_capacity(read_log(path), build.topology, board):
            return TooLarge(f"{found} (log: {path})")
    for path in (work / ROUTING_LOG, work / f"{NAME}.rpt", work / "build.log"):
        output = read_log(path)
        if "ERROR" in output:
            error = Misfit if _MISFIT.search(output) else WorkFailed
            line = tools.error_line(output)
            return error(f"Build failed on {board.name}: {line} (log: {path})")
    return None


def stage(folder: Path, name: str, product: str) -> tuple[int, str]:
    """How far a build of files of a name has got, of `STAGES`, and what is being done."""
    log = folder / f"{name}.tim"
    if not log.exists():
        return 0, "synthesis"
    text = read_log(log)
    if (folder / product).exists() or "Program finished normally" in text:
        return 3, "packing the bitstream"
    if "Routing.." not in text and "Running router2" not in text:
        return 1, "placing"
    if left := _TO_GO.findall(text):
        return 2, f"routing, {left[-1]} connections to go"
    if shared := _OVERUSED.findall(text):
        return 2, f"routing, {shared[-1]} wires to be shared no more"
    return 2, "routing"


def over_capacity(log: str, topology: Topology, board: Board) -> str | None:
    """By how much a design is too large, and what would fit; None if that is not why it failed."""
    share, scarcest = _scarcest(log)
    if share <= 1 and not (share > _CROWDED and NO_PLACE.search(log)):
        return None
    need = "need" if share > 1 else "crowd it with"
    text = f"Fabric must fit into {board.name}, not {need} {scarcest}"
    return f"{text} ({100 * share:.0f} %); {advice(topology, share, board)}"


def _scarcest(log: str, names: Sequence[str] = ()) -> tuple[float, str]:
    """The resource, perhaps of some, that a design takes the largest share of; both numbers."""
    rows = [row for row in utilisation(log) if row[2] and (not names or row[0] in names)]
    share = lambda row: row[1] / row[2]
    name, used, most = max(rows, key=share, default=("", 0, 1))
    return used / most, f"{used} of {most} {name}" if name else ""
