"""The objective: what takes the least time in the cost model, rather than the fewest cycles."""

import json
from fractions import Fraction

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.analysis.cost import schedule_cost
from torusfabric.cli import main
from torusfabric.errors import InputError


def test_time_is_that_of_the_model():
    """A start, a hop and a unit cost what is said; of store-and-forward, a step and a unit."""
    circuits = tf.plan("5x5", "broadcast", algorithm="lee-code")
    cost = schedule_cost(circuits)
    found = tf.time(circuits, alpha=7, beta=1000, delta=Fraction(1, 3), tau=2, length=5)
    assert found == cost.rounds * 7 + Fraction(cost.delta, 3) + cost.tau * 10
    steps = tf.plan("5x5", "allgather", algorithm="matching")
    assert tf.time(steps, alpha=1000, beta=3, delta=1000, tau=1) == 6 * 3 + 6


def test_time_of_a_file(tmp_path):
    schedule = tf.plan("3x3", "scatter")
    schedule.save(tmp_path / "plan.json")
    assert tf.time(tmp_path / "plan.json", beta=1, tau=1) == tf.time(schedule, beta=1, tau=1)


@pytest.mark.parametrize(
    "kind", few(2, ["broadcast", "allgather", "gather", "allreduce"], tuples=True)
)
@pytest.mark.parametrize("start", [0, 1, 50, 2000])
def test_the_least_time_is_taken(kind, start):
    """No other algorithm, nor any of its variants, takes less; candidates come in that order."""
    costs = {"alpha": start, "beta": start, "tau": 1}
    best = tf.plan("4x4", kind, flits=16, objective="time", costs=costs)
    rows = tf.compare("4x4", kind, flits=16, objective="time", costs=costs)
    times = [row.time for row in rows]
    assert times == sorted(times)
    assert tf.time(best, **costs, length=16) <= times[0]
    assert {row.schedule.algorithm for row in rows} == {
        row.schedule.algorithm for row in tf.compare("4x4", kind, flits=16)
    }


def test_starts_decide_for_few_rounds():
    """Dear starts, few rounds of circuits; no starts, what streams."""
    for start, algorithm in ((1000, "max-flow"), (0, "spanning-tree")):
        costs = {"alpha": start, "beta": start, "tau": 1}
        chosen = tf.plan("8x8", "broadcast", flits=64, objective="time", costs=costs)
        assert chosen.algorithm == algorithm


def test_time_decides_for_any_length():
    """Of the longest messages; there are no forms by cycles then."""
    wishes = {"objective": "time", "costs": {"alpha": 1000, "beta": 1000, "tau": 1}}
    (form,) = tf.plan_forms("4x4", "broadcast", max_flits=16, **wishes)
    assert form.algorithm == tf.plan("4x4", "broadcast", flits=16, **wishes).algorithm
    assert form.algorithm not in {
        each.algorithm for each in tf.plan_forms("4x4", "broadcast", max_flits=16)
    }


def test_length_comes_before_flits():
    costs = {"beta": 10, "tau": 1, "length": 1}
    (first, *_) = tf.compare("4x4", "allgather", flits=64, objective="time", costs=costs)
    assert first.time == tf.time(first.schedule, beta=10, tau=1, length=1)
    assert all(row.time is None for row in tf.compare("4x4", "allgather"))


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"objective": "area"}, "Objective must be cycles or time, not 'area'"),
        ({"objective": "time"}, "Costs must name any of alpha, beta, delta, tau, length, not None"),
        ({"objective": "time", "costs": {}}, "Costs must name any of .*, not {}"),
        ({"costs": {"tau": 1}}, "Costs must be left out for cycles"),
        ({"objective": "time", "costs": {"gamma": 1}}, "Cost .*gamma"),
        ({"objective": "time", "costs": {"tau": -1}}, "Tau must be finite and at least 0, not -1"),
        ({"objective": "time", "costs": {"tau": float("nan")}}, "Tau must be finite"),
        ({"objective": "time", "costs": {"tau": "much"}}, "Tau must be a number, not 'much'"),
    ],
)
def test_refused(wishes, message):
    """In one clear line, by both."""
    for refusing in (tf.plan, tf.compare):
        with pytest.raises(InputError, match=message):
            refusing("4x4", "broadcast", **wishes)


def test_commands_take_it(capsys):
    """The options choose what Python does, and are refused with a file, which is planned."""
    asked = ["--flits", "64", "--objective", "time", "--costs", "alpha=1000,beta=1000,tau=1"]
    assert main(["plan", "8x8", "broadcast", *asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["algorithm"] == "max-flow"
    for wrong in (["--costs", "alpha"], ["--objective", "area"], ["--objective", "time"]):
        assert main(["plan", "4x4", "broadcast", *wrong]) == 1
    assert main(["simulate", "--plan", "missing.json", "--objective", "time"]) == 1
    assert "--objective must be left out with --plan" in capsys.readouterr().err
