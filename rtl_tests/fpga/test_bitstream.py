"""Simulated bitstreams and netlists: boards run jobs, and planted faults give wrong words."""

import importlib.util
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bitstream_bench import DIVISOR, BenchPort, from_bitstream, from_ecp5_layout, from_gowin_netlist
from board_systems import board_system
from fabrics import build_fabric
from helpers import fabric_of, few, forgetful, misrouted

import torusfabric as tf
from torusfabric.adapters.boards.hardware import Block
from torusfabric.collective import Operator
from torusfabric.fpga.board import build, find_board
from torusfabric.fpga.bridge.board import ConnectedBoard
from torusfabric.fpga.bridge.bus_access import BusAccess
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

#: The folder with yosys's models of the cells of iCE40 and Gowin.
SHARE = Path(importlib.util.find_spec("pyosys").origin).parent / "share"

#: The pins of the serial line in netlists.
PINS = {"rx": "uart_0__rx__io", "tx": "uart_0__tx__io"}

needs_iverilog = pytest.mark.skipif(tools.find("iverilog") is None, reason="needs iverilog")
needs_icebox = pytest.mark.skipif(
    tools.find("iverilog") is None or tools.find("icebox_vlog") is None,
    reason="needs iverilog and icebox_vlog",
)


def built(fabric, board, folder, *netlist, **options):
    """Build a bitstream; return the folder of the tools and the name of the clock pin."""
    board = replace(board, options=board.options | options, products=(*board.products, *netlist))
    platform = board.make_platform()
    baud = round(platform.default_clk_frequency / DIVISOR)
    made = build(fabric, board, folder, baud=baud, cache=Cache(folder / "cache"))
    return made.folder / "build", f"{platform.default_clk}_0__io"


def ice40(fabric, name, folder):
    """The port of an iCE40 board whose logic is read back from its bitstream and simulated."""
    work, clock = built(fabric, find_board(name), folder)
    files = ["bitstream.v", SHARE / "ice40" / "cells_sim.v"]
    defines = ["NO_ICE40_DEFAULT_ASSIGNMENTS"]
    return BenchPort(work, files, from_bitstream(work), clock=clock, defines=defines, **PINS)


def ecp5(fabric, folder):
    """The port of an ECP5 board whose placed and routed netlist is simulated."""
    board, name = find_board("ulx3s-25f"), "fabric.pnr.json"
    work, clock = built(fabric, board, folder, name, nextpnr_opts=f"--write {name}")
    models = Path(__file__).parents[1] / "support" / "ecp5_layout_cells.v"
    top = from_ecp5_layout(work, folder / name)
    return BenchPort(work, ["layout.v", models], top, clock=clock, **PINS)


def gowin(fabric, folder):
    """The port of a Tang Nano 9K whose synthesized netlist is simulated."""
    board = find_board("tang-nano-9k")
    if any(tools.find(tool) is None for tool in board.packer):
        pytest.skip(f"needs {' and '.join(board.packer)}")
    name = "fabric.syn.json"
    work, clock = built(fabric, board, folder, name)
    files = ["netlist.v", SHARE / "gowin" / "cells_sim.v"]
    top = from_gowin_netlist(work, folder / name)
    return BenchPort(work, files, top, clock=clock, **PINS)


def port_of(fabric, board, folder):
    """The port of a simulated board, made from its bitstream or its netlist."""
    if board == "ulx3s-25f":
        return ecp5(fabric, folder)
    return gowin(fabric, folder) if board == "tang-nano-9k" else ice40(fabric, board, folder)


def run(fabric, port, jobs=None):
    """Run jobs on the board at a port; return the report."""
    with closing(port):
        return ConnectedBoard(fabric, BusAccess(port)).run(jobs)


def carry(fabric, port, words):
    """Send words through the board at a port; return the words that its nodes receive."""
    with closing(port):
        return ConnectedBoard(fabric, BusAccess(port)).carry(words)[0]


