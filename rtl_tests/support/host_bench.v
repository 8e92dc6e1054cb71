// Everything is sampled, then driven, at falling edges, so there is no race with the rising ones.
// What stands between two @ is given by verilog_bench.py.
module bench(input clk);
  reg rst, start, we;
  reg [@NB@-1:0] node;
  reg [@AB@-1:0] addr;
  reg [@W@-1:0] wdata;
  wire busy, done;
  wire [@W@-1:0] rdata;
  wire [31:0] cycles;

  @TOP@ dut (
    .clk(clk), .rst(rst), .start(start)@CHOSEN@, .host_we(we), .host_node(node), .host_addr(addr),
    .host_wdata(wdata), .busy(busy), .done(done), .host_rdata(rdata), .cycles(cycles)
  );

  reg [@NB@+@AB@+@W@-1:0] load [0:(@LOADS@ > 0 ? @LOADS@ : 1)-1];
  reg [@NB@+@AB@-1:0] ask [0:(@ASKS@ > 0 ? @ASKS@ : 1)-1];
  integer state, n, edges, runs, out;

  initial begin
    $readmemh("load.hex", load);
    $readmemh("ask.hex", ask);
    out = $fopen("answers.txt", "w");
    state = 0; n = 0; edges = 0; runs = 0;
    rst = 1'b1; start = 1'b0; we = 1'b0; node = 0; addr = 0; wdata = 0;
  end

  task check(input good, input integer what);
    if (good !== 1'b1 && state < 9) begin
      case (what)
        0: $display("FAIL busy is %b and done is %b before the first start", busy, done);
        1: $display("FAIL busy is %b and done is %b after the edge that took start", busy, done);
        2: $display("FAIL busy is %b and done is %b, %0d edges after start", busy, done, edges);
        3: $display("FAIL busy is %b while done is high", busy);
        4: $display("FAIL cycles is %0d, not the %0d edges counted", cycles, edges);
        5: $display("FAIL %0d edges from start to done, not the @PREDICTED@ predicted", edges);
        6: $display("FAIL busy is %b and done is %b before the next start", busy, done);
        default: $display("FAIL cycles is %0d, no longer %0d", cycles, edges);
      endcase
      state = 9;
    end
  endtask

  always @(negedge clk) begin
    case (state)
      0: begin  // reset
        n = n + 1;
        if (n == 4) begin
          check(!busy && !done, 0);
          rst <= 1'b0;
          n = 0;
          if (state == 0) state = 1;
        end
      end
      1: begin  // load, then start at once
        check(!busy && !done, 0);
        if (n < @LOADS@) begin
          {node, addr, wdata} <= load[n];
          we <= 1'b1;
          n = n + 1;
        end else begin
          we <= 1'b0;
          start <= 1'b1;
          if (state == 1) state = 2;
        end
      end
      2: begin  // the edge before this took the pulse
        start <= 1'b0;
        edges = 0;
        check(busy && !done, 1);
        if (state == 2) state = 3;
      end
      3: begin  // run
        edges = edges + 1;
        if (done === 1'b1) begin
          check(!busy, 3);
          // The run began when the words were there that were written just before its start.
          if (runs == 0 && edges - cycles <= @WRITTEN@) edges = cycles;
          check(cycles == edges, 4);
          check(edges == @PREDICTED@, 5);
          runs = runs + 1;
          n = 0;
          if (state == 3) state = 4;
        end else begin
          check(busy && !done && edges <= @PREDICTED@ + 1000, 2);
        end
      end
      4: begin  // rest, then start again or read
        check(!busy && done, 6);
        check(cycles == edges, 7);
        n = n + 1;
        if (n == 3) begin
          n = 0;
          if (runs < @STARTS@) begin
            start <= 1'b1;
            if (state == 4) state = 2;
          end else if (state == 4) state = 5;
        end
      end
      5: begin  // read, an address with every edge
        check(!busy && done, 6);
        check(cycles == edges, 7);
        if (n >= @LATENCY@ && n < @ASKS@ + @LATENCY@) $fdisplay(out, "%h", rdata);
        if (n < @ASKS@) {node, addr} <= ask[n];
        n = n + 1;
        if (n > @ASKS@ + @LATENCY@ && state == 5) begin
          $display("DONE %0d", cycles);
          state = 9;
        end
      end
      default: begin
        $fclose(out);
        $finish;
      end
    endcase
  end
endmodule
