"""Instructions for users after a build: they fit the board, and their commands exist."""

import json
import shlex

import numpy as np
import pytest
from helpers import fabric_of

import torusfabric as tf
from torusfabric.cli import main, make_parser
from torusfabric.fpga.board import (
    BuildResult,
    Step,
    find_board,
    led_meanings,
    load_boards,
    next_steps,
)
from torusfabric.fpga.board.build import fabric_facts


@pytest.mark.parametrize(
    ("board", "meanings"),
    [
        ("icebreaker", ["led_r 0 red during a run", "led_g 0 green after a run"]),
        ("colorlight-5a75b", []),
        ("tinyfpga-bx", ["led 0 after a run"]),
        ("orangecrab-25f", ["rgb_led 0 blue during a run, green after a run"]),
    ],
)
def test_lamps(board, meanings):
    """An LED is named as in its platform, with its colour if known."""
    assert led_meanings(find_board(board)) == meanings


def test_list_of_boards_says_lamps_and_ports(capsys):
    """`torusfabric boards` lists LEDs and serial ports, as text and as JSON."""
    assert main(["boards", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["boards"]}
    assert all(row["port"].startswith("/dev/tty") for row in rows.values())
    assert rows["icebreaker"]["clock_mhz"] == 12
    assert rows["icebreaker"]["lamps"] == led_meanings(find_board("icebreaker"))
    assert set(rows) == set(load_boards())
    assert main(["boards"]) == 0
    said = capsys.readouterr().out
    assert "led_g 0 green after a run" in said
    assert "/dev/ttyUSB1" in said
    assert len(said.splitlines()) == 1 + len(rows)


def test_steps_are_commands_that_there_are(tmp_path, monkeypatch):
    """Each suggested command parses, and the suggested data file fits the fabric."""
    fabric = fabric_of("3x3", "alltoall", width=8)
    load = Step("torusfabric flash --board icebreaker 2x2 allgather", "load it (iceprog x)")
    steps = next_steps([load], "--board icebreaker --baud 9600", fabric_facts(fabric))
    assert steps[0] == load
    for step in steps:
        program, *words = shlex.split(step.command)
        if program == "torusfabric":
            arguments = make_parser().parse_args(words)
            assert arguments.board == "icebreaker"
            assert words[0] == "flash" or arguments.baud == 9600
        else:
            monkeypatch.chdir(tmp_path)
            exec(words[1])
    data = np.load(tmp_path / "data.npy")
    assert tf.connect("sim", fabric).carry(data)[1].passed


@pytest.fixture
def built(monkeypatch, tmp_path):
    """Replace the building and flashing tools by functions that return at once."""

    def build(fabric, board, folder, *, baud, command, **_):
        report = fabric_facts(fabric) | {
            "title": board.title, "resources": {}, "clock_mhz": 12.0, "fmax_mhz": 20.0,
            "baud": baud, "uart": board.pins, "bitstream": "fabric.bin", "sha256": "0",
            "command": command,
        }  # fmt: skip
        return BuildResult(folder, report, False)

    monkeypatch.setattr("torusfabric.fpga.board.build", build)
    monkeypatch.setattr("torusfabric.fpga.board.flash", lambda *_: None)
    return tmp_path


def test_end_of_a_build(built, capsys):
    """The end of a build lists the next commands, the meaning of the LEDs and the port."""
    what = ["--board", "icebreaker", "2x2", "allgather", "--width", "8", "--baud", "9600"]
    assert main(["build", *what, "-o", str(built)]) == 0
    said = capsys.readouterr().out.splitlines()
    start = said.index("next:")
    assert said[start + 1] == f"  # load it (cd {built} && iceprog fabric.bin)"
    assert said[start + 2].startswith("  torusfabric flash 2x2 allgather ")
    assert "--board icebreaker --baud 9600" in said[start + 2]
    at = f"--board icebreaker --baud 9600 --build {built}"
    assert f"  torusfabric run {at}" in said
    assert f"  torusfabric monitor {at}" in said
    assert said[-2] == "LEDs: led_r 0 red during a run; led_g 0 green after a run"
    assert said[-1].startswith("port: /dev/ttyUSB1 on Linux, if nothing else is attached; py")
    assert main(["flash", *what, "-o", str(built), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["next"][0]["command"] == f"torusfabric run {at}"
    assert (result["flashed"], result["port"]) == (True, "/dev/ttyUSB1")
