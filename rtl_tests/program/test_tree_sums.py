"""Reductions along trees: every word is added once, and nothing waits."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.schedule.sum_trees import find_sum_trees


@pytest.mark.parametrize("trees", [None, 1])
@pytest.mark.parametrize(
    "topology", few(4, ["2", "7", "2x2", "4x4", "3x5", "2x3x4", "3x3x3", "2x2x2x3"], tuples=True)
)
def test_sums(topology, trees):
    """The root holds the sum of all messages, for any length."""
    schedule = tf.plan(topology, "reduce", algorithm="spanning-tree", root=1, trees=trees)
    nodes = schedule.topology.nodes
    for flits in (1, 3, 16):
        program = tf.compile(schedule, flits=flits)
        words = np.random.default_rng(flits).integers(0, 2**60, (nodes, flits), np.uint64)
        assert (program.execute(words)[1] == words.sum(axis=0)).all()
    program = tf.compile(schedule, max_flits=11, operators=["add", "max"])
    for length in (1, 5, 11):
        words = np.random.default_rng(length).integers(0, 2**60, (nodes, length), np.uint64)
        assert (program.execute(words, length=length)[1] == words.sum(axis=0)).all()
        result = program.execute(words, length=length, operation=1)[1]
        assert (result == words.max(axis=0)).all()


@pytest.mark.parametrize("topology", ["2", "7", "2x2", "4x4", "3x5", "2x3x4", "3x3x3", "2x2x2x3"])
def test_sums_everywhere(topology):
    """All nodes hold the sum of all messages, for any length."""
    schedule = tf.plan(topology, "allreduce", algorithm="spanning-tree")
    nodes = schedule.topology.nodes
    program = tf.compile(schedule, max_flits=11, operators=["add", "max"])
    for length in (1, 5, 11):
        words = np.random.default_rng(length).integers(0, 2**60, (nodes, length), np.uint64)
        assert (program.execute(words, length=length) == words.sum(axis=0)).all()
        result = program.execute(words, length=length, operation=1)
        assert (result == words.max(axis=0)).all()


@pytest.mark.parametrize("topology", ["4x4", "3x5"])
def test_an_engine_takes_a_cycle_a_hop_too(topology):
    """A run of an engine takes at most three cycles more than in a fabric of its own."""
    plans = [tf.plan(topology, "reduce", flits=64), tf.plan(topology, "allgather")]
    engine = tf.compile(plans, max_flits=64)
    for length in (1, 64):
        alone = tf.compile(plans[0], flits=length).cycles()
        assert engine.cycles(length, mode=0) <= alone + 3


def test_groups():
    """Each group has trees of its own."""
    schedule = tf.plan("3x4", "reduce@1", algorithm="spanning-tree")
    words = np.arange(24, dtype=np.uint64).reshape(12, 2)
    received = tf.compile(schedule, flits=2).execute(words)
    for row in range(3):
        assert (received[4 * row] == words[4 * row : 4 * row + 4].sum(axis=0)).all()
    schedule = tf.plan("2x3x4", "allreduce@0+2", algorithm="spanning-tree")
    words = np.arange(72, dtype=np.uint64).reshape(2, 3, 4, 3)
    received = tf.compile(schedule, flits=3).execute(words.reshape(24, 3)).reshape(2, 3, 4, 3)
    assert (received == words.sum(axis=(0, 2), keepdims=True)).all()


@pytest.mark.parametrize("root", [0, 5])
def test_hardware_adds_as_the_program(root):
    """The hardware of a reduce delivers every word in the predicted cycles."""
    schedule = tf.plan("3x3", "reduce", algorithm="spanning-tree", root=root)
    for lengths in ({"flits": 5}, {"max_flits": 6}):
        report = tf.simulate(tf.Fabric(tf.compile(schedule, **lengths), width=12))
        assert report.passed
        assert report.words_wrong == 0


@pytest.mark.parametrize("topology", [pytest.param("3x3", marks=pytest.mark.long), "2x3"])
def test_hardware_adds_everywhere(topology):
    """Hardware of an all-reduce delivers every word in its cycles, by host port and streams."""
    schedule = tf.plan(topology, "allreduce", algorithm="spanning-tree")
    for lengths in ({"flits": 5}, {"max_flits": 6, "operators": ["add", "min"]}):
        for top in ("host", "stream"):
            report = tf.simulate(tf.Fabric(tf.compile(schedule, **lengths), width=12, top=top))
            assert report.passed
            assert report.words_wrong == 0


def test_slow_operators():
    """Operators of several cycles make a run longer, and its sums stay right."""
    schedule = tf.plan("3x3", "allreduce", algorithm="spanning-tree")
    slow = replace(tf.Operator.parse("add"), name="slow_add", latency=2)
    late = tf.compile(schedule, flits=4, operators=[slow])
    assert late.cycles() > tf.compile(schedule, flits=4).cycles()
    words = np.arange(36).reshape(9, 4)
    assert (late.execute(words) == words.sum(axis=0)).all()


def test_trace_is_that_of_the_program():
    """Words arrive in the cycles of the trace."""
    from torusfabric.program.follow import Holder, follow_flit
    from torusfabric.program.trace import list_arrivals

    for collective in ("broadcast", "reduce", "allreduce"):
        schedule = tf.plan("3x4", collective, algorithm="spanning-tree")
        program = tf.compile(schedule, flits=4)
        there = {(one.path[0], one.hops[0]): one.cycle for one in list_arrivals(program)}
        for other in range(1, 12):
            ends = (other, 0) if collective == "reduce" else (0, other)
            for moment in follow_flit(program, *ends):
                if moment.holder is Holder.LINK:
                    assert there[moment.node, moment.number] == moment.cycle


def test_what_is_no_tree():
    """Schedules with a node that sends twice, with an arc that carries two sums, or with circuits
    are not recognised as trees.
    """
    schedule = tf.plan("4x4", "reduce", algorithm="spanning-tree")
    assert isinstance(schedule, tf.Rounds)
    found = find_sum_trees(schedule)
    assert found is not None
    assert found.up.shape == (4, 16)
    first, *others = schedule.transfers
    assert find_sum_trees(replace(schedule, transfers=(first, first, *others))) is None
    assert find_sum_trees(replace(schedule, transfers=tuple(others))) is None
    assert find_sum_trees(tf.plan("4x4", "reduce", algorithm="max-flow")) is None
    assert find_sum_trees(tf.plan("4x4", "broadcast")) is None
    assert find_sum_trees(replace(schedule, collective=tf.Collective("reduce", 1))) is None
    one = tf.plan("4x4", "reduce", algorithm="spanning-tree", trees=1)
    lists = [(sent, sent.listed) for sent in one.rounds()]
    both = [
        replace(sent, payload=tf.Listed(listed.indptr, 2 * listed.ids + chunk))
        for chunk in range(2)
        for sent, listed in lists
    ]
    alike = replace(one, chunks=2, transfers=tuple(both))
    assert tf.check(alike).transfers == 2 * 15
    assert find_sum_trees(one) is not None
    assert find_sum_trees(alike) is None


def test_what_are_no_trees_of_an_allreduce():
    """Incomplete all-reduces, repeated transfers and shares are not recognised as trees."""
    schedule = tf.plan("3x3", "allreduce", algorithm="spanning-tree")
    assert isinstance(schedule, tf.Rounds)
    found = find_sum_trees(schedule)
    assert found is not None
    assert len(set(found.roots.tolist())) == 2
    last, others = schedule.transfers[-1], schedule.transfers[:-1]
    assert find_sum_trees(replace(schedule, transfers=others)) is None
    assert find_sum_trees(replace(schedule, transfers=(*others, last, last))) is None
    assert find_sum_trees(tf.plan("3x3", "allreduce", algorithm="matching")) is None


def test_files_of_allreduces(tmp_path):
    """A loaded file, which lists contributions, compiles to the program of the same trees."""
    schedule = tf.plan("3x4", "allreduce", algorithm="spanning-tree")
    schedule.save(tmp_path / "plan.json")
    loaded = tf.load(tmp_path / "plan.json")
    assert tf.compile(loaded, flits=6) == tf.compile(schedule, flits=6)


def test_faults_are_found():
    """The checker refuses a contribution that is sent twice or never."""
    for collective in ("reduce", "allreduce"):
        schedule = tf.plan("3x3", collective, algorithm="spanning-tree")
        assert isinstance(schedule, tf.Rounds)
        first, *others = schedule.transfers
        for transfers in ((first, first, *others), tuple(others), schedule.transfers[:-1]):
            with pytest.raises(tf.ScheduleError):
                tf.check(replace(schedule, transfers=transfers))