def block():
    """Board 1 of two boards, with its link ports looped back."""
    return Block(board_system((2,), "2", 8, flits=2), 1)


#: Boards, and the fabric that each bitstream or netlist runs.
RUNS = [
    ("icestick", lambda: build_fabric("3", "allgather:hamiltonian", width=2, flits=2)),
    ("icestick", lambda: build_fabric("2x2", "allgather:hamiltonian", width=2, flits=2)),
    ("icebreaker", lambda: build_fabric("2x2", "allgather,broadcast", width=4, max_flits=4)),
    ("icebreaker", block),
    ("ulx3s-25f", lambda: build_fabric("2x2", "allgather:hamiltonian", width=4, flits=2)),
    ("tang-nano-9k", lambda: build_fabric("2x2", "allgather:hamiltonian", width=2, flits=2)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "allgather:one-packet", flits=1)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "alltoall:matching", flits=1)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "scatter:matching", flits=2, root=4)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "gather:matching", flits=2, root=4)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "broadcast:necklace", flits=2, root=5)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "reduce-scatter:matching", flits=1)),
    ("ice40-hx8k", lambda: build_fabric("3x3", "allreduce:matching", operators=["max:signed"])),
    ("ice40-hx8k", lambda: build_fabric("3x3", "reduce:necklace", flits=2, root=5)),
]


@needs_icebox
@pytest.mark.parametrize(("board", "make"), few(1, RUNS))
def test_boards_run(tmp_path, board, make):
    """Every word arrives, and each run takes the predicted cycles."""
    fabric = make()
    report = run(fabric, port_of(fabric, board, tmp_path))
    assert report.passed
    assert report.words_checked
    assert report.cycles == report.predicted_cycles


@pytest.mark.long
@needs_icebox
@pytest.mark.parametrize(
    ("board", "collective", "algorithm", "fault"),
    [
        ("icestick", "allgather", "hamiltonian", misrouted),
        ("icestick", "reduce-scatter", "matching", forgetful),
        ("ulx3s-25f", "allgather", "hamiltonian", misrouted),
    ],
)
def test_faults_in_the_source_give_wrong_words(tmp_path, board, collective, algorithm, fault):
    """A wrong select bit or an omitted contribution gives wrong words in unchanged cycles."""
    fabric = fabric_of("2x2", collective, algorithm, width=2, flits=2, fault=fault)
    report = run(fabric, port_of(fabric, board, tmp_path))
    assert report.words_wrong == tf.simulate(fabric).words_wrong > 0
    assert report.cycles == fabric.predicted_cycles


@pytest.mark.long
@needs_icebox
@pytest.mark.parametrize("operator", [Operator.parse("min:signed"), Operator.parse("add")], ids=str)
def test_ice40_bitstream_that_adds(tmp_path, operator):
    """An iCEstick bitstream combines the given words by its operator."""
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=4, operator=operator)
    words = np.array([(3, 0xC, 7, 5), (2, 9, 0xA, 5), (1, 6, 4, 0xE), (5, 0, 0xF, 8)], np.uint64)
    got = carry(fabric, ice40(fabric, "icestick", tmp_path), words)
    assert got.ravel().tolist() == operator.reduce(words, 4).tolist()


@needs_icebox
@pytest.mark.long
def test_ice40_bitstream_that_is_loaded(tmp_path):
    """A bitstream with loaded tables runs its own collective, and then that of a loaded image."""
    program = tf.compile(tf.plan("2", "allgather"), max_flits=1)
    fabric = tf.Fabric(program, width=2, tables="ram")
    with closing(ice40(fabric, "ice40-hx8k", tmp_path)) as port:
        board = ConnectedBoard(fabric, BusAccess(port))
        assert board.run().passed
        board.load(tf.image(fabric, "alltoall"))
        assert board.run().passed
        assert board.fabric.program.modes[0].collective.name == "alltoall"
