"""Circuit-switched broadcast by diagonals, on grids that are refined level by level."""

from itertools import combinations_with_replacement, product
from math import prod

import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_costs import theorem_rounds
from planners import planner

from torusfabric.algorithms.circuit.circuits import (
    CircuitRounds,
    LevelGrid,
    ceil_log,
    inform_axis_by_axis,
    inform_square_grid,
)
from torusfabric.algorithms.circuit.diagonal.plan import (
    DIAGONAL,
    candidate_builds,
    diagonal_rounds,
)
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.schedule import Rounds, Switching
from torusfabric.topology import Torus

plan = planner(DIAGONAL, "broadcast")

SMALL = settings(derandomize=True, deadline=None, max_examples=60)


def checked(topology, circuits, ports):
    """Check that circuits from node 0 are a broadcast, and return their number of rounds."""
    schedule = Rounds(
        topology=topology,
        collective=Collective("broadcast", 0),
        algorithm="diagonal",
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=tuple(circuits.rounds),
    )
    report = check(schedule)
    assert (report.transfers, report.duplicates) == (topology.nodes - 1, 0)
    return report.rounds


@pytest.mark.parametrize(("dimensions", "top"), [(1, 40), (2, 20), (3, 9), (4, 5)])
def test_equal_sides_take_k_clog_n_rounds(dimensions, top):
    """On k equal sides of n nodes a broadcast takes k times the rounded-up logarithm of n."""
    for side in range(2, top):
        topology = Torus([side] * dimensions)
        for alpha in range(1, 2 * dimensions + 1):
            circuits = CircuitRounds(topology)
            inform_square_grid(circuits, LevelGrid(topology.sides), alpha)
            assert checked(topology, circuits, alpha) == dimensions * ceil_log(side, alpha)


@pytest.mark.parametrize("sides", [(3, 4), (7, 2, 5), (9, 10, 3), (2, 3, 2, 5)])
@pytest.mark.parametrize("alpha", [1, 2])
def test_axes_one_after_another(sides, alpha):
    """A broadcast along one axis after another takes the sum of the rounds of all axes."""
    circuits = CircuitRounds(Torus(sides))
    inform_axis_by_axis(circuits, LevelGrid(sides), alpha)
    assert checked(Torus(sides), circuits, alpha) == sum(ceil_log(side, alpha) for side in sides)


@pytest.mark.parametrize(
    ("sides", "ports", "counts"),
    [((4, 6), 4, (2, 4, 4)), ((5, 7), 4, (3, 5, 4)), ((6, 8), 4, (3, 5, 4)),
     ((7, 13), 4, (3, 6, 5)), ((10, 50), 4, (4, 5, 5)), ((20, 100), 4, (5, 6, 6)),
     ((51, 100), 4, (6, 9, 7)), ((4, 6), 3, (3, 4, 4)), ((5, 7), 3, (3, 6, 4)),
     ((6, 8), 3, (3, 5, 4)), ((20, 100), 3, (6, 8, 7))],
)  # fmt: skip
def test_examples_in_two_dimensions(sides, ports, counts):
    """Examples in two dimensions: the lower bound, the theorem, and the rounds of the plan."""
    report = check(plan(sides, ports=ports))
    assert (ceil_log(prod(sides), ports), theorem_rounds(sides, ports), report.rounds) == counts


@pytest.mark.parametrize(
    ("sides", "counts"),
    [((3, 5, 7), (5, 5, 5, 5)), ((4, 6, 8), (5, 5, 5, 5)), ((5, 9, 9), (6, 6, 6, 6)),
     ((10, 20, 30), (8, 7, 7, 7))],
)  # fmt: skip
def test_examples_in_three_dimensions(sides, counts):
    """Examples in three dimensions take the expected rounds."""
    for ports, count in zip((3, 4, 5, 6), counts, strict=True):
        assert check(plan(sides, ports=ports)).rounds == count


