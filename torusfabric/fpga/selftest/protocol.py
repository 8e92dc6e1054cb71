"""The host side: talks to a board that carries the image, over a serial port.

Serial ports are opened with pyserial, because rates, raw mode and time limits are set differently
on every system; it takes any path, a pseudo-terminal's too.
"""

import contextlib
import json
import re
from dataclasses import dataclass

import numpy as np
import serial

from ...collective import Operator
from ...errors import InputError, WorkFailed
from . import BAUD

__all__ = ["Console", "Verdict", "open_port", "owed"]

#: Seconds without a byte after which a board is taken for dead.
PATIENCE = 2.0

#: The same while it tests itself, and how many words it may compute meanwhile: a few seconds' work.
PATIENCE_TESTING = 60.0
WORDS_TESTED = 1_000_000

#: Seconds without a byte after which a board has said all it has to say.
QUIET = 0.05

#: How often a board is asked what it is.
ATTEMPTS = 3

#: Words asked for at once; the board counts them in 16 bits.
BATCH = 1024

#: Tests asked for at once, for the same reason.
MOST_RUNS = 0xFFFF


def open_port(path, *, baud=BAUD):
    """Open a serial port.

    Raises
    ------
    InputError
        If it cannot be opened.
    """
    try:
        return serial.Serial(path, baud, timeout=PATIENCE)
    except (OSError, ValueError, serial.SerialException) as error:
        reason = re.sub(r"^.*\[Errno \d+\] ([^:']+).*$", r"\1", str(error)).strip()
        raise InputError(
            f"Port must be a serial port that can be opened, not {path} ({reason})"
        ) from None


@dataclass(frozen=True)
class Verdict:
    """What the board says of its last test.

    Parameters
    ----------
    result : str
        ``pass``; ``fail``: a word is wrong; ``late``: the fabric was not done when predicted.
    run : int
        Number of the run.
    cycles, predicted : int
    node, place, expected, got : int or None
        The first wrong word.
    """

    result: str
    run: int
    cycles: int
    predicted: int
    node: int | None = None
    place: int | None = None
    expected: int | None = None
    got: int | None = None

    @classmethod
    def parse(cls, line):
        """What a line of the board says, or None if it is no verdict."""
        match = re.match(r"(pass|fail|late)((?: \w+=[0-9a-f]+)+)$", line)
        if match is None:
            return None
        pairs = (pair.split("=") for pair in match[2].split())
        try:
            return cls(match[1], **{name: int(value, 16) for name, value in pairs})
        except TypeError:
            return None

    @property
    def passed(self):
        """Whether all words were right, and in time."""
        return self.result == "pass"

    def describe(self, facts):
        """One line for people."""
        if self.passed:
            return f"run {self.run}: pass, {self.cycles} cycles as predicted"
        if self.result == "late":
            return f"run {self.run}: {self.cycles} cycles, not {self.predicted}"
        origin, flit = divmod(self.place - facts["recv_base"], facts["flits"])
        of = f" of node {origin}" if facts["recv_words"] > facts["flits"] else ""
        what = f"as sum {flit}" if "operator" in facts else f"for flit {flit}{of}"
        return (
            f"run {self.run}: node {self.node} holds {self.got:#x} {what} "
            f"(address {self.place}), not {self.expected:#x}"
        )


