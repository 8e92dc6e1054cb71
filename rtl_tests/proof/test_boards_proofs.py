"""Proofs of fabrics on several boards, and planted faults in the hardware that only these fabrics
have.

The long tests, too: ``python -m pytest rtl_tests/proof/test_boards_proofs.py -m "long or not
long"``.
"""

import json
from dataclasses import replace
from functools import cache

import pytest
from board_systems import board_system

from torusfabric.adapters.boards.claims import prove_boards
from torusfabric.adapters.boards.claims.crcs import check_received_crc
from torusfabric.adapters.boards.claims.prove import board_link_harnesses
from torusfabric.adapters.boards.files import emit_boards
from torusfabric.cli import main
from torusfabric.proof.gates import GateModule
from torusfabric.proof.report import Refuted
from torusfabric.proof.solver import prove_harness
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


@cache
def pair():
    """Return a system of two one-node boards for messages of up to two flits, and its design."""
    system = board_system((2,), "2", 8, max_flits=2)
    return system, emit_boards(system)


BUFFER = "elastic buffer of 8 cycles"
BARRIER, AGREEMENT = "barrier", "agreement"


@pytest.mark.parametrize("torus", ["2", "4"])
def test_two_boards_are_proved(capsys, torus):
    """A fabric on two boards is proved, with one node or with several nodes on a board."""
    words = [torus, "allgather", "--boards", "2", "--max-flits", "2", "--width", "8", "--json"]
    assert main(["prove", *words]) == 0
    proof = json.loads(capsys.readouterr().out)
    assert proof["proved"]
    found = {module["name"] for module in proof["modules"]}
    assert found >= {"wiring", "link ports", "CRC-32", "whole runs", BUFFER, BARRIER, AGREEMENT}
    assert any("100 ppm" in text for text in proof["assumptions"])


def test_a_host_port_of_another_block_is_refuted():
    system, design = pair()
    other = design.modules["board_0"].replace(".block(board)", ".block(~board)")
    wrong = replace(design, modules=design.modules | {"board_0": other})
    assert prove_boards(system, design=wrong).counterexample.signal == "the_host.block"


def test_a_sum_that_nothing_depends_on_is_refuted():
    """A CRC register that drives nothing is refuted. Yosys removes such a register."""
    with pytest.raises(Refuted, match="register of 32 bits"):
        check_received_crc(GateModule("receiver", {}, {}), 8)


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
    system = board_system(sides, boards, latency, *collectives, **options)
    assert prove_boards(system, cache=Cache()).counterexample is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("boards", "latency", "ppm"), [("8", 14, 100), ("4", 60, 1000), ("6", 11, 0)]
)
def test_buffers_of_far_boards_are_proved(boards, latency, ppm):
    system = board_system((int(boards),), boards, latency, ppm=ppm)
    for harness in board_link_harnesses(system.link_plan, emit_boards(system)):
        assert prove_harness(harness, Cache()).failed is None


@pytest.mark.long
def test_a_clock_that_is_further_off_is_refuted():
    system, design = pair()
    plan = replace(system.link_plan, ppm=1000, longest=2000)
    assert plan.least_latency > 8
    (harness,) = (each for each in board_link_harnesses(plan, design) if each.name == BUFFER)
    assert prove_harness(replace(harness, depth=0)).failed is not None
