"""Runs of the tools of a build: one placer and router after another until the clock is reached.

The user is `build`. The platform's script runs all tools at once and prints nothing, and place and
route of a large fabric takes minutes. So progress is read from the logs that the tools write
meanwhile. Routers log the connections that are left: if that number no longer falls, the device is
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
from ..synthesis.nextpnr import PLACEMENT_FAILURE, PlacerWatch, StuckPlacer, is_placed, utilisation
from .catalogue import Board, Misfit
from .needs import smaller_fabric_hint
from .plan import NAME, REPORT, SCRIPT, plan_build

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["LOGS", "SCARCE", "STAGES", "Progress", "over_capacity_message", "run_plan", "run_plans",
           "build_stage"]  # fmt: skip

#: Callback with the number of stages done, the number of all stages, and the present stage.
Progress = Callable[[int, int, str], object]

#: Stages of a build: synthesis, placement, routing and packing.
STAGES = 4

#: Line of nextpnr's ``router1``, whose last number is matched: the connections that are left. The
#: numbers before it count connections made with and without removing others, in all and lately.
_UNROUTED = re.compile(r"^Info:\s+\d+ \|\s+\d+\s+\d+ \|\s+\d+\s+\d+ \|\s*(\d+)\|", re.MULTILINE)

#: Line of nextpnr's ``router2``: wires that more than one connection still uses.
_OVERUSED = re.compile(r"^Info:\s+iter=\d+ wires=\d+ overused=(\d+) ", re.MULTILINE)

#: Log of place and route, and all logs that a build keeps.
ROUTING_LOG = f"{NAME}.tim"
LOGS = (f"{NAME}.rpt", ROUTING_LOG, "build.log")

#: Possible names of the netlist; the platform decides.
NETLISTS = (f"{NAME}.json", f"{NAME}.syn.json")

#: Names in nextpnr of logic cells and block RAMs, which run out first.
SCARCE = ("ICESTORM_LC", "ICESTORM_RAM", "TRELLIS_COMB", "DP16KD", "LUT4", "BSRAM")

#: Share of a resource in use. Above it, a cell without a location means that the design is too
#: large. Why below 1: flip-flops share a tile only with those of the same enable and reset, so that
#: many locations stay empty.
_CROWDED_SHARE = 0.75

#: Errors of place and route for a bitstream that fits by its counts, but has no location for a cell
#: or no route for a wire, or is too slow.
_MISFIT = re.compile(
    r"ERROR: .*([Uu]nable to (find|place)|[Ff]ailed to (find|place|expand|route)|"
    r"Routing design failed|\(FAIL at )"
)


class TooLarge(Misfit):
    """Error for a bitstream with more cells than the device has; no placer can help."""


class BuildJob(NamedTuple):
    """Data of a build that every run of its tools needs, whatever placer and router are used.

    Parameters
    ----------
    topology : Topology
        Topology of the fabric, for advice in errors.
    board : Board
        Board of the bitstream.
    work : Path
        Folder in which the tools run.
    progress : function of (int, int, str), optional
        Called with the number of stages done, the number of all stages, and the present stage.
    """

    topology: Topology
    board: Board
    work: Path
    progress: Progress | None


class TimeLimit(NamedTuple):
    """The time limit of a run of the tools.

    Parameters
    ----------
    end : float
        Time at which the run is stopped, as `time.monotonic` counts it, in seconds.
    stops_stuck_placer : bool
        True to stop a placer that is stuck before that time, because another one may succeed.
    """

    end: float
    stops_stuck_placer: bool


def run_plans(
    fabric: "Fabric", board: Board, work: Path, *, baud: int, progress: Progress | None = None
) -> None:
    """Build a bitstream with one placer and router of the board after another, until one succeeds.

    Success means that the bitstream is placed, routed and reaches the clock.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top.
    board : Board
        Board of the bitstream.
    work : Path
        Folder in which the tools run.
    baud : int
        Bits a second of the serial line.
    progress : function of (int, int, str), optional
        Called with the number of stages done, the number of all stages, and the present stage.

    Raises
    ------
    Misfit
        If the bitstream does not fit, misses the clock with all routers, or takes longer than the
        board's minutes.
    WorkFailed
        If a tool fails for another reason.
    """
    build = BuildJob(fabric.program.topology, board, work, progress)
    end = time.monotonic() + 60 * board.minutes
    placers, routers = board.placers or (None,), board.routers or (None,)
    for placer in placers:
        last = placer == placers[-1]
        half = (time.monotonic() + end) / 2
        patience = TimeLimit(end if last else half, stops_stuck_placer=not last)
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


def run_plan(plan: BuildPlan, build: BuildJob, patience: TimeLimit) -> None:
    """Run the tools once, with the placer and the router in the script of `plan`.

    Parameters
    ----------
    plan : BuildPlan
        Files and script, as `plan_build` returns them. They are written into the folder of the
        build, which is emptied first.
    build : BuildJob
        Folder, board and progress function of the build.
    patience : TimeLimit
        Time limit of this run.

    Raises
    ------
    InputError
        If the folder cannot be written.
    Misfit, WorkFailed
        If the build fails, as in `run_plans`.
    """
    board, work = build.board, build.work
    if work.exists():
        shutil.rmtree(work)
    try:
        plan.extract(work)
    except OSError as error:
        raise InputError(
            f"Folder {work} cannot be written ({error.strerror}); choose another by -o"
        ) from None
    for tool in ("yosys", *board.packer):
        tools.require(tool)  # a missing tool is reported before hours are spent
    tools.set_environment()
    watch_placer = PlacerWatch(work / ROUTING_LOG)

    def watch_tools() -> None:
        done, text = build_stage(work, NAME, board.products[0])
        if build.progress is not None:
            build.progress(done, STAGES, text)
        if time.monotonic() >= patience.end:
            raise _timeout_error(build, text)
        if patience.stops_stuck_placer:
            watch_placer()

    try:
        tools.run("sh", [SCRIPT], folder=work, log="build.log", what=board.name,
                  look=watch_tools)  # fmt: skip
    except (Misfit, StuckPlacer):
        raise
    except WorkFailed as error:
        raise _missing_result_error(build) or _failure_error(build) or error from None
    if failure := _missing_result_error(build):
        raise failure
    for log in LOGS:
        (work / log).touch()


def _timeout_error(build: BuildJob, doing: str) -> Misfit:
    """Return the error, with advice, of a build that was out of time in the stage `doing`."""
    board, log = build.board, build.work / ROUTING_LOG
    share, used = _scarcest_resource(read_log(log), SCARCE)
    state = f"{doing}; it takes {used}, {100 * share:.0f} %" if used else doing
    return Misfit(
        f"Build for {board.name} must end within {board.minutes:g} min, not still be at work "
        f"({state}): --minutes allows more, but fewer nodes, bits or flits are routed sooner; "
        f"{smaller_fabric_hint(build.topology, 1.0, board)} (log: {log})"
    )


def _missing_result_error(build: BuildJob) -> WorkFailed | None:
    """Return an error that names the first tool whose result file is missing.

    The result is None if all files exist. It is also None if the log of the tool contains an error,
    because `_failure_error` reports that one. `build` has the folder of the files.
    """
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
                f"Tool {tool} {tools.origin_text(tool, tools.require(tool))} ended without writing "
                f"{names[0]} (log: {work / 'build.log'})"
            )
    return None


def read_log(path: Path) -> str:
    """Return the text of the log at `path`; empty if it does not exist."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _failure_error(build: BuildJob) -> WorkFailed | None:
    """Return the error of a failed build, found in the logs of the tools; None if they have none.

    The error names the resource that the device has too little of, or quotes the error of a tool.
    """
    work, board = build.work, build.board
    for path in (work / ROUTING_LOG, work / "build.log"):
        if found := over_capacity_message(read_log(path), build.topology, board):
            return TooLarge(f"{found} (log: {path})")
    for path in (work / ROUTING_LOG, work / f"{NAME}.rpt", work / "build.log"):
        output = read_log(path)
        if "ERROR" in output:
            error = Misfit if _MISFIT.search(output) else WorkFailed
            line = tools.error_line(output)
            return error(f"Build failed on {board.name}: {line} (log: {path})")
    return None


