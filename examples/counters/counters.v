// Sixteen counters, and an all-gather that brings the value of each to all nodes of a 4x4 torus.
//
// Counter n counts n + 1 with every edge. A pulse of `go` takes the values of that moment, writes
// each into its node, runs the fabric, and reads what node `node` has received: while `valid` is
// high, `word` is the value that counter `origin` had. A `go` while not `idle` is ignored.
module counters (
  input             clk,
  input             rst,
  input             go,
  input       [3:0] node,
  output            idle,
  output            valid,
  output      [3:0] origin,
  output     [31:0] word
);
  // What `manifest.json` of the fabric says.
  localparam SEND_BASE = 0, RECV_BASE = 16, READ_LATENCY = 15;

  localparam IDLE = 0, LOAD = 1, START = 2, RUN = 3, READ = 4;

  reg   [2:0] state = IDLE;
  reg   [5:0] count = 0;    // nodes loaded, or edges since the first read
  reg [511:0] counting = 0; // counter n in bits 32 n to 32 n + 31
  reg [511:0] taken = 0;

  wire        busy, done;
  wire [31:0] cycles;
  wire  [3:0] reading = count[3:0];

  fabric fabric (
    .clk(clk), .rst(rst),
    .start(state == START), .busy(busy), .done(done), .cycles(cycles),
    .host_we(state == LOAD),
    .host_node(state == LOAD ? count[3:0] : node),
    .host_addr(state == LOAD ? SEND_BASE[4:0] : RECV_BASE[4:0] + {1'b0, reading}),
    .host_wdata(taken[31:0]),
    .host_rdata(word)
  );

  // The word of an address comes READ_LATENCY edges after it.
  assign idle = state == IDLE;
  assign valid = state == READ && count >= READ_LATENCY;
  assign origin = count - READ_LATENCY;

  integer n;
  always @(posedge clk) begin
    for (n = 0; n < 16; n = n + 1)
      counting[32 * n +: 32] <= rst ? 32'd0 : counting[32 * n +: 32] + n + 1;
    count <= count + 1;
    case (state)
      IDLE: if (go) begin
        state <= LOAD;
        taken <= counting;
        count <= 0;
      end
      LOAD: begin
        taken <= taken >> 32;
        if (count == 15) state <= START;
      end
      START: state <= RUN;
      RUN: if (done) begin
        state <= READ;
        count <= 0;
      end
      READ: if (count == READ_LATENCY + 15) state <= IDLE;
      default: state <= IDLE;
    endcase
    if (rst) state <= IDLE;
  end
endmodule
