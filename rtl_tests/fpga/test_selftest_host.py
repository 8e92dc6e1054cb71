"""The host's side of the self-test: data, verdicts, and images behind a pseudo-terminal."""

import json
import os
import pty
import re
import tty

import numpy as np
import pytest
from helpers import expected_words, fabric_of, misrouted, random_messages
from selftest_bench import COLLECTIVES, REDUCTIONS
from serial_bench import compiled, on_terminal

from torusfabric.cli import main
from torusfabric.collective import Operator
from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.selftest import serial_line
from torusfabric.fpga.selftest.client import BoardClient
from torusfabric.fpga.selftest.data import expected_data, send_data
from torusfabric.fpga.selftest.facts import facts_of
from torusfabric.fpga.selftest.serial_line import SerialLine, open_port
from torusfabric.fpga.selftest.tester import host_port
from torusfabric.fpga.selftest.verdict import Verdict


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), [*COLLECTIVES, *REDUCTIONS]
)
@pytest.mark.parametrize("width", [8, 13])
def test_what_the_host_expects(topology, collective, algorithm, options, width):
    """The host knows from the facts of the board what every node must receive."""
    fabric = fabric_of(topology, collective, algorithm, width=width, **options)
    messages = random_messages(fabric, 3)
    expected, receiving = expected_words(fabric.program, messages, width=width)
    facts = json.loads(json.dumps(facts_of(fabric)))
    words, receives = expected_data(send_data(messages.astype(int), facts), facts)
    assert (receives == receiving).all()
    assert (words[receives] == expected[receives]).all()


FACTS = {"nodes": 4, "send_words": 2, "width": 12}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((4, 2)), "Data must be unsigned integers, not float64"),
        (np.zeros((3, 2), int), "Data must be of shape (4, 2): nodes, words; not (3, 2)"),
        (np.zeros(8, int), "Data must be of shape (4, 2): nodes, words; not (8,)"),
        (np.full((4, 2), 4096), "Data must be from 0 to 4095, not 4096"),
        (np.full((4, 2), -1), "Data must be from 0 to 4095, not -1"),
    ],
)
def test_data_that_does_not_fit(data, message):
    """Data that does not fit the board is refused before a word is sent."""
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        send_data(data, FACTS)


