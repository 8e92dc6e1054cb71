"""What a user asks for, drawn at random: planned, compiled, built and simulated by public names."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.collective import COLLECTIVES, OPERATORS

TOPOLOGIES = ("2", "3", "5", "2x2", "2x3", "3x2", "2x5", "3x4", "2x2x2", "2x3x2", "arrowhead:1")


@st.composite
def fabrics(draw):
    """Any torus, collective, root, length, operator and width, by the best algorithm."""
    name = draw(st.sampled_from(TOPOLOGIES))
    topology, kind = tf.parse_topology(name), draw(st.sampled_from(sorted(COLLECTIVES)))
    grouped = "x" in name and draw(st.booleans())
    collective = f"{kind}@{draw(st.integers(0, 1))}" if grouped else kind
    parsed = tf.parse_collective(collective, topology=topology)
    root = {}
    if parsed.rooted:
        root["root"] = draw(st.integers(0, parsed.groups(topology).size - 1))
    length = draw(st.sampled_from(["flits", "max_flits"])), draw(st.integers(1, 13))
    operators = [draw(st.sampled_from(OPERATORS))] if parsed.reducing else []
    program = tf.compile(
        tf.plan(topology, collective, **root), **dict([length]), operators=operators
    )
    return tf.Fabric(program, width=draw(st.sampled_from([1, 2, 7, 8, 33, 65])))


def check(fabric):
    """Every word arrives, in the cycles predicted."""
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
