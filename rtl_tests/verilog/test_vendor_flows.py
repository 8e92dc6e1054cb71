"""Projects, constraints and packagers for the tools of vendors."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.errors import InputError

#: Fabrics of each interface.
FABRICS = {
    "host": {},
    "stream": {"top": "stream"},
    "per-node": {"top": "stream", "clocks": "per-node"},
    "axi-lite": {"bus": "axi-lite"},
    "axi4": {"bus": "axi4"},
    "wishbone": {"bus": "wishbone", "prefix": "my_"},
}


@cache
def files(name, flow):
    """The files beside the Verilog."""
    schedules = [tf.plan("2x2", "allgather"), tf.plan("2x2", "alltoall")]
    fabric = tf.Fabric(tf.compile(schedules, max_flits=4), width=12, **FABRICS[name])
    return tf.emit(fabric, flow=flow).files


def manifest_of(name):
    """The manifest of a fabric."""
    return json.loads(files(name, "vivado")["manifest.json"])


def clocks_of(name):
    """The clocks of a fabric, with the clock of the core first."""
    ports = manifest_of(name)["ports"]
    return [port for port, each in ports.items() if each["role"] == "clock"]


def carried_out(path, text, **variables):
    """Run a script in Tcl; return the commands that Tcl does not know, with their arguments."""
    tkinter = pytest.importorskip("tkinter")
    interpreter, calls = tkinter.Tcl(), []
    interpreter.createcommand("record", lambda *words: calls.append(words) or words[-1])
    interpreter.eval("proc unknown args { record {*}$args }\nrename package {}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    for key, value in variables.items():
        interpreter.eval(f"set {key} {{{value}}}")
    interpreter.eval(f"source {{{path}}}")
    return calls


@pytest.mark.parametrize("script", ["vivado/project.tcl", "vivado/out_of_context.tcl"])
@pytest.mark.parametrize("part", ["", "xc7a100tcsg324-1"])
def test_vivado_gets_the_text_the_constraints_and_the_part(tmp_path, script, part):
    text, folder = files("wishbone", "vivado")[script], tmp_path / "it's 1 $x; [y] # é"
    tkinter = pytest.importorskip("tkinter")
    calls = carried_out(folder / script, text, argc=int(bool(part)), argv=part)
    # Vivado takes the last argument of these as a list of files.
    adding = [call[-1] for call in calls if call[0] in ("add_files", "read_verilog", "read_xdc")]
    names = [Path(name).resolve() for word in adding for name in tkinter.Tcl().splitlist(word)]
    assert names == [folder / "fabric.v", folder / "vivado/fabric.xdc"]
    parts = {call[call.index("-part") + 1] for call in calls if "-part" in call}
    assert parts == {part or "xcvu9p-flga2104-2L-e"}
    assert any("my_fabric" in call for call in calls)
    assert any("out_of_context" in word for call in calls for word in call)


@pytest.mark.parametrize("device", ["", "5CEBA4F23C7"])
def test_quartus_gets_all_ports_but_clocks_as_virtual_pins(tmp_path, device):
    text = files("per-node", "quartus")["quartus/project.tcl"]
    path = tmp_path / "quartus/project.tcl"
    calls = carried_out(path, f"set quartus(args) {{{device}}}\n{text}")
    assigned = {call[2]: call[3] for call in calls if call[0] == "set_global_assignment"}
    assert assigned["DEVICE"] == (device or "5CSEBA6U23I7")
    assert (assigned["TOP_LEVEL_ENTITY"], assigned["QIP_FILE"]) == ("fabric", "fabric.qip")
    pins = [call[-1] for call in calls if call[0] == "set_instance_assignment"]
    ports = manifest_of("per-node")["ports"]
    wanted = [f"{name}[*]" if each["width"] > 1 else name for name, each in ports.items()
              if each["role"] != "clock"]  # fmt: skip
    assert pins == wanted
    assert calls[-2:] == [("execute_flow", "-compile"), ("project_close",)]


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize(
    ("flow", "file"), [("vivado", "vivado/fabric.xdc"), ("quartus", "quartus/fabric.sdc")]
)
def test_every_clock_has_a_period_in_the_file_for_the_fabric_alone(tmp_path, name, flow, file):
    calls = carried_out(tmp_path / "constraints.tcl", files(name, flow)[file])
    made = [call[call.index("-name") + 1] for call in calls if call[0] == "create_clock"]
    assert made == clocks_of(name)


#: Commands of Vivado and Quartus that return their request as text.
ANSWERS = """
proc get_cells args { return "cells:[lindex $args end]" }
proc get_registers args { return "registers:[lindex $args end]" }
proc get_pins args { return "pins:[lindex $args end]" }
proc get_clocks args { return "clocks:[lindex $args end]" }
proc get_property args { return "period of [lindex $args end]" }
proc get_collection_size name { return 1 }
"""


@cache
def crossing_registers():
    """The names of the registers in clock crossings."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=12, **FABRICS["per-node"])
    design = tf.emit(fabric)
    texts = [text for name, text in design.modules.items() if name.endswith("_crossing")]
    assert len(texts) == 2
    names = [{*re.findall(r"^ +(\w+) <= ", text, re.M)} for text in texts]
    assert names[0] == names[1]
    return names[0]


