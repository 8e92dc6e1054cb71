"""Files for the tools of vendors beside the text: projects, constraints, and a packager of IP.

Constraints are of two kinds. Periods of clocks belong to a design: they are in a file of their own,
for a fabric that is compiled by itself. Those of clock crossings name registers, and take periods
from the clocks that arrive there: they fit a fabric anywhere in a design, with any clocks.
"""

from collections.abc import Mapping
from typing import Any

from ...rtl.fabric import Fabric
from ...toolchain.values import Choice
from .quartus import quartus_files
from .vivado import vivado_files

__all__ = ["Flow", "flow_files"]

#: The period of every clock of a fabric that is compiled by itself, in nanoseconds.
PERIOD = "4.000"


class Flow(Choice):
    """The tools of a vendor."""

    VIVADO = "vivado"
    QUARTUS = "quartus"


def flow_files(
    flow: Flow, fabric: Fabric, manifest: Mapping[str, Any], title: str
) -> dict[str, str]:
    """Return the texts of all files for a flow, by their names."""
    netlist = fabric.netlist
    crossings = [fabric.prefix + name for name in netlist.modules if name.endswith("_crossing")]
    if flow is Flow.QUARTUS:
        return quartus_files(manifest, period=PERIOD, crossings=bool(crossings))
    return vivado_files(
        manifest,
        title=title,
        digest=fabric.digest,
        period=PERIOD,
        crossings=crossings,
    )
