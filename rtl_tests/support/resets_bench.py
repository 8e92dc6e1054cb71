"""Two emitted boards in Icarus Verilog, with separate clocks, started and reset repeatedly.

Macros of the bench, with times in nanoseconds::

    WHICH   boards that are reset, as bits
    HOLD    length of a reset
    STOP    1 to stop the clock for half of the reset
    MOST    latest moment of a reset, after the start of a run
    STEP    distance between the moments
    BEFORE  runs before the first reset
    AGAIN   latest moment of a second reset, after the first; 0 for none
    WAIT    most cycles until both boards are idle
"""

import subprocess

__all__ = ["board_instance", "serve_resets"]

#: A start of both idle boards must bring each the word of the other, without errors.
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
    """Return the Verilog of an instance of a board of one node, with pins beside its host port."""
    # The word of the other board is at the address of its block.
    receive = manifest["recv_base"] + (1 - k) * manifest["stride"]
    more = "".join(f",\n    .{name}({net})" for name, net in pins.items())
    return BOARD.format(module=module, k=k, sign="~" * k, send=manifest["send_base"],
                        receive=receive, pins=more)  # fmt: skip


def serve_resets(folder, boards, sources, which, **chosen):
    """Reset boards repeatedly, and check that each reset is followed by a correct run.

    Parameters
    ----------
    folder : path
        Work folder.
    boards, sources : list of str
        Instances of the boards, and the files of their Verilog.
    which : int
        Boards that are reset, as bits.
    **chosen : int
        Other macros of the bench, in small letters.

    Returns
    -------
    runs : int
        Number of runs after resets.
    errors : set of int
        Numbers of the errors before these runs.
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
