"""Files for Vivado: a project, a run out of context, a packager of IP, and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...rtl.fabric import Fabric
from ...toolchain.quoting import tcl_text
from ..design import VERILOG_FILE
from ..lut6 import LUT6
from .clocks import clock_names, crossing_modules, period_constraints

__all__ = ["project_files"]

#: Device of the scripts if the user gives no other.
PART = "xcvu9p-flga2104-2L-e"

PROJECT = """\
# Makes a project with the fabric: vivado -mode batch -source vivado/project.tcl -tclargs PART
set here [file dirname [file normalize [info script]]]
set part [expr {{$argc > 0 ? [lindex $argv 0] : "{part}"}}]
create_project -force {top} [file join $here project] -part $part
add_files -norecurse [list [file join $here .. {text}]]
set_property top {top} [current_fileset]
set_property verilog_define {define} [current_fileset]
add_files -fileset constrs_1 -norecurse [list [file join $here fabric.xdc]]
set_property USED_IN {{synthesis implementation out_of_context}} \\
  [get_files fabric.xdc]
{constrain}set_property -name {{STEPS.SYNTH_DESIGN.ARGS.MORE OPTIONS}} \\
  -value {{-mode out_of_context}} -objects [get_runs synth_1]
update_compile_order -fileset sources_1
"""

RUN = """\
# Synthesizes, places and routes the fabric by itself, without pins:
#   vivado -mode batch -source vivado/out_of_context.tcl -tclargs PART
set here [file dirname [file normalize [info script]]]
set part [expr {{$argc > 0 ? [lindex $argv 0] : "{part}"}}]
set reports [file join $here reports]
file mkdir $reports
read_verilog [list [file join $here .. {text}]]
read_xdc -mode out_of_context [list [file join $here fabric.xdc]]
synth_design -mode out_of_context -top {top} -part $part -verilog_define {define}
{read}report_utilization -hierarchical -file [file join $reports synthesized.rpt]
opt_design
place_design
phys_opt_design
route_design
report_utilization -hierarchical -file [file join $reports utilization.rpt]
report_timing_summary -file [file join $reports timing.rpt]
report_cdc -file [file join $reports crossings.rpt]
write_checkpoint -force [file join $reports {top}.dcp]
"""

PACKAGE = """\
# Packages the fabric as an IP for block designs, with its constraints:
#   vivado -mode batch -source vivado/package_ip.tcl -tclargs FOLDER PART
set here [file dirname [file normalize [info script]]]
set folder [expr {{$argc > 0 ? [file normalize [lindex $argv 0]] : [file join $here ip]}}]
set part [expr {{$argc > 1 ? [lindex $argv 1] : "{part}"}}]
file mkdir [file join $folder src]
# An IP keeps no macro of a project: the text in it begins with the macro.
set source [open [file join $here .. {text}] r]
set target [open [file join $folder src {text}] w]
puts $target "`define {define}"
fcopy $source $target
puts $target "`undef {define}"
close $source
close $target
create_project -in_memory -part $part
add_files -norecurse [list [file join $folder src {text}]]
set_property top {top} [current_fileset]
{copy}{constrain}update_compile_order -fileset sources_1
ipx::package_project -root_dir $folder -vendor torusfabric -library fabric -taxonomy /UserIP -force
set core [ipx::current_core]
set_property name {top} $core
# The version follows from the digest of the fabric: another fabric is another version.
set_property version {version} $core
set_property display_name {{{top}, digest {digest}}} $core
set_property description {{{title}}} $core
# Clock, its reset, and the interfaces whose ports belong to it.
foreach {{clock reset interfaces}} {{
{clocks}
}} {{
  ipx::infer_bus_interface $clock xilinx.com:signal:clock_rtl:1.0 $core
  ipx::infer_bus_interface $reset xilinx.com:signal:reset_rtl:1.0 $core
  set polarity [ipx::add_bus_parameter POLARITY [ipx::get_bus_interfaces $reset -of_objects $core]]
  set_property value ACTIVE_HIGH $polarity
  ipx::associate_bus_interfaces -clock $clock -reset $reset $core
  foreach interface $interfaces {{
    ipx::associate_bus_interfaces -busif $interface -clock $clock $core
  }}
}}
foreach interrupt {{{interrupts}}} {{
  ipx::infer_bus_interface $interrupt xilinx.com:signal:interrupt_rtl:1.0 $core
}}
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
"""

CLOCKS = """\
# Periods in nanoseconds, for a fabric that is compiled by itself: replace them.
{clocks}
"""

#: File of the constraints of clock crossings.
CROSSINGS_FILE = "crossings.xdc"

CONSTRAIN = """\
add_files -fileset constrs_1 -norecurse [list {file}]
set_property SCOPED_TO_REF {{{modules}}} [get_files crossings.xdc]
set_property PROCESSING_ORDER LATE [get_files crossings.xdc]
set_property USED_IN implementation [get_files crossings.xdc]
"""

COPY = "file copy -force [file join $here crossings.xdc] [file join $folder src crossings.xdc]\n"

CROSSINGS = """\
# Clock crossings of the fabric, scoped to the modules {modules}:
#   read_xdc -ref MODULE vivado/crossings.xdc
# Periods are those of the clocks that arrive at the registers, whatever their names.

