// One of 17 to 64 rows: row k is bits k * WIDTH and following of CONTENTS; past the end it is any.
// It is a memory, which may become a block RAM if registers follow.
module look_up #(
  parameter DEPTH = 17,
  parameter WIDTH = 1,
  parameter ADDRESS = 5,
  parameter [DEPTH*WIDTH-1:0] CONTENTS = 0
) (
  input wire [ADDRESS-1:0] address,
  output wire [WIDTH-1:0] data
);
  reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
  integer k;
  initial for (k = 0; k < (1 << ADDRESS); k = k + 1)
    rows[k] = CONTENTS[(k < DEPTH ? k : DEPTH - 1)*WIDTH +: WIDTH];
  assign data = rows[address];
endmodule
