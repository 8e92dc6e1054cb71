"""From a fabric to a bitstream, with the platform's own script and our tools.

The same fabric for the same board gives the same bytes: no tool is given a random seed or a time,
and where there are several routers they are tried in the order of the board, each to its end.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache, digest
from ...toolchain.files import writable
from ..selftest import BAUD
from ..selftest.image import facts_of, self_test
from ..selftest.uart import divisor_for
from .capacity import over_capacity
from .limits import Misfit
from .top import BoardTop
from .watch import watched

__all__ = ["NAME", "Built", "build", "plan_build"]

#: The name of all files of a build.
NAME = "selftest"

REPORT = f"{NAME}.report.json"

#: What else is kept of a build: what the tools said.
LOGS = (f"{NAME}.rpt", f"{NAME}.tim", "build.log")

#: What place and route says of an image that has room by the numbers, and yet finds no place for a
#: cell or no way for a wire, or is too slow.
_NO_WAY = re.compile(
    r"ERROR: .*([Uu]nable to (find|place)|[Ff]ailed to (find|place|expand|route)|"
    r"Routing design failed|\(FAIL at )"
)

#: Counted up when what is kept under the same key changes its form or meaning.
_FORMAT = 2


@dataclass(frozen=True)
class Built:
    """What a build made.

    Parameters
    ----------
    folder : Path
    report : dict
        What is in ``report.json``.
    cached : bool
        Whether it had been made before.
    """

    folder: Path
    report: dict
    cached: bool

    @property
    def bitstream(self):
        """The file to load."""
        return self.folder / self.report["bitstream"]


def plan_build(fabric, board, *, baud=BAUD, router=None):
    """All that goes into a build, before any tool runs.

    Parameters
    ----------
    fabric : Fabric
    board : Board
    baud : int
    router : str, optional
        What to route with; by default the first one of the board.

    Returns
    -------
    plan : BuildPlan
    platform : Platform
    """
    platform = board.make_platform()
    image = self_test(fabric, divisor_for(platform.default_clk_frequency, baud))
    arguments = [f"--report {REPORT}"]
    if router := router or next(iter(board.routers), None):
        arguments.append(f"--router {router}")
    arguments.append(board.options.get("nextpnr_opts", ""))
    options = board.options | {"nextpnr_opts": " ".join(arguments).strip()}
    return platform.prepare(BoardTop(image, board), NAME, emit_src=False, **options), platform


def build(
    fabric,
    board,
    folder,
    *,
    baud=BAUD,
    force=False,
    command=None,
    cache=None,
    progress=None,
):
    """Make the bitstream of the self-test image of a fabric.

    Parameters
    ----------
    fabric : Fabric
        With a host port.
    board : Board
    folder : path
        Where the bitstream, ``report.json`` and, in ``build``, the files of the tools go.
    baud : int
        Bits a second of the serial line.
    force : bool
        Build even what was built before.
    command : str, optional
        The command that makes the same again, for the report.
    cache : Cache, optional
    progress : function of (int, int, str), optional
        Called while the tools run, with the number of stages done, of all stages, and what is
        being done.

    Returns
    -------
    Built

    Raises
    ------
    Misfit
        If it does not fit, or its clock cannot be reached.
    WorkFailed
        If a tool fails.
    MissingTool
        If a tool is not installed.
    """
    folder, cache = Path(folder), cache or Cache()
    writable(folder / "report.json", make=True)
    plan, platform = plan_build(fabric, board, baud=baud)
    versions = {tool: tools.version(tool) for tool in ("yosys", *board.packer)}
    key = digest(_FORMAT, "bitstream", plan.script, dict(plan.files), board.routers, versions)
    for name in ("report.json", *board.products):
        (folder / name).unlink(missing_ok=True)
    kept, work = (*board.products, REPORT, *LOGS), folder / "build"
    cached = not force and _fetch(cache, key, kept, work)
    if not cached:
        _run_all(plan, work, fabric, board, baud, progress)
        for name in kept:
            cache.put_file(key, name, work / name)
    for name in board.products:
        shutil.copyfile(work / name, folder / name)
    report = _report(fabric, board, platform, work, baud, versions) | {"command": command}
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return Built(folder, report, cached)


def _fetch(cache, key, names, folder):
    """Copy files of an earlier build out of the cache, if all are there."""
    files = [cache.get_file(key, name) for name in names]
    if not all(files):
        return False
    folder.mkdir(exist_ok=True)
    for file, name in zip(files, names, strict=True):
        shutil.copyfile(file, folder / name)
    return True


def _run_all(plan, work, fabric, board, baud, progress):
    """Run the first plan, and plans with other routers as long as one is routed too slow."""
    for router in board.routers[1:]:
        try:
            return _run(plan, work, fabric, board, progress)
        except Misfit:
            if "Routing globals" not in _text(work / f"{NAME}.tim"):
                raise  # there was no place for it, whatever it would have been routed with
        plan, _ = plan_build(fabric, board, baud=baud, router=router)
    return _run(plan, work, fabric, board, progress)


def _run(plan, work, fabric, board, progress):
    """Run the platform's script in a folder of its own."""
    if work.exists():
        shutil.rmtree(work)
    try:
        plan.extract(work)
    except OSError as error:
        raise InputError(f"Folder must be writable, not {work} ({error.strerror})") from None
    for tool in ("yosys", *board.packer):
        tools.require(tool)  # compiled once, and missed before hours are spent
    tools.set_environment()
    try:
        with watched(work, NAME, board.products[0], progress):
            tools.run("sh", [f"{plan.script}.sh"], folder=work, log="build.log", what=board.name)
    except WorkFailed as error:
        raise _reason(work, fabric, board) or error from None
    for log in LOGS:
        (work / log).touch()


