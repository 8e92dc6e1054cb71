"""Needs of fabrics: misfits are refused before any tool runs, and build minutes are estimated."""

import time
from collections import Counter
from dataclasses import replace

import pytest
from helpers import fabric_of, few

from torusfabric.cli import main
from torusfabric.collective import parse_collective
from torusfabric.fpga.board import Limit, Misfit, build, check_selection, find_board, load_boards
from torusfabric.fpga.board.needs import (
    BRAM_SHAPES,
    ResourceNeeds,
    build_minutes,
    check_fabric,
    fabric_needs,
    least_needs,
    target_of,
)
from torusfabric.fpga.synthesis.target import Target
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.topology import parse_topology

SMALL = Target("small", "small", (), {"ffs": 100, "brams": 2})


@pytest.mark.parametrize("name", few(7, [*sorted(load_boards())], tuples=True))
def test_device_of_every_board(name):
    """The capacity of the device of every board is known."""
    target = target_of(find_board(name).make_platform())
    assert target is not None
    assert target.capacity["ffs"] > 1000


@pytest.mark.parametrize(
    ("memories", "flip_flops"),
    [
        ({}, 10),
        ({(8, 8): 2}, 10),  # each fills a block RAM
        ({(8, 8): 3}, 10 + 64),
        ({(4, 32): 1}, 10),  # deep and narrow: two halves
        ({(16, 2): 2}, 10 + 32),  # a block RAM holds no more than 8 of 16 bits
        ({(1, 1000): 1}, 10 + 1000 - 128),
    ],
)
def test_flip_flops_that_memories_need(memories, flip_flops, monkeypatch):
    """Memory bits beyond the capacity of all block RAMs need flip-flops."""
    monkeypatch.setitem(BRAM_SHAPES, "small", (64, 8))
    needs = ResourceNeeds(10, Counter(memories))
    assert needs.least_flip_flops(SMALL) == flip_flops
    assert (
        needs.least_flip_flops(replace(SMALL, capacity=SMALL.capacity | {"lutrams": 10**5})) == 10
    )
    assert needs.total_bits == 10 + sum(w * d * n for (w, d), n in memories.items())


def test_needs_of_a_fabric():
    """The needs of a fabric grow with nodes and width, and exceed the estimate without a plan."""
    found = {
        (sides, width): fabric_needs(fabric_of(sides, "allgather", "hamiltonian", width=width))
        for sides in ("3x3", "4x4")
        for width in (8, 16)
    }
    for (sides, width), needs in found.items():
        topology, collective = parse_topology(sides), parse_collective("allgather")
        least = least_needs(topology, collective, flits=2, width=width)
        assert least.registers < needs.registers
        assert least.total_bits < needs.total_bits
        assert needs.total_bits < found["4x4", 16].total_bits or (sides, width) == ("4x4", 16)


@pytest.mark.parametrize(
    ("topology", "collective"),
    [("8x8", "allgather"), ("100x100", "allgather"), ("100x100", "broadcast"), ("7x7", "alltoall")],
)
def test_refusal_before_planning(topology, collective, capsys, monkeypatch, tmp_path):
    """A selection that no plan could fit is refused at once, with the largest torus that fits."""
    monkeypatch.setattr(
        "torusfabric.fabric.make.make_fabric", lambda *_, **__: pytest.fail("planned")
    )
    monkeypatch.chdir(tmp_path)
    board = find_board("icebreaker")
    if collective == "alltoall":  # fits in bits, not with its width
        check_selection(
            board, parse_topology(topology), parse_collective(collective), flits=1, width=8
        )
        return
    began = time.process_time()
    assert main(["build", "--board", "icebreaker", topology, collective]) == 2
    assert time.process_time() - began < 1
    said = capsys.readouterr().err
    assert said.startswith("torusfabric: Fabric must fit into icebreaker, not need at least ")
    assert said.endswith("; place and route fits up to 3x3 allgather of 8 bits\n")
    assert list(tmp_path.iterdir()) == []


def test_refusal_before_the_tools(tmp_path, monkeypatch):
    """A planned fabric is refused by the measured limit of the board, or by its least needs."""
    monkeypatch.setattr(tools, "run", lambda *_, **__: pytest.fail("ran"))
    board = find_board("icebreaker")
    larger = fabric_of("4x4", "allgather", "hamiltonian", width=8)
    measured = r"^Fabric must fit into icebreaker, not be larger than what does: place and route "
    with pytest.raises(
        Misfit, match=rf"{measured}fits up to 3x3 .* \(--force tries all the same\)$"
    ):
        build(larger, board, tmp_path / "out", cache=Cache(tmp_path / "cache"))
    assert not (tmp_path / "out").exists()
    check_fabric(replace(board, limit=None), larger)
    check_fabric(replace(board, limit=Limit(3)), larger)  # an estimate excludes nothing
    check_fabric(board, fabric_of("3x3", "allgather", "hamiltonian", width=8))
    much = fabric_of("4x4", "allgather", "matching", width=32, flits=8)
    message = r"^Fabric must fit into icestick, not need at least \d+ of \d+ (flip-flops|bits)"
    with pytest.raises(Misfit, match=message):
        check_fabric(find_board("icestick"), much)


def test_expected_duration():
    """A build that nearly fills the device is expected to take 4 minutes, a small one 1 minute."""
    small = fabric_of("2x2", "allgather", width=2)
    large = fabric_of("6x6", "allgather", width=8)
    board = find_board("icebreaker")
    assert build_minutes(board, small) == 1
    assert build_minutes(board, large) == 4
