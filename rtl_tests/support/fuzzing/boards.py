"""Bytes on the serial line: what a board answers to a host, and what a host sends to a board."""

import json
import os
import random
import select
import subprocess
import time
from pathlib import Path
from typing import ClassVar, NamedTuple
from unittest import mock

import numpy as np
from serial_bench import compiled

import torusfabric as tf
from torusfabric.fpga.selftest import serial_line
from torusfabric.fpga.selftest.client import BoardClient
from torusfabric.fpga.selftest.data import expected_data, send_data
from torusfabric.fpga.selftest.facts import facts_of
from torusfabric.fpga.selftest.job_facts import describe_job, job_facts
from torusfabric.fpga.selftest.monitor import perform
from torusfabric.rtl.fabric import Fabric

from .mutation import NASTY_NUMBERS, changed_bytes, changed_value, nasty
from .oracle import Fuzzer

__all__ = ["BoardFuzzer", "ImageFuzzer"]

#: What a board may answer, in the form in which it does.
ANSWERS = (
    "pass run=0001 cycles={n:x} predicted={n:x}", "done cycles={n:x}", "{n:x}", "refused error=3",
    "late run=0001 cycles=14 predicted=4", "commands: HEX n node",
    "fail run=000a cycles={n:x} predicted=10 node=3 address=22 expected=a5 got=a4",
    "pass run=0001 mode=1 length=2 cycles={n:x} predicted={n:x}",
)  # fmt: skip

#: What is asked of it.
COMMANDS = (
    "info",
    "test",
    "test {b}",
    "status",
    "write {a} {b} {c:x}",
    "read {a} {b}",
    "read {a} {b} {c}",
    "start",
    "start mode={a}",
    "start length={b} root={a}",
    "start operation={c}",
    "start mode=broadcast",
    "{t}",
    "{t} {a}",
)

#: Seconds after which an image is quiet, and after which it has no answer any more.
QUIET, LONGEST_ANSWER = 0.2, 20.0


def fabrics() -> list[Fabric]:
    """A fabric of one run, and one whose runs leave every choice."""
    gather, reduce = tf.plan("2x2", "allgather"), tf.plan("2x2", "allreduce")
    several = tf.compile([gather, reduce, tf.plan("2x2", "broadcast")], max_flits=4,
                         operators=["add", "max"])  # fmt: skip
    return [tf.Fabric(tf.compile(gather, flits=2), width=8), tf.Fabric(several, width=8)]


class Conversation(NamedTuple):
    """What a board says it is, what it answers to all else, and what it is asked."""

    identity: bytes
    answers: tuple[bytes, ...]
    commands: tuple[str, ...]
    data: bool


class _Port:
    """The port of a board that answers whatever it likes; time passes when nothing comes."""

    name = "port"

    def __init__(self, given: Conversation) -> None:
        self.given, self.waiting, self.now, self.sent = given, b"", 0.0, 0

    def write(self, data: bytes) -> None:
        """Answer."""
        if data == b"i":
            self.waiting += self.given.identity
        elif self.given.answers:
            self.waiting += self.given.answers[self.sent % len(self.given.answers)]
            self.sent += 1

    def read(self, size: int) -> bytes:
        """What the board has said, if anything is left."""
        said, self.waiting = self.waiting[:size], self.waiting[size:]
        self.now += 1e-4 if said else 0.05
        return said

    def monotonic(self) -> float:
        """The time."""
        return self.now


