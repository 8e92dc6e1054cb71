"""Boards: descriptions, builds and programmers. Only the long tests build bitstreams."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import fabric_of, few

from torusfabric.cli import main
from torusfabric.errors import MissingTool, WorkFailed
from torusfabric.fpga.board import (
    BuildResult,
    build,
    find_board,
    flash,
    flash_command,
    load_boards,
)
from torusfabric.fpga.board.plan import plan_build
from torusfabric.fpga.board.run import build_stage
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache, RenewingCache

BOARDS = sorted(load_boards())


@pytest.fixture(scope="module")
def small():
    """A function that makes a fabric of four nodes."""
    return lambda: fabric_of("2x2", "allgather", "hamiltonian", width=2, flits=2)


def test_all_boards_are_there():
    """`load_boards` finds exactly the boards that are listed here."""
    families = {"icebreaker", "ice40-hx8k", "icestick", "tinyfpga-bx", "colorlight-5a75b"}
    sizes = {"ulx3s-25f", "ulx3s-85f", "orangecrab-25f", "orangecrab-85f", "ecpix5-45f"}
    assert families | sizes | {"ecpix5-85f", "versa-ecp5", "tang-nano-9k"} == set(BOARDS)


QUICK = {"icebreaker", "ulx3s-85f", "tang-nano-9k", "orangecrab-25f"}


@pytest.mark.parametrize(
    "name",
    few(
        3,
        [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in BOARDS],
        tuples=True,
    ),
)
def test_plan_of_a_build(name, small):
    """The serial line and LEDs of each board are in the design, and its script runs its tools."""
    board = find_board(name)
    plan, platform = plan_build(small(), board)
    script = plan.files[f"{plan.script}.sh"]
    assert all(f"${tools.env_var(tool)}" in script for tool in ("yosys", *board.packer))
    design = plan.files["fabric.il"]
    ports = {board.uart[0], *(lamp[0] for lamp in board.lamps.values())}
    for port in ports:
        assert re.search(rf"wire .*\\{port}_", design), port
    assert "src" not in re.findall(r"attribute \\(\w+)", design)
    assert platform.default_clk_frequency >= 12e6
    if "nextpnr-ecp5" in board.packer:
        router = "router1" if platform.default_clk_frequency > 50e6 else "router2"
        assert f"--router {router} " in script
        assert ("--placer static " in script) == (router == "router2")


@pytest.mark.parametrize("name", few(7, [*BOARDS], tuples=True))
def test_programmer_is_the_platforms_own(name, monkeypatch):
    """The command of a board is the one that Amaranth's platform runs, except for the words that
    select a board or cable.
    """
    board, called = find_board(name), list[list[str]]()
    monkeypatch.setattr(subprocess, "check_call", called.append)

    class Products:
        def extract(self, *names):
            return _Context(names if len(names) > 1 else names[0])

    board.make_platform().toolchain_program(Products(), "fabric")
    theirs = [word for argument in called[0] for word in shlex.split(str(argument))
              if "svf" not in word and "transport" not in word]  # fmt: skip
    ours = shlex.split(flash_command(board).replace("'", ""))
    assert [word for word in theirs if word not in ours] in ([], ["jtag;", "init;"])
    assert called[0][0] == board.program[0]


class _Context:
    def __init__(self, value):
        self._value = value

    def __enter__(self):
        return self._value

    def __exit__(self, *_):
        pass


@pytest.mark.parametrize(
    ("said", "number", "text"),
    [
        ("Info: Packing constants..\n", 1, "placing"),
        ("Info: Routing..\n", 2, "routing"),
        (
            "Info: Routing..\n"
            "Info:       4000 |      529       3470 |  134   866 |     44400|   0.6   3.8|\n"
            "Info:       5000 |      613       4386 |  152   848 |     43769|   0.64   4.46|\n",
            2,
            "routing, 43769 connections to go",
        ),
        ("Info: Routing globals...\nInfo: Running router2...\n", 2, "routing"),
        (
            "Info: Routing globals...\nInfo: Running router2...\n"
            "Info:     iter=1 wires=431881 overused=22120 overuse=25792 archfail=NA\n"
            "Info:     iter=2 wires=442280 overused=13574 overuse=14557 archfail=NA\n",
            2,
            "routing, 13574 wires to be shared no more",
        ),
        (
            "Info: Running router2...\nInfo: Program finished normally.\n",
            3,
            "packing the bitstream",
        ),
    ],
)
def test_stages_of_a_build(tmp_path, said, number, text):
    """The stage of a build is read from the logs of its tools."""
    assert build_stage(tmp_path, "fabric", "fabric.bin") == (0, "synthesis")
    (tmp_path / "fabric.tim").write_text(said)
    assert build_stage(tmp_path, "fabric", "fabric.bin") == (number, text)


@pytest.fixture
def built(tmp_path):
    """A finished build with a bitstream."""
    (tmp_path / "fabric.bin").write_bytes(b"bits")
    digest = hashlib.sha256(b"bits").hexdigest()
    return BuildResult(tmp_path, {"bitstream": "fabric.bin", "sha256": digest}, True)


def programmer(folder, monkeypatch, script):
    """Put a script in the place of iceprog."""
    path = folder / "iceprog-of-ours"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("ICEPROG", str(path))


def test_flash(built, monkeypatch):
    """The programmer runs in the folder of the bitstream."""
    programmer(built.folder, monkeypatch, "cat $1 > loaded")
    flash(built, find_board("icebreaker"))
    assert (built.folder / "loaded").read_bytes() == b"bits"


def test_flash_without_the_tool(built, monkeypatch):
    """The error for a missing programmer says how to install the tool, and the bitstream stays."""
    monkeypatch.setenv("ICEPROG", "no-such-program")
    said = "^Tool iceprog was not found .*: install the package fpga-icestorm of your system; the b"
    with pytest.raises(MissingTool, match=said):
        flash(built, find_board("icebreaker"))
    assert built.bitstream.read_bytes() == b"bits"


def test_doctor_knows_the_programmer_of_each_board():
    """`torusfabric doctor` knows the programmer of each board."""
    assert {board.program[0] for board in load_boards().values()} <= tools.TOOLS.keys()


def test_flash_without_a_board(built, monkeypatch):
    """A missing board is a `MissingTool` error with status 3, other failures are `WorkFailed`."""
    said = "Can't find iCE FTDI USB device (vendor_id 0x0403, device_id 0x6010 or 0x6014)."
    programmer(built.folder, monkeypatch, f'echo "{said}"\nexit 2')
    with pytest.raises(
        MissingTool,
        match=r"^Board icebreaker was not found by iceprog \(Can.t find iCE FTDI\): att",
    ):
        flash(built, find_board("icebreaker"))
    assert MissingTool.status == 3
    assert built.bitstream.exists()
    programmer(built.folder, monkeypatch, "echo ERROR: flash is locked\nexit 1")
    with pytest.raises(WorkFailed, match=r"^iceprog failed on icebreaker: ERROR: flash is locked"):
        flash(built, find_board("icebreaker"))


@pytest.mark.long
def test_build_and_flash(tmp_path, monkeypatch, capsys):
    """The same command gives the same bitstream, from the cache or from a new build."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    what = ["--board", "icestick", "2x2", "allgather", "--algorithm", "hamiltonian"]
    what += ["--width", "2", "--flits", "2", "-o", str(tmp_path / "out")]
    assert main(["build", *what, "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["predicted_cycles"], first["cached"], first["clock_mhz"]) == (7, False, 12)
    assert first["fmax_mhz"] > 12
    assert 0 < first["resources"]["ICESTORM_LC"]["used"] <= 1280
    report = (tmp_path / "out" / "report.json").read_bytes()
    bitstream = (tmp_path / "out" / "fabric.bin").read_bytes()
    logs = {path.suffix for path in (tmp_path / "out" / "build").iterdir()}
    assert {".tim", ".rpt", ".log"} <= logs
    assert main(["flash", *what, "--dry-run", "--json"]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["cached"] if "cached" in second else not second["flashed"]
    assert second["command"] == f"cd {tmp_path / 'out'} && iceprog fabric.bin"
    assert main(["build", *what, "--force"]) == 0
    assert "built" in capsys.readouterr().out
    assert (tmp_path / "out" / "fabric.bin").read_bytes() == bitstream
    again = json.loads((tmp_path / "out" / "report.json").read_text())
    assert json.loads(report)["sha256"] == again["sha256"]


@pytest.mark.parametrize(
    ("present", "tool", "makes"),
    few(
        2,
        [
            ([], "yosys", "fabric.json"),
            (["fabric.json"], "nextpnr-ice40", "fabric.report.json"),
            (["fabric.json", "fabric.report.json"], "icepack", "fabric.bin"),
        ],
    ),
)
def test_tool_that_makes_nothing(small, kept_plans, tmp_path, monkeypatch, present, tool, makes):
    """The error names the tool that ended without output, even if a later tool failed."""

    def run(name, args, *, folder, log, **_):
        for made in present:
            (folder / made).touch()
        (folder / log).write_text("no input\n")
        raise WorkFailed("sh failed on icestick: no input")

    monkeypatch.setattr(tools, "run", run)
    monkeypatch.setenv(tools.env_var(tool), sys.executable)
    message = rf"^Tool {tool} \(.* set by {tools.env_var(tool)}\) ended without writing {makes} "
    with pytest.raises(WorkFailed, match=message) as caught:
        build(small(), find_board("icestick"), tmp_path, cache=Cache(tmp_path / "cache"))
    assert Path(str(caught.value).split("(log: ")[1].rstrip(")")).read_text() == "no input\n"


def test_build_that_cannot_be(tmp_path, capsys):
    """An unknown board and an impossible baud rate are refused before anything is built."""
    what = ["2x2", "allgather", "-o", str(tmp_path)]
    assert main(["build", "--board", "icebraker", *what]) == 1
    assert "Board must be one of" in capsys.readouterr().err
    assert main(["build", "--board", "icebreaker", *what, "--baud", "9000000"]) == 1
    assert "Baud rate must be within 2 %" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("name", BOARDS)
def test_bitstream_of_every_board(name, small, tmp_path):
    """The bitstream of every board is built, and its clock is fast enough."""
    board = find_board(name)
    if any(tools.find(tool) is None for tool in board.packer):
        pytest.skip(f"needs {' and '.join(board.packer)}")
    built = build(small(), board, tmp_path, cache=Cache(tmp_path / "cache"))
    assert built.bitstream.stat().st_size > 10_000
    assert built.report["fmax_mhz"] > built.report["clock_mhz"]
    assert all((Path(tmp_path) / product).exists() for product in board.products)


@pytest.mark.long
def test_ecp5_bitstream_is_reproducible(small, tmp_path):
    """Builds with the second router are reproducible, and the report names that router."""
    board, cache = find_board("ulx3s-25f"), Cache(tmp_path / "cache")
    first = build(small(), board, tmp_path / "first", cache=cache)
    second = build(small(), board, tmp_path / "second", cache=RenewingCache(cache.folder))
    assert first.bitstream.read_bytes() == second.bitstream.read_bytes()
    assert first.report == second.report
    assert (first.report["router"], second.cached) == ("router2", False)
