"""Families that only vendors' tools place and route, and Gowin: costs of cells and capacities."""

import json

import pytest
from hand_written import PORTS, SMALL_STORE, STORE, described, design, router

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.fpga.synthesis.families import FAMILIES
from torusfabric.fpga.synthesis.family import Cost, Mapping, count_dual_luts
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.fpga.synthesis.target import PARTS, TARGETS, find_target
from torusfabric.toolchain import tools
from torusfabric.verilog.design import Design, RouterClass
from torusfabric.verilog.module_text import MemoryStyle, memory_attributes

#: LUTs and LUT RAMs of a memory of 16 x 8 bits, by family with LUT RAM.
OF_TABLES = {
    "xilinx-7": (8, 8),
    "xilinx-us": (8, 8),
    "cyclone-v": (8, 8),
    "nexus": (12, 2),
}

#: Families for which yosys reads few cells and ends within seconds.
QUICK = ("cyclone-v", "efinix", "gatemate")


def families(*, quick):
    """The names of the quick families, or of the others."""
    return [name for name in PARTS if (name in QUICK) == quick]


def each(test):
    """Parametrize a test by family; slow families run in the long tests only."""
    slow = [pytest.param(name, marks=pytest.mark.long) for name in families(quick=False)]
    return pytest.mark.parametrize("family", [*families(quick=True), *slow])(test)


@each
def test_router_has_a_table_and_a_flip_flop_a_bit(family):
    row = synthesize(design(4), family).classes[0]
    assert row["luts"] == row["ffs"] == row["outport_bits"] == PORTS * 4


@each
def test_memories_and_sums(family):
    row = synthesize(Design({"store": STORE}, "store", {}), family).fabric
    assert (row["brams"], row["lutrams"], row["ffs"]) == (1, 0, 8)
    assert 8 <= row["luts"] <= 10
    assert 8 <= row["carries"] <= 10
    if family in OF_TABLES:
        small = Design({"small_store": SMALL_STORE}, "small_store", {})
        row = synthesize(small, family).fabric
        assert (row["luts"], row["lutrams"], row["brams"]) == (*OF_TABLES[family], 0)


@pytest.mark.long
def test_ultra_rams_are_asked_for():
    (attribute,) = memory_attributes(MemoryStyle.ULTRA)
    text = STORE.replace("(* no_rw_check *)", attribute).replace("[7:0] wa", "[11:0] wa")
    text = text.replace("[7:0] ra", "[11:0] ra").replace("[0:255]", "[0:4095]")
    row = synthesize(Design({"store": text}, "store", {}), "xilinx-us").fabric
    assert (row["urams"], row["brams"]) == (1, 0)


def test_families_are_their_largest_parts():
    assert PARTS.keys() == {name for name, family in FAMILIES.items() if family.pnr is None}
    for family, parts in PARTS.items():
        sizes = [capacity["luts"] for _, capacity in parts]
        assert sizes == sorted(sizes)
        assert find_target(family) is TARGETS[f"{family}-{parts[-1][0]}"]


def test_adaptive_logic_modules_are_counted_by_halves():
    kinds = ["MISTRAL_ALUT6", *["MISTRAL_ALUT4"] * 3, *["MISTRAL_FF"] * 5]
    module = {"cells": {str(k): {"type": kind} for k, kind in enumerate(kinds)}}
    assert find_target("cyclone-v").module_cost(module, ()) == Cost(luts=4, ffs=5, cells=3)
    module = {"cells": {str(k): {"type": "MISTRAL_FF"} for k in range(13)}}
    assert find_target("cyclone-v").module_cost(module, ()).cells == 4


def test_nothing_is_placed_without_a_tool():
    with pytest.raises(InputError, match=r"nextpnr knows, not xilinx-us-vu9p;"):
        synthesize(design(1), "xilinx-us-vu9p", pnr=True)


KEPT = """\
(* keep_hierarchy = "yes" *)
module kept(input clk, input d, output reg q);
  always @(posedge clk) q <= d;
endmodule
module whole(input clk, input d, output q);
  kept inner(.clk(clk), .d(d), .q(q));
endmodule
"""


