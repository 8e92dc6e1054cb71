// Transceivers of an ECP5 as far as links use them: a model of the behaviour, of 2.5 Gbit/s.
// What is in front of the ports, and a cell of LiteX's that resets, are written by the test.

`timescale 1ns/1fs

module transmitter #(parameter real BEGIN = 0) (
    input reference, input reset, input clk, input [23:0] data, output reg pclk, output reg line);
  // 20 bits take 0.8 cycles of a reference of 100 MHz; so five words begin in four of them.
  real last = 0, word = 8;
  integer count = 0, i;
  reg go = 0;
  initial begin pclk = 0; line = 0; end
  always @(posedge reference) begin
    if ($realtime - last < 20) word = ($realtime - last) * 0.8;  // it may have stopped
    last = $realtime;
    count = count + 1;
    if (count > 4 && count % 4 == 0) go <= #(BEGIN) ~go;
  end
  always @(go) if ($realtime > 0) begin
    repeat (4) begin pclk = 1; #(word / 2) pclk = 0; #(word / 2); end
    pclk = 1; #(word / 2) pclk = 0;
  end
  wire [19:0] bits = {data[21:12], data[9:0]};
  always @(posedge clk)
    if (!reset) for (i = 0; i < 20; i = i + 1) line <= #(i * word / 20) bits[i];
endmodule

module receiver #(parameter WORDS = 12, parameter ODD = 0) (
    input reset, input line, input align, input slip, output reg pclk, output reg [23:0] data,
    output reg lost);
  real last = 0;
  integer count = 0, k = 0, n;
  reg half = ODD, was_slip = 0;
  reg [19:0] bits = 0;
  reg [9:0] first = 0;
  reg [19:0] words [0:63];
  initial begin pclk = 0; data = 0; lost = 1; end
  always @(line) begin
    n = ($realtime - last) / 0.4;
    last = $realtime;
    if (n < 40) begin
      if (slip != was_slip && n > 1) begin n = n - 1; was_slip = slip; end
      for (k = 0; k < n; k = k + 1) take(~line);
    end
  end
  task take(input value); begin
    bits = {value, bits[19:1]};
    count = count + 1;
    if (align && (bits[19:10] == 10'h17c || bits[19:10] == 10'h283)) count = 10;
    if (count == 10) begin
      count = 0;
      if (half) begin
        for (n_ = WORDS; n_ > 0; n_ = n_ - 1) words[n_] = words[n_ - 1];
        words[0] = {bits[19:10], first};
        data <= {2'd0, words[WORDS][19:10], 2'd0, words[WORDS][9:0]};
        pclk <= 1;
        pclk <= #4 0;
      end
      first = bits[19:10];
      half = ~half;
    end
  end endtask
  integer n_;
  always #100 lost = reset || $realtime - last > 50;
endmodule

module FD1S3BX (input CK, input D, input PD, output reg Q);
  always @(posedge CK, posedge PD) if (PD) Q <= 1; else Q <= D;
endmodule
