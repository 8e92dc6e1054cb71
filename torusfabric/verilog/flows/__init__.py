"""Files for the tools of vendors beside the text: projects, constraints, and IP-XACT."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...rtl.netlist import Netlist
from ...toolchain.values import Choice
from ...topology import Topology
from ..design import TEXT
from ..lut6 import LUT6
from .ip_xact import COMPONENT, component, having
from .regions import REGIONS, cells_of_nodes, vivado_regions

__all__ = ["Flow", "flow_files"]

#: The period of every clock, in nanoseconds: to be replaced by that of a design.
PERIOD = "4.000"

VIVADO_PROJECT = """\
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
set_property -name {{STEPS.SYNTH_DESIGN.ARGS.MORE OPTIONS}} -value {{-mode out_of_context}} \\
  -objects [get_runs synth_1]
update_compile_order -fileset sources_1
"""

VIVADO_RUN = """\
# Synthesizes, places and routes the fabric by itself, without pins:
#   vivado -mode batch -source vivado/out_of_context.tcl -tclargs PART
set here [file dirname [file normalize [info script]]]
set part [expr {{$argc > 0 ? [lindex $argv 0] : "{part}"}}]
set reports [file join $here reports]
file mkdir $reports
read_verilog [list [file join $here .. {text}]]
read_xdc -mode out_of_context [list [file join $here fabric.xdc]]
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

QUARTUS_PROJECT = """\
# Makes a project with the fabric by itself, without pins, and compiles it:
#   cd quartus && quartus_sh -t project.tcl DEVICE
package require ::quartus::project
package require ::quartus::flow
set device [expr {{[llength $quartus(args)] > 0 ? [lindex $quartus(args) 0] : "{part}"}}]
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

CLOCKS = """\
# Periods in nanoseconds: replace them by those of the design.
{clocks}
"""

QUEUES = """
# Queues: words, and counters in Gray code of which one bit changes at once.
"""


class Flow(Choice):
    """The tools of a vendor."""

    VIVADO = "vivado"
    QUARTUS = "quartus"


class _Tool(NamedTuple):
    """What a tool is given.

    Parameters
    ----------
    part : str
        The device that is meant unless another is given.
    between : str
        The constraint of what goes from one clock to another.
    files : dict of str to str
        Texts in which names of what differs stand for it; constraints come last.
    """

    part: str
    between: str
    files: Mapping[str, str]


_TOOLS = {
    Flow.VIVADO: _Tool(
        "xcvu9p-flga2104-2L-e",
        f"set_max_delay -datapath_only {{ends}} {PERIOD}\n",
        {
            "vivado/project.tcl": VIVADO_PROJECT,
            "vivado/out_of_context.tcl": VIVADO_RUN,
            "vivado/fabric.xdc": CLOCKS + "{queues}",
        },
    ),
    Flow.QUARTUS: _Tool(
        "5CSEBA6U23I7",
        f"set_max_delay {{ends}} {PERIOD}\nset_min_delay {{ends}} -{PERIOD}\n",
        {
            "quartus/project.tcl": QUARTUS_PROJECT,
            "quartus/fabric.sdc": CLOCKS + "derive_clock_uncertainty\n{queues}",
        },
    ),
}


def flow_files(
    flow: Flow, manifest: Mapping[str, Any], title: str, *, netlist: Netlist, topology: Topology
) -> dict[str, str]:
    """The texts of all files for a flow, by their names."""
    tool, clocks = _TOOLS[flow], having(manifest, "clock")
    facts = {
        "part": tool.part, "top": manifest["top"], "text": TEXT, "define": LUT6,
        "clocks": "\n".join(
            f"create_clock -name {name} -period {PERIOD} [get_ports {name}]" for name in clocks
        ),
        "queues": _queues(tool, clocks),
        "virtual": "\n".join(
            f"set_instance_assignment -name VIRTUAL_PIN ON -to {_pins(name, port['width'])}"
            for name, port in manifest["ports"].items() if name not in clocks
        ),
    }  # fmt: skip
    texts = {COMPONENT: component(manifest, title)}
    texts |= {name: text.format(**facts) for name, text in tool.files.items()}
    if flow is Flow.VIVADO:
        texts[REGIONS] = vivado_regions(topology, cells_of_nodes(netlist))
    return texts


def _queues(tool: _Tool, clocks: list[str]) -> str:
    """The constraints of queues, which take words from the clock of the fabric and to it."""
    first, *others = clocks
    pairs = [pair for other in others for pair in ((first, other), (other, first))]
    ends = (f"-from [get_clocks {source}] -to [get_clocks {target}]" for source, target in pairs)
    return "".join([QUEUES * bool(pairs), *(tool.between.format(ends=each) for each in ends)])


def _pins(name: str, width: int) -> str:
    """A port, all bits of it."""
    return name if width == 1 else f"{{{name}[*]}}"
