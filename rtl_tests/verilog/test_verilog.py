"""The emitted Verilog: its form, its names and prefixes, and its manifest."""

import json
import re

import pytest
from core_verilog_bench import Core, run_cores
from fabrics import build_fabric
from helpers import expected_words, fabric_of, few, random_messages
from verilog_bench import have_icarus

import torusfabric as tf
from torusfabric import Fabric, verilog
from torusfabric.errors import InputError
from torusfabric.fpga.board import find_board
from torusfabric.fpga.board.plan import plan_build
from torusfabric.rtl.amaranth_private import tracer
from torusfabric.rtl.netlist import Role

FABRICS = [
    ("3x3", "allgather", "hamiltonian", 32, 4),
    ("arrowhead:1", "broadcast", "wormhole-forest", 65, 2),
    ("3x4", "broadcast", "max-flow", 9, 2),  # with settings in ROMs
    ("2x3", "alltoall@1", "matching", 8, 2),  # with positions in a ROM
]


def emitted(tmp_path, fabric):
    """Write the Verilog of a fabric; return its folder."""
    verilog.write(fabric, tmp_path, command="torusfabric verilog ..")
    return tmp_path


def test_equal_contents_are_written_once():
    """ROMs with equal contents share one constant."""
    fabric = fabric_of("8x8", "gather", "max-flow")
    roms = list(fabric.netlist.instances_with_role(Role.ROM))
    design = verilog.emit(fabric, command="")
    contents = {(rom.contents, rom.width) for rom in roms}
    assert {(held.rows, held.width) for held in design.contents.values()} == contents
    assert len(roms) > len(contents)
    assert sum(design.instances["fabric"][name] for name in design.contents) == len(roms)


def test_same_text_on_every_run(tmp_path):
    """The Verilog depends only on fabric and command, and names no source file."""
    texts = []
    for folder in ("a", "b"):
        fabric = fabric_of("3x4", "allgather", "hamiltonian", flits=4)
        texts.append((emitted(tmp_path / folder, fabric) / "fabric.v").read_text())
    assert texts[0] == texts[1]
    assert not re.search(r"\.py|\.cc|/(home|tmp|root|usr)", texts[0])
    assert texts[0].startswith("// 3x4 allgather by hamiltonian")


def test_manifest_says_what_a_testbench_needs(tmp_path):
    """The manifest has all keys that a testbench needs, with the values of the fabric."""
    fabric = fabric_of("4x6", "allgather", "hamiltonian", width=16, flits=4)
    manifest = json.loads((emitted(tmp_path, fabric) / "manifest.json").read_text())
    assert manifest["files"][0] == "fabric.v"
    assert manifest["nodes"] == 24
    assert manifest["predicted_cycles"] == fabric.predicted_cycles == 29
    assert manifest["topology"] == {"kind": "torus", "sides": [4, 6]}
    assert manifest["collective"] == {"kind": "allgather"}
    assert manifest["algorithm"] == "hamiltonian"
    assert manifest["recv_base"] >= manifest["send_base"] + manifest["flits"]
    assert manifest["schedule_digest"] == fabric.program.schedule.digest
    assert set(manifest["ports"]) == {
        *("clk", "rst", "start", "busy", "done", "cycles"),
        *("host_we", "host_node", "host_addr", "host_wdata", "host_rdata"),
    }


@pytest.mark.parametrize("top", ["host", "core"])
@pytest.mark.parametrize(("topology", "collective", "algorithm", "width", "flits"), FABRICS)
def test_manifest_describes_every_port(topology, collective, algorithm, width, flits, top):
    """Each port has a role and a meaning, and a port of a node names its node."""
    fabric = fabric_of(topology, collective, algorithm, width=width, flits=flits, top=top)
    ports = verilog.manifest(fabric, command="", files=[])["ports"]
    assert ports["clk"]["clock"] is None
    for name, port in ports.items():
        assert port.keys() == {
            *("direction", "width", "role", "protocol", "node", "clock", "meaning")
        }
        assert (port["node"] is not None) == name.endswith(f"_{port['node']}")
        assert port["meaning"]
    nodes = {port["node"] for port in ports.values()} - {None}
    assert nodes == (set(range(fabric.nodes)) if top == "core" else set())


