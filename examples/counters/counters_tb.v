// Runs the counters several times, and checks every word against a count of its own.
module counters_tb;
  reg clk = 0, rst = 1, go = 0;
  reg [3:0] node = 0;
  wire idle, valid;
  wire [3:0] origin;
  wire [31:0] word;

  counters dut (
    .clk(clk), .rst(rst), .go(go), .node(node),
    .idle(idle), .valid(valid), .origin(origin), .word(word)
  );

  always #5 clk = !clk;

  integer edges = 0, words = 0, run, moment;

  always @(posedge clk) begin
    edges <= rst ? 0 : edges + 1;
    if (go && idle) moment <= edges;
    if (valid) begin
      words <= words + 1;
      if (word !== moment * (origin + 1)) begin
        $display("FAILED: node %0d has %0d from %0d", node, word, origin);
        $fatal;
      end
    end
  end

  initial begin
    repeat (3) @(negedge clk);
    rst = 0;
    for (run = 0; run < 20; run = run + 1) begin
      node = run * 7;
      repeat (run) @(negedge clk);
      go = 1;
      @(negedge clk) go = 0;
      wait (idle) @(negedge clk);
    end
    if (words != 20 * 16) begin
      $display("FAILED: %0d words", words);
      $fatal;
    end
    $display("PASSED: %0d words", words);
    $finish;
  end

  initial #100000 begin
    $display("FAILED: too late");
    $fatal;
  end
endmodule
