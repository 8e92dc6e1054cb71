"""Bitstreams and placed netlists, simulated: boards that run jobs, or name the fault."""

import importlib.util
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bitstream_bench import DIVISOR, BenchPort, from_bitstream, from_ecp5_layout, from_gowin_netlist
from helpers import fabric_of, few, forgetful, misrouted

import torusfabric as tf
from torusfabric.adapters.boards.hardware import Block, BoardSystem
from torusfabric.collective import Operator
from torusfabric.fpga.board import build, find_board
from torusfabric.fpga.bridge.board import ConnectedBoard
from torusfabric.fpga.bridge.bus_access import BusAccess
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache
from torusfabric.topology.boards import Boards

#: Where yosys keeps models of the cells of iCE40 and Gowin.
SHARE = Path(importlib.util.find_spec("pyosys").origin).parent / "share"

#: The pins of the serial line in netlists.
PINS = {"rx": "uart_0__rx__io", "tx": "uart_0__tx__io"}

needs_iverilog = pytest.mark.skipif(tools.find("iverilog") is None, reason="needs iverilog")
needs_icebox = pytest.mark.skipif(
    tools.find("iverilog") is None or tools.find("icebox_vlog") is None,
    reason="needs iverilog and icebox_vlog",
)


def built(fabric, board, folder):
    """Where the tools worked at a bitstream, and how its clock is called."""
    platform = board.make_platform()
    baud = round(platform.default_clk_frequency / DIVISOR)
    made = build(fabric, board, folder, baud=baud, cache=Cache(folder / "cache"))
    return made.folder / "build", f"{platform.default_clk}_0__io"


def ice40(fabric, name, folder):
    """The port of a bitstream that is simulated bit for bit, taken back from its file."""
    work, clock = built(fabric, find_board(name), folder)
    files = ["bitstream.v", SHARE / "ice40" / "cells_sim.v"]
    defines = ["NO_ICE40_DEFAULT_ASSIGNMENTS"]
    return BenchPort(work, files, from_bitstream(work), clock=clock, defines=defines, **PINS)


def ecp5(fabric, folder):
    """The port of a placed and routed ECP5 netlist that is simulated."""
    board = find_board("ulx3s-25f")
    written = {"nextpnr_opts": "--write fabric.pnr.json"}
    work, clock = built(fabric, replace(board, options=board.options | written), folder)
    models = Path(__file__).parents[1] / "support" / "ecp5_layout_cells.v"
    return BenchPort(work, ["layout.v", models], from_ecp5_layout(work), clock=clock, **PINS)


def run(fabric, port, jobs=None):
    """Run jobs on a board at a port."""
    with closing(port):
        return ConnectedBoard(fabric, BusAccess(port)).run(jobs)


def carry(fabric, port, words):
    """Send words through a board at a port; returns what its nodes receive."""
    with closing(port):
        return ConnectedBoard(fabric, BusAccess(port)).carry(words)[0]


