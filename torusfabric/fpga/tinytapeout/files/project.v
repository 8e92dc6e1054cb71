// $title, behind the pins of Tiny Tapeout. The file docs/info.md describes the pins.
`default_nettype none

module $name (
  input wire [7:0] ui_in,
  output wire [7:0] uo_out,
  input wire [7:0] uio_in,
  output wire [7:0] uio_out,
  output wire [7:0] uio_oe,
  input wire ena,
  input wire clk,
  input wire rst_n
);
  // Pins change at any time. A command is executed in the cycle in which its strobe is seen to
  // rise, when all other pins are steady.
  reg [1:0] reset_stage;
  reg [2:0] strobe_stage;
  always @(posedge clk) begin
    reset_stage <= {reset_stage[0], ~rst_n};
    strobe_stage <= {strobe_stage[1:0], uio_in[0]};
  end
  wire strobe = strobe_stage[1] & ~strobe_stage[2];
  wire [3:0] code = uio_in[4:1];

  // Inputs of the fabric: the bytes that command 0 took, and the byte at the pins.
$bytes

$outputs
  $top the_fabric (
$connections
  );

  // The byte of the outputs that the code names.
  reg [7:0] shown;
  always @* case (code)
$shown
    default: shown = 8'd0;
  endcase

  assign uo_out = shown;
  assign uio_out = {done, busy, 6'd0};
  assign uio_oe = 8'b11000000;
  wire _unused = &{ena, uio_in[7:5], inputs$unused, 1'b0};
endmodule

`default_nettype wire
