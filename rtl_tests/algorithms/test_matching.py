"""Collectives by bipartite matching: at the lower bound on any torus."""

from itertools import product
from math import prod

import numpy as np
import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import planner
from waiting import shortest_wait

import torusfabric as tf
from torusfabric.algorithms.table.matching.alltoall import alltoall_bound, balanced_routes
from torusfabric.algorithms.table.matching.plan import MATCHING, port_trees
from torusfabric.analysis.bounds import bound
from torusfabric.analysis.check import check, check_rounds
from torusfabric.analysis.distance_bounds import delivery_steps
from torusfabric.collective import COLLECTIVES
from torusfabric.topology import Torus, parse_topology, require_cayley_graph

plan = planner(MATCHING)

SMALL = settings(derandomize=True, deadline=None, max_examples=25)


def all_sides(limit, longest=None, prefix=()):
    """Yield the sides of all tori with at most `limit` nodes, longest side first."""
    for side in range(2, min(limit // prod(prefix), longest or limit) + 1):
        yield (*prefix, side)
        yield from all_sides(limit, side, (*prefix, side))


def volume_bound(sides, chunks=1):
    """Return max(ceil(M (N - 1) / ports), diameter)."""
    torus = Torus(sides)
    return max(-(-chunks * (torus.nodes - 1) // torus.ports), torus.diameter)


def exchange_bound(sides, chunks=1):
    """Return the largest port load in closed form, or the diameter if it is larger."""
    loads = []
    for side in sides:
        blocks, half = chunks * prod(sides) // side, (side + 1) // 2
        ends = side // 2 * -(-blocks // 2) if side % 2 == 0 else 0
        loads.append(blocks * half * (half - 1) // 2 + ends)
    return max(*loads, sum(side // 2 for side in sides))


@pytest.mark.parametrize(
    ("sides", "steps"),
    few(5, [((3, 3), 2), ((4, 4), 4), ((8, 8), 16), ((4, 5), 5), ((8, 8, 8), 86),
     pytest.param((64, 64), 1024, marks=pytest.mark.long),
     pytest.param((16, 16, 16), 683, marks=pytest.mark.long),
     ((7, 7, 7), 57), ((3, 4, 5), 10), ((9,), 4), ((2, 9), 5)]),
)  # fmt: skip
def test_allgather_examples(sides, steps):
    """All-gathers take the expected steps."""
    schedule = plan(sides, "allgather")
    assert schedule.round_count == steps
    assert check(schedule).duplicates == 0


@pytest.mark.parametrize(
    ("nodes", "chunks"),
    [(20, (1, 2, 3)),
     pytest.param(100, (1, 2, 3), marks=pytest.mark.long),
     pytest.param(500, (1,), marks=pytest.mark.long)],
)  # fmt: skip
def test_allgather_meets_the_bound_on_all_tori(nodes, chunks):
    """All-gathers meet the bound on all tori of up to 20 nodes, or 500 in the long test."""
    for sides, count in product(all_sides(nodes), chunks):
        schedule = plan(sides, "allgather", chunks=count)
        assert schedule.round_count == delivery_steps(schedule.topology, count), (sides, count)
        check(schedule)


def test_bound_is_the_volume_bound_but_for_sides_of_two():
    """The bound is that of the volume, or one step more on sides of two."""
    for sides in all_sides(100):
        for chunks in (1, 2, 3):
            above = delivery_steps(Torus(sides), chunks) - volume_bound(sides, chunks)
            assert above in ((0, 1) if 2 in sides and chunks == 1 else (0,)), sides


def test_parallel_links_cannot_both_serve_the_first_step():
    """Two parallel links bring the same block in the first step, which costs one step on 9x2x2."""
    # 35 blocks through 6 ports fit into 6 steps, but the first step delivers only 4. 9x2x2 needs 7.
    assert volume_bound((9, 2, 2)) == 6
    assert plan((9, 2, 2), "allgather").round_count == 7
    assert plan((9, 2, 2), "scatter").round_count == 7


@pytest.mark.parametrize(
    ("kind", "nodes", "most"),
    [*few(1, [("scatter", 40, 3), ("gather", 40, 3)]),
     pytest.param("scatter", 300, 1, marks=pytest.mark.long)],
)  # fmt: skip
def test_scatter_meets_the_bound_on_all_tori(kind, nodes, most):
    """Scatters and gathers meet the bound on all small tori."""
    for sides in all_sides(nodes):
        for chunks in range(1, most + 1):
            schedule = plan(sides, kind, chunks=chunks, root=1)
            assert schedule.round_count == delivery_steps(schedule.topology, chunks), (
                sides,
                chunks,
            )
            report = check(schedule)
            assert report.transfers == chunks * schedule.topology.distances.sum()


def test_scatter_trees_share_no_arc():
    """The trees of a scatter share no arc, and their paths are shortest."""
    for name in ("4x4", "2x2x3", "5x6", "arrowhead:3"):
        topology = require_cayley_graph(parse_topology(name))
        last = port_trees(topology).entry.T
        for node in range(1, topology.nodes):
            arcs = last[node][last[node] >= 0]
            assert len(arcs) == len(set(arcs)) > 0
            tails = topology.neighbours[node, arcs]
            assert (topology.distances[tails] == topology.distances[node] - 1).all()
            for tree, tail in zip(np.nonzero(last[node] >= 0)[0], tails, strict=True):
                assert tail == 0 or last[tail, tree] >= 0


@pytest.mark.parametrize(
    ("sides", "steps"),
    few(3, [((3, 3), 3), ((4, 4), 8), ((8, 8), 64), ((10, 10, 10), 1250), ((5, 5, 5, 5), 375),
     ((2, 2, 2, 2), 4), ((4,), 3)]),
)  # fmt: skip
def test_alltoall_examples(sides, steps):
    """All-to-alls take the expected steps."""
    schedule = plan(sides, "alltoall")
    assert schedule.round_count == steps == exchange_bound(sides)
    check(schedule)


@pytest.mark.parametrize(("nodes", "most"), [(16, 2), pytest.param(300, 1, marks=pytest.mark.long)])
def test_alltoall_meets_the_bound_on_all_tori(nodes, most):
    """All-to-alls meet the bound on all small tori, over shortest paths."""
    for sides in all_sides(nodes):
        for chunks in range(1, most + 1):
            schedule = plan(sides, "alltoall", chunks=chunks)
            assert schedule.round_count == exchange_bound(sides, chunks), sides
            report = check(schedule)
            distances = int(schedule.topology.distances.sum())
            assert report.transfers == chunks * distances * prod(sides)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("4x4x8~2:0,1", 74),
        ("4x8x8~1,2:0", 184),
        ("4x4x8~2:0=3,1", 72),
        ("8x4~4", 21),
        pytest.param("8x8x16~2:0,1", 1190, marks=pytest.mark.long),
    ],
)
def test_alltoall_meets_the_bound_on_twisted_tori(name, steps):
    """An all-to-all takes the mean load of a port, as twists shorten the long way round."""
    torus = parse_topology(name)
    assert steps == -(-int(require_cayley_graph(torus).distances.sum()) // torus.ports)
    schedule = plan(torus, "alltoall")
    check(schedule)
    assert (bound(schedule), schedule.round_count) == (steps, steps)


def test_routes_are_shortest():
    """Balanced routes are shortest paths to the destination."""
    for name in ("4x6", "2x3x4", "arrowhead:3"):
        topology = require_cayley_graph(parse_topology(name))
        routes = balanced_routes(topology, 2)
        assert (routes.sum(axis=1) == np.repeat(topology.distances, 2)).all()
        for block, hops in enumerate(routes):
            node = 0
            for port in np.repeat(np.arange(topology.ports), hops):
                node = topology.neighbours[node, port]
            assert node == block // 2


@pytest.mark.parametrize("name", ["2", "3", "2x2", "4x3", "3x3x3", "2x3x4", "arrowhead:1",
                                  "arrowhead:2"])  # fmt: skip
@pytest.mark.parametrize("kind", ["reduce-scatter", "allreduce"])
def test_reductions_add_every_contribution_once(name, kind):
    """Reductions add each contribution exactly once."""
    topology = require_cayley_graph(parse_topology(name))
    schedule = plan(topology, kind)
    halves = 2 if kind == "allreduce" else 1
    assert schedule.round_count == halves * delivery_steps(topology)
    assert schedule.chunks == (topology.nodes if kind == "allreduce" else 1)
    for prove in (check, check_rounds):
        assert prove(schedule).transfers == halves * topology.nodes * (topology.nodes - 1)


def test_sums_of_a_table_list_the_subtree():
    """A partial sum lists the contributions of its subtree."""
    # On a ring of 3, both neighbours send their contribution to the owner in the same step.
    schedule = plan((3,), "reduce-scatter")
    (transfers,) = schedule.rounds()
    blocks = schedule.blocks
    for source, port, block in zip(
        transfers.source, transfers.hops[:, 0], transfers.payload.ids, strict=True
    ):
        assert blocks.origin(block) == source
        assert blocks.destination(block) == schedule.topology.neighbours[source, port]


@pytest.mark.parametrize("kind", [k for k in MATCHING.collectives if not COLLECTIVES[k].local])
@pytest.mark.parametrize("latency", few(1, [1, 2, 4], tuples=True))
def test_latency_is_waited_for(kind, latency):
    """A received block is sent on only after the latency."""
    for name in ("7", "4x4", "2x3x4", "arrowhead:2"):
        topology = parse_topology(name)
        schedule = plan(topology, kind, latency=latency)
        check(schedule)
        assert shortest_wait(schedule) >= latency


@pytest.mark.long
def test_latency_costs_little():
    """A latency of up to 4 costs at most a few steps."""
    for latency, excess in [(2, 1), (3, 2), (4, 2)]:
        for sides in all_sides(16):
            torus = Torus(sides)
            steps = plan(torus, "allgather", latency=latency).round_count
            assert 0 <= steps - delivery_steps(torus, 1, latency) <= excess, sides
            steps = plan(torus, "scatter", latency=latency).round_count
            assert steps == delivery_steps(torus, 1, latency), sides
            steps = plan(torus, "alltoall", latency=latency).round_count
            assert 0 <= steps - alltoall_bound(balanced_routes(torus), latency) < latency, sides


@SMALL
@given(
    st.lists(st.integers(2, 6), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from([kind for kind in MATCHING.collectives if kind != "allreduce"]),
    st.data(),
)
def test_any_torus(sides, chunks, kind, data):
    """Random tori, chunks and roots give correct schedules."""
    torus = Torus(sides)
    root = None
    if kind in ("scatter", "gather"):
        root = data.draw(st.integers(0, torus.nodes - 1))
    check(plan(torus, kind, root=root, chunks=chunks))


@pytest.mark.parametrize(
    ("order", "gather", "exchange"), [(0, 0, 0), (1, 1, 1), (2, 3, 5), (3, 11, 34), (4, 43, 265)]
)
def test_arrowhead(order, gather, exchange):
    """Arrowhead tori take the expected steps, or fewer in an all-to-all."""
    # Ties between routes cannot be shared evenly: all hops over six ports are 4, 33 and 265 steps
    # for orders 2 to 4. The all-to-all stays within 7/6 of them, plus rounding.
    topology = require_cayley_graph(parse_topology(f"arrowhead:{order}"))
    for kind in ("allgather", "scatter", "gather"):
        schedule = plan(topology, kind)
        assert schedule.round_count == gather == delivery_steps(topology)
        check(schedule)
    schedule = plan(topology, "alltoall")
    assert schedule.round_count <= exchange
    check(schedule)


@pytest.mark.parametrize(
    ("torus", "flits", "chunks"),
    [("3x6", 74, 2), ("6x3", 74, 2), ("6", 2, 2), ("6", 1, 1), ("6x6", 74, 1)],
)
def test_half_of_an_exchange_goes_each_way_round(torus, flits, chunks):
    """Offsets of half an even side are shared by both ways if the other axes cannot share them."""
    schedule = tf.plan(torus, "alltoall", flits=flits)
    assert schedule.chunks == chunks
    program = tf.compile(schedule, flits=flits)
    other = tf.plan(torus, "alltoall", algorithm="matching", chunks=3 - chunks)
    assert program.cycles() <= tf.compile(other, flits=flits).cycles()


@pytest.mark.parametrize(("topology", "chunks"), [("6x4", 4), ("3x5", 2), ("3x4x5", 6), ("3x3", 1)])
def test_long_sums_leave_no_port_idle(topology, chunks):
    """A reduce-scatter of long messages has as many chunks as divide evenly among the ports."""
    schedule = tf.plan(topology, "reduce-scatter", flits=256)
    nodes, ports = schedule.topology.nodes, schedule.topology.ports
    assert (schedule.algorithm, schedule.chunks) == ("matching", chunks)
    assert schedule.round_count * ports == chunks * (nodes - 1)
