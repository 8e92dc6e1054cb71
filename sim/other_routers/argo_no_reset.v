// The router of Argo for silicon_costs.py with a reset that is never active, so that its registers
// need none.

module argo_no_reset (
  input clk,
  input [179:0] inPort_f,
  output [179:0] outPort_f
);
  router router (
    .clk(clk),
    .reset(1'b0),
    .inPort_f(inPort_f),
    .inPort_b(),
    .outPort_f(outPort_f),
    .outPort_b(5'b0)
  );
endmodule
