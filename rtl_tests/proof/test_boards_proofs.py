"""What is proved of fabrics on several boards, and faults in what only they have.

All of them: ``python -m pytest rtl_tests/proof/test_boards_proofs.py -m "long or not long"``.
"""

import json
import re
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.proof.boards import prove_boards
from torusfabric.proof.boards.prove import between_boards
from torusfabric.proof.solver import solve
from torusfabric.rtl.boards import BoardSystem
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.topology.boards import Boards
from torusfabric.verilog.boards import emit_boards

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def system_of(sides, boards, latency, *collectives, width=8, ppm=100, **options):
    torus = tf.Torus(*sides, link_latency=latency)
    plans = [tf.plan(torus, name) for name in collectives]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **options)
    return BoardSystem(tf.Fabric(program, width=width), Boards.parse(boards, torus), ppm=ppm)


@cache
def pair():
    """Two boards of one node each, with a choice of the length."""
    system = system_of((2,), "2", 8, "allgather", max_flits=2)
    return system, emit_boards(system)


class Fault(NamedTuple):
    """A part of the text of a module, what takes its place, and what is refuted by it."""

    module: str
    old: str
    new: str
    proof: str


BUFFER, SUMS = "elastic buffer of 8 cycles", "sums of receiver_8"
BARRIER, AGREEMENT = "barrier", "agreement"

#: Faults that a solver refutes.
FAULTS = (
    Fault("receiver_8", r"fill >= 5'd3", "fill >= 5'd4", BUFFER),
    Fault("board_control", r"arrived\[0\] <= said\[2\]", "arrived[0] <= 1'd1", BARRIER),
    Fault("board_control", r"told\[7:6\] : 2'd0", "settled : 2'd0", AGREEMENT),
    # What is taken, and when.
    Fault("receiver_8", r"came - 5'd1", "came - 5'd2", BUFFER),
    Fault("receiver_8", r"\{4'd0, take\}", "5'd1", BUFFER),
    Fault("receiver_8", r"fill > 5'd12", "fill > 5'd3", BUFFER),
    Fault("receiver_8", r"head\[9:8\] == 2'd2", "head[9:8] != 2'd0", BUFFER),
    Fault("receiver_8", r"fresh <= take", "fresh <= 1'd1", SUMS),
    Fault("buffer_8", r"following = written \+ 5'd1", "following = written + 5'd2", "buffer_8"),
    Fault("buffer_8", r"following >> 1'd1", "following >> 2'd2", "buffer_8"),
    Fault("buffer_8", r"written\[3:0\]", "following[3:0]", "buffer_8"),
    # Messages and sums.
    Fault("transmitter", r"checking \? crc\[7:0\] : word", "crc[7:0]", "transmitter"),
    Fault("transmitter", r"told >> 4'd8", "told >> 4'd7", "transmitter"),
    Fault("receiver_8", r"was_wrong <= wrong", "was_wrong <= was_wrong", SUMS),
    Fault("receiver_8", r"lost <= frozen &\s+\(lost", "lost <= frozen & (1'd0", SUMS),
    # The barrier.
    Fault("board_control", r"if \(~waiting\) count <= 12'd0;\s+else ", "", BARRIER),
    Fault("board_control", r"arrived \| ~below", "arrived | 2'd1", BARRIER),
    Fault("board_control", r"told\[19:8\] - 12'd12", "told[19:8] - 12'd11", BARRIER),
    Fault("board_control", r"count <= 12'h2a", "count <= 12'h29", BARRIER),
    Fault("board_control", r"said\[3\] \| ", "", BARRIER),
    Fault("board_control", r"refused <= told\[3\]", "refused <= 1'd0", BARRIER),
    Fault("board_control", r"frozen = \(count != 12'd0\) \|", "frozen =", BARRIER),
    Fault("board_control", r"above = board \? 2'd2", "above = board ? 2'd1", BARRIER),
    Fault("board_control", r"~waiting \| \(recent != [^)]+\)", "~waiting", BARRIER),
    Fault("board_control", r"dropped = goes \?\s+refused", "dropped = goes ? 1'd0", BARRIER),
    # Boards that are reset, withdrawn or late.
    Fault("board_control", r" \| \(told\[24:23\] != run_length\)", "", BARRIER),
    Fault("board_control", r"12'h15\) & \(~\(\|broken\)\)", "12'h15)", BARRIER),
    Fault("board_control", r"told\[19:8\] > 12'h15", "told[19:8] > 12'd12", BARRIER),
    Fault("board_control", r"~below\)\) & ~unfit", "~below))", BARRIER),
    Fault("board_control", r"waiting \? count : 12'd0", "count", BARRIER),
    Fault("board_control", r"timer == 29'hfffffff", "timer == 29'h1fffffff", BARRIER),
    Fault("board_control", r"timer >= 29'h42", "timer >= 29'h41", BARRIER),
    Fault("board_control", r"fault <= 4'd11", "fault <= 4'd9", BARRIER),
    Fault("board_control", r"gone = heard & waits & ~", "gone = heard & ~", BARRIER),
    Fault("board_control", r" \| \(\|gone\)\);", ");", BARRIER),
    Fault("board_control", r"told_to_halt;", "1'd1;", BARRIER),
    Fault("board_control", r"\(\(told\[7:6\] != 2'd1\) \| \(settled == 2'd1\)\)", "1'd1",
          AGREEMENT),
    # The agreement.
    Fault("board_control", r"settled_below \| ~below", "settled_below | 2'd3", AGREEMENT),
    Fault("board_control", r"verdict != 2'd1", "verdict == 2'd2", AGREEMENT),
    Fault("board_control", r"verdict == 2'd2\) & ", "verdict != 2'd1) & ", AGREEMENT),
    Fault("board_control", r"lost_in_run <= lost", "lost_in_run <= lost_in_run", AGREEMENT),
    Fault("board_control", r"if \(~known\) verdict <= 2'd0;\s+else ", "", AGREEMENT),
    Fault("board_control", r"after == 7'h4d", "after == 7'h4c", AGREEMENT),
    Fault("board_control", r"due_8 <= due_8_early_5", "due_8 <= due_8_early_4", AGREEMENT),
)  # fmt: skip

