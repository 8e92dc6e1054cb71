"""Handshakes of streams are proved by induction, and faults that are planted in them refuted."""

import pytest
from planted import Fault, fabric_of, planted, text_of

from torusfabric.proof.solver import solve
from torusfabric.proof.streams import stream_harnesses
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def harness_of(name, design, module):
    """What is claimed of a module of a fabric."""
    found = {harness.name: harness for harness in stream_harnesses(fabric_of(name), design)}
    return found[module]


def failure(fault):
    """The claim that a fault breaks."""
    harness = harness_of(fault.fabric, planted(fault), fault.module)
    return solve(harness, Cache()).failed


ALL, ROOT = "streams", "streams of any root"
FOUR, ENGINE = "streams of four sections", "engine of four sections"
BARRIER, CLOCKS = "engine with a barrier", "streams with clocks"
BEATS = "streams of beats"

QUICK = {
    "a word handed over is forgotten while the receiver waits": Fault(
        ALL, "unloader", r"if \(clear\) shown_valid", "if (clear | ~tready) shown_valid"
    ),
    "a word that is accepted is not written": Fault(
        ALL, "loader", r"write_enable <= (.*);", "write_enable <= 1'd0;"
    ),
    "a word that is not accepted is written": Fault(
        ALL, "loader", r"beat = tvalid & may_load", "beat = tvalid"
    ),
}

