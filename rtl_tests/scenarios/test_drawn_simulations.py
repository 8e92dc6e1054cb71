"""Random selections and simulations: each passes, or is refused with one line."""

import random

import pytest
from helpers import NAMED_COLLECTIVES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.collective import OPERATORS

TOPOLOGIES = [
    "2",
    "3",
    "4",
    "5",
    "7",
    "2x2",
    "2x3",
    "3x3",
    "4x2",
    "4x4",
    "5x3",
    "2x2x2",
    "mesh:3",
    "mesh:3x3",
    "4|x3",
    "cube:3",
    "circulant:8:1,3",
    "4x2~1",
    "complete:5",
]
KINDS = [
    "broadcast",
    "scatter",
    "gather",
    "allgather",
    "alltoall",
    "reduce",
    "reduce-scatter",
    "allreduce",
    "exchange",
    "halo",
]

#: Probability, name and values of each option.
OPTIONS = [
    (0.3, "--width", "1 3 8 16 64"),
    (0.1, "--root", "0 1 any"),
    (0.2, "--broken-link", "0:+0 1:-0 2:+1"),
    (0.1, "--broken-node", "0 1 3"),
    (0.3, "--link-latency", "2 3 0:2 5 2,1:+0=6"),
    (0.1, "--forms", "short long all"),
    (0.2, "--beat", "1 2 4 auto"),
    (0.2, "--chunks", "1 2 3 4"),
    (0.3, "--jobs", "3 10"),
]


def drawn(seed):
    """Choose a random `simulate` command from a seed; return its words."""
    draw = random.Random(seed)
    kinds = draw.sample(KINDS, draw.choice([1, 1, 2, 2, 3]))
    words = ["simulate", draw.choice(TOPOLOGIES), ",".join(kinds)]
    words += ["--max-flits", draw.choice(["1", "2", "3", "5", "8", "13"])]
    tops = ["--top stream", "--top stream", "--tables ram", "--top stream --tables ram", ""]
    words += draw.choice(tops).split()
    for likely, name, values in OPTIONS:
        if draw.random() < likely:
            words += [name, draw.choice(values.split())]
    return words


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_nothing_is_wrong(seed, capsys):
    words = drawn(seed)
    status, said = main([*words, "--quiet"]), capsys.readouterr()
    assert status == 0 or (status == 1 and said.err.startswith("torusfabric: ")), said.err


SELECTED = ("2", "3", "5", "2x2", "2x3", "3x2", "2x5", "3x4", "2x2x2", "2x3x2", "arrowhead:1")


@st.composite
def fabrics(draw):
    """A random fabric: topology, collective, root, length, operator and width."""
    name = draw(st.sampled_from(SELECTED))
    topology, kind = tf.parse_topology(name), draw(st.sampled_from(sorted(NAMED_COLLECTIVES)))
    grouped = "x" in name and draw(st.booleans())
    collective = f"{kind}@{draw(st.integers(0, 1))}" if grouped else kind
    parsed = tf.parse_collective(collective, topology=topology)
    root = {}
    if parsed.rooted:
        root["root"] = draw(st.integers(0, parsed.groups(topology).group_size - 1))
    length = draw(st.sampled_from(["flits", "max_flits"])), draw(st.integers(1, 13))
    operators = [draw(st.sampled_from(OPERATORS))] if parsed.reducing else []
    program = tf.compile(
        tf.plan(topology, collective, **root), **dict([length]), operators=operators
    )
    return tf.Fabric(program, width=draw(st.sampled_from([1, 2, 7, 8, 33, 65])))


def check(fabric):
    """Check that every word arrives in the predicted cycles."""
    report = tf.simulate(fabric)
    assert report.passed, report.first_wrong


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(derandomize=True, deadline=None, max_examples=4, suppress_health_check=SLOW)
@given(fabrics())
def test_a_few_selections(fabric):
    check(fabric)


@pytest.mark.long
@settings(deadline=None, max_examples=200, suppress_health_check=SLOW)
@given(fabrics())
def test_many_selections(fabric):
    check(fabric)
