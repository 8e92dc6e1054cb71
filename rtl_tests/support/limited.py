"""Commands with limits of time and memory."""

import importlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import NamedTuple

from torusfabric.cli import main

__all__ = ["Answer", "run_limited"]

# Commands load these packages when they need them. Loaded here, a copy of this process has them.
for room in ("sweep", "verilog", "simulation", "fpga"):
    importlib.import_module(f"torusfabric.{room}")

#: Most seconds of processor time of a command, and most bytes beyond those of this process.
SECONDS, MEMORY = 10, 2 << 30


class Answer(NamedTuple):
    """The result of a command.

    Parameters
    ----------
    status : int
        Exit status; minus the number of the signal if a signal ended the command.
    lines : list of str
        Lines on standard error.
    """

    status: int
    lines: list[str]


def run_limited(words: list[str], folder: Path) -> Answer:
    """Run a command in a copy of this process, which takes less time than a new one."""
    said = folder / "said"
    process = os.fork()
    if not process:
        status = 99
        try:
            status = _limited_main(words, folder, said)
        finally:
            os._exit(status)
    _, code = os.waitpid(process, 0)
    status = os.waitstatus_to_exitcode(code)
    lines = said.read_text("utf-8").splitlines()
    said.unlink()
    return Answer(status, lines)


def _limited_main(words: list[str], folder: Path, said: Path) -> int:
    os.chdir(folder)
    stream = said.open("w", encoding="utf-8")
    os.dup2(stream.fileno(), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdout, sys.stderr = os.fdopen(1, "w", encoding="utf-8"), stream
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    used = int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, used + SECONDS))
    status = main([*words, "--quiet"])
    stream.flush()
    return status
