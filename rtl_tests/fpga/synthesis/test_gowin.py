"""Synthesis for Gowin's devices."""

import pytest
from hand_written import PORTS, SMALL_STORE, STORE, described, router

from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.toolchain import tools
from torusfabric.verilog.design import Design


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
    alone = Design({"router": text}, "router", {}, [("router", 1)])
    row = synthesize(alone, "gowin-gw1nr-9", pnr=True, mapping="fast").classes[0]
    assert 20 < row["fmax_mhz"] <= row["logic_mhz"]
    # The router's own, and one for each of its inputs and outputs.
    assert row["placed"]["DFF"] >= 3 * PORTS * 2
