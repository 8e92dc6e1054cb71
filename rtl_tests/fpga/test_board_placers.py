"""Placers and routers of boards: the order of the attempts, and the time for each."""

import json
import re
import sys
from types import SimpleNamespace

import pytest
from helpers import fabric_of, few

from torusfabric.errors import WorkFailed
from torusfabric.fpga.board import Misfit, build, find_board
from torusfabric.fpga.board.plan import SCRIPT
from torusfabric.fpga.synthesis import nextpnr as placers
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache, RenewingCache

#: Logs of place and route: all cells are placed; and then the clock is missed.
PLACED = "Info: Routing globals...\n"
SLOW = PLACED + "ERROR: Max frequency for clock: 20.00 MHz (FAIL at 25.00 MHz)\n"


def taking(cells):
    """The first log line of place and route: how many cells the design takes."""
    return f"Info: \t TRELLIS_COMB:  {cells}/ 83640  {cells // 837}%\n"


@pytest.fixture
def clock(monkeypatch):
    """A clock whose seconds pass only under control of the test."""
    now = SimpleNamespace(seconds=0.0, starts=[], reported=[])
    watch = SimpleNamespace(monotonic=lambda: now.seconds)
    monkeypatch.setattr(sys.modules["torusfabric.fpga.board.run"], "time", watch)
    return now


@pytest.fixture
def attempts(monkeypatch, tmp_path, clock, kept_plans):
    """A function that builds with fake tools; returns the (placer, router) pairs and the result."""

    def attempt(says, *, looks=1, board="ulx3s-85f", cache=None, takes=0.0):
        """Build once; `says` maps (placer, router) to a log, `takes` is the time of each look."""
        ways = []

        def run(name, args, *, folder, log, what, look):
            assert (name, args) == ("sh", [SCRIPT])
            way = re.findall(r"--(?:placer|router) (\w+)", (folder / SCRIPT).read_text())[::-1]
            ways.append(tuple(way))
            clock.starts.append(clock.seconds)
            said = says.get(ways[-1], PLACED)
            (folder / "fabric.json").touch()
            (folder / "fabric.tim").write_text(said)
            for _ in range(looks):
                look()
                clock.seconds += takes
            if "ERROR" in said:
                raise WorkFailed("nextpnr failed")
            used = {"utilization": {}, "fmax": {"clk": {"achieved": 150.0}}}
            (folder / "fabric.report.json").write_text(json.dumps(used))
            for product in ("fabric.bit", "fabric.svf"):
                (folder / product).touch()

        monkeypatch.setattr(tools, "run", run)
        monkeypatch.setattr(tools, "require", lambda tool: tool)
        monkeypatch.setattr(tools, "version", lambda tool: "1")
        fabric = fabric_of("2", "allgather", width=2, flits=2)
        cache = cache or RenewingCache(tmp_path / "cache")
        try:
            built = build(fabric, find_board(board), tmp_path / "out", cache=cache,
                          progress=lambda *what: clock.reported.append(what))  # fmt: skip
        except WorkFailed as error:
            return ways, error
        return ways, built

    return attempt


EVERY = [(placer, router) for placer in ("static", "heap") for router in ("router2", "router1")]


def test_first_that_reaches_the_clock(attempts, tmp_path):
    """The next router is tried if one misses the clock, and the report names the last pair."""
    cache = Cache(tmp_path / "cache")
    ways, built = attempts({EVERY[0]: SLOW}, cache=cache)
    assert ways == EVERY[:2]
    assert (built.report["placer"], built.report["router"]) == EVERY[1]
    ways, again = attempts({}, cache=cache)
    assert (ways, again.cached) == ([], True)
    assert again.report == built.report
    ways, built = attempts({})
    assert ways == EVERY[:1]
    assert (built.report["placer"], built.report["router"]) == EVERY[0]


def test_clock_that_none_reaches(attempts):
    """Every placer is tried with every router before a build is given up."""
    ways, error = attempts(dict.fromkeys(EVERY, SLOW))
    assert ways == EVERY
    assert isinstance(error, Misfit)
    assert "FAIL at 25.00 MHz" in str(error)


@pytest.mark.parametrize(
    "said", few(1, ["ERROR: Unable to place cell\n", "ERROR: Assertion failure\n"])
)
def test_placer_that_fails(attempts, said):
    """If a placer fails, the next placer is tried at once, without another router."""
    ways, built = attempts({EVERY[0]: said})
    assert ways == [EVERY[0], EVERY[2]]
    assert built.report["placer"] == "heap"
    ways, error = attempts(dict.fromkeys(EVERY, said))
    assert ways == [EVERY[0], EVERY[2]]
    assert said[7:-1] in str(error)


def test_placer_that_is_stuck(attempts, clock, monkeypatch):
    """A stuck first placer is stopped; the last placer runs until the time limit."""
    monkeypatch.setattr(placers, "time", sys.modules["torusfabric.fpga.board.run"].time)
    ways, error = attempts(dict.fromkeys(EVERY, "Info: Strict legalising\n"), looks=99, takes=60)
    assert ways == [EVERY[0], EVERY[2]]
    assert (clock.starts, clock.seconds) == ([0, 2 * 60], 60 * 60)
    assert "must end within 60 min" in str(error)


def test_device_that_is_too_small(attempts):
    """A design with more cells than the device has ends the build after the first attempt."""
    said = taking(90_000) + "ERROR: no BELs remaining\n"
    ways, error = attempts(dict.fromkeys(EVERY, said), looks=0)
    assert ways == EVERY[:1]
    assert str(error).startswith("Fabric must fit into ulx3s-85f, not need 90000 of 83640 TREL")
    said = "Info: \t ICESTORM_LC:  6000/ 5280  113%\nERROR: no BELs remaining\n"
    ways, error = attempts({(): said}, board="icebreaker")
    assert ways == [()]
    assert str(error).startswith("Fabric must fit into icebreaker, not need 6000 of 5280 ICE")


def test_placer_that_takes_too_long(attempts, clock):
    """A placer before the last has half of the remaining time, and then no second router."""
    ways, error = attempts(dict.fromkeys(EVERY, "Info: Running placer\n"), looks=99, takes=60)
    assert ways == [EVERY[0], EVERY[2]]
    assert (clock.starts, clock.seconds) == ([0, 30 * 60], 60 * 60)
    assert re.search(r"^Build for ulx3s-85f must end within 60 min, .* \(placing\)", str(error))


def test_build_that_takes_too_long(attempts, clock):
    """A build is stopped after the minutes of its board, and the message names the stage."""
    said = "Info: \t ICESTORM_LC:  4000/ 5280  75%\n"
    ways, error = attempts({(): said}, board="icebreaker", looks=100, takes=60)
    assert (ways, clock.seconds) == ([()], 900)
    assert clock.reported == [(1, 4, "placing")] * 16
    assert re.search(
        r"^Build for icebreaker must end within 15 min, not still be at work \(placing; it "
        r"takes 4000 of 5280 ICESTORM_LC, 76 %\): --minutes allows more, .* \S+\.tim\)$",
        str(error),
    )
