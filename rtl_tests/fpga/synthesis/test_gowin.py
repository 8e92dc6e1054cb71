"""Synthesis for Gowin's devices."""

import json

import pytest
from hand_written import PORTS, SMALL_STORE, STORE, described, router

import torusfabric as tf
from torusfabric.fpga.synthesis.family import Mapping
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.fpga.synthesis.target import find_target
from torusfabric.toolchain import tools
from torusfabric.verilog.design import Design, RouterClass

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
    """One inside that is kept apart has none: place and route would ask where its pins are."""
    (tmp_path / "text.v").write_text(KEPT)
    script = find_target("gowin-gw1nr-9").tools.script("whole", Mapping.COMPACT, pads=True)
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
    # The router's own, and one for each of its inputs and outputs.
    assert row["placed"]["DFF"] >= 3 * PORTS * 2


@pytest.mark.long
@pytest.mark.skipif(tools.find("nextpnr-himbaechel-gowin") is None, reason="needs Gowin's tools")
def test_gowin_clock_rate_of_a_fabric():
    """Modules that are kept apart are placed, too."""
    fabric = tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=2)
    assert synthesize(fabric, "gowin-gw1nr-9", pnr=True).fmax_mhz > 20
