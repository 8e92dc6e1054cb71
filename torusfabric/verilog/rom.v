// A ROM with a register behind it: after an edge, data is the row at the address before the edge.
// Row k is bits k * WIDTH and following of CONTENTS; past the end it is the last row.
// A few rows are made of logic; more are a memory, which may become a block RAM.
module rom #(
  parameter DEPTH = 2,
  parameter WIDTH = 1,
  parameter ADDRESS = 1,
  parameter [DEPTH*WIDTH-1:0] CONTENTS = 0
) (clk, address, data);
  input clk;
  input [ADDRESS-1:0] address;
  output [WIDTH-1:0] data;
  reg [WIDTH-1:0] data;
  generate if (DEPTH <= 64) begin : few
    (* rom_style = "logic" *) reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
    integer k;
    initial for (k = 0; k < (1 << ADDRESS); k = k + 1)
      rows[k] = CONTENTS[(k < DEPTH ? k : DEPTH - 1)*WIDTH +: WIDTH];
    always @(posedge clk) data <= rows[address];
  end else begin : many
    reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
    integer k;
    initial for (k = 0; k < (1 << ADDRESS); k = k + 1)
      rows[k] = CONTENTS[(k < DEPTH ? k : DEPTH - 1)*WIDTH +: WIDTH];
    always @(posedge clk) data <= rows[address];
  end endgenerate
endmodule
