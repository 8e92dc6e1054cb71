"""No longer message is quicker than a shorter one, which could be padded."""

from itertools import pairwise

import pytest
from helpers import few

import torusfabric as tf

COLLECTIVES = ["reduce-scatter", "scatter", "alltoall", "allgather", "allreduce", "broadcast"]

#: Tori, with one link between neighbours and with two, and the lengths that are compared.
SMALL = [(torus, name) for torus in ("2x4", "3x3") for name in COLLECTIVES[:2]]
OTHERS = [(torus, name) for torus in ("2x2x2", "2x4", "3x3", "2x3", "4x4") for name in COLLECTIVES]


@pytest.mark.parametrize(
    ("torus", "collective"), few(len(SMALL), [*SMALL, *(one for one in OTHERS if one not in SMALL)])
)
def test_cycles_never_fall(torus, collective):
    cycles = []
    for flits in range(1, 13):
        schedule = tf.plan(torus, collective, flits=flits, check=False)
        cycles.append(tf.compile(schedule, flits=flits).cycles())
    assert all(shorter <= longer for shorter, longer in pairwise(cycles)), cycles


@pytest.mark.parametrize(
    ("torus", "collective", "flits"),
    [("2x3", "scatter", 42), ("4x4", "scatter", 61), ("3x3x3", "reduce-scatter", 8)],
)
def test_smaller_hardware_is_no_slower_than_a_longer_message(torus, collective, flits):
    """Here the smallest hardware within 3 % of the fewest cycles would be."""
    shorter, longer = (
        tf.compile(tf.plan(torus, collective, flits=length, check=False), flits=length).cycles()
        for length in (flits, flits + 1)
    )
    assert shorter <= longer
