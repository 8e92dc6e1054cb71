"""From a fabric to a bitstream, with the platform's own script and our tools.

The same fabric for the same board gives the same bytes: no tool is given a random seed or a time,
and where there are several placers or routers they are tried in the order of the board. Only a
placer that runs out of time may do so on one machine, and not on a faster one.
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
from ...toolchain.files import AnyPath, writable
from ...toolchain.folders import locked, made_folder, work_folder
from ...toolchain.owned import require_owned, write_owned
from ...verilog.manifest import manifest
from ..bridge import BAUD
from ..bridge.gateware import behind_bus
from .catalogue import Board
from .needs import check_fabric
from .plan import REPORT, SCRIPT, plan_build
from .run import LOGS, STAGES, Progress, run_plans

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Built", "build", "fabric_facts"]

#: Counted up when what is kept under the same key changes its form or meaning.
_FORMAT = 3

#: What writes the files.
_MAKER = "build"

#: The file by which a reader knows that all are there.
_SEAL = "report.json"

#: The folder of the files that tools wrote, logs among them: they are there after a failure, too.
_TOOLS = "build"

#: What stands in a report as in the manifest of the fabric behind its bus.
FACTS = ("nodes", "width", "flits", "max_flits", "stride", "bus", "modes", "tables")


@dataclass(frozen=True)
class Built:
    """What a build made.

    Parameters
    ----------
    report : dict
        The content of ``report.json``.
    cached : bool
        Whether it had been made before.
    """

    folder: Path
    report: dict[str, Any]
    cached: bool

    @property
    def bitstream(self) -> Path:
        """The file to load."""
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
) -> Built:
    """Make the bitstream of a fabric behind its bridge.

    Parameters
    ----------
    fabric : Fabric
        With the host top.
    folder : path
        Where the bitstream and ``report.json`` go, and in ``build`` the inputs of the tools, their
        logs and the report of place and route.
    baud : int
        Bits a second of the serial line.
    command : str, optional
        The command that makes the same again, for the report.
    cache : Cache, optional
        Where builds are kept; a `RenewingCache` builds even what was built before.
    progress : function of (int, int, str), optional
        Called while the tools run, with the number of stages done, of all stages, and what is
        being done.
    force : bool
        Whether files of others in the folder are replaced.

    Raises
    ------
    InputError
        If the folder cannot be written, or files in it that others wrote or changed would be
        replaced.
    Misfit
        If the bitstream does not fit, which may be known before any tool runs, if the clock of the
        board is not reached, or if that takes longer than the minutes of the board.
    WorkFailed
        If a tool fails.
    MissingTool
        If a tool is not installed.
    """
    folder, cache = Path(folder), cache or Cache()
    check_fabric(board, fabric)

    with made_folder(folder):
        writable(folder / _SEAL)
        names = (_SEAL, *board.products)
        require_owned(folder, _MAKER, names, force=force)
        plan, platform = plan_build(fabric, board, baud=baud)
        versions = {tool: tools.version(tool) for tool in ("yosys", *board.packer)}
        waiting = partial(_wait, progress, folder)
        ways = board.placers, board.routers
        key = digest(_FORMAT, "bitstream", plan.script, dict(plan.files), ways, versions)
        kept = (*board.products, REPORT, SCRIPT, *LOGS)
        written = sorted({*kept, *plan.files})
        names = (*names, *(f"{_TOOLS}/{name}" for name in written))
        # Builds in one folder wait for each other, and so do builds of the same.
        with (
            locked(folder, waiting=waiting),
            cache.lock(key, waiting=waiting),
            work_folder("build") as outer,
        ):
            require_owned(folder, _MAKER, names, force=force)
            write_owned(folder, _MAKER, {}, seal=_SEAL, force=force)
            work, contents = outer / _TOOLS, dict[str, bytes]()
            work.mkdir()
            try:
                cached = cache.fetch_files(key, kept, work)
                if not cached:
                    run_plans(fabric, board, work, baud=baud, progress=progress)
                    cache.put_files(key, {name: work / name for name in kept})
                report = _report_of(fabric, board, platform, work, baud=baud, versions=versions)
                report["command"] = command
                contents = {name: (work / name).read_bytes() for name in board.products}
                contents[_SEAL] = (json.dumps(report, indent=2) + "\n").encode()
            except (InputError, WorkFailed) as error:
                # The logs that the message names move there.
                moved = str(error).replace(str(work), str(folder / _TOOLS))
                error.args = (moved, *error.args[1:])
                raise
            finally:
                there = [name for name in written if (work / name).is_file()]
                contents |= {f"{_TOOLS}/{name}": (work / name).read_bytes() for name in there}
                write_owned(folder, _MAKER, contents, seal=_SEAL, force=force)
    return Built(folder, report, cached)


def _wait(progress: Progress | None, folder: Path) -> None:
    """Say that somebody else is building."""
    if progress is not None:
        progress(0, STAGES, f"waiting for another build in {folder}, or of the same")


def _report_of(
    fabric: "Fabric",
    board: Board,
    platform: Platform,
    work: Path,
    *,
    baud: int,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """What tools that ran in a folder made; the same for the same build."""
    placed = json.loads((work / REPORT).read_text(encoding="utf-8"))
    rates = [clock["achieved"] for clock in placed["fmax"].values()]
    # The script names the placer and the router that came to an end, where the board has some.
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
    """What a report says of the fabric: which it is, and how the bus reaches it."""
    facts = manifest(behind_bus(fabric), command="", files=[])
    program = fabric.program
    return {
        "topology": str(program.topology),
        "collective": ",".join(map(program.name_of, program.modes)),
        "algorithm": ",".join(mode.schedule.algorithm for mode in program.modes),
        "digest": f"{fabric.digest:08x}",
        "predicted_cycles": fabric.predicted_cycles,
        **{name: facts[name] for name in FACTS if name in facts},
    }
