"""The structure of modules and the contents of ROMs, as data, agree with the emitted Verilog."""

import json
import random
import subprocess

import pytest
from helpers import few, netlist_of_roms
from verilog_bench import have_icarus

import torusfabric as tf
from torusfabric.rtl.netlist import ROM
from torusfabric.toolchain import tools
from torusfabric.verilog import module_texts
from torusfabric.verilog.top import RomContents

#: Yosys commands that list the declarations of a design.
SCRIPT = "read_verilog fabric.v; proc -norom; memory_collect; write_json fabric.json"


@pytest.mark.parametrize(
    ("topology", "collectives", "options", "hardware"),
    few(
        2,
        [
            ("3x4", ["allgather"], {"flits": 2}, {"top": "host"}),
            ("3x3", ["alltoall", "allreduce"], {"max_flits": 3}, {"bus": "wishbone"}),
            ("2x2", ["alltoall", "broadcast"], {"max_flits": 3, "root": "any"}, {"top": "stream"}),
        ],
    ),
)
def test_structures_are_those_of_the_text(topology, collectives, options, hardware, tmp_path):
    """Ports, signals and memories agree with Yosys, and the manifest lists all modules."""
    schedules = [tf.plan(topology, collective) for collective in collectives]
    whole = schedules if len(schedules) > 1 else schedules[0]
    design = tf.emit(tf.Fabric(tf.compile(whole, **options), width=8, **hardware))
    design.write(tmp_path)
    tools.run("yosys", ["-q", "-p", SCRIPT], folder=tmp_path,
              log="yosys.log", what="the text", makes=["fabric.json"])  # fmt: skip
    read = json.loads((tmp_path / "fabric.json").read_text())["modules"]
    assert json.loads((tmp_path / "manifest.json").read_text())["modules"] == [*design.structures]
    assert [*design.structures] == [*design.modules]
    assert read.keys() >= design.modules.keys()
    for name, structure in design.structures.items():
        found = read[name]
        ports = {
            port: (each["direction"], len(each["bits"])) for port, each in found["ports"].items()
        }
        assert list(structure.ports) == list(ports)
        for port, (direction, width) in structure.ports.items():
            assert ports[port] == (direction, width or ports[port][1])
        signals = {net: len(each["bits"]) for net, each in found["netnames"].items()}
        assert structure.signals.items() <= signals.items()
        memories = {
            cell["parameters"]["MEMID"].strip("\\"): tuple(
                int(cell["parameters"][key], 2) for key in ("WIDTH", "SIZE")
            )
            for cell in found["cells"].values()
            if cell["type"].startswith("$mem")
        }
        shapes = {
            memory: (each.width, len(each.rows)) for memory, each in structure.memories.items()
        }
        assert memories == shapes or name in (design.rom_module, "look_up")


DEPTHS = (1, 2, 3, 64, 65, 80, 81, 100, 129)


def rom_text():
    """The Verilog of the ROM module."""
    return module_texts(netlist_of_roms(([0], 1)))[ROM].text


def contents_of(depth, width=5):
    """Random contents."""
    source = random.Random(depth)
    return RomContents(tuple(source.getrandbits(width) for _ in range(depth)), width)


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_rows(tmp_path):
    """A row appears one edge after its address; addresses past the end read the last row."""
    bench, expected = [], []
    for depth in DEPTHS:
        contents = contents_of(depth)
        bits, rows = contents.address_bits, contents.rows
        bench.append(
            f"module read_{depth};\n  reg clk; reg [{bits}:0] k; wire [4:0] data;\n"
            f"  rom #({contents.instance_parameters()}) rom (clk, k[{bits - 1}:0], data);\n"
            f"  initial for (k = 0; k < {1 << bits}; k = k + 1) begin\n"
            f'    clk = 0; #1 clk = 1; #1 $display("{depth} %0d %0d", k, data);\n'
            "  end\nendmodule\n"
        )
        for k in range(1 << bits):
            expected.append(f"{depth} {k} {rows[min(k, depth - 1)]}")
    (tmp_path / "bench.v").write_text("\n".join([rom_text(), *bench]))
    tops = [word for depth in DEPTHS for word in ("-s", f"read_{depth}")]
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
    made = subprocess.run(["iverilog", "-g2005", "-Wall", *tops, "-o", "a", "bench.v"], **run)
    said = subprocess.run(["vvp", "-n", "a"], **run)
    timescale = "implicit time"  # a warning about delays in a bench without a time scale
    assert [line for line in made.stderr.splitlines() if timescale not in line] == []
    assert sorted(said.stdout.splitlines()) == sorted(expected)
