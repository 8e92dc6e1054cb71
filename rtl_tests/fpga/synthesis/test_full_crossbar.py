"""Routers compared with full crossbars, and the parts that take the LUTs."""

import shutil
import subprocess

import pytest
from hand_written import PORTS, described
from printed import printed

from torusfabric.fpga.synthesis.full_crossbar import full_crossbar
from torusfabric.fpga.synthesis.lut_purposes import fewest_luts
from torusfabric.fpga.synthesis.synthesize import Workplace, synthesize
from torusfabric.rtl.multiplexer import select_bits
from torusfabric.verilog.design import Design, RouterClass, RouterShape


@pytest.mark.long
def test_report_shows_where_the_luts_go():
    report = synthesize(described(), "ecp5-25k")
    # Forwarding takes wires only: all LUTs are for injection.
    row = report.classes[0]
    assert row["parts"] == {"crossbar": 0, "injection": PORTS * 8, "settings": 0}
    assert row["least_luts"] == PORTS * 8
    assert report.parts == {"injection": 4 * PORTS * 8, "crossbar": 0, "settings": 0, "other": 0}
    assert sum(report.parts.values()) == report.fabric["luts"]
    assert "where the LUTs go" in printed(report)


@pytest.mark.long
def test_luts_saved_against_a_full_crossbar(runs):
    report = synthesize(described(), "ecp5-25k")
    row, fabric = report.classes[0], report.fabric
    # Five inputs take three LUTs a bit; the ROM of four settings takes some more.
    full = row["full_crossbar_luts"]
    assert PORTS * 8 * 3 <= full <= PORTS * 8 * 3 + 20
    assert row["saved_luts"] == full - row["luts"]
    assert fabric["full_crossbar_luts"] == 4 * full
    assert fabric["saved_share"] == row["saved_share"] == round(row["saved_luts"] / full, 4)
    assert "routers against full crossbars" in printed(report)
    fast = synthesize(described(), "ecp5-25k", mapping="fast")
    assert fast.classes[0]["full_crossbar_luts"] == full  # always that of the compact mapping


@pytest.mark.long
@pytest.mark.parametrize("inputs", [3, 10])
def test_full_crossbar_is_a_cascade_of_tables(inputs, cache):
    width = 9  # so many registers that iCE40 uses a clock enable
    shape = RouterShape(ports=inputs - 1, own_words=1, width=width, settings=0)
    full = full_crossbar(shape)
    luts = synthesize(full, "ice40-hx8k", workplace=Workplace(cache=cache)).fabric["luts"]
    assert luts == width * (inputs - 1) * -(-inputs // 2)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
@pytest.mark.parametrize("inputs", [2, 3, 4, 5, 8])
def test_full_crossbar_passes_every_input(inputs, tmp_path):
    full = full_crossbar(RouterShape(ports=1, own_words=inputs - 1, width=1, settings=0))
    rows = [select_bits(inputs, source) for source in range(inputs)]
    values = ["".join(map(str, reversed(row))) for row in rows]
    checks = "".join(
        f"    s = 'b{value}; d = {1 << k}; #1 clk = 1; #1 clk = 0; if (q !== 1) bad = 1;\n"
        f"    d = ~{1 << k}; #1 clk = 1; #1 clk = 0; if (q !== 0) bad = 1;\n"
        for k, value in enumerate(values)
    )
    bench = f"""
    module bench;
      reg clk = 0, bad = 0; reg [{inputs - 1}:0] d; reg [{len(rows[0]) - 1}:0] s; wire q;
      full x (clk, 1'b1, s, d[0], d[{inputs - 1}:1], q);
      initial begin
    {checks}    $display("%0d", bad);
      end
    endmodule
    """
    (tmp_path / "x.v").write_text(full.text + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["0"]


def test_fewest_tables():
    # Two or three words take one LUT if its other inputs suffice for their selects.
    assert [fewest_luts(n) for n in range(9)] == [0, 0, 1, 2, 2, 3, 3, 3, 4]
    assert [fewest_luts(n, 6) for n in (1, 2, 4, 5, 8)] == [0, 1, 1, 2, 2]


@pytest.mark.long
def test_registers_before_the_last_count_as_words():
    text = """
    module router(input clk, input [1:0] s, input [3:0] in, input [3:0] own, output reg [3:0] tx);
      reg [3:0] later; reg [1:0] select;
      always @(posedge clk) begin
        select <= ~s; later <= in; tx <= select[1] ? own : select[0] ? later : in;
      end
    endmodule
    """
    found = RouterClass(1, outports=("tx",), inports={"in": "crossbar", "own": "injection"})
    one = Design({"router": text}, "router", {}, classes={"router": found})
    row = synthesize(one, "ice40-hx8k").classes[0]
    assert row["least_luts"] == 4 * 2
    assert sum(row["parts"].values()) == row["luts"]
    assert row["parts"]["settings"] == 2
