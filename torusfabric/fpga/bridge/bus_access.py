"""The computer's side of the bridge: words of the bus are read and written at their addresses."""

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InputError, WorkFailed
from . import BAUD
from .uart_bone import BYTES, Command

__all__ = ["ADVICE", "BusAccess", "BytePort", "NoAnswer", "open_port"]

#: Words of a command: few enough for bridges that count all of its time, as LiteX's do.
BURST = 64

#: Seconds without a byte after which a board is taken for dead, and that a port may take to accept
#: a burst, beside those that it takes to send its bytes.
PATIENCE, LONGEST = 2.0, 1024

#: Seconds after which a read returns what has come.
QUIET = 0.05

#: What to look at where the other end is not what it must be.
ADVICE = "is the bitstream on it, and are port and baud rate right?"


class NoAnswer(WorkFailed):
    """A board was silent."""


class BytePort(Protocol):
    """What a bridge is reached by: what is used of a `serial.Serial`."""

    name: str

    def read(self, size: int) -> bytes:
        """Read so many bytes, or fewer within a short time limit."""

    def write(self, data: bytes) -> object:
        """Write bytes."""


def open_port(path: str, *, baud: int = BAUD) -> Any:
    """A `serial.Serial`, of a pseudo-terminal too: rates and raw mode differ on every system.

    Raises
    ------
    InputError
        If it cannot be opened.
    """
    import serial  # here, since only a real port needs it

    try:
        limit = PATIENCE + 10 * LONGEST / baud
        return serial.Serial(path, baud, timeout=QUIET, write_timeout=limit)
    except OverflowError:
        raise InputError(f"Baud rate must be one that the port knows, not {baud}") from None
    except (OSError, ValueError, serial.SerialException) as error:
        raise InputError(
            f"Port must be a serial port that can be opened, not {path or repr(path)} "
            f"({_reason(error)})"
        ) from None


def _reason(error: Exception) -> str:
    """Why a port cannot be opened, out of what pyserial says."""
    for pattern in (r"\[Errno \d+\] ([^:']+)", r"\(\d+, '([^']+)'\)"):
        if found := re.findall(pattern, str(error)):
            return str(found[-1]).strip()
    return str(error).strip()


class BusAccess:
    """Reads and writes words of a bus through a bridge, at a port such as of `open_port`."""

    def __init__(self, port: BytePort) -> None:
        self._port = port

    @property
    def name(self) -> str:
        """The name of the port."""
        return self._port.name

    def drain(self) -> None:
        """Drop what has come, and what comes until nothing more does."""
        end = time.monotonic() + PATIENCE
        with self._attached():
            while said := self._port.read(1 << 12):
                if time.monotonic() > end:
                    raise WorkFailed(
                        f"Board on {self.name} must fall silent to be asked what it is, not keep "
                        f"talking ({said[:40]!r}): {ADVICE}"
                    )

    def read_word(self, address: int) -> int:
        """Read a word; an address counts bytes."""
        return int(self.read([address])[0])

    def write_word(self, address: int, word: int) -> None:
        """Write a word; an address counts bytes."""
        self.write([address], [word])

    def read(self, addresses: ArrayLike) -> NDArray[np.uint32]:
        """Read words at addresses in bytes; those that follow one another are read in bursts.

        Raises
        ------
        WorkFailed
            If the board does not answer.
        """
        answers = [self._burst(Command.READ, part) for part in _bursts(addresses)]
        return np.concatenate([np.zeros(0, np.uint32), *answers])

    def write(self, addresses: ArrayLike, words: ArrayLike) -> None:
        """Write words; addresses as of `read`.

        Raises
        ------
        WorkFailed
            If the board does not take them.
        """
        words = np.asarray(words, np.uint32)
        done = 0
        for part in _bursts(addresses):
            data = words[done : done + len(part)]
            self._burst(Command.WRITE, part, data)
            done += len(part)

    def _burst(
        self, command: Command, addresses: NDArray[Any], words: Sequence[int] | NDArray[Any] = ()
    ) -> NDArray[np.uint32]:
        """Send a command; returns the words that are read."""
        head = bytes([command, len(addresses)]) + int(addresses[0] // BYTES).to_bytes(BYTES, "big")
        with self._attached():
            self._port.write(head + np.asarray(words, ">u4").tobytes())
            size = BYTES * len(addresses) if command is Command.READ else 0
            return np.frombuffer(self._answer(size), ">u4").astype(np.uint32)

    def _answer(self, size: int) -> bytes:
        """So many bytes that the board answers."""
        answer, last = bytearray(), time.monotonic()
        while len(answer) < size:
            found = self._port.read(size - len(answer))
            now = time.monotonic()
            last = now if found else last
            answer += found
            if now - last > PATIENCE:
                raise NoAnswer(
                    f"Board on {self.name} must answer within {PATIENCE:g} s, not be silent: "
                    f"{ADVICE}"
                )
        return bytes(answer)

    @contextlib.contextmanager
    def _attached(self) -> Iterator[None]:
        """Report a port that fails, because the board is pulled out or takes nothing."""
        try:
            yield
        except OSError as error:
            raise WorkFailed(
                f"Board on {self.name} must stay attached and take what it is sent, but its port "
                f"failed ({error}): {ADVICE}"
            ) from None


def _bursts(addresses: ArrayLike) -> Iterator[NDArray[np.int64]]:
    """Addresses that follow one another, a burst at a time."""
    each = np.asarray(addresses, np.int64)
    ends = [*(1 + np.flatnonzero(np.diff(each) != BYTES)), len(each)]
    for first, end in pairwise([0, *ends]):
        for start in range(first, end, BURST):
            yield each[start : min(start + BURST, end)]
