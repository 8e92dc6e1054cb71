"""Fabrics for messages of any length up to a maximum: the hardware equals the executed program."""

from dataclasses import replace

import pytest
from fabrics import build_fabric
from helpers import check_jobs

import torusfabric as tf
from torusfabric.simulation.engines import Job
from torusfabric.simulation.jobs import default_jobs

WIDTH = 9


def test_first_step_in_which_nothing_moves():
    """A schedule whose first step is empty runs alone, and next to a mode that begins at once."""
    at_once = tf.plan("4", "gather")
    nothing = tf.plan("4", "reduce", latency=3).transfers[1]
    assert not len(nothing)
    late = replace(at_once, transfers=(nothing, *at_once.transfers))
    check_jobs(
        tf.Fabric(tf.compile(late, max_flits=3), width=WIDTH), [Job(length=1), Job(length=3)]
    )
    several = tf.Fabric(tf.compile([late, at_once], max_flits=3), width=WIDTH)
    orders = [(0, 1), (0, 3), (1, 2), (0, 2), (1, 1), (1, 3)]
    check_jobs(several, [Job(mode=mode, length=length) for mode, length in orders])


def test_jobs_by_default():
    """Default jobs cover the shortest and longest message, lengths between, and every root."""
    fabric = build_fabric("2x3", "broadcast:max-flow", max_flits=4, root="any")
    jobs = default_jobs(fabric.program)
    assert {job.length for job in jobs} == {1, 2, 3, 4}
    assert {job.root for job in jobs} == set(range(6))
    report = tf.simulate(fabric, jobs=jobs[:3])
    assert report.passed
    assert [job.length for job in report.jobs] == [1, 2, 3]
    assert report.cycles == sum(job.cycles for job in report.jobs)


def test_core_is_refused():
    program = tf.compile(tf.plan("2x3", "allgather"), max_flits=4)
    with pytest.raises(
        tf.InputError, match=r"^Top must be host or stream for messages of any length"
    ):
        tf.Fabric(program, top="core")
