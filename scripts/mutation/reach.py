"""A pytest plugin: measure the lines of the package that each passing test reaches, and its time.

`python -m pytest -p mutation.reach` writes its measurements to the file that `MUTATION_REACH`
names, as JSON: ``{"tests": {test: seconds}, "reached": {module: {line: [number of a test, ..]}}}``.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

FILE = Path(os.environ["MUTATION_REACH"])
ROOT = Path.cwd()

#: In place of the number of a test: the line also runs outside tests, during an import.
IMPORTED = -1


class Reach:
    """Measurement of every test in a context of its own."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(
            data_file=None, source=[str(ROOT / "torusfabric")], config_file=False, messages=False
        )
        self.seconds: dict[str, float] = {}
        self.useless: set[str] = set()
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Attribute the lines that run from now on to the test."""
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the seconds of setup, call and teardown."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self.useless.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the measurements."""
        self.coverage.stop()
        for test in self.useless:
            del self.seconds[test]
        data, numbers = self.coverage.get_data(), {test: n for n, test in enumerate(self.seconds)}
        reached = {}
        for path in sorted(data.measured_files()):
            lines = {}
            for line, tests in sorted(data.contexts_by_lineno(path).items()):
                lines[line] = sorted(numbers[test] for test in tests if test in numbers)
                if "" in tests:
                    lines[line].append(IMPORTED)
            reached[Path(path).relative_to(ROOT).as_posix()] = lines
        FILE.write_text(json.dumps({"tests": self.seconds, "reached": reached}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Start the measurement before the first import of the package."""
    config.pluginmanager.register(Reach(), "reach")
