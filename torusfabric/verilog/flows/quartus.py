"""Files for Quartus: a project, a list of files for other designs, and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...rtl.fabric import Fabric
from ..design import VERILOG_FILE
from ..lut6 import LUT6
from .clocks import clock_names, crossing_modules, period_constraints

__all__ = ["project_files"]

#: Device of the project if the user gives no other.
PART = "5CSEBA6U23I7"

PROJECT = """\
# Makes a project with the fabric by itself, without pins, and compiles it:
#   cd quartus && quartus_sh -t project.tcl DEVICE
package require ::quartus::project
package require ::quartus::flow
set device [expr {{[llength $quartus(args)] > 0 ? [lindex $quartus(args) 0] : "{part}"}}]
project_new {top} -overwrite
set_global_assignment -name DEVICE $device
set_global_assignment -name TOP_LEVEL_ENTITY {top}
set_global_assignment -name QIP_FILE fabric.qip
set_global_assignment -name SDC_FILE fabric.sdc
set_global_assignment -name PROJECT_OUTPUT_DIRECTORY output_files
# Ports other than clocks are no pins.
{virtual}
export_assignments
execute_flow -compile
project_close
"""

FILES = """\
# The fabric, for any project: set_global_assignment -name QIP_FILE quartus/fabric.qip
set_global_assignment -name VERILOG_FILE [file join $::quartus(qip_path) .. {text}]
set_global_assignment -name VERILOG_INPUT_VERSION VERILOG_2001
set_global_assignment -name VERILOG_MACRO {define}=1
{crossings}"""

QIP_CROSSINGS = """\
set_global_assignment -name SDC_FILE [file join $::quartus(qip_path) crossings.sdc]
set_instance_assignment -name SYNCHRONIZER_IDENTIFICATION FORCED_IF_ASYNCHRONOUS \\
  -to "*_axis_crossing*|*_stage0*"
"""

CLOCKS = """\
# Periods in nanoseconds, for a fabric that is compiled by itself: replace them.
{clocks}
derive_clock_uncertainty
"""

CROSSINGS = """\
# Clock crossings of the fabric: they name registers, and fit any design with any clocks.
set crossing "*_axis_crossing*|"

# Resets set synchronizers at any time.
foreach stage {hold_stage node_reset_stage sync_reset_stage} {
  foreach pin {clrn prn} {
    set_false_path -to [get_pins -nowarn -compatibility_mode "$crossing${stage}*|$pin"]
  }
}

# Counters in Gray code, and words that are read from distributed memory: clocks do not relate both
# ends. Bits of a counter arrive within a period of the clock that reads, and of the one that moves.
foreach {source target} {
  written_gray written_cdc_stage0
  fetched_gray fetched_cdc_stage0
  words words_signature_data
} {
  set from [get_registers -nowarn "$crossing${source}*"]
  set to [get_registers -nowarn "$crossing${target}*"]
  if {[get_collection_size $from] > 0 && [get_collection_size $to] > 0} {
    set_false_path -from $from -to $to
    set_net_delay -max -from $from -to $to \\
      -get_value_from_clock_period dst_clock_period -value_multiplier 0.8
    if {$source ne "words"} {
      set_max_skew -from $from -to $to \\
        -get_skew_value_from_clock_period min_clock_period -skew_value_multiplier 0.8
    }
  }
}
"""


def project_files(fabric: Fabric, manifest: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return the texts of all files for Quartus by name; the parameters are those of `flow_files`.

    A project of Quartus has no title.
    """
    del title
    ports, clocks, crossings = manifest["ports"], clock_names(manifest), crossing_modules(fabric)
    pins = [
        name if port["width"] == 1 else f"{{{name}[*]}}"
        for name, port in ports.items()
        if name not in clocks
    ]
    virtual = "\n".join(f"set_instance_assignment -name VIRTUAL_PIN ON -to {pin}" for pin in pins)
    files = {
        "quartus/project.tcl": PROJECT.format(part=PART, top=manifest["top"], virtual=virtual),
        "quartus/fabric.qip": FILES.format(
            text=VERILOG_FILE, define=LUT6, crossings=QIP_CROSSINGS if crossings else ""
        ),
        "quartus/fabric.sdc": CLOCKS.format(clocks=period_constraints(manifest)),
    }
    return files | ({"quartus/crossings.sdc": CROSSINGS} if crossings else {})
