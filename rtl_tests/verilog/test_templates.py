"""Templates beside the Verilog: an instance to copy, and bound assertions that find faults."""

import re
import shutil
import subprocess
from functools import cache

import pytest
from helpers import few
from verilog_bench import have_icarus

import torusfabric as tf
from torusfabric.toolchain import tools
from torusfabric.verilog.templates import INSTANCE, SVA

#: The Verilator of the system, which needs make and perl to build a simulation.
VERILATOR = shutil.which("verilator")

FABRICS = {
    "host": {},
    "stream": {"top": "stream"},
    "axi-lite": {"bus": "axi-lite"},
    "wishbone": {"bus": "wishbone"},
}

#: A program that drives a fabric after a reset.
MAIN = """
#include "Vfabric.h"
#include "verilated.h"
static Vfabric top;
static void edge() { top.clk = 0; top.eval(); top.clk = 1; top.eval(); }
int main() {
  top.rst = 1;
  for (int k = 0; k < 20; k++) edge();
  top.rst = 0;
%s}
"""

#: Runs of both modes at several lengths; words are written before each.
DRIVE = """
  for (int k = 0; k < 20; k++) edge();
  for (int mode = 0; mode < 2; mode++) for (int length = 1; length <= 4; length++) {{
    top.host_we = 1; edge(); top.host_we = 0;
    for (int k = 0; k < 20; k++) edge();
    top.mode = mode; top.length = length; top.start = 1; edge(); top.start = 0;
    int limit = 0;
    while (!top.done) {{ {during} edge(); if (++limit > 100) return 3; }}
    edge(); edge();
  }}
  return 0;
"""

#: Words offered at every port, and accepted by a receiver that is often idle.
STREAMS = """
  int received = 0;
  for (int k = 0; k < 4000; k++) {{
    top.clk = 0; top.eval();
    {taken}
    received += top.m_axis_0_tvalid && top.m_axis_0_tready;
    top.clk = 1; top.eval();
    {offer}
    {take}
  }}
  return received > 20 ? 0 : 3;
"""


@cache
def design(name):
    """A design with both templates beside its Verilog."""
    hardware = FABRICS[name]
    if name == "stream":
        program = tf.compile(tf.plan("2x2", "allgather"), flits=2)
    else:
        schedules = [tf.plan("2x2", "allgather"), tf.plan("2x2", "alltoall")]
        program = tf.compile(schedules, max_flits=4)
    return tf.emit(tf.Fabric(program, width=8, **hardware), templates=True)


def simulated(folder, name, drive, *, text=None, sva=None):
    """Simulate a design with its bound assertions; return exit status and output."""
    made = design(name)
    (folder / "fabric.v").write_text(text or made.text)
    (folder / SVA).write_text(sva or made.files[SVA])
    (folder / "drive.cpp").write_text(MAIN % drive)
    command = [VERILATOR, "--cc", "--exe", "--build", "--assert", "--top-module", "fabric",
               "-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0",
               "-Wno-fatal", "-O0", "fabric.v", SVA, "drive.cpp"]  # fmt: skip
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    run = subprocess.run(
        [folder / "obj_dir/Vfabric"], cwd=folder, capture_output=True, text=True, check=False
    )
    return run.returncode, run.stdout + run.stderr


needs_verilator = pytest.mark.skipif(VERILATOR is None, reason="needs a Verilator with make")


@needs_verilator
def test_runs_end_in_the_forecast_cycle(tmp_path):
    assert simulated(tmp_path, "host", DRIVE.format(during="")) == (0, "")


@needs_verilator
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "wanted", "during"),
    [
        ("done_in_the_forecast_cycle", "wanted + 1", ""),
        ("not_busy_for_longer", "wanted - 1", ""),
        ("no_write_in_a_run", "wanted", "top.host_we = 1;"),
    ],
)
def test_faults_of_a_run_are_noticed(tmp_path, name, wanted, during):
    """The assertions notice a prediction that is wrong by a cycle, and a write during a run."""
    sva = design("host").files[SVA].replace("forecast <= wanted;", f"forecast <= {wanted};")
    status, said = simulated(tmp_path, "host", DRIVE.format(during=during), sva=sva)
    assert status != 0
    assert name in said


