"""Files for LibreLane, which makes the layout of a chip: the configuration of the fabric alone."""

import json
from collections.abc import Mapping
from typing import Any

from ..design import VERILOG_FILE
from ..one_hot import ASIC

__all__ = ["librelane_files"]

#: Share of the area that cells fill, in percent, so that wires have room.
UTILIZATION = 40


def librelane_files(manifest: Mapping[str, Any], *, period: float) -> dict[str, str]:
    """Return the texts of all files for LibreLane by name.

    Parameters
    ----------
    manifest : dict
        Contents of ``manifest.json``.
    period : float
        Period of the clock, in nanoseconds.
    """
    clocks = [name for name, port in manifest["ports"].items() if port["role"] == "clock"]
    configuration = {
        "meta": {"version": 2, "flow": "Classic"},
        "DESIGN_NAME": manifest["top"],
        "VERILOG_FILES": [f"dir::../{VERILOG_FILE}"],
        "VERILOG_DEFINES": [ASIC],
        "CLOCK_PORT": clocks if len(clocks) > 1 else clocks[0],
        "CLOCK_PERIOD": period,
        "FP_CORE_UTIL": UTILIZATION,
    }
    return {"librelane/config.json": json.dumps(configuration, indent=2) + "\n"}
