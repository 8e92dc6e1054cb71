// A ROM with an output register: after an edge, data is the row at the address before the edge.
// In silicon, a register holds the address in place of the row if the address has fewer bits.
// Row k is bits k * WIDTH to k * WIDTH + WIDTH - 1 of CONTENTS; past the end data is the last row.
// Up to 64 rows are logic; more rows are a memory, which synthesis may make a block RAM.
module rom #(
  parameter DEPTH = 2,
  parameter WIDTH = 1,
  parameter ADDRESS = 1,
  parameter [DEPTH*WIDTH-1:0] CONTENTS = 0
) (
  input wire clk,
  input wire [ADDRESS-1:0] address,
  output wire [WIDTH-1:0] data
);
`ifdef TORUSFABRIC_ASIC
  /* verilator lint_off WIDTHTRUNC */ // the last row is cut off, and an index has 32 bits
  localparam [WIDTH-1:0] LAST = CONTENTS[(DEPTH-1)*WIDTH +: WIDTH];
  localparam [(WIDTH<<ADDRESS)-1:0] ROWS = {{(1<<ADDRESS){LAST}}, CONTENTS};
  generate if (ADDRESS < WIDTH) begin : holds_address
    reg [ADDRESS-1:0] held;
    always @(posedge clk) held <= address;
    assign data = ROWS[held*WIDTH +: WIDTH];
  end else begin : holds_row
    reg [WIDTH-1:0] row;
    always @(posedge clk) row <= ROWS[address*WIDTH +: WIDTH];
    assign data = row;
  end endgenerate
  /* verilator lint_on WIDTHTRUNC */
`else
  reg [WIDTH-1:0] row;
  assign data = row;
  generate if (DEPTH <= 64) begin : few
`ifdef YOSYS
    (* rom_style = "logic" *)
`else
    (* rom_style = "distributed", romstyle = "logic" *)
`endif
    reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
    integer k;
    initial for (k = 0; k < (1 << ADDRESS); k = k + 1)
      rows[k] = CONTENTS[(k < DEPTH ? k : DEPTH - 1)*WIDTH +: WIDTH];
    always @(posedge clk) row <= rows[address];
  end else begin : many
    reg [WIDTH-1:0] rows [0:(1<<ADDRESS)-1];
    genvar first;
    // Pieces of 16 rows, set without a loop. Why: the time of Yosys grows with the square of the
    // rows in a loop, and Yosys copies the whole constant for each row that is selected from it.
    for (first = 0; first < (1 << ADDRESS); first = first + 16) begin : piece
      localparam START = first < DEPTH ? first : DEPTH - 1;
      localparam COUNT = DEPTH - START < 16 ? DEPTH - START : 16;
      localparam [COUNT*WIDTH-1:0] PIECE = CONTENTS[START*WIDTH +: COUNT*WIDTH];
      initial begin
        rows[first + 0] = PIECE[(0 < COUNT ? 0 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 1] = PIECE[(1 < COUNT ? 1 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 2] = PIECE[(2 < COUNT ? 2 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 3] = PIECE[(3 < COUNT ? 3 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 4] = PIECE[(4 < COUNT ? 4 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 5] = PIECE[(5 < COUNT ? 5 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 6] = PIECE[(6 < COUNT ? 6 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 7] = PIECE[(7 < COUNT ? 7 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 8] = PIECE[(8 < COUNT ? 8 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 9] = PIECE[(9 < COUNT ? 9 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 10] = PIECE[(10 < COUNT ? 10 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 11] = PIECE[(11 < COUNT ? 11 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 12] = PIECE[(12 < COUNT ? 12 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 13] = PIECE[(13 < COUNT ? 13 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 14] = PIECE[(14 < COUNT ? 14 : COUNT - 1)*WIDTH +: WIDTH];
        rows[first + 15] = PIECE[(15 < COUNT ? 15 : COUNT - 1)*WIDTH +: WIDTH];
      end
    end
    always @(posedge clk) row <= rows[address];
  end endgenerate
`endif
endmodule
