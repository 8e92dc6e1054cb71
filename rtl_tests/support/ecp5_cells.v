// Cells of ECP5 as their documentation describes them; for simulation.
module LUT4 #(parameter [15:0] INIT = 0) (input A, B, C, D, output Z);
  wire [7:0] d = D ? INIT[15:8] : INIT[7:0];
  wire [3:0] c = C ? d[7:4] : d[3:0];
  wire [1:0] b = B ? c[3:2] : c[1:0];
  assign Z = A ? b[1] : b[0];
endmodule

module PFUMX (input ALUT, BLUT, C0, output Z);
  assign Z = C0 ? ALUT : BLUT;
endmodule

module L6MUX21 (input D0, D1, SD, output Z);
  assign Z = SD ? D1 : D0;
endmodule

module CCU2C #(
  parameter [15:0] INIT0 = 0, INIT1 = 0, parameter INJECT1_0 = "YES", INJECT1_1 = "YES"
) (input CIN, A0, B0, C0, D0, A1, B1, C1, D1, output S0, S1, COUT);
  wire p0, p1, g0, g1;
  LUT4 #(.INIT(INIT0)) pass_0 (.A(A0), .B(B0), .C(C0), .D(D0), .Z(p0));
  LUT4 #(.INIT(INIT1)) pass_1 (.A(A1), .B(B1), .C(C1), .D(D1), .Z(p1));
  LUT4 #(.INIT(INIT0)) generate_0 (.A(A0), .B(B0), .C(1'b0), .D(1'b0), .Z(g0));
  LUT4 #(.INIT(INIT1)) generate_1 (.A(A1), .B(B1), .C(1'b0), .D(1'b0), .Z(g1));
  wire in_0 = INJECT1_0 == "YES" ? 1'b0 : CIN;
  wire out_0 = p0 ? CIN : INJECT1_0 == "YES" ? 1'b0 : g0;
  wire in_1 = INJECT1_1 == "YES" ? 1'b0 : out_0;
  assign S0 = p0 ^ in_0;
  assign S1 = p1 ^ in_1;
  assign COUT = p1 ? out_0 : INJECT1_1 == "YES" ? 1'b0 : g1;
endmodule
