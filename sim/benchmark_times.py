"""Processor time of commands, measured side by side with another commit.

The other commit is installed into an environment of its own, which is kept. A pair is one run by
this commit and one by the other, directly after each other. Why: the speed of a machine drifts, and
a pair shares the drift. The seconds of processor time of a command and of its child processes are
compared pair by pair. Seconds of different days are not comparable, and none are kept.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmark_counts import COLLECTIVES, HERE, Program
from platformdirs import user_cache_path

from torusfabric.errors import InputError

#: Progress callback: steps done, steps in all, and the name of the present step.
Progress = Callable[[int, int, str], object]

ROOT = Path(__file__).resolve().parent.parent

#: Commit of comparison for ``--against`` without a value.
START = "366bdd92"

#: NOISE: share by which noise alone may raise a ratio above 1. AGREEING: share of pairs that must
#: be slower before a command is. ALLOWED: allowance of a section that has one of its own in place
#: of NOISE; a ratio of 1.25 means that engines run at 0.8 times their speed.
NOISE, AGREEING, ALLOWED = 0.1, 0.75, {"runs": 0.25}

EIGHT = ",".join(COLLECTIVES)


class Timed(NamedTuple):
    """A command that is timed.

    Parameters
    ----------
    section : str
        Section of the benchmarks that the command belongs to.
    command : str
        Arguments of the program. ``OUT`` stands for an empty folder.
    figure : str
        Key of the command's JSON whose value is compared, larger being better. The empty string
        stands for seconds of processor time.
    """

    section: str
    command: str
    figure: str = ""


LARGE = "16x16x16 allgather --algorithm matching --engine compiled --width 8 --flits 1"

TIMED = (
    Timed("commands", "--help"),
    Timed("commands", "algorithms"),
    Timed("commands", "plan 4x4 allgather"),
    Timed("commands", "draw 4x4 allgather -o OUT/steps.svg"),
    Timed("commands", "verilog 4x4 allgather -o OUT/v"),
    Timed("commands", "simulate 4x4 allgather"),
    Timed("planning", "plan 16x16 alltoall"),
    Timed("planning", "plan 7x7 broadcast"),
    Timed("planning", "plan 32x32 allgather --algorithm matching"),
    Timed("planning", "plan 16x16x16 allgather --algorithm matching"),
    Timed("verilog", "verilog 32x32 allgather -o OUT/v"),
    Timed("verilog", f"verilog 4x4 {EIGHT} --max-flits 4 -o OUT/v"),
    Timed("simulations", "simulate 8x8 allgather --algorithm matching --engine amaranth"),
    Timed("simulations", f"simulate {LARGE}"),
    Timed("runs", f"simulate {LARGE} --json", "node_cycles_per_second"),
    Timed("runs", "simulate 16x16 allgather --engine compiled --flits 256 --json",
          "node_cycles_per_second"),
    Timed("proofs", "prove 3x3 allgather --width 4"),
    Timed("proofs", "prove 3x3 allreduce --width 4"),
)  # fmt: skip


class Comparison(NamedTuple):
    """The result of a command in two commits.

    Parameters
    ----------
    timed : Timed
        The command.
    here, there : float or None
        Medians of this commit and of the other, in seconds or in the unit of ``timed.figure``; None
        if the command failed.
    ratios : list of float
        One ratio for each pair, above 1 if this commit is worse.
    """

    timed: Timed
    here: float | None
    there: float | None
    ratios: list[float]

    @property
    def ratio(self) -> float | None:
        """Median of the ratios, or None without pairs."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def allowed(self) -> float:
        """Share by which this commit may be worse."""
        return ALLOWED.get(self.timed.section, NOISE)

    @property
    def worse(self) -> bool:
        """True if this commit is worse than allowed, or fails where the other does not."""
        if self.ratio is None:
            return self.here is None and self.there is not None
        agreeing = sum(ratio > 1 for ratio in self.ratios) / len(self.ratios)
        return self.ratio > 1 + self.allowed and agreeing >= AGREEING


def compare(commit: str, sections: set[str], pairs: int, progress: Progress) -> list[Comparison]:
    """Time the commands of some sections in this checkout and in another commit, in turn."""
    chosen = [timed for timed in TIMED if timed.section in sections]
    if not chosen:
        return []
    progress(0, 1, f"installing {commit}")
    programs = HERE, installed(commit)
    found = []
    for done, timed in enumerate(chosen):
        runs: list[list[float]] = [[], []]
        for pair in range(pairs + 1):
            progress(done * (pairs + 1) + pair, len(chosen) * (pairs + 1), timed.command)
            for figures, program in zip(runs, programs, strict=True):
                figure = measure(program, timed)
                # The first pair fills caches.
                if figure is not None and pair:
                    figures.append(figure)
        found.append(compared(timed, *runs))
    return found


def compared(timed: Timed, here: list[float], there: list[float]) -> Comparison:
    """Return the comparison of the figures of one command, measured in turn."""
    ratios = []
    if here and there:
        ratios = [b / a if timed.figure else a / b for a, b in zip(here, there, strict=True)]
    mine, other = (statistics.median(figures) if figures else None for figures in (here, there))
    return Comparison(timed, mine, other, ratios)


def measure(program: Program, timed: Timed) -> float | None:
    """Return seconds of processor time, or ``timed.figure``; None if the command fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = program.run(timed.command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return None
    if timed.figure:
        read: dict[str, Any] = json.loads(done.stdout)
        return float(read[timed.figure])
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def installed(commit: str) -> Program:
    """Return the program of a commit, in an environment of its own that is kept for the next time.

    The environment has all packages of the present environment, in the same versions.
    """
    digest = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}").strip()
    if not digest:
        raise InputError(f"Commit must be one of this repository, not {commit!r}")
    environment = user_cache_path("torusfabric-benchmarks") / digest
    program = environment / "bin" / "torusfabric"
    if not program.exists():
        with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
            tree = Path(folder) / "tree"
            git("worktree", "add", "--detach", str(tree), digest)
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
                pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
                subprocess.run(
                    [*pip, f"{tree}[boards,prove]"], check=True, stdout=subprocess.DEVNULL
                )
                # Python takes longer to start where more packages are installed.
                here = [sys.executable, "-m", "pip", "freeze", "--exclude", "torusfabric"]
                listed = Path(folder) / "here.txt"
                listed.write_bytes(subprocess.run(here, check=True, capture_output=True).stdout)
                subprocess.run([*pip, "--no-deps", "-r", str(listed)], check=True)
            finally:
                git("worktree", "remove", "--force", str(tree))
    return Program((str(program),))


def git(*words: str) -> str:
    """Return the standard output of a git command, which is empty if the command fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout
