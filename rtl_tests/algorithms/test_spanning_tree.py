"""Store-and-forward broadcast on the arrowhead torus, and its cost."""

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import paper_costs as costs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planners import planner, program_count

from torusfabric.algorithms import Options
from torusfabric.algorithms.arrowhead.spanning_tree import (
    SPANNING_TREE,
    best_packet_count,
    build_tree,
    step_count,
)
from torusfabric.algorithms.arrowhead.wormhole_forest import WORMHOLE_FOREST
from torusfabric.analysis.check import check
from torusfabric.analysis.cost import schedule_cost
from torusfabric.collective import Collective, parse_collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.topology import Arrowhead

plan = planner(SPANNING_TREE, "broadcast")


def test_tree_of_order_2():
    """In the first tree of order 2, the root has children 1 to 3, node 1 has child 4, and so on."""
    topology = Arrowhead(2)
    port, depth = build_tree(topology)
    assert depth.tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 2, 3, 3, 3, 2, 3, 3, 3]
    parent = topology.subtract(np.arange(16), topology.generators[port])
    assert parent[[1, 2, 3, 4, 5, 6, 7, 8, 12]].tolist() == [0, 0, 0, 1, 4, 4, 4, 2, 3]


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("order", range(6))
def test_trees(order, index):
    """A tree has depth 2^n - 1, and each node is one deeper than its parent (Lemma 6)."""
    topology = Arrowhead(order)
    port, depth = build_tree(topology, index)
    assert depth.max() == 2**order - 1
    child = np.arange(1, topology.nodes)
    parent = topology.subtract(child, topology.generators[port[child]])
    assert (depth[child] == depth[parent] + 1).all()
    # a node is reached at an odd depth unless it is a multiple of 4
    assert (depth[child] % 2 == (child % 4 > 0)).all()


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("trees", [1, 2])
@pytest.mark.parametrize("order", range(7))
def test_steps(order, trees, duplex):
    """A broadcast takes 2^n - 1 steps, in half duplex, too.

    Source: Proposition 5 and Corollary 7.
    """
    schedule = plan(order, trees=trees, duplex=duplex)
    report = check(schedule)
    assert report.rounds == 2**order - 1
    assert report.transfers == trees * (4**order - 1)
    assert report.duplicates == 0
    assert (schedule.ports, schedule.chunks) == (3 * trees, trees)


@pytest.mark.parametrize("packets", [1, 2, 3, 8])
@pytest.mark.parametrize("order", range(1, 5))
def test_pipelined_steps(order, packets):
    """P packets take P - 1 steps more in full duplex, and 2 (P - 1) in half (Corollary 8)."""
    assert check(plan(order, packets=packets)).rounds == 2**order - 1 + packets - 1
    half = plan(order, packets=packets, duplex="half")
    assert check(half).rounds == 2**order - 1 + 2 * (packets - 1)
    # a single tree uses each link in one direction only
    one = plan(order, packets=packets, trees=1, duplex="half")
    assert check(one).rounds == 2**order - 1 + packets - 1


def test_pipelining_every_step_needs_full_duplex():
    """Two trees with several packets share links, so half duplex fails (Corollary 8)."""
    schedule = plan(2, packets=2)
    object.__setattr__(schedule, "duplex", "half")
    with pytest.raises(ScheduleError):
        check(schedule)


def test_order_6_with_56_packets():
    """The broadcast of 56 packets to 4,096 nodes takes 118 steps and 458,640 transfers."""
    report = check(plan(6, packets=56))
    assert (report.rounds, report.transfers) == (63 + 55, 4095 * 112)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    order=st.integers(0, 3),
    root=st.integers(0, 63),
    trees=st.sampled_from([1, 2]),
    packets=st.integers(1, 6),
    duplex=st.sampled_from(["full", "half"]),
    latency=st.integers(1, 6),
)
def test_all_options_together(order, root, trees, packets, duplex, latency):
    """With any options the steps are as counted, and each block waits for its latency."""
    options = {"trees": trees, "packets": packets, "duplex": duplex, "latency": latency}
    schedule = plan(order, root=root % 4**order, **options)
    check(schedule)
    assert schedule.round_count == step_count(order, Options(**options), packets)
    arrived = np.full((4**order, schedule.chunks), 10**6)
    arrived[schedule.collective.root] = -latency
    for step, transfers in enumerate(schedule.rounds(), 1):
        port, chunk = transfers.hops[:, 0], transfers.payload.ids
        assert (arrived[transfers.source, chunk] + latency <= step).all()
        arrived[schedule.topology.neighbours[transfers.source, port], chunk] = step


@pytest.mark.parametrize(
    ("order", "one", "two"), [(1, 4, 4), (2, 10, 13), (3, 25, 37), (4, 55, 100), (5, 115, 265)]
)
def test_program_count(order, one, two):
    """The number of different routers in a fabric is as expected."""
    assert program_count(plan(order, trees=1)) == one
    assert program_count(plan(order, trees=2)) == two


