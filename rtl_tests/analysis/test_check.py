"""The checker, compared with a second checker that uses plain Python sets and no shortcut."""

from dataclasses import replace

import numpy as np
import pytest
from check_model import END, explicit, first_fault, lee_code, moves, ring

from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.schedule import Switching, Transfers


def test_lee_code_of_the_paper():
    """The all-gather by Lee codes on 7x7x7 has the figures of section 5 of the paper."""
    traffic = check(lee_code())
    assert traffic.rounds == 4
    assert traffic.round_hops == (1, 5, 5, 1)
    assert traffic.round_blocks == (1, 7, 49, 343)
    assert (traffic.transfers, traffic.arcs_used) == (4 * 294, 294 + 1176 + 1372 + 294)


HALF = {"duplex": "half", "ports": 1}
FAULTS = [
    (explicit((3,), "broadcast", moves((0, [0]), (0, [1]), (0, [0]))),
     r"Round 1: node 0 \(0\) port \+0 carries two messages at once", (1, 0, 0, None)),
    (explicit((3,), "allgather", moves((0, [0]), (1, [1])), **HALF),
     r"Round 1: node 1 \(1\) port -0 carries two messages at once \(half duplex", (1, 1, 1, None)),
    (explicit((3,), "broadcast", moves((0, [0]), (0, [1])), ports=1),
     r"Round 1: node 0 \(0\) port -0 sends message 2 of at most 1 in a round", (1, 0, 1, None)),
    (explicit((3,), "gather", moves((1, [1]), (2, [0])), ports=1),
     r"Round 1: node 0 \(0\) port -0 receives message 2 of at most 1 in a round", (1, 0, 1, None)),
    (explicit((3,), "broadcast", moves((0, [0, 0])), switching=Switching.STORE_AND_FORWARD),
     r"Round 1: node 0 \(0\) port \+0 starts a path of more than one hop", (1, 0, 0, None)),
    (explicit((3,), "broadcast", Transfers(np.array([0, 1]), np.array([[0]], np.int8))),
     "Round 1: senders and paths must be arrays of equal length", (1, None, None, None)),
    (explicit((3,), "broadcast", Transfers(np.array([0]), np.array([[-1]], np.int8))),
     r"Round 1: node 0 \(0\) starts a path without a hop", (1, 0, None, None)),
    (explicit((3,), "broadcast", Transfers(np.array([0]), np.array([[0, -1, 1]], np.int8))),
     r"Round 1: node 0 \(0\) port \+0 starts a path that goes on after its end", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [7]))),
     r"Round 1: node 0 \(0\) starts a path through a port that is none", (1, 0, None, None)),
    (explicit((3,), "broadcast", moves((5, [0]))),
     r"Round 1: transfer 1 starts at node 5, not at one of 0 to 2", (1, None, None, None)),
    (explicit((3,), "broadcast", moves((1, [0]))),
     r"Round 1: node 1 \(1\) port \+0 sends a message without a block", (1, 1, 0, None)),
    (explicit((4,), "broadcast", moves((0, [1]), (2, [1]))),
     r"Round 1: node 2 \(2\) port -0 sends a message without a block", (1, 2, 1, None)),
    (explicit((3,), "broadcast", moves((0, [0], []))),
     r"Round 1: node 0 \(0\) port \+0 sends a message without a block", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [0], [3]))),
     r"Round 1: node 0 \(0\) port \+0 sends a block that does not exist", (1, 0, 0, None)),
    (explicit((3,), "broadcast", moves((0, [0], [0]), (1, [0], [0]))),
     r"Round 1: node 1 \(1\) port \+0 sends block \(0, 0\) before it holds it", (1, 1, 0, (0, 0))),
    (explicit((4,), "broadcast", moves((0, [0]), (0, [1])), moves((1, [1]))),
     r"After 2 rounds: node 2 \(2\) ends without block \(0, 0\)", (None, 2, None, (0, 0))),
    (explicit((2,), "alltoall", moves((0, [0], [1]))),
     r"After 1 round: node 0 \(0\) ends without block \(1, 0, 0\)", (None, 0, None, (1, 0, 0))),
    (explicit((3,), "reduce", moves((1, [1], [1]), (1, [0], [1]))),
     r"Round 1: node 1 \(1\) port \+0 sends the partial sum with block \(1, 0\) a second time",
     (1, 1, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [1], [3]), (1, [0], [3])), chunks=2),
     r"Round 1: node 1 \(1\) port \+0 sends the partial sum with block \(1, 1\) a second time",
     (1, 1, 0, (1, 1))),
    (explicit((3,), "reduce", moves((1, [0])), moves((2, [0], [1]))),
     r"Round 2: node 2 \(2\) port \+0 sends less than its whole partial sum with block \(1, 0\)",
     (2, 2, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [0])), moves((2, [0], [1, 1]))),
     r"Round 2: node 2 \(2\) port \+0 lists block \(1, 0\) twice", (2, 2, 0, (1, 0))),
    (explicit((3,), "reduce", moves((1, [1], [1])), moves((1, [1], [1]))),
     r"Round 2: node 1 \(1\) port -0 sends block \(1, 0\), whose partial sum it has sent on",
     (2, 1, 1, (1, 0))),
    (explicit((4,), "reduce", moves((2, [1], [2])), moves((1, [1], [0]))),
     r"Round 2: node 1 \(1\) port -0 sends block \(0, 0\) before it holds it", (2, 1, 1, (0, 0))),
    (explicit((3,), "allreduce", moves((1, [1]), (2, [0])), moves((0, [0])), moves((0, [0]))),
     r"Round 3: node 0 \(0\) port \+0 sends block \(0, 0\), which is counted twice",
     (3, 0, 0, (0, 0))),
    (explicit((3,), "reduce", moves((1, [1]))),
     r"After 1 round: node 0 \(0\) ends without block \(2, 0\)", (None, 0, None, (2, 0))),
    (explicit((3,), "reduce-scatter", moves((1, [1]), (2, [0]))),
     r"After 1 round: node 1 \(1\) ends without block \(0, 1, 0\)", (None, 1, None, (0, 1, 0))),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "message", "place"), FAULTS)
