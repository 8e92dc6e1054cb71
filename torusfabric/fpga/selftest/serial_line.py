"""The serial line to a board, line by line of text.

Serial ports are opened with pyserial, because rates, raw mode and time limits are set differently
on every system; it takes any path, a pseudo-terminal's too.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Protocol

import serial

from ...errors import InputError, WorkFailed
from . import BAUD

__all__ = ["SerialLine", "SerialPort", "open_port"]

#: Seconds without a byte after which a board is taken for dead.
PATIENCE = 2.0

#: Seconds without a byte after which a board has nothing more to send.
QUIET = 0.05


class SerialPort(Protocol):
    """What is used of a `serial.Serial`."""

    name: str
    timeout: float

    def read(self, size: int) -> bytes:
        """Read so many bytes, or fewer within the time limit."""

    def readline(self) -> bytes:
        """Read up to the end of a line, or less within the time limit."""

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
        return serial.Serial(path, baud, timeout=PATIENCE)
    except (OSError, ValueError, serial.SerialException) as error:
        reason = re.sub(r"^.*\[Errno \d+\] ([^:']+).*$", r"\1", str(error)).strip()
        raise InputError(
            f"Port must be a serial port that can be opened, not {path} ({reason})"
        ) from None


class SerialLine:
    """A serial line to a board.

    Parameters
    ----------
    port : SerialPort
    """

    def __init__(self, port: SerialPort) -> None:
        self._port = port

    @property
    def name(self) -> str:
        """The name of the port."""
        return self._port.name

    def send(self, text: str) -> None:
        """Send some text."""
        with self._attached():
            self._port.write(text.encode())

    def receive(self) -> str:
        """Receive a line.

        Raises
        ------
        WorkFailed
            If none comes within the time limit.
        """
        with self._attached():
            line = self._port.readline()
        if not line.endswith(b"\n"):
            begun = f" after {line!r}" if line else ""
            raise WorkFailed(
                f"Board must answer within {self._port.timeout:g} s, not be silent{begun}"
            )
        return line.decode("ascii", "replace").strip()

    def receive_any(self) -> str:
        """Receive a line, or what comes within the time limit."""
        with self._attached():
            return self._port.readline().decode("ascii", "replace").strip()

    def drain(self) -> None:
        """Drop what is received, until nothing comes any more."""
        with self.patient(QUIET), self._attached():
            while self._port.read(256):
                pass

    @contextlib.contextmanager
    def patient(self, seconds: float) -> Iterator[None]:
        """Set another time limit for a while."""
        usual, self._port.timeout = self._port.timeout, seconds
        try:
            yield
        finally:
            self._port.timeout = usual

    @contextlib.contextmanager
    def _attached(self) -> Iterator[None]:
        """Report a port that fails, because the board is pulled out."""
        try:
            yield
        except OSError as error:
            raise WorkFailed(
                f"Board on {self.name} must stay attached, but its port failed ({error})"
            ) from None
