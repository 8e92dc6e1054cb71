// 2x2 allgather by hamiltonian: 32 bits a flit, 2 flits a message, 7 cycles
// made by torusfabric 0.1.0:
//   torusfabric verilog 2x2 allgather --algorithm hamiltonian --width 32 --flits 2 --top host
/* verilator lint_off CASEINCOMPLETE */ // what a state machine does in no case is assigned before all cases
/* verilator lint_off DECLFILENAME */ // one file holds all modules, so that it can be copied as one
/* verilator lint_off UNUSEDSIGNAL */ // modules of all classes have the same ports, and counters an unused carry
/* verilator lint_off WIDTHTRUNC */ // a logical not asks whether a whole word is zero
/* verilator lint_off WIDTHEXPAND */ // operands of sums and comparisons are written at their own widths

(* keep_hierarchy =  1  *)
module register_2(clk, part_0, part_1, register, rst);
  input clk;
  input part_0;
  input part_1;
  input rst;
  output [1:0] register;
  reg [1:0] register;
  wire [1:0] given;
  wire [1:0] held;
  wire clk;
  wire part_0;
  wire part_1;
  wire rst;
  always @(posedge clk)
    register <= { part_0, part_1 };
  assign given = { part_0, part_1 };
  assign held = register;
endmodule

(* keep_hierarchy =  1  *)
module register_1(clk, given, register, rst);
  input clk;
  input given;
  input rst;
  output register;
  reg register;
  wire clk;
  wire given;
  wire held;
  wire rst;
  always @(posedge clk)
    register <= given;
  assign held = register;
endmodule

(* keep_hierarchy =  1  *)
module register_0(clk, given, register, rst);
  input [2:0] given;
  input clk;
  input rst;
  output [2:0] register;
  reg [2:0] register;
  wire [2:0] given;
  wire [2:0] held;
  wire clk;
  wire rst;
  always @(posedge clk)
    register <= given;
  assign held = register;
endmodule

module sequencer(idle_address, clk, rst, busy, done, cycles, select, read_0, write_0, store_0, start);
  reg unused_trigger ;
  initial unused_trigger  = 0;
  input idle_address;
  wire idle_address;
  input clk;
  wire clk;
  input rst;
  wire rst;
  output busy;
  reg busy;
  output done;
  reg done;
  output [31:0] cycles;
  reg [31:0] cycles;
  output select;
  reg select;
  output read_0;
  wire read_0;
  output write_0;
  reg write_0;
  output store_0;
  reg store_0;
  input start;
  wire start;
  wire _00_;
  wire _01_;
  wire _02_;
  wire _03_;
  wire _04_;
  wire _05_;
  wire [1:0] _06_;
  wire [1:0] _07_;
  wire _08_;
  wire _09_;
  wire _10_;
  wire _11_;
  wire [1:0] _12_;
  wire [1:0] _13_;
  wire _14_;
  wire _15_;
  wire _16_;
  reg _17_;
  reg _18_;
  reg [31:0] _19_;
  reg _20_;
  reg _21_;
  wire [3:0] _22_;
  reg _23_;
  reg [5:0] _24_;
  reg _25_;
  reg _26_;
  wire _27_;
  wire _28_;
  wire _29_;
  wire _30_;
  wire [1:0] _31_;
  wire _32_;
  reg counter;
  reg flit;
  wire last;
  reg later;
  reg \later$16 ;
  reg \later$18 ;
  reg \later$19 ;
  reg \later$21 ;
  reg \later$22 ;
  wire \later$23 ;
  reg \later$24 ;
  reg \later$25 ;
  wire \later$26 ;
  reg row;
  reg running;
  reg [5:0] stages;
  assign _00_ = ~ busy;
  assign _11_ = start & _00_;
  assign _22_ = cycles[2:0] + 1'h1;
  assign _27_ = ! row;
  assign _28_ = ~ busy;
  assign _29_ = start & _28_;
  assign _30_ = _29_ | running;
  assign _31_ = row + 1'h1;
  assign _01_ = ! flit;
  assign _02_ = _32_ & _01_;
  assign _03_ = ~ _02_;
  assign _05_ = ! flit;
  assign _06_ = flit + 1'h1;
  assign _07_ = flit ? _06_ : 2'h0;
  assign _08_ = ~ busy;
  assign _09_ = start & _08_;
  assign _10_ = _09_ | running;
  assign _12_ = counter + 1'h1;
  assign _13_ = stages[0] ? _12_ : 2'h0;
  assign _16_ = ~ stages[4];
  assign last = stages[5] & _16_;
  assign read_0 = busy ? \later$19  : idle_address;
  always @(posedge clk)
    busy <= _17_;
  always @(posedge clk)
    done <= _18_;
  always @(posedge clk)
    cycles <= _19_;
  always @(posedge clk)
    later <= _27_;
  always @(posedge clk)
    row <= _20_;
  always @(posedge clk)
    running <= _21_;
  always @(posedge clk)
    flit <= _23_;
  always @(posedge clk)
    \later$16  <= flit;
  always @(posedge clk)
    stages <= _24_;
  always @(posedge clk)
    \later$18  <= later;
  always @(posedge clk)
    select <= _25_;
  always @(posedge clk)
    \later$19  <= \later$16 ;
  always @(posedge clk)
    counter <= _26_;
  always @(posedge clk)
    \later$21  <= counter;
  always @(posedge clk)
    \later$22  <= \later$21 ;
  always @(posedge clk)
    write_0 <= \later$22 ;
  always @(posedge clk)
    \later$24  <= _15_;
  always @(posedge clk)
    \later$25  <= \later$24 ;
  always @(posedge clk)
    store_0 <= \later$25 ;
  always @* begin
    if (unused_trigger ) begin end
    _17_ = busy;
    if (_11_) begin
      _17_ = 1'h1;
    end else if (busy) begin
      if (last) begin
        _17_ = 1'h0;
      end
    end
    if (rst) begin
      _17_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _18_ = done;
    if (_11_) begin
      _18_ = 1'h0;
    end else if (busy) begin
      if (last) begin
        _18_ = 1'h1;
      end
    end
    if (rst) begin
      _18_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _19_ = cycles;
    if (_11_) begin
      _19_[2:0] = 3'h0;
    end else if (busy) begin
      _19_[2:0] = _22_[2:0];
    end
    if (rst) begin
      _19_ = 32'd0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _20_ = row;
    if (_30_) begin
      _20_ = _31_[0];
      if (_04_) begin
        _20_ = 1'h0;
      end
    end
    if (rst) begin
      _20_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _21_ = running;
    if (_30_) begin
      _21_ = _03_;
    end
    if (rst) begin
      _21_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _23_ = flit;
    if (_30_) begin
      if (_04_) begin
        _23_ = _07_[0];
      end
    end
    if (rst) begin
      _23_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _24_ = { stages[4:0], _10_ };
    if (rst) begin
      _24_ = 6'h00;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _25_ = \later$18 ;
    if (rst) begin
      _25_ = 1'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _26_ = _13_[0];
    if (rst) begin
      _26_ = 1'h0;
    end
  end
  assign \later$23  = write_0;
  assign \later$26  = store_0;
  assign _32_ = row;
  assign _04_ = row;
  assign _14_ = stages[0];
  assign _15_ = stages[0];