def _reason(work, fabric, board):
    """Why a build failed, as an error with the line that matters, or how much too large it is."""
    for log in (f"{NAME}.tim", "build.log"):
        path = work / log
        netlist = next(
            (p for p in (work / f"{NAME}.json", work / f"{NAME}.syn.json") if p.exists()), None
        )
        if found := over_capacity(_text(path), fabric, board, netlist):
            return Misfit(f"{found} (log: {path})")
    for log in (f"{NAME}.tim", f"{NAME}.rpt", "build.log"):
        path = work / log
        said = _text(path)
        if "ERROR" in said:
            kind = Misfit if _NO_WAY.search(said) else WorkFailed
            line = tools.error_line(said)
            return kind(f"Build failed on {board.name}: {line} (log: {path})")
    return None


def _text(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _report(fabric, board, platform, work, baud, versions):
    """What was made, as plain data; the same for the same build."""
    placed = json.loads((work / REPORT).read_text(encoding="utf-8"))
    bitstream = board.products[0]
    return {
        "board": board.name,
        "title": board.title,
        "uart": board.pins,
        "baud": baud,
        "clock_mhz": platform.default_clk_frequency / 1e6,
        "fmax_mhz": _slowest(placed),
        **({"router": _router(work, board)} if board.routers else {}),
        "resources": {k: v for k, v in placed["utilization"].items() if v["used"]},
        **facts_of(fabric),
        "bitstream": bitstream,
        "sha256": hashlib.sha256((work / bitstream).read_bytes()).hexdigest(),
        "tools": versions,
    }


def _slowest(placed):
    """The clock rate that was reached, in MHz: the slowest clock's."""
    rates = [clock["achieved"] for clock in placed["fmax"].values()]
    return round(min(rates), 2) if rates else None


def _router(work, board):
    """What a build was routed with: the log names all but nextpnr's first one."""
    said = _text(work / f"{NAME}.tim")
    return next((name for name in board.routers if f"Running {name}.." in said), "router1")
