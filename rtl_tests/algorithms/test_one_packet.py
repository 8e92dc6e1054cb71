"""All-gather of whole messages by fixed forwarding."""

import math
from itertools import combinations_with_replacement, permutations, product

import pytest
from flooding import steps_until_complete
from helpers import few
from planners import node_classes

from torusfabric.algorithms.oblivious.one_packet.plan import ONE_PACKET, rod_feed
from torusfabric.algorithms.oblivious.one_packet.rods import axis_orders_3d, completion_steps
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.topology import Torus

ALLGATHER = Collective("allgather")

#: Steps by number of columns, for 2 to 12 rows, counted by following every message.
COUNTED = {
    4: [4, 5, 8, 10, 12, 14, 16, 17, 19, 20, 22],
    6: [6, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29],
    8: [8, 11, 14, 17, 20, 23, 26, 28, 31, 33, 36],
    12: [12, 16, 20, 24, 28, 32, 36, 39, 43, 46, 50],
}


def plan(*sides):
    return ONE_PACKET(Torus(sides), ALLGATHER)


def test_figure_3_of_the_paper():
    """The rods on 5x6 are those of figure 3 of the paper."""
    # In rows 0 and 1, top feeds right and left feeds bottom. Below, words that run down turn left.
    bottom, top, right, left = range(4)
    feed = rod_feed(5, 6).reshape(5, 6, 4)
    assert (feed[:2] == [left, right, top, bottom]).all()
    assert (feed[2:] == [top, bottom, bottom, top]).all()


@pytest.mark.parametrize("columns", COUNTED)
def test_columns_even_in_one_order_of_axes(columns):
    """With an even number of columns the steps are as counted, and within the theorem."""
    for rows, counted in enumerate(COUNTED[columns], 2):
        torus = Torus((rows, columns))
        assert completion_steps(torus, rod_feed(rows, columns)) == counted
        assert counted <= (columns * rows + 2 * columns + 2 * rows + 8) // 4


@pytest.mark.parametrize("columns", COUNTED)
def test_the_better_order_of_axes_is_taken(columns):
    """The plan takes the better order of the two axes."""
    for rows, counted in enumerate(COUNTED[columns], 2):
        schedule = plan(rows, columns)
        assert schedule.steps == plan(columns, rows).steps <= counted
        if rows in COUNTED:
            assert schedule.steps <= COUNTED[rows][columns - 2]


@pytest.mark.parametrize(
    ("sides", "steps"),
    [((5, 3), 8), ((5, 5), 12), ((7, 3), 12), ((7, 5), 17), ((7, 7), 22), ((9, 9), 33),
     ((11, 11), 46), ((13, 13), 62), ((16, 16), 82), ((64, 64), 1090), ((3, 5), 8), ((5, 7), 17)],
)  # fmt: skip
def test_steps_on_two_axes(sides, steps):
    """Tori of two axes take the expected steps, with at most 14 node classes."""
    schedule = plan(*sides)
    assert schedule.steps == steps
    assert node_classes(schedule) <= 13 + (sides == (5, 5))
    assert check(schedule).rounds == steps


def test_three_by_three_is_optimal_with_one_node_class():
    """On 3x3 the plan is optimal, with one node class."""
    schedule = plan(3, 3)
    assert steps_until_complete(schedule) == schedule.steps == 2
    assert node_classes(schedule) == 1


@pytest.mark.parametrize("sides", [*product(range(2, 14), repeat=2)])
def test_every_torus_of_two_axes(sides):
    """Every torus of two axes takes at most the steps of Theorem 3, and more with two odd sides."""
    schedule = plan(*sides)
    nodes = math.prod(sides)
    assert -(-(nodes - 1) // 4) <= schedule.steps
    # Theorem 3 has no construction for two odd sides. These may take (n1 + n2) / 3 steps more.
    beyond = sum(sides) / 3 if all(side % 2 for side in sides) else 0
    assert schedule.steps <= nodes / 4 + sum(sides) / 2 + 2 + beyond
    check(schedule)
    if nodes <= 60:
        assert steps_until_complete(schedule) == schedule.steps


@pytest.mark.parametrize(
    ("sides", "steps"),
    [((3, 3, 4), 15), ((3, 3, 5), 17), ((3, 6, 4), 27), ((6, 6, 3), 36), ((6, 6, 4), 60),
     ((6, 6, 6), 77), ((6, 12, 5), 116), ((9, 9, 9), 203), ((12, 12, 4), 200), ((12, 12, 12), 428)],
)  # fmt: skip
def test_steps_on_three_axes(sides, steps):
    """Tori of three axes take the expected steps, or fewer, with at most 5 node classes."""
    schedule = plan(*sides)
    assert schedule.steps <= steps
    assert (schedule.steps == steps) == (sides != (6, 6, 3))
    assert node_classes(schedule) <= 5
    assert check(schedule).rounds == schedule.steps


def test_three_by_three_by_six_in_the_best_order():
    """On 6x6x3 every order of the sides gives the best order of axes."""
    # rods along the side of 6 are better than those along a side of 3
    assert plan(6, 6, 3).steps == 35
    assert {plan(*sides).steps for sides in permutations((6, 6, 3))} == {35}


@pytest.mark.parametrize("sides", [(6, 9, 5), (6, 15, 3), (12, 15, 4), (12, 18, 5), (15, 15, 4)])
def test_relaxed_multiples_of_three(sides):
    """Relaxed multiples of three take at most the steps of Theorem 4 and of double receipts."""
    schedule = plan(*sides)
    n1, n2, n3 = sides
    # Theorem 4, and the steps of double receipts: half a cycle and two planes of laps.
    assert schedule.steps <= n1 * n2 * n3 / 6 + n1 * n2 / 2 + n1 * n2 * (n3 + 3) / 12
    check(schedule)


@pytest.mark.parametrize(
    ("sides", "steps"), [((4, 4, 4, 4), 78), ((8, 8, 8, 8), 993), ((4, 4, 2, 4), 42)]
)
def test_steps_on_four_axes(sides, steps):
    """Tori of four axes take the expected steps."""
    schedule = plan(*sides)
    assert schedule.steps == steps
    assert check(schedule).rounds == steps


@pytest.mark.parametrize(
    "sides", few(2, [(4, 4, 4, 5), (4, 6, 4, 4), (8, 4, 4, 2), (4, 8, 8, 4)], tuples=True)
)
def test_axes_in_any_order(sides):
    """The order of the sides does not change the number of steps."""
    schedule = plan(*sides)
    check(schedule)
    assert schedule.steps == plan(*sorted(sides)).steps


def test_three_axes_with_two_multiples_of_three_always_fit():
    """Three axes, two of which are multiples of three, always fit."""
    for n1, n2 in combinations_with_replacement(range(3, 100, 3), 2):
        assert any(axis_orders_3d((n1, n2, 4)))


@pytest.mark.long
@pytest.mark.parametrize("sides", [(30, 30, 30), (12, 12, 12, 12), (8, 12, 16, 8), (151, 150)])
def test_large_tori(sides):
    """Plans of large tori are correct."""
    check(plan(*sides))
