// A constant table of 17 to 64 rows: data is the row at the address, without a register. Row k is
// bits k * WIDTH to k * WIDTH + WIDTH - 1 of CONTENTS; past the end data has no meaning.
// The plain body is a memory, which synthesis may make a block RAM if registers follow.
module look_up #(
  parameter DEPTH = 17,
  parameter WIDTH = 1,
  parameter ADDRESS = 5,
  parameter [DEPTH*WIDTH-1:0] CONTENTS = 0
) (
  input wire [ADDRESS-1:0] address,
  output wire [WIDTH-1:0] data
);
`ifdef TORUSFABRIC_ECP5
  // A LUT for each 16 rows of a column, joined by the wide multiplexers next to the LUTs. Without
  // these cells, synthesis shares LUTs between columns and chains up to five of them.
  localparam TABLES = DEPTH <= 36 ? 2 : 4;
  function [63:0] column(input integer number);
    integer row;
    for (row = 0; row < 64; row = row + 1)
      column[row] = CONTENTS[(row < DEPTH ? row : DEPTH - 1)*WIDTH + number];
  endfunction
  genvar k, n;
  generate for (k = 0; k < WIDTH; k = k + 1) begin : columns
    localparam [63:0] ROWS = column(k);
    wire [TABLES-1:0] found;
    wire [TABLES/2-1:0] joined;
    for (n = 0; n < TABLES; n = n + 1) begin : tables
      LUT4 #(.INIT(ROWS[16*n +: 16])) t (.A(address[0]), .B(address[1]), .C(address[2]),
          .D(address[3]), .Z(found[n]));
    end
    for (n = 0; n < TABLES; n = n + 2) begin : pairs
      PFUMX j (.BLUT(found[n]), .ALUT(found[n + 1]), .C0(address[4]), .Z(joined[n/2]));
    end
    if (TABLES == 4) begin : many
      L6MUX21 j (.D0(joined[0]), .D1(joined[1]), .SD(address[5]), .Z(data[k]));
    end else if (DEPTH > 32) begin : few
      // There are at most four last rows, which fit into the LUT that selects by address[5].
      wire [3:0] last = ROWS[35:32];
      assign data[k] = address[5] ? last[address[1:0]] : joined[0];
    end else begin : none
      assign data[k] = joined[0];
    end
  end endgenerate
`else
  reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
  integer k;
  initial for (k = 0; k < (1 << ADDRESS); k = k + 1)
    rows[k] = CONTENTS[(k < DEPTH ? k : DEPTH - 1)*WIDTH +: WIDTH];
  assign data = rows[address];
`endif
endmodule
