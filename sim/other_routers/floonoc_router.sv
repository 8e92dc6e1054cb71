// One router of FlooNoC for silicon_costs.py: five ports, XY routing, one channel, 8x8 mesh.
// A flit has the whole header of FlooNoC, 23 bits, beside the payload.

`include "floo_noc/typedef.svh"

module floonoc_router #(
  parameter int unsigned PayloadWidth = 32,
  parameter int unsigned InFifoDepth = 2,
  parameter int unsigned OutFifoDepth = 2,
  parameter bit Reset = 1'b1,  // 0: reset is never active, so that registers need none
  localparam int unsigned FlitWidth = PayloadWidth + 23
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic [6:0] xy_id_i,
  input  logic [4:0] valid_i,
  output logic [4:0] ready_o,
  input  logic [4:0][FlitWidth-1:0] data_i,
  output logic [4:0] valid_o,
  input  logic [4:0] ready_i,
  output logic [4:0][FlitWidth-1:0] data_o
);
  typedef logic [2:0] coordinate_t;
  typedef logic [PayloadWidth-1:0] payload_t;
  `FLOO_TYPEDEF_XY_NODE_ID_T(id_t, coordinate_t, coordinate_t, logic)
  `FLOO_TYPEDEF_HDR_T(hdr_t, id_t, id_t, floo_pkg::axi_ch_e, logic)
  `FLOO_TYPEDEF_GENERIC_FLIT_T(any, hdr_t, payload_t)
  if ($bits(floo_any_generic_flit_t) != FlitWidth) $fatal(1, "header must have 23 bits");

  floo_router #(
    .NumRoutes(5),
    .NumVirtChannels(1),
    .InFifoDepth(InFifoDepth),
    .OutFifoDepth(OutFifoDepth),
    .RouteAlgo(floo_pkg::XYRouting),
    .id_t(id_t),
    .hdr_t(hdr_t),
    .flit_t(floo_any_generic_flit_t)
  ) router (
    .clk_i,
    .rst_ni(rst_ni | !Reset),
    .test_enable_i(1'b0),
    .xy_id_i,
    .id_route_map_i('0),
    .valid_i,
    .ready_o,
    .data_i,
    .credit_o(),
    .valid_o,
    .ready_i,
    .data_o,
    .credit_i('0),
    .offload_req_o(),
    .offload_rsp_i('0)
  );
endmodule
