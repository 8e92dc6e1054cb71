"""Quartus: a project that is compiled without pins, and constraints."""

from collections.abc import Mapping
from typing import Any

from ..design import TEXT
from ..lut6 import LUT6
from .clocks import PERIOD, clocks_of, crossings

__all__ = ["QUARTUS", "quartus_files"]

#: The files: a project, constraints.
QUARTUS = ("quartus/project.tcl", "quartus/fabric.sdc")

#: The device that is meant unless another is given.
DEVICE = "5CSEBA6U23I7"

PROJECT = """\
# Makes a project with the fabric by itself, without pins, and compiles it:
#   cd quartus && quartus_sh -t project.tcl DEVICE
package require ::quartus::project
package require ::quartus::flow
set device [expr {{[llength $quartus(args)] > 0 ? [lindex $quartus(args) 0] : "{device}"}}]
project_new {top} -overwrite
set_global_assignment -name DEVICE $device
set_global_assignment -name TOP_LEVEL_ENTITY {top}
set_global_assignment -name VERILOG_FILE ../{text}
set_global_assignment -name VERILOG_INPUT_VERSION VERILOG_2001
set_global_assignment -name VERILOG_MACRO {define}=1
set_global_assignment -name SDC_FILE fabric.sdc
set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output_files
# Ports other than clocks are no pins.
{virtual}
export_assignments
execute_flow -compile
project_close
"""


def quartus_files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The files for Quartus, by their names."""
    clocks = clocks_of(manifest)
    virtual = [
        f"set_instance_assignment -name VIRTUAL_PIN ON -to {_pins(name, port['width'])}"
        for name, port in manifest["ports"].items()
        if name not in clocks
    ]
    project = PROJECT.format(
        define=LUT6, device=DEVICE, top=manifest["top"], text=TEXT, virtual="\n".join(virtual)
    )
    return dict(zip(QUARTUS, (project, _constraints(manifest)), strict=True))


def _pins(name: str, width: int) -> str:
    """A port, all bits of it."""
    return name if width == 1 else f"{{{name}[*]}}"


def _constraints(manifest: Mapping[str, Any]) -> str:
    """The constraints: clocks, and what goes from one of them to another."""
    lines = ["# Periods in nanoseconds: replace them by those of the design."]
    lines += [
        f"create_clock -name {name} -period {PERIOD:.3f} [get_ports {name}]"
        for name in clocks_of(manifest)
    ]
    lines.append("derive_clock_uncertainty")
    pairs = crossings(manifest)
    if pairs:
        lines += [
            "",
            "# Queues: words, and counters in Gray code of which one bit changes at once.",
        ]
    for source, target in pairs:
        ends = f"-from [get_clocks {source}] -to [get_clocks {target}]"
        lines.append(f"set_max_delay {ends} {PERIOD:.3f}")
        lines.append(f"set_min_delay {ends} -{PERIOD:.3f}")
    return "\n".join([*lines, ""])