endmodule

module router_0(inject, enable, rx, clk, rst, tx, select);
  reg unused_trigger ;
  initial unused_trigger  = 0;
  input [63:0] inject;
  wire [63:0] inject;
  input enable;
  wire enable;
  input [127:0] rx;
  wire [127:0] rx;
  input clk;
  wire clk;
  input rst;
  wire rst;
  output [127:0] tx;
  reg [127:0] tx;
  input select;
  wire select;
  wire [15:0] _00_;
  wire [15:0] _01_;
  wire [15:0] _02_;
  wire [15:0] _03_;
  wire [15:0] _04_;
  wire [15:0] _05_;
  wire [15:0] _06_;
  wire [15:0] _07_;
  reg [127:0] _08_;
  wire given;
  wire \given$10 ;
  wire \given$11 ;
  wire \given$12 ;
  wire \given$13 ;
  wire \given$14 ;
  wire \given$15 ;
  wire \given$8 ;
  wire \given$9 ;
  wire held;
  wire \held$17 ;
  wire \held$18 ;
  wire \held$19 ;
  wire \held$20 ;
  wire \held$21 ;
  wire \held$22 ;
  wire \held$23 ;
  wire \held$24 ;
  assign _00_ = \held$17  ? inject[15:0] : rx[111:96];
  assign _01_ = \held$18  ? inject[31:16] : rx[127:112];
  assign _02_ = \held$19  ? inject[47:32] : rx[79:64];
  assign _03_ = \held$20  ? inject[63:48] : rx[95:80];
  assign _04_ = \held$21  ? inject[47:32] : rx[47:32];
  assign _05_ = \held$22  ? inject[63:48] : rx[63:48];
  assign _06_ = \held$23  ? inject[15:0] : rx[15:0];
  assign _07_ = \held$24  ? inject[31:16] : rx[31:16];
  always @(posedge clk)
    tx <= _08_;
  register_1 enable_here (
    .clk(clk),
    .given(enable),
    .register(held),
    .rst(rst)
  );
  register_1 select_0_0 (
    .clk(clk),
    .given(select),
    .register(\held$17 ),
    .rst(rst)
  );
  register_1 select_0_1 (
    .clk(clk),
    .given(select),
    .register(\held$18 ),
    .rst(rst)
  );
  register_1 select_1_0 (
    .clk(clk),
    .given(select),
    .register(\held$19 ),
    .rst(rst)
  );
  register_1 select_1_1 (
    .clk(clk),
    .given(select),
    .register(\held$20 ),
    .rst(rst)
  );
  register_1 select_2_0 (
    .clk(clk),
    .given(select),
    .register(\held$21 ),
    .rst(rst)
  );
  register_1 select_2_1 (
    .clk(clk),
    .given(select),
    .register(\held$22 ),
    .rst(rst)
  );
  register_1 select_3_0 (
    .clk(clk),
    .given(select),
    .register(\held$23 ),
    .rst(rst)
  );
  register_1 select_3_1 (
    .clk(clk),
    .given(select),
    .register(\held$24 ),
    .rst(rst)
  );
  always @* begin
    if (unused_trigger ) begin end
    _08_ = tx;
    if (held) begin
      _08_ = { _07_, _06_, _05_, _04_, _03_, _02_, _01_, _00_ };
    end
  end
  assign given = select;
  assign \given$8  = select;
  assign \given$9  = select;
  assign \given$10  = select;
  assign \given$11  = select;
  assign \given$12  = select;
  assign \given$13  = select;
  assign \given$14  = select;
  assign \given$15  = enable;
endmodule

module read_merge_4(clk, rst, word, data);
  input clk;
  wire clk;
  input rst;
  wire rst;
  output [31:0] word;
  reg [31:0] word;
  input [127:0] data;
  wire [127:0] data;
  wire [31:0] _0_;
  wire [31:0] _1_;
  wire [31:0] _2_;
  assign _0_ = data[31:0] | data[63:32];
  assign _1_ = _0_ | data[95:64];
  assign _2_ = _1_ | data[127:96];
  always @(posedge clk)
    word <= _2_;
endmodule

