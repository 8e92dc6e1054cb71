"""The monitor: commands typed at a terminal, a line at a time, and a board that goes away."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from helpers import fabric_of
from serial_bench import compiled, on_terminal

from torusfabric.errors import InputError, WorkFailed
from torusfabric.fpga.selftest.client import BoardClient
from torusfabric.fpga.selftest.monitor import perform
from torusfabric.fpga.selftest.serial_line import open_port

#: Seconds for an answer, on a machine that has more to do.
PATIENCE = 60

FACTS = {"nodes": 4, "width": 6, "send_base": 0, "send_words": 2, "recv_base": 8, "recv_words": 8}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The image of an all-gather on 2x2, and its fabric."""
    fabric = fabric_of("2x2", "allgather", "hamiltonian", width=12, flits=2)
    return compiled(fabric, tmp_path_factory.mktemp("image")), fabric


class Unattached(BoardClient):
    """A board that is known, and to which nothing can be sent."""

    def __init__(self):
        self.facts = FACTS


class Typist:
    """A person at a terminal: types, and reads up to what is waited for."""

    def __init__(self, *command):
        ours, theirs = pty.openpty()
        self._terminal = ours
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)

    def type(self, text):
        """Type, and press enter."""
        os.write(self._terminal, text.encode() + b"\n")

    def read_to(self, wanted):
        """What is said up to some words."""
        said, end = "", time.monotonic() + PATIENCE
        while wanted not in said:
            assert time.monotonic() < end, said
            if select.select([self._terminal], [], [], 1)[0]:
                said += os.read(self._terminal, 1).decode()
        return said

    def leave(self, key):
        """Press a last key, and return the exit status."""
        os.write(self._terminal, key)
        return self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


def monitor(port):
    """A person at the monitor."""
    return Typist(sys.executable, "-m", "torusfabric", "monitor", port)


def test_typed_commands(image):
    """What is typed is done, mistakes are answered, and the end of input is the end."""
    program, fabric = image
    base = fabric.layout.recv_base
    with on_terminal(program) as port, monitor(port) as person:
        said = person.read_to("torusfabric> ")
        assert re.search(r"^topology +2x2\r$", said, re.MULTILINE)
        assert "commands: info, test [RUNS], " in said
        answers = {
            "test 2": f"pass, {fabric.predicted_cycles} cycles as predicted",
            "": "",
            "write 1 0 a5 5a": "wrote 2 words",
            "start": f"done in {fabric.predicted_cycles} cycles",
            f"read 3 {base + 2} 2": "0a5 05a",
            "jump": "Command must be info, test [RUNS], ",
            "read 4 0": "Node must be from 0 to 3, not 4",
        }
        for typed, answer in answers.items():
            person.type(typed)
            assert answer in person.read_to("torusfabric> ").partition("\n")[2], typed
        assert person.leave(b"\x04") == 0


@pytest.mark.long
def test_quit(image):
    """The word quit ends the monitor; an interrupt does, with its own status."""
    with on_terminal(image[0]) as port:
        with monitor(port) as person:
            person.read_to("torusfabric> ")
            assert person.leave(b"quit\n") == 0
        with monitor(port) as person:
            person.read_to("torusfabric> ")
            # Between its prompt and its wait for a key, readline lets a signal lie until the key.
            time.sleep(0.5)
            person.process.send_signal(2)
            assert person.process.wait(PATIENCE) == 130
            assert "torusfabric: interrupted" in person.read_to("interrupted")


def test_board_that_is_pulled_out(image):
    """A port that goes away is one line."""
    with on_terminal(image[0]) as path:
        port = open_port(path)
        client = BoardClient(port)
    with pytest.raises(WorkFailed, match=rf"^Board on {path} must stay attached, but its port fai"):
        client.read(0, 8)
    port.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Command must be info, test .*, not ''"),
        ("read 1", "Command must be info, test .*, not 'read 1'$"),
        ("raed 1 0", r"Command must be info, test .*, not 'raed 1 0' \(did you mean read\?\)"),
        ("test two", "Numbers of a command must be whole numbers, not 'test two'"),
        ("read 4 8", "Node must be from 0 to 3, not 4"),
        ("read 0 7", "Address must be from 8 to 15 to read a receive memory, not 7"),
        ("read 0 15 2", "Address must be from 8 to 15 to read a receive memory, not 16"),
        ("read 0 8 0", "Count must be at least 1, not 0"),
        ("write 0 8 1", "Address must be from 0 to 1 to write a send memory, not 8"),
        ("write 0 0 40", r"Word must be from 0 to 3f \(hexadecimal\), not 40"),
        ("write 0 0 -1", r"Word must be from 0 to 3f \(hexadecimal\), not -1"),
    ],
)
def test_misfit_commands(text, message):
    """What does not fit the board is refused before anything is sent to it."""
    with pytest.raises(InputError, match=f"^{message}$"):
        perform(Unattached(), text)