LONG = {
    "a command of too many words is carried out": Fault(
        BARRIER, "commands", r"number == 3'd5\) \?", "number >= 3'd5) ?"
    ),
    "a command of too few words is carried out": Fault(
        BARRIER, "commands", r"number == 3'd5\) \?", "number >= 3'd4) ?"
    ),
    "words behind a command are not counted": Fault(
        BARRIER, "commands", r"number <= 3'd5\}", "number < 3'd5}"
    ),
    "a beat that lacks half of a flit is taken": Fault(
        BEATS, "loader", r"\(\|tkeep\[3:2\]\) & \(~\(&tkeep\[3:2\]\)\)", "1'd0"
    ),
    "a beat within a packet lacks a flit": Fault(
        BEATS, "loader", r"~tlast & \(~\(&tkeep\[3:2\]\)\)", "1'd0"
    ),
    "flits of a packet are counted by beats": Fault(
        BEATS, "loader", r"last_flit = &tkeep\[3:2\]", "last_flit = 1'd0"
    ),
    "flits behind a packet are shown as they are": Fault(
        BEATS, "unloader", r"read_full = (.*);", "read_full = 1'd1;"
    ),
    "all flits of the last beat are said to be full": Fault(
        BEATS, "unloader", r"tkeep = \{shown\[4\], shown\[4:3\]", "tkeep = {2'd3, shown[3]"
    ),
    "a counter crosses as it is": Fault(
        CLOCKS, "s_axis_crossing", r"written_next \^ \(written_next >> 1'd1\)", "written_next"
    ),
    "a word that is not there is fetched": Fault(
        CLOCKS, "m_axis_crossing", r"fetched_gray <= (.*);", r"fetched_gray <= fetched;"
    ),
    "tlast comes a word late": Fault(
        ALL, "unloader", r"ends_packet <= (next_.*);", r"ends_packet <= (\1) ^ there;"
    ),
    "words of the pipeline move while the receiver waits": Fault(
        ALL, "unloader", r"= (\S+) \| tready;", r"= \1 | 1'b1;"
    ),
    "the last origin is left out": Fault(
        FOUR, "unloader", r"packet == 3'd4", "packet == 3'd3"
    ),
    "a node has room for a third run": Fault(
        ALL, "unloader", r"free = ~claimed\[1\];", "free = ~&claimed;"
    ),
    "room is given back while the last word waits": Fault(
        ROOT, "unloader", r"= \(.* & last_asked\)", "= last_asked"
    ),
    "a run is unloaded before it has ended": Fault(
        ALL, "unloader", r" \| run_ends\)", " | run_begins)"
    ),
    "a third message is accepted": Fault(
        ALL, "loader", r"may_load = ~occupied\[1\]", "may_load = 1'd1"
    ),
    "a destination is compared with <= for <": Fault(
        ALL, "loader", r"tdest >= 3'd6", "tdest > 3'd6"
    ),
    "a destination may come twice": Fault(ALL, "loader", r"sent >> tdest", "sent >> ~tdest"),
    "the half is swapped a word early": Fault(
        ALL, "loader", r"write_section <= (\S+);", r"write_section <= \1 + beat;"
    ),
    "a message is forgotten when a run begins": Fault(
        ALL, "loader", r"first\[1:0\] <= [^;]*;", r"\g<0> if (run_begins) first <= 0;"
    ),
    "a packet that is too long passes": Fault(ALL, "loader", r"full <= ~tlast.*;", "full <= 1'd0;"),
    "a run begins while another is under way": Fault(
        ALL, "stream_control", r"\(idle \| ending\)", "1'b1"
    ),
    "a run begins a cycle too early": Fault(
        ALL, "stream_control", r"left_to_wait <= 2'd3", "left_to_wait <= 2'd2"
    ),
    "a bad message is run": Fault(
        ALL, "stream_control", r"fine = good;", "fine = good | bad[1];"
    ),
    "an error is that of the other kind": Fault(
        ALL, "stream_control", r"4'd7 : 4'd6", "4'd6 : 4'd7"
    ),
    "a node is not asked": Fault(ALL, "readiness_4_of_nodes", r"&ready", "&ready[6:0]"),
    "a command overtakes": Fault(
        ROOT, "commands", r"odd <= (odd .*);", r"odd <= \1 ^ (there & tvalid);"
    ),
    "a status is shown twice": Fault(
        ROOT, "commands", r"out <= (out .*);", r"out <= (\1) & ~run_over;"
    ),
    "a status does not wait": Fault(
        ROOT, "commands", r"(status_tvalid) & status_tready", r"\1"
    ),
    "a root is compared with <= for <": Fault(
        ROOT, "commands", r"command_root >= ", "command_root > "
    ),
    "a node has room for a fourth run": Fault(
        FOUR, "unloader", r"free = .*;", "free = 1'd1;"
    ),
    "a third message waits": Fault(FOUR, "loader", r"may_load = .*;", "may_load = 1'd1;"),
    "what is loaded wraps at two sections": Fault(
        FOUR, "loader", r"write_section <= (\w+);", r"write_section <= {2'd0, \1[0]};"
    ),
    "what is unloaded wraps at two sections": Fault(
        FOUR, "unloader", r"read_section <= place\[2:0\];", "read_section <= {2'd0, place[0]};"
    ),
    "what is empty is known of two sections": Fault(
        FOUR, "stream_control", r"section \+ 2'd1", "{1'd0, ~section[0]}"
    ),
    "modes are known of two sections": Fault(
        ENGINE, "commands", r"next_section \+ 2'd1", "{1'd0, ~next_section[0]}"
    ),
    "a command stays when its run begins": Fault(
        ENGINE, "commands", r"load_valid(\[next.*\]) <= 1'd0;", "load_valid <= load_valid;"
    ),
    "what a run brings is told by the mode of another": Fault(
        BARRIER, "unloader", r"receives >> unload_mode\[1:0\]", "receives >> unload_mode[3:2]"
    ),
    "a message is loaded before its command": Fault(
        BARRIER, "loader", r"= tvalid & may_load", "= tvalid"
    ),
    "a mode is compared with <= for <": Fault(
        BARRIER, "commands", r"command_mode >= ", "command_mode > "
    ),
}  # fmt: skip


def test_every_fault_can_be_planted():
    """A text that has changed leaves none out unnoticed."""
    for fault in (QUICK | LONG).values():
        planted(fault)


@pytest.mark.parametrize("what", QUICK)
def test_a_fault_in_a_handshake_is_refuted(what):
    found = failure(QUICK[what])
    assert found is not None
    assert found.reached
    assert found.wave


@pytest.mark.parametrize("module", ["loader", "unloader"])
def test_both_ends_of_three_modes_are_proved(module):
    """Nothing is said of a fourth, which the bits of a mode could name."""
    assert solve(harness_of(BARRIER, text_of(BARRIER), module), Cache()).failed is None


@pytest.mark.long
@pytest.mark.parametrize("what", LONG)
def test_every_fault_in_a_handshake_is_refuted(what):
    found = failure(LONG[what])
    assert found is not None
    assert found.reached
    assert found.name
    assert found.wave


@pytest.mark.long
@pytest.mark.parametrize("name", [ALL, ROOT, FOUR, ENGINE, BARRIER])
def test_without_a_fault_all_handshakes_are_proved(name):
    for harness in stream_harnesses(fabric_of(name), text_of(name)):
        assert solve(harness, Cache()).failed is None
