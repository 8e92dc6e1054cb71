"""Patterns of sums: the check of their shape agrees with the check of the listed transfers."""

from dataclasses import replace

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.check import check_rounds
from torusfabric.errors import ScheduleError


def plan(topology, kind, **options):
    return tf.plan(topology, kind, algorithm="hamiltonian", **options)


@pytest.mark.parametrize("kind", ["reduce-scatter", "allreduce"])
@pytest.mark.parametrize("topology", ["3", "4", "2x2", "3x3", "4x4", "3x5", "2x4", "3x3x3"])
def test_both_ways_to_check_agree(topology, kind):
    """The check by shape gives the same report as following every contribution."""
    schedule = plan(topology, kind)
    assert tf.check(schedule) == check_rounds(schedule)
    assert schedule.round_count == tf.bound(schedule)


def test_one_way_around_a_ring():
    """A reduce-scatter in one direction around a ring, with all other ports idle, is correct."""
    ring = plan("5", "reduce-scatter", chunks=2)
    one_way = replace(
        ring,
        chunks=1,
        ports=1,
        feed=np.where(ring.inject == 0, ring.feed, -1),
        inject=np.where(ring.inject == 0, 0, -1),
    )
    assert tf.check(one_way) == check_rounds(one_way)
    program = tf.compile(one_way, flits=3)
    words = np.arange(75, dtype=np.uint64).reshape(5, 15)
    assert (program.execute(words) == words.sum(axis=0).reshape(5, 3)).all()
    assert tf.simulate(tf.Fabric(program, width=12)).passed


def changed(schedule, what, node, port, value):
    """Return a pattern with one entry of a table changed."""
    table = getattr(schedule, what).copy()
    table[node, port] = value
    return replace(schedule, **{what: table})


def swapped(schedule):
    """Return a pattern in which node 4 exchanges the feeds of two out-ports."""
    feed = schedule.feed.copy()
    feed[4, [0, 1]] = feed[4, [1, 0]]
    return replace(schedule, feed=feed)


def without(schedule, chunk):
    """Return a pattern without the cycle of one chunk."""
    there = schedule.inject != chunk
    return replace(
        schedule,
        feed=np.where(there, schedule.feed, -1),
        inject=np.where(there, schedule.inject, -1),
    )


FAULTS = {
    "feed": (lambda s: changed(s, "feed", 4, 1, s.feed[4, 0]), "which does not arrive by"),
    "no feed": (lambda s: changed(s, "feed", 4, 1, -1), "which does not arrive by"),
    "no such feed": (lambda s: changed(s, "feed", 4, 1, 4), "is fed by a port that is none"),
    "swapped": (swapped, "which does not arrive by"),
    "chunk twice": (lambda s: changed(s, "inject", 4, 1, s.inject[4, 0]), "again"),
    "no such chunk": (lambda s: changed(s, "inject", 4, 1, 7), "sends a block that does not exist"),
    "end of a cycle": (lambda s: changed(s, "inject", 4, 1, -1), "ends without"),
    "no cycle": (lambda s: without(s, 0), "ends without"),
    "nothing": (
        lambda s: replace(s, feed=np.full((9, 4), -1), inject=np.full((9, 4), -1)),
        r"node 0 \(0,0\) ends without the sum",
    ),
    "cycle twice": (
        lambda s: replace(s, inject=np.where(s.inject == 6, 5, s.inject)),
        "is counted twice",
    ),
    "ports": (lambda s: replace(s, ports=3), "message 4 of at most 3"),
    "half duplex": (lambda s: replace(s, duplex="half"), "carries two messages at once"),
    "turns": (lambda s: replace(s, turns=0), "Turns must be at least 1"),
    "fewer turns": (lambda s: replace(s, turns=1), "ends without"),
    "tables": (lambda s: replace(s, feed=s.feed[:4]), "must have shape"),
    "collective": (
        lambda s: replace(s, collective=tf.Collective("allgather")),
        "cannot execute allgather",
    ),
    "shares": (
        lambda s: replace(s, collective=tf.Collective("allreduce")),
        "Chunks must be divisible by 9, not 8",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name):
    """Each fault is refused in one line that names its place."""
    plant, message = FAULTS[name]
    with pytest.raises(ScheduleError, match=message):
        tf.check(plant(plan("3x3", "reduce-scatter")))