module host_locator(rst, \port$72$0 , node, bank, address, clk);
  reg unused_trigger ;
  initial unused_trigger  = 0;
  input rst;
  wire rst;
  input [2:0] \port$72$0 ;
  wire [2:0] \port$72$0 ;
  input [1:0] node;
  wire [1:0] node;
  output [2:0] bank;
  reg [2:0] bank;
  output address;
  reg address;
  input clk;
  wire clk;
  wire [2:0] _000_;
  wire [2:0] _001_;
  wire [3:0] _002_;
  wire _003_;
  wire _004_;
  wire _005_;
  wire [2:0] _006_;
  wire _007_;
  wire [2:0] _008_;
  wire [3:0] _009_;
  wire _010_;
  wire _011_;
  wire _012_;
  wire _013_;
  wire [2:0] _014_;
  wire _015_;
  wire [2:0] _016_;
  wire [3:0] _017_;
  wire _018_;
  wire _019_;
  wire _020_;
  wire _021_;
  wire [2:0] _022_;
  wire [3:0] _023_;
  wire _024_;
  wire _025_;
  wire _026_;
  wire _027_;
  wire _028_;
  wire _029_;
  wire _030_;
  wire _031_;
  wire _032_;
  wire [3:0] _033_;
  wire _034_;
  wire _035_;
  wire _036_;
  wire [3:0] _037_;
  wire [3:0] _038_;
  wire [1:0] _039_;
  wire [3:0] _040_;
  wire [1:0] _041_;
  wire [3:0] _042_;
  wire [1:0] _043_;
  wire _044_;
  wire [3:0] _045_;
  wire [1:0] _046_;
  wire [3:0] _047_;
  wire _048_;
  wire _049_;
  wire _050_;
  wire _051_;
  wire _052_;
  wire _053_;
  wire _054_;
  wire _055_;
  wire _056_;
  wire _057_;
  wire _058_;
  wire [2:0] _059_;
  wire [2:0] _060_;
  wire [1:0] _061_;
  reg [2:0] _062_;
  reg _063_;
  wire _064_;
  wire [2:0] _065_;
  wire _066_;
  reg \$signal ;
  reg \$signal$24 ;
  reg \$signal$35 ;
  reg \$signal$46 ;
  wire chunk;
  wire [1:0] column_0;
  wire [1:0] \column_0$9 ;
  wire [1:0] column_1;
  wire [1:0] column_2;
  wire [1:0] column_3;
  wire [1:0] column_4;
  reg signed [2:0] difference;
  reg signed [2:0] \difference$20 ;
  reg signed [2:0] \difference$31 ;
  reg signed [2:0] \difference$42 ;
  wire flit;
  reg signed [2:0] late;
  reg signed [2:0] \late$22 ;
  reg signed [2:0] \late$33 ;
  reg signed [2:0] \late$44 ;
  reg later;
  reg \later$10 ;
  reg [3:0] \later$12 ;
  reg [1:0] \later$15 ;
  reg [1:0] \later$17 ;
  reg [1:0] \later$18 ;
  reg [1:0] \later$19 ;
  reg \later$21 ;
  reg [3:0] \later$23 ;
  reg [1:0] \later$26 ;
  reg [1:0] \later$28 ;
  reg [1:0] \later$29 ;
  reg [1:0] \later$30 ;
  reg \later$32 ;
  reg [3:0] \later$34 ;
  reg [1:0] \later$37 ;
  reg [1:0] \later$39 ;
  reg \later$4 ;
  reg [1:0] \later$40 ;
  reg [1:0] \later$41 ;
  reg \later$43 ;
  reg [3:0] \later$45 ;
  reg [1:0] \later$48 ;
  reg \later$5 ;
  reg [1:0] \later$50 ;
  reg [1:0] \later$51 ;
  reg [1:0] \later$52 ;
  reg \later$53 ;
  reg \later$56 ;
  reg \later$57 ;
  reg \later$58 ;
  reg \later$59 ;
  reg \later$6 ;
  reg \later$60 ;
  reg \later$61 ;
  reg [3:0] \later$62 ;
  reg \later$63 ;
  reg [1:0] \later$64 ;
  reg \later$65 ;
  reg \later$66 ;
  reg [1:0] \later$67 ;
  reg \later$68 ;
  reg \later$69 ;
  reg [1:0] \later$70 ;
  reg \later$71 ;
  reg \later$72 ;
  reg [1:0] \later$73 ;
  reg \later$74 ;
  reg [3:0] \later$75 ;
  reg \later$76 ;
  reg \later$77 ;
  reg \later$79 ;
  reg \later$80 ;
  reg \later$81 ;
  reg \later$82 ;
  reg \later$83 ;
  reg \later$84 ;
  reg near;
  reg \near$25 ;
  reg \near$36 ;
  reg \near$47 ;
  wire [1:0] origin;
  wire [9:0] port__data;
  wire [1:0] \port__data$89 ;
  reg waves;
  reg [9:0] nodes [3:0];
  initial begin
    nodes[0] = 10'h06f;
    nodes[1] = 10'h2c6;
    nodes[2] = 10'h2c4;
    nodes[3] = 10'h06d;
  end
  reg [9:0] _205_;
  always @(posedge clk) begin
    _205_ <= nodes[node];
  end
  assign port__data = _205_;
  reg [1:0] origins [3:0];
  initial begin
    origins[0] = 2'h3;
    origins[1] = 2'h2;
    origins[2] = 2'h0;
    origins[3] = 2'h1;
  end
  reg [1:0] _206_;
  always @(posedge clk) begin
    _206_ <= origins[\port$72$0 [2:1]];
  end
  assign \column_0$9  = _206_;
  assign _026_ = \$signal  & _025_;
  assign _027_ = | { \$signal , \later$59  };
  assign _028_ = ~ _027_;
  assign _029_ = \$signal$24  & _028_;
  assign _030_ = | { \$signal$24 , \$signal , \later$59  };
  assign _031_ = ~ _030_;
  assign _032_ = \$signal$35  & _031_;
  assign _034_ = | { \$signal$35 , \$signal$24 , \$signal , \later$59  };
  assign _035_ = ~ _034_;
  assign _036_ = \$signal$46  & _035_;
  assign _037_ = \later$61  ? \later$62  : 4'h0;
  assign _039_ = \later$63  ? \later$64  : 2'h0;
  assign _040_ = _038_ | { 2'h0, _039_ };
  assign _041_ = \later$66  ? \later$67  : 2'h0;
  assign _042_ = _040_ | { 2'h0, _041_ };
  assign _043_ = \later$69  ? \later$70  : 2'h0;
  assign _045_ = _042_ | { 2'h0, _043_ };
  assign _046_ = \later$72  ? \later$73  : 2'h0;
  assign _047_ = _045_ | { 2'h0, _046_ };
  assign _050_ = \later$63  ? \later$65  : 1'h0;
  assign _052_ = \later$66  ? \later$68  : 1'h0;
  assign _053_ = _051_ | _052_;
  assign _054_ = \later$69  ? \later$71  : 1'h0;
  assign _056_ = _053_ | _054_;
  assign _057_ = \later$72  ? \later$74  : 1'h0;
  assign _058_ = _056_ | _057_;
  assign _059_ = \later$83  * 2'h2;
  assign _060_ = \later$84  ? { 2'h0, \later$83  } : _059_;
  assign _061_ = waves + \later$76 ;
  always @(posedge clk)
    later <= \port$72$0 [0];
  always @(posedge clk)
    \later$4  <= later;
  always @(posedge clk)
    \later$5  <= \later$4 ;
  always @(posedge clk)
    \later$6  <= \later$5 ;
  always @(posedge clk)
    difference <= _000_;
  always @(posedge clk)
    \later$10  <= _011_;
  always @(posedge clk)
    late <= difference;
  always @(posedge clk)
    \later$12  <= _033_;
  always @(posedge clk)
    \$signal  <= _064_;
  always @(posedge clk)
    near <= \later$12 [0];
  always @(posedge clk)
    \later$15  <= port__data[3:2];
  always @(posedge clk)
    \later$17  <= \later$15 ;
  always @(posedge clk)
    \later$18  <= \later$17 ;
  always @(posedge clk)
    \later$19  <= \later$18 ;
  always @(posedge clk)
    \difference$20  <= _065_;
  always @(posedge clk)
    \later$21  <= _066_;
  always @(posedge clk)
    \late$22  <= \difference$20 ;
  always @(posedge clk)
    \later$23  <= _002_;
  always @(posedge clk)
    \$signal$24  <= _005_;
  always @(posedge clk)
    \near$25  <= \later$23 [0];
  always @(posedge clk)
    \later$26  <= port__data[5:4];
  always @(posedge clk)
    \later$28  <= \later$26 ;
  always @(posedge clk)
    \later$29  <= \later$28 ;
  always @(posedge clk)
    \later$30  <= \later$29 ;
  always @(posedge clk)
    \difference$31  <= _006_;
  always @(posedge clk)
    \later$32  <= _007_;
  always @(posedge clk)
    \late$33  <= \difference$31 ;
  always @(posedge clk)
    \later$34  <= _009_;
  always @(posedge clk)
    \$signal$35  <= _013_;
  always @(posedge clk)
    \near$36  <= \later$34 [0];
  always @(posedge clk)
    \later$37  <= port__data[7:6];
  always @(posedge clk)
    \later$39  <= \later$37 ;
  always @(posedge clk)
    \later$40  <= \later$39 ;
  always @(posedge clk)
    \later$41  <= \later$40 ;
  always @(posedge clk)
    \difference$42  <= _014_;
  always @(posedge clk)
    \later$43  <= _015_;
  always @(posedge clk)
    \late$44  <= \difference$42 ;
  always @(posedge clk)
    \later$45  <= _017_;
  always @(posedge clk)
    \$signal$46  <= _020_;
  always @(posedge clk)
    \near$47  <= \later$45 [0];
  always @(posedge clk)
    \later$48  <= port__data[9:8];
  always @(posedge clk)
    \later$50  <= \later$48 ;
  always @(posedge clk)
    \later$51  <= \later$50 ;
  always @(posedge clk)
    \later$52  <= \later$51 ;
  always @(posedge clk)
    \later$53  <= _021_;
  always @(posedge clk)
    \later$56  <= \later$53 ;
  always @(posedge clk)
    \later$57  <= \later$56 ;
  always @(posedge clk)
    \later$58  <= \later$57 ;
  always @(posedge clk)
    \later$59  <= \later$58 ;
  always @(posedge clk)
    \later$60  <= \later$6 ;
  always @(posedge clk)
    \later$61  <= \later$59 ;
  always @(posedge clk)
    \later$62  <= _023_;
  always @(posedge clk)
    \later$63  <= _026_;
  always @(posedge clk)
    \later$64  <= \later$19 ;
  always @(posedge clk)
    \later$65  <= near;
  always @(posedge clk)
    \later$66  <= _029_;
  always @(posedge clk)
    \later$67  <= \later$30 ;
  always @(posedge clk)
    \later$68  <= \near$25 ;
  always @(posedge clk)
    \later$69  <= _032_;
  always @(posedge clk)
    \later$70  <= \later$41 ;
  always @(posedge clk)
    \later$71  <= \near$36 ;
  always @(posedge clk)
    \later$72  <= _036_;
  always @(posedge clk)
    \later$73  <= \later$52 ;
  always @(posedge clk)
    \later$74  <= \near$47 ;
  always @(posedge clk)
    \later$75  <= _047_;
  always @(posedge clk)
    \later$76  <= _058_;
  always @(posedge clk)
    \later$77  <= 1'h0;
  always @(posedge clk)
    \later$79  <= \later$77 ;
  always @(posedge clk)
    \later$80  <= \later$79 ;
  always @(posedge clk)
    \later$81  <= \later$80 ;
  always @(posedge clk)
    \later$82  <= \later$81 ;
  always @(posedge clk)
    \later$83  <= \later$82 ;
  always @(posedge clk)
    \later$84  <= \later$59 ;
  always @(posedge clk)
    waves <= _060_[0];
  always @(posedge clk)
    bank <= _062_;
  always @(posedge clk)
    address <= _063_;
  assign _000_ = port__data[1:0] - \column_0$9 ;
  assign _011_ = $signed(difference) < $signed(2'h1);
  assign _022_ = \later$10  ? 3'h3 : 3'h7;
  assign _033_ = $signed(late) + $signed(_022_);
  assign _044_ = \later$12  < 2'h2;
  assign _055_ = ! \later$6 ;
  assign _064_ = & { _055_, _044_, 2'h3 };
  assign _065_ = port__data[1:0] - \column_0$9 ;
  assign _066_ = $signed(\difference$20 ) < $signed(2'h1);
  assign _001_ = \later$21  ? 3'h3 : 3'h7;
  assign _002_ = $signed(\late$22 ) + $signed(_001_);
  assign _003_ = \later$23  < 2'h2;
  assign _005_ = & { _004_, _003_, 2'h3 };
  assign _006_ = \column_0$9  - port__data[1:0];
  assign _007_ = $signed(\difference$31 ) < $signed(2'h1);
  assign _008_ = \later$32  ? 3'h3 : 3'h7;
  assign _009_ = $signed(\late$33 ) + $signed(_008_);
  assign _010_ = \later$34  < 2'h2;
  assign _013_ = & { _012_, _010_, 2'h3 };
  assign _014_ = \column_0$9  - port__data[1:0];
  assign _015_ = $signed(\difference$42 ) < $signed(2'h1);
  assign _016_ = \later$43  ? 3'h3 : 3'h7;
  assign _017_ = $signed(\late$44 ) + $signed(_016_);
  assign _018_ = \later$45  < 2'h2;
  assign _019_ = ! \later$6 ;
  assign _020_ = & { _019_, _018_, 2'h3 };
  assign _021_ = node == \port$72$0 [2:1];
  assign _023_ = 3'h4 + \later$60 ;
  assign _025_ = ~ _024_;
  always @* begin
    if (unused_trigger ) begin end
    _062_ = \later$75 [2:0];
    if (rst) begin
      _062_ = 3'h0;
    end
  end
  always @* begin
    if (unused_trigger ) begin end
    _063_ = _061_[0];
    if (rst) begin
      _063_ = 1'h0;
    end
  end
  assign chunk = \port$72$0 [0];
  assign column_0 = port__data[1:0];
  assign column_1 = port__data[3:2];
  assign column_2 = port__data[5:4];
  assign column_3 = port__data[7:6];
  assign column_4 = port__data[9:8];
  assign origin = \port$72$0 [2:1];
  assign flit = 1'h0;
  assign \port__data$89  = \column_0$9 ;
  assign _004_ = \later$6 ;
  assign _012_ = \later$6 ;
  assign _024_ = \later$59 ;
  assign _038_ = _037_;
  assign _048_ = 1'h0;
  assign _049_ = 1'h0;
  assign _051_ = _050_;
endmodule

module host(host_node, host_addr, host_wdata, clk, rst, write_node, write_data, write_enable, read_node, read_bank, read_address, write_bank, write_address, host_we);
  reg unused_trigger ;
  initial unused_trigger  = 0;
  input [1:0] host_node;
  wire [1:0] host_node;
  input [3:0] host_addr;
  wire [3:0] host_addr;
  input [31:0] host_wdata;
  wire [31:0] host_wdata;
  input clk;
  wire clk;
  input rst;
  wire rst;
  output [1:0] write_node;
  reg [1:0] write_node;
  output [31:0] write_data;
  reg [31:0] write_data;
  output write_enable;
  reg write_enable;
  output [1:0] read_node;
  reg [1:0] read_node;
  output [2:0] read_bank;
  wire [2:0] read_bank;
  output read_address;
  wire read_address;
  output write_bank;
  wire write_bank;
  output write_address;
  wire write_address;
  input host_we;
  wire host_we;
  wire _00_;
  wire _01_;
  reg _02_;
  wire address;
  wire [2:0] bank;
  wire chunk;
  wire enable_later;
  wire flit;
  reg [2:0] later;
  reg [1:0] \later$15 ;
  reg [1:0] \later$16 ;
  reg [1:0] \later$17 ;
  reg [1:0] \later$18 ;
  reg [1:0] \later$19 ;
  reg [1:0] \later$20 ;
  reg [1:0] \later$21 ;
  reg [1:0] \later$22 ;
  reg [1:0] \later$23 ;
  wire [1:0] \later$24 ;
  reg [2:0] \later$25 ;
  wire [1:0] \later$27 ;
  reg [31:0] \later$28 ;
  wire [31:0] \later$29 ;
  wire [1:0] node;
  wire [1:0] origin;
  always @(posedge clk)
    \later$18  <= \later$17 ;
  always @(posedge clk)
    \later$19  <= \later$18 ;
  always @(posedge clk)
    \later$20  <= \later$19 ;
  always @(posedge clk)
    \later$21  <= \later$20 ;
  always @(posedge clk)
    \later$22  <= \later$21 ;
  always @(posedge clk)
    \later$23  <= \later$22 ;
  always @(posedge clk)
    read_node <= \later$23 ;
  always @(posedge clk)
    \later$25  <= host_addr[2:0];
  always @(posedge clk)
    write_enable <= _02_;
  always @(posedge clk)
    write_node <= host_node;
  always @(posedge clk)
    \later$28  <= host_wdata;
  always @(posedge clk)
    write_data <= \later$28 ;
  assign _00_ = ~ host_addr[3];
  assign _01_ = host_we & _00_;
  always @(posedge clk)
    later <= host_addr[2:0];
  always @(posedge clk)
    \later$15  <= host_node;
  always @(posedge clk)
    \later$16  <= host_node;
  always @(posedge clk)
    \later$17  <= \later$16 ;
  host_locator locator (
    .address(read_address),
    .bank(read_bank),
    .clk(clk),
    .node(\later$15 ),
    .\port$72$0 (later),
    .rst(rst)
  );
  always @* begin
    if (unused_trigger ) begin end
    _02_ = _01_;
    if (rst) begin
      _02_ = 1'h0;
    end
  end
  assign \later$24  = read_node;
  assign enable_later = write_enable;
  assign \later$27  = write_node;
  assign \later$29  = write_data;
  assign node = \later$15 ;
  assign origin = later[2:1];
  assign chunk = later[0];
  assign flit = 1'h0;
  assign bank = read_bank;
  assign address = read_address;
  assign write_bank = \later$25 [0];
  assign write_address = 1'h0;
endmodule

module endpoint_0(write_0, store_0, rx, busy, node, write_node, write_data, write_enable, read_node, read_bank, read_address, write_bank, write_address, clk, rst, inject, read_data, read_0);
  reg unused_trigger ;
  initial unused_trigger  = 0;
  input write_0;
  wire write_0;
  input store_0;
  wire store_0;
  input [127:0] rx;
  wire [127:0] rx;
  input busy;
  wire busy;
  input [1:0] node;
  wire [1:0] node;
  input [1:0] write_node;
  wire [1:0] write_node;
  input [31:0] write_data;
  wire [31:0] write_data;
  input write_enable;
  wire write_enable;
  input [1:0] read_node;
  wire [1:0] read_node;
  input [2:0] read_bank;
  wire [2:0] read_bank;
  input read_address;
  wire read_address;
  input write_bank;
  wire write_bank;
  input write_address;
  wire write_address;
  input clk;
  wire clk;
  input rst;
  wire rst;
  output [63:0] inject;
  wire [63:0] inject;
  output [31:0] read_data;
  reg [31:0] read_data;
  input read_0;
  wire read_0;
  wire _00_;
  wire _01_;
  wire _02_;
  wire _03_;
  wire _04_;
  reg [3:0] _05_;
  wire [15:0] _06_;
  wire [15:0] _07_;
  wire [15:0] _08_;
  wire [15:0] _09_;
  wire [15:0] _10_;
  wire [15:0] _11_;
  wire [15:0] _12_;
  wire [15:0] _13_;
  wire [15:0] _14_;
  wire [15:0] _15_;
  wire [15:0] _16_;
  wire _17_;
  wire _18_;
  wire [15:0] _19_;
  wire [15:0] _20_;
  wire [15:0] _21_;
  wire [15:0] _22_;
  wire [15:0] _23_;
  wire [15:0] _24_;
  wire [15:0] _25_;
  wire [15:0] _26_;
  wire [15:0] _27_;
  wire [15:0] _28_;
  wire [15:0] _29_;
  wire [31:0] _30_;
  reg [63:0] _31_;
  wire [15:0] _32_;
  wire [15:0] _33_;
  wire _34_;
  wire _35_;
  wire _36_;
  wire _37_;
  reg [63:0] bank_4;
  wire given;
  wire \given$19 ;
  wire [1:0] \given$20 ;
  wire [2:0] \given$22 ;
  reg \given$27 ;
  wire [2:0] \given$31 ;
  reg \given$34 ;
  wire [2:0] held;
  wire [2:0] \held$33 ;
  wire \held$43 ;
  wire \held$44 ;
  wire [1:0] \held$45 ;
  wire \held$46 ;
  wire \held$47 ;
  (* keep = 32'd1 *)
  wire [15:0] host_select_0_word_1;
  (* keep = 32'd1 *)
  wire [15:0] host_select_1_word_1;
  reg [3:0] later;
  wire \later$28 ;
  wire \later$35 ;
  reg \later$38 ;
  reg \later$39 ;
  reg \later$40 ;
  reg \later$41 ;
  reg \later$42 ;
  wire [127:0] out__data;
  (* keep = 32'd1 *)
  wire [15:0] stage;
  (* keep = 32'd1 *)
  reg [15:0] \stage$29 ;
  (* keep = 32'd1 *)
  wire [15:0] \stage$32 ;
  (* keep = 32'd1 *)
  reg [15:0] \stage$36 ;
  (* no_rw_check = 32'd1 *)
  reg [127:0] bank_0 [1:0];
  initial begin : init_bank_0
    integer k;
    for (k = 0; k <= 1; k = k + 1) bank_0[k] = 128'h00000000000000000000000000000000;
  end
  always @(posedge clk) begin
    if (\held$47 )
      bank_0[\held$46 ] <= rx;
  end
  reg [127:0] _90_;
  always @(posedge clk) begin
    if (\held$45 [1]) begin
      _90_ <= bank_0[\held$45 [0]];
    end
  end
  assign out__data = _90_;
  assign _00_ = read_node == node;
  assign _11_ = held[0] ? out__data[47:32] : out__data[15:0];
  assign _22_ = held[0] ? 16'hffff : 16'h0000;
  assign stage = held[1] ? _11_ : _22_;
  assign _32_ = \held$33 [0] ? out__data[63:48] : out__data[31:16];
  assign _33_ = \held$33 [0] ? 16'hffff : 16'h0000;
  assign \stage$32  = \held$33 [1] ? _32_ : _33_;
  assign _34_ = write_node == node;
  assign _35_ = write_enable & _34_;
  assign _36_ = ! write_bank;
  assign _37_ = _35_ & _36_;
  assign _01_ = write_node == node;
  assign _02_ = write_enable & _01_;
  assign _04_ = _02_ & _03_;
  assign _06_ = stage & out__data[111:96];
  assign _07_ = ~ stage;
  assign _08_ = _07_ & out__data[79:64];
  assign _09_ = _06_ | _08_;
  assign _10_ = held[2] ? _09_ : stage;
  assign _12_ = \stage$32  & out__data[127:112];
  assign _13_ = ~ \stage$32 ;
  assign _14_ = _13_ & out__data[95:80];
  assign _15_ = _12_ | _14_;
  assign _16_ = \held$33 [2] ? _15_ : \stage$32 ;
  assign _17_ = read_node == node;
  assign _18_ = ~ _17_;
  assign _19_ = \stage$29  & bank_4[47:32];
  assign _20_ = ~ \stage$29 ;
  assign _21_ = _20_ & bank_4[15:0];
  assign _23_ = _19_ | _21_;
  assign _24_ = \held$43  ? _23_ : \stage$29 ;
  assign _25_ = \stage$36  & bank_4[63:48];
  assign _26_ = ~ \stage$36 ;
  assign _27_ = _26_ & bank_4[31:16];
  assign _28_ = _25_ | _27_;
  assign _29_ = \held$44  ? _28_ : \stage$36 ;
  assign _30_ = \later$42  ? 32'd0 : { _29_, _24_ };
  always @(posedge clk)
    \later$38  <= _37_;
  always @(posedge clk)
    \later$39  <= _04_;
  always @(posedge clk)
    bank_4 <= _31_;
  always @(posedge clk)
    later <= _05_;
  always @(posedge clk)
    \stage$29  <= _10_;
  always @(posedge clk)
    \given$27  <= later[3];
  always @(posedge clk)
    \stage$36  <= _16_;
  always @(posedge clk)
    \given$34  <= later[3];
  always @(posedge clk)
    \later$40  <= _18_;
  always @(posedge clk)
    \later$41  <= \later$40 ;
  always @(posedge clk)
    \later$42  <= \later$41 ;
  always @(posedge clk)
    read_data <= _30_;
  register_0 host_select_0 (
    .clk(clk),
    .given(later[2:0]),
    .register(held),
    .rst(rst)
  );
  register_1 host_select_0_1 (
    .clk(clk),
    .given(\given$27 ),
    .register(\held$43 ),
    .rst(rst)
  );
  register_0 host_select_1 (
    .clk(clk),
    .given(later[2:0]),
    .register(\held$33 ),
    .rst(rst)
  );
  register_1 host_select_1_1 (
    .clk(clk),
    .given(\given$34 ),
    .register(\held$44 ),
    .rst(rst)
  );
  register_2 read_0_here (
    .clk(clk),
    .part_1(read_address),
    .part_0(_00_),
    .register(\held$45 ),
    .rst(rst)
  );
  register_1 store_0_here (
    .clk(clk),
    .given(store_0),
    .register(\held$47 ),
    .rst(rst)
  );
  register_1 write_0_of_1 (
    .clk(clk),
    .given(write_0),
    .register(\held$46 ),
    .rst(rst)
  );
  always @* begin
    if (unused_trigger ) begin end
    (* full_case = 32'd1 *)
    casez (read_bank)
      3'h0:
          _05_ = 4'h2;
      3'h1:
          _05_ = 4'h3;
      3'h2:
          _05_ = 4'h4;
      3'h3:
          _05_ = 4'h5;
      3'h4:
          _05_ = 4'h8;
      3'h5:
          _05_ = 4'h9;
      3'h6:
          _05_ = 4'h9;
      3'h7:
          _05_ = 4'h9;
    endcase
  end
  always @* begin
    if (unused_trigger ) begin end
    _31_ = bank_4;
    if (\later$38 ) begin
      _31_[31:0] = write_data;
    end
    if (\later$39 ) begin
      _31_[63:32] = write_data;
    end
  end
  assign given = store_0;
  assign \given$19  = write_0;
  assign \given$20  = { _00_, read_address };
  assign \given$22  = later[2:0];
  assign \later$28  = \given$27 ;
  assign host_select_0_word_1 = \stage$29 ;
  assign \given$31  = later[2:0];
  assign \later$35  = \given$34 ;
  assign host_select_1_word_1 = \stage$36 ;
  assign inject[63:32] = bank_4[63:32];
  assign inject[31:0] = bank_4[31:0];
  assign _03_ = write_bank;
endmodule

(* keep_hierarchy =  1  *)
module control_stage(read_0, write_0, store_0, write_node, write_data, write_enable, read_node, read_bank, read_address, write_bank, write_address, select, clk, rst, busy_near, read_0_near, write_0_near, store_0_near, write_node_near, write_data_near, write_enable_near
, read_node_near, read_bank_near, read_address_near, write_bank_near, write_address_near, select_near, busy);
  input read_0;
  wire read_0;
  input write_0;
  wire write_0;
  input store_0;
  wire store_0;
  input [1:0] write_node;
  wire [1:0] write_node;
  input [31:0] write_data;
  wire [31:0] write_data;
  input write_enable;
  wire write_enable;
  input [1:0] read_node;
  wire [1:0] read_node;
  input [2:0] read_bank;
  wire [2:0] read_bank;
  input read_address;
  wire read_address;
  input write_bank;
  wire write_bank;
  input write_address;
  wire write_address;
  input select;
  wire select;
  input clk;
  wire clk;
  input rst;
  wire rst;
  output busy_near;
  reg busy_near;
  output read_0_near;
  reg read_0_near;
  output write_0_near;
  reg write_0_near;
  output store_0_near;
  reg store_0_near;
  output [1:0] write_node_near;
  reg [1:0] write_node_near;
  output [31:0] write_data_near;
  reg [31:0] write_data_near;
  output write_enable_near;
  reg write_enable_near;
  output [1:0] read_node_near;
  reg [1:0] read_node_near;
  output [2:0] read_bank_near;
  reg [2:0] read_bank_near;
  output read_address_near;
  reg read_address_near;
  output write_bank_near;
  reg write_bank_near;
  output write_address_near;
  reg write_address_near;
  output select_near;
  reg select_near;
  input busy;
  wire busy;
  always @(posedge clk)
    busy_near <= busy;
  always @(posedge clk)
    read_address_near <= read_address;
  always @(posedge clk)
    write_bank_near <= write_bank;
  always @(posedge clk)
    write_address_near <= write_address;
  always @(posedge clk)
    select_near <= select;
  always @(posedge clk)
    read_0_near <= read_0;
  always @(posedge clk)
    write_0_near <= write_0;
  always @(posedge clk)
    store_0_near <= store_0;
  always @(posedge clk)
    write_node_near <= write_node;
  always @(posedge clk)
    write_data_near <= write_data;
  always @(posedge clk)
    write_enable_near <= write_enable;
  always @(posedge clk)
    read_node_near <= read_node;
  always @(posedge clk)
    read_bank_near <= read_bank;
endmodule

module fabric(clk, rst, start, host_we, host_node, host_addr, host_wdata, host_rdata, busy, done, cycles);
  input clk;
  input rst;
  input start;
  input host_we;
  input [1:0] host_node;
  input [3:0] host_addr;
  input [31:0] host_wdata;
  output [31:0] host_rdata;
  output busy;
  output done;
  output [31:0] cycles;
  wire [1:0] write_node;
  wire [31:0] write_data;
  wire write_enable;
  wire [1:0] read_node;
  wire [2:0] read_bank;
  wire read_address;
  wire write_bank;
  wire write_address;
  wire [31:0] host_rdata;
  wire busy;
  wire done;
  wire [31:0] cycles;
  wire select;
  wire read_0;
  wire write_0;
  wire store_0;
  wire [63:0] inject_0;
  wire [31:0] read_data_0;
  wire [63:0] inject_1;
  wire [31:0] read_data_1;
  wire [63:0] inject_2;
  wire [31:0] read_data_2;
  wire [63:0] inject_3;
  wire [31:0] read_data_3;
  wire [127:0] tx_0;
  wire [127:0] tx_1;
  wire [127:0] tx_2;
  wire [127:0] tx_3;
  wire busy_near_0;
  wire read_0_near_0;
  wire write_0_near_0;
  wire store_0_near_0;
  wire [1:0] write_node_near_0;
  wire [31:0] write_data_near_0;
  wire write_enable_near_0;
  wire [1:0] read_node_near_0;
  wire [2:0] read_bank_near_0;
  wire read_address_near_0;
  wire write_bank_near_0;
  wire write_address_near_0;
  wire select_near_0;
  wire busy_near_1;
  wire read_0_near_1;
  wire write_0_near_1;
  wire store_0_near_1;
  wire [1:0] write_node_near_1;
  wire [31:0] write_data_near_1;
  wire write_enable_near_1;
  wire [1:0] read_node_near_1;
  wire [2:0] read_bank_near_1;
  wire read_address_near_1;
  wire write_bank_near_1;
  wire write_address_near_1;
  wire select_near_1;
  host the_host (
    .clk(clk),
    .rst(rst),
    .host_we(host_we),
    .host_node(host_node),
    .host_addr(host_addr),
    .host_wdata(host_wdata),
    .write_node(write_node),
    .write_data(write_data),
    .write_enable(write_enable),
    .read_node(read_node),
    .read_bank(read_bank),
    .read_address(read_address),
    .write_bank(write_bank),
    .write_address(write_address)
  );
  read_merge_4 read_merge_0_0 (
    .clk(clk),
    .rst(rst),
    .data({read_data_3, read_data_2, read_data_1, read_data_0}),
    .word(host_rdata)
  );
  sequencer the_sequencer (
    .clk(clk),
    .rst(rst),
    .start(start),
    .idle_address(read_address),
    .busy(busy),
    .done(done),
    .cycles(cycles),
    .select(select),
    .read_0(read_0),
    .write_0(write_0),
    .store_0(store_0)
  );
  endpoint_0 endpoint_at_0 (
    .clk(clk),
    .rst(rst),
    .busy(busy_near_0),
    .read_0(read_0_near_0),
    .write_0(write_0_near_0),
    .store_0(store_0_near_0),
    .write_node(write_node_near_0),
    .write_data(write_data_near_0),
    .write_enable(write_enable_near_0),
    .read_node(read_node_near_0),
    .read_bank(read_bank_near_0),
    .read_address(read_address_near_0),
    .write_bank(write_bank_near_0),
    .write_address(write_address_near_0),
    .rx({tx_1[95:64], tx_1[127:96], tx_2[31:0], tx_2[63:32]}),
    .node(2'd0),
    .inject(inject_0),
    .read_data(read_data_0)
  );
  endpoint_0 endpoint_at_1 (
    .clk(clk),
    .rst(rst),
    .busy(busy_near_0),
    .read_0(read_0_near_0),
    .write_0(write_0_near_0),
    .store_0(store_0_near_0),
    .write_node(write_node_near_0),
    .write_data(write_data_near_0),
    .write_enable(write_enable_near_0),
    .read_node(read_node_near_0),
    .read_bank(read_bank_near_0),
    .read_address(read_address_near_0),
    .write_bank(write_bank_near_0),
    .write_address(write_address_near_0),
    .rx({tx_0[95:64], tx_0[127:96], tx_3[31:0], tx_3[63:32]}),
    .node(2'd1),
    .inject(inject_1),
    .read_data(read_data_1)
  );
  endpoint_0 endpoint_at_2 (
    .clk(clk),
    .rst(rst),
    .busy(busy_near_1),
    .read_0(read_0_near_1),
    .write_0(write_0_near_1),
    .store_0(store_0_near_1),
    .write_node(write_node_near_1),
    .write_data(write_data_near_1),
    .write_enable(write_enable_near_1),
    .read_node(read_node_near_1),
    .read_bank(read_bank_near_1),
    .read_address(read_address_near_1),
    .write_bank(write_bank_near_1),
    .write_address(write_address_near_1),
    .rx({tx_3[95:64], tx_3[127:96], tx_0[31:0], tx_0[63:32]}),
    .node(2'd2),
    .inject(inject_2),
    .read_data(read_data_2)
  );
  endpoint_0 endpoint_at_3 (
    .clk(clk),
    .rst(rst),
    .busy(busy_near_1),
    .read_0(read_0_near_1),
    .write_0(write_0_near_1),
    .store_0(store_0_near_1),
    .write_node(write_node_near_1),
    .write_data(write_data_near_1),
    .write_enable(write_enable_near_1),
    .read_node(read_node_near_1),
    .read_bank(read_bank_near_1),
    .read_address(read_address_near_1),
    .write_bank(write_bank_near_1),
    .write_address(write_address_near_1),
    .rx({tx_2[95:64], tx_2[127:96], tx_1[31:0], tx_1[63:32]}),
    .node(2'd3),
    .inject(inject_3),
    .read_data(read_data_3)
  );
  router_0 router_at_0 (
    .clk(clk),
    .rst(rst),
    .enable(busy_near_0),
    .rx({tx_1[95:64], tx_1[127:96], tx_2[31:0], tx_2[63:32]}),
    .inject({inject_0[63:32], inject_0[31:0]}),
    .select(select_near_0),
    .tx(tx_0)
  );
  router_0 router_at_1 (
    .clk(clk),
    .rst(rst),
    .enable(busy_near_0),
    .rx({tx_0[95:64], tx_0[127:96], tx_3[31:0], tx_3[63:32]}),
    .inject({inject_1[31:0], inject_1[63:32]}),
    .select(select_near_0),
    .tx(tx_1)
  );
  router_0 router_at_2 (
    .clk(clk),
    .rst(rst),
    .enable(busy_near_1),
    .rx({tx_3[95:64], tx_3[127:96], tx_0[31:0], tx_0[63:32]}),
    .inject({inject_2[31:0], inject_2[63:32]}),
    .select(select_near_1),
    .tx(tx_2)
  );
  router_0 router_at_3 (
    .clk(clk),
    .rst(rst),
    .enable(busy_near_1),
    .rx({tx_2[95:64], tx_2[127:96], tx_1[31:0], tx_1[63:32]}),
    .inject({inject_3[63:32], inject_3[31:0]}),
    .select(select_near_1),
    .tx(tx_3)
  );
  control_stage control_stage_0 (
    .clk(clk),
    .rst(rst),
    .busy(busy),
    .read_0(read_0),
    .write_0(write_0),
    .store_0(store_0),
    .write_node(write_node),
    .write_data(write_data),
    .write_enable(write_enable),
    .read_node(read_node),
    .read_bank(read_bank),
    .read_address(read_address),
    .write_bank(write_bank),
    .write_address(write_address),
    .select(select),
    .busy_near(busy_near_0),
    .read_0_near(read_0_near_0),
    .write_0_near(write_0_near_0),
    .store_0_near(store_0_near_0),
    .write_node_near(write_node_near_0),
    .write_data_near(write_data_near_0),
    .write_enable_near(write_enable_near_0),
    .read_node_near(read_node_near_0),
    .read_bank_near(read_bank_near_0),
    .read_address_near(read_address_near_0),
    .write_bank_near(write_bank_near_0),
    .write_address_near(write_address_near_0),
    .select_near(select_near_0)
  );
  control_stage control_stage_1 (
    .clk(clk),
    .rst(rst),
    .busy(busy),
    .read_0(read_0),
    .write_0(write_0),
    .store_0(store_0),
    .write_node(write_node),
    .write_data(write_data),
    .write_enable(write_enable),
    .read_node(read_node),
    .read_bank(read_bank),
    .read_address(read_address),
    .write_bank(write_bank),
    .write_address(write_address),
    .select(select),
    .busy_near(busy_near_1),
    .read_0_near(read_0_near_1),
    .write_0_near(write_0_near_1),
    .store_0_near(store_0_near_1),
    .write_node_near(write_node_near_1),
    .write_data_near(write_data_near_1),
    .write_enable_near(write_enable_near_1),
    .read_node_near(read_node_near_1),
    .read_bank_near(read_bank_near_1),
    .read_address_near(read_address_near_1),
    .write_bank_near(write_bank_near_1),
    .write_address_near(write_address_near_1),
    .select_near(select_near_1)
  );
endmodule
