"""The serial line to a board, line by line of text.

Serial ports are opened with pyserial, because rates, raw mode and time limits are set differently
on every system; it takes any path, a pseudo-terminal's too.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from typing import Protocol

import serial

from ...errors import InputError, WorkFailed
from . import BAUD

__all__ = ["ADVICE", "SerialLine", "SerialPort", "open_port"]

#: Seconds without a byte after which a board is taken for dead.
PATIENCE = 2.0

#: Seconds without a byte after which a board has nothing more to send.
QUIET = 0.05

#: Seconds after which a board that still sends is not waited for.
TALKING = 5.0

#: Bytes of a line that no board of ours sends, and bytes that are sent at once.
LONGEST, SENT_AT_ONCE = 4096, 1024

#: What to look at where the other end is not what it must be.
ADVICE = "is the image on it, and are port and baud rate right?"


class SerialPort(Protocol):
    """What is used of a `serial.Serial`."""

    name: str

    def read(self, size: int) -> bytes:
        """Read so many bytes, or fewer within a short time limit."""

    def write(self, data: bytes) -> object:
        """Write bytes."""


def open_port(path: str, *, baud: int = BAUD) -> serial.Serial:
    """Open a serial port.

    Raises
    ------
    InputError
        If it cannot be opened.
    """
    try:
        limit = PATIENCE + _seconds(SENT_AT_ONCE, baud)
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


def _seconds(size: int, baud: int) -> float:
    """How long so many bytes take, each with its start and its stop bit."""
    return 10 * size / baud


class SerialLine:
    """A serial line to a board.

    Parameters
    ----------
    port : SerialPort
    """

    def __init__(self, port: SerialPort) -> None:
        self._port, self._patience = port, PATIENCE
        self._slowest = _seconds(LONGEST, getattr(port, "baudrate", BAUD))

    @property
    def name(self) -> str:
        """The name of the port."""
        return self._port.name

    def send(self, text: str) -> None:
        """Send some text.

        Raises
        ------
        WorkFailed
            If it is not taken within the time limit.
        """
        data = text.encode()
        with self._attached():
            for first in range(0, len(data), SENT_AT_ONCE):
                self._port.write(data[first : first + SENT_AT_ONCE])

    def receive(self) -> str:
        """Receive a line.

        Raises
        ------
        WorkFailed
            If none comes within the time limit.
        """
        line, silent = self._read_line()
        if line.endswith(b"\n"):
            return line.decode("ascii", "replace").strip()
        if silent:
            begun = f" after {line!r}" if line else ""
            raise WorkFailed(f"Board must answer within {self._patience:g} s, not be silent{begun}")
        raise WorkFailed(f"Board must answer in lines, not go on and on ({line[:40]!r}): {ADVICE}")

    def receive_any(self) -> str:
        """Receive a line, or what comes within the time limit."""
        return self._read_line()[0].decode("ascii", "replace").strip()

    def drain(self) -> None:
        """Drop what is received, until nothing comes any more.

        Raises
        ------
        WorkFailed
            If there is no end to it.
        """
        end = time.monotonic() + TALKING
        with self._attached():
            while said := self._port.read(256):
                if time.monotonic() > end:
                    raise WorkFailed(
                        f"Board on {self.name} must fall silent to be asked what it is, not keep "
                        f"talking ({said[:40]!r}): {ADVICE}"
                    )

    @contextlib.contextmanager
    def patient(self, seconds: float) -> Iterator[None]:
        """Set another time limit for a while."""
        usual, self._patience = self._patience, seconds
        try:
            yield
        finally:
            self._patience = usual

    def _read_line(self) -> tuple[bytes, bool]:
        """A line, or what came instead of one; and whether nothing more comes."""
        line, now = bytearray(), time.monotonic()
        silent, last = now + self._patience, now + self._patience + self._slowest
        with self._attached():
            while not line.endswith(b"\n") and len(line) < LONGEST and now < min(silent, last):
                byte = self._port.read(1)
                now = time.monotonic()
                if byte:
                    line += byte
                    silent = now + self._patience
        return bytes(line), now >= silent

    @contextlib.contextmanager
    def _attached(self) -> Iterator[None]:
        """Report a port that fails, because the board is pulled out or takes nothing."""
        try:
            yield
        except serial.SerialTimeoutException:
            raise WorkFailed(
                f"Board on {self.name} must take what it is sent, not leave it waiting: {ADVICE}"
            ) from None
        except OSError as error:
            raise WorkFailed(
                f"Board on {self.name} must stay attached, but its port failed ({error})"
            ) from None
