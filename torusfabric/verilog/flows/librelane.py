"""Files for LibreLane, which makes the layout of a chip: the configuration of the fabric alone."""

import json
from collections.abc import Mapping
from typing import Any

from ...rtl.fabric import Fabric
from ..design import VERILOG_FILE
from ..one_hot import ASIC
from .clocks import CHIP_PERIOD, clock_names

__all__ = ["project_files"]

#: Share of the area that cells fill, in percent, so that wires have room.
UTILIZATION = 40


def project_files(fabric: Fabric, manifest: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return the texts of all files for LibreLane by name; see `flow_files` for the parameters.

    Everything follows from the manifest.
    """
    del fabric, title
    clocks = clock_names(manifest)
    configuration = {
        "meta": {"version": 2, "flow": "Classic"},
        "DESIGN_NAME": manifest["top"],
        "VERILOG_FILES": [f"dir::../{VERILOG_FILE}"],
        "VERILOG_DEFINES": [ASIC],
        "CLOCK_PORT": clocks if len(clocks) > 1 else clocks[0],
        "CLOCK_PERIOD": CHIP_PERIOD,
        "FP_CORE_UTIL": UTILIZATION,
    }
    return {"librelane/config.json": json.dumps(configuration, indent=2) + "\n"}
