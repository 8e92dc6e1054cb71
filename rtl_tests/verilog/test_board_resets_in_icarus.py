"""Emitted boards, in a bench of their own: one is reset at any time, and both are in service again.

Cables are late, and clocks are off, one way and the other.
"""

import json
import subprocess

import pytest
from helpers import few
from verilog_bench import have_icarus

from torusfabric.cli import main

pytestmark = pytest.mark.skipif(not have_icarus(), reason="needs Icarus Verilog")

#: A start of both boards at rest must be without errors, and bring each the word of the other.
BENCH = """`timescale 1ns/1ps
module tb;
  reg [1:0] clk = 0, rst = 3, start = 0, we = 0;
  reg [7:0] value = 0;
  wire [1:0] busy, done;
  wire [15:0] word;
  wire [7:0] error;
  wire [3:0] failed;
  wire [31:0] count_0, count_1;
  integer moment, edges, wrong = 0, served = 0, seen = 0;
  initial forever #20.001 clk[0] = ~clk[0];
  initial begin #7.3; forever #19.999 clk[1] = ~clk[1]; end
  {boards}

  task rest(input integer most); begin  // until both boards are at rest
    edges = 0;
    repeat (4) @(negedge clk[0]);
    while (busy != 0 && edges < most) begin @(negedge clk[0]); edges = edges + 1; end
    repeat (20) @(negedge clk[0]);  // reads take some cycles
  end endtask

  task both; begin
    @(negedge clk[0]) start[0] = 1;
    @(negedge clk[1]) start[1] = 1;
    @(negedge clk[0]) start[0] = 0;
    @(negedge clk[1]) start[1] = 0;
  end endtask

  task serve; begin
    value = value + 3;
    @(negedge clk[0]) we[0] = 1;
    @(negedge clk[0]) we[0] = 0;
    @(negedge clk[1]) we[1] = 1;
    @(negedge clk[1]) we[1] = 0;
    rest(0);
    both;
    rest(2000);
    served = served + 1;
    if (busy != 0 || error != 0 || failed != 0 || word !== {{value, ~value}}) begin
      wrong = wrong + 1;
      $display("%0d: busy %b error %0d %0d failed %b words %h", moment, busy, error[3:0],
               error[7:4], failed, word);
    end
  end endtask

  initial begin
    #500 rst[0] = 0;
    #777 rst[1] = 0;
    #20000 ;
    for (moment = 0; moment < `BEFORE; moment = moment + 1) begin both; rest(2000); end
    for (moment = 0; moment < `MOST; moment = moment + `STEP) begin
      both;
      #(moment) rst = `WHICH;
      #(`HOLD) rst = 0;
      if (moment & 1) both;
      rest(2000);
      seen = seen | 1 << error[3:0] | 1 << error[7:4];
      serve;
    end
    $display("served %0d wrong %0d seen %h", served, wrong, seen);
    $finish;
  end
endmodule
"""

BOARD = """
  board_0 board_{k} (
    .clk(clk[{k}]), .rst(rst[{k}]), .start(start[{k}]), .length(2'd1), .board(1'd{k}),
    .host_we(we[{k}]), .host_node(1'd0), .host_addr(we[{k}] ? 3'd{send} : 3'd{receive}),
    .host_wdata({sign}value), .host_rdata(word[{k} * 8 +: 8]), .busy(busy[{k}]), .done(done[{k}]),
    .cycles(count_{k}), .error(error[{k} * 4 +: 4]), .failed(failed[{k} * 2 +: 2]){links}
  );"""

LINK = """
  wire [9:0] sent_{k}_{link};
  reg [9:0] came_{k}_{link} = 0;
  reg clock_{k}_{link} = 0;
  always @(sent_{there}_{port}) came_{k}_{link} <= #({late}) sent_{there}_{port};
  always @(clk[{there}]) clock_{k}_{link} <= #({late}) clk[{there}];"""


def bench_of(manifest):
    """The bench of two boards of a node each."""
    text = []
    for board in manifest["boards"]:
        k, links = board["board"], []
        for each in board["links"]:
            link, there, port = each["link"], each["to"]["board"], each["to"]["link"]
            late = 1.5 + 3 * link
            text.append(LINK.format(k=k, link=link, there=there, port=port, late=late))
            pins = {
                "tx_word": f"sent_{k}_{link}[7:0]",
                "tx_frame": f"sent_{k}_{link}[9:8]",
                "rx_word": f"came_{k}_{link}[7:0]",
                "rx_frame": f"came_{k}_{link}[9:8]",
                "rx_clk": f"clock_{k}_{link}",
            }
            links += [f",\n    .link_{link}_{name}({net})" for name, net in pins.items()]
        # The word of the other board lies where its block is.
        receive = manifest["recv_base"] + (1 - k) * manifest["stride"]
        text.append(BOARD.format(k=k, sign="~" * k, send=manifest["send_base"], receive=receive,
                                 links="".join(links)))  # fmt: skip
    return BENCH.format(boards="\n".join(text))


def served(folder, which, before=0, hold=400, most=6500, step=239):
    """Whether a run follows each of many resets, how many there were, and the errors of before."""
    bench = bench_of(json.loads((folder / "manifest.json").read_text()))
    (folder / "tb.v").write_text(bench)
    defined = {"WHICH": which, "BEFORE": before, "HOLD": hold, "MOST": most, "STEP": step}
    flags = [f"-D{name}={value}" for name, value in defined.items()]
    files = ["tb.v", "fabric.v"]
    command = ["iverilog", "-g2005", *flags, "-s", "tb", "-o", "tb.vvp", *files]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "-n", "tb.vvp"], cwd=folder, capture_output=True, text=True)
    *lines, last = done.stdout.strip().splitlines()
    _, runs, _, wrong, _, seen = last.split()
    assert int(wrong) == len(lines) == 0, "\n".join(lines[:20])
    return int(runs), {error for error in range(16) if int(seen, 16) >> error & 1}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    words = ["2", "allgather", "--boards", "2", "--width", "8", "--max-flits", "2"]
    assert main(["verilog", *words, "--start-timeout", "900", "-o", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("which", "before", "hold"),
    few(2, [(1, 65, 45), (2, 63, 400), (3, 1, 45), (1, 127, 4000), (2, 0, 170_000), (2, 129, 45)]),
)
def test_boards_serve_the_next_start_whenever_one_was_reset(pair, which, before, hold):
    runs, errors = served(pair, which, before, hold)
    assert runs == 28
    assert errors <= {0, 5, 9, 11}
    # Where both are reset neither has an error.
    assert errors == {0} if which == 3 else errors & {9, 11}


@pytest.mark.long
@pytest.mark.parametrize("which", [1, 2, 3])
@pytest.mark.parametrize("hold", [45, 77, 400, 4000])
def test_boards_serve_the_next_start_after_any_reset(pair, which, hold):
    runs, _ = served(pair, which, which, hold, most=12_000, step=7)
    assert runs == 1715
