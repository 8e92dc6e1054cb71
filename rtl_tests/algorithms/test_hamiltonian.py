"""All-gather along edge-disjoint Hamiltonian cycles."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from flooding import steps_until_complete
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import node_classes

from torusfabric.algorithms.oblivious.hamiltonian.plan import (
    HAMILTONIAN,
    colour_links,
    is_decomposable,
)
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.topology import Torus

ALLGATHER = Collective("allgather")


def plan(*sides):
    return HAMILTONIAN(Torus(sides), ALLGATHER)


def assert_hamiltonian_cycles(pattern):
    """Check that d cycles, followed in both directions, visit all nodes and use each arc once."""
    torus, nodes = pattern.topology, pattern.topology.nodes
    seen = np.zeros((nodes, torus.ports), int)
    for chunk in range(pattern.chunks):
        for start in np.nonzero(pattern.inject[0] == chunk)[0]:
            node, port, visited = 0, start, set()
            for _ in range(nodes):
                visited.add(node)
                seen[node, port] += 1
                assert pattern.inject[node, port] == chunk
                node, came_in = torus.neighbours[node, port], torus.opposite[port]
                (port,) = np.nonzero(pattern.feed[node] == came_in)[0]
            assert (node, port) == (0, start)
            assert len(visited) == nodes
    assert (seen == 1).all()


def assert_step_optimal(pattern):
    """Check that d (N - 1) blocks arrive through 2 d ports in the fewest possible steps."""
    received = pattern.chunks * (pattern.topology.nodes - 1)
    assert pattern.steps == -(-received // pattern.topology.ports)
    assert pattern.chunks == len(pattern.topology.sides)


@pytest.mark.parametrize("sides", [(6, 8), (2, 2), (2, 4), (4, 2), (4, 4), (10, 6)])
def test_two_even_sides_take_two_node_classes(sides):
    """Two even sides take N / 2 steps, with at most two node classes."""
    schedule = plan(*sides)
    assert schedule.steps == sides[0] * sides[1] // 2
    assert steps_until_complete(schedule) == schedule.steps
    assert node_classes(schedule) <= 2
    assert_hamiltonian_cycles(schedule)


def test_figure_1_of_the_paper():
    """The cycles on 6x8 are those of figure 1 of the paper."""
    # In even columns and the last, top feeds right and bottom feeds left; in others top feeds left.
    bottom, top, right, left = range(4)
    feed = plan(6, 8).feed.reshape(6, 8, 4)
    for column in range(8):
        across = right if column % 2 == 0 or column == 7 else left
        assert (feed[:, column, across] == top).all()
        assert (feed[:, column, top] == across).all()
        assert (feed[:, column, bottom] == across ^ 1).all()


@pytest.mark.parametrize("sides", [*product(range(3, 14), repeat=2)])
def test_every_torus_of_two_axes(sides):
    """Every torus of two axes takes the fewest possible steps, with at most 3 node classes."""
    schedule = plan(*sides)
    assert_step_optimal(schedule)
    assert node_classes(schedule) <= 3
    assert check(schedule).rounds == schedule.steps
    if sides[0] * sides[1] <= 60:
        assert_hamiltonian_cycles(schedule)
        assert steps_until_complete(schedule) == schedule.steps


@pytest.mark.parametrize(
    ("sides", "steps"),
    [
        ((3, 3, 3), 13),
        ((3, 4, 5), 30),
        ((4, 4, 4), 32),
        ((6, 6, 6), 108),
        ((3, 3, 3, 3), 40),
        ((4, 4, 4, 4), 128),
        ((3, 4, 5, 6), 180),
        ((3, 3, 3, 3, 3), 121),
    ],
)
def test_steps_on_more_axes(sides, steps):
    """Tori of three to five axes take the expected, fewest possible steps."""
    schedule = plan(*sides)
    assert schedule.steps == steps
    assert_step_optimal(schedule)
    assert_hamiltonian_cycles(schedule)
    check(schedule)


@pytest.mark.parametrize("sides", [*combinations_with_replacement(range(3, 7), 3)])
def test_small_tori_of_three_axes(sides):
    """Small tori of three axes have at most 15 node classes."""
    schedule = plan(*sides)
    assert_step_optimal(schedule)
    check(schedule)
    assert node_classes(schedule) <= 15


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8, 17])
def test_a_ring_is_its_own_cycle(nodes):
    """A ring of N nodes takes N / 2 steps, rounded down, with one node class."""
    schedule = plan(nodes)
    assert schedule.chunks == 1
    assert steps_until_complete(schedule) == schedule.steps == nodes // 2
    assert node_classes(schedule) == 1


@pytest.mark.parametrize(
    "sides",
    [(2, 3, 3), (2, 4, 4), (2, 2, 4), (2, 5, 7), (3, 2, 4), (2, 2, 6), (2, 9, 3), (2, 2, 2, 2),
     (2, 2, 2, 3), (2, 3, 3, 3), (2, 2, 5, 3), (2, 2, 2, 2, 2), (2, 2, 2, 2, 3)],
)  # fmt: skip
def test_sides_of_two_have_parallel_links(sides):
    """Tori with sides of 2 use both parallel links, and take the fewest possible steps."""
    schedule = plan(*sides)
    assert_step_optimal(schedule)
    assert_hamiltonian_cycles(schedule)
    assert check(schedule).rounds == schedule.steps


def hamiltonian_cycles_of(sides):
    """Return all Hamiltonian cycles of a torus, and the torus itself, as counts of links."""
    torus = Torus(sides)
    links: dict[frozenset[int], int] = {}
    total: list[int] = []
    for node, port in product(range(torus.nodes), range(0, torus.ports, 2)):
        ends = frozenset((node, int(torus.neighbours[node, port])))
        number = links.setdefault(ends, len(links))
        total += [0] * (len(links) - len(total))
        total[number] += 1
    cycles = set()

    def extend(path):
        for beside in set(torus.neighbours[path[-1]].tolist()):
            if len(path) == torus.nodes and beside == 0:
                row = np.zeros(len(links), np.int64)
                for ends in zip(path, [*path[1:], 0], strict=True):
                    row[links[frozenset(ends)]] += 1
                cycles.add(tuple(row))
            elif beside not in path:
                extend([*path, beside])

    extend([0])
    return cycles, np.array(total)


@pytest.mark.parametrize(
    ("sides", "exists"),
    [((2, 3), False), ((2, 5), False), ((2, 4), True), ((2, 2, 2), False), ((2, 2, 3), False)],
)
def test_misfits_have_no_hamiltonian_cycles_to_find(sides, exists):
    """`is_decomposable` is true exactly for tori that a search can cut into Hamiltonian cycles."""
    cycles, total = hamiltonian_cycles_of(sides)
    left = {tuple(total)}
    for _ in range(len(sides) - 1):
        left = {
            tuple(np.subtract(rest, cycle))
            for rest in left
            for cycle in cycles
            if (np.subtract(rest, cycle) >= 0).all()
        }
    assert any(rest in cycles for rest in left) == exists == is_decomposable(sides)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.integers(2, 7), min_size=1, max_size=4))
def test_each_colour_is_one_cycle(sides):
    """Each colour of links is one Hamiltonian cycle.

    On a torus without a decomposition, the first colour is.
    """
    colours = colour_links(sides)
    torus, axes = Torus(sides), range(len(sides))
    one_cycle = axes if is_decomposable(sides) else [0]
    for colour in one_cycle:
        beside: list[list[int]] = [[] for _ in range(torus.nodes)]
        for node, axis in zip(*np.nonzero(colours == colour), strict=True):
            other = int(torus.neighbours[node, 2 * axis])
            beside[node].append(other)
            beside[other].append(int(node))
        before, here, count = beside[0][1], 0, 0
        while count == 0 or here != 0:
            assert len(beside[here]) == 2
            first, second = beside[here]
            before, here = here, second if first == before else first
            count += 1
        assert count == torus.nodes


@pytest.mark.long
@pytest.mark.parametrize(
    "sides",
    [
        *product(range(3, 9), repeat=3),
        *filter(is_decomposable, combinations_with_replacement(range(2, 13), 3)),
        *combinations_with_replacement(range(2, 6), 4),
        (8, 8, 8, 8), (2,) * 6, (2,) * 7, (3,) * 6,
    ],
)  # fmt: skip
def test_tori_of_many_sides_and_axes(sides):
    """Tori of many sides and axes take the fewest possible steps."""
    schedule = plan(*sides)
    assert_step_optimal(schedule)
    check(schedule)


@pytest.mark.long
def test_a_large_torus():
    """A torus of 32x32x32 takes 16,384 steps, with at most 15 node classes."""
    schedule = plan(32, 32, 32)
    assert schedule.steps == 16384
    assert node_classes(schedule) <= 15
    check(schedule)