@needs_icebox
@pytest.mark.parametrize(("topology", "words"), few(1, [("3", 18), ("2x2", 32)]))
def test_ice40_bitstream_runs(tmp_path, topology, words):
    """The bits of an iCEstick's bitstream carry every word, in the cycles predicted."""
    fabric = fabric_of(topology, "allgather", "hamiltonian", width=2, flits=2)
    report = run(fabric, ice40(fabric, "icestick", tmp_path))
    assert report.passed
    assert (report.words_checked, report.cycles) == (words, fabric.predicted_cycles)


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_of_an_engine(tmp_path):
    """The bits of an iCEBreaker's bitstream carry out jobs, each in as many cycles as predicted."""
    plans = [tf.plan("2x2", name) for name in ("allgather", "broadcast")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=4), width=4)
    report = run(fabric, ice40(fabric, "icebreaker", tmp_path))
    assert report.passed
    assert {(job.collective, job.length) for job in report.jobs} == {
        (name, length) for name in ("allgather", "broadcast") for length in range(1, 5)
    }


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_of_a_block(tmp_path):
    """The bits of one of two boards, its link ports looped back, carry words through buffers."""
    ring = tf.Torus(2, link_latency=8)
    fabric = tf.Fabric(tf.compile(tf.plan(ring, "allgather"), flits=2), width=8)
    block = Block(BoardSystem(fabric, Boards.parse("2", ring)), 1)
    report = run(block, ice40(block, "icebreaker", tmp_path))
    assert report.passed
    assert (report.words_checked, report.cycles) == (4, block.predicted_cycles)


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_with_a_wrong_setting(tmp_path):
    """One wrong bit of the settings in the source, and words are wrong, in the same cycles."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2, fault=misrouted)
    report = run(fabric, ice40(fabric, "icestick", tmp_path))
    assert report.words_wrong == tf.simulate(fabric).words_wrong > 0
    assert report.first_wrong == tf.simulate(fabric).first_wrong
    assert report.cycles == fabric.predicted_cycles


@pytest.mark.long
@needs_icebox
@pytest.mark.parametrize("operator", [Operator.parse("min:signed"), Operator.parse("add")], ids=str)
def test_ice40_bitstream_that_adds(tmp_path, operator):
    """The bits of an iCEstick's bitstream combine what they are given."""
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=4, operator=operator)
    words = np.array([(3, 0xC, 7, 5), (2, 9, 0xA, 5), (1, 6, 4, 0xE), (5, 0, 0xF, 8)], np.uint64)
    got = carry(fabric, ice40(fabric, "icestick", tmp_path), words)
    assert got.ravel().tolist() == operator.reduce(words, 4).tolist()


@pytest.mark.long
@needs_icebox
def test_ice40_bitstream_that_loses_a_contribution(tmp_path):
    """Where a sum leaves one contribution out, words are wrong."""
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=4, fault=forgetful)
    assert run(fabric, ice40(fabric, "icestick", tmp_path)).words_wrong


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_that_is_loaded(tmp_path):
    """The bits of a bitstream carry out what they are built with, and what they are loaded with."""
    program = tf.compile(tf.plan("2", "allgather"), max_flits=1)
    fabric = tf.Fabric(program, width=2, tables="ram")
    with closing(ice40(fabric, "ice40-hx8k", tmp_path)) as port:
        board = ConnectedBoard(fabric, BusAccess(port))
        assert board.run().passed
        board.load(tf.image(fabric, "alltoall"))
        assert board.run().passed
        assert board.fabric.program.modes[0].collective.name == "alltoall"


@needs_iverilog
@pytest.mark.long
def test_ecp5_layout_runs(tmp_path):
    """ULX3S gateware after place and route carries every word."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=4, flits=2)
    assert run(fabric, ecp5(fabric, tmp_path)).passed


@pytest.mark.long
@needs_iverilog
def test_ecp5_layout_with_a_wrong_setting(tmp_path):
    """One wrong bit of the settings in the source, and the placed netlist has wrong words."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=4, flits=2, fault=misrouted)
    assert run(fabric, ecp5(fabric, tmp_path)).words_wrong


@pytest.mark.long
@needs_iverilog
def test_gowin_netlist_runs(tmp_path):
    """Tang Nano 9K gateware after synthesis carries every word."""
    board = find_board("tang-nano-9k")
    if any(tools.find(tool) is None for tool in board.packer):
        pytest.skip(f"needs {' and '.join(board.packer)}")
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2)
    work, clock = built(fabric, board, tmp_path)
    top = from_gowin_netlist(work)
    files = ["netlist.v", SHARE / "gowin" / "cells_sim.v"]
    assert run(fabric, BenchPort(work, files, top, clock=clock, **PINS)).passed


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
    report = run(fabric, ice40(fabric, "ice40-hx8k", tmp_path))
    assert report.passed
    assert report.cycles == fabric.predicted_cycles
