"""Lengths of steps, message times, and bounds that agree in every report."""

from fractions import Fraction

import numpy as np
import pytest
from check_model import explicit, moves
from helpers import NAMED_COLLECTIVES, few

import torusfabric as tf
from torusfabric.algorithms import CATALOGUE, Options
from torusfabric.analysis.bounds import bound, find_bound
from torusfabric.analysis.cost import StepLength, step_length
from torusfabric.analysis.facts import facts_text, schedule_facts
from torusfabric.analysis.volume import least_time
from torusfabric.collective import parse_collective
from torusfabric.schedule import Switching, Transfers
from torusfabric.topology import parse_topology


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "text"),
    [
        ("6x6", "allgather", "hamiltonian", "1/2 message"),
        ("4x4x4", "allgather", "hamiltonian", "1/3 message"),
        ("6x6", "allgather", "bufferless", "1 message"),
        ("6x7", "allgather", "redistribute", "5/13 to 7/13 message"),
        ("7x7x7", "allgather", "lee-code", "1 to 343 messages"),
        ("4x4", "allreduce", "matching", "1/16 message"),
        ("4x6", "allgather@1", "matching", "1 message"),
        ("arrowhead:0", "broadcast", "wormhole-forest", "0 message"),
    ],
)
def test_length_of_steps(topology, collective, algorithm, text):
    """Step lengths are stated in messages, also as a range."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert str(step_length(schedule)) == text
    assert step_length(schedule) == step_length(schedule, tf.check(schedule))


def test_empty_steps_have_no_length():
    """A step without transfers does not count in the step length."""
    none = Transfers(np.empty(0, int), np.empty((0, 1), np.int8))
    options = {"switching": Switching.STORE_AND_FORWARD, "ports": 1, "chunks": 2}
    schedule = explicit((2,), "allgather", none, moves((0, [0]), (1, [0])), **options)
    assert step_length(schedule) == StepLength(Fraction(1), Fraction(1))


@pytest.mark.parametrize(
    ("topology", "kind", "options", "time"),
    [
        ("6x6", "allgather", {}, Fraction(35, 4)),
        ("6x6", "allgather", {"ports": 1}, 35),
        ("6x6", "allgather", {"duplex": "half"}, Fraction(35, 2)),
        ("6x6", "reduce-scatter", {}, Fraction(35, 4)),
        ("6x6", "scatter", {"ports": 2}, Fraction(35, 2)),
        ("6x6", "broadcast", {}, Fraction(1, 4)),
        ("4x4", "allreduce", {}, Fraction(15, 32)),
        ("5x5", "alltoall", {}, 15),
        ("4x8", "alltoall", {}, 32),
        ("4x6", "allgather@1", {}, Fraction(5, 2)),
        ("arrowhead:0", "allgather", {}, 0),
    ],
)
def test_least_time(topology, kind, options, time):
    """The least time is that of the data through the ports, or along the longest axis."""
    found = parse_topology(topology)
    assert least_time(found, parse_collective(kind, topology=found), **options) == time


def served(topology, kinds):
    """Yield collective, algorithm and chunks of each plan that the topology admits."""
    for kind in kinds:
        for algorithm in CATALOGUE:
            for chunks in (None, 2):
                asked = parse_topology(topology), parse_collective(kind), Options(chunks=chunks)
                if kind in algorithm.collectives and not algorithm.why_not(*asked):
                    yield kind, algorithm.name, chunks


@pytest.mark.parametrize(
    ("topology", "kinds"),
    few(
        4,
        [
            *(
                (name, list(NAMED_COLLECTIVES))
                for name in ("2", "5", "2x2", "2x4", "3x3", "arrowhead:1")
            ),
            ("4x4", ["allgather", "broadcast", "gather"]),
            ("6x6", ["allgather"]),
        ],
    ),
)
def test_all_say_the_same(topology, kinds, tmp_path):
    """A plan and its file have the same facts, and the bound alone is the same."""
    path = tmp_path / "plan.json"
    for kind, algorithm, chunks in served(topology, kinds):
        planned = tf.plan(topology, kind, algorithm=algorithm, chunks=chunks, check=False)
        planned.save(path)
        facts, again = schedule_facts(planned), tf.load(path)
        assert schedule_facts(again) == facts, (kind, algorithm, chunks)
        assert bound(planned) == bound(again) == facts["bound"]
        assert facts["bound"] <= facts["rounds"]
        assert facts["tau_bound"] <= facts["tau"]


def test_sums_are_no_longer_than_blocks():
    """A partial sum counts as one block, also if only the bound is asked for."""
    steps = moves((2, [1], [2])), moves((1, [1], [1, 2]))
    options = {"switching": Switching.STORE_AND_FORWARD, "ports": 1}
    schedule = explicit((3,), "reduce", *steps, **options)
    assert str(step_length(schedule)) == "1 message"
    assert bound(schedule) == bound(schedule, tf.check(schedule)) == 2


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "found"),
    [
        ("6x6", "allgather", "bufferless", (10, "no block rests")),
        ("6x6", "allgather", "one-packet", (10, "no block rests")),
        ("6x6", "allgather", "matching", (9, "")),
        ("6x6", "allgather", "hamiltonian", (18, "")),
        ("2x4", "alltoall", "matching", (4, "")),
        ("3x4", "alltoall", "matching", (7, "all nodes do the same")),
    ],
)
def test_a_restricted_bound_says_for_what(topology, collective, algorithm, found):
    """A bound for restricted schedules names the restriction.

    An oblivious pattern never lets a block wait.
    """
    assert find_bound(tf.plan(topology, collective, algorithm=algorithm)) == found


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "steps", "limit"),
    [
        ("6x6", "allgather", "hamiltonian", ("steps", "18 of 1/2 message"), "18 of 1/2 message"),
        ("6x7", "allgather", "redistribute", ("steps", "28 of 5/13 to 7/13 message"),
         "20 of up to 7/13 message"),
        ("7x7x7", "allgather", "lee-code", ("rounds", "4 of 1 to 343 messages"), "4 of any length"),
    ],
)  # fmt: skip
def test_in_words(topology, collective, algorithm, steps, limit):
    """The report states steps and bound with their length in messages."""
    words = facts_text(schedule_facts(tf.plan(topology, collective, algorithm=algorithm)))
    assert words[steps[0]] == steps[1]
    assert words["bound"] == limit
    assert not {"unit", "bound_where", "tau_bound", "rounds"} - {steps[0]} & words.keys()
