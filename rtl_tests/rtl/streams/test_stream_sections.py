"""Fabrics with four sections of each memory: every word is right, whatever rests when."""

import pytest
from drawn_streams import drawn_streams
from helpers import few
from hypothesis import given, settings
from stream_bench import StreamBench, messages_of
from stream_sections import forced

import torusfabric as tf
from torusfabric.rtl.streams.sections import Sections, sections_of
from torusfabric.simulation.jobs import random_jobs
from torusfabric.simulation.streams import simulate_streams


def streams(topology, collectives, *, width=8, **options):
    """A fabric with streams that has four sections, whether it needs them or not."""
    plans = [tf.plan(topology, name) for name in collectives.split(",")]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **options)
    with forced(buffers=3):
        return tf.Fabric(program, width=width, top="stream", beat=1)


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


def check(fabric, stall, seed=1, runs=7):
    """Every word, and every cycle, of runs of any length, mode and root."""
    jobs = random_jobs(fabric, runs, seed=seed)
    bench = StreamBench(fabric, stall, seed=seed)
    assert bench.run(messages_of(fabric, jobs, seed=seed)) == []
    assert bench.runs == [fabric.program.cycles(job.length, mode=job.mode) for job in jobs]


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("name", few(4, [*NAMED][::-1]))
def test_words_and_cycles(name, stall):
    topology, collectives, options = NAMED[name]
    check(streams(topology, collectives, **options), stall)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(**drawn_streams(modes=3, flits=5, width=40))
def test_any(topology, collectives, flits, width, root, stall, seed):
    several = len(collectives) > 1
    fabric = streams(topology, ",".join(collectives), max_flits=flits, width=width,
                     **({"root": root} if several else {}))  # fmt: skip
    check(fabric, stall, seed=seed)


@pytest.mark.parametrize("name", ["any length", "commands"])
def test_messages_that_are_no_good(name):
    """Those that are dropped leave all others as they are."""
    topology, collectives, options = NAMED[name]
    fabric = streams(topology, collectives, **options)
    jobs = random_jobs(fabric, 12, seed=2)
    report = simulate_streams(fabric, jobs=jobs, stall=0.3, faults=0.4)
    assert report.passed, report.first_wrong
    assert report.dropped


@pytest.mark.parametrize("edges", few(2, [9, 30, 47], tuples=True))
def test_a_reset_at_any_time(edges):
    fabric = streams("2", "alltoall", flits=4)
    bench = StreamBench(fabric, stall=0.3)
    bench.interrupt(messages_of(fabric, 8, seed=2), edges)
    assert bench.run(messages_of(fabric, 5)) == []


@pytest.mark.parametrize("buffers", [2, 3])
@pytest.mark.parametrize("edges", few(1, [40, 41, 42], tuples=True))
def test_a_reset_of_nodes_that_are_full(buffers, edges):
    """The word that comes first after that is a message, and none is lost."""
    program = tf.compile(tf.plan("2", "allgather"), flits=1)
    with forced(buffers=buffers):
        bench = StreamBench(tf.Fabric(program, width=8, top="stream", beat=1), stall=(0, 0.9))
    bench.interrupt(messages_of(bench.fabric, 30, seed=2), edges)
    assert bench.run(messages_of(bench.fabric, 4)) == []


def test_nodes_with_clocks_of_their_own():
    program = tf.compile(tf.plan("2", "allgather"), flits=4)
    assert sections_of(program).count == 4
    report = tf.simulate(
        tf.Fabric(program, width=8, top="stream", beat=1, clocks="per-node"),
        jobs=[tf.Job()] * 8,
        stall=0.2,
    )
    assert report.passed, report.first_wrong


@pytest.mark.parametrize(("buffers", "words"), [(2, 2), (3, 4)])
def test_every_memory_has_all_sections(buffers, words):
    """Memories of one word have as many words as sections, that of what is kept twice as many."""
    program = tf.compile(tf.plan("2x2x2", "allgather", algorithm="matching"), flits=1)
    with forced(buffers=buffers):
        fabric = tf.Fabric(program, width=8, top="stream", beat=1)
    found = {memory.depth for memory in fabric.netlist.modules["endpoint_0"]().memories()}
    assert found >= {words, 2 * words}
    assert Sections(buffers).count == words


@pytest.mark.parametrize(("buffers", "words"), [(2, 8), (3, 16)])
def test_what_is_sent_and_received_apart_has_all_sections(buffers, words):
    """Of any root, messages of three words lie in sections of four, sent apart from received."""
    program = tf.compile(tf.plan("2x3", "broadcast", algorithm="max-flow"), max_flits=3, root="any")
    with forced(buffers=buffers):
        fabric = tf.Fabric(program, width=8, top="stream", beat=1)
    found = fabric.netlist.modules["endpoint_0"]().memories()
    *apart, kept = (memory.depth for memory in found)
    assert (set(apart), kept) == ({words}, 2 * words - 1)
