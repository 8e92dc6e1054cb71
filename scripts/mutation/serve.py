"""A pytest plugin: collect all tests once, then run some of them for each mutant in a child.

Requests and answers are lines of JSON on the standard streams. A request names the module that was
changed on disk, the changed function (name and first line, or null without a change), the tests
with the seconds of processor time each may take, and the seconds of wall-clock time for all. In the
child, every function object with this name and line gets the new code, and all caches are emptied.
The answer has the outcome and the test that fails; the outcome is empty if the function cannot be
changed.
"""

import functools
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

from .limits import limit_memory, repeat_examples

REQUESTS, ANSWERS = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
NOTHING = os.open(os.devnull, os.O_RDWR)
for stream in (0, 1, 2):
    os.dup2(NOTHING, stream)

repeat_examples()

#: Exit status of a child: all tests pass, a test fails, the function could not be changed.
PASSED, FAILED, UNCHANGED = 0, 1, 3

CACHED = type(functools.cache(len))


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Serve until there are no more requests."""
    items = {item.nodeid: item for item in session.items}
    for line in REQUESTS:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _run(request, items, writing)
        os.close(writing)
        status = _status(child, request["seconds"])
        with os.fdopen(reading) as file:
            by = file.read()
        hangs = status in (None, -signal.SIGPROF)
        outcome = {PASSED: "survived", UNCHANGED: ""}.get(status, "timeout" if hangs else "killed")  # type: ignore[arg-type]
        print(json.dumps([outcome, by]), file=ANSWERS, flush=True)
    return True


def _status(child: int, seconds: float) -> int | None:
    """Return the exit status of a child; kill it after `seconds`, and return None."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run(request: dict[str, Any], items: dict[str, pytest.Item], writing: int) -> NoReturn:
    """Change a function, and run tests until one fails; end the process."""
    status = UNCHANGED
    try:
        os.setsid()
        limit_memory()
        if request["function"]:
            change(Path(request["path"]).resolve(), *request["function"])
        status = PASSED
        chosen = [(items[test], s) for test, s in request["tests"].items() if test in items]
        for (item, seconds), (after, _) in zip(chosen, [*chosen[1:], (None, 0)], strict=False):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            if _fails(item, after):
                os.write(writing, item.nodeid.encode())
                status = FAILED
                break
    finally:
        os._exit(status)


def _fails(item: pytest.Item, after: pytest.Item | None) -> bool:
    """Return True if a test or a fixture of it fails, or an exception leaves pytest."""
    reporter = Failures()
    item.config.pluginmanager.register(reporter)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    except BaseException:
        return True
    finally:
        item.config.pluginmanager.unregister(reporter)
    return reporter.failed


class Failures:
    """A pytest plugin that notes the failure of a test."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure of the setup, the call or the teardown of a test."""
        self.failed |= report.failed


def change(path: Path, name: str, line: int) -> None:
    """Give a function the code that its module has on disk, and empty all caches.

    Raises
    ------
    LookupError
        If the module is imported, but no function with this name and line exists.
    """
    codes = _codes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))
    new = next(code for code in codes if (code.co_name, code.co_firstlineno) == (name, line))
    found = 0
    for item in gc.get_objects():
        if isinstance(item, CACHED):
            item.cache_clear()
        elif isinstance(item, FunctionType):
            old = item.__code__
            if (old.co_name, old.co_firstlineno) == (name, line) and old.co_filename == str(path):
                item.__code__ = new
                found += 1
    if not found and any(getattr(m, "__file__", "") == str(path) for m in [*sys.modules.values()]):
        raise LookupError(f"{name} is nowhere")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
