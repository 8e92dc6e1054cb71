"""Clock crossings of streams: a reset at any moment neither loses nor repeats a word.

The emitted Verilog runs in Icarus, where the two clocks can have any periods.
"""

import random
import re
import subprocess
from functools import cache

import pytest
from helpers import few
from verilog_bench import have_icarus

import torusfabric as tf

BENCH = """
module tb;
  reg clk = 0, node_clk = 0, rst = 1, node_rst = 1, valid = 0, take = 0;
  reg [15:0] word = 1, last = 0;
  wire accepts, valid_out;
  wire [15:0] out;
  integer seed = SEED, received = 0, gaps = 1, wrong = 0;
  CROSSING dut(.clk(clk), .rst(rst), .node_clk(node_clk), .node_rst(node_rst), .in_tvalid(valid),
    .in_tready(accepts), .out_tvalid(valid_out), .out_tready(take), .in_tdata(word),
    .in_tlast(1'b0), .out_tdata(out), .out_tlast());
  always #FABRIC clk = ~clk;
  always #NODE node_clk = ~node_clk;
  // The sender numbers its words, and rests at random.
  always @(posedge INTO) begin
    if (valid & accepts) word <= word + 1;
    if (accepts | ~valid) valid <= $random(seed) & 1;
  end
  // The receiver misses words at most once after each reset.
  always @(posedge OUT) begin
    take <= $random(seed) & 1;
    if (valid_out === 1'bx) wrong = wrong + 1;
    if (valid_out & take) begin
      if (out !== last + 16'd1) begin
        if (gaps == 0 || !(out > last)) wrong = wrong + 1;
        gaps = 0;
      end
      last <= out;
      received = received + 1;
    end
  end
  initial begin
    #(20 * (FABRIC + NODE)) @(negedge clk) rst = 0; @(negedge node_clk) node_rst = 0;
    repeat (60) begin
      #(($random(seed) & 255) * FABRIC);
      RESET
      gaps = 1;
    end
    #(100 * (FABRIC + NODE)) $write("%0d %0d", wrong, received); $finish;
  end
endmodule
"""

RESETS = {
    "of the fabric": "@(posedge clk) #1 rst = 1; @(posedge clk) #1 rst = 0;",
    "of the node": "@(posedge node_clk) #1 node_rst = 1; @(posedge node_clk) #1 node_rst = 0;",
    "of both": "@(posedge clk) #1 rst = 1; node_rst = 1; @(posedge clk) #1 rst = 0; node_rst = 0;",
}


@cache
def crossings():
    """Return the Verilog of the two crossings of a fabric whose nodes have clocks of their own."""
    program = tf.compile(tf.plan("2", "allgather"), flits=2)
    design = tf.emit(tf.Fabric(program, width=16, top="stream", clocks="per-node"))
    return "\n".join(text for name, text in design.modules.items() if name.endswith("_crossing"))


def run(folder, text, *, side, reset, periods, seed):
    """Run the bench in Icarus and return the numbers of wrong and of received words."""
    into, out = ("node_clk", "clk") if side == "s_axis" else ("clk", "node_clk")
    facts = {"SEED": seed, "CROSSING": f"{side}_crossing", "FABRIC": periods[0],
             "NODE": periods[1], "INTO": into, "OUT": out, "RESET": RESETS[reset]}  # fmt: skip
    bench = re.sub(r"\b[A-Z]{3,}\b", lambda found: str(facts.get(found[0], found[0])), BENCH)
    (folder / "bench.v").write_text(f"`timescale 1ns/1ps\n{text}{bench}")
    build = ["iverilog", "-g2005", "-s", "tb", "-o", folder / "bench.vvp", folder / "bench.v"]
    subprocess.run(build, check=True)
    done = subprocess.run(
        ["vvp", "-n", folder / "bench.vvp"], check=True, capture_output=True, text=True
    )
    wrong, received = map(int, done.stdout.split())
    return wrong, received


CASES = [
    (side, reset, periods)
    for side in ("s_axis", "m_axis")
    for reset in RESETS
    for periods in ((50, 50), (50, 7), (50, 411), (50, 53))
]


@pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")
@pytest.mark.parametrize(("side", "reset", "periods"), few(8, CASES))
def test_resets_at_any_moment_leave_no_word(tmp_path, side, reset, periods):
    """After a reset of either side, or of both, words arrive in order with at most one gap."""
    seed = random.Random(str((side, reset, periods))).randrange(1 << 30)
    wrong, received = run(tmp_path, crossings(), side=side, reset=reset, periods=periods, seed=seed)
    assert wrong == 0
    assert received > 100
