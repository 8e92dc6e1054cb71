"""Run the tests that reach a mutant, in a copy of the tree, until one of them fails."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from .mutants import Mutant

__all__ = ["Copy", "Reached", "Verdict"]

#: What of the tree tests need.
PARTS = (
    "boards", "docs", "examples", "fusesoc", "rtl_tests", "scripts", "sim", "torusfabric",
    "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "pyproject.toml",
)  # fmt: skip

#: Seconds of the tests that are run first, and seconds beyond which a mutant hangs.
FIRST, PATIENCE = 4.0, 120.0

#: Bytes that a mutant may fill.
MEMORY = 6 << 30


class Verdict(NamedTuple):
    """What became of a mutant.

    Parameters
    ----------
    outcome : str
        killed, timeout (killed too), survived, or unreached: no test runs the line.
    tests : int
        How many tests reach the line.
    seconds : float
        What those take that were run, as measured before.
    """

    outcome: str
    tests: int
    seconds: float


class Reached:
    """Which tests reach which line, as `reach` measured it."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = {}
        for file in files:
            found = json.loads(file.read_text(encoding="utf-8"))
            names = list(found["tests"])
            self.seconds |= found["tests"]
            for path, lines in found["reached"].items():
                for line, numbers in lines.items():
                    tests = self.lines.setdefault(path, {}).setdefault(int(line), set())
                    tests.update(names[n] for n in numbers)

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that reach a mutant, the fastest first.

        What runs when a module is imported is reached by all tests that reach the module.
        """
        lines = self.lines.get(mutant.path, {})
        tests = set().union(*(lines.get(line, ()) for line in mutant.lines))
        if not tests and any(line in lines for line in mutant.lines):
            tests = set().union(*lines.values())
        return sorted(tests, key=lambda test: (self.seconds[test], test))


class Copy:
    """A copy of the tree, in which modules are changed and restored.

    Parameters
    ----------
    root : Path
        The tree, which stays as it is.
    folder : Path
        Where the copy is made.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for part in PARTS:
            source, target = root / part, folder / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "build")
                shutil.copytree(source, target, ignore=ignored)
            elif source.exists():
                shutil.copy2(source, target)
        self._changes = 0

    @cached_property
    def _environment(self) -> dict[str, str]:
        places = (self.folder, self.folder / "rtl_tests/support", self.folder / "scripts")
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "TORUSFABRIC_CACHE": str(self.folder / "cache"),
        }

    def try_out(self, mutant: Mutant, reached: Reached, limit: float) -> Verdict:
        """Run the tests that reach a mutant, at most so many seconds of them, the fastest first."""
        tests, total = reached.tests(mutant), 0.0
        chosen: list[str] = []
        for test in tests:
            total += reached.seconds[test]
            if total > limit and chosen:
                break
            chosen.append(test)
        if not chosen:
            return Verdict("unreached", 0, 0.0)
        room = f"rtl_tests/{mutant.path.split('/')[1]}/"
        first = _at_most(FIRST, [test for test in chosen if test.startswith(room)], reached)
        last = [test for test in chosen if test not in set(first)]
        outcome = self._outcome(mutant, [part for part in (first, last) if part], reached)
        return Verdict(outcome, len(tests), sum(reached.seconds[test] for test in chosen))

    def _outcome(self, mutant: Mutant, parts: list[list[str]], reached: Reached) -> str:
        path = self.folder / mutant.path
        self._write(path, mutant.after)
        try:
            for tests in parts:
                seconds = sum(reached.seconds[test] for test in tests)
                outcome = self.run(tests, PATIENCE + 10 * seconds)
                if outcome != "survived":
                    return outcome
        finally:
            self._write(path, mutant.before)
        return "survived"

    def run(self, tests: list[str], patience: float) -> str:
        """Run tests; a failure, an error and a module that cannot be imported kill."""
        files = sorted({test.partition("::")[0] for test in tests})
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "mutation.choose",
                 "-p", "no:cacheprovider", "--tb=line", *files]  # fmt: skip
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self._environment | {"MUTATION_TESTS": "\n".join(tests)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_limited,
        )
        try:
            status = process.wait(patience)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return "survived" if status == 0 else "killed"

    def _write(self, path: Path, text: bytes) -> None:
        """Write a module; Python tells what it compiled by size and time, in seconds."""
        before = path.stat().st_mtime
        path.write_bytes(text)
        self._changes += 1
        os.utime(path, (before, before + self._changes))


def _at_most(limit: float, tests: list[str], reached: Reached) -> list[str]:
    """The first tests, as many as can be run in some time."""
    total, kept = 0.0, []
    for test in tests:
        total += reached.seconds[test]
        if total > limit:
            break
        kept.append(test)
    return kept


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
