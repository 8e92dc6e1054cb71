"""Verilog for every tool: declarations, attributes, case statements, and memories by a rule."""

import re
import subprocess
from functools import cache

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import memory
from helpers import few
from verilog_bench import have_icarus

import torusfabric as tf
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.adapters.boards.hardware import BoardSystem
from torusfabric.errors import InputError
from torusfabric.topology.boards import Boards
from torusfabric.verilog.module_text import MemoryRule
from torusfabric.verilog.writer import Heading, write_module

#: Attributes that Vivado or Quartus documents, and the values that both Yosys and they know.
LEGAL = {
    "keep": {None, '"true"'},
    "dont_merge": {None},
    "ASYNC_REG": {'"TRUE"'},
    "ram_style": {'"registers"', '"distributed"', '"block"', '"ultra"'},
    "ramstyle": {'"no_rw_check"', '"MLAB, no_rw_check"'},
    "rom_style": {'"distributed"', '"block"'},
    "romstyle": {'"logic"'},
}

#: Macros of a device or of Yosys. Text under these may have tool-specific attributes.
DEVICES = ("TORUSFABRIC_LUT4", "TORUSFABRIC_ECP5", "YOSYS")


@cache
def texts():
    """Emit fabrics that together contain every kind of module."""
    reduce = tf.compile([tf.plan("3x3", "allreduce"), tf.plan("3x3", "alltoall")], max_flits=8)
    modes = ["allreduce", "alltoall", "scatter", "broadcast"]
    several = tf.compile(
        [tf.plan("2x2", each) for each in modes], max_flits=2, operators=["max", "add", "xor"]
    )
    ring = tf.Torus(4, link_latency=9)
    pair, boards = tf.compile(tf.plan(ring, "allgather"), flits=3), Boards.parse("2", ring)
    gather = tf.compile(tf.plan("4x4", "allgather"), flits=3)
    return {
        "host": tf.emit(tf.Fabric(reduce, width=8)).text,
        "streams": tf.emit(tf.Fabric(reduce, width=8, top="stream", clocks="per-node")).text,
        "bus": tf.emit(tf.Fabric(gather, width=16, bus="axi-lite")).text,
        "rule": tf.emit(tf.Fabric(gather, width=16), ram="distributed:4@8,ultra").text,
        "forms": tf.emit(tf.Fabric(several, width=16)).text,
        "boards": emit_boards(
            BoardSystem(tf.Fabric(pair, width=16), boards), ram="block@2,distributed"
        ).text,
    }


def elsewhere(text):
    """Return the lines that a tool reads if no macro of a device or of Yosys is defined."""
    lines, inside = [], []
    for line in text.splitlines():
        match line.split():
            case ["`ifdef", name]:
                inside.append(name not in DEVICES)
            case ["`ifndef", _]:
                inside.append(True)
            case ["`else", *_]:
                inside[-1] = not inside[-1]
            case ["`endif", *_]:
                inside.pop()
            case _ if all(inside):
                lines.append(line)
    assert not inside
    return lines


@pytest.mark.parametrize("name", few(2, ["host", "streams", "bus", "rule"], tuples=True))
def test_attributes_are_legal_everywhere(name):
    found = re.findall(r"\(\* (.*?) \*\)", "\n".join(elsewhere(texts()[name])))
    assert found
    for each in ", ".join(found).replace("MLAB, no", "MLAB no").split(", "):
        key, _, value = each.partition(" = ")
        assert (value.replace("MLAB no", "MLAB, no") or None) in LEGAL[key], each


def test_an_attribute_that_one_tool_knows_is_found():
    text = "(* keep = 32'd1 *) wire a;\n`ifdef YOSYS\n(* no_rw_check *)\n`endif\nreg b [0:1];"
    assert re.findall(r"\(\* (\w+)", "\n".join(elsewhere(text))) == ["keep"]


def test_synchronizers_are_marked():
    found = re.findall(r"reg (?:\[.*\] )?(\w*stage\d)\b", texts()["streams"])
    marked = re.findall(r'\(\* ASYNC_REG = "TRUE" \*\) reg (?:\[.*\] )?(\w+)', texts()["streams"])
    assert marked
    assert sorted(found) == sorted(marked)
    assert "ASYNC_REG" not in texts()["host"]


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
@pytest.mark.parametrize("define", [[], ["-DTORUSFABRIC_LUT4"], ["-DSYNTHESIS"]])
def test_each_form_is_verilog_2005(tmp_path, define):
    for name, text in texts().items():
        (tmp_path / "fabric.v").write_text(text)
        command = ["iverilog", "-g2005", "-Wall", "-Wno-timescale", *define, "-o", "/dev/null"]
        done = subprocess.run(
            [*command, tmp_path / "fabric.v"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), name


def memory_text(rule, *, depth, width=8, at_once=False):
    """Emit a memory with a write port and a read port, by a memory rule."""
    m, q = Module(), Signal(width, name="q")
    m.submodules.words = words = memory.Memory(shape=width, depth=depth, init=[])
    write = words.write_port()
    read = words.read_port(domain="comb" if at_once else "sync")
    m.d.comb += [write.en.eq(1), q.eq(read.data)]
    return write_module(Heading("store"), m, {"q": q}, rule=MemoryRule.parse(rule)).text


def test_the_first_entry_that_has_room_counts():
    rule = "registers:2,distributed:64x16,block:1024,ultra"
    for depth, width, style in [
        (2, 99, "registers"),
        (64, 16, "distributed"),
        (64, 17, "block"),
        (1024, 8, "block"),
        (1025, 8, "ultra"),
    ]:
        text = memory_text(rule, depth=depth, width=width)
        assert f'ram_style = "{style}"' in text, (depth, width)
        assert ("`ifndef SYNTHESIS" in text) == (style == "ultra")
    assert "ram_style" not in memory_text("block:8", depth=9)
    assert '(* ramstyle = "no_rw_check" *)' in memory_text("auto", depth=9)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("block@4,distributed", [2, 2, 0, 0]),
        ("block@5,distributed", [2, 2, 0, 0]),
        ("block@1,distributed", [0, 0, 0, 0]),
        ("block@1,block@2,distributed", [2, 0, 0, 0]),
        ("block:8@3,block:16@2,distributed", [2, 2, 1, 0]),
        ("distributed:8@2,block", [1, 1, 2, 2]),
    ],
)
def test_counts_serve_nodes_in_order(rule, wanted):
    """An entry serves the first nodes, as long as its count has room for all memories of a node."""
    nodes = [[(32, 16), (32, 8)]] * 4
    rules = MemoryRule.parse(rule).split_by_count(nodes)
    found = [[each.choose_style(*size).value for size in nodes[0]] for each in rules]
    assert [styles.count("block") for styles in found] == wanted
    assert str(MemoryRule.parse(rule)) == rule


