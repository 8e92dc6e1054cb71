"""Synthesis for silicon: gate equivalents by the cells of a Liberty file."""

import re

import pytest
from helpers import fabric_of

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.fpga.synthesis.family import Cost, Mapping
from torusfabric.fpga.synthesis.flow import Flow
from torusfabric.fpga.synthesis.silicon import GENERIC_CELLS, family_of_liberty
from torusfabric.fpga.synthesis.target import find_target
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.verilog.design import Design

#: A process of five cells, whose NAND gate has an area of 4.
LIBERTY = """
library(small) {
  delay_model : table_lookup; time_unit : "1ns"; capacitive_load_unit(1, pf);
  /* cell(NOT_A_CELL) { area : 1; } */
  cell("INVX1") { area : 2; pin(A) { direction : input; }
    pin(Y) { direction : output; function : "(!A)"; } }
  cell(NAND2X1) { area : 4; pin(A) { direction : input; } pin(B) { direction : input; }
    pin(Y) { direction : output; function : "(!(A B))"; } }
  cell(NAND2X4) { area : 9; pin(A) { direction : input; } pin(B) { direction : input; }
    pin(Y) { direction : output; function : "(!(A B))"; } }
  cell(NOR2X1) { area : 4; pin(A) { direction : input; } pin(B) { direction : input; }
    pin(Y) { direction : output; function : "(!(A+B))"; } }
  cell(DFFX1) { area : 20; ff(IQ, IQN) { clocked_on : "C"; next_state : "D"; }
    pin(C) { direction : input; clock : true; } pin(D) { direction : input; }
    pin(Q) { direction : output; function : "IQ"; } }
}
"""


@pytest.fixture
def liberty(tmp_path):
    """The path of the Liberty file."""
    path = tmp_path / "small.lib"
    path.write_text(LIBERTY)
    return str(path)


def cost_of(text, target, folder):
    """The cost of a module `top`."""
    device = find_target(target)
    design = Design({"top": text}, "top", {"top": {}})
    versions = {"yosys": tools.version("yosys")}
    flow = Flow(design, device, Mapping.COMPACT, versions, folder, Cache(folder / "cache"))
    return Cost(**flow.map_modules(["top"])[0]["cost"])


def test_areas_are_multiples_of_the_smallest_nand_gate(liberty):
    family = family_of_liberty(liberty)
    assert family.cell_cost("INVX1") == Cost(gates=0.5)
    assert family.cell_cost("NAND2X4") == Cost(gates=2.25)
    assert family.cell_cost("DFFX1") == Cost(gates=5, ffs=1)
    assert family.cell_cost("NOT_A_CELL") is None


def test_a_module_costs_what_its_cells_do(tmp_path):
    """Areas in another unit are the same number of gates."""
    path = tmp_path / "double.lib"
    double = lambda found: f"area : {2 * float(found[1])};"
    path.write_text(re.sub(r"area : (.+);", double, GENERIC_CELLS.read_text()))
    text = """module top(input clk, input a, input b, output reg q);
      always @(posedge clk) q <= ~(a & b);
    endmodule"""
    for target in ("asic", f"asic:{path}"):
        assert cost_of(text, target, tmp_path) == Cost(gates=6.67, ffs=1)


@pytest.mark.parametrize(
    ("depth", "style", "ffs", "bits"),
    [(64, "auto", 5, 320), (64, "registers", 325, 0), (8, "auto", 45, 0)],
)
def test_small_memories_are_flip_flops_and_others_bits(tmp_path, depth, style, ffs, bits):
    size = (depth - 1).bit_length()
    text = f"""module top(input clk, input [{size - 1}:0] w, r, input we, input [4:0] d,
      output reg [4:0] q);
      (* ram_style = "{style}" *) reg [4:0] memory [0:{depth - 1}];
      always @(posedge clk) begin if (we) memory[w] <= d; q <= memory[r]; end
    endmodule"""
    cost = cost_of(text, "asic", tmp_path)
    assert cost.ram_bits == bits
    # A memory reads in the cycle of the address, or holds the word that it reads.
    assert cost.ffs in (ffs, 0 if bits else ffs)
    assert bool(cost.gates > 5 * ffs) or bits


def test_reports_have_gate_equivalents(tmp_path):
    """Parts add up to the whole, and the routers of a schedule without choices take little."""
    report = tf.synthesize(fabric_of("4x4", "allgather", "hamiltonian", flits=2, width=8), "asic")
    router, fabric = report.classes[0], report.fabric
    assert fabric["luts"] == fabric["brams"] == 0
    assert sum(report.parts.values()) == pytest.approx(fabric["gates"], rel=1e-3)
    # A register of 5.67 and a multiplexer of 2.33 for each bit, and a select bit for each port.
    assert router["gates_per_bit"] == pytest.approx(5.67 + 2.33 + 5.67 / 8, abs=0.01)
    assert router["ffs"] == 36
    assert list(report.cost_columns.values()) == ["GE", "FFs", "RAM bits"]


@pytest.mark.parametrize(("text", "message"), [
    (None, "must be a readable file"),
    ("library(none) { }", "must have a cell NAND2 .*; it has 0 cells"),
    ("library(x) { cell(INV) { area : 1; } }", "it has 1 cells"),
])  # fmt: skip
def test_unusable_liberty_files_are_named(tmp_path, text, message):
    path = tmp_path / "cells.lib"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        find_target(f"asic:{path}")


def test_nothing_is_placed_on_silicon():
    with pytest.raises(InputError, match="needs a target of a family that nextpnr knows, not asic"):
        tf.synthesize(fabric_of("2x2", "allgather"), "asic", pnr=True)


def test_generic_cells_have_the_functions_that_yosys_needs():
    text = GENERIC_CELLS.read_text()
    assert {"NAND2", "INV", "DFF"} <= set(re.findall(r"cell\((\w+)\)", text))
