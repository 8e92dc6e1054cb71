"""Fabrics with four sections of each memory: every word is right, whatever rests when."""

import pytest
from drawn_streams import drawn_streams
from helpers import few
from hypothesis import given, settings
from stream_bench import StreamBench, check, messages_of, streams
from stream_sections import forced

import torusfabric as tf
from torusfabric.rtl.streams.sections import sections_of
from torusfabric.simulation.jobs import random_jobs
from torusfabric.simulation.streams import simulate_streams


def with_four(topology, collectives, **options):
    """A fabric with streams that has four sections, whether it needs them or not."""
    with forced(buffers=3):
        return streams(topology, collectives, **options)


#: One and several packets each way; sums; what is sent and received in one memory; commands.
NAMED = {
    "allgather": ("3x3", "allgather", {"flits": 1}),
    "alltoall": ("2x2", "alltoall", {"flits": 4}),
    "any length": ("3", "alltoall", {"max_flits": 4}),
    "scatter": ("2x2", "scatter", {"flits": 3}),
    "sums": ("2x2", "allreduce", {"flits": 4}),
    "one memory for both": ("2x3", "broadcast", {"max_flits": 3, "root": "any"}),
    "commands": ("2", "allgather,gather,reduce", {"max_flits": 3, "root": "any"}),
}


#: How often senders and receivers rest.
STALLS = [
    (0.3, 0.3),
    *(pytest.param(each, marks=pytest.mark.long) for each in [(0, 0.7), (0.7, 0)]),
]


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("name", few(4, [*NAMED][::-1]))
def test_words_and_cycles(name, stall):
    topology, collectives, options = NAMED[name]
    fabric = with_four(topology, collectives, **options)
    check(fabric, random_jobs(fabric, 7, seed=1), stall)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(**drawn_streams(modes=3, flits=5, width=40))
def test_any(topology, collectives, flits, width, root, stall, seed):
    several = len(collectives) > 1
    fabric = with_four(topology, ",".join(collectives), max_flits=flits, width=width,
                     **({"root": root} if several else {}))  # fmt: skip
    check(fabric, random_jobs(fabric, 7, seed=seed), stall, seed)


@pytest.mark.parametrize("name", ["any length", "commands"])
def test_messages_that_are_no_good(name):
    """Those that are dropped leave all others as they are."""
    topology, collectives, options = NAMED[name]
    fabric = with_four(topology, collectives, **options)
    jobs = random_jobs(fabric, 12, seed=2)
    report = simulate_streams(fabric, jobs=jobs, stall=0.3, faults=0.4)
    assert report.passed, report.first_wrong
    assert report.dropped


@pytest.mark.parametrize("edges", few(2, [9, 30, 47], tuples=True))
def test_a_reset_at_any_time(edges):
    fabric = with_four("2", "alltoall", flits=4)
    bench = StreamBench(fabric, stall=0.3)
    bench.interrupt(messages_of(fabric, 8, seed=2), edges)
    assert bench.run(messages_of(fabric, 5)) == []


@pytest.mark.parametrize("buffers", [2, 3])
@pytest.mark.parametrize("edges", few(1, [40, 41, 42], tuples=True))
def test_a_reset_of_nodes_that_are_full(buffers, edges):
    """The word that comes first after that is a message, and none is lost."""
    with forced(buffers=buffers):
        bench = StreamBench(streams("2", "allgather", flits=1), stall=(0, 0.9))
    bench.interrupt(messages_of(bench.fabric, 30, seed=2), edges)
    assert bench.run(messages_of(bench.fabric, 4)) == []


def test_nodes_with_clocks_of_their_own():
    fabric = streams("2", "allgather", flits=4, clocks="per-node")
    assert sections_of(fabric.program).count == 4
    report = tf.simulate(fabric, jobs=[tf.Job()] * 8, stall=0.2)
    assert report.passed, report.first_wrong
