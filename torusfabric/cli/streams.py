"""Standard output and errors of the machine: what a command says where they fail."""

import contextlib
import errno
import os
import sys
import warnings
from argparse import Namespace
from typing import NamedTuple

from ..errors import InputError, TorusfabricError, WorkFailed
from ..toolchain.destinations import is_standard_output
from ..toolchain.processes import Interrupted
from .error_pages import page_of

__all__ = ["Failure", "flush_or_drop", "prepare_streams", "failure_of", "writes_to_standard_output"]

#: Errors of the machine, not of ours: no room, no memory, too many files, a disk that fails.
_OF_THE_MACHINE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "ENOMEM", "EMFILE", "ENFILE", "EBADF",
                 "EACCES", "EPERM", "ENAMETOOLONG")
    if hasattr(errno, name)
}  # fmt: skip


class Failure(NamedTuple):
    """What is said of an error, the exit status, and where the documentation explains it."""

    message: str
    status: int
    page: str


def prepare_streams() -> None:
    """See that there are standard streams, and that any file name can be printed to them.

    Raises
    ------
    InputError
        If standard output is closed.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (stays open to the end)
    if sys.stdout is None:
        raise InputError("Standard output must be open, not closed (/dev/null takes anything)")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # streams of others
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def writes_to_standard_output(arguments: Namespace) -> bool:
    """Whether a command writes a file to standard output.

    Raises
    ------
    InputError
        If it is to be a file without a name, or an object must be there too.
    """
    paths = {name: getattr(arguments, name, None) for name in ("output", "trace", "wave", "plot")}
    for name, path in paths.items():
        if path == "":
            raise InputError(f"Argument --{name} must be a path, not empty")
    # Of several files, which are joined by commas, each is one.
    files = [file for path in paths.values() if isinstance(path, str) for file in path.split(",")]
    count = sum(map(is_standard_output, files))
    if count > 1:
        raise InputError(f"Standard output must be one of the files to write, not {count} of them")
    apart = count > 0
    if apart and arguments.json:
        raise InputError(
            "--json must be left out where a file is written to standard output, which holds one "
            "of them"
        )
    return apart


def flush_or_drop() -> None:
    """Write what standard output still holds; drop what it does not take.

    Else the interpreter would try again at exit.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failure_of(error: BaseException) -> Failure | None:
    """What is said of an error; None of one that should not be, which deserves a traceback."""
    found = _message_of(error)
    return None if found is None else Failure(*found, page_of(error))


def _message_of(error: BaseException) -> tuple[str, int] | None:
    """What is said of an error, and the exit status."""
    if isinstance(error, TorusfabricError):
        return str(error), error.status
    if isinstance(error, Interrupted):
        # Amaranth complains of components that are left unused.
        warnings.filterwarnings("ignore", message=".* created but never used")
        return str(error), error.status
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, MemoryError):
        return "Memory must suffice for all data, which it does not", WorkFailed.status
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        reason = error.strerror
        if error.filename is not None:
            name = os.fsdecode(error.filename)
            return f"File must be usable, not {name} ({reason})", WorkFailed.status
        return f"Disk must have room for all files, not fail ({reason})", WorkFailed.status
    return None