def build_stage(folder: Path, name: str, product: str) -> tuple[int, str]:
    """Return the stage that a build has reached, from 0 to `STAGES` - 1, and its name.

    The stage follows from the files in the folder and from the log of place and route.

    Parameters
    ----------
    folder : Path
        Folder in which the tools run.
    name : str
        Stem of the names of the files there.
    product : str
        Name of the bitstream's file.
    """
    log = folder / f"{name}.tim"
    if not log.exists():
        return 0, "synthesis"
    text = read_log(log)
    if (folder / product).exists() or "Program finished normally" in text:
        return 3, "packing the bitstream"
    if "Routing.." not in text and "Running router2" not in text:
        return 1, "placing"
    if left := _UNROUTED.findall(text):
        return 2, f"routing, {left[-1]} connections to go"
    if shared := _OVERUSED.findall(text):
        return 2, f"routing, {shared[-1]} wires to be shared no more"
    return 2, "routing"


def over_capacity_message(log: str, topology: Topology, board: Board) -> str | None:
    """Return an error message if a log of place and route shows that the design is too large.

    The message advises a smaller torus for the board. The result is None if the failure has another
    cause.
    """
    share, scarcest = _scarcest_resource(log)
    if share <= 1 and not (share > _CROWDED_SHARE and PLACEMENT_FAILURE.search(log)):
        return None
    need = "need" if share > 1 else "crowd it with"
    text = f"Fabric must fit into {board.name}, not {need} {scarcest}"
    return f"{text} ({100 * share:.0f} %); {smaller_fabric_hint(topology, share, board)}"


def _scarcest_resource(log: str, names: Sequence[str] = ()) -> tuple[float, str]:
    """Return the resource of which the bitstream uses the largest share of the device.

    Parameters
    ----------
    log : str
        Log of place and route.
    names : sequence of str
        Resources to look at; all by default.

    Returns
    -------
    share : float
        Share of the device in use, above 1 if it is exceeded; 0 if the log has no figures.
    text : str
        Text such as "812 of 1280 ICESTORM_LC"; empty if the log has no figures.
    """
    rows = [row for row in utilisation(log) if row[2] and (not names or row[0] in names)]
    share = lambda row: row[1] / row[2]
    name, used, most = max(rows, key=share, default=("", 0, 1))
    return used / most, f"{used} of {most} {name}" if name else ""
