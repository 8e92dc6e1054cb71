"""Capacities of boards: recorded limits, their measurement, and the message beyond them."""

import json
from dataclasses import replace

import pytest
from helpers import fabric_of, few

from torusfabric.cli import main
from torusfabric.fpga.board import (
    Attempt,
    BuildResult,
    Limit,
    Misfit,
    find_board,
    find_limit,
    load_boards,
)
from torusfabric.fpga.board.needs import largest_sides
from torusfabric.fpga.board.run import over_capacity_message

BOARDS = sorted(load_boards())


@pytest.mark.parametrize(
    ("sides", "share", "largest"),
    [("8x8", 2.0, [6, 5]), ("4x4", 1.01, [4, 3]), ("4x4x4", 4.0, [3, 2, 2]), ("2x2", 1.2, None)],
)
def test_largest_torus_that_may_fit(sides, share, largest):
    """`largest_sides` shrinks the longest sides first until the nodes are few enough."""
    numbers = [int(side) for side in sides.split("x")]
    assert largest_sides(numbers, share) == largest
    assert largest_sides((), share) is None


LOG = """\
Info: Device utilisation:
Info: \t         ICESTORM_LC:  {used}/ 1280  101%
Info: \t        ICESTORM_RAM:     1/   16    6%
{error}
"""


def message(log, fabric, board):
    """The message for a fabric that is too large, or an empty text."""
    return over_capacity_message(log, fabric.program.topology, board) or ""


def test_message_of_a_fabric_that_is_too_large():
    """The message says by how much the fabric is too large and which torus may fit. Other failures
    have no such message.
    """
    fabric, board = fabric_of("4x4", "allgather", "hamiltonian", flits=2), find_board("icestick")
    said = message(LOG.format(used=5120, error="ERROR: no"), fabric, board)
    assert said == (
        "Fabric must fit into icestick, not need 5120 of 1280 ICESTORM_LC (400 %); "
        "by these totals up to 2x2 may fit; place and route fits up to 2x2 allgather of 3 bits"
    )
    crowded = "ERROR: Unable to find legal placement for cell 'x'"
    said = message(LOG.format(used=1276, error=crowded), fabric, board)
    assert said.startswith("Fabric must fit into icestick, not crowd it with 1276 of 1280 ")
    assert not message(LOG.format(used=1276, error="ERROR: timing"), fabric, board)
    assert not message(LOG.format(used=700, error=crowded), fabric, board)
    assert not message("", fabric, board)


def test_message_names_what_was_measured():
    """The message ends with the recorded limit of the board, after the estimate by the totals."""
    board = replace(find_board("icestick"), limit=Limit(5, "icestick"))
    fabric = fabric_of("6x6", "allgather", "hamiltonian", width=8)
    log = LOG.format(used=2560, error="ERROR: no")
    estimate = "(200 %); by these totals up to 4x4 may fit"
    limits = {
        Limit(5, "icestick"): "; place and route fits up to 5x5 allgather of 8 bits",
        Limit(4, "icebreaker", width=2): "; place and route on icebreaker, which has the same "
        "device, fits up to 4x4 allgather of 2 bits",
        Limit(5): "; 5x5 allgather of 8 bits fits by an estimate",
        None: "",
    }
    for limit, said in limits.items():
        assert message(log, fabric, replace(board, limit=limit)).endswith(estimate + said)


@pytest.mark.parametrize("name", few(7, [*BOARDS], tuples=True))
def test_limit_on_record(name):
    """The limit of a board was measured on it or on a board with its device, or is an estimate."""
    board = find_board(name)
    assert board.limit is not None
    assert board.limit.side >= 2
    if board.limit.measured not in ("", name):
        other = find_board(board.limit.measured)
        assert other.limit == board.limit
        ours, theirs = board.make_platform(), other.make_platform()
        assert ours.device == theirs.device


@pytest.mark.parametrize("largest", [None, 2, 3, 6, 7, 8])
@pytest.mark.parametrize("start", [2, 4, 8])
def test_search_for_the_largest_that_fits(largest, start):
    """From any starting side, the search ends between the largest side that fits and the next."""
    attempt = lambda side: Attempt(side, side <= (largest or 0), "")
    side, attempts = find_limit(attempt, start=start, most=8)
    assert side == largest
    sides = [tried.side for tried in attempts]
    assert len(sides) == len(set(sides)) <= 6
    fitting = {tried.side for tried in attempts if tried.fits}
    assert max(fitting, default=None) == largest
    assert largest == 8 or (largest or 1) + 1 in sides


def test_measured_board(monkeypatch, capsys):
    """`boards --measure` builds ever larger tori and prints the limit for the board's file."""

    def built(fabric, board, folder, **_):
        assert (fabric.width, fabric.program.schedule.collective.kind) == (2, "allgather")
        if fabric.nodes > 9:
            raise Misfit("Fabric must fit into it (log: somewhere)")
        used = {"ICESTORM_LC": {"used": 7, "available": 9}, "NONE": {"used": 1, "available": 0}}
        return BuildResult(folder, {"resources": used, "fmax_mhz": 50.0}, False)

    monkeypatch.setattr("torusfabric.fpga.board.limits.build", built)
    what = ["boards", "--measure", "icestick", "--width", "2"]
    assert main(what) == 0
    said = capsys.readouterr()
    assert said.out == 'limit=Limit(side=3, measured="icestick", width=2),\n'
    lines = [f"torusfabric: {s}x{s}  fits: 7 of 9 ICESTORM_LC, 50.0 MHz" for s in (2, 3)]
    assert said.err.splitlines()[:2] == lines
    assert "5x5  no: Fabric must fit into it" in said.err
    assert main([*what, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["limit"]["side"], result["limit"]["algorithm"]) == (3, "hamiltonian")
    monkeypatch.setattr("torusfabric.fpga.board.limits.build", _misfit)
    assert main(what) == 0
    assert capsys.readouterr().out == "no square torus of 2 bits fits\n"


def _misfit(*_, **__):
    raise Misfit("no")
