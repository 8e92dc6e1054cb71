"""Claims about the bridges, proved by a solver: each request is executed and answered once.

The *master* makes requests on the bus; the bridge passes each to `Registers` as an *access*. The
solver chooses all inputs of the bridge: those from the master, and those from `Registers`. The
proof assumes that `access_done` is high only during an access, and that an AXI master holds a
request until it is accepted, as the protocol demands. A *harness* is Verilog around the bridge,
with these assumptions and the claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...proof.model import HarnessBuilder, is_stable
from .options import Bus

if TYPE_CHECKING:
    from ...proof.solver import Harness
    from ...verilog.design import Design

__all__ = ["bridge_harness"]


def bridge_harness(design: Design, bus: Bus) -> Harness:
    """Return the proof harness of the bridge between bus and registers.

    A harness is Verilog around the module, with claims that a solver proves.

    Parameters
    ----------
    design : Design
        The emitted Verilog, which contains the module ``bus_bridge``.
    bus : Bus
        The bus, which decides the claims.
    """
    model = HarnessBuilder(design, "bus_bridge")
    model.assume("!access_done || access")
    if bus is Bus.WISHBONE:
        _claim_wishbone(model)
    else:
        _claim_axi_lite(model)
    says = "every request is executed and answered once, and its answer stays until it is taken"
    return model.make_harness(says, cycles=3)


def _claim_wishbone(model: HarnessBuilder) -> None:
    """Add the claims about a Wishbone bridge to the proof harness `model`.

    The bridge passes requests of the bus to `Registers`, the module that executes them. The claims
    say that each request, and each answer, is passed on unchanged.

    The bridge is combinational, so each claim compares signals of the same cycle.
    """
    model.claim_all({
        "asks_for_what_is_on_the_bus":
            "access == (wb_cyc && wb_stb) && access_write == wb_we && access_address == wb_adr && "
            "access_strobes == wb_sel && access_data == wb_dat_w",
        "answers_every_access_once": "(wb_ack || wb_err) == access_done",
        "answers_in_one_way": "!(wb_ack && wb_err) && (!wb_err || access_error)",
        "answers_nothing_else": "!(wb_ack || wb_err) || (wb_cyc && wb_stb)",
        "gives_the_word": "wb_dat_r == access_word",
    })  # fmt: skip


def _claim_axi_lite(model: HarnessBuilder) -> None:
    """Add the claims about an AXI4-Lite bridge to the proof harness `model`.

    They say that requests are executed one at a time, and that each is answered once. They hold for
    any order in which address and data of a write arrive, and for any delay of the master.
    """
    model.add_wire("takes_write", "s_axil_awvalid && s_axil_awready")
    model.add_wire("takes_read", "s_axil_arvalid && s_axil_arready")
    # Assumption about the master, which the protocol demands: it holds a request until `ready`.
    for channel, payload in (
        ("aw", "s_axil_awaddr"), ("w", "{s_axil_wstrb, s_axil_wdata}"), ("ar", "s_axil_araddr"),
    ):  # fmt: skip
        waits = f"$past(s_axil_{channel}valid && !s_axil_{channel}ready)"
        model.assume(f"!steady || !{waits} || "
                     f"(s_axil_{channel}valid && {payload} == $past({payload}))")  # fmt: skip
    model.add_register("unanswered_write", "takes_write || (unanswered_write && !s_axil_bready)")
    model.add_register("unanswered_read", "takes_read || (unanswered_read && !s_axil_rready)")
    model.claim_all({
        "takes_address_and_data_of_a_write_together":
            "s_axil_awready == s_axil_wready && (!s_axil_awready || (s_axil_awvalid && "
            "s_axil_wvalid))",
        "takes_a_request_when_it_is_carried_out":
            "access_done == (takes_write || takes_read) && !(takes_write && takes_read)",
        "asks_for_what_was_requested":
            "!access || (access_write ? s_axil_awvalid && s_axil_wvalid && access_address == "
            "s_axil_awaddr >> 2 && access_data == s_axil_wdata && access_strobes == s_axil_wstrb "
            ": s_axil_arvalid && access_address == s_axil_araddr >> 2)",
        "takes_what_it_asked_for":
            "(!takes_write || access_write) && (!takes_read || !access_write)",
        "asks_until_it_is_done":
            "!steady || !$past(access && !access_done) || (access && "
            "{access_write, access_address} == $past({access_write, access_address}))",
        "answers_every_write_once": "s_axil_bvalid == unanswered_write",
        "answers_every_read_once": "s_axil_rvalid == unanswered_read",
        "asks_for_no_more_than_it_can_answer":
            "!access || !(access_write ? unanswered_write : unanswered_read)",
        "keeps_the_answer_to_a_write": is_stable("s_axil_bresp", "s_axil_bvalid && !s_axil_bready"),
        "keeps_the_answer_to_a_read":
            is_stable("{s_axil_rresp, s_axil_rdata}", "s_axil_rvalid && !s_axil_rready"),
        "answers_a_read_with_its_word":
            "!steady || !$past(takes_read) || (s_axil_rdata == $past(access_word) && "
            "s_axil_rresp == {$past(access_error), 1'b0})",
        "answers_a_write_with_its_outcome":
            "!steady || !$past(takes_write) || s_axil_bresp == {$past(access_error), 1'b0}",
    })  # fmt: skip
