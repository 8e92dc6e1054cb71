"""The emitted top module has the instances and wires of the netlist, without a warning."""

import re
from collections import Counter
from dataclasses import replace

import pytest
from helpers import fabric_of, few
from verilog_bench import check_silent, slang_diagnostics

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.proof.gates import read_gates
from torusfabric.rtl.netlist import Constant, Role
from torusfabric.toolchain import tools
from torusfabric.verilog.syntax import constant_lines

yosys = pytest.mark.skipif(tools.version("yosys") is None, reason="needs Yosys")

CASES = [
    ("2x3", "allreduce", None, {"flits": 2}),
    ("3x3", "gather", None, {"flits": 4, "top": "stream"}),
    ("3", "alltoall", None, {"flits": 2, "top": "stream"}),
    ("2x3", "broadcast", "diagonal", {"root": "any"}),
    ("3x3", "scatter", None, {"top": "core"}),
    ("arrowhead:3", "broadcast", "spanning-tree", {"flits": 3}),
    ("4x4", "allgather", "hamiltonian", {"top": "core", "flits": 2}),
    ("mesh:2x3", "allreduce", None, {"flits": 3}),
    ("2", "allgather", None, {}),
    (tf.Torus(2, 3, link_latency=(2, 7)), "alltoall", None, {"flits": 2}),
]

#: Arguments of `verilog`: each kind of hardware, and the fabrics of the benchmarks.
SELECTIONS = [
    "4x4 allgather --width 32",
    "2x2 broadcast,allreduce --max-flits 4 --op add,max --root any --width 8",
    "3x3 allgather --top stream --clocks per-node --flits 2 --width 16",
    "2x3 allreduce --bus axi-lite --max-flits 5 --width 40",
    "3x3 scatter --top core --width 8",
    "4 allgather --boards 2 --link-latency 30",
    "2x2 allreduce,allgather --tables ram --max-flits 4 --width 8",
    "12x12 allgather --flits 2",
    "4x4 allgather,alltoall --top stream --width 32 --max-flits 16",
    "4x4 allgather,allreduce --tables ram --rows 64 --inputs all --width 32 --max-flits 16",
    "4x4 broadcast,scatter --root any --width 16 --max-flits 16",
    "4x4 allreduce --bus axi4 --width 32 --max-flits 16",
    "4x4 allgather --algorithm hamiltonian --top core --width 32 --flits 2",
    "4x4 allgather,allreduce --top stream --tables ram --width 16 --max-flits 8",
    "4x4x4 reduce --width 16 --max-flits 16",
    "8x8 reduce --root any --width 16 --max-flits 64",
    "4x4 allgather --boards 2x1 --link-latency 30",
    "2x2 allgather --bus wishbone --width 70 --flits 2",
    "arrowhead:1 broadcast --algorithm wormhole-forest --width 65 --flits 2",
    "3x4 broadcast --algorithm max-flow --top core --width 9 --flits 2",
    "2x3 allreduce --op max,min:signed,add --width 9 --max-flits 3",
    "2x2 alltoall,gather --top stream --root any --barrier --width 8 --max-flits 3",
    "2x2 alltoall@1 --top stream --width 8 --max-flits 3",
    "2x2 exchange[+0] --top stream --width 8 --flits 2",
]


def kind(there):
    """The module of an instance, without the shape of a ROM."""
    return there.module.partition(" ")[0]


