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

__all__ = ["Flow", "flow_files"]


class Flow(Choice):
    """Tools for which project files are written."""

    VIVADO = "vivado"
    QUARTUS = "quartus"
    LIBRELANE = "librelane"
    TINYTAPEOUT = "tinytapeout"


#: Module of each flow, whose function `project_files` has the parameters of `flow_files`. Why by
#: name: a project for Tiny Tapeout is synthesized for its size, and synthesis imports this package.
MODULES = {
    Flow.VIVADO: "torusfabric.verilog.flows.vivado",
    Flow.QUARTUS: "torusfabric.verilog.flows.quartus",
    Flow.LIBRELANE: "torusfabric.verilog.flows.librelane",
    Flow.TINYTAPEOUT: "torusfabric.fpga.tinytapeout",
}


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
    files: dict[str, str] = import_module(MODULES[flow]).project_files(fabric, manifest, title)
    return files
