"""Project files for tools: Vivado and Quartus; LibreLane and Tiny Tapeout for chips.

The user is `companion_files`, with the option ``--flow``. Flows for FPGAs have a project,
constraints and a form in which other designs can include the fabric. The flow for LibreLane has a
configuration, that for Tiny Tapeout a whole project.

Constraints are in two files. One has the periods of clocks, for a fabric that is compiled by
itself. The other is about clock crossings, which exist if nodes have clocks of their own: a *clock
crossing* is a connection between registers of different clocks. This file names the registers, and
takes the periods from the clocks that the surrounding design connects to them, so that it is valid
in every design.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ...rtl.fabric import Fabric
from ...toolchain.values import Choice
from .librelane import librelane_files
from .quartus import quartus_files
from .vivado import vivado_files

__all__ = ["Flow", "flow_files"]

#: Period, in nanoseconds, of every clock of a fabric that is compiled by itself.
PERIOD = "4.000"

#: The same for a chip.
CHIP_PERIOD = 20.0

#: Package of the project for Tiny Tapeout. Why by name: it synthesizes the project for its size,
#: and synthesis imports this package.
TINYTAPEOUT = "torusfabric.fpga.tinytapeout"


class Flow(Choice):
    """Tools for which project files are written."""

    VIVADO = "vivado"
    QUARTUS = "quartus"
    LIBRELANE = "librelane"
    TINYTAPEOUT = "tinytapeout"


def flow_files(
    flow: Flow, fabric: Fabric, manifest: Mapping[str, Any], title: str
) -> dict[str, str]:
    """Return the files for a flow of tools: name -> text.

    Parameters
    ----------
    manifest : mapping
        Manifest of the fabric.
    title : str
        Title of the fabric in one line.
    """
    if flow is Flow.LIBRELANE:
        return librelane_files(manifest, period=CHIP_PERIOD)
    if flow is Flow.TINYTAPEOUT:
        project: dict[str, str] = import_module(TINYTAPEOUT).project_files(
            fabric, manifest, title=title, period=CHIP_PERIOD
        )
        return project
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