def test_only_the_outermost_module_has_pads(tmp_path):
    """Only the outermost module has pads, because the pins of a kept module would be unknown."""
    (tmp_path / "text.v").write_text(KEPT)
    script = find_target("gowin-gw1nr-9").device_family.yosys_script(
        "whole", Mapping.COMPACT, pads=True
    )
    (tmp_path / "text.ys").write_text(f"read_verilog text.v\n{script}write_json text.json\n")
    tools.run("yosys", ["-s", "text.ys"], folder=tmp_path, log="text.log")
    modules = json.loads((tmp_path / "text.json").read_text())["modules"]
    found = {name: sorted(cell["type"] for cell in modules[name]["cells"].values())
             for name in ("whole", "kept")}  # fmt: skip
    assert found == {"whole": ["IBUF", "IBUF", "OBUF", "kept"], "kept": ["DFF"]}


@pytest.mark.long
def test_gowin(runs):
    report = synthesize(described(), "gowin-gw1nr-9")
    assert report.classes[0]["luts"] == report.classes[0]["ffs"] == PORTS * 8
    store = Design({"store": STORE}, "store", {})
    row = synthesize(store, "gowin-gw1nr-9").fabric
    assert (row["brams"], row["luts"], row["carries"], row["ffs"]) == (1, 8, 8, 8)
    small = Design({"small_store": SMALL_STORE}, "small_store", {})
    row = synthesize(small, "gowin-gw1nr-9").fabric
    assert (row["brams"], row["lutrams"], row["luts"]) == (0, 2, 16)


@pytest.mark.long
@pytest.mark.skipif(tools.find("nextpnr-himbaechel-gowin") is None, reason="needs Gowin's tools")
def test_gowin_clock_rate():
    text = router(2).replace("(posedge clk) begin", "(posedge clk) if (enable) begin")
    text = text.replace("input inject", "input inject, input enable", 1)
    alone = Design({"router": text}, "router", {}, classes={"router": RouterClass(1)})
    row = synthesize(alone, "gowin-gw1nr-9", pnr=True, mapping="fast").classes[0]
    assert 20 < row["fmax_mhz"] <= row["logic_mhz"]
    # The router's own registers, and one for each of its inputs and outputs.
    assert row["placed"]["DFF"] >= 3 * PORTS * 2


@pytest.mark.long
@pytest.mark.skipif(tools.find("nextpnr-himbaechel-gowin") is None, reason="needs Gowin's tools")
def test_gowin_clock_rate_of_a_fabric():
    """The modules of a fabric that are kept apart are placed for Gowin."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=2)
    assert synthesize(fabric, "gowin-gw1nr-9", pnr=True).fmax_mhz > 20


def test_luts_of_five_inputs_together_share_one():
    """Two multiplexers with one select bit share a LUT6; one of six inputs shares none."""
    lut = lambda *nets: {
        "type": f"LUT{len(nets)}",
        "connections": {**{f"I{k}": [net] for k, net in enumerate(nets)}, "O": [99]},
    }
    others = [
        {"type": "INV", "connections": {"I": [7], "O": [8]}},
        {"type": "FDRE", "connections": {"D": [1]}},
    ]
    cells = [lut(1, 2, 0), lut(3, 4, 0), lut(5, 6, 0), lut(1, 2, 3, 4, 5, 6), *others]
    count = lambda cells: count_dual_luts({"cells": dict(enumerate(cells))}).cells
    assert count(cells[:2]) == 1
    assert count(cells) == 4
    assert count([lut(0, 1, 2, 3), lut(0, 1, 2, 3, 4), lut(0, 5)]) == 2
    assert count([lut(0, 1, 2, 3), lut(0, 4, 5)]) == 2


@pytest.mark.parametrize("family", ["gatemate", "nexus", "efinix", "cyclone-v", "gowin-gw1nr-9"])
def test_wide_multiplexers_become_cells(family):
    """A choice among 16 bits leaves no gate that the device lacks."""
    text = "module top(input [15:0] a, input [3:0] s, output y); assign y = a[s]; endmodule\n"
    report = synthesize(Design({"top": text}, "top", {}), family)
    assert 4 <= report.fabric["luts"] <= 16
