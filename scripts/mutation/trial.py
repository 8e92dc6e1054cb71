"""Trials of mutants: run the tests that reach a mutant, in a copy of the tree, until one fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pytest

from .limits import PATIENCE, WAITING, limit_memory
from .mutants import Mutant
from .reached import Reached

__all__ = ["Copy", "Verdict"]

#: Files and folders of the tree that tests need.
PARTS = (
    "boards", "docs", "examples", "fusesoc", "rtl_tests", "scripts", "sim", "torusfabric",
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "pyproject.toml",
)  # fmt: skip

#: Seconds of the tests that run first. Most mutants need no further tests.
FIRST = 4.0


class Verdict(NamedTuple):
    """The outcome of a mutant.

    Parameters
    ----------
    outcome : str
        One word: killed, timeout (killed too), survived, or unreached, if no test runs the line.
    by : str
        The test that fails, or the file that cannot be imported; empty if nothing fails.
    tests : int
        Number of chosen tests.
    seconds : float
        Usual seconds of the chosen tests, by measurement.
    """

    outcome: str
    by: str
    tests: int
    seconds: float


class Copy:
    """A copy of the tree, in which modules are changed and restored.

    Parameters
    ----------
    root : Path
        The tree, which stays as it is.
    folder : Path
        Folder of the copy.
    tested : sequence of str
        Files and folders with tests, from `rtl_tests`.
    """

    def __init__(self, root: Path, folder: Path, tested: Iterable[str]) -> None:
        self.folder = folder
        self.tested = [f"rtl_tests/{name}" for name in tested]
        folder.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            source, target = root / part, folder / part
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "build")
                shutil.copytree(source, target, ignore=ignored)
            elif source.exists():
                shutil.copy2(source, target)
        self._changes = 0

    def __enter__(self) -> "Copy":
        return self

    def __exit__(self, *_: object) -> None:
        """End the process that has collected the tests, if it runs."""
        server = self.__dict__.pop("_server", None)
        if server:
            server.communicate()

    def try_out(self, mutant: Mutant, reached: Reached, limit: float) -> Verdict:
        """Run the tests that reach a mutant, at most `limit` seconds of them.

        A change within a function is tried in the process that has collected all tests. Code that
        runs during an import, of a module or of the tests, needs a new process.
        """
        chosen = reached.chosen(mutant, limit)
        seconds = {test: reached.seconds[test] for test in chosen}
        path = self.folder / mutant.path
        outcome, by = "", ""
        self._write(path, mutant.after)
        try:
            if mutant.function:
                outcome, by = _surely(lambda tests: self.serve(tests, mutant), seconds)
            if not outcome or (outcome == "survived" and reached.is_imported(mutant)):
                outcome, by = self._fresh(mutant, reached, seconds)
        finally:
            self._write(path, mutant.before)
        if outcome == "survived" and not reached.tests(mutant):
            outcome = "unreached"
        return Verdict(outcome, by, len(chosen), sum(seconds.values()))

    def failing(self, tests: Iterable[str]) -> set[str]:
        """Return the tests among some that fail without a change."""
        left, failing = set(tests), set()
        while left and (by := self.serve(dict.fromkeys(sorted(left), 1.0))[1]):
            failing.add(by)
            left -= failing
        return failing

    def serve(self, seconds: dict[str, float], mutant: Mutant | None = None) -> tuple[str, str]:
        """Run tests, with their usual seconds, in the process that has collected them.

        Returns
        -------
        tuple of str
            The outcome, and the test that fails. The outcome is empty if the change cannot be made
            in that process.
        """
        request = {
            "path": mutant and mutant.path, "function": mutant and mutant.function,
            "tests": _patience(seconds), "seconds": WAITING + 10 * sum(seconds.values()),
        }  # fmt: skip
        requests, answers = self._server.stdin, self._server.stdout
        assert requests
        assert answers
        print(json.dumps(request), file=requests, flush=True)
        answer = answers.readline()
        if not answer:
            raise RuntimeError("pytest must collect the tests: run it without a change")
        outcome, by = json.loads(answer)
        return outcome, by

    @cached_property
    def _server(self) -> subprocess.Popen[str]:
        """Process that has collected all tests; it ends when its requests do."""
        return subprocess.Popen(
            [*_words("mutation.serve"), "--capture=sys", *self.tested], cwd=self.folder,
            env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def _fresh(
        self, mutant: Mutant, reached: Reached, seconds: dict[str, float]
    ) -> tuple[str, str]:
        """Run tests in a new process; first some near ones, without an import of the others."""
        near = (test for test in seconds if reached.is_near(test, mutant))
        first = reached.at_most(FIRST, near)
        last = [test for test in seconds if test not in set(first)]
        outcome, by = "survived", ""
        for tests in filter(None, (first, last)):
            outcome, by = _surely(self.run, {test: seconds[test] for test in tests})
            if outcome != "survived":
                break
        return outcome, by

    def run(self, tests: dict[str, float]) -> tuple[str, str]:
        """Run tests, with their usual seconds, in a new process until one fails.

        Returns
        -------
        tuple of str
            The outcome, and the name of the failure. A failure, an error and a module that cannot
            be imported kill the mutant. An empty collection does not.
        """
        files = sorted({test.partition("::")[0] for test in tests})
        files = [file for file in files if (self.folder / file).exists()]
        if not files:
            return "survived", ""
        plan, failed = self.folder / "chosen.json", self.folder / "chosen.failed"
        failed.write_text("")
        plan.write_text(json.dumps(_patience(tests)))
        words = [*_words("mutation.choose"), "-x", "--tb=no", *files]
        status = self._status(words, WAITING + 10 * sum(tests.values()))
        by = failed.read_text().partition("\n")[0]
        if by or status is None or status < 0:
            hangs = not by and status in (None, -signal.SIGPROF)
            return "timeout" if hangs else "killed", by
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return "survived", ""
        raise RuntimeError(f"pytest must run the tests, not return {status}")

    def _status(self, words: list[str], patience: float) -> int | None:
        """Return the exit status of a command, or None after `patience` seconds."""
        process = subprocess.Popen(
            words, cwd=self.folder, env=self._environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limit_memory,
        )  # fmt: skip
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @cached_property
    def _environment(self) -> dict[str, str]:
        places = (self.folder, self.folder / "rtl_tests/support", self.folder / "scripts")
        return os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, places)),
            "TORUSFABRIC_CACHE": str(self.folder / "cache"),
            "MUTATION_TESTS": str(self.folder / "chosen.json"),
        }

    def _write(self, path: Path, text: bytes) -> None:
        """Write a module with a modification time of its own.

        Why: Python recognises compiled code by the size and the time of the source, in whole
        seconds.
        """
        before = path.stat().st_mtime
        path.write_bytes(text)
        self._changes += 1
        os.utime(path, (before, before + self._changes))


def _surely(
    run: Callable[[dict[str, float]], tuple[str, str]], tests: dict[str, float]
) -> tuple[str, str]:
    """Run tests until one fails, and confirm the failure by a run of that test alone.

    Why: the rest of an earlier test can make a later one fail. Such a failure does not count, and
    the following tests run.
    """
    while True:
        outcome, by = run(tests)
        names = [*tests]
        if by not in names[1:] or run({by: tests[by]})[0] != "survived":
            return outcome, by
        tests = {test: tests[test] for test in names[names.index(by) + 1 :]}


def _words(plugin: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin]


def _patience(seconds: dict[str, float]) -> dict[str, float]:
    """Return the seconds of processor time that each test may take, given its usual seconds."""
    return {test: PATIENCE + 10 * usual for test, usual in seconds.items()}
