"""Text with loops: the same hardware as text without, which tools read without a warning."""

import re
from dataclasses import replace

import pyslang
import pytest
from helpers import as_executed, fabric_of, few
from verilog_bench import check_silent, have_icarus, have_verilator, run_icarus

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.proof.gates import read_gates
from torusfabric.proof.report import Refuted
from torusfabric.proof.wiring import check_same_hardware
from torusfabric.toolchain import tools
from torusfabric.verilog.top import pieces

yosys = pytest.mark.skipif(tools.version("yosys") is None, reason="needs Yosys")

CASES = [
    ("2x3", "allreduce", None, {"flits": 2}),
    ("3x3", "gather", None, {"flits": 4, "top": "stream"}),
    ("2x3", "broadcast", "diagonal", {"root": "any"}),
    ("3x3", "scatter", None, {"top": "core"}),
    ("arrowhead:3", "broadcast", "spanning-tree", {"flits": 3}),
    ("4x4", "allgather", "hamiltonian", {"top": "core", "flits": 2}),
    ("mesh:2x3", "allreduce", None, {"flits": 3}),
    ("2", "allgather", None, {}),
]


def compared(fabric, loops):
    """The pins that are the same in text with loops and without."""
    leaves = [*fabric.netlist.roles]
    plain = tf.emit(fabric)
    texts = [read_gates(design, leaves, closed=leaves) for design in (loops, plain)]
    return check_same_hardware(loops, texts[0], plain, texts[1])


@yosys
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), few(3, CASES))
def test_loops_are_the_same_hardware(topology, collective, algorithm, options):
    fabric = fabric_of(topology, collective, algorithm, width=2, **options)
    loops = tf.emit(fabric, compact=True)
    assert "\\" not in loops.modules["fabric"]
    pins = sum(len(i.inputs) + len(i.outputs) for i in fabric.netlist.instances)
    assert compared(fabric, loops) > pins


@yosys
@pytest.mark.parametrize("wrong", [False, True])
def test_rows_of_a_torus_are_those_of_a_slice(wrong):
    """Moved around, by what a node is ahead of the one of the slice; another way they are wrong."""
    fabric = fabric_of("3", "alltoall", width=2, flits=2, top="stream")
    loops = tf.emit(fabric, compact=True)
    text = loops.modules["fabric"]
    assert "_ROW_HERE_STILL = ROM_LOAD_ROW_ROWS" in text
    if not wrong:
        assert compared(fabric, loops)
        return
    changed = text.replace(" * (k / ", " * (1 + k / ", 1)
    assert changed != text
    with pytest.raises(Refuted):
        compared(fabric, replace(loops, modules=loops.modules | {"fabric": changed}))


@yosys
@pytest.mark.parametrize(
    ("collective", "table"),
    few(2, [("allreduce", "RX_0_OF"), ("broadcast", "ROM_ROW_ROWS"),
            ("allreduce", "ENDPOINT_RX_0")]),
)  # fmt: skip
def test_a_wrong_entry_is_found(collective, table):
    """One digit of a table is another: a neighbour, a row, a word."""
    algorithm = "max-flow" if collective == "broadcast" else None
    fabric = fabric_of("3x3", collective, algorithm, width=2, flits=2)
    loops = tf.emit(fabric, compact=True)
    text = loops.modules["fabric"]
    first = re.search(rf"localparam .*{table} = {{\d+'h([\da-f]+)", text)
    assert first
    digit = f"{int(text[first.end() - 1], 16) ^ 1:x}"
    wrong = text[: first.end() - 1] + digit + text[first.end() :]
    with pytest.raises(Refuted):
        compared(fabric, replace(loops, modules=loops.modules | {"fabric": wrong}))


@pytest.mark.skipif(not (have_icarus() and have_verilator()), reason="needs both simulators")
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), few(2, CASES[::-1]))
def test_tools_are_silent(topology, collective, algorithm, options, tmp_path):
    fabric = fabric_of(topology, collective, algorithm, **options)
    tf.emit(fabric, compact=True).write(tmp_path)
    check_silent(tmp_path)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"),
    [
        *few(4, CASES),
        ("12x12", "allgather", None, {"flits": 2}),
        ("2x2", "alltoall", None, {"flits": 2, "top": "stream"}),
    ],
)
def test_slang_has_nothing_to_say(topology, collective, algorithm, options, compact):
    """No name is looked for upwards, no block of a loop is without a name, no shift is too far."""
    design = tf.emit(fabric_of(topology, collective, algorithm, **options), compact=compact)
    assert slang_diagnostics(design.text) == []


def test_slang_notices_a_name_that_is_declared_later():
    loops = [f"for (k = 0; k < 2; k = k + 1) begin : {body} end" for body in
             ("a wire c = b[k].c;", "b wire c = 0;")]  # fmt: skip
    text = "module m; genvar k; generate {} {} endgenerate endmodule"
    assert slang_diagnostics(text.format(*loops)) == ["DiagCode(UpwardHierarchicalName)"]
    assert slang_diagnostics(text.format(*loops[::-1])) == []


def slang_diagnostics(text):
    """Return the names of all warnings and errors of slang."""
    compilation = pyslang.ast.Compilation()
    compilation.addSyntaxTree(pyslang.syntax.SyntaxTree.fromText(text))
    return [str(each.code) for each in compilation.getAllDiagnostics()]


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_words_and_cycles(tmp_path):
    """What Icarus makes of loops delivers what the program does, in as many cycles."""
    fabric = fabric_of("3x4", "allreduce", flits=2)
    tf.emit(fabric, compact=True).write(tmp_path)
    messages, executed = as_executed(fabric)
    base, count = fabric.layout.recv_base, fabric.layout.recv_words
    read = [range(base, base + count)] * fabric.nodes
    result = run_icarus(tmp_path, messages, read, starts=2)
    assert [list(map(int, row)) for row in result.words] == executed.tolist()
    assert result.cycles == fabric.predicted_cycles


def test_large_fabrics_have_loops(tmp_path):
    """Unless told otherwise; the command in the header makes the same text."""
    cases = [("8x8", "", False), ("8x8", " --compact", True),
             ("16x8", "", True), ("16x8", " --no-compact", False)]  # fmt: skip
    for size, said, loops in cases:
        words = ["verilog", size, "allgather", *said.split(), "--force", "-o", str(tmp_path)]
        assert main(words) == 0
        text = (tmp_path / "fabric.v").read_text()
        assert ("begin : node" in text) is loops
        assert re.findall(r" --(?:no-)?compact", text.split("module")[0]) == [said] * bool(said)


def test_what_needs_a_text_for_each_instance_is_refused(capsys, tmp_path):
    for more in (["--flow", "vivado"], ["--boards", "2x1"]):
        words = ["verilog", "4x4", "allgather", "--compact", "-o", str(tmp_path / "out"), *more]
        assert main(words) == 1
        said = f"--compact must be left out with {more[0]}, for which each instance has its text"
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_long_constants_are_joined_in_groups():
    """Of one pair of braces around thousands of lines Verilator takes minutes."""
    value = int.from_bytes(bytes(range(256)) * 100, "little")
    text = pieces(value, 256 * 100 * 8)
    joined = 0
    for bits, digits in re.findall(r"(\d+)'h([0-9a-f]+)", text):
        joined = joined << int(bits) | int(digits, 16)
    assert joined == value
    assert max(inner.count(",") for inner in re.findall(r"{([^{}]*)}", text)) < 32
