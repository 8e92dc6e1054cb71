"""Standard output and errors of the machine: what a command says where they fail."""

import contextlib
import errno
import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple

from ..errors import InputError, MissingTool, TorusfabricError, WorkFailed
from ..toolchain.destinations import is_standard_output
from ..toolchain.processes import Interrupted

__all__ = ["Failure", "failure_of", "flush_or_drop", "page_of", "prepare_streams",
           "writes_to_standard_output"]  # fmt: skip

#: Errors of the machine, not of ours: no room, no memory, too many files, a disk that fails.
_OF_THE_MACHINE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "ENOMEM", "EMFILE", "ENFILE", "EBADF",
                 "EACCES", "EPERM")
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
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = os.fsdecode(error.filename or "one of them")
        return f"Name of a file must be shorter, not {name} ({error.strerror})", InputError.status
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        reason = error.strerror
        if error.filename is not None:
            name = os.fsdecode(error.filename)
            return f"File must be usable, not {name} ({reason})", WorkFailed.status
        return f"Disk must have room for all files, not fail ({reason})", WorkFailed.status
    return None


#: The page of all errors, in the repository and, without its ending, on the site.
PAGE = "docs/reference/errors.md"

#: The section of that page, by the part of the package; the longest name that fits counts. What
#: is in none of them serves several: the part that called it counts. Parts of adapters stand here
#: without the name of the adapter.
FAMILIES = {
    "adapters": "fabric",
    "adapters.bridge": "board",
    "adapters.claims": "proof",
    "adapters.drive": "simulation",
    "algorithms": "algorithm",
    "algorithms.foreign": "files-of-other-systems",
    "analysis": "faults-of-a-schedule",
    "cli": "command-line",
    "cli.board": "board",
    "cli.connect": "board",
    "cli.monitor": "board",
    "cli.sweep": "sweep",
    "collective": "collective",
    "contract": "command-line",
    "draw": "picture",
    "fabric": "command-line",
    "fpga.board": "board",
    "fpga.bridge": "board",
    "fpga.synthesis": "synthesis",
    "planning": "algorithm",
    "planning.foreign": "files-of-other-systems",
    "planning.limits": "too-large",
    "program": "fabric",
    "proof": "proof",
    "rtl": "fabric",
    "schedule": "schedule-file",
    "schedule.foreign": "files-of-other-systems",
    "simulation": "simulation",
    "sweep": "sweep",
    "toolchain.cache": "file",
    "toolchain.cxx": "tool",
    "toolchain.files": "file",
    "toolchain.folders": "file",
    "toolchain.tools": "tool",
    "topology": "topology",
    "verilog": "fabric",
}

#: The section of errors that are not ours, and of a tool that is missing, whoever needs it.
MACHINE, INTERRUPTED, TOOL = "machine", "interrupted", "tool"


def page_of(error: BaseException) -> str:
    """The place in the documentation that explains an error.

    Examples
    --------
    >>> import torusfabric as tf
    >>> try:
    ...     tf.parse_topology("4xx4")
    ... except tf.InputError as error:
    ...     page_of(error)
    'docs/reference/errors.md#topology'
    """
    return f"{PAGE}#{_family(error)}"


def _family(error: BaseException) -> str:
    """The section of the page."""
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MissingTool):
        return TOOL
    if not isinstance(error, TorusfabricError):
        return MACHINE
    for module in _innermost_first(error.__traceback__):
        while module:
            if module in FAMILIES:
                return FAMILIES[module]
            module = module.rpartition(".")[0]
    return FAMILIES["cli"]


def _innermost_first(traceback: TracebackType | None) -> Iterator[str]:
    """The modules of the package through which an error came, below the name of the package."""
    package = __name__.partition(".")[0] + "."
    names = []
    while traceback:
        names.append(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
    own = (name.removeprefix(package) for name in reversed(names) if name.startswith(package))
    # The parts of all adapters have the same names.
    return (re.sub(r"^adapters\.\w+", "adapters", name) for name in own)
