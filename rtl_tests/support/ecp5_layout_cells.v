// What the cells of an ECP5 netlist after place and route do, as far as our bitstreams use them.
// Inputs that are not connected read as the device reads them: a pull-up, or off.
module TRELLIS_COMB #(parameter MODE = "LOGIC", CCU2_INJECT1 = "NO", WREMUX = "WRE", WCKMUX = "WCK",
                      parameter [15:0] INITVAL = 0)
  (input tri1 A, B, C, D, M, input FCI, WD, WAD0, WAD1, WAD2, WAD3, WCK, WRE,
   input DI0, DI1, F1, FXA, FXB, output F, FCO, OFX);
  reg [15:0] table_ = INITVAL;
  wire carry = MODE == "CCU2" && CCU2_INJECT1 == "NO";
  // A memory counts its address bits in another order than a table.
  wire four = table_[MODE == "DPRAM" ? {A, C, B, D} : {D, C, B, A}], two = carry & table_[{2'b00, B, A}];
  assign F = four ^ (carry & FCI), FCO = four ? FCI : two;
  if (MODE == "DPRAM")
    always @(posedge (WCKMUX == "INV" ? ~WCK : WCK))
      if (WREMUX == "INV" ? ~WRE : WRE) table_[{WAD3, WAD2, WAD1, WAD0}] <= WD;
endmodule

module TRELLIS_RAMW (input A0, B0, C0, D0, A1, B1, C1, D1,
                     output WADO0, WADO1, WADO2, WADO3, WDO0, WDO1, WDO2, WDO3);
  assign {WADO3, WADO2, WADO1, WADO0, WDO3, WDO2, WDO1, WDO0} = {A0, C0, B0, D0, B1, D1, A1, C1};
endmodule

module TRELLIS_FF #(parameter SD = "0", REGSET = "RESET", SRMODE = "LSR_OVER_CE", GSR = "DISABLED",
                    CLKMUX = "CLK", CEMUX = "1", LSRMUX = "LSR", LSRMODE = "LSR")
  (input DI, CLK, input tri0 M, LSR, input tri1 CE, output reg Q = REGSET == "SET");
  wire enable = CEMUX == "1" ? 1 : CEMUX == "INV" ? ~CE : CE, set = LSRMUX == "INV" ? ~LSR : LSR;
  wire clock = CLKMUX == "INV" ? ~CLK : CLK, now = SRMODE == "ASYNC" & set;
  always @(posedge clock or posedge now)
    if (set) Q <= REGSET == "SET";
    else if (enable) Q <= SD == "1" ? DI : M;
endmodule

module TRELLIS_IO #(parameter DIR = "INPUT") (inout B, input I, T, output O);
  if (DIR == "OUTPUT") assign B = T ? 1'bz : I;
  assign O = B;
endmodule

module DCCA (input CLKI, CE, output CLKO);
  assign CLKO = CLKI;
endmodule

module GSR #(parameter SYNCMODE = "", MODE = "") (input GSR, CLK);
endmodule
