// Cells at the pins of an ECP5 as links on pairs use them: four bits a cycle of half an edge clock.

`timescale 1ns/1fs

module EHXPLLL #(
  parameter CLKI_DIV = 1, CLKFB_DIV = 12, CLKOP_DIV = 2, CLKOS_DIV = 2, CLKOP_CPHASE = 1,
  CLKOS_CPHASE = 1, CLKOP_FPHASE = 0, CLKOS_FPHASE = 4, FEEDBK_PATH = 0, CLKOP_ENABLE = 0,
  CLKOS_ENABLE = 0, PLLRST_ENA = 0, STDBY_ENABLE = 0
) (input CLKI, CLKFB, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG,
   PLLWAKESYNC, ENCLKOP, ENCLKOS, output reg CLKOP, CLKOS);
  initial begin CLKOP = 0; CLKOS = 0; end
  real last = 0, period = 0;
  always @(posedge CLKI) begin
    period = ($realtime - last) / CLKFB_DIV;
    last = $realtime;
    if (period < 10) begin
      repeat (CLKFB_DIV - 1) begin CLKOP = 1; #(period / 2) CLKOP = 0; #(period / 2); end
      CLKOP = 1; #(period / 2) CLKOP = 0;
    end
  end
  always @(CLKOP) CLKOS <= #(period / 4) CLKOP;
endmodule

module ECLKSYNCB (input ECLKI, STOP, output ECLKO);
  assign ECLKO = ECLKI;
endmodule

module CLKDIVF #(parameter DIV = 0) (input CLKI, RST, ALIGNWD, output reg CDIVX);
  initial CDIVX = 0;
  always @(posedge CLKI) CDIVX <= ~CDIVX;
endmodule

module ODDRX2F (input SCLK, ECLK, RST, D0, D1, D2, D3, output Q);
  reg [3:0] held = 0;
  always @(posedge SCLK) held <= {D3, D2, D1, D0};
  assign #0.1 Q = SCLK ? (ECLK ? held[0] : held[1]) : (ECLK ? held[2] : held[3]);
endmodule

module IDDRX2F (input SCLK, ECLK, RST, D, ALIGNWD, output reg Q0, Q1, Q2, Q3);
  initial {Q3, Q2, Q1, Q0} = 0;
  reg [3:0] came = 0;
  always @(ECLK) came = {D, came[3:1]};
  always @(posedge SCLK) {Q3, Q2, Q1, Q0} <= came;
endmodule

module DELAYG #(parameter DEL_MODE = 0) (input A, output Z);
  assign Z = A;
endmodule