@pytest.mark.parametrize(("dimensions", "top"), [(2, 100), (3, 20)])
def test_never_more_rounds_than_the_theorems(dimensions, top):
    """A plan takes at most the rounds of the theorems."""
    for sides in combinations_with_replacement(range(3, top), dimensions):
        for ports in range(1, 2 * dimensions + 1):
            most = theorem_rounds(sides, ports)
            assert most is not None
            assert diagonal_rounds(sides, ports) <= most, (sides, ports)


def every_way(sides):
    """Check each candidate for a broadcast, not only the best."""
    topology = Torus(sides)
    for ports in range(1, topology.ports + 1):
        for count, build in candidate_builds(sides, ports):
            circuits = CircuitRounds(topology)
            build(circuits)
            rounds = checked(topology, circuits, ports)
            assert len(sides) > 3 or rounds == count, (sides, ports)


@pytest.mark.parametrize(
    "sides",
    [
        *product(range(2, 7), repeat=2),
        (25, 8), (21, 5), (9, 31), (13, 26), (3, 50), (2, 33),
        *few(3, [(3, 4, 2, 3), (3, 3, 3, 5), (4, 4, 2, 6), (5, 3, 5, 4), (2, 3, 2, 3, 2)],
             tuples=True),
        *(pytest.param([side + odd for side, odd in zip(base, kinds, strict=True)],
                       marks=pytest.mark.long)
          for base in ((2, 2, 2), (4, 2, 6), (4, 6, 8)) for kinds in product((0, 1), repeat=3)),
    ],
)  # fmt: skip
def test_every_way(sides):
    """Every candidate is a broadcast, in the rounds that it announces."""
    every_way(sides)


@pytest.mark.long
@pytest.mark.parametrize(
    ("dimensions", "top", "nodes"), [(2, 24, 600), (3, 10, 500), (4, 6, 300), (5, 4, 110)]
)
def test_every_way_on_all_small_tori(dimensions, top, nodes):
    """Every candidate on small tori is a broadcast."""
    for sides in product(range(2, top), repeat=dimensions):
        if prod(sides) <= nodes:
            every_way(sides)


@pytest.mark.parametrize(
    ("sides", "rounds"),
    [((500, 500), 8), ((101, 203), 8), ((64, 64, 66), 8), ((33, 35, 37), 9), ((1000, 17), 8)],
)
def test_large_tori(sides, rounds):
    """Large tori take the expected number of rounds."""
    assert check(plan(sides)).rounds == rounds


@SMALL
@given(st.lists(st.integers(2, 9), min_size=1, max_size=3), st.data())
def test_any_root_ports_and_collective(sides, data):
    """Broadcast, gather and reduce work for any root and any number of ports."""
    root = data.draw(st.integers(0, prod(sides) - 1))
    ports = data.draw(st.integers(1, 2 * len(sides)))
    kind = data.draw(st.sampled_from(["broadcast", "gather", "reduce"]))
    schedule = plan(sides, kind, root=root, ports=ports)
    report = check(schedule)
    assert (report.rounds, report.duplicates) == (diagonal_rounds(sides, ports), 0)
    assert report.transfers == prod(sides) - 1
    assert (schedule.collective.root, schedule.ports) == (root, ports)


def test_all_ports_by_default():
    """By default a plan uses all ports."""
    assert plan((5, 7)).ports == 4


@pytest.mark.parametrize(
    ("sides", "ports", "count"),
    [((5, 5), 4, 2), ((30, 30), 3, 6), ((7, 7, 7), 6, 3), ((9, 9, 9), 4, 6), ((9, 20), 2, 5),
     ((5, 21), 4, 5), ((5, 9, 9), 3, 8), ((6, 9, 20), 6, 7), ((4, 5, 6, 7), 8, None),
     ((5, 5), 5, None)],
)  # fmt: skip
def test_claims_of_the_theorems(sides, ports, count):
    """The theorems give the expected rounds, or none where no theorem holds."""
    assert theorem_rounds(sides, ports) == count
