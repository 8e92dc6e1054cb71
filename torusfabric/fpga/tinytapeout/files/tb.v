// The project with its pins as signals, which the test drives by cocotb.
`default_nettype none
`timescale 1ns / 1ps

module tb;
  reg [7:0] ui_in, uio_in;
  reg ena, clk, rst_n;
  wire [7:0] uo_out, uio_out, uio_oe;

  $name project (
`ifdef GL_TEST
    .VPWR(1'b1),
    .VGND(1'b0),
`endif
    .ui_in(ui_in),
    .uo_out(uo_out),
    .uio_in(uio_in),
    .uio_out(uio_out),
    .uio_oe(uio_oe),
    .ena(ena),
    .clk(clk),
    .rst_n(rst_n)
  );
endmodule
