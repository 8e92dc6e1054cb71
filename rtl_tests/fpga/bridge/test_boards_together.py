"""Several boards, each behind its bridge and with its own clock, run together."""

import json

import pytest
from board_systems import board_system
from helpers import few

import torusfabric as tf
from torusfabric.adapters.boards.bridge.connected import WITHDRAW_BIT, ConnectedBoards
from torusfabric.adapters.boards.bridge.linked import linked_blocks, simulated_ports
from torusfabric.adapters.boards.drive import BoardRun
from torusfabric.cli import main
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.bridge.bus_access import BusAccess
from torusfabric.rtl.run_choices import RunError
from torusfabric.simulation.engines.base import TIMEOUT_CYCLES


def system():
    return board_system((2,), "2", 9, max_flits=2)


def test_boards_run_together(capsys):
    words = ["run", "2", "allgather", "--boards", "2", "--width", "8", "--max-flits", "2"]
    assert main([*words, "--port", "sim", "--job", "length=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["words_checked"], found["words_wrong"], found["failed"]) == (4, 0, 0)
    assert found["jobs"][0]["cycles"] == [found["predicted_cycles"]] * 2


def test_a_start_that_waits_can_be_withdrawn():
    boards = tf.connect("sim:2 allgather --boards 2 --width 8 --max-flits 2")
    engine, job = boards.boards[0].engine, tf.Job(length=1)
    engine.start(job)
    assert engine.read_register("status") & 1
    engine.write_register("abort", WITHDRAW_BIT)
    status = engine.read_register("status")
    assert (status & 3, status >> 4 & 15, engine.read_register("failed")) == (
        2,
        RunError.TIMEOUT,
        1,
    )
    assert boards.run([job]).passed


def test_boards_of_which_one_does_not_start_are_in_service_again(monkeypatch):
    """If one board does not start, the other starts are withdrawn, and the next run passes."""
    monkeypatch.setattr("torusfabric.fpga.bridge.board.LONGEST", 0)
    boards = tf.connect("sim:2 allgather --boards 2 --width 8 --max-flits 2")
    first, second = (board.engine for board in boards.boards)
    with monkeypatch.context() as lost:
        lost.setattr(second, "start", lambda job: None)
        lost.setattr(first.fabric, "cycles_of", lambda *_, **__: -TIMEOUT_CYCLES)
        with pytest.raises(WorkFailed, match="The board is still at work"):
            boards.run([tf.Job(length=1)])
    assert not first.read_register("status") & 1
    assert boards.run([tf.Job(length=1)]).passed


@pytest.mark.long
@pytest.mark.parametrize(("phy", "board"), [("lvds", "ulx3s-85f"), ("serdes", "ecpix5-45f")])
def test_boards_run_together_on_pairs(phy, board):
    if phy == "serdes":
        pytest.importorskip("liteiclink")
    chosen = f"--boards 2 --phy {phy} --board {board} --width 8 --max-flits 2"
    boards = tf.connect(f"sim:4 allreduce {chosen}")
    words, report = boards.carry([[1], [2], [3], [4]])
    assert report.passed
    assert words.tolist() == [[10]] * 4


@pytest.mark.long
def test_each_port_has_its_block():
    """Swapped serial cables are refused, and wrong received words are counted."""
    blocks = linked_blocks(system())
    accesses = [BusAccess(port) for port in simulated_ports(blocks)]
    with pytest.raises(InputError, match="Ports must be 2, one for each of 2 boards, not 1"):
        ConnectedBoards(blocks, accesses[:1])
    with pytest.raises(WorkFailed, match="Board on sim:1 must carry"):
        ConnectedBoards(blocks, accesses[::-1])
    boards = ConnectedBoards(blocks, accesses)
    words = [[3], [4]]
    got, report = boards.carry(words)
    assert report.passed
    assert got.tolist() == [[3, 4]] * 2
    boards.boards[1].engine.read_messages = boards.boards[0].engine.read_messages  # type: ignore[method-assign]
    assert boards.carry(words)[1].words_wrong == 2


def test_faults_are_named():
    run = BoardRun(0, "allgather", 1, None, None, 2, (7, 7), (9, 9), (0b110, 0), 7, 0, 0)
    assert run.fault == "error 9 of board 0 at link ports 1, 2; error 9 of board 1"


@pytest.mark.parametrize(("words", "line"), few(2, [
    (["--phy", "lvds"], "--phy lvds needs --board NAME, a board that has the pairs"),
    (["--phy", "lvds", "--block", "1"], "--block and --phy exclude each other where boards run"),
    (["--lanes", "2"], "--lanes needs --phy lvds or serdes"),
    (["--image", "x"], "--image and --boards exclude each other"),
]))  # fmt: skip
def test_what_boards_cannot_do_is_said(words, line, capsys):
    command = ["run", "2", "allgather", "--boards", "2", "--width", "8", "--port", "sim"]
    assert main([*command, *words]) == 1
    assert line in capsys.readouterr().err
