"""A pytest plugin: run chosen tests in a given order, and name those that fail.

The file that `MUTATION_TESTS` names holds JSON, ``{test: seconds, ..}``. SIGPROF ends the process
when a test exceeds its seconds of processor time, or when collection exceeds `IMPORTS` seconds. The
name of a test that fails, or of a file that cannot be imported, is added to the file with the
suffix ``.failed``.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from .limits import repeat_examples

FILE = Path(os.environ["MUTATION_TESTS"])
TESTS: dict[str, float] = json.loads(FILE.read_text(encoding="utf-8"))
IMPORTS = 120.0

signal.setitimer(signal.ITIMER_PROF, IMPORTS)
repeat_examples()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the listed tests, in the order of the list."""
    order = {name: n for n, name in enumerate(TESTS)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
    items[:] = sorted(
        (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Limit the processor time of a test."""
    signal.setitimer(signal.ITIMER_PROF, TESTS[item.nodeid])
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be imported."""
    pytest_runtest_logreport(report)


def pytest_runtest_logreport(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Record a test that fails."""
    if report.failed:
        with FILE.with_suffix(".failed").open("a", encoding="utf-8") as file:
            print(report.nodeid, file=file)