def test_verdicts():
    """Lines of the board are read, and anything else is not taken for one."""
    line = "fail run=000a cycles=10 predicted=10 node=3 address=22 expected=a5 got=a4"
    verdict = Verdict.parse(line)
    assert verdict is not None
    assert (verdict.run, verdict.node, verdict.address, verdict.got) == (10, 3, 0x22, 0xA4)
    facts = {"recv_base": 0x20, "flits": 2, "recv_words": 8}
    assert verdict.describe(facts) == (
        "run 10: node 3 holds 0xa4 for flit 0 of node 1 (address 34), not 0xa5"
    )
    assert verdict.describe(facts | {"operator": "add"}).startswith(
        "run 10: node 3 holds 0xa4 as sum 0 (address 34), not 0xa5"
    )
    late = Verdict.parse("late run=0001 cycles=14 predicted=4")
    assert late is not None
    assert late.describe(facts) == "run 1: 20 cycles, not 4"
    assert Verdict.parse("pass") is None
    assert Verdict.parse("pass luck=1") is None


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    """A board with an all-gather on 3x3 behind a pseudo-terminal."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", width=12, flits=2)
    with on_terminal(compiled(fabric, tmp_path_factory.mktemp("image"))) as port:
        yield fabric, port


def test_client(board):
    """A host writes any node's words, starts, and reads any node's."""
    fabric, port = board
    with open_port(port) as line:
        client = BoardClient(line)
        assert client.facts == json.loads(json.dumps(facts_of(fabric)))
        first = client.test(3)
        assert first.passed
        assert first.cycles == first.predicted == fabric.predicted_cycles
        assert client.status() == first
        assert client.test().run == first.run + 1
        messages = random_messages(fabric, 5).astype(int)
        words, cycles = client.run(messages)
        assert cycles == fabric.predicted_cycles
        assert words.dtype == np.uint16
        assert (words == messages.reshape(1, -1)).all()
        client.write(4, 1, [0xABC])
        client.start()
        assert client.read(7, fabric.layout.recv_base + 9) == [0xABC]


def test_help_for_those_who_type(board):
    """A command that there is not is answered with all that there are."""
    _, port = board
    with open_port(port) as line:
        BoardClient(line)
        line.timeout = 60
        line.write(b"x")
        assert line.readline().startswith(b"commands: HEX n node, ")


def test_monitor(board, capsys):
    """The monitor carries out commands, for people and for programs."""
    fabric, port = board
    base = fabric.layout.recv_base
    asked = ["test 2", "write 1 0 a5 5a", "start", f"read 8 {base + 2} 2"]
    options = [part for command in asked for part in ("-c", command)]
    assert main(["monitor", port, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"run \d+: pass, {fabric.predicted_cycles} cycles as predicted", lines[0])
    assert lines[1:] == ["wrote 2 words", f"done in {fabric.predicted_cycles} cycles", "0a5 05a"]
    assert main(["monitor", port, "--json", *options]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [r["command"] for r in results] == asked
    assert results[3]["words"] == [0xA5, 0x5A]
    assert main(["monitor", port, "-c", "jump"]) == 1
    assert capsys.readouterr().err.startswith("torusfabric: Command must be info, test [RUNS], ")


def test_run(board, capsys, tmp_path):
    """Real data goes through the board and comes back gathered."""
    fabric, port = board
    data = random_messages(fabric, 7).astype(np.uint16)
    np.save(tmp_path / "data.npy", data)
    files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "gathered.npy")]
    assert main(["run", port, *files, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["cycles"], result["words_wrong"]) == (fabric.predicted_cycles, 0)
    assert result["words_checked"] == 9 * 18
    gathered = np.load(tmp_path / "gathered.npy")
    assert gathered.shape == (9, 18)
    assert (gathered == data.reshape(1, -1)).all()
    (tmp_path / "text.npy").write_text("no array")
    assert main(["run", port, str(tmp_path / "text.npy"), *files[1:]]) == 1
    assert "Data must be a readable .npy file, not" in capsys.readouterr().err


@pytest.mark.long
def test_sums_on_a_board(tmp_path, capsys):
    """Arrays go through a reduction as well: a row for each node in, and its share of sums out."""
    operator = Operator.parse("min:signed")
    fabric = fabric_of("2x2", "reduce-scatter", "matching", width=12, flits=2, operator=operator)
    data = random_messages(fabric, 7).astype(np.uint16)
    np.save(tmp_path / "data.npy", data.reshape(4, 4, 2))
    files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "sums.npy")]
    with on_terminal(compiled(fabric, tmp_path)) as port:
        assert main(["run", port, *files, "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert main(["monitor", port, "-c", "test 20", "-c", "info"]) == 0
        said = capsys.readouterr().out
    assert (result["operator"], result["signed"]) == ("min", True)
    assert (result["words_checked"], result["words_wrong"]) == (8, 0)
    signed = (data.astype(int) ^ 0x800) - 0x800
    assert (np.load(tmp_path / "sums.npy") == signed.min(0).reshape(4, 2) % 4096).all()
    assert re.search(r"^run \d+: pass, .*\n(.*\n)*operator +min\n", said)


def test_port_that_cannot_be_opened(tmp_path):
    """A port that does not exist is one line."""
    with pytest.raises(
        InputError, match=r"^Port must be .* that can be opened, not /dev/absent \(No such"
    ):
        open_port("/dev/absent")
    with pytest.raises(InputError, match=r"opened, not /dev/null \(Inappropriate ioctl for dev"):
        open_port("/dev/null")
    with pytest.raises(InputError, match=r"can be opened, not '' \(No such file or directory\)$"):
        open_port("")


@pytest.mark.parametrize("baud", [10**11, 10**23])
def test_baud_rate_that_is_none(baud):
    """A number beyond all rates is refused."""
    ours, theirs = pty.openpty()
    with pytest.raises(
        InputError, match=rf"^Baud rate must be one that the port knows, not {baud}$"
    ):
        open_port(os.ttyname(theirs), baud=baud)
    os.close(ours)
    os.close(theirs)


class Port:
    """A port at whose other end is something else than a board, or nothing.

    It says something at first and, where it has been asked, an answer; a talker never stops.
    """

    name = "ttyX"

    def __init__(self, said=b"", answer=b"", *, talks=False):
        self._left, self.said, self.answer, self.talks = said, said, answer, talks

    def read(self, size):
        if self.talks and not self._left:
            self._left = self.said
        first, self._left = self._left[:size], self._left[size:]
        return first

    def write(self, data):
        self._left += self.answer
        return len(data)


@pytest.fixture
def impatient(monkeypatch):
    """Wait for nothing that will not come."""
    monkeypatch.setattr(serial_line, "PATIENCE", 0.02)
    monkeypatch.setattr(serial_line, "TALKING", 0.02)


@pytest.mark.parametrize(
    ("port", "message"),
    [
        (Port(), "identify itself, not be silent: is the image"),
        (Port(answer=b"OK\r\n"), "identify itself, not answer 'OK': is the image on it, and"),
        (Port(answer=b"x" * 5000), "identify itself, not answer 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        (Port(b"hello\n", talks=True), r"fall silent to be asked .* \(b'hello\\n'\)"),
        (Port(b"\x00", talks=True), r"fall silent to be asked what it is, not keep talking \(b"),
    ],
)
def test_port_without_a_board(impatient, port, message):
    """Nothing at the other end, something else, and somebody who never stops are one line each."""
    with pytest.raises(WorkFailed, match=rf"^Board on ttyX must {message}"):
        BoardClient(port)


FACTS_OF_A_BOARD = {
    "torusfabric": "0.1", "topology": "2x2", "collective": "allgather", "algorithm": "hamiltonian",
    "nodes": 4, "width": 6, "flits": 2, "send_base": 0, "send_words": 2, "recv_base": 8,
    "recv_words": 8, "predicted_cycles": 5, "root": None,
}  # fmt: skip


def client_of(answer, **changes):
    """A client of a board that gives the same answer to everything but the first question."""
    port = Port(answer=json.dumps(FACTS_OF_A_BOARD | changes).encode() + b"\n")
    client = BoardClient(port)
    port.answer, port.talks, port.said = answer, bool(answer), answer
    return client


def test_answer_without_an_end(impatient):
    """A line that does not end, and a board that falls silent in it, are told apart."""
    with pytest.raises(WorkFailed, match=r"^Board must answer in lines, not go on and on \(b'0a5"):
        client_of(b"0a5").read(0, 8)
    with pytest.raises(WorkFailed, match=r"^Board must answer within 0\.02 s, not be silent$"):
        client_of(b"").read(0, 8)


@pytest.mark.parametrize("word", [b"40\n", b"x\n", b"pass run=1\n"])
def test_word_that_is_none(word):
    """A word wider than a flit, and what is no word, are not taken for one."""
    with pytest.raises(WorkFailed, match=r"^Board must answer a word of 6 bits, not '"):
        client_of(word).read(0, 8)


def test_facts_of_another_version():
    """A board that does not say all that is needed is one line."""
    message = r"^Board must say its nodes, a whole number from 2 on, not None: its image is of tor"
    with pytest.raises(WorkFailed, match=message):
        client_of(b"", nodes=None)
    with pytest.raises(WorkFailed, match=r"^Board must say its topology, not 7$"):
        client_of(b"", topology=7)


def test_port_that_takes_nothing(impatient):
    """What is sent is not waited for without an end."""
    ours, theirs = pty.openpty()
    try:
        tty.setraw(theirs)
        with open_port(os.ttyname(theirs), baud=10**6) as port:
            line = SerialLine(port)
            with pytest.raises(WorkFailed, match=r"^Board on .* must take what it is sent, not le"):
                line.send("0" * 100_000)
            port.reset_output_buffer()
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"), [*COLLECTIVES, *REDUCTIONS]
)
def test_images_of_all_collectives(tmp_path, topology, collective, algorithm, options):
    """Behind a pseudo-terminal every collective passes, and carries data."""
    fabric = fabric_of(topology, collective, algorithm, width=16, **options)
    with on_terminal(compiled(fabric, tmp_path)) as port, open_port(port) as line:
        client = BoardClient(line)
        assert client.test(20).passed
        messages = random_messages(fabric, 5).astype(np.uint16)
        words, _ = client.run(messages)
        expected, receives = expected_data(messages, client.facts)
        assert (words[receives] == expected[receives]).all()


@pytest.mark.long
def test_faulty_image(tmp_path):
    """With a faulty fabric the test fails, and so does sending data."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=16, flits=2, fault=misrouted)
    with on_terminal(compiled(fabric, tmp_path)) as port:
        assert main(["monitor", port, "-c", "test"]) == 2
        np.save(tmp_path / "data.npy", np.arange(8).reshape(4, 2))
        files = [str(tmp_path / "data.npy"), "-o", str(tmp_path / "gathered.npy")]
        assert main(["run", port, *files]) == 2
    assert set(host_port(fabric).members) >= {"start", "done"}
