"""`build`: from a fabric to a bitstream and a report, with the platform's script and our tools.

The user is the command ``build``. The same fabric for the same board gives the same bytes: tools
get neither random seeds nor times, and placers and routers are tried in the order of the board. The
one exception is a placer that runs out of time on a slow machine, but not on a fast one.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.build import Platform

from ...errors import InputError, WorkFailed
from ...toolchain import tools
from ...toolchain.cache import Cache, digest
from ...toolchain.files import AnyPath, require_writable
from ...toolchain.folders import hold_lock, make_folder, work_folder
from ...toolchain.owned import require_replaceable_files, write_file_set
from ...verilog.manifest import manifest
from ..bridge import BAUD
from ..bridge.gateware import with_wishbone
from .catalogue import Board
from .needs import check_fabric
from .plan import REPORT, SCRIPT, plan_build
from .run import LOGS, STAGES, Progress, run_plans

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["BuildResult", "build", "fabric_facts"]

#: Version of cached values; it increases when their form or meaning changes.
_FORMAT = 3

#: Name of the maker in the record of the files that it owns; see `write_file_set`.
_MAKER = "build"

#: File that is written last, so that its presence says that all files are there.
_SEAL = "report.json"

#: Folder of the files that tools wrote, logs included; it is there after a failure, too.
_TOOLS = "build"

#: Keys that the report copies from the manifest of the fabric behind its bus.
MANIFEST_KEYS = ("nodes", "width", "flits", "max_flits", "stride", "bus", "modes", "tables")


@dataclass(frozen=True)
class BuildResult:
    """The result of a build.

    Parameters
    ----------
    folder : Path
        Folder of the bitstream and ``report.json``.
    report : dict
        Contents of ``report.json``.
    cached : bool
        True if the bitstream is from the cache.
    """

    folder: Path
    report: dict[str, Any]
    cached: bool

    @property
    def bitstream(self) -> Path:
        """Path of the bitstream."""
        return self.folder / str(self.report["bitstream"])


def build(  # noqa: PLR0913 (one choice of a user each)
    fabric: "Fabric",
    board: Board,
    folder: AnyPath,
    *,
    baud: int = BAUD,
    command: str | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> BuildResult:
    """Build a bitstream: the fabric with the bridge through which a computer reaches it.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top.
    folder : path
        Folder for the bitstream and ``report.json``. Its subfolder ``build`` gets the inputs of the
        tools, their logs and the report of place and route.
    baud : int
        Bits a second of the serial line.
    command : str, optional
        Command line that repeats the build, for the report.
    cache : Cache, optional
        Cache of builds; with a `RenewingCache` the tools run even if the bitstream is cached.
    progress : function of (int, int, str), optional
        Called while the tools run, with the number of stages done, of all stages, and the name of
        the present stage.
    force : bool
        True if files in the folder that no build wrote, or that were changed since, may be
        replaced.

    Raises
    ------
    InputError
        If the folder cannot be written. If it has files that no build wrote, or that were changed
        since, and `force` is False.
    Misfit
        If the bitstream does not fit (sometimes known before any tool runs), misses the clock of
        the board, or takes longer than the board's minutes.
    WorkFailed
        If a tool fails.
    MissingTool
        If a tool is not installed.
    """
    folder, cache = Path(folder), cache or Cache()
    check_fabric(board, fabric)

    with make_folder(folder):
        require_writable(folder / _SEAL)
        names = (_SEAL, *board.products)
        require_replaceable_files(folder, _MAKER, names, force=force)
        plan, platform = plan_build(fabric, board, baud=baud)
        versions = {tool: tools.version(tool) for tool in ("yosys", *board.packer)}
        waiting = partial(_report_waiting, progress, folder)
        ways = board.placers, board.routers
        key = digest(_FORMAT, "bitstream", plan.script, dict(plan.files), ways, versions)
        kept = (*board.products, REPORT, SCRIPT, *LOGS)
        written = sorted({*kept, *plan.files})
        names = (*names, *(f"{_TOOLS}/{name}" for name in written))
        # Builds in the same folder wait for each other, and so do builds of the same bitstream.
        with (
            hold_lock(folder, waiting=waiting),
            cache.lock(key, waiting=waiting),
            work_folder("build") as outer,
        ):
            require_replaceable_files(folder, _MAKER, names, force=force)
            write_file_set(folder, _MAKER, {}, seal=_SEAL, force=force)
            work, contents = outer / _TOOLS, dict[str, bytes]()
            work.mkdir()
            try:
                cached = cache.fetch_files(key, kept, work)
                if not cached:
                    run_plans(fabric, board, work, baud=baud, progress=progress)
                    cache.put_files(key, {name: work / name for name in kept})
                report = _build_report(fabric, board, platform, work, baud=baud, versions=versions)
                report["command"] = command
                contents = {name: (work / name).read_bytes() for name in board.products}
                contents[_SEAL] = (json.dumps(report, indent=2) + "\n").encode()
            except (InputError, WorkFailed) as error:
                # The logs move to the folder, so the message has to name them there.
                moved = str(error).replace(str(work), str(folder / _TOOLS))
                error.args = (moved, *error.args[1:])
                raise
            finally:
                there = [name for name in written if (work / name).is_file()]
                contents |= {f"{_TOOLS}/{name}": (work / name).read_bytes() for name in there}
                write_file_set(folder, _MAKER, contents, seal=_SEAL, force=force)
    return BuildResult(folder, report, cached)


def _report_waiting(progress: Progress | None, folder: Path) -> None:
    """Tell `progress` that this build waits for another one: in its folder, or of equal contents.

    `folder` is the folder of this build, for the message.
    """
    if progress is not None:
        progress(0, STAGES, f"waiting for another build in {folder}, or of the same")


def _build_report(
    fabric: "Fabric",
    board: Board,
    platform: Platform,
    work: Path,
    *,
    baud: int,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Return the contents of ``report.json``; equal builds have equal reports.

    `board` is the board of the bitstream, and `baud` the bits a second of its serial line. `work`
    is the folder in which the tools ran, and `versions` has the version of each tool.
    """
    placed = json.loads((work / REPORT).read_text(encoding="utf-8"))
    rates = [clock["achieved"] for clock in placed["fmax"].values()]
    # The script names the placer and the router that succeeded, if the board has a choice.
    script = (work / SCRIPT).read_text(encoding="utf-8")
    bitstream = board.products[0]
    return {
        "board": board.name,
        "title": board.title,
        "uart": board.pins,
        "baud": baud,
        "clock_mhz": platform.default_clk_frequency / 1e6,
        "fmax_mhz": round(min(rates), 2) if rates else None,
        **dict(re.findall(r" --(placer|router) (\w+)", script)),
        "resources": {k: v for k, v in placed["utilization"].items() if v["used"]},
        **fabric_facts(fabric),
        "bitstream": bitstream,
        "sha256": hashlib.sha256((work / bitstream).read_bytes()).hexdigest(),
        "tools": dict(versions),
    }


def fabric_facts(fabric: "Fabric") -> dict[str, Any]:
    """Return the entries of ``report.json`` about the fabric, by their keys.

    These are its topology, collectives, algorithms, digest and predicted cycles, and entries of its
    manifest, such as those about the bus.
    """
    facts = manifest(with_wishbone(fabric), command="", files=[])
    program = fabric.program
    return {
        "topology": str(program.topology),
        "collective": ",".join(map(program.name_of, program.modes)),
        "algorithm": ",".join(mode.schedule.algorithm for mode in program.modes),
        "digest": f"{fabric.digest:08x}",
        "predicted_cycles": fabric.predicted_cycles,
        **{name: facts[name] for name in MANIFEST_KEYS if name in facts},
    }