class BoardFuzzer(Fuzzer):
    """A host takes what a board says for what it is, or refuses it."""

    name = "board"
    weight = 100

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.facts = [json.loads(json.dumps(facts_of(fabric))) for fabric in fabrics()]

    def make(self, draw: random.Random) -> Conversation:
        facts = draw.choice(self.facts)
        if draw.random() < 0.6:
            facts = changed_value(facts, draw)
        try:
            identity = json.dumps(facts, separators=(",", ":")).encode() + b"\n"
        except ValueError:  # a number of too many digits
            identity = b'{"torusfabric":' + b"9" * 5000 + b"}\n"
        if draw.random() < 0.2:
            identity = changed_bytes(identity, draw)
        answers = tuple(self._answer(draw) for _ in range(draw.choice([0, 1, 1, 2, 5])))
        numbers, few = (*NASTY_NUMBERS[:12], *range(4)), (*NASTY_NUMBERS[:9], *range(4))
        commands = tuple(
            draw.choice(COMMANDS).format(
                a=draw.choice(numbers), b=draw.choice(few), c=draw.choice(numbers), t=nasty(draw)
            )
            for _ in range(draw.choice([1, 1, 2]))
        )  # fmt: skip
        return Conversation(identity, answers, commands, draw.random() < 0.2)

    def _answer(self, draw: random.Random) -> bytes:
        """A line of a board, or something like it."""
        number = draw.choice([0, 1, 5, 9, 11, 17, 255, 2**70])
        line = draw.choice(ANSWERS).format(n=number).encode() + b"\n"
        if draw.random() < 0.5:
            line = changed_bytes(line, draw)
        return line * draw.choice([1, 1, 4, 40])

    def run(self, given: Conversation) -> None:
        port = _Port(given)
        with mock.patch.object(serial_line, "time", port):
            client = BoardClient(port)
            for command in given.commands:
                perform(client, command)
            if given.data:
                facts = job_facts(client.facts)
                messages = np.zeros((4, 2), int)
                client.run(messages)
                expected_data(send_data(messages, facts), facts)
                describe_job(facts)


class ImageFuzzer(Fuzzer):
    """An image takes any bytes, sends nothing but lines, and then still knows what it is."""

    name = "image"

    #: Letters of commands, those that choose included, what is no letter of ours, and any byte.
    LETTERS: ClassVar[bytes] = b"npwrstqimlok"
    OTHERS: ClassVar[bytes] = b" \r\n\x00\x7f\xffxyzNPW+-GS\x80\x1b"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        work = folder / "image"
        work.mkdir()
        self.fabric = fabrics()[1]
        self.process = subprocess.Popen(
            [str(compiled(self.fabric, work))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.facts = json.loads(json.dumps(facts_of(self.fabric)))

    def close(self) -> None:
        """End the image."""
        self.process.kill()
        self.process.communicate()

    def make(self, draw: random.Random) -> bytes:
        said = b""
        for _ in range(draw.choice([1, 2, 5, 20])):
            others = draw.choice([self.LETTERS, self.LETTERS, self.LETTERS, self.OTHERS])
            letter = bytes([draw.choice(others)])
            # Blanks do not end a number: others are short, lest thousands of tests be asked for.
            numbers = [255, 2**32 - 1] if letter in (b"n", b"p", b"w") else []
            number = b"%x" % draw.choice([*range(6), *numbers]) if draw.random() < 0.8 else b""
            said += number + letter
        return said

    def run(self, given: bytes) -> None:
        self._send(given)
        heard, asked, begin = b"", 0, time.monotonic()
        while not heard.endswith(b"}\n"):
            assert time.monotonic() - begin < LONGEST_ANSWER, f"no identity, but {heard[-200:]!r}"
            self._send(b"\ni")  # lost while an earlier command is carried out
            asked += 1
            heard += self._heard()
        while asked > 1 and (more := self._heard()):
            heard += more
        *lines, end = heard.split(b"\n")
        assert not end, f"half a line: {end!r}"
        for line in lines:
            assert line.isascii(), f"no text: {line!r}"
            assert line.decode().isprintable(), f"no text: {line!r}"
            assert not line.startswith((b"fail", b"late")), f"a fault: {line!r}"
            if line.startswith(b"{"):
                assert json.loads(line) == self.facts, f"another identity: {line!r}"

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _heard(self) -> bytes:
        """What the image sends, up to the end of its identity, or until it is quiet."""
        assert self.process.stdout is not None
        heard, file = b"", self.process.stdout.fileno()
        while not heard.endswith(b"}\n") and select.select([file], [], [], QUIET)[0]:
            part = os.read(file, 4096)
            assert part, "the image has ended"
            heard += part
        return heard
