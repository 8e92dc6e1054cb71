"""Vivado: a project, a run out of context, and constraints."""

from collections.abc import Mapping
from typing import Any

from ..design import TEXT
from ..lut6 import LUT6
from .clocks import PERIOD, clocks_of, crossings

__all__ = ["VIVADO", "vivado_files"]

#: The files: a project, a run without one, constraints.
VIVADO = ("vivado/project.tcl", "vivado/out_of_context.tcl", "vivado/fabric.xdc")

#: The part that is meant unless another is given.
PART = "xcvu9p-flga2104-2L-e"

PROJECT = """\
# Makes a project with the fabric: vivado -mode batch -source vivado/project.tcl -tclargs PART
set here [file dirname [file normalize [info script]]]
set part [expr {{$argc > 0 ? [lindex $argv 0] : "{part}"}}]
create_project -force {top} [file join $here project] -part $part
add_files -norecurse [file join $here .. {text}]
set_property top {top} [current_fileset]
set_property verilog_define {define} [current_fileset]
add_files -fileset constrs_1 -norecurse [file join $here fabric.xdc]
set_property USED_IN {{synthesis implementation out_of_context}} \\
  [get_files [file join $here fabric.xdc]]
set_property -name {{STEPS.SYNTH_DESIGN.ARGS.MORE OPTIONS}} -value {{-mode out_of_context}} \\
  -objects [get_runs synth_1]
update_compile_order -fileset sources_1
"""

RUN = """\
# Synthesizes, places and routes the fabric by itself, without pins:
#   vivado -mode batch -source vivado/out_of_context.tcl -tclargs PART
set here [file dirname [file normalize [info script]]]
set part [expr {{$argc > 0 ? [lindex $argv 0] : "{part}"}}]
set reports [file join $here reports]
file mkdir $reports
read_verilog [file join $here .. {text}]
read_xdc -mode out_of_context [file join $here fabric.xdc]
synth_design -mode out_of_context -top {top} -part $part -verilog_define {define}
report_utilization -hierarchical -file [file join $reports synthesized.rpt]
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file [file join $reports utilization.rpt]
report_timing_summary -file [file join $reports timing.rpt]
report_cdc -file [file join $reports crossings.rpt]
write_checkpoint -force [file join $reports {top}.dcp]
"""


def vivado_files(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The files for Vivado, by their names."""
    named = {"part": PART, "top": manifest["top"], "text": TEXT, "define": LUT6}
    texts = PROJECT.format(**named), RUN.format(**named), _constraints(manifest)
    return dict(zip(VIVADO, texts, strict=True))


def _constraints(manifest: Mapping[str, Any]) -> str:
    """The constraints: clocks, and what goes from one of them to another."""
    lines = ["# Periods in nanoseconds: replace them by those of the design."]
    lines += [
        f"create_clock -name {name} -period {PERIOD:.3f} [get_ports {name}]"
        for name in clocks_of(manifest)
    ]
    pairs = crossings(manifest)
    if pairs:
        lines += [
            "",
            "# Queues: words, and counters in Gray code of which one bit changes at once.",
        ]
    lines += [
        f"set_max_delay -datapath_only -from [get_clocks {source}] -to [get_clocks {target}] "
        f"{PERIOD:.3f}"
        for source, target in pairs
    ]
    return "\n".join([*lines, ""])