# Resets set synchronizers at any time.
set_false_path -quiet -to [get_pins -quiet -filter {{REF_PIN_NAME == PRE || REF_PIN_NAME == CLR}} \\
  -of_objects [get_cells {{hold_stage*_reg node_reset_stage*_reg sync_reset_stage*_reg}}]]
"""

#: Constraints of a counter in Gray code, of which one bit changes at a time.
COUNTER = """
# The counter {name}: its bits arrive within a period of the clock that reads them.
set {name}_period [get_property -min PERIOD \\
  [get_clocks -of_objects [get_pins {{{name}_cdc_stage0_reg[0]/C}}]]]
set_max_delay -datapath_only -from [get_cells {{{name}_gray_reg[*]}}] \\
  -to [get_cells {{{name}_cdc_stage0_reg[*]}}] ${name}_period
set_bus_skew -from [get_cells {{{name}_gray_reg[*]}}] \\
  -to [get_cells {{{name}_cdc_stage0_reg[*]}}] ${name}_period
"""

WORDS = """
# Words: the counter "written" arrives after them. In distributed memory they are read across.
set_max_delay -quiet -datapath_only \\
  -from [get_cells -quiet -hierarchical -filter {NAME =~ *words_reg*}] \\
  -to [get_cells -quiet {words_signature_data_reg[*]}] $written_period
"""


def project_files(fabric: Fabric, manifest: Mapping[str, Any], title: str) -> dict[str, str]:
    """Return the texts of all files for Vivado by name; the parameters are those of `flow_files`.

    Without clock crossings, there is no file with constraints for them. The version of the IP
    follows from the digest of the fabric.
    """
    ports, modules = manifest["ports"], " ".join(crossing_modules(fabric))
    place = lambda *folder: f"[file join {' '.join(folder)} {CROSSINGS_FILE}]"
    constrain = lambda *folder: (
        CONSTRAIN.format(file=place(*folder), modules=modules) if modules else ""
    )
    facts = {
        "part": PART,
        "top": manifest["top"],
        "text": VERILOG_FILE,
        "define": LUT6,
        "modules": modules,
        "digest": f"{fabric.digest:08x}",
        "version": f"1.{fabric.digest}",
        "title": tcl_text(title),
        "clocks": "\n".join(
            f"  {clock} {_reset_of(clock, ports)} {{{' '.join(_interfaces_of(clock, ports))}}}"
            for clock in clock_names(manifest)
        ),
        "interrupts": " ".join(n for n, port in ports.items() if port["role"] == "interrupt"),
        "read": "".join(
            f"read_xdc -ref {module} [list {place('$here')}]\n" for module in modules.split()
        ),
        "copy": COPY if modules else "",
    }
    files = {
        "vivado/project.tcl": PROJECT.format(constrain=constrain("$here"), **facts),
        "vivado/out_of_context.tcl": RUN.format(**facts),
        "vivado/package_ip.tcl": PACKAGE.format(constrain=constrain("$folder", "src"), **facts),
        "vivado/fabric.xdc": CLOCKS.format(clocks=period_constraints(manifest)),
    }
    if modules:
        counters = "".join(COUNTER.format(name=name) for name in ("written", "fetched"))
        files[f"vivado/{CROSSINGS_FILE}"] = CROSSINGS.format(**facts) + counters + WORDS
    return files


def _reset_of(clock: str, ports: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name of the reset port that belongs to a clock port.

    `ports` are the ports in the manifest.
    """
    return next(n for n, p in ports.items() if p["role"] == "reset" and p["clock"] == clock)


def _interfaces_of(clock: str, ports: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the AXI interfaces whose signals change with a clock.

    Vivado infers these names from the ports.
    """
    return [*dict.fromkeys(
        name.rpartition("_")[0]
        for name, port in ports.items()
        if port["protocol"].startswith("axi4") and port["clock"] == clock
    )]  # fmt: skip