@pytest.mark.parametrize(
    ("options", "trees", "packets"),
    [
        ({}, 2, 1),
        ({"ports": 3}, 1, 1),
        ({"ports": 6, "packets": 5}, 2, 5),
        ({"chunks": 8}, 2, 4),
        ({"chunks": 7, "trees": 1}, 1, 7),
        ({"ports": 3, "trees": 1, "chunks": 2, "packets": 2}, 1, 2),
    ],
)
def test_options_imply_each_other(options, trees, packets):
    """The number of ports implies the number of trees, and the number of chunks that of packets."""
    schedule = plan(2, **options)
    assert (schedule.ports, schedule.chunks) == (3 * trees, trees * packets)
    assert schedule.round_count == 3 + packets - 1


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    order=st.integers(0, 8),
    beta=st.floats(0.5, 100),
    tau=st.floats(0, 10),
    length=st.integers(0, 4000),
    trees=st.sampled_from([1, 2]),
    duplex=st.sampled_from(["full", "half"]),
)
def test_best_packets(order, beta, tau, length, trees, duplex):
    """The best number of packets has the least cost, and never less than the closed optimum."""
    model = {"beta": beta, "tau": tau, "length": length}
    options = Options(trees=trees, duplex=duplex, times=(beta, tau, length))
    best = best_packet_count(order, options)

    def cost(packets):
        return costs.tree_cost(order, trees=trees, packets=packets, duplex=duplex, **model)

    around = range(1, 4 * best + 10)
    assert cost(best) <= min(map(cost, around)) * (1 + 1e-12)
    if duplex == "full" and trees == 2:
        assert cost(best) >= costs.pipelined_optimum(order, **model) * (1 - 1e-12)


def test_best_packets_of_order_6():
    """A message of a hundred start-up times has 56 packets: sqrt(62 * 100 / 2) = 55.7."""
    assert best_packet_count(6, Options(times=(1, 1, 100))) == 56


@pytest.mark.parametrize("beta", [0, -1, math.inf, math.nan])
def test_best_packets_needs_a_start_up_time(beta):
    """A start-up time of 0 or less is refused, because no number of packets would be best."""
    with pytest.raises(InputError, match=r"^Start-up time beta must be finite and more than 0, "):
        best_packet_count(3, Options(times=(beta, 1, 10)))
    with pytest.raises(InputError, match=r"^Length times tau must be finite and not negative, "):
        best_packet_count(3, Options(times=(1, 1, -10)))


MODEL = {"alpha": 7, "delta": 2, "tau": 3, "length": 120}
STORED: dict[str, Any] = {"beta": 5, "tau": 3, "length": 120}


@pytest.mark.parametrize("order", range(6))
def test_claimed_costs_are_those_of_the_schedules(order):
    """The costs of the schedules are those of (8), (9), (12), (13), and of (14) in integers."""
    topology, collective = Arrowhead(order), Collective("broadcast", 0)
    for ports in (3, 6):
        cost = schedule_cost(WORMHOLE_FOREST(topology, collective, Options(ports=ports)))
        assert cost.time(**MODEL) == pytest.approx(costs.forest_cost(order, ports=ports, **MODEL))
    for trees, packets in ((1, 1), (2, 1), (2, 5), (1, 4)):
        options: dict[str, Any] = {"trees": trees, "packets": packets}
        cost = schedule_cost(plan(order, **options))
        assert cost.time(**STORED) == pytest.approx(costs.tree_cost(order, **options, **STORED))


@pytest.mark.parametrize("order", range(7))
def test_bounds_hold(order):
    """The bounds (10) and (15), with the exact diameter, are below every cost."""
    for ports in (3, 6):
        for model in (MODEL, {**MODEL, "length": 6}, {**MODEL, "alpha": 1000}):
            bound = costs.circuit_bound(order, ports=ports, **model)
            assert bound <= costs.forest_cost(order, ports=ports, **model)
    for length in (6, 12, 1000):
        stored: dict[str, Any] = {**STORED, "length": length}
        packets = [p for p in range(1, 40) if length % (2 * p) == 0]
        best = min(costs.tree_cost(order, packets=p, **stored) for p in packets)
        assert costs.store_and_forward_bound(order, **stored) <= best


def test_circuit_bound_counts_rounds():
    """With a start-up time only, 4^n nodes need ceil(log7 4^n) rounds on six ports."""
    start_up = {"alpha": 1, "delta": 0, "tau": 0, "length": 1}
    bounds = [costs.circuit_bound(order, **start_up) for order in range(1, 7)]
    assert bounds == [1, 2, 3, 3, 4, 5]
    assert [costs.circuit_bound(n, ports=3, **start_up) for n in range(1, 7)] == [1, 2, 3, 4, 5, 6]


def test_two_thirds_of_the_side_exceed_the_diameter():
    """Formulas (11) and (16) are no bounds, because two thirds of the side exceed the diameter."""
    assert all(2 / 3 * 2**order > Arrowhead(order).diameter for order in range(9))


@pytest.mark.long
def test_table_of_costs():
    """The script prints claim, bound and plan for each order and protocol."""
    script = runpy.run_path(str(Path(__file__).parents[2] / "sim" / "arrowhead_costs.py"))
    model = script["Model"](alpha=10, beta=10, delta=1, tau=1, length=1000)
    rows = list(script["rows"]([1, 2, 4], model, largest=16))
    assert len(rows) == 3 * 5
    for row in rows:
        assert list(row) == list(script["COLUMNS"])
        assert row["bound"] <= row["claimed"] <= row["planned"] + 1e-9
        assert row["cycles"] is None if row["order"] == 4 else row["rounds"] < row["cycles"]
        if "(14)" not in row["protocol"]:
            assert row["planned"] == pytest.approx(row["claimed"])
        assert f"{row['planned']:.1f}" in script["line"](row.values())


@pytest.mark.parametrize(
    ("order", "times"), [(2, (10, 1, 1000)), (6, (1, 1, 100)), (3, (5, 2, 60))]
)
@pytest.mark.parametrize("trees", [1, 2])
def test_packets_for_given_times(order, times, trees):
    """For given times of the cost model, a plan has the best number of packets."""
    options = Options(trees=trees, times=times)
    schedule = SPANNING_TREE(Arrowhead(order), parse_collective("broadcast"), options)
    assert schedule.chunks == trees * best_packet_count(order, options)
