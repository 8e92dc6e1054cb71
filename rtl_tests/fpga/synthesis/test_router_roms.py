"""Synthesis of routers that read their selects from ROMs."""

import pytest
from helpers import fabric_of, netlist_of_roms
from printed import printed

import torusfabric as tf
from torusfabric import verilog
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.rtl.netlist import ROM, Role
from torusfabric.verilog.design import Design, RouterClass
from torusfabric.verilog.top import RomContents

SWITCH = """
module router(input clk, input select, input [7:0] own, input [7:0] in, output reg [7:0] out);
  always @(posedge clk) out <= select ? own : in;
endmodule
"""


def with_roms():
    """Three routers that read their selects from ROMs of two different contents."""
    rom = verilog.module_texts(netlist_of_roms(([0], 1)))[ROM].text
    dear = RomContents(tuple(k * k % 7 % 2 for k in range(40)), 1)
    contents = {"dear": dear, "cheap": RomContents((0,) * 40, 1)}
    top = f"""
    module fabric(input clk, input [5:0] row, input [7:0] own, output [7:0] out);
      wire [7:0] a, b;
      wire x, y, z;
      rom #({dear.instance_parameters()}) rom_0 (.clk(clk), .address(row), .data(x));
      rom #({contents["cheap"].instance_parameters()}) rom_1 (.clk(clk), .address(row), .data(y));
      rom #({contents["cheap"].instance_parameters()}) rom_2 (.clk(clk), .address(row), .data(z));
      router r_0 (.clk(clk), .select(x), .own(own), .in(out), .out(a));
      router r_1 (.clk(clk), .select(y), .own(own), .in(a), .out(b));
      router r_2 (.clk(clk), .select(z), .own(own), .in(b), .out(out));
    endmodule
    """
    return Design(
        modules={ROM: rom, "router": SWITCH, "fabric": top},
        top="fabric",
        instances={"fabric": {"router": 3, "dear": 1, "cheap": 2}},
        classes={
            "router": RouterClass(
                nodes=3,
                outports=("out",),
                inports={"in": "crossbar", "own": "injection"},
                settings={"select": {"dear": 1, "cheap": 2}},
            )
        },
        parts={"dear": "settings", "cheap": "settings"},
        contents=contents,
    )


@pytest.mark.long
def test_routers_have_the_largest_of_their_roms(runs):
    """The cost of a class includes its most expensive ROM contents, which the report names."""
    report = synthesize(with_roms(), "ice40-hx8k")
    costs = {row["name"]: row for row in report.modules}
    assert costs["dear"]["luts"] > costs["cheap"]["luts"] == 0
    row = report.classes[0]
    assert row["roms"] == ["dear"]
    assert row["luts"] == costs["router"]["luts"] + costs["dear"]["luts"]
    assert row["ffs"] == 8 + 1
    assert row["parts"]["settings"] == costs["dear"]["luts"]
    assert report.fabric["luts"] == 3 * costs["router"]["luts"] + costs["dear"]["luts"]
    assert report.parts["settings"] == costs["dear"]["luts"]
    assert runs.count(("yosys", "the ROMs")) == 1
    assert "router: with the contents of dear, the largest" in printed(report)


@pytest.mark.long
def test_routers_that_inject_nothing():
    """Routers of nodes that send nothing of their own are synthesized without an injection port."""
    fabric = fabric_of("3", "broadcast", "max-flow", width=2)
    assert any("inject" not in i.inputs for i in fabric.netlist.instances_with_role(Role.ROUTER))
    report = synthesize(verilog.emit(fabric).routers(), "ice40-hx8k")
    assert sum(row["nodes"] for row in report.classes) == 3


@pytest.mark.long
def test_routers_are_placed_with_their_roms():
    report = synthesize(with_roms(), "ice40-hx8k", pnr=True)
    assert report.classes[0]["fmax_mhz"] > 50
    assert report.fabric["fmax_mhz"] > 50


def test_a_top_with_roms_of_nodes_is_mapped():
    """A top module with ROMs of nodes is mapped with the ROMs' parameters."""
    program = tf.compile(tf.plan("3", "broadcast"), max_flits=1, root="any")
    design = verilog.emit(tf.Fabric(program, width=1))
    assert design.contents
    report = synthesize(design, "ice40-hx8k")
    assert report.fabric["luts"] > 0
