"""The command line of fabrics on several boards."""

import json

import pytest

from torusfabric.cli import main

PAIR = ["2", "allgather", "--boards", "2", "--width", "8", "--flits", "4"]


def test_cut_arcs_take_the_least_latency_that_serves(capsys):
    """Links between boards take the smallest latency that serves, and the simulation passes."""
    assert main(["simulate", *PAIR, "--jobs", "3", "--link-errors", "1e-3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["words_wrong"] == 0 < found["words_checked"]
    assert (found["boards"], found["link_latency"], found["link_ports"]) == ("2", "8", 2)
    assert found["cycles"] == found["predicted_cycles"]


def test_verilog_of_boards(tmp_path, capsys):
    """The Verilog of two boards has a manifest with their nodes, links and options."""
    options = ["--ppm", "50", "--start-timeout", "1000", "--phy", "lvds"]
    assert main(["verilog", *PAIR, *options, "-o", str(tmp_path / "out")]) == 0
    assert "elastic buffers" in capsys.readouterr().out
    said = json.loads((tmp_path / "out/manifest.json").read_text())
    assert [board["nodes"] for board in said["boards"]] == [[0], [1]]
    assert said["boards"][0]["links"][0]["to"]["board"] == 1
    assert (tmp_path / "out/bench/boards.v").exists()
    assert (said["phy"], said["boards"][0]["links"][0]["latency"]) == ("lvds", 15)
    assert f"--boards 2 {' '.join(options)}" in (tmp_path / "out/fabric.v").read_text()
    assert said["start_timeout"] == 1000
    assert "11 other boards were not started in time" in said["ports"]["error"]["meaning"]


@pytest.mark.parametrize(("words", "line"), [
    (["--boards", "3"], "Boards must divide the sides of 2, not 3"),
    (["--boards", "two"], "Boards must be numbers such as 2x1, not 'two'"),
    (["--boards", "2", "--link-latency", "2"], "Link latency between 2 boards must be at least 8"),
    (["--boards", "2", "--ppm", "1e9"], "(--ppm) must be from 0 to 1000 ppm, not 1e+09"),
    (["--boards", "2", "--retries", "99"], "Retries must be from 0 to 15, not 99"),
    (["--boards", "2", "--start-timeout", "4294967296"],
     "Start timeout must be from 0 to 4294967295 cycles, 0 for none, not 4294967296"),
    (["--boards", "2", "--top", "stream"], "--top and --boards exclude each other"),
    (["--boards", "2", "--repeat", "3"], "--repeat and --boards exclude each other"),
    (["--boards", "2", "--engine", "compiled"], "--engine and --boards exclude each other"),
    (["--boards", "2", "--link-errors", "1"], "Link errors must be a probability from 0 to 0.1"),
    (["--start-timeout", "5"], "--start-timeout needs --boards; give both"),
    (["--ppm", "5"], "--ppm needs --boards; give both"),
])  # fmt: skip
def test_what_boards_cannot_do_is_said(words, line, capsys):
    """Options that several boards do not support are refused."""
    assert main(["simulate", "2", "allgather", "--width", "8", *words]) == 1
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(("words", "line"), [
    (["--block", "1"], "--block needs --boards; give both"),
    (["--boards", "2", "--block", "2"], "Block must be from 0 to 1 on 2 boards, not 2"),
    (["--boards", "2", "--block", "0,1"], "Block must be from 0 to 1 on 2 boards, not 0,1"),
    (["--retries", "1"], "--retries needs --boards; give both"),
    (["--lanes", "1"], "--lanes needs --phy lvds or serdes"),
])  # fmt: skip
def test_a_board_has_one_block(words, line, capsys):
    """Options of a single block are refused if the block does not exist."""
    assert main(["run", "2", "allgather", "--width", "8", "--port", "sim", *words]) == 1
    assert line in capsys.readouterr().err


def test_a_block_runs_alone(capsys):
    """One block of several can run alone."""
    words = ["2", "allgather", "--width", "8", "--boards", "2", "--block", "1", "--port", "sim"]
    assert main(["run", *words, "--job", "length=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["words_checked"], found["words_wrong"]) == (4, 0)