#: Faults that are found without one.
COMPARED = (
    Fault("transmitter", r"40'hc3000000c3", "40'hc3000000c2", "crc"),
    Fault("board_0", r"\.peer\(peers\[1:0\]\)", ".peer(peers[3:2])", "peer"),
    Fault("receiver_8", r"40'h8200000082", "40'h0200000082", "crc"),
    Fault("receiver_8", r"32'hffffffff", "32'hfffffffd", "crc"),
    Fault("board_0", r"\.sent\(tx_0\[7:0\]\)", ".sent(tx_0[15:8])", "rx"),
    Fault("board_0", r"\.due\(due_8\)", ".due(check_due_8)", "due"),
    Fault("board_0", r"said\(\{said_1, said_0\}\)", "said({said_0, said_1})", "said"),
    Fault("board_0", r"\.rx_word\(link_0", ".rx_word(link_1", "rx_word"),
    Fault("board_0", r"rx\(\{received_1, received_0\}\)", "rx({received_0, received_1})", "rx"),
    Fault("endpoint_0", r"read_data <= (.*);", r"read_data <= (\1) | 8'd4;", "read_data"),
)


def planted(fault):
    """The text with a fault."""
    _, design = pair()
    text = design.modules[fault.module]
    changed = re.sub(fault.old, fault.new, text, count=1)
    assert changed != text, f"{fault.old} must occur in {fault.module}"
    return replace(design, modules=design.modules | {fault.module: changed})


def is_refuted(fault):
    """Whether the proof that a fault belongs to does not hold."""
    system, _ = pair()
    (harness,) = (
        each for each in between_boards(system.plan, planted(fault)) if each.name == fault.proof
    )
    return solve(replace(harness, depth=0)).failed is not None


def names(faults):
    return [f"{fault.module} {fault.old}" for fault in faults]


def test_every_fault_can_be_planted():
    for fault in FAULTS + COMPARED:
        planted(fault)


@pytest.mark.parametrize("fault", FAULTS[:2], ids=names(FAULTS[:2]))
def test_a_fault_of_links_or_their_control_is_refuted(fault):
    assert is_refuted(fault)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS[2:], ids=names(FAULTS[2:]))
def test_every_fault_of_links_or_their_control_is_refuted(fault):
    assert is_refuted(fault)


@pytest.mark.parametrize("number", few(3, [*range(len(COMPARED))]), ids=names(COMPARED))
def test_a_fault_of_sums_or_wires_is_refuted(number):
    (system, _), fault = pair(), COMPARED[number]
    wrong = prove_boards(system, design=planted(fault), cache=Cache()).counterexample
    assert wrong is not None
    assert fault.proof in wrong.signal


def test_two_boards_are_proved(capsys):
    words = ["2", "allgather", "--boards", "2", "--max-flits", "2", "--width", "8", "--json"]
    assert main(["prove", *words]) == 0
    proof = json.loads(capsys.readouterr().out)
    assert proof["proved"]
    found = {module["name"] for module in proof["modules"]}
    assert found >= {"wiring", "link ports", "CRC-32", "whole runs", BUFFER, BARRIER, AGREEMENT}
    assert any("100 ppm" in text for text in proof["assumptions"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("sides", "boards", "latency", "collectives", "options"),
    [
        ((4, 4), "2x1", "0:8", ["allgather"], {}),
        ((4, 4), "2x2", 11, ["allgather", "allreduce"], {"max_flits": 3}),
        ((4, 2), "4x1", "0:12", ["scatter"], {"flits": 2}),
        ((6,), "6", 14, ["alltoall"], {"width": 33}),
    ],
)
def test_boards_of_every_form_are_proved(sides, boards, latency, collectives, options):
    system = system_of(sides, boards, latency, *collectives, **options)
    assert prove_boards(system, cache=Cache()).counterexample is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("boards", "latency", "ppm"), [("8", 14, 100), ("4", 60, 1000), ("6", 11, 0)]
)
def test_buffers_of_far_boards_are_proved(boards, latency, ppm):
    system = system_of((int(boards),), boards, latency, "allgather", ppm=ppm)
    for harness in between_boards(system.plan, emit_boards(system)):
        assert solve(harness, Cache()).failed is None


@pytest.mark.long
def test_a_clock_that_is_further_off_is_refuted():
    system, design = pair()
    plan = replace(system.plan, ppm=1000, longest=2000)
    assert plan.least_latency > 8
    (harness,) = (each for each in between_boards(plan, design) if each.name == BUFFER)
    assert solve(replace(harness, depth=0)).failed is not None