def test_what_is_read_at_once_is_no_block():
    assert "ram_style" not in memory_text("block", depth=9, at_once=True)
    assert 'ram_style = "distributed"' in memory_text("distributed", depth=9, at_once=True)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "M20K",
        "block:0",
        "block:8x",
        "block:8x8x8",
        "block,,ultra",
        "block@0",
        "block@",
        "auto8",
    ],
)
def test_rules_are_checked(rule):
    with pytest.raises(InputError, match=r"^--ram must be STYLE\[:DEPTH\[xWIDTH\]\]\[@COUNT\], "):
        MemoryRule.parse(rule)


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_patterns_with_bits_that_do_not_matter_choose_by_the_others(tmp_path):
    m, test, found = Module(), Signal(4, name="test"), Signal(2, name="found")
    with m.Switch(test):
        with m.Case("1--0"):
            m.d.comb += found.eq(1)
        with m.Case("0-11", "0100"):
            m.d.comb += found.eq(2)
        with m.Default():
            m.d.comb += found.eq(3)
    text = write_module(Heading("decided"), m, {"test": test, "found": found}).text
    assert not re.search(r"\bcase[xz]\b", text)
    bench = """module tb; reg [4:0] k; wire [1:0] found; decided dut(.test(k[3:0]), .found(found));
      initial for (k = 0; k < 16; k = k + 1) #1 $write("%0d", found); endmodule"""
    # 1--0 is 8, 10, 12, 14; 0-11 is 3, 7; 0100 is 4.
    assert simulate(tmp_path, text + bench) == "3332233213131313"


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
@pytest.mark.parametrize("name", ["host", "streams", "bus", "rule", "forms", "boards"])
def test_inputs_may_keep_the_value_of_their_declaration(tmp_path, name):
    """Only clocks, resets and `start` change; other inputs keep the initial value of their
    declaration.

    SystemVerilog initializes declarations before any process waits, so no such input has an event.
    After a run no output is unknown, and the run has ended.
    """
    text = texts()[name]
    top = "board_0" if name == "boards" else "fabric"
    heads = re.search(rf"^module {top} \((.*?)^\);", text, re.M | re.S)[1]
    ports = re.findall(r"(input|output) (?:wire|reg) (\[\d+:0\])? ?(\w+)", heads)
    inputs = [net for way, _, net in ports if way == "input"]
    clocks = [net for net in inputs if "clk" in net]
    resets = [net for net in inputs if "rst" in net]
    declared = [
        f"reg {bits} {net} = {int(net == 'length')};" if net in inputs else f"wire {bits} {net};"
        for _, bits, net in ports
    ]
    pins = ", ".join(f".{net}({net})" for _, _, net in ports)
    begin = "start = 1; @(negedge clk); start = 0;" if "start" in inputs else ""
    checks = [
        f"""if (^{net} === 1'bx) $write("{net} is unknown; ");"""
        for way, _, net in ports
        # Stream data are undefined before the first packet.
        if way == "output" and not net.endswith("_tdata")
    ]
    # A board waits for the others.
    ended = {"boards": "busy"}.get(name, "done" if begin else "1")
    bench = f"""module tb; {" ".join(declared)} {top} dut({pins});
      always #5 begin {" ".join(f"{net} = ~{net};" for net in clocks)} end
      initial begin
        {" ".join(f"{net} = 1;" for net in resets)} repeat (40) @(negedge clk);
        {" ".join(f"{net} = 0;" for net in resets)} repeat (40) @(negedge clk);
        {begin} repeat (200) @(negedge clk);
        {" ".join(checks)} if (!{ended}) $write("the run does not end"); $finish;
      end endmodule"""
    assert simulate(tmp_path, text + bench) == ""


def simulate(folder, text):
    """Return the output of a bench in Icarus by the rules of SystemVerilog."""
    (folder / "bench.v").write_text(text.replace("`default_nettype none", ""))
    build = ["iverilog", "-g2012", "-s", "tb", "-o", folder / "bench.vvp", folder / "bench.v"]
    subprocess.run(build, check=True)
    run = ["vvp", "-n", folder / "bench.vvp"]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()