class Console:
    """A board's console.

    Parameters
    ----------
    port : serial.Serial
        Or anything else that reads, writes and has a `timeout` and a `name`.

    Attributes
    ----------
    facts : dict
        What the board says it is: topology, collective, nodes, width, flits, ..

    Raises
    ------
    WorkFailed
        If nothing answers, or something else than our image.
    """

    def __init__(self, port):
        self._port = port
        self.facts = self._info()

    def _info(self):
        # It may be in the middle of a line, and hears nothing until the end of it.
        for _ in range(ATTEMPTS):
            self._drain()
            self._send("i")
            with self._attached():
                line = self._port.readline().decode("ascii", "replace").strip()
            if line.startswith('{"torusfabric"'):
                with contextlib.suppress(ValueError):
                    return json.loads(line)
        said = f"it said {line[:40]!r}" if line else "it was silent"
        raise WorkFailed(
            f"Board on {self._port.name} must tell what it is, but {said}: is the image on it, and "
            "are port and baud rate right?"
        )

    def _drain(self):
        """Wait until nothing is said any more."""
        patience, self._port.timeout = self._port.timeout, QUIET
        with self._attached():
            while self._port.read(256):
                pass
        self._port.timeout = patience

    def _send(self, text):
        with self._attached():
            self._port.write(text.encode())

    @contextlib.contextmanager
    def _attached(self):
        """Where the port may fail because the board is pulled out."""
        try:
            yield
        except OSError as error:
            raise WorkFailed(
                f"Board on {self._port.name} must stay attached, but its port failed ({error})"
            ) from None

    def _line(self):
        with self._attached():
            line = self._port.readline()
        if not line.endswith(b"\n"):
            said = f" after {line!r}" if line else ""
            raise WorkFailed(
                f"Board must answer within {self._port.timeout:g} s, but was silent{said}"
            )
        return line.decode("ascii", "replace").strip()

    def write(self, node, place, words):
        """Write words into a node's memory, from a place on."""
        digits = "".join(f"{int(word):x}w" for word in words)
        self._send(f"{node:x}n{place:x}p{digits}")

    def read(self, node, place, count=1):
        """Read words of a node's memory, from a place on; returns a list."""
        words: list[int] = []
        self._send(f"{node:x}n{place:x}p")
        while len(words) < count:
            batch = min(BATCH, count - len(words))
            self._send(f"{batch:x}r")
            for _ in range(batch):
                line = self._line()
                if not re.fullmatch("[0-9a-f]+", line):
                    raise WorkFailed(f"Board must answer a word, not {line[:60]!r}")
                words.append(int(line, 16))
        return words

    def start(self):
        """Run the fabric once on what is in its memories; returns the cycles it took.

        Raises
        ------
        WorkFailed
            If the cycles are not those predicted.
        """
        self._send("s")
        match = re.fullmatch(r"done cycles=([0-9a-f]+) .*", self._line())
        cycles = int(match[1], 16) if match else None
        if cycles != self.facts["predicted_cycles"]:
            raise WorkFailed(f"Cycles must be {self.facts['predicted_cycles']}, not {cycles}")
        return cycles

    def test(self, runs=1):
        """Let the board test itself, up to the first fault; returns a `Verdict`."""
        if runs < 1:
            raise InputError(f"Runs must be at least 1, not {runs}")
        most = min(max(WORDS_TESTED // _words_of_a_test(self.facts), 1), MOST_RUNS)
        patience, self._port.timeout = self._port.timeout, PATIENCE_TESTING
        try:
            while True:
                batch = min(runs, most)
                self._send(f"{batch:x}t")
                verdict, runs = self._verdict(), runs - batch
                if not verdict.passed or not runs:
                    return verdict
        finally:
            self._port.timeout = patience

    def status(self):
        """The `Verdict` of the last test."""
        self._send("q")
        return self._verdict()

    def _verdict(self):
        line = self._line()
        verdict = Verdict.parse(line)
        if verdict is None:
            raise WorkFailed(f"Board must tell the result of a test, not {line[:60]!r}")
        return verdict

    def run(self, messages, *, progress=None):
        """Send data through the fabric.

        Parameters
        ----------
        messages : ndarray of unsigned int, shape (nodes, send words)
        progress : function of (done, total), optional

        Returns
        -------
        words : ndarray, shape (nodes, receive words)
            What each node has received.
        cycles : int
        """
        facts, progress = self.facts, progress or (lambda done, total: None)
        nodes = facts["nodes"]
        messages = fitting(messages, facts)
        for node, words in enumerate(messages.tolist()):
            self.write(node, facts["send_base"], words)
            progress(node + 1, 2 * nodes)
        cycles = self.start()
        received = np.zeros((nodes, facts["recv_words"]), messages.dtype)
        for node in range(nodes):
            received[node] = self.read(node, facts["recv_base"], facts["recv_words"])
            progress(nodes + node + 1, 2 * nodes)
        return received, cycles


def _words_of_a_test(facts):
    """How many words a board computes to test itself once: a sum is made of one of every node."""
    terms = facts["nodes"] if "operator" in facts else 1
    return facts["nodes"] * (facts["send_words"] + terms * facts["recv_words"])


def fitting(messages, facts):
    """Data as an array of the shape and the smallest type that fit a board.

    Raises
    ------
    InputError
        If they do not fit.
    """
    nodes, words, width = facts["nodes"], facts["send_words"], facts["width"]
    if width > 64:
        raise InputError(f"Data in arrays must be for boards of up to 64 bits a flit, not {width}")
    messages = np.asarray(messages)
    if not np.issubdtype(messages.dtype, np.integer):
        raise InputError(f"Data must be unsigned integers, not {messages.dtype}")
    if messages.ndim < 2 or messages.shape[0] != nodes or messages.size != nodes * words:
        raise InputError(
            f"Data must be of shape ({nodes}, {words}): nodes, words; not {messages.shape}"
        )
    if messages.min() < 0 or int(messages.max()) >> width:
        worst = messages.min() if messages.min() < 0 else messages.max()
        raise InputError(f"Data must be from 0 to {(1 << width) - 1}, not {worst}")
    size = next(bits for bits in (8, 16, 32, 64) if bits >= width)
    return messages.reshape(nodes, words).astype(f"u{size // 8}")


def owed(messages, facts):
    """What the collective owes every node that it owes something.

    Returns
    -------
    nodes : list of int
    words : ndarray, shape (len(nodes), receive words)
    """
    nodes, kind, root = facts["nodes"], facts["collective"], facts["root"]
    everyone = list(range(nodes))
    if "operator" in facts:
        return _owed_sums(messages, facts)
    if kind in ("allgather", "gather"):
        whole = messages.reshape(1, -1)
        return (everyone, np.repeat(whole, nodes, 0)) if kind == "allgather" else ([root], whole)
    if kind == "broadcast":
        return everyone, np.repeat(messages[root : root + 1], nodes, 0)
    personal = messages.reshape(nodes, nodes, -1)  # origin, destination, flit
    if kind == "scatter":
        return everyone, personal[root]
    return everyone, personal.swapaxes(0, 1).reshape(nodes, -1)


def _owed_sums(messages, facts):
    """What a reduction owes, as `owed` does."""
    nodes, kind = facts["nodes"], facts["collective"]
    sums = Operator(facts["operator"], facts["signed"]).reduce(messages, facts["width"])
    if kind == "reduce":
        return [facts["root"]], sums[None]
    everyone = list(range(nodes))
    if kind == "allreduce":
        return everyone, np.repeat(sums[None], nodes, 0)
    return everyone, sums.reshape(nodes, -1)
