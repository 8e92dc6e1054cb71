"""Circuit-switched broadcast on the arrowhead torus."""

import numpy as np
import pytest
from planners import planner, program_count

from torusfabric.algorithms.arrowhead.wormhole_forest import WORMHOLE_FOREST
from torusfabric.analysis.check import check
from torusfabric.topology import Arrowhead

plan = planner(WORMHOLE_FOREST, "broadcast")


def test_lemma_1():
    """In order 2, node 0 reaches 4, 8 and 12 over two hops, then each of these its own triad."""
    first, second = plan(2, ports=3).rounds()
    topology = Arrowhead(2)
    assert first.walk(topology).tolist() == [[0, 1, 4], [0, 2, 8], [0, 3, 12]]
    assert second.source.tolist() == np.repeat([0, 4, 8, 12], 3).tolist()
    assert second.walk(topology)[:, -1].tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15]


@pytest.mark.parametrize("ports", [3, 6])
@pytest.mark.parametrize("order", range(7))
def test_rounds_and_lengths(order, ports):
    """A forest takes n rounds and 2^n - 1 hops, in half duplex (Proposition 2, Corollary 4)."""
    report = check(plan(order, ports=ports, duplex="half"))
    assert report.rounds == order
    assert report.round_hops == tuple(2 ** (order - p) for p in range(1, order + 1))
    assert sum(report.round_hops) == 2**order - 1
    # Round p has 4^(p-1) trees of three branches (six with both halves), each 2^(n-p) links long.
    used = [ports * 4 ** (p - 1) * 2 ** (order - p) for p in range(1, order + 1)]
    assert report.arcs_used == sum(used)
    assert report.duplicates == 0


@pytest.mark.parametrize("root", [1, 7, 21, 42, 63])
@pytest.mark.parametrize("ports", [3, 6])
def test_any_root(root, ports):
    """A forest from another root is a translation of the forest from node 0."""
    schedule = plan(3, root=root, ports=ports, duplex="half")
    check(schedule)
    assert {int(node) for node in next(schedule.rounds()).source} == {root}


def test_two_halves():
    """On six ports one half of the message travels N, SW and SE, the other half S, NE and NW."""
    schedule = plan(3)
    assert (schedule.ports, schedule.chunks, schedule.switching) == (6, 2, "circuit")
    for transfers in schedule.rounds():
        assert (transfers.payload.ids == transfers.hops[:, 0] // 3).all()


@pytest.mark.parametrize(
    ("order", "three", "six"), [(1, 4, 4), (2, 10, 13), (3, 22, 34), (4, 46, 79), (5, 94, 172)]
)
def test_program_count(order, three, six):
    """The number of different routers in a fabric is as expected."""
    assert program_count(plan(order, ports=3)) == three
    assert program_count(plan(order, ports=6)) == six


def test_one_node_needs_no_round():
    """A network of one node needs no round."""
    assert plan(0).round_count == 0
    check(plan(0))
