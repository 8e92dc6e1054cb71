"""The ROM module, and ROMs inside modules: what they hold, in a form that is read quickly."""

import random
import subprocess

import pytest
from helpers import netlist_of_roms
from verilog_bench import have_icarus

from torusfabric.rtl.netlist import ROM
from torusfabric.verilog import module_texts
from torusfabric.verilog.top import RomContents

DEPTHS = (1, 2, 3, 64, 65, 80, 81, 100, 129)


def rom_text():
    """The text of the ROM module."""
    return module_texts(netlist_of_roms(([0], 1)))[ROM].text


def contents_of(depth, width=5):
    """Random contents."""
    source = random.Random(depth)
    return RomContents(tuple(source.getrandbits(width) for _ in range(depth)), width)


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
def test_rows(tmp_path):
    """A row is there one edge after its address; past the end it is the last row."""
    bench, expected = [], []
    for depth in DEPTHS:
        contents = contents_of(depth)
        bits, rows = contents.address_bits, contents.rows
        bench.append(
            f"module read_{depth};\n  reg clk; reg [{bits}:0] k; wire [4:0] data;\n"
            f"  rom #({contents.parameters()}) rom (clk, k[{bits - 1}:0], data);\n"
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
    timescale = "implicit time"  # said of delays in a bench without a time scale
    assert [line for line in made.stderr.splitlines() if timescale not in line] == []
    assert sorted(said.stdout.splitlines()) == sorted(expected)
