"""Two emitted boards in Icarus Verilog that are started, and reset at any moment, each with a clock
of its own.

Defined for the bench: ``WHICH`` boards are reset for ``HOLD`` nanoseconds, and without a clock for
half of that if ``STOP``; at moments of runs up to ``MOST`` nanoseconds, by ``STEP``, after
``BEFORE`` runs; a second time up to ``AGAIN`` nanoseconds after the first, unless it is 0; ``WAIT``
is the most cycles until both are at rest.
"""

import subprocess

__all__ = ["board_instance", "serve_resets"]

#: A start of both boards at rest must be without errors, and bring each the word of the other.
BENCH = """`timescale 1ns/1fs
module tb;
  reg [1:0] clk = 0, rst = 3, start = 0, we = 0, stopped = 0;
  reg [7:0] value = 0;
  wire [1:0] busy, done;
  wire [15:0] word;
  wire [7:0] error;
  wire [3:0] failed;
  wire [31:0] count_0, count_1;
  integer moment, edges, wrong = 0, served = 0, seen = 0;
  initial forever #20.001 clk[0] = ~clk[0] & ~stopped[0];
  initial begin #7.3; forever #19.999 clk[1] = ~clk[1] & ~stopped[1]; end
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

  task reset; begin
    rst = `WHICH;
    if (`STOP) stopped = `WHICH;
    #(`HOLD / 2) stopped = 0;
    #(`HOLD - `HOLD / 2) rst = 0;
  end endtask

  task serve; begin
    value = value + 3;
    @(negedge clk[0]) we[0] = 1;
    @(negedge clk[0]) we[0] = 0;
    @(negedge clk[1]) we[1] = 1;
    @(negedge clk[1]) we[1] = 0;
    rest(0);
    both;
    rest(`WAIT);
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
    for (moment = 0; moment < `BEFORE; moment = moment + 1) begin both; rest(`WAIT); end
    for (moment = 0; moment < `MOST; moment = moment + `STEP) begin
      both;
      #(moment) reset;
      if (`AGAIN > 0) begin #(moment * 37 % `AGAIN) reset; end
      if (moment & 1) both;
      rest(`WAIT);
      seen = seen | 1 << error[3:0] | 1 << error[7:4];
      serve;
    end
    $display("served %0d wrong %0d seen %h", served, wrong, seen);
    $finish;
  end
endmodule
"""

BOARD = """
  {module} board_{k} (
    .clk(clk[{k}]), .rst(rst[{k}]), .start(start[{k}]), .length(2'd1), .board(1'd{k}),
    .host_we(we[{k}]), .host_node(1'd0), .host_addr(we[{k}] ? 3'd{send} : 3'd{receive}),
    .host_wdata({sign}value), .host_rdata(word[{k} * 8 +: 8]), .busy(busy[{k}]), .done(done[{k}]),
    .cycles(count_{k}), .error(error[{k} * 4 +: 4]), .failed(failed[{k} * 2 +: 2]){pins}
  );"""


def board_instance(manifest, k, pins, module="board_0"):
    """The text of a board of a node that has pins beside its host port."""
    # The word of the other board lies where its block is.
    receive = manifest["recv_base"] + (1 - k) * manifest["stride"]
    more = "".join(f",\n    .{name}({net})" for name, net in pins.items())
    return BOARD.format(module=module, k=k, sign="~" * k, send=manifest["send_base"],
                        receive=receive, pins=more)  # fmt: skip


def serve_resets(folder, boards, sources, which, **chosen):
    """Reset boards again and again, and see that a run follows each time.

    Takes what is defined for the bench, by names in small letters. Returns how many runs there
    were, and the errors before.
    """
    (folder / "tb.v").write_text(BENCH.format(boards="\n".join(boards)))
    usual = {"before": 0, "hold": 400, "most": 6500, "step": 239, "stop": 0, "again": 0,
             "wait": 2000}  # fmt: skip
    assert chosen.keys() <= usual.keys()
    defined = usual | chosen | {"which": which}
    flags = [f"-D{name.upper()}={value}" for name, value in defined.items()]
    command = ["iverilog", "-g2005", *flags, "-s", "tb", "-o", "tb.vvp", "tb.v", *sources]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "-n", "tb.vvp"], cwd=folder, capture_output=True, text=True)
    *lines, last = done.stdout.strip().splitlines()
    _, runs, _, wrong, _, seen = last.split()
    assert int(wrong) == len(lines) == 0, "\n".join(lines[:20])
    return int(runs), {error for error in range(16) if int(seen, 16) >> error & 1}
