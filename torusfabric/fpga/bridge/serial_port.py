"""The computer's end of a serial line.

Serial ports are opened with pyserial, because rates, raw mode and time limits are set differently
on every system; it takes any path, a pseudo-terminal's too.
"""

import re

import serial

from ...errors import InputError
from . import BAUD

__all__ = ["open_port"]

#: Seconds after which a read returns what has come.
QUIET = 0.05

#: Seconds that a port may take to accept a burst, beside those that it takes to send its bytes.
PATIENCE, LONGEST = 2.0, 1024


def open_port(path: str, *, baud: int = BAUD) -> serial.Serial:
    """Open a serial port.

    Raises
    ------
    InputError
        If it cannot be opened.
    """
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