@needs_verilator
@pytest.mark.long
def test_streams_keep_to_their_rules(tmp_path):
    nodes = range(4)
    both = ", ".join(f"top.s_axis_{n}_tvalid && top.s_axis_{n}_tready" for n in nodes)
    taken = f"static int words[4]; bool taken[4] = {{{both}}};"
    # A packet has two words: the next word is its last if an odd number were taken.
    offer = "\n".join(
        f"words[{n}] += taken[{n}]; if (!top.s_axis_{n}_tvalid || taken[{n}]) "
        f"{{ top.s_axis_{n}_tvalid = k % 3 != {n % 3}; top.s_axis_{n}_tdata = k; "
        f"top.s_axis_{n}_tlast = words[{n}] & 1; }}"
        for n in nodes
    )
    take = " ".join(f"top.m_axis_{n}_tready = (k * 7 + {n}) % 5 < 2;" for n in nodes)
    drive = STREAMS.format(taken=taken, offer=offer, take=take)
    assert simulated(tmp_path, "stream", drive) == (0, "")
    text = design("stream").text
    spoiled = re.sub(
        r"output wire \[7:0\] m_axis_0_tdata", "output wire [7:0] m_axis_0_tdata_", text, count=1
    )
    spoiled = re.sub(r"\.read_data\(m_axis_0_tdata\)", ".read_data(m_axis_0_tdata_)", spoiled)
    spoiled = spoiled.replace(
        ");\n", ");\n  reg [7:0] spoils = 0;\n  always @(posedge clk) spoils <= spoils + 1;\n"
        "  wire [7:0] m_axis_0_tdata = m_axis_0_tdata_ ^ spoils;\n", 1,
    )  # fmt: skip
    (tmp_path / "spoiled").mkdir()
    status, said = simulated(tmp_path / "spoiled", "stream", drive, text=spoiled)
    assert status != 0
    assert "m_axis_0_tvalid_stays" in said


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
@pytest.mark.parametrize("name", FABRICS)
def test_the_instance_has_all_ports(tmp_path, name):
    made = design(name)
    text = f"{made.text}\nmodule user;\n{made.files[INSTANCE]}\nendmodule\n"
    (tmp_path / "user.v").write_text(text)
    command = ["iverilog", "-g2005", "-Wall", "-Wno-timescale", "-s", "user", "-o", "/dev/null"]
    done = subprocess.run(
        [*command, tmp_path / "user.v"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    ports = made.structures[made.top].ports
    assert re.findall(r"^  \.(\w+)\(\1\)", made.files[INSTANCE], re.M) == [*ports]


@needs_verilator
@pytest.mark.parametrize("name", few(2, [*FABRICS], tuples=True))
def test_assertions_are_systemverilog(tmp_path, name):
    made = design(name)
    (tmp_path / "fabric.v").write_text(made.text)
    (tmp_path / SVA).write_text(made.files[SVA])
    command = [VERILATOR, "--lint-only", "-Wall", "-Wno-DECLFILENAME", "--assert", "--top-module"]
    done = subprocess.run(
        [*command, "fabric", "fabric.v", SVA], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "assert property" in made.files[SVA]


def for_yosys(made):
    """The assertions as Yosys reads them; those on the environment are assumptions."""
    rule = r"(\w+): assert property \(@\(posedge (\w+)\) disable iff \((\w+)\) (.*) \|-> (.*)\);"
    as_always = r"always @(posedge \2) if (past && !\3) \1: assert (!(\4) || (\5));"
    module, _ = made.files[SVA].split("\nbind ")
    own, environment = re.sub(rule, as_always, module).split("begin : environment")
    start = "reg past = 0; always @(posedge clk) past <= 1; always @* if (!past) assume (rst);"
    rules = f"{own}begin : environment{environment.replace(': assert (', ': assume (')}"
    rules = rules.replace("\n);", f"\n);\n  {start}", 1).replace("parameter bit", "parameter")
    assert "|->" not in rules
    ports = made.structures[made.top].ports
    declared = {name: f"wire [{port.width - 1}:0] {name}" for name, port in ports.items()}
    free = [declared.pop(name) for name, port in ports.items() if port.direction == "input"]
    pins = ", ".join(f".{name}({name})" for name in ports)
    bound = re.findall(r"^  input wire (?:\[\d+:0\] )?(\w+)", module, re.M)
    return "\n".join([
        made.text.replace("`default_nettype none", ""), rules,
        f"module harness(input {', input '.join(free)});",
        *(f"{wire};" for wire in declared.values()), f"fabric dut({pins});",
        f"fabric_sva rules({', '.join(f'.{name}({name})' for name in bound)});\nendmodule\n",
    ])  # fmt: skip


@pytest.mark.skipif(None in map(tools.find, ("sby", "z3")), reason="needs sby and z3")
@pytest.mark.parametrize("fault", [False, pytest.param(True, marks=pytest.mark.long)])
def test_sby_proves_the_assertions(tmp_path, fault):
    """The assertions are proved by induction; a fabric that drops a waiting word is refuted."""
    program = tf.compile(tf.plan("2", "allgather"), flits=1)
    text = for_yosys(tf.emit(tf.Fabric(program, width=1, top="stream"), templates=True))
    wrong = text.replace("if (clear) shown_valid", "if (clear | ~tready) shown_valid")
    assert wrong != text
    (tmp_path / "all.sv").write_text(wrong if fault else text)
    (tmp_path / "rules.sby").write_text(
        "[options]\nmode prove\ndepth 4\n[engines]\nsmtbmc z3\n[script]\n"
        "read_verilog -sv -formal all.sv\nprep -top harness\n[files]\nall.sv\n"
    )
    solver = tools.find("yosys-smtbmc")
    parts = [f"--yosys={tools.find('yosys')}", f"--smtbmc={solver}",
             f"--witness={solver.replace('smtbmc', 'witness')}"]  # fmt: skip
    done = subprocess.run([tools.find("sby"), *parts, "-f", "rules.sby"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert ("DONE (PASS" in done.stdout) is not fault, done.stdout
    assert ("Assert failed in harness.rules: m_axis_0_tvalid_stays" in done.stdout) is fault
