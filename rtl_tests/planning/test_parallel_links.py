"""The choice of an algorithm for parallel links, for short sums and for longer messages."""

from functools import cache
from itertools import pairwise

import pytest
from helpers import few

import torusfabric as tf


@cache
def cycles_of(network, collective, flits):
    """Return the cycles of the chosen schedule."""
    return tf.compile(tf.plan(network, collective, flits=flits, check=False), flits=flits).cycles()


@pytest.mark.parametrize(
    ("network", "collective", "flits", "most"),
    [
        ("2", "alltoall", 64, 40), ("2x2", "alltoall", 64, 72), ("2x2x2", "alltoall", 64, 136),
        ("2x2x2", "alltoall", 500, 1012), ("2x2x2", "reduce-scatter", 100, 135),
        ("2x3", "reduce-scatter", 500, 641), ("2", "allreduce", 500, 261),
        ("2x2", "allreduce", 500, 202), ("2x2x2", "allgather", 4, 11),
    ],
)  # fmt: skip
def test_parallel_links_share_messages(network, collective, flits, most):
    """A side of 2 has two links between the same nodes, and chunks travel on both at once."""
    assert cycles_of(network, collective, flits) <= most


@pytest.mark.parametrize(
    ("network", "collective"),
    few(
        4,
        [
            (network, collective)
            for network in ("2", "2x2", "2x3", "2x2x2")
            for collective in ("alltoall", "allgather", "scatter", "gather", "reduce-scatter")
        ],
    ),
)
def test_no_number_of_chunks_is_much_quicker(network, collective):
    """No number of chunks from 1 to 6 is faster than the choice by more than 3 % and one cycle."""
    for chunks in range(1, 7):
        plan = tf.plan(network, collective, algorithm="matching", chunks=chunks, check=False)
        for flits in (1, 2, 3, 4, 8, 64):
            found = tf.compile(plan, flits=flits).cycles()
            chosen = cycles_of(network, collective, flits)
            assert chosen <= 1.03 * found + 1, (chunks, flits)


@pytest.mark.parametrize("network", few(3, ["4x2x9", "4x4", "2x8", "2x3x4x3", "3x3x3x3"]))
def test_short_sums_are_cut_by_flits(network):
    """A reduce-scatter of L flits takes no longer than one of L + 1 flits, for L up to 3."""
    cycles = [cycles_of(network, "reduce-scatter", flits) for flits in (1, 2, 3, 4)]
    assert cycles == sorted(cycles)


def test_one_flit_is_not_cut():
    """A message of one flit takes no longer than in a schedule of one chunk."""
    for collective in ("scatter", "gather", "allgather"):
        chosen = tf.plan("2x2x2", collective, flits=1)
        alone = tf.plan("2x2x2", collective, algorithm="matching", chunks=1)
        assert tf.compile(chosen, flits=1).cycles() <= tf.compile(alone, flits=1).cycles()


@pytest.mark.parametrize("collective", ["alltoall", "reduce-scatter", "allreduce", "allgather"])
def test_messages_of_any_length_use_both_links(collective):
    """At its longest message an engine is at most 10 % slower than a fabric for one length."""
    forms = tf.plan_forms("2x2", collective, max_flits=100, check=False)
    program = tf.compile([forms], max_flits=100)
    assert program.cycles(100) <= 1.1 * cycles_of("2x2", collective, 100)
    times = [program.cycles(flits) for flits in (*range(1, 20), 64, 99, 100)]
    assert all(shorter <= longer + 3 for shorter, longer in pairwise(times))


COLLECTIVES = ["reduce-scatter", "scatter", "alltoall", "allgather", "allreduce", "broadcast"]

#: Tori with one link and with two links between neighbours, and collectives of the quick test.
SMALL = [(torus, name) for torus in ("2x4", "3x3") for name in COLLECTIVES[:2]]
OTHERS = [(torus, name) for torus in ("2x2x2", "2x4", "3x3", "2x3", "4x4") for name in COLLECTIVES]


@pytest.mark.parametrize(
    ("torus", "collective"), few(len(SMALL), [*SMALL, *(one for one in OTHERS if one not in SMALL)])
)
def test_cycles_never_fall(torus, collective):
    """A longer message never takes fewer cycles."""
    cycles = []
    for flits in range(1, 13):
        schedule = tf.plan(torus, collective, flits=flits, check=False)
        cycles.append(tf.compile(schedule, flits=flits).cycles())
    assert all(shorter <= longer for shorter, longer in pairwise(cycles)), cycles


@pytest.mark.parametrize(
    ("torus", "collective", "flits"),
    [("2x3", "scatter", 42), ("4x4", "scatter", 61), ("3x3x3", "reduce-scatter", 8)],
)
def test_smaller_hardware_is_no_slower_than_a_longer_message(torus, collective, flits):
    """The choice of smaller hardware never makes a message slower than a longer message.

    In these cases the smallest hardware within 3 % of the fewest cycles would be slower.
    """
    shorter, longer = (
        tf.compile(tf.plan(torus, collective, flits=length, check=False), flits=length).cycles()
        for length in (flits, flits + 1)
    )
    assert shorter <= longer
