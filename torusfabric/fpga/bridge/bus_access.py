"""`BusAccess`: the computer's side of the bridge, which reads and writes words at bus addresses.

The users are `ConnectedBoard` and adapters that connect several boards. Addresses count bytes.
"""

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

#: Most words of a command. LiteX's bridge limits the time of a whole command, so it must be short.
BURST = 64

#: `PATIENCE`: seconds without a byte after which a board counts as silent, and seconds that a port
#: may take to accept a burst, besides the time to send `LONGEST` bytes, more than any burst has.
PATIENCE, LONGEST = 2.0, 1024

#: Seconds after which a read returns the bytes that have come.
READ_SECONDS = 0.05

#: Advice in errors about a board that does not answer as expected.
ADVICE = "is the bitstream on it, and are port and baud rate right?"


class NoAnswer(WorkFailed):
    """Error that is raised if a board does not answer a command."""


class BytePort(Protocol):
    """A port that carries bytes: the methods of `serial.Serial` that `BusAccess` needs."""

    name: str

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer after a short time limit."""

    def write(self, data: bytes) -> object:
        """Write the bytes in `data`."""


def open_port(path: str, *, baud: int = BAUD) -> Any:
    """Return an open `serial.Serial`, for a serial port or a pseudo-terminal.

    Parameters
    ----------
    path : str
        Path of the port, such as ``/dev/ttyUSB0``.
    baud : int
        Bits a second.

    Raises
    ------
    InputError
        If the port cannot be opened with this baud rate.
    """
    import serial  # here, since only a real port needs it

    try:
        limit = PATIENCE + 10 * LONGEST / baud
        return serial.Serial(path, baud, timeout=READ_SECONDS, write_timeout=limit)
    except OverflowError:
        raise InputError(f"Baud rate must be one that the port knows, not {baud}") from None
    except (OSError, ValueError, serial.SerialException) as error:
        raise InputError(
            f"Port must be a serial port that can be opened, not {path or repr(path)} "
            f"({_error_reason(error)}); python -m serial.tools.list_ports lists all"
        ) from None


def _error_reason(error: Exception) -> str:
    """Return the reason that an error of pyserial gives, as text."""
    for pattern in (r"\[Errno \d+\] ([^:']+)", r"\(\d+, '([^']+)'\)"):
        if found := re.findall(pattern, str(error)):
            return str(found[-1]).strip()
    return str(error).strip()


class BusAccess:
    """Access to the words of a bus through a bridge.

    Parameters
    ----------
    port : BytePort
        Port of the bridge, such as the result of `open_port`.
    """

    def __init__(self, port: BytePort) -> None:
        self._port = port

    @property
    def name(self) -> str:
        """Name of the port."""
        return self._port.name

    def drain(self) -> None:
        """Drop all bytes that have arrived, and wait until the board is silent.

        Raises
        ------
        WorkFailed
            If bytes still arrive after `PATIENCE` seconds.
        """
        end = time.monotonic() + PATIENCE
        with self._as_work_failed():
            while said := self._port.read(1 << 12):
                if time.monotonic() > end:
                    raise WorkFailed(
                        f"Board on {self.name} keeps talking ({said[:40]!r}), so it cannot be "
                        f"asked what it is: {ADVICE}"
                    )

    def read_word(self, address: int) -> int:
        """Read the word at a byte address; see `read`."""
        return int(self.read([address])[0])

    def write_word(self, address: int, word: int) -> None:
        """Write the word at a byte address; see `write`."""
        self.write([address], [word])

    def read(self, addresses: ArrayLike) -> NDArray[np.uint32]:
        """Read words; those at consecutive addresses are read in bursts.

        Parameters
        ----------
        addresses : array of int
            Byte address of each word.

        Raises
        ------
        WorkFailed
            If the board does not answer.
        """
        answers = [self._send_command(Command.READ, part) for part in _split_into_bursts(addresses)]
        return np.concatenate([np.zeros(0, np.uint32), *answers])

    def write(self, addresses: ArrayLike, words: ArrayLike) -> None:
        """Write words; those at consecutive addresses are written in bursts.

        Parameters
        ----------
        addresses : array of int
            Byte address of each word.
        words : array of int
            Word for each address.

        Raises
        ------
        WorkFailed
            If the port fails, or does not accept the bytes in time.
        """
        words = np.asarray(words, np.uint32)
        done = 0
        for part in _split_into_bursts(addresses):
            data = words[done : done + len(part)]
            self._send_command(Command.WRITE, part, data)
            done += len(part)

    def _send_command(
        self, command: Command, addresses: NDArray[Any], words: Sequence[int] | NDArray[Any] = ()
    ) -> NDArray[np.uint32]:
        """Send one command for at most `BURST` consecutive addresses.

        Returns
        -------
        ndarray of uint32
            The words that a read command reads; empty for a write command.
        """
        head = bytes([command, len(addresses)]) + int(addresses[0] // BYTES).to_bytes(BYTES, "big")
        with self._as_work_failed():
            self._port.write(head + np.asarray(words, ">u4").tobytes())
            size = BYTES * len(addresses) if command is Command.READ else 0
            return np.frombuffer(self._read_answer(size), ">u4").astype(np.uint32)

    def _read_answer(self, size: int) -> bytes:
        """Return `size` bytes of the board's answer."""
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
    def _as_work_failed(self) -> Iterator[None]:
        """Turn errors of the port in the body of a ``with`` into `WorkFailed`.

        The causes of such errors are a board that is unplugged, or that accepts no bytes.
        """
        try:
            yield
        except OSError as error:
            raise WorkFailed(
                f"The port of the board on {self.name} failed ({error}): {ADVICE}"
            ) from None


def _split_into_bursts(addresses: ArrayLike) -> Iterator[NDArray[np.int64]]:
    """Yield parts of `addresses`, in order: consecutive addresses, at most `BURST` of them."""
    each = np.asarray(addresses, np.int64)
    ends = [*(1 + np.flatnonzero(np.diff(each) != BYTES)), len(each)]
    for first, end in pairwise([0, *ends]):
        for start in range(first, end, BURST):
            yield each[start : min(start + BURST, end)]
