"""Sums that nodes keep: the checker finds contributions that are missing or counted twice."""

from dataclasses import replace

import numpy as np
import pytest
from check_model import sums_are_right
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import Collective, Operator
from torusfabric.schedule import KeptSums, Lifted, Rounds, SumTable, Switching, Transfers
from torusfabric.topology import Torus

SIDES = [(2,), (3,), (6,), (2, 2), (2, 3), (3, 3), (4, 4), (5, 7), (8, 8), (2, 2, 2), (4, 4, 4)]
MAX = Operator.parse("max")


def exchange(sides, chunks=1):
    """Return a correct table of kept sums."""
    return tf.plan(Torus(*sides), "allreduce", algorithm="ring-exchange", chunks=chunks)


def as_rounds(table):
    """Return the same schedule with all transfers listed."""
    return Rounds(**table.head, transfers=tuple(table.rounds()))


def fault(schedule, prove=check, **options):
    """Return the message of the fault that a check finds, or None."""
    try:
        prove(schedule, **options)
    except tf.ScheduleError as error:
        return str(error)
    return None


@pytest.mark.parametrize("sides", SIDES)
def test_an_exchange_is_right(sides):
    """The check of one node, the check of all nodes and the plain model accept exchanges."""
    table = exchange(sides)
    assert check(table) == check_rounds(table) == check(as_rounds(table))
    if np.prod(sides) < 40:
        assert sums_are_right(table)


TABLES = [exchange(sides) for sides in [(4,), (5,), (2, 3), (3, 3)]] + [exchange((3, 3), 2)]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.sampled_from(TABLES), st.data())
def test_damaged_tables(table, data):
    """The check of one node, that of all nodes and the plain model agree on damaged tables."""
    chunk, passed = table.chunk.copy(), table.passed.copy()
    for _ in range(data.draw(st.integers(0, 3))):
        step = data.draw(st.integers(0, len(chunk) - 1))
        port = data.draw(st.integers(0, chunk.shape[1] - 1))
        chunk[step, port] = data.draw(st.integers(-1, table.chunks - 1))
        passed[step, port] = data.draw(st.integers(-1, chunk.shape[1] - 1))
    damaged = replace(table, chunk=chunk, passed=passed)
    right = sums_are_right(damaged)
    assert [fault(damaged) is None, fault(damaged, check_rounds) is None] == [right, right]
    often = sums_are_right(damaged, most=10**9)
    assert (fault(damaged, operators=[MAX]) is None) == often
    assert (fault(as_rounds(damaged), operators=[MAX]) is None) == often


def ring(chunk, passed, **others):
    """Return a table on a ring of four nodes."""
    table = SumTable(
        topology=Torus(4), collective=Collective("allreduce"), algorithm="by hand",
        switching=Switching.STORE_AND_FORWARD, ports=2, chunk=np.array(chunk),
        passed=np.array(passed),
    )  # fmt: skip
    return replace(table, **others)


PLANTED = [
    (ring([[0, 0], [0, 0]], [[-1, -1], [1, 0]]),
     r"^Round 2: node 2 \(2\) port \+0 sends block \(1, 0\), which is counted twice"),
    (ring([[0, 0], [0, -1]], [[-1, -1], [-1, -1]]),
     r"^Round 2: node 0 \(0\) port \+0 sends block \(0, 0\), which is counted twice"),
    (ring([[0, -1], [0, 0]], [[-1, -1], [0, -1]]),
     r"^Round 2: node 0 \(0\) port \+0 passes on a word of a chunk that has not arrived"),
    (ring([[0, 0]], [[-1, -1]]),
     r"^After 1 step: node 0 \(0\) ends without the complete sum that has block \(2, 0\)"),
    (ring([[1, 0]], [[-1, -1]]), r"^Round 1: .*sends a chunk that is none"),
    (ring([[0, 0]], [[-1, 2]]), r"^Round 1: .*passes on from an in-port that is none"),
    (ring([[0, 0]], [[-1]]), r"entries of a table must have shape \(1, 2\)"),
    (ring([[0, 0]], [[-1, -1]], collective=Collective("reduce-scatter")), "must be an allreduce"),
    (ring([[0, 0], [0, -1]], [[-1, -1], [1, -1]], ports=1),
     r"^Round 1: .*message 2 of at most 1 in a round"),
    (ring([[0, 0], [0, -1]], [[-1, -1], [1, -1]], duplex="half"),
     r"^Round 1: .*carries two messages at once"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "message"), PLANTED, ids=[m for _, m in PLANTED])
def test_planted_faults_are_named(table, message):
    """A planted fault is named with round, node, port and block."""
    with pytest.raises(tf.ScheduleError, match=message):
        check(table)
    with pytest.raises(tf.ScheduleError):
        check_rounds(table)


