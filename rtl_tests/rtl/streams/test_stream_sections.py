"""Fabrics with four sections of each memory: every word is right, whatever rests when."""

import pytest
from helpers import few
from stream_bench import StreamBench, messages_of, streams
from stream_sections import forced

import torusfabric as tf
from torusfabric.rtl.streams.sections import sections_of
from torusfabric.simulation.jobs import random_jobs
from torusfabric.simulation.streams import simulate_streams


@pytest.mark.parametrize("buffers", [2, 3])
@pytest.mark.parametrize("edges", few(1, [40, 41, 42], tuples=True))
def test_a_reset_of_nodes_that_are_full(buffers, edges):
    """The word that comes first after that is a message, and none is lost."""
    with forced(buffers=buffers):
        bench = StreamBench(streams("2", "allgather", flits=1), stall=(0, 0.9))
    bench.interrupt(messages_of(bench.fabric, 30, seed=2), edges)
    assert bench.run(messages_of(bench.fabric, 4)) == []


@pytest.mark.parametrize("collectives", ["alltoall", "allgather,gather,reduce"])
def test_messages_that_are_no_good(collectives):
    """Those that are dropped leave all others as they are."""
    with forced(buffers=3):
        fabric = streams("3", collectives, max_flits=3)
    jobs = random_jobs(fabric, 12, seed=2)
    report = simulate_streams(fabric, jobs=jobs, stall=0.3, faults=0.4)
    assert report.passed, report.first_wrong
    assert report.dropped


def test_nodes_with_clocks_of_their_own():
    fabric = streams("2", "allgather", flits=4, clocks="per-node")
    assert sections_of(fabric.program).count == 4
    report = tf.simulate(fabric, jobs=[tf.Job()] * 8, stall=0.2)
    assert report.passed, report.first_wrong
