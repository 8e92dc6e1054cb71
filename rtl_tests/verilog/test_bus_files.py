"""Files beside the Verilog of a fabric behind a bus: SystemRDL and manifest."""

import json
import re
import shutil
import subprocess

import pytest
from helpers import few

import torusfabric as tf

systemrdl = pytest.importorskip("systemrdl")

#: Access of software to a field, in SystemRDL and in the manifest.
ACCESS = {"r": "read", "w": "write", "rw": "read-write"}


def written(folder, collective="allgather", *, width=32, bus="axi-lite", prefix="", **lengths):
    """Write a fabric into a folder; return its manifest."""
    program = tf.compile(tf.plan("2x3", collective), **(lengths or {"max_flits": 5}))
    tf.emit(tf.Fabric(program, width=width, bus=bus, prefix=prefix)).write(folder)
    return json.loads((folder / "manifest.json").read_text())


def elaborated(file):
    """Return the address map of a SystemRDL file."""
    compiler = systemrdl.RDLCompiler()
    compiler.compile_file(str(file))
    return compiler.elaborate().top


def access_of(field):
    """Return the manifest's word for the access of a SystemRDL field."""
    clears = field.get_property("onwrite")
    return "write-1-to-clear" if clears else ACCESS[field.get_property("sw").name]


@pytest.mark.parametrize(("width", "lengths"), few(2, [(32, {}), (80, {}), (7, {"flits": 4})]))
def test_system_rdl_says_what_the_manifest_says(tmp_path, width, lengths):
    bus = written(tmp_path, width=width, prefix="net_", **lengths)["bus"]
    top = elaborated(tmp_path / "fabric.rdl")
    assert top.inst_name == "net_fabric"
    inside = top.find_by_path("registers").registers()
    registers = {register.inst_name: register for register in inside}
    assert registers.keys() == bus["registers"].keys()
    for name, entry in bus["registers"].items():
        register = registers[name]
        assert register.absolute_address == entry["offset"]
        fields = {field.inst_name: field for field in register.fields()}
        assert fields.keys() == entry["fields"].keys()
        for field, bits in entry["fields"].items():
            assert (fields[field].low, fields[field].width) == (bits["low"], bits["width"])
            assert fields[field].get_property("reset") in (None, bits["reset"])
            assert access_of(fields[field]) == entry["access"]
    for name, window in bus["windows"].items():
        memory = top.find_by_path(name)
        assert memory.absolute_address == window["offset"]
        assert memory.size == window["nodes"] * window["stride"]
        assert memory.get_property("sw").name == window["access"][0]


#: For each bus: the prefix of its ports, its data ports, and its byte enables.
DATA = {
    "wishbone": [("wb_", ("dat_w", "dat_r"), "sel")],
    "axi-lite": [("s_axil_", ("wdata", "rdata"), "wstrb")],
    "axi4": [("s_axil_", ("wdata", "rdata"), "wstrb"), ("s_axi_", ("wdata", "rdata"), "wstrb")],
}


@pytest.mark.parametrize("bus", DATA)
@pytest.mark.parametrize("width", [7, 32, 80])
def test_buses_have_an_enable_for_each_byte(tmp_path, bus, width):
    manifest = written(tmp_path, width=width, bus=bus)
    ports = manifest["ports"]
    widths = []
    for prefix, data, enables in DATA[bus]:
        (bits,) = {ports[prefix + name]["width"] for name in data}
        assert ports[prefix + enables]["width"] == bits // 8
        widths.append(bits)
    assert widths == [32, *([manifest["bus"]["beat_width"]] if bus == "axi4" else [])]
    if bus == "axi4":
        assert ports["s_axi_awaddr"]["width"] == ports["s_axil_awaddr"]["width"]


def test_peakrdl_makes_files_of_it(tmp_path):
    peakrdl = shutil.which("peakrdl") or pytest.skip("peakrdl is not installed")
    bus = written(tmp_path)["bus"]
    for form, name in (("c-header", "fabric.h"), ("ip-xact", "fabric.xml")):
        arguments = [peakrdl, form, tmp_path / "fabric.rdl", "-o", tmp_path / name]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert not done.stderr
    header = (tmp_path / "fabric.h").read_text()
    assert "FABRIC__REGISTERS__STATUS__DONE_bm 0x2" in header
    blocks = re.findall(r"<ipxact:baseAddress>'h(\w+)<", (tmp_path / "fabric.xml").read_text())
    windows = [f"{window['offset']:x}" for window in bus["windows"].values()]
    assert blocks == ["0", *windows]


@pytest.mark.parametrize("top", ["host", "stream"])
def test_a_fabric_behind_a_bus_is_not_simulated_without_it(top):
    program = tf.compile(tf.plan("2x2", "allgather"))
    with pytest.raises(tf.InputError, match="Python simulates no fabric behind"):
        tf.simulate(tf.Fabric(program, top=top, bus="wishbone"))