def crossing_pairs():
    """The pairs of a register and the register that reads it with the other clock, which
    constraints must name.
    """
    return {(f"{name}_gray", f"{name}_cdc_stage0") for name in ("written", "fetched")}


def test_crossings_are_constrained_by_registers_and_periods_of_their_clocks(tmp_path):
    """Crossing constraints name no clock and no period, so that they fit a fabric in any design."""
    text = files("per-node", "vivado")["vivado/crossings.xdc"]
    assert not re.search(r"\bclk|\d\.\d", text.split("\n", 2)[2])
    calls = carried_out(tmp_path / "crossings.tcl", ANSWERS + text)
    found = set()
    for call in calls:
        if call[0] in ("set_max_delay", "set_bus_skew") and "-quiet" not in call:
            source, target = (re.search(r"cells:(\w+)_reg", call[call.index(key) + 1])[1]
                              for key in ("-from", "-to"))  # fmt: skip
            assert {source, target} <= crossing_registers()
            assert call[-1] == f"period of clocks:pins:{target}_reg[0]/C"
            assert ("-datapath_only" in call) == (call[0] == "set_max_delay")
            found.add((call[0], source, target))
    pairs = crossing_pairs()
    assert found == {(kind, *pair) for pair in pairs for kind in ("set_max_delay", "set_bus_skew")}
    resets = next(call[-1] for call in calls if call[0] == "set_false_path")
    stages = {name for name in crossing_registers() if re.match(r"(hold|.*_reset)_stage", name)}
    assert stages
    assert all(re.sub(r"\d", "*", name) in resets for name in stages)


def test_crossings_are_constrained_in_quartus(tmp_path):
    text = files("per-node", "quartus")["quartus/crossings.sdc"]
    calls = carried_out(tmp_path / "crossings.tcl", ANSWERS + text)
    for kind in ("set_false_path", "set_net_delay", "set_max_skew"):
        found = {
            tuple(
                call[call.index(key) + 1].partition("|")[2].strip("*") for key in ("-from", "-to")
            )
            for call in calls
            if call[0] == kind and "-from" in call
        }
        assert crossing_pairs() <= found
    listed = carried_out(
        tmp_path / "fabric.tcl",
        "set quartus(qip_path) .\n" + files("per-node", "quartus")["quartus/fabric.qip"],
    )
    assert any("SYNCHRONIZER_IDENTIFICATION" in call for call in listed)
    assert any(call[-1].endswith("crossings.sdc") for call in listed)
    assert any("TORUSFABRIC_LUT6=1" in call for call in listed)


@pytest.mark.parametrize("flow", ["vivado", "quartus"])
def test_without_crossings_there_are_no_constraints_of_them(flow):
    assert not [name for name in files("stream", flow) if "crossing" in name]
    texts = "".join(text for name, text in files("stream", flow).items() if name.startswith(flow))
    assert not re.search(r"crossings\.(xdc|sdc)", texts)


