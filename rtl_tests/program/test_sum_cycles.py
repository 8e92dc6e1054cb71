"""Cycles of runs: sums, and the formula of every length, piece by piece, as in the manifest."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import few

import torusfabric as tf


@pytest.mark.parametrize("topology", few(2, ["3", "2x3", "4x4", "3x3x2"], tuples=True))
@pytest.mark.parametrize("most", [8, 64])
def test_long_sums_take_what_a_fixed_length_takes(topology, most):
    """A run of 8 flits of any length takes the cycles of fixed length 8 and the set-up cycles."""
    table = tf.plan(topology, "reduce-scatter", algorithm="matching")
    program = tf.compile(table, max_flits=most)
    fixed = tf.compile(table, flits=8)
    assert program.cycles(8) == fixed.cycles() + program.timing.run_setup
    assert program.cycles(1) <= program.cycles(8)


def test_a_sum_takes_two_cycles_a_hop():
    """A hop of a sum takes two cycles, one in the operator and one on the link."""
    tables = [tf.plan(str(nodes), "reduce-scatter", algorithm="matching") for nodes in (3, 5, 7)]
    cycles = [tf.compile(table, flits=1).cycles() for table in tables]
    assert np.diff(cycles).tolist() == [2, 2]


def test_the_longest_message_does_not_delay_the_shortest():
    """The cycles of a short run do not depend on the longest message."""
    table = tf.plan("4x4", "allreduce", algorithm="matching")
    programs = [tf.compile(table, max_flits=most) for most in (256, 1024)]
    assert len({program.cycles(16) for program in programs}) == 1


def test_short_blocks_are_filled_up_where_that_is_faster():
    """Short blocks are padded where that is faster; long ones are summed step by step."""
    table = tf.plan("4x4", "allreduce", algorithm="matching")
    short, long = (tf.compile(table, max_flits=most) for most in (16, 256))
    fixed = tf.compile(table, flits=16).cycles()
    assert short.cycles(1) == short.cycles(16) == fixed + short.timing.run_setup
    assert [tuple(piece) for piece in short.timing.cycle_pieces(1)] == [(1, short.cycles(), 0)]
    assert long.cycles(1) < long.cycles(256)


@pytest.mark.parametrize("length", [1, 5, 16, 20, 32])
def test_filled_up_runs_add_what_is_there(length):
    """Words beyond the end of the message do not change its sums."""
    program = tf.compile(tf.plan("4x4", "allreduce", algorithm="matching"), max_flits=32)
    assert program.loop.padded
    words = np.random.default_rng(length).integers(0, 1 << 20, (16, length))
    received = program.execute(words, length=length)
    assert (received == words.sum(axis=0)).all()


@pytest.mark.parametrize("topology", few(2, ["3", "2x3", "complete:4"], tuples=True))
def test_sums_are_complete_away_from_their_owners(topology):
    """The nodes that complete the sums of an all-reduce may be any nodes."""
    table = tf.plan(topology, "allreduce", algorithm="matching")
    moved = table.topology.add(np.maximum(table.offset, 0), 1)
    offset = np.where(table.offset < 0, -1, moved)
    away = replace(table, offset=offset)
    tf.check(away)
    assert tf.compile(away).cycles() == tf.compile(table).cycles()
    fabric = tf.Fabric(tf.compile(away, max_flits=40), width=8)
    assert tf.simulate(fabric, jobs=[tf.Job(length=33)]).passed


def test_kept_sums_in_as_many_chunks_as_nodes():
    """An all-reduce in which all nodes complete all chunks compiles and gives the right sums."""
    chunk = np.repeat(np.arange(3)[:, None], 2, axis=1)
    table = tf.schedule.SumTable(
        topology=tf.Torus(3),
        collective=tf.Collective("allreduce"),
        chunks=3,
        chunk=chunk,
        passed=np.full_like(chunk, -1),
    )
    tf.check(table)
    program = tf.compile(table)
    assert program.cycles() == 10
    words = np.arange(9, dtype=np.uint64).reshape(3, 3)
    assert (program.execute(words) == words.sum(axis=0)).all()


def test_a_node_sends_its_own_word_before_others_come():
    """A node sends its own word before others arrive, in a sum that travels once around a ring."""
    around = tf.schedule.Table(
        topology=tf.Torus(4),
        collective=tf.Collective("reduce-scatter"),
        offset=np.array([[1, -1], [2, -1], [3, -1], [0, -1]]),
        chunk=np.zeros((4, 2), int),
        reducing=4,
    )
    tf.check(around)
    words = np.arange(16).reshape(4, 4) ** 2
    received = tf.compile(around).execute(words)
    assert received.ravel().tolist() == words.sum(axis=0).tolist()


CASES = [
    ("4x4", "allgather", "hamiltonian", {}, 9),
    ("3x4", "alltoall", "matching", {}, 5),
    ("4x4", "broadcast", "max-flow", {}, 11),
    ("2x3", "reduce-scatter", "matching", {}, 8),
    ("4x4", "allreduce", "matching", {}, 256),
    ("5", "reduce-scatter", "matching", {"latency": 3}, 8),
    # Nothing moves in some steps.
    ("4", "reduce", "necklace", {"latency": 3}, 9),
    ("3x3", "broadcast", "necklace", {"latency": 4}, 9),
]


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options", "most"), CASES)
def test_pieces_are_the_cycles_of_every_length(topology, collective, algorithm, options, most):
    """The last piece that begins at or below the flits of a block gives the cycles of a run."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    program = tf.compile(schedule, max_flits=most)
    for length in range(1, most + 1):
        flits = -(-length // schedule.chunks)
        timing = program.form.timing_of(length)
        *_, piece = (piece for piece in timing.cycle_pieces(1) if piece.first <= flits)
        assert piece.constant + piece.per_flit * flits == program.cycles(length)


@pytest.mark.parametrize(("topology", "collective", "algorithm", "options", "most"), CASES[:6])
def test_messages_that_cannot_be_cut_are_padded(topology, collective, algorithm, options, most):
    """A message that its chunks do not divide takes the cycles of the next length that they do."""
    schedule = tf.plan(topology, collective, algorithm=algorithm, **options)
    for flits in range(1, 3 * schedule.chunks + 1):
        whole = -(-flits // schedule.chunks) * schedule.chunks
        taken = [tf.compile(schedule, flits=length).cycles() for length in (flits, whole)]
        assert taken[0] == taken[1]
