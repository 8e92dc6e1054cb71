"""Seconds of commands, side by side with another commit.

The other commit is installed into an environment of its own, which is kept. Commands run in turn,
one of this commit and one of the other, so that a machine whose speed drifts slows both. Compared
are seconds of processor time, of the command and of what it starts, pair by pair. Timings of
different runs say little, and are not kept.
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

#: Reports how far work has come.
Progress = Callable[[int, int, str], object]

ROOT = Path(__file__).resolve().parent.parent

#: The head that the present plan of the house starts from, and that it is compared with.
START = "366bdd92"

#: What a ratio may exceed 1 by, for nothing but noise, and the share of pairs that must agree; and
#: of a section whose figures may be worse: engines may be 0.8 times as fast.
NOISE, AGREEING, ALLOWED = 0.1, 0.75, {"runs": 0.25}

EIGHT = ",".join(COLLECTIVES)


class Timed(NamedTuple):
    """A command that is timed.

    Parameters
    ----------
    section : str
    command : str
        Without the name of the program. ``OUT`` is a folder that is empty before.
    figure : str
        The key of its JSON that is compared, larger being better; by default the seconds are.
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
    """What came of a command in two commits.

    Parameters
    ----------
    timed : Timed
    here, there : float or None
        Medians: seconds, or what is compared; None where the command failed.
    ratios : list of float
        Pair by pair, above 1 where this commit is worse.
    """

    timed: Timed
    here: float | None
    there: float | None
    ratios: list[float]

    @property
    def ratio(self) -> float | None:
        """The median of the ratios."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def allowed(self) -> float:
        """The share by which this commit may be slower."""
        return ALLOWED.get(self.timed.section, NOISE)

    @property
    def worse(self) -> bool:
        """Whether this commit is slower than is allowed, or fails where the other does not."""
        if self.ratio is None:
            return self.here is None and self.there is not None
        agreeing = sum(ratio > 1 for ratio in self.ratios) / len(self.ratios)
        return self.ratio > 1 + self.allowed and agreeing >= AGREEING


def compare(commit: str, sections: set[str], pairs: int, progress: Progress) -> list[Comparison]:
    """Time the commands of some sections in this checkout and in a commit, in turn."""
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
    """A comparison of what was measured in turn."""
    ratios = []
    if here and there:
        ratios = [b / a if timed.figure else a / b for a, b in zip(here, there, strict=True)]
    mine, other = (statistics.median(figures) if figures else None for figures in (here, there))
    return Comparison(timed, mine, other, ratios)


def measure(program: Program, timed: Timed) -> float | None:
    """Seconds of processor time, or what else is compared; None if the command fails."""
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

    The environment has all packages of this one, in the same versions.
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
    """What git says."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout
