"""`tf.time` gives the times in the papers, and `tf.stream_time` those of flits that stream."""

from fractions import Fraction
from typing import Any

import pytest

import torusfabric as tf
from torusfabric.analysis.check import check
from torusfabric.analysis.cost import Costs, schedule_cost

STORED = {"beta": 5, "tau": 3, "length": 120}
CIRCUIT = {"alpha": 7, "delta": 2, "tau": 3, "length": 120}


def steps_time(steps: int, units: Fraction | int) -> Fraction:
    """Time of store-and-forward steps in each of which the longest message has `units` units."""
    return steps * (STORED["beta"] + STORED["tau"] * Fraction(units))


@pytest.mark.parametrize("order", range(1, 5))
@pytest.mark.parametrize(("trees", "packets"), [(1, 1), (2, 1), (2, 2), (2, 5), (1, 4)])
def test_deserable_trees(order, trees, packets, tmp_path):
    """A broadcast of P packets takes 2^n - 2 + P steps: equations (12), (13) and (14) at integer P.

    The plan, its file and its traffic give the same time.
    """
    options: dict[str, Any] = {"trees": trees, "packets": packets}
    planned = tf.plan(f"arrowhead:{order}", "broadcast", algorithm="spanning-tree", **options)
    planned.save(tmp_path / "plan.json")
    claimed = steps_time(2**order - 2 + packets, Fraction(120, trees * packets))
    assert tf.time(planned, **STORED) == tf.time(tmp_path / "plan.json", **STORED) == claimed
    assert schedule_cost(planned, check(planned)).time(**STORED) == claimed


def test_least_time_cuts_into_packets():
    """`objective="time"` finds the packets of equation (14), in `plan` and in `compare`."""
    costs: Costs = {"alpha": 1, "beta": 1, "tau": 1}
    chosen = tf.plan("arrowhead:2", "broadcast", flits=1000, objective="time", costs=costs)
    assert (chosen.algorithm, chosen.chunks) == ("spanning-tree", 64)
    best = tf.compare("arrowhead:2", "broadcast", flits=1000, objective="time", costs=costs)[0]
    assert (best.schedule.chunks, best.time) == (64, Fraction(2261, 4))


@pytest.mark.parametrize(
    ("collective", "chunks", "steps"),
    [
        ("broadcast", 1, 4),  # M + n floor(k / 2) - 1
        ("broadcast", 6, 9),
        ("allgather", 4, 15),  # M (N - 1) / 2n
        ("alltoall", 4, 32),  # M k^(n + 1) / 8
    ],
)
def test_fragopoulou_and_akl(collective, chunks, steps):
    """On the torus of n = 2 and k = 4 each step costs a start-up and one M-th of the message."""
    planned = tf.plan("4x4", collective, algorithm="necklace", chunks=chunks)
    assert tf.time(planned, **STORED) == steps_time(steps, Fraction(120, chunks))


@pytest.mark.parametrize(
    ("network", "collective", "hops"),
    [("8x8", "broadcast", 9), ("8x8", "reduce", 9), ("3x4", "allreduce", None),
     ("mesh:3x3", "broadcast", None), ("arrowhead:2", "broadcast", 3)],
)  # fmt: skip
def test_trees_of_streams(network, collective, hops):
    """The papers' model counts each step in full.

    The time of streams counts one start-up, and hops.
    """
    planned = tf.plan(network, collective)
    depth = planned.round_count
    assert hops in (None, depth)
    share = Fraction(120, planned.chunks)
    assert tf.time(planned, **STORED) == steps_time(depth, share)
    stream = tf.stream_time(planned, **STORED, delta=2)
    assert stream == 5 + 2 * depth + 3 * share < tf.time(planned, **STORED)


@pytest.mark.parametrize(
    ("network", "collective", "algorithm"),
    [("4x4", "allgather", "hamiltonian"), ("5x5", "broadcast", "max-flow"),
     ("3x3", "alltoall", "matching"), ("4", "reduce-scatter", "hamiltonian")],
)  # fmt: skip
def test_what_does_not_stream_has_no_stream_time(network, collective, algorithm):
    """A schedule that does not stream has no stream time."""
    planned = tf.plan(network, collective, algorithm=algorithm)
    with pytest.raises(tf.InputError, match=r"^stream_time needs trees that never change"):
        tf.stream_time(planned, beta=1, tau=1)


def test_least_time_is_not_that_of_streams():
    """`objective="time"` uses the papers' model, not the time of streams.

    On 8x8 with 64 flits, nine steps of 16 units cost 324, and three rounds of circuits 252.
    """
    costs: Costs = {"alpha": 20, "beta": 20, "tau": 1}
    rows = tf.compare("8x8", "broadcast", flits=64, objective="time", costs=costs)
    times = {(row.algorithm, *row.options): row.time for row in rows}
    assert (times["max-flow",], times["spanning-tree",]) == (252, 324)
    chosen = tf.plan("8x8", "broadcast", flits=64, objective="time", costs=costs)
    time = tf.time(chosen, alpha=20, beta=20, tau=1, length=64)
    assert (chosen.algorithm, time) == ("max-flow", 252)