@pytest.mark.parametrize(
    ("options", "protocols"),
    [
        ({"top": "host"}, {"start": "pulse", "length": "sampled", "host_wdata": "memory"}),
        ({"bus": "wishbone"}, {"wb_ack": "wishbone-b4", "irq": "level"}),
        ({"bus": "axi-lite"}, {"s_axil_wdata": "axi4-lite", "rst": "level"}),
    ],
)
def test_manifest_names_the_protocol_of_ports(options, protocols):
    program = tf.compile(tf.plan("2x2", "allgather"), max_flits=4)
    ports = verilog.manifest(tf.Fabric(program, width=8, **options), command="", files=[])["ports"]
    assert ports["clk"]["protocol"] == "clock"
    assert {name: ports[name]["protocol"] for name in protocols} == protocols


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits"),
    [
        ("4x4", "allgather", "hamiltonian", 64),
        ("8x8", "allgather", "matching", 4),
        ("5x5", "gather", "lee-code", 8),
        ("7x9", "broadcast", "diagonal", 12),
        ("4x5", "allreduce", "matching", 20),
        ("5x5", "reduce", "lee-code", 8),
    ],
)
def test_manifest_predicts_cycles(topology, collective, algorithm, flits):
    """The formula of a mode gives the cycles for the length of the fabric."""
    fabric = fabric_of(topology, collective, algorithm, flits=flits)
    manifest = verilog.manifest(fabric, command="", files=[])
    (mode,) = manifest["modes"]
    assert (mode["mode"], mode["collective"]) == (0, collective)
    assert (mode["algorithm"], mode["chunks"]) == (algorithm, manifest["chunks"])
    assert mode["axes"] == list(range(len(manifest["topology"]["sides"])))
    assert manifest["stride"] == manifest["flits"] == flits
    (entry,) = mode["cycles"]
    assert entry["from"] == -(-flits // mode["chunks"])
    assert entry["per_flit"] > 0
    cycles = entry["constant"] + entry["per_flit"] * entry["from"]
    assert cycles == manifest["predicted_cycles"] == fabric.predicted_cycles


def test_routers_with_a_rom_in_front_have_as_many_settings_as_it_has_rows():
    """Routers with a ROM in front have a setting for each row; others get their select bits."""
    program = tf.compile(tf.plan("5x5", "gather", algorithm="max-flow"), flits=1)
    routers = tf.emit(tf.Fabric(program, width=2)).classes.values()
    assert {router.shape.settings for router in routers} == {0, program.loop.n_rows}


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_two_fabrics_in_one_simulation(tmp_path):
    """Cores with different prefixes run side by side, each by its own manifest."""
    cores, fabrics, messages = [], [], []
    for prefix, collective, width in (("left_", "allgather", 8), ("Right2", "alltoall", 16)):
        program = fabric_of("2x2", collective, flits=5).program
        fabric = Fabric(program, width=width, top="core", prefix=prefix)
        design = verilog.write(fabric, tmp_path / prefix, command="..")
        assert all(name.startswith(prefix) for name in design.modules)
        fabrics.append(fabric)
        messages.append(random_messages(fabric, 1))
        cores.append(Core.of(tmp_path / prefix, messages[-1]))
        assert cores[-1].manifest["top"] == f"{prefix}fabric"
        assert cores[-1].manifest["prefix"] == prefix
    for fabric, sent, found in zip(fabrics, messages, run_cores(cores), strict=True):
        words, _ = expected_words(fabric.program, sent)
        words = words.reshape(fabric.nodes, fabric.program.layout.recv_parts, fabric.flits)
        assert found == {key: words[key] for key in found}
        # The words that a node sends to itself do not arrive by a stream.
        assert len(found) == words.size - fabric.streaming * fabric.nodes * fabric.flits


@pytest.mark.parametrize("prefix", ["", "_", "a", "A9_", "x" * 64])
def test_prefixes(prefix):
    """A prefix consists of letters, digits and underscores, and is in the manifest."""
    fabric = Fabric(fabric_of("2x2", "allgather").program, prefix=prefix)
    said = verilog.manifest(fabric, command="", files=[])
    assert (said["prefix"], said["top"]) == (prefix, f"{prefix}fabric")


@pytest.mark.parametrize("prefix", ["3x", "a-b", "a b", "a\n", "\\a ", "é", "$a", "x" * 65])
def test_bad_prefixes(prefix):
    """A prefix that cannot begin a name is refused with one line."""
    with pytest.raises(InputError, match=r"^Prefix must be [^\n]*, not '[^\n]*'$"):
        Fabric(fabric_of("2x2", "allgather").program, prefix=prefix)


BOARDS = ("icebreaker", "ulx3s-25f")


def nameless(monkeypatch):
    """Replace the inference of names, as if bytecode held no names of variables."""

    def given(depth=2, default=None):
        return default or "required"

    monkeypatch.setattr(tracer, "get_var_name", given)


@pytest.mark.parametrize(
    ("collectives", "how"),
    few(
        3,
        [
            ("allgather", {"flits": 2}),
            ("allgather", {"bus": "axi-lite"}),
            ("alltoall", {"bus": "wishbone", "max_flits": 4}),
            ("alltoall", {"top": "core"}),
            ("scatter,allgather", {"top": "stream", "max_flits": 4}),
            ("allreduce", {"top": "stream", "clocks": "per-node"}),
            ("allgather,alltoall,allreduce", {"max_flits": 4, "operators": ["add", "max"]}),
        ],
    ),
)
def test_no_name_comes_from_bytecode(collectives, how, monkeypatch):
    text = tf.emit(build_fabric("3x3", collectives, **how)).text
    nameless(monkeypatch)
    assert tf.emit(build_fabric("3x3", collectives, **how)).text == text


@pytest.mark.parametrize("board", few(1, [*BOARDS]))
def test_no_name_of_an_image_comes_from_bytecode(board, monkeypatch):
    def files():
        plan, _ = plan_build(build_fabric("3x3", "allgather", max_flits=4), find_board(board))
        return dict(plan.files)

    before = files()
    nameless(monkeypatch)
    assert files() == before
