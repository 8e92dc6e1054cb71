"""Progress of long work without a terminal, by the level of logging that was asked for."""

import io
import logging
import time
from collections.abc import Iterator

import pytest

from torusfabric.analysis import facts
from torusfabric.cli import main
from torusfabric.toolchain import progress
from torusfabric.toolchain.notices import LOGGER


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Print progress lines after 0.02 seconds."""
    monkeypatch.setattr(progress, "FIRST", 0.02)
    level = LOGGER.level
    yield
    LOGGER.setLevel(level)


def test_lines(caplog: pytest.LogCaptureFixture) -> None:
    """Progress lines appear now and then, with the share of the work, and then the duration."""
    caplog.set_level(logging.DEBUG, LOGGER.name)
    with progress.progress_bar("working") as advance:
        while not caplog.messages:
            time.sleep(0.01)
        advance(1, 4, "working hard")
        time.sleep(0.2)
    first, *_, last = caplog.messages
    assert first.startswith("working: ")
    assert any(line.startswith("working hard: 25 %, ") for line in caplog.messages)
    assert last.startswith("working took 0.")


def test_no_lines_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library prints no progress unless a user turns on logging."""
    LOGGER.setLevel(logging.NOTSET)
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    with progress.progress_bar("working"):
        time.sleep(0.05)
    assert not stream.getvalue()


@pytest.mark.parametrize(
    ("option", "said"), [((), True), (("--quiet",), False), (("--verbose",), True)]
)
def test_commands(
    option: tuple[str, ...],
    said: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Commands print progress to standard error, unless `--quiet` is given."""
    work = facts.schedule_facts

    def slowly(*given: object, **options: object) -> dict[str, object]:
        time.sleep(0.1)
        return work(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("torusfabric.cli.selection.schedule_facts", slowly)
    assert main(["plan", "3x3", "allgather", "--json", *option]) == 0
    error = capsys.readouterr().err
    assert ("torusfabric: checking: " in error) == said
    assert ("planning took" in error) == ("--verbose" in option)
    assert "of memory" not in error  # an upper bound of memory is no estimate


def test_quiet_or_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    """`--quiet` and `--verbose` exclude each other."""
    assert main(["plan", "3x3", "allgather", "--quiet", "--verbose"]) == 1
    assert "not allowed with" in capsys.readouterr().err
