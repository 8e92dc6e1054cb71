"""The cycles of sums whose length is chosen at the start of a run."""

import pytest

import torusfabric as tf


@pytest.mark.parametrize("topology", ["3", "2x3", "4x4", "3x3x2"])
@pytest.mark.parametrize("most", [8, 64])
def test_long_sums_take_what_a_fixed_length_takes(topology, most):
    """From the least period on, a choice of lengths costs nothing, whatever the longest is."""
    table = tf.plan(topology, "reduce-scatter", algorithm="matching")
    program = tf.compile(table, max_flits=most)
    fixed = tf.compile(table, flits=8)
    assert program.cycles(8) == fixed.cycles()
    assert program.cycles(1) <= program.cycles(8)


def test_the_longest_message_does_not_delay_the_shortest():
    """What a short run takes, once its words are written, does not depend on the longest."""
    table = tf.plan("4x4", "allreduce", algorithm="matching")
    programs = [tf.compile(table, max_flits=most) for most in (256, 1024)]
    assert len({program.cycles(16) - program.timing.wait for program in programs}) == 1
