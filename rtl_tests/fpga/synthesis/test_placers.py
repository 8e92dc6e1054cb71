"""Placers that come to no end are left, and others are not."""

from types import SimpleNamespace

import pytest

from torusfabric.fpga.synthesis import nextpnr as placers
from torusfabric.fpga.synthesis.nextpnr import SILENCE, PlacerWatch, StuckPlacer


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(placers, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def lasts(watch, clock, most=10_000):
    """For how many seconds more a placer is watched in silence."""
    for seconds in range(most):
        try:
            watch()
        except StuckPlacer:
            return seconds
        clock.seconds += 1
    return None


def says(log, clock, watch, seconds):
    """Something is written every ten seconds, so many seconds long."""
    for _ in range(0, seconds, 10):
        with log.open("a") as file:
            file.write("Info: iter\n")
        watch()
        clock.seconds += 10


@pytest.mark.parametrize("before", [10, 60, 300, 1000])
def test_silence_as_long_as_all_before(tmp_path, clock, before):
    """What is written counts from the first line on, however late that comes."""
    log = tmp_path / "nextpnr.log"
    watch = PlacerWatch(log)
    for _ in range(500):  # a tool is being prepared
        watch()
        clock.seconds += 1
    log.touch()
    watch()
    clock.seconds += 500
    says(log, clock, watch, before)
    silent = lasts(watch, clock) + 10
    assert silent == max(SILENCE, before - 10) + 1
    watch = PlacerWatch(log)
    assert lasts(watch, clock) == SILENCE + 1


def test_routing_may_be_silent(tmp_path, clock):
    """Only placers are watched."""
    log = tmp_path / "nextpnr.log"
    log.write_text("Info: Routing globals...\n")
    assert lasts(PlacerWatch(log), clock) is None


def test_error_names_the_log(tmp_path, clock):
    log = tmp_path / "nextpnr.log"
    log.write_text("Info: Strict legalising 4 cells...\n")
    watch = PlacerWatch(log)
    watch()
    clock.seconds += SILENCE + 1
    with pytest.raises(StuckPlacer, match=r"^Placer must .* stuck \(log: \S+nextpnr.log\)$"):
        watch()
