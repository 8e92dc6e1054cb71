"""Circuit-switched broadcast by maximum flows."""

from itertools import combinations_with_replacement, product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import as_topology, planner

from torusfabric.algorithms import Options
from torusfabric.algorithms.circuit.circuits import ceil_log
from torusfabric.algorithms.circuit.max_flow import (
    MAX_FLOW,
)
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.errors import InputError
from torusfabric.topology import Faulty, Torus

plan = planner(MAX_FLOW, "broadcast")

SMALL = settings(derandomize=True, deadline=None, max_examples=40)


def meets_bound(topology, **options):
    """Check that broadcasts take the fewest rounds for each number of ports."""
    for ports in range(1, topology.ports + 1):
        report = check(plan(topology, ports=ports, **options))
        assert report.rounds == ceil_log(topology.nodes, ports), (topology, ports)
        assert (report.transfers, report.duplicates) == (topology.nodes - 1, 0)


@pytest.mark.parametrize(
    "what",
    [
        *product((3, 4, 5), repeat=2), (7, 12), (8, 8), (12, 12),
        (3, 3, 3), (3, 4, 5), (5, 5, 8), (2, 7, 13), (3, 3, 22),
        (2, 2), (2, 3), (2, 2, 2), (2, 3, 2), (2, 9), (2, 2, 2, 3),
        *((side,) for side in (2, 3, 4, 8, 9, 27, 28, 64, 100)),
        *range(4),
    ],
)  # fmt: skip
def test_tori_and_arrowheads(what):
    """Broadcasts take the fewest rounds on tori of one to four axes and on arrowheads."""
    meets_bound(as_topology(what))


@pytest.mark.parametrize(
    ("sides", "ports"), [((3, 40), 4), ((3, 85), 3), ((3, 85), 4), ((3, 100), 4), ((5, 51), 3)]
)
def test_thin_tori_that_take_a_few_tries(sides, ports):
    """Thin tori, for which the planner needs several tries, take the fewest rounds."""
    assert check(plan(sides, ports=ports)).rounds == ceil_log(prod(sides), ports)


def test_a_thousand_nodes():
    """A torus of 1,000 nodes takes 4 rounds."""
    assert check(plan((10, 10, 10))).rounds == 4


@pytest.mark.long
@pytest.mark.parametrize(("dimensions", "top", "nodes"), [(2, 13, 144), (3, 23, 200)])
def test_all_tori(dimensions, top, nodes):
    """All small tori take the fewest rounds."""
    for sides in combinations_with_replacement(range(3, top), dimensions):
        if prod(sides) <= nodes:
            meets_bound(Torus(sides))


def test_root_makes_no_difference():
    """A broadcast from another root is a translation of the broadcast from node 0."""
    base, moved = plan((5, 6)), plan((5, 6), root=17)
    for one, other in zip(base.rounds(), moved.rounds(), strict=True):
        assert np.array_equal(one.hops, other.hops)
        assert np.array_equal(base.topology.add(one.source, 17), other.source)


@SMALL
@given(st.sampled_from([(4, 5), (3, 3, 3), (8, 8), (9,), (2, 5), (4, 2)]), st.data())
def test_broken_links_are_avoided(sides, data):
    """A schedule uses no broken link; the checker would refuse it."""
    topology = Torus(sides)
    links = st.tuples(st.integers(0, topology.nodes - 1), st.integers(0, topology.ports - 1))
    broken = data.draw(st.lists(links, min_size=1, max_size=4))
    ports = data.draw(st.integers(1, topology.ports))
    kind = data.draw(st.sampled_from(["broadcast", "gather", "reduce"]))
    root = data.draw(st.integers(0, topology.nodes - 1))
    try:
        faulty = Faulty(topology, broken)
    except InputError as error:
        assert "cut off node" in str(error)  # noqa: PT017
        return
    schedule = MAX_FLOW(faulty, Collective(kind, root), Options(ports=ports))
    assert check(schedule).duplicates == 0


@pytest.mark.parametrize("share", [0.02, 0.05])
def test_some_broken_links_cost_one_round_at_most(share):
    """With up to 5 % of the links broken, a broadcast takes at most one round more."""
    topology, random = Torus((12, 12)), np.random.default_rng(7)
    for ports in range(1, 5):
        arcs = random.choice(topology.nodes * 4, round(share * topology.nodes * 2), replace=False)
        faulty = Faulty(topology, [(int(arc) // 4, int(arc) % 4) for arc in arcs])
        schedule = MAX_FLOW(faulty, Collective("broadcast", 0), Options(ports=ports))
        assert check(schedule).rounds <= ceil_log(144, ports) + 1