def test_fault_is_named(schedule, message, place):
    """A fault is named with round, node, port and block, in its message and its attributes."""
    with pytest.raises(ScheduleError, match=f"^{message}") as info:
        check(schedule)
    error = info.value
    assert (error.round, error.node, error.port, error.block) == place
    if place[1] is not None:
        assert first_fault(schedule) == (place[0] or END)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"ports": 3}, "Ports must be 1 to 2, not 3"),
        ({"ports": 0}, "Ports must be 1 to 2, not 0"),
        ({"chunks": 0}, "Chunks must be positive, not 0"),
        ({"collective": Collective("broadcast", 9)}, "Root must be a node from 0 to 2, not 9"),
    ],
)
def test_schedule_must_make_sense(fields, message):
    """The ports, chunks and root of a schedule are checked before its transfers."""
    with pytest.raises(ScheduleError, match=f"^{message}$"):
        check(explicit((3,), "broadcast", **fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"switching": "wormhole"},
         "Switching must be store-and-forward or circuit, not 'wormhole'"),
        ({"duplex": "no"}, "Duplex must be full or half, not 'no'"),
    ],
)  # fmt: skip
def test_the_model_is_one_of_few(fields, message):
    """A schedule with an unknown switching or duplex mode cannot be made."""
    with pytest.raises(InputError, match=f"^{message}$"):
        explicit((3,), "broadcast", **fields)


def test_parallel_links_are_distinguished():
    """On a side of 2 each of the two links can carry a message, even in half duplex."""
    both = moves((0, [0]), (0, [1]))
    assert check(explicit((2,), "broadcast", both, duplex="half")).duplicates == 1
    crossing = moves((0, [0]), (1, [0]))
    check(explicit((2,), "allgather", crossing, duplex="half"))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 1 .* carries two messages"):
        check(explicit((2,), "allgather", moves((0, [0]), (1, [1])), duplex="half"))


def test_first_fault_wins():
    """The first faulty round is reported, even if a later round breaks a simpler rule."""
    late = moves((0, [0]), (0, [0]))
    early = moves((1, [0], [0]))
    with pytest.raises(ScheduleError, match=r"^Round 1: node 1 ") as info:
        check(explicit((3,), "broadcast", early, late))
    assert info.value.round == 1


def test_partial_sums_may_change_places():
    """Two nodes may exchange their partial sums in one round, and no sum is doubled."""
    swap, fold = moves((0, [0]), (1, [1])), moves((1, [1]), (2, [0]))
    assert check(explicit((3,), "reduce", swap, fold)).round_blocks == (1, 1)


def test_empty_schedule_of_a_single_owner():
    """A schedule without rounds is refused at the first node that lacks a block."""
    with pytest.raises(
        ScheduleError, match=r"^After 0 rounds: node 0 \(0\) ends without block \(1, 0\)$"
    ):
        check(explicit((2,), "allgather"))


def test_progress_is_reported():
    """Reported progress ends with the total."""
    seen = []
    check(lee_code(), progress=lambda *args: seen.append(args))
    assert seen[-1] == (4, 4)
    check(ring(6, 3), progress=lambda *args: seen.append(args))
    assert seen[-1][0] == seen[-1][1]


def test_several_passes_find_the_same(monkeypatch):
    """A check in many passes gives the traffic and the first fault of a check in one pass."""
    schedule = lee_code()
    whole = check(schedule)
    broken = replace(schedule, transfers=schedule.transfers[:3])
    monkeypatch.setattr("torusfabric.analysis.check.follow.BLOCK_BUDGET", 343 * 8 * 2)
    monkeypatch.setattr("torusfabric.analysis.check.follow.CELLS_AT_ONCE", 1)
    assert check(schedule) == whole
    with pytest.raises(
        ScheduleError, match=r"^After 3 rounds: node 1 \(0,0,1\) ends without block \("
    ):
        check(broken)
    monkeypatch.setattr("torusfabric.analysis.check.follow.SUM_BUDGET", 1)
    check(explicit((2,), "reduce-scatter", moves((0, [0], [1]), (1, [0], [2]))))
    halves = moves((0, [0], [0]), (1, [0], [3])), moves((1, [0], [0, 2]), (0, [0], [1, 3]))
    check(explicit((2,), "allreduce", *halves, chunks=2))
    early = explicit((3,), "reduce", moves((1, [1], [2]), (2, [0], [1])), chunks=2)
    with pytest.raises(ScheduleError, match=r"^Round 1: node 2 .* sends block \(0, 1\) before it"):
        check(early)


@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_many_passes_end_with_the_first_fault(collective, monkeypatch):
    """A check in many passes stops after the first pass that finds a fault."""
    monkeypatch.setattr("torusfabric.analysis.check.follow.BLOCK_BUDGET", 1)
    monkeypatch.setattr("torusfabric.analysis.check.follow.SUM_BUDGET", 1)
    schedule, seen = explicit((700,), collective, moves((0, [0]))), []
    with pytest.raises(ScheduleError, match=r"^After 1 round: node .* ends without block"):
        check(schedule, progress=lambda *args: seen.append(args))
    assert len(seen) == 1
