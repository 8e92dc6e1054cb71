"""Standard streams, and the conversion of exceptions into messages with an exit status.

`failure_of` turns errors of this package, interrupts, and errors of the operating system into a
`Failure`. Any other exception is a defect of the program and keeps its traceback.
"""

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

#: Arguments that are paths of output files.
OUTPUTS = ("output", "trace", "wave", "plot", "spread")

#: Errors of the operating system that a user can mend: disk full, no memory, too many open files,
#: failing disk, missing permission.
_SYSTEM_ERRORS = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "ENOMEM", "EMFILE", "ENFILE", "EBADF",
                 "EACCES", "EPERM")
    if hasattr(errno, name)
}  # fmt: skip


class Failure(NamedTuple):
    """An error for the user: message, exit status, and the page of the documentation about it."""

    message: str
    status: int
    page: str


def prepare_streams() -> None:
    """Check that standard streams are open, and make them accept any file name.

    Raises
    ------
    InputError
        If standard output is closed.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (stays open to the end)
    if sys.stdout is None:
        raise InputError("Standard output is closed; send it somewhere, for example to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a stream that another program has replaced
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def writes_to_standard_output(arguments: Namespace) -> bool:
    """Return True if a command writes one of its output files to standard output.

    Raises
    ------
    InputError
        If the path of an output is empty, if several files would go to standard output, or if
        ``--json`` would write there, too.
    """
    paths = {name: getattr(arguments, name, None) for name in OUTPUTS}
    for name, path in paths.items():
        if path == "":
            raise InputError(f"Argument --{name} must be a path, not empty")
    # An argument may list several files, separated by commas.
    files = [file for path in paths.values() if isinstance(path, str) for file in path.split(",")]
    count = sum(map(is_standard_output, files))
    if count > 1:
        raise InputError(
            f"Only one file can go to standard output, not {count}; name files for the others"
        )
    apart = count > 0
    if apart and arguments.json:
        raise InputError(
            "--json and a file on standard output exclude each other; name a file, or leave "
            "--json out"
        )
    return apart


def flush_or_drop() -> None:
    """Flush standard output; if that fails, discard its buffer.

    Why: the interpreter would flush again at exit, and print a second error.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failure_of(error: BaseException) -> Failure | None:
    """Return the message, exit status and page for an exception; None for a defect of the program.

    Parameters
    ----------
    error : BaseException
        An exception that ended a command.
    """
    found = _message_of(error)
    return None if found is None else Failure(*found, page_of(error))


def _message_of(error: BaseException) -> tuple[str, int] | None:
    """Return the message and the exit status for an exception; None for a defect of the program."""
    if isinstance(error, TorusfabricError):
        return str(error), error.status
    if isinstance(error, Interrupted):
        # Amaranth would warn of components that the interrupted command left unused.
        warnings.filterwarnings("ignore", message=".* created but never used")
        return str(error), error.status
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, MemoryError):
        return (
            "The memory of this machine does not suffice; choose a smaller network or shorter "
            "messages",
            WorkFailed.status,
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = os.fsdecode(error.filename or "one of them")
        return (
            f"File name {name} is too long ({error.strerror}); choose a shorter one",
            InputError.status,
        )
    if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
        reason = error.strerror
        if error.filename is not None:
            name = os.fsdecode(error.filename)
            return (
                f"File {name} cannot be used ({reason}); choose another file or folder",
                WorkFailed.status,
            )
        return (
            f"A file could not be written ({reason}); free the disk, or choose another folder",
            WorkFailed.status,
        )
    return None


#: Path of the page about errors in the repository; the web site has the same path without ``.md``.
PAGE = "docs/reference/errors.md"

#: Section of that page, by the module that raised the error. The longest entry that is a prefix of
#: the module's name decides. A module without an entry serves several packages; then its caller
#: decides. Modules of adapters appear without the name of the adapter.
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

#: Sections for errors of the operating system, interrupts and missing tools, which do not depend on
#: a module.
MACHINE, INTERRUPTED, TOOL = "machine", "interrupted", "tool"


def page_of(error: BaseException) -> str:
    """Return the page and section of the documentation that explains an error.

    Parameters
    ----------
    error : BaseException
        The exception, with its traceback.

    Examples
    --------
    >>> import torusfabric as tf
    >>> try:
    ...     tf.parse_topology("4xx4")
    ... except tf.InputError as error:
    ...     page_of(error)
    'docs/reference/errors.md#topology'
    """
    return f"{PAGE}#{_error_section(error)}"


def _error_section(error: BaseException) -> str:
    """Return the section that explains an error, on the page of the documentation about errors."""
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MissingTool):
        return TOOL
    if not isinstance(error, TorusfabricError):
        return MACHINE
    for module in _traceback_modules(error.__traceback__):
        while module:
            if module in FAMILIES:
                return FAMILIES[module]
            module = module.rpartition(".")[0]
    return FAMILIES["cli"]


def _traceback_modules(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the modules of this package in a traceback, innermost first: "planning.plans".

    The name of an adapter is left out, "adapters.make" in place of "adapters.boards.make", because
    different adapters have modules of the same names.
    """
    package = __name__.partition(".")[0] + "."
    names = []
    while traceback:
        names.append(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
    own = (name.removeprefix(package) for name in reversed(names) if name.startswith(package))
    # All adapters have modules of the same names: drop the name of the adapter.
    return (re.sub(r"^adapters\.\w+", "adapters", name) for name in own)
