"""Gateware behind a pseudo-terminal: the commands, LiteX's clients, and a port that fails."""

import contextlib
import json
import os
import pty
import threading
import tty

import numpy as np
import pytest
from helpers import check_refused, few, misrouted, program_of, random_messages
from serial_bench import compiled, on_terminal

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.bridge import bus_access
from torusfabric.fpga.bridge.board import ConnectedBoard
from torusfabric.fpga.bridge.bus_access import BusAccess, open_port

#: The fabric behind the terminal.
SELECTION = ["3", "allgather,allreduce", "--max-flits", "4", "--width", "12", "--op", "add,max"]


@pytest.fixture(scope="module")
def gateware(tmp_path_factory):
    """The program that simulates the gateware, and its fabric."""
    fabric = tf.connect("sim:" + " ".join(SELECTION)).fabric
    return compiled(fabric, tmp_path_factory.mktemp("gateware")), fabric


@pytest.fixture(scope="module")
def port(gateware):
    """The path of the terminal of the gateware."""
    with on_terminal(gateware[0]) as path:
        yield path


def test_run(port, capsys):
    """`run` executes jobs on the fabric at the port and compares their words."""
    at = [*SELECTION, "--port", port]
    assert main(["run", *at, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["passed"], result["words_wrong"], result["port"]) == (True, 0, port)
    assert {(job["collective"], job["length"]) for job in result["jobs"]} == {
        (name, length) for name in ("allgather", "allreduce") for length in range(1, 5)
    }
    assert all(job["cycles"] == job["predicted_cycles"] for job in result["jobs"])
    jobs = ["--job", "mode=allreduce,length=3,operation=max", "--job", "mode=0,length=1"]
    assert main(["run", *at, *jobs]) == 0
    said = capsys.readouterr().out
    assert "run 0             allreduce, 3 flits: " in said
    assert "run 1             allgather, 1 flits: " in said
    assert "words wrong       0" in said


def test_monitor(port, capsys):
    """`monitor` runs random jobs one after another, with one line each."""
    at = [*SELECTION, "--port", port]
    assert main(["monitor", *at, "--jobs", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["run 0", "run 1", "run 2"]
    assert all("; 0 of " in line for line in lines)
    assert main(["monitor", *at, "--jobs", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["passed"]
    assert [run["words_wrong"] for run in result["runs"]] == [0, 0]


def test_data(gateware, port, capsys, tmp_path):
    """Words from a file are sent through the board, and come back gathered or combined."""
    messages = random_messages(gateware[1], 7).astype(np.uint16)[:, :3]
    np.save(tmp_path / "data.npy", messages)
    files = ["--data", str(tmp_path / "data.npy"), "-o", str(tmp_path / "received.npy")]
    at = [*SELECTION, "--port", port]
    assert main(["run", *at, *files, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["words_wrong"], result["words_checked"]) == (0, 3 * 9)
    received = np.load(tmp_path / "received.npy")
    assert received.dtype == np.uint16
    assert (received == messages.reshape(1, -1)).all()
    assert main(["run", *at, *files, "--job", "mode=allreduce,operation=1"]) == 0
    assert (np.load(tmp_path / "received.npy") == messages.max(0)).all()
    (tmp_path / "text.npy").write_text("no array")
    files[1] = str(tmp_path / "text.npy")
    assert "Data must be a readable .npy file, not" in check_refused(capsys, "run", *at, *files)


@pytest.mark.parametrize(
    ("words", "message"),
    few(
        2,
        [
            ("--job mode=scatter", "Mode must be allgather:"),
            (
                "--job lenght=2",
                "Choice of a job must be one of mode, length, root, operation, not 'l",
            ),
            ("--job length=two", "Length must be "),
            ("--job length=5", "Length must be from 1 to 4 flits, not 5"),
            ("--job mode=1,operation=xor", "Operation must be add or max, not 'xor'"),
            ("--job root=1", "This fabric has one root, which no run chooses; leave root 1 out"),
            (
                "--job length=1,length=2",
                "Job length=1,length=2 gives length more than once",
            ),
            ("-o x.npy", "--output needs --data; give both"),
            ("--build nowhere", "Folder nowhere holds no build"),
        ],
    ),
)
def test_what_cannot_be_run(capsys, words, message):
    """Each mistake in a job or option is refused with one line."""
    at = ["--port", "sim"] + (SELECTION if "--build" not in words else [])
    assert main(["run", *at, *words.split()]) == 1
    assert capsys.readouterr().err.startswith(f"torusfabric: {message}")


def test_port_that_is_not_said(capsys):
    """A missing port and a port that cannot be opened are refused."""
    assert "The serial port is missing; give --port" in check_refused(capsys, "run")
    assert main(["monitor", "--board", "icestick", "--port", "/dev/absent"]) == 1
    assert "Port must be a serial port that can be opened, not /dev/absent" in (
        capsys.readouterr().err
    )


@pytest.mark.long
def test_faulty_image(tmp_path, capsys):
    """A faulty fabric gives the wrong words of its simulation, and `run` refuses the board."""
    program = program_of("2x2", "allgather", "hamiltonian", flits=2)
    faulty = tf.Fabric(misrouted(program), width=16)
    with on_terminal(compiled(faulty, tmp_path)) as path:
        report = ConnectedBoard(faulty, BusAccess(open_port(path))).run()
        assert report.words_wrong == tf.simulate(faulty).words_wrong > 0
        what = ["2x2", "allgather:hamiltonian", "--flits", "2", "--width", "16"]
        assert main(["run", *what, "--port", path]) == 2
    assert "holds another fabric" in capsys.readouterr().err


def test_board_that_is_pulled_out(gateware):
    """A port that disappears is an error of one line."""
    with on_terminal(gateware[0]) as path:
        line = open_port(path)
        board = ConnectedBoard(gateware[1], BusAccess(line))
    with pytest.raises(WorkFailed, match=rf"^The port of the board on {path} failed "):
        board.run()
    line.close()


def test_port_that_cannot_be_opened():
    """A port that does not exist, or is no serial port, is an error of one line."""
    with pytest.raises(
        InputError, match=r"^Port must be .* that can be opened, not /dev/absent \(No such"
    ):
        open_port("/dev/absent")
    with pytest.raises(InputError, match=r"opened, not /dev/null \(Inappropriate ioctl for dev"):
        open_port("/dev/null")
    with pytest.raises(InputError, match=r"can be opened, not '' \(No such file or directory\); "):
        open_port("")


@pytest.fixture
def terminal():
    """The path of a terminal without a program at its other end."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    yield os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("baud", [10**11, 10**23])
def test_baud_rate_that_is_none(terminal, baud):
    """An unknown baud rate is refused."""
    with pytest.raises(
        InputError, match=rf"^Baud rate must be one that the port knows, not {baud}$"
    ):
        open_port(terminal, baud=baud)


def test_port_that_takes_nothing(terminal, monkeypatch):
    """A write to a port that accepts no bytes ends with an error."""
    monkeypatch.setattr(bus_access, "PATIENCE", 0.02)
    with open_port(terminal, baud=10**6) as line:
        with pytest.raises(WorkFailed, match=r"^The port of the board on .* failed \(Write time"):
            BusAccess(line).write(range(0, 40_000, 4), [0] * 10_000)
        line.reset_output_buffer()


def drives(bus, fabric, registers):
    """Run an all-reduce through a client that reads and writes addresses, like those of LiteX."""
    at = {register.name: register.offset for register in registers.registers}
    send, receive = registers.windows
    assert bus.read(0) == 0x746F7275
    assert bus.read(at["digest"]) == fabric.digest
    messages = np.arange(6).reshape(3, 2) * 9
    for node, words in enumerate(messages.tolist()):
        bus.write(send.offset + send.stride * node, words)
    for name, value in {"mode": 1, "length": 2, "operation": 0, "start": 1}.items():
        bus.write(at[name], value)
    assert bus.read(at["status"]) == 2
    assert bus.read(at["cycles"]) == fabric.program.cycles(2, mode=1)
    for node in range(3):
        words = bus.read(receive.offset + receive.stride * node, length=2)
        assert words == messages.sum(0).tolist()


def test_litex_on_the_line(gateware, port):
    """LiteX's CommUART reads and writes the fabric through the gateware."""
    comm_uart = pytest.importorskip("litex.tools.remote.comm_uart")
    bus = comm_uart.CommUART(port)
    try:
        drives(bus, gateware[1], tf.connect("sim", gateware[1]).registers)
        assert bus.read(0, length=3, burst="fixed") == [0x746F7275] * 3
        assert bus.read(4, length=2) == [1, 0]
    finally:
        bus.close()


def test_litex_server(gateware, port, monkeypatch):
    """Clients of litex_server read and write the fabric."""
    litex_server = pytest.importorskip("litex.tools.litex_server")
    from litex.tools.litex_client import RemoteClient
    from litex.tools.remote.comm_uart import CommUART

    # The server calls a deprecated method, and warnings are errors in tests.
    daemonic = lambda thread, daemon: setattr(thread, "daemon", daemon)
    monkeypatch.setattr(threading.Thread, "setDaemon", daemonic)
    server = litex_server.RemoteServer(CommUART(port), "127.0.0.1", 0)
    server.open()
    server.start(1)
    client = RemoteClient(port=server.socket.getsockname()[1])
    client.open()
    with contextlib.closing(client):
        drives(client, gateware[1], tf.connect("sim", gateware[1]).registers)
