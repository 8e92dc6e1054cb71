"""What a build made, as plain data."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amaranth.build import Platform

from ..selftest.facts import facts_of
from .catalogue import Board
from .plan import REPORT, SCRIPT

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["report_of"]


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
    fabric : Fabric
    board : Board
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
        **facts_of(fabric),
        "bitstream": bitstream,
        "sha256": hashlib.sha256((work / bitstream).read_bytes()).hexdigest(),
        "tools": dict(versions),
    }


def _slowest_clock(placed: Mapping[str, Any]) -> float | None:
    """The clock rate that place and route reached, in MHz: that of the slowest clock."""
    rates = [clock["achieved"] for clock in placed["fmax"].values()]
    return round(min(rates), 2) if rates else None


def _tried_last(work: Path) -> dict[str, str]:
    """The placer and the router of a build, where the board has some: the script names them."""
    script = (work / SCRIPT).read_text(encoding="utf-8")
    return dict(re.findall(r" --(placer|router) (\w+)", script))
