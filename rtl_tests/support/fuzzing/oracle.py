"""Execution of cases, and the checks of their answers."""

import contextlib
import functools
import io
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from unittest import mock

from torusfabric import cli
from torusfabric.errors import MissingTool, TorusfabricError

__all__ = ["Fault", "Fuzzer", "run_cases", "run_line"]

#: PATIENCE: seconds of processor time after which a case hangs. WAITS: the same in wall-clock time,
#: as a multiple of PATIENCE, because the machine may be busy.
PATIENCE, WAITS = 30.0, 10

#: Most characters of an error message.
LONGEST = 2000

#: Allowed exit statuses: done, bad input, the work failed, a tool is missing.
STATUSES = (0, 1, 2, 3)

#: The parser, made once because this takes longer than many commands.
_parser = functools.cache(cli.make_parser)


class Hang(BaseException):
    """Signal that a case takes too long.

    It is no `Exception`, so that no handler in the code under test catches it.
    """


class Fault(NamedTuple):
    """A case with a wrong answer.

    Parameters
    ----------
    case : str
        Name of the case, from which it can be made again.
    input : str
        The input, as text.
    reason : str
        The fault of the answer.
    """

    case: str
    input: str
    reason: str


class Fuzzer:
    """Maker and runner of cases of one sort.

    Parameters
    ----------
    folder : Path
        Folder for files of the cases.
    """

    name: ClassVar[str]

    #: Share of the cases that are of this sort, in proportion to other sorts; high if a case is
    #: cheap.
    weight: ClassVar[int] = 1

    #: Number of cases that are made together, where that saves time.
    batch: int = 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, draw: random.Random) -> Any:
        """Make a random input."""
        raise NotImplementedError

    def run(self, given: Any) -> None:
        """Run the code under test with an input; raise `AssertionError` for a wrong answer."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources of the fuzzer."""

    def show(self, given: Any) -> str:
        """Return an input as text for people."""
        return repr(given)


def run_cases(fuzzer: Fuzzer, seed: int, numbers: range) -> Iterator[Fault | None]:
    """Run some cases, each of which follows from the seed and its number alone.

    Yields
    ------
    Fault or None
        Fault of each case, None for a right answer.
    """
    for number in numbers:
        given = fuzzer.make(random.Random(f"{fuzzer.name} {seed} {number}"))
        reason = _judged(fuzzer, given)
        case = f"{fuzzer.name}:{seed}:{number}"
        yield Fault(case, fuzzer.show(given), reason) if reason else None


def _judged(fuzzer: Fuzzer, given: Any) -> str | None:
    """Return the fault of the answer to an input, or None."""
    before = sorted(os.listdir(fuzzer.folder))
    try:
        with _time_limit():
            fuzzer.run(given)
    except Hang:
        return f"no answer within {PATIENCE:g} s of work\n{_tail()}"
    except TorusfabricError as error:
        return _left(fuzzer.folder, before) if str(error) else "an error without a message"
    except Exception:
        return _tail()
    return _left(fuzzer.folder, before)


def _tail() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-12:])


def _left(folder: Path, before: list[str]) -> str | None:
    """Return a fault if there are files that were not there before, or None."""
    left = sorted(set(os.listdir(folder)) - set(before))
    return f"files are left: {left}" if left else None


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raise `Hang` in the running code after the time limits."""

    def hang(number: int, frame: Any) -> None:
        raise Hang

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, PATIENCE),
        signal.SIGALRM: (signal.ITIMER_REAL, WAITS * PATIENCE),
    }
    before = {number: signal.signal(number, hang) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


class _Stream(io.TextIOWrapper):
    """A standard stream that keeps its text."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        """Return all that was written."""
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined, no-any-return]


def run_line(words: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in a temporary folder, and check the rules that hold for every command.

    Returns
    -------
    status : int
        Exit status.
    out : str
        Standard output.
    """
    out, err, place = _Stream(), _Stream(), Path.cwd()
    with tempfile.TemporaryDirectory(dir=folder) as own, contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(mock.patch.object(cli, "make_parser", _parser))
        usual, sys.stdin = sys.stdin, io.StringIO()
        os.chdir(own)
        try:
            status = cli.main(words)
        except SystemExit as error:  # after --help
            status = int(error.code or 0)
        finally:
            os.chdir(place)
            sys.stdin = usual
        left = [path.relative_to(own) for path in Path(own).rglob("*")]
    _check_answer(words, status, out.text(), err.text())
    unfinished = [path for path in left if status or path.suffix == ".part"]
    assert not unfinished, f"files are left: {unfinished}"
    return status, out.text()


def _check_answer(words: list[str], status: int, out: str, err: str) -> None:
    """Check the exit status, standard output and standard error of a command."""
    assert status in STATUSES, f"exit status {status}"
    assert "Traceback" not in out + err, err
    lines = [line for line in err.splitlines() if not line.startswith("  see ")]
    if "--json" in words and status == 0 and "-h" not in words and "--help" not in words:
        assert "version" in json.loads(out), "no object"
    if status and lines and lines[-1].startswith("{"):
        assert json.loads(lines[-1])["error"]["message"], "an error without a message"
        return
    if status == MissingTool.status and "doctor" in words:
        return  # its table names the missing tools
    if status:
        assert lines, "no error"
        assert lines[-1].startswith("torusfabric: "), f"no error at the end of {err!r}"
        assert len(lines[-1]) <= LONGEST, f"an error of {len(lines[-1])} characters: {lines}"
