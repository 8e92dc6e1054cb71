"""What a user is told to do next: the words fit the board, and the commands are ours."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from helpers import fabric_of

from torusfabric.cli import main, make_parser
from torusfabric.fpga.board import Built, find_board, lamp_meanings, load_boards, steps_of
from torusfabric.fpga.selftest.data import send_data
from torusfabric.fpga.selftest.facts import facts_of


@pytest.mark.parametrize(
    ("board", "meanings"),
    [
        ("icebreaker", ["led_g 0 green after a pass", "led_r 0 red after a failure"]),
        ("colorlight-5a75b", []),
        ("tinyfpga-bx", ["led 0 after a pass; blinking after a failure"]),
        (
            "orangecrab-25f",
            ["rgb_led 0 blue while it runs, green after a pass, red after a failure"],
        ),
    ],
)
def test_lamps(board, meanings):
    """A lamp is named as its platform does, with its colour where that is known."""
    assert lamp_meanings(find_board(board)) == meanings


def test_list_of_boards_says_lamps_and_ports(capsys):
    """The list says both, for people and for programs."""
    assert main(["boards", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["boards"]}
    assert all(row["port"].startswith("/dev/tty") for row in rows.values())
    assert rows["icebreaker"]["lamps"] == lamp_meanings(find_board("icebreaker"))
    assert set(rows) == set(load_boards())
    assert main(["boards"]) == 0
    said = capsys.readouterr().out
    assert "led_g 0 green after a pass" in said
    assert "/dev/ttyUSB1" in said
    assert len(said.splitlines()) == 1 + len(rows)


def test_steps_are_commands_that_there_are(tmp_path, monkeypatch):
    """Each command parses, and the data that one of them makes are right for the fabric."""
    fabric = fabric_of("3x3", "alltoall", width=8)
    facts = facts_of(fabric)
    board = replace(find_board("icebreaker"), port="/dev/my port")
    steps = steps_of(board, "torusfabric flash --board icebreaker 2x2 allgather", "iceprog x",
                     facts, baud=9600)  # fmt: skip
    assert steps[0].does == "load it (iceprog x); it tests itself at once"
    for step in steps:
        program, *words = shlex.split(step.command)
        if program == "torusfabric":
            arguments = make_parser().parse_args(words)
            assert getattr(arguments, "port", board.port) == board.port
            assert words[0] == "flash" or arguments.baud == 9600
        else:
            monkeypatch.chdir(tmp_path)
            exec(words[1])
    assert send_data(np.load(tmp_path / "data.npy"), facts).shape == (9, 9)


@pytest.fixture
def built(monkeypatch, tmp_path):
    """Put a build of ours in the place of the tools."""

    def build(fabric, board, folder, *, baud, command, **_):
        report = facts_of(fabric) | {
            "title": board.title, "resources": {}, "clock_mhz": 12.0, "fmax_mhz": 20.0,
            "baud": baud, "uart": board.pins, "bitstream": "selftest.bin", "sha256": "0",
            "command": command,
        }  # fmt: skip
        return Built(folder, report, False)

    monkeypatch.setattr("torusfabric.fpga.board.build", build)
    monkeypatch.setattr("torusfabric.fpga.board.flash", lambda *_: None)
    return tmp_path


def test_end_of_a_build(built, capsys):
    """It says what to do next, what the lamps mean, and the port."""
    what = ["--board", "icebreaker", "2x2", "allgather", "--width", "8", "--baud", "9600"]
    assert main(["build", *what, "-o", str(built)]) == 0
    said = capsys.readouterr().out.splitlines()
    start = said.index("next:")
    assert said[start + 1].startswith(f"  # load it (cd {built} && iceprog selftest.bin); it tests")
    assert said[start + 2].startswith("  torusfabric flash 2x2 allgather ")
    assert "--board icebreaker --baud 9600" in said[start + 2]
    assert "  torusfabric monitor /dev/ttyUSB1 --baud 9600" in said
    assert said[-2] == "lamps lit: led_g 0 green after a pass; led_r 0 red after a failure"
    assert said[-1].startswith("port: /dev/ttyUSB1 on Linux, if nothing else is attached; py")
    assert main(["flash", *what, "-o", str(built), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["next"][0]["command"] == "torusfabric monitor /dev/ttyUSB1 --baud 9600"
    assert (result["flashed"], result["port"]) == (True, "/dev/ttyUSB1")
