"""Bufferless all-gather: a node sends a received block on in the next step, or never."""

from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import planner

from torusfabric.algorithms import Options
from torusfabric.algorithms.table.bufferless import BUFFERLESS, search_offsets, snake_offsets
from torusfabric.algorithms.table.matching.plan import MATCHING
from torusfabric.analysis.check import check
from torusfabric.analysis.distance_bounds import bufferless_steps
from torusfabric.collective import Collective
from torusfabric.topology import Torus, parse_topology

plan = planner(BUFFERLESS, "allgather")

ALLGATHER = Collective("allgather")


def is_bufferless(table):
    """Return True if each sent block arrived in the previous step, or is the node's own.

    A node sends its own chunk c in the step that starts chunk c. A chunk takes ``steps / chunks``
    steps.
    """
    topology, period = table.topology, table.round_count // table.chunks
    for step in range(table.round_count):
        ports = np.nonzero(table.offset[step] >= 0)[0]
        sent = topology.subtract(table.offset[step, ports], topology.generators[ports])
        if step % period == 0:
            arrived = [(0, step // period)]
        else:
            before = table.offset[step - 1] >= 0
            arrived = list(
                zip(table.offset[step - 1, before], table.chunk[step - 1, before], strict=True)
            )
        if not set(zip(sent, table.chunk[step, ports], strict=True)) <= set(arrived):
            return False
    return True


def assert_plan(topology, steps=None):
    table = plan(topology)
    assert is_bufferless(table)
    report = check(table)
    assert report.duplicates == 0
    assert table.round_count == (bufferless_steps(table.topology) if steps is None else steps)


@pytest.mark.parametrize(
    ("sides", "steps"),
    [((3, 3), 2), ((4, 4), 4), ((5, 5), 6), ((6, 6), 10), ((7, 7), 12), ((8, 8), 16),
     ((8, 9), 18), ((5, 7), 9), ((10, 10), 26), ((3, 3, 3), 5), ((4, 4, 4), 12), ((5, 5, 5), 21),
     ((3, 4, 5), 10), ((6, 6, 6), 36), ((16, 16), 64)],
)  # fmt: skip
def test_examples(sides, steps):
    """Tori take the number of steps that the formula gives."""
    assert bufferless_steps(Torus(sides)) == steps
    assert_plan(sides, steps)


@pytest.mark.parametrize(
    "what",
    [*product(range(2, 9), repeat=2), *combinations_with_replacement(range(2, 6), 3),
     "2", "3", "9", "10", "2x2x2x2", "3x3x3x3", 1, 2, 3, 4],
)  # fmt: skip
def test_small_topologies(what):
    """Tori with short axes and arrowheads have bufferless plans that meet the bound."""
    assert_plan(what)


def test_one_node_has_nothing_to_do():
    """A network of one node needs no steps."""
    assert plan(parse_topology("arrowhead:0")).round_count == 0


@pytest.mark.long
def test_excess_on_larger_tori():
    """On larger tori the plan takes a few steps more than the bound."""
    for sides, excess in [((13, 16), 1), ((15, 16), 1), ((7, 7, 7), 2), ((8, 8, 8), 2),
                          ((20, 20), 2), ((32, 32), 20), ((9, 9, 9), 8)]:  # fmt: skip
        table = plan(sides)
        assert is_bufferless(table)
        check(table)
        assert 0 <= table.round_count - bufferless_steps(table.topology) <= excess, sides


@pytest.mark.parametrize("side", range(3, 32, 2))
def test_snake_is_optimal_on_odd_squares(side):
    """The snake takes (N - 1) / 4 steps on squares with an odd side, which is optimal."""
    table = plan((side, side))
    assert table.round_count == (side * side - 1) // 4
    assert (table.offset == snake_offsets(table.topology)).all()
    assert is_bufferless(table)
    check(table)


@pytest.mark.parametrize("side", [3, 9, 15])
def test_snakes_turn_together(side):
    """In each step all heads of the snake turn in the same way: straight on, left or right."""
    torus = Torus((side, side))
    heads = snake_offsets(torus)
    clockwise = [0, 2, 1, 3]
    for before, now in pairwise(heads):
        sent = torus.subtract(now, torus.generators)
        turns = {
            (clockwise.index(port) - clockwise.index(int(np.nonzero(before == offset)[0][0]))) % 4
            for port, offset in enumerate(sent)
        }
        assert len(turns) == 1
        assert turns <= {0, 1, 3}


def test_even_snakes_leave_a_cross():
    """On an even square the snake leaves 15 nodes, which lie on a cross."""
    torus = Torus((8, 8))
    visited = set(snake_offsets(torus).ravel().tolist()) | {0}
    rows, columns = torus.coordinates(sorted(set(range(64)) - visited))
    assert ((rows == 4) | (columns == 4)).all()
    assert len(rows) == 15


def test_parity_bound():
    """The bound counts odd and even offsets separately."""
    # Half of the offsets are reached in odd steps only, four a step. The 18 of 6x6 need 5 odd
    # steps.
    assert bufferless_steps(Torus((6, 6))) == 10
    assert bufferless_steps(Torus((6, 7))) == 11
    assert bufferless_steps(Torus((6, 4, 2))) == 9


def test_a_buffered_table_is_distinguished():
    """`is_bufferless` tells a table with waiting blocks from a bufferless table."""
    assert not is_bufferless(MATCHING(Torus((8, 8)), ALLGATHER, Options(latency=3)))
    assert is_bufferless(plan((8, 8)))


def test_chunks_follow_one_another():
    """M chunks take M times the steps of one chunk."""
    table = plan((4, 5), chunks=3)
    assert table.round_count == 3 * plan((4, 5)).round_count
    assert is_bufferless(table)
    check(table)


def test_search_can_finish_from_a_start():
    """A search that starts from two steps of a snake finds a table of 10 steps."""
    torus = Torus((6, 6))
    start = snake_offsets(torus)
    found = search_offsets(torus, 0, start[:2])
    assert len(found) == 10


@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.integers(0, 100))
def test_any_torus_and_seed(sides, seed):
    """Every torus and seed gives a bufferless table of at most two steps more than the bound."""
    table = plan(sides, seed=seed)
    assert is_bufferless(table)
    check(table)
    assert 0 <= table.round_count - bufferless_steps(table.topology) <= 2
