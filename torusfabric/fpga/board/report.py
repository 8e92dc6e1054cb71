"""What a build made, as plain data."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.build import Platform

from ...verilog.manifest import manifest
from ..bridge.gateware import behind_bus
from .catalogue import Board
from .plan import REPORT, SCRIPT

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["fabric_facts", "report_of"]

#: What stands in a report as in the manifest of the fabric behind its bus.
FACTS = ("nodes", "width", "flits", "max_flits", "stride", "bus", "modes", "tables")


def report_of(
    fabric: "Fabric",
    board: Board,
    platform: Platform,
    work: Path,
    *,
    baud: int,
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """What a build made; the same for the same build.

    Parameters
    ----------
    platform : Platform
        The board's, from `plan_build`.
    work : Path
        Where the tools ran.
    baud : int
        Bits a second of the serial line.
    versions : dict of str to str
        Of the tools, by name.
    """
    placed = json.loads((work / REPORT).read_text(encoding="utf-8"))
    bitstream = board.products[0]
    return {
        "board": board.name,
        "title": board.title,
        "uart": board.pins,
        "baud": baud,
        "clock_mhz": platform.default_clk_frequency / 1e6,
        "fmax_mhz": _slowest_clock(placed),
        **_tried_last(work),
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


def _slowest_clock(placed: Mapping[str, Any]) -> float | None:
    """The clock rate that place and route reached, in MHz: that of the slowest clock."""
    rates = [clock["achieved"] for clock in placed["fmax"].values()]
    return round(min(rates), 2) if rates else None


def _tried_last(work: Path) -> dict[str, str]:
    """The placer and the router of a build, where the board has some: the script names them."""
    script = (work / SCRIPT).read_text(encoding="utf-8")
    return dict(re.findall(r" --(placer|router) (\w+)", script))
