"""Bytes on the serial line: answers of a board to a host, and commands of a host to a board."""

import random
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import torusfabric as tf
from torusfabric import Fabric
from torusfabric.contract.registers import IDENTIFICATION
from torusfabric.fpga.bridge import board, bus_access
from torusfabric.fpga.bridge.bus_access import BusAccess
from torusfabric.fpga.bridge.simulated import SimulatedPort

from .oracle import Fuzzer

__all__ = ["BoardFuzzer", "BridgeFuzzer"]


def fabric() -> Fabric:
    """Return a fabric whose runs leave every choice open."""
    plans = [tf.plan("2x2", name) for name in ("allgather", "allreduce", "broadcast")]
    return tf.Fabric(tf.compile(plans, max_flits=4, operators=["add", "max"]), width=8)


class Conversation(NamedTuple):
    """Answers of a board, and the job that the host asks for.

    Parameters
    ----------
    first : tuple of bytes
        Words that the board answers first, one after another.
    others : tuple of bytes
        Words from which the board chooses all later answers.
    job : tf.Job
        The job.
    """

    first: tuple[bytes, ...]
    others: tuple[bytes, ...]
    job: tf.Job


class _Port:
    """The port of a board with random answers, and a clock that advances with each read."""

    name = "port"

    def __init__(self, given: Conversation) -> None:
        self.given, self.waiting, self.now, self.asked = given, b"", 0.0, 0

    def write(self, data: bytes) -> None:
        """Queue an answer for each word that the host reads."""
        for _ in range(data[1] if data[0] == 2 else 0):
            words = self.given.first[self.asked :] or self.given.others
            self.waiting += words[0] if self.given.first[self.asked :] else random.choice(words)
            self.asked += 1

    def read(self, size: int) -> bytes:
        """Return waiting bytes, at most `size`; time advances more if there are none."""
        said, self.waiting = self.waiting[:size], self.waiting[size:]
        self.now += 1e-4 if said else 0.05
        return said

    def monotonic(self) -> float:
        """Return the simulated time in seconds."""
        return self.now

    def perf_counter(self) -> float:
        """Return the simulated time in seconds."""
        return self.now


class BoardFuzzer(Fuzzer):
    """Check that a host accepts the answers of a board as they are, or refuses them."""

    name = "board"
    weight = 100

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fabric = fabric()

    def make(self, draw: random.Random) -> Conversation:
        first = [word.to_bytes(4, "big") for word in (IDENTIFICATION, self.fabric.digest)]
        if draw.random() < 0.2:
            first[draw.randrange(2)] = draw.randbytes(draw.choice([0, 3, 4, 5]))
        few = [2, 2, 3, 0x12, 5, 0, draw.getrandbits(32)]
        others = [draw.choice(few).to_bytes(4, "big") for _ in range(draw.choice([1, 2, 5]))]
        if draw.random() < 0.2:
            others.append(draw.randbytes(draw.choice([0, 1, 3, 5])))
        numbers = [None, 0, 1, 2, 4, 5, 2**70]
        return Conversation(tuple(first), tuple(others), tf.Job(*draw.choices(numbers, k=4)))

    def run(self, given: Conversation) -> None:
        port = _Port(given)
        random.seed(0)
        with mock.patch.object(bus_access, "time", port), mock.patch.object(board, "time", port):
            board.ConnectedBoard(self.fabric, BusAccess(port)).run([given.job])


class BridgeFuzzer(Fuzzer):
    """Check that a bridge survives any bytes: it still identifies itself and runs a job."""

    name = "bridge"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fabric = fabric()
        self.port = SimulatedPort(self.fabric)

    def make(self, draw: random.Random) -> bytes:
        """Return commands of few words, whole and torn, with random bytes between them."""
        said = b""
        for _ in range(draw.choice([1, 2, 5])):
            count = draw.choice([1, 1, 2, 9])
            address = draw.choice([*range(16), 1 << 7, 1 << 8, draw.getrandbits(32)])
            words = draw.randbytes(4 * count)
            command = bytes([draw.choice([1, 1, 2, 3, 4]), count]) + address.to_bytes(4, "big")
            command += words if command[0] in (1, 3) else b""
            said += command[: draw.choice([len(command), len(command), draw.randrange(6)])]
            said += draw.choice([b"", b"", draw.randbytes(1), b"\x00\xff"])
        return said

    def run(self, given: bytes) -> None:
        self.port.write(given)
        access = BusAccess(self.port)
        access.drain()
        found = board.ConnectedBoard(self.fabric, access).run([tf.Job(mode=1, length=2)])
        assert found.passed, f"{found.first_wrong}, {found.cycles} cycles"
