"""The host side: commands for a board that carries the image."""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError, WorkFailed
from ...toolchain.notices import said_meanwhile
from .data import send_data
from .facts import Facts, checked_facts
from .job_facts import NO_CHOICES, job_facts
from .jobs import LETTERS
from .serial_line import ADVICE, SerialLine, SerialPort
from .verdict import Verdict

__all__ = ["BoardClient"]

#: Seconds without a byte after which a board that tests itself is taken for dead.
PATIENCE_TESTING = 60.0

#: How many words it may compute meanwhile: a few seconds' work.
WORDS_TESTED = 1_000_000

#: Seconds after which a test says that it is still going on.
SILENT = 5.0

#: How often a board is asked what it is.
ATTEMPTS = 3

#: Words asked for at once; the board counts them in 16 bits.
BATCH = 1024

#: Tests asked for at once, for the same reason.
MOST_RUNS = 0xFFFF


class BoardClient:
    """A board at the other end of a serial line.

    Parameters
    ----------
    port : SerialPort
        From `open_port`, or anything else that reads, writes and has a `name`.

    Attributes
    ----------
    facts : dict
        What the board says it is: topology, collective, nodes, width, flits, ..

    Raises
    ------
    WorkFailed
        If nothing answers, or something else than our image, or there is no end to what it says.
    """

    def __init__(self, port: SerialPort) -> None:
        self._line = SerialLine(port)
        self.facts = self._ask_facts()

    def _ask_facts(self) -> Facts:
        """Ask the board what it is."""
        answer = ""
        # It may be in the middle of a line, and hears nothing until the end of it.
        for _ in range(ATTEMPTS):
            self._line.drain()
            self._line.send("i")
            answer = self._line.receive_any()
            if answer.startswith('{"torusfabric"'):
                with contextlib.suppress(ValueError):
                    return checked_facts(json.loads(answer))
        instead = f"answer {answer[:40]!r}" if answer else "be silent"
        raise WorkFailed(
            f"Board on {self._line.name} must identify itself, not {instead}: {ADVICE}"
        )

    def write(self, node: int, address: int, words: Iterable[int]) -> None:
        """Write words into a node's memory, from an address on."""
        digits = "".join(f"{int(word):x}w" for word in words)
        self._line.send(f"{node:x}n{address:x}p{digits}")

    def read(self, node: int, address: int, count: int = 1) -> list[int]:
        """Read so many words of a node's memory, from an address on."""
        words: list[int] = []
        self._line.send(f"{node:x}n{address:x}p")
        while len(words) < count:
            batch = min(BATCH, count - len(words))
            self._line.send(f"{batch:x}r")
            for _ in range(batch):
                words.append(self._word(self._line.receive()))
        return words

    def _word(self, line: str) -> int:
        """The word in a line of the board."""
        word = int(line, 16) if re.fullmatch("[0-9a-f]+", line) else -1
        if word < 0 or word >> self.facts["width"]:
            raise WorkFailed(
                f"Board must answer a word of {self.facts['width']} bits, not {line[:60]!r}"
            )
        return word

    def start(self, job: Mapping[str, int] = NO_CHOICES) -> int:
        """Run the fabric once on what is in its memories; returns the cycles it took.

        Parameters
        ----------
        job : dict of str to int
            What the run chooses, where the board leaves a choice; see `job_facts`.

        Raises
        ------
        WorkFailed
            If the cycles are not those predicted, or the run is refused.
        """
        facts = job_facts(self.facts, job)
        chosen = (f"{value:x}{LETTERS[name]}" for name, value in facts["job"].items())
        self._line.send("".join([*chosen, "s"]))
        answer = self._line.receive()
        if answer.startswith("refused"):
            raise WorkFailed(f"Board must carry out a run, not answer {answer!r}")
        match = re.fullmatch(r"done cycles=([0-9a-f]+)( .*)?", answer)
        cycles = int(match[1], 16) if match else None
        predicted = facts["predicted_cycles"]
        if cycles is None or cycles != predicted:
            raise WorkFailed(f"Cycles must be {predicted}, not {cycles}")
        return cycles

    def test(self, runs: int = 1) -> Verdict:
        """Let the board test itself, up to the first fault."""
        if runs < 1:
            raise InputError(f"Runs must be at least 1, not {runs}")
        most, asked = min(max(WORDS_TESTED // _words_of_a_test(self.facts), 1), MOST_RUNS), runs
        said = said_meanwhile("testing", f"{asked} runs", after=SILENT)
        with self._line.patient(PATIENCE_TESTING), said:
            while True:
                batch = min(runs, most)
                self._line.send(f"{batch:x}t")
                verdict, runs = self._verdict(), runs - batch
                if not verdict.passed or not runs:
                    return verdict

    def status(self) -> Verdict:
        """The result of the last test."""
        self._line.send("q")
        return self._verdict()

    def _verdict(self) -> Verdict:
        """Receive the result of a test."""
        line = self._line.receive()
        verdict = Verdict.parse(line)
        if verdict is None:
            raise WorkFailed(f"Board must answer the result of a test, not {line[:60]!r}")
        return verdict

    def run(
        self,
        data: ArrayLike,
        job: Mapping[str, int] = NO_CHOICES,
        *,
        progress: Callable[[int, int], object] | None = None,
    ) -> tuple[NDArray[np.unsignedinteger[Any]], int]:
        """Send data through the fabric.

        Parameters
        ----------
        data : array of int, shape (nodes, send words)
        job : dict of str to int
            As of `start`.
        progress : function of (done, total), optional

        Returns
        -------
        words : ndarray, shape (nodes, receive words)
            What each node has received.
        cycles : int
        """
        facts, progress = job_facts(self.facts, job), progress or (lambda done, total: None)
        nodes, messages = facts["nodes"], send_data(data, facts)
        for node, words in enumerate(messages.tolist()):
            for first, address, count in _pieces(facts, "send"):
                self.write(node, address, words[first : first + count])
            progress(node + 1, 2 * nodes)
        cycles = self.start(job)
        received = np.zeros((nodes, facts["recv_words"]), messages.dtype)
        for node in range(nodes):
            for first, address, count in _pieces(facts, "recv"):
                received[node, first : first + count] = self.read(node, address, count)
            progress(nodes + node + 1, 2 * nodes)
        return received, cycles


def _pieces(facts: Facts, memory: str) -> Iterator[tuple[int, int, int]]:
    """Words of a node that follow one another in its memory: the first, its address, how many."""
    words, base = facts[f"{memory}_words"], facts[f"{memory}_base"]
    if facts["flits"] == facts["stride"]:
        yield 0, base, words
        return
    for part, first in enumerate(range(0, words, facts["flits"])):
        yield first, base + part * facts["stride"], facts["flits"]


def _words_of_a_test(facts: Facts) -> int:
    """How many words a board computes to test itself once: a sum is made of one of every node."""
    reducing = "operator" in facts or any(mode["operators"] for mode in facts.get("modes", []))
    terms = facts["nodes"] if reducing else 1
    return int(facts["nodes"] * (facts["send_words"] + terms * facts["recv_words"]))