def test_idempotent_operators_may_count_twice():
    """A table that counts contributions twice is accepted only if all operators are idempotent."""
    table = ring([[0, 0], [0, 0]], [[-1, -1], [1, 0]])
    with pytest.raises(tf.ScheduleError, match=r"block \(1, 0\), which is counted twice"):
        check(table)
    assert check(table, operators=[MAX]).rounds == 2
    with pytest.raises(tf.ScheduleError, match="counted twice"):
        check(table, operators=["max", "add"])


def test_hardware_counts_twice_for_idempotent_operators_alone():
    """Hardware of a table that counts twice is built only for idempotent operators."""
    table = ring([[0, 0], [0, 0]], [[-1, -1], [1, 0]])
    program = tf.compile(table, operators="max,or")
    assert tf.simulate(tf.Fabric(program, width=8)).passed
    for operators in ("add", "max,add"):
        with pytest.raises(tf.ScheduleError, match="counted twice"):
            tf.compile(table, max_flits=1, operators=operators)


def reduced(rounds, sides=(4,)):
    """Return a reduction to node 0 with rounds of entries (node, port, passed)."""
    listed = []
    for entries in rounds:
        node, port, passed = np.array(entries).T
        listed.append(Transfers(node, port[:, None], KeptSums(np.zeros_like(node), passed)))
    return Rounds(
        topology=Torus(*sides), collective=Collective("reduce", 0), algorithm="by hand",
        switching=Switching.STORE_AND_FORWARD, ports=2, transfers=tuple(listed),
    )  # fmt: skip


def test_a_reduction_counts_at_its_root():
    """In a reduction a contribution may be counted twice, unless the sum reaches the root."""
    assert check(reduced([[(2, 1, -1), (3, 0, -1)], [(1, 1, -1)]])).transfers == 3
    beside = [[(2, 1, -1), (3, 0, -1)], [(1, 1, -1), (1, 0, -1)]]
    assert check(reduced(beside)).transfers == 4
    with pytest.raises(tf.ScheduleError, match=r"sum in which block \(2, 0\) is counted twice"):
        check(reduced([[(2, 1, -1), (2, 0, -1)], [(1, 1, -1), (3, 0, -1)]]))
    with pytest.raises(tf.ScheduleError, match=r"ends without the complete sum"):
        check(reduced([[(1, 1, -1), (3, 0, -1)]]))


def test_what_is_kept_is_not_mixed_with_what_moves():
    """A schedule with kept sums must not list blocks, and must be a reduction."""
    kept = as_rounds(exchange((3,)))
    moved = as_rounds(tf.plan("3", "allreduce", algorithm="matching"))
    both = replace(kept, chunks=3, transfers=kept.transfers + moved.transfers)
    with pytest.raises(tf.ScheduleError, match=r"^Round 2: lists blocks, in a schedule of sums"):
        check(both)
    with pytest.raises(tf.ScheduleError, match="which is no part of allgather"):
        check(replace(kept, collective=Collective("allgather")))


def test_nodes_that_differ_become_hardware():
    """Kept sums of nodes that differ become hardware if they are right for the chosen operators."""
    schedule = reduced([[(2, 1, -1), (3, 0, -1)], [(1, 1, -1)]])
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=3), width=8)).passed
    with pytest.raises(tf.ScheduleError, match=r"ends without the complete sum"):
        tf.compile(reduced([[(1, 1, -1), (3, 0, -1)]]))
    twice = reduced([[(2, 1, -1), (3, 0, -1)], [(1, 1, -1), (2, 1, -1)], [(1, 1, -1)]])
    with pytest.raises(tf.ScheduleError, match=r"is counted twice"):
        tf.compile(twice, operators=["max", "add"])
    assert tf.simulate(tf.Fabric(tf.compile(twice, flits=3, operators="max"), width=8)).passed


def test_a_complete_sum_replaces_partial_sums_in_each_group():
    """A schedule of one group stays correct when it is lifted to all groups."""
    ports, own = np.array([1, 0]), KeptSums(np.zeros(2, int), np.full(2, -1))
    gather = Transfers.hop(np.array([1, 2]), ports, own)
    deliver = Transfers.hop(np.array([0, 0]), ports, own)
    part = Rounds(
        topology=Torus(3), collective=Collective("allreduce"), transfers=(gather, deliver)
    )
    lifted = Lifted.from_group(part, Torus(3, 2), tf.parse_collective("allreduce@0"))
    assert check(part).transfers == 4
    assert check(lifted).transfers == check_rounds(lifted).transfers == 8
    assert tf.simulate(tf.Fabric(tf.compile(lifted, flits=2), width=8)).passed