def test_the_configuration_of_chips_names_the_top_its_clock_and_the_macro(tmp_path):
    """LibreLane takes the file beside the folder, and Yosys can read it with the macro."""
    configuration = json.loads(files("stream", "librelane")["librelane/config.json"])
    assert configuration["DESIGN_NAME"] == "fabric"
    assert configuration["CLOCK_PORT"] == "clk"
    assert configuration["VERILOG_FILES"] == ["dir::../fabric.v"]
    assert configuration["VERILOG_DEFINES"] == ["TORUSFABRIC_ASIC"]
    clocks = json.loads(files("per-node", "librelane")["librelane/config.json"])["CLOCK_PORT"]
    assert len(clocks) > 1


@pytest.mark.parametrize("name", FABRICS)
def test_packager_has_the_text_its_macro_and_its_constraints(tmp_path, name):
    folder, written = tmp_path / "my ip", files(name, "vivado")
    (tmp_path / "fabric.v").write_text("module fabric; endmodule\n")
    for file, text in written.items():
        if file.startswith("vivado/"):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text)
    script = tmp_path / "vivado/package_ip.tcl"
    calls = carried_out(script, script.read_text(), argc=1, argv=f"{{{folder}}}")
    text = (folder / "src/fabric.v").read_text()
    assert text.startswith("`define TORUSFABRIC_LUT6\nmodule fabric;")
    added = {Path(call[-1].strip("{}")).name for call in calls if call[0] == "add_files"}
    assert added == {"fabric.v", *["crossings.xdc"] * ("vivado/crossings.xdc" in written)}
    assert all((folder / "src" / each).exists() for each in added)
    scoped = [call[2] for call in calls if call[:2] == ("set_property", "SCOPED_TO_REF")]
    assert scoped == ["s_axis_crossing m_axis_crossing"] * ("crossings.xdc" in added)
    order = [call[0] for call in calls]
    assert order.index("add_files") < order.index("ipx::package_project") < len(order) - 1
    assert order[-1] == "ipx::save_core"


@pytest.mark.parametrize("name", FABRICS)
def test_packager_gives_each_interface_its_clock_and_each_clock_its_reset(tmp_path, name):
    (tmp_path / "fabric.v").write_text("")
    (tmp_path / "vivado").mkdir()
    (tmp_path / "vivado/crossings.xdc").write_text("")
    script = tmp_path / "vivado/package_ip.tcl"
    calls = carried_out(script, files(name, "vivado")["vivado/package_ip.tcl"], argc=0, argv="")
    ports = manifest_of(name)["ports"]
    with_reset = {call[2]: call[4] for call in calls
                  if call[:2] == ("ipx::associate_bus_interfaces", "-clock")}  # fmt: skip
    assert with_reset == {
        port["clock"]: reset for reset, port in ports.items() if port["role"] == "reset"
    }
    clock_of = {call[2]: call[4] for call in calls
                if call[:2] == ("ipx::associate_bus_interfaces", "-busif")}  # fmt: skip
    axi = {port: each for port, each in ports.items() if each["protocol"].startswith("axi4")}
    assert clock_of == {port.rpartition("_")[0]: each["clock"] for port, each in axi.items()}
    inferred = {call[1] for call in calls if call[0] == "ipx::infer_bus_interface"}
    signals = ("clock", "reset", "interrupt")
    assert inferred == {port for port, each in ports.items() if each["role"] in signals}


def test_version_of_an_ip_is_that_of_the_digest():
    """The version of an IP is the digest of its fabric, which changes with the width."""
    versions = []
    for width in (8, 8, 9):
        fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=width)
        text = tf.emit(fabric, flow="vivado").files["vivado/package_ip.tcl"]
        (version,) = re.findall(r"set_property version 1\.(\d+) ", text)
        assert int(version) == fabric.digest
        versions.append(version)
    assert versions[0] == versions[1] != versions[2]


def test_files_are_listed_and_flows_known():
    assert {"quartus/fabric.qip", "quartus/project.tcl"} <= {*files("host", "quartus")}
    listed = json.loads(files("host", "quartus")["manifest.json"])["files"]
    assert {"quartus/project.tcl", "quartus/fabric.sdc"} <= {*listed}
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    assert not [name for name in tf.emit(fabric).files if name.startswith(("vivado", "quartus"))]
    with pytest.raises(
        InputError, match=r"^Flow must be one of vivado, quartus, librelane, tinytapeout, not 'ise'"
    ):
        tf.emit(fabric, flow="ise")
