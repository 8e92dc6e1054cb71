"""Circuit-switched broadcast on the arrowhead torus."""

import numpy as np
import pytest
from planners import planner

from torusfabric.algorithms import Options
from torusfabric.algorithms.arrowhead.wormhole_forest import WORMHOLE_FOREST
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.errors import InputError
from torusfabric.schedule import Duplex
from torusfabric.topology import Arrowhead, Torus

plan = planner(WORMHOLE_FOREST, "broadcast")


def program_count(schedule):
    """The number of different nodes: what feeds each out-port, and which in-ports deliver."""
    topology, local = schedule.topology, schedule.topology.ports
    shape = (topology.nodes, schedule.round_count, 2, local + 1)
    program = np.full(shape, -1)
    for number, transfers in enumerate(schedule.rounds()):
        here, came_by = transfers.source, np.full(len(transfers), local)
        for port in transfers.hops.T.astype(int):
            on = port >= 0
            program[here[on], number, 0, port[on]] = came_by[on]
            here = np.where(on, topology.neighbours[here, port], here)
            came_by = np.where(on, topology.opposite[port], came_by)
        program[here, number, 1, came_by] = 1
    return len(np.unique(program.reshape(topology.nodes, -1), axis=0))


def test_lemma_1():
    """Order 2: node 0 reaches its triad 4, 8, 12 by two hops, then each of these its own."""
    first, second = plan(2, ports=3).rounds()
    topology = Arrowhead(2)
    assert first.walk(topology).tolist() == [[0, 1, 4], [0, 2, 8], [0, 3, 12]]
    assert second.source.tolist() == np.repeat([0, 4, 8, 12], 3).tolist()
    assert second.walk(topology)[:, -1].tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15]


@pytest.mark.parametrize("ports", [3, 6])
@pytest.mark.parametrize("order", range(7))
def test_rounds_and_lengths(order, ports):
    """Proposition 2, Corollary 4: n rounds, 2^n - 1 hops, in half duplex; arcs as counted."""
    report = check(plan(order, ports=ports, duplex="half"))
    assert report.rounds == order
    assert report.round_hops == tuple(2 ** (order - p) for p in range(1, order + 1))
    assert sum(report.round_hops) == 2**order - 1
    # 4^(p-1) trees of three branches (six with both halves), each 2^(n-p) links long
    used = [ports * 4 ** (p - 1) * 2 ** (order - p) for p in range(1, order + 1)]
    assert report.arcs_used == sum(used)
    assert report.duplicates == 0


def test_arcs_of_each_round():
    """The counts for order 4: 24 to 192 arcs."""
    used = [(transfers.hops >= 0).sum() for transfers in plan(4, ports=3).rounds()]
    assert used == [24, 48, 96, 192]


@pytest.mark.parametrize("root", [1, 7, 21, 42, 63])
@pytest.mark.parametrize("ports", [3, 6])
def test_any_root(root, ports):
    """From another root it is the same, translated."""
    schedule = plan(3, root=root, ports=ports, duplex="half")
    check(schedule)
    assert {int(node) for node in next(schedule.rounds()).source} == {root}


def test_two_halves():
    """On six ports one half travels N, SW and SE, the other S, NE and NW."""
    schedule = plan(3)
    assert (schedule.ports, schedule.chunks, schedule.switching) == (6, 2, "circuit")
    for transfers in schedule.rounds():
        assert (transfers.payload.ids == transfers.hops[:, 0] // 3).all()


@pytest.mark.parametrize(
    ("order", "three", "six"), [(1, 4, 4), (2, 10, 13), (3, 22, 34), (4, 46, 79), (5, 94, 172)]
)
def test_program_count(order, three, six):
    """How many different routers the fabric has."""
    assert program_count(plan(order, ports=3)) == three
    assert program_count(plan(order, ports=6)) == six


def test_one_node_needs_no_round():
    """Order 0: the root is alone."""
    assert plan(0).round_count == 0
    check(plan(0))


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({"ports": 4}, "--ports 3 or 6"),
        ({"chunks": 3}, "--chunks 2 at 6 ports"),
        ({"ports": 3, "chunks": 2}, "--chunks 1 at 3 ports"),
        ({"packets": 2}, "--packets left out"),
    ],
)
def test_refusals(options, needs):
    """What does not fit is named."""
    with pytest.raises(InputError, match=rf"^Algorithm wormhole-forest needs {needs}, not "):
        plan(2, **options)


def test_needs_an_arrowhead():
    """Other topologies and collectives are refused."""
    with pytest.raises(InputError, match=r"needs an arrowhead torus, not 4x4 broadcast$"):
        WORMHOLE_FOREST(Torus((4, 4)), Collective("broadcast", 0))
    with pytest.raises(InputError, match=r"needs one of the collectives broadcast, not "):
        WORMHOLE_FOREST(Arrowhead(2), Collective("allgather"))


def test_duplex_is_full_or_half():
    """Another word for duplex is refused before anything is planned."""
    with pytest.raises(InputError, match=r"^Duplex must be full or half, not 'both'$"):
        Options(duplex=Duplex("both"))