def differences(fabric, design):
    """Return the names of instances and ports that differ between Verilog and netlist."""
    netlist = fabric.netlist
    text = read_gates(design, dict.fromkeys(netlist.roles, Role.STREAM))  # only ports matter here
    nets = dict(text.inputs)
    for instance in netlist.instances:
        if instance.name in text.instances:
            pins = text.instances[instance.name].pins
            nets |= {net: pins[port] for port, net in instance.outputs.items()}

    def wanted(part):
        if isinstance(part, Constant):
            return [str(part.value >> k & 1) for k in range(part.width)]
        return nets[part.net][part.start : part.start + part.width]

    found, compared = [], 0
    for instance in netlist.instances:
        there = text.instances.get(instance.name)
        if there is None:  # Yosys omits instances whose outputs are not read
            continue
        bits, width = there.rom[::-1], len(there.pins.get("data", ()))
        rows = [int(bits[k * width :][:width][::-1], 2) for k in range(len(instance.contents))]
        if kind(there) != instance.module or tuple(rows) != instance.contents:
            found.append(instance.name)
        for port, parts in instance.inputs.items():
            if port in there.pins:
                compared += 1
                if there.pins[port] != [bit for part in parts for bit in wanted(part)]:
                    found.append(f"{instance.name}.{port}")
    outputs = {name: [netlist.all_bits(name)[0]] for name in netlist.outputs} | netlist.wired
    for name, parts in outputs.items():
        if text.outputs[name] != [bit for part in parts for bit in wanted(part)]:
            found.append(name)
    assert compared > len(text.instances)
    if not Counter(map(kind, text.instances.values())) <= netlist.instance_counts:
        found.append("modules")
    return found


@yosys
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), few(3, CASES))
def test_loops_are_the_instances_of_the_netlist(topology, collective, algorithm, options):
    fabric = fabric_of(topology, collective, algorithm, width=2, **options)
    design = tf.emit(fabric)
    assert "\\" not in design.modules["fabric"]
    assert differences(fabric, design) == []


@yosys
@pytest.mark.parametrize(
    ("collective", "table"), [("allreduce", "RX_0_OF"), ("alltoall", "ROM_LOAD_ROW_ROWS")]
)
def test_a_wrong_entry_is_found(collective, table):
    """A wrong digit in a table of the top module is found: a neighbour, a row, a number."""
    top = "stream" if collective == "alltoall" else "host"
    fabric = fabric_of("3x3", collective, width=2, flits=2, top=top)
    design = tf.emit(fabric)
    text = design.modules["fabric"]
    first = re.search(rf"localparam .*{table} = {{?\d+'h([\da-f]+)", text)
    digit = f"{int(text[first.end() - 1], 16) ^ 1:x}"
    wrong = text[: first.end() - 1] + digit + text[first.end() :]
    assert differences(fabric, replace(design, modules=design.modules | {"fabric": wrong}))


@pytest.mark.parametrize("selection", few(6, SELECTIONS))
def test_tools_are_silent(selection, tmp_path, capsys):
    """Verilator and Icarus with all warnings, slang, and the check of Yosys are silent."""
    assert main(["verilog", *selection.split(), "-o", str(tmp_path / "out")]) == 0
    check_silent(tmp_path / "out")
    capsys.readouterr()


def test_slang_notices_a_name_that_is_declared_later():
    loops = [f"for (k = 0; k < 2; k = k + 1) begin : {body} end" for body in
             ("a wire c = b[k].c;", "b wire c = 0;")]  # fmt: skip
    text = "module m; genvar k; generate {} {} endgenerate endmodule"
    assert slang_diagnostics(text.format(*loops)) == ["DiagCode(UpwardHierarchicalName)"]
    assert slang_diagnostics(text.format(*loops[::-1])) == []


def test_a_small_top_is_read_on_one_screen():
    top = tf.emit(fabric_of("4x4", "allgather", "hamiltonian", width=32)).modules["fabric"]
    assert top.count("\n") < 100
    assert all(len(line) < 100 for line in top.splitlines())


def test_long_constants_are_joined_in_groups():
    """Long constants are joined in small groups, because Verilator takes minutes for one pair of
    braces around thousands of lines.
    """
    value = int.from_bytes(bytes(range(256)) * 100, "little")
    text = constant_lines(value, 256 * 100 * 8)
    joined = 0
    for bits, digits in re.findall(r"(\d+)'h([0-9a-f]+)", text):
        joined = joined << int(bits) | int(digits, 16)
    assert joined == value
    assert max(inner.count(",") for inner in re.findall(r"{([^{}]*)}", text)) < 32
