"""Programs on links of several cycles: the words of short links, in close to the fewest cycles."""

from dataclasses import replace

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program.trace import list_arrivals

#: A collective of each discipline.
DISCIPLINES = [
    ("allgather", "hamiltonian"),
    ("allgather", "matching"),
    ("alltoall", "necklace"),
    ("broadcast", "spanning-tree"),
    ("broadcast", "max-flow"),
    ("scatter", "farthest-first"),
    ("reduce", "spanning-tree"),
    ("allreduce", "spanning-tree"),
    ("allreduce", "matching"),
    ("allreduce", "ring-exchange"),
    ("reduce-scatter", "matching"),
]

LATENCIES = [2, 3, (1, 4)]


def words_of(program, length):
    """Random words for a run of a given length."""
    part = program.part(program.form_of(0, length))
    shape = program.topology.nodes, part.layout.send_words(length)
    return np.random.default_rng(length).integers(0, 2**20, shape)


def programs(collective, algorithm, latency, **lengths):
    """Yield the program on links of the given latency, then the program on links of one cycle."""
    for each in (latency, 1):
        torus = tf.Torus(4, 4, link_latency=each)
        yield tf.compile([[tf.plan(torus, collective, algorithm=algorithm)]], **lengths)


@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize(("collective", "algorithm"), DISCIPLINES)
def test_every_word_is_right_at_all_lengths(collective, algorithm, latency):
    long, short = programs(collective, algorithm, latency, max_flits=9)
    for length in (1, 4, 9):
        words = words_of(long, length)
        assert (long.execute(words, length=length) == short.execute(words, length=length)).all()


def test_sums_around_cycles_take_links_of_one_latency():
    plans = [tf.plan("4x4", "allreduce", algorithm="hamiltonian", link_latency=k) for k in (3, 1)]
    long, short = (tf.compile(plan, flits=8) for plan in plans)
    words = words_of(long, 8)
    assert (long.execute(words) == short.execute(words)).all()
    uneven = replace(plans[1], topology=tf.Torus(4, 4, link_latency=(1, 4)))
    message = r"^Sums around cycles need links of equal latency, not of 0:1,1:4 cycles"
    with pytest.raises(tf.InputError, match=message):
        tf.compile(uneven, flits=8)


@pytest.mark.parametrize("latency", [2, 3, 7, (1, 4)])
@pytest.mark.parametrize("algorithm", ["hamiltonian", "matching"])
def test_links_are_busy_where_a_step_has_as_many_flits(algorithm, latency):
    """With blocks as long as the longest link or longer, a run takes at most its latency more."""
    torus = tf.Torus(4, 4, link_latency=latency)
    plan = tf.plan(torus, "allgather", algorithm=algorithm)
    short = tf.plan("4x4", "allgather", algorithm=algorithm)
    block = torus.longest_link
    for flits in (block, block + 1, block + 5):
        whole = flits * plan.chunks
        least = tf.compile(short, flits=whole).cycles()
        assert least <= tf.compile(plan, flits=whole).cycles() <= least + block


def test_short_blocks_wait_no_more_than_they_must():
    """An all-gather of one flit takes its path to the farthest node and at most 5 cycles more."""
    plan = tf.plan("8x8", "allgather", flits=1, link_latency=3)
    least = max(plan.topology.diameter_cycles, 16)
    assert tf.compile(plan, flits=1).cycles() <= least + 5
    # If blocks leave in the step after their arrival, each step takes three cycles.
    soon = tf.plan("8x8", "allgather", algorithm="matching", link_latency=3)
    assert tf.compile(soon, flits=1).cycles() <= 3 * soon.steps + 5


def test_the_limit_counts_cycles_of_links():
    short, long = (
        tf.compare("8x8", "broadcast", flits=1, link_latency=latency)[0] for latency in (1, "0:3")
    )
    assert (short.limit, long.limit) == (8, 16)
    assert long.cycles >= 16


@pytest.mark.parametrize(("collective", "algorithm"), DISCIPLINES)
def test_the_last_arrival_of_a_trace_ends_the_run(collective, algorithm):
    """From the last arrival of a trace to the end of the run takes equally long at any latency."""
    late = []
    for latency in (3, 1):
        plan = tf.plan("4x4", collective, algorithm=algorithm, link_latency=latency)
        program = tf.compile(plan, flits=6 * plan.chunks)
        last = max(a.cycle + (a.flits - 1) * a.stride for a in list_arrivals(program))
        late.append(program.cycles() - last)
    assert late[0] == late[1]
