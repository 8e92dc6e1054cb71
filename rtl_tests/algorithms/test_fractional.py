"""Fractional routes, trees, and the bounds that follow from them."""

import itertools
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.algorithms.traffic.routes import round_routes, spread_routes
from torusfabric.analysis.congestion import WeightedArcs, congestion_time
from torusfabric.analysis.fractional import (
    Demand,
    find_fractional_routes,
    least_tree_length,
    shortest_tree,
)
from torusfabric.analysis.irregular import irregular_limit_text, traffic_routes
from torusfabric.analysis.partitions import worst_group_partition
from torusfabric.analysis.volume import least_time
from torusfabric.schedule import Grouped, Rounds

#: Messages of reshards on a chip of Tenstorrent, see the file README.md beside them.
TRACES = Path(__file__).parents[1] / "support" / "traces"


def reached_nodes(arcs, source, route):
    """Return the nodes that a tree reaches, in order; each arc begins at a node reached before."""
    reached = [source]
    for arc in route:
        assert arcs.tail[arc] in reached
        assert arcs.head[arc] not in reached
        reached.append(int(arcs.head[arc]))
    return reached


def least_length(arcs, length, source, receivers):
    """Return the length of the shortest tree, found by trying all sets of arcs."""
    best = sum(length)
    for size in range(1, len(length)):
        for chosen in itertools.combinations(range(len(length)), size):
            total, reached = sum(length[arc] for arc in chosen), {source}
            for _ in chosen:
                reached |= {int(arcs.head[a]) for a in chosen if int(arcs.tail[a]) in reached}
            if total < best and reached.issuperset(receivers):
                best = total
    return best


@pytest.mark.parametrize("seed", few(2, range(8)))
def test_trees_are_the_shortest(seed):
    """Trees to few receivers are the shortest ones; the lower bound is not longer."""
    random = np.random.default_rng(seed)
    arcs = WeightedArcs(tf.parse_topology("mesh:2x3"))
    length = random.integers(1, 9, len(arcs.tail))
    distance, by = arcs.shortest_paths(length)
    source, *receivers = random.permutation(6)[:4].tolist()
    found, route = shortest_tree(arcs, distance, by, source, receivers)
    assert found == length[route].sum() == least_length(arcs, length.tolist(), source, receivers)
    assert set(reached_nodes(arcs, source, route)).issuperset(receivers)
    assert least_tree_length(arcs, length, source, receivers) <= found
    short = arcs.short_tree(distance, by, source, np.array(receivers), 0.0)
    assert set(reached_nodes(arcs, source, short)).issuperset(receivers)
    assert length[short].sum() >= found


@pytest.mark.parametrize("name", ["3x3", "mesh:3x4", "cube:3", "4x4!0:+0"])
def test_bounds_are_those_of_the_whole_linear_program(name):
    """Columns and bound agree with the linear program of all paths."""
    topology, random = tf.parse_topology(name), np.random.default_rng(1)
    lengths = random.integers(0, 5, (topology.nodes, topology.nodes))
    np.fill_diagonal(lengths, 0)
    arcs = WeightedArcs(topology)
    demands = [Demand(a, (b,), int(lengths[a, b])) for a, b in np.argwhere(lengths).tolist()]
    found, exact = find_fractional_routes(arcs, demands), float(congestion_time(topology, lengths))
    assert exact * 0.99 <= float(found.bound) <= exact * 1.000001
    assert exact * 0.999999 <= found.load <= exact * 1.01
    load = np.zeros(len(arcs.tail))
    for demand, routes in zip(demands, found.routes, strict=True):
        assert sum(routes.values()) == pytest.approx(1)
        for route, share in routes.items():
            assert reached_nodes(arcs, demand.source, route)[-1] == demand.receivers[0]
            np.add.at(load, list(route), share * demand.amount)
    assert load.max() == pytest.approx(found.load)


@pytest.mark.parametrize("side", [9, 10, 12])
def test_bounds_of_a_tornado_come_near_the_best(side):
    """Messages k nodes along rings of n nodes load links by k (n - k) / n, whatever their paths."""
    numbers, far = np.arange(side * side).reshape(side, side), (side - 1) // 2
    goals = np.roll(numbers, -far, axis=1)
    ends = [(int(a), int(b)) for a, b in zip(numbers.ravel(), goals.ravel(), strict=True)]
    time = least_time(tf.Torus(side, side), tf.parse_collective("pattern", traffic=ends))
    best = Fraction(far * (side - far), side)
    assert Fraction(995, 1000) * best < time <= best


def test_rounded_routes_keep_their_shares():
    """Each route gets the whole blocks of its share; the others go where arcs are least busy."""
    routes: list[dict[tuple[int, ...], float]] = [{(0, 1): 0.5, (2,): 0.5}, {(2,): 1.0}]
    found = round_routes(np.arange(3), np.array([5, 2]), routes, 0)
    assert [found[0].count(route) for route in routes[0]] == [3, 2]
    assert found[1] == [(2,), (2,)]
    found = round_routes(
        np.arange(3), np.array([5, 2]), [dict(reversed(routes[0].items())), routes[1]], 0
    )
    assert found[0].count((0, 1)) == 3
    parts: list[dict[tuple[int, ...], float]] = [{(0,): 0.29, (1,): 0.71}, {(0,): 1.0}]
    found = round_routes(np.arange(2), np.array([100, 42]), parts, 0)
    assert found[0].count((0,)) == 29  # 0.29 * 100 is less than 29 in floating point


def test_rounded_blocks_move_from_busy_links():
    """Blocks leave the busiest links, whose loads count late blocks more than once."""
    routes: list[dict[tuple[int, ...], float]] = [{(0,): 1.0, (1, 2): 0.0, (3,): 0.0}]
    found = round_routes(np.arange(4), np.array([30]), routes, 0)[0]
    assert [found.count(route) for route in routes[0]] == [10, 10, 10]
    found = round_routes(np.arange(4), np.array([32]), routes, 0, np.array([1.0, 2.0, 2.0]))[0]
    assert [found.count(route) for route in routes[0]] == [16, 8, 8]
    turned: list[dict[tuple[int, ...], float]] = [{(0,): 1.0, (3,): 0.0, (1, 2): 0.0}, {(2,): 1.0}]
    found = round_routes(np.arange(4), np.array([30, 10]), turned, 0)[0]
    assert [found.count(route) for route in turned[0]] == [14, 13, 3]
    found = round_routes(np.array([0, 1, 2, 2]), np.array([30]), routes, 0)[0]
    assert found.count((0,)) == 15  # the arcs 2 and 3 belong to the same link


def test_messages_do_not_all_go_the_longest_way():
    """Around a wheel, the least load needs a path along the rim, which not half of a message takes.

    With half of a message on the path, the last block would come 13 steps later.
    """
    wheel = tf.Graph(nx.wheel_graph(16))
    traffic = [(k, (k + 1) % 16, 1) for k in range(16)]
    schedule = tf.plan(wheel, "pattern", traffic=traffic, chunks=128)
    assert schedule.round_count <= 68
    assert tf.bound(schedule) == 64


def test_many_short_messages_move_in_random_order():
    """If all blocks have routes of their own, their order is random: it takes the fewest steps."""
    group = [*range(60)]
    schedule = tf.plan("10x10", "alltoall", groups=[group], chunks=2, algorithm="any-traffic")
    assert schedule.round_count <= 112  # 114 if the longest routes come first


def test_too_busy_trees_are_changed():
    """Trees that all go the same way are changed until the arcs are evenly busy."""
    arcs = WeightedArcs(tf.Torus(4, 4))
    distance, by = arcs.shortest_paths(np.ones(64, int))
    goals = (2, 8, 10)
    tree = arcs.short_tree(distance, by, 0, np.array(goals), 0.0)
    routes = [[*tree] for _ in range(8)]
    found = spread_routes(arcs, np.zeros(8, int), [goals] * 8, 2.0, 0, routes).best
    assert all(set(reached_nodes(arcs, 0, route)).issuperset(goals) for route in found)
    assert np.bincount(np.concatenate(found)).max() == 2


NETWORKS = {
    "torus": lambda: tf.Torus(4, 4),
    "mesh": lambda: tf.parse_topology("mesh:3x5"),
    "faults": lambda: tf.parse_topology("4x4!0:+0,9"),
    "star": lambda: tf.Graph(nx.star_graph(12)),
    "wheel": lambda: tf.Graph(nx.wheel_graph(14)),
    "small world": lambda: tf.Graph(nx.connected_watts_strogatz_graph(20, 4, 0.2, seed=1)),
    "regular": lambda: tf.Graph(nx.random_regular_graph(3, 16, seed=1)),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("longest", [1, 6])
@pytest.mark.parametrize("receivers", [1, 3])
def test_traffic_comes_near_its_bound(network, longest, receivers):
    """Random messages take at most 1.05 times the bound plus the diameter, and not less."""
    topology, random = NETWORKS[network](), np.random.default_rng(7)
    nodes = [node for node in range(topology.nodes) if topology.linked[node].any()]
    traffic = []
    for node in np.repeat(nodes, 3).tolist():
        goals = random.permutation([other for other in nodes if other != node])[:receivers]
        traffic.append((node, goals.tolist(), int(random.integers(1, longest + 1))))
    schedule = tf.plan(topology, "pattern", traffic=traffic)
    bound = tf.bound(schedule)
    assert bound <= schedule.round_count <= 1.05 * bound + topology.diameter


@pytest.mark.parametrize(
    "kind",
    ["allgather", "alltoall", "reduce-scatter", "scatter", "gather", "broadcast", "allreduce"],
)
def test_groups_come_near_their_bound(kind):
    """Groups of listed nodes take at most 1.05 times the bound plus the diameter."""
    groups = [[0, 3, 9, 10, 15, 20], [1, 2, 8, 14, 21, 30]]
    schedule = tf.plan("6x6", kind, groups=groups)
    bound = tf.bound(schedule)
    assert bound <= schedule.round_count <= 1.05 * bound + schedule.topology.diameter


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "allreduce"])
def test_routes_of_few_chunks_are_repeated(kind):
    """Sums and messages of many chunks take the routes of a part of the chunks again and again."""
    schedule = tf.plan("4x4", kind, groups=[[0, 3, 5, 9, 14]], chunks=256)
    assert isinstance(schedule, Rounds)
    arcs: list[set[tuple[int, int]]] = [set() for _ in range(256)]
    for step in schedule.transfers:
        payload = step.payload
        blocks = payload.wanted if isinstance(payload, Grouped) else step.listed.ids
        for source, port, number in zip(step.source, step.hops[:, 0], blocks, strict=True):
            arcs[number].add((int(source), int(port)))
    period = next(k for k in range(1, 257) if arcs[k:] == arcs[:-k])
    assert 1 < period <= 64
    assert schedule.round_count <= 1.05 * tf.bound(schedule) + schedule.topology.diameter


def test_partitions_of_groups_are_the_worst():
    """The partition found for members of groups is the worst of all partitions of small graphs."""
    for seed in range(8):
        graph = nx.gnp_random_graph(6, 0.5, seed=seed)
        nodes = np.random.default_rng(seed).permutation(6).tolist()
        groups = (tuple(nodes[:3]), tuple(nodes[3:5]))[: 1 + seed % 2]
        if not nx.is_connected(graph):
            continue
        least = max(
            Fraction(sum(len({parts[node] for node in group}) - 1 for group in groups), crossing)
            for parts in itertools.product(range(4), repeat=6)
            if (crossing := sum(parts[a] != parts[b] for a, b in graph.edges))
        )
        found = worst_group_partition(tf.Graph(graph), groups)
        assert found.message_times == least


def test_the_worst_partition_is_named():
    """The limit of an all-reduce in groups is a partition, if its bound is that of no cut."""
    sums = tf.parse_collective("allreduce@{0,1,2,3,36}")
    text = irregular_limit_text(tf.Torus(8, 8), sums)
    assert text == "8 messages over 26 links between 5 parts"
    assert least_time(tf.Torus(8, 8), sums) == Fraction(4, 13)


def test_sums_over_links_that_lead_one_way():
    """If links lead one way, sums go up a tree and down another one, and hardware adds them."""
    ring = tf.Graph([(k, (k + step) % 7) for k in range(7) for step in (1, 3)])
    schedule = tf.plan(ring, "allreduce", groups=[[0, 2, 3], [1, 5, 6]], chunks=4)
    assert tf.check(schedule).rounds == schedule.round_count
    assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=8), width=8)).passed


def test_sums_may_meet_at_a_relay():
    """In a star, the hub adds the messages of all leaves; links carry each message once."""
    star = tf.Graph(nx.star_graph(8))
    schedule = tf.plan(star, "allreduce", groups=[[1, 2, 3, 5, 8]], chunks=16)
    assert schedule.round_count == 17


def test_a_choice_keeps_the_lengths_of_messages():
    """Plans of nearly equal cycles are compared at the lengths that are listed, and no others."""
    random = np.random.default_rng(3)
    traffic = []
    for node in range(64):
        others = random.permutation([other for other in range(64) if other != node])
        goals = others[: random.integers(2, 6)].tolist()
        traffic.append((node, goals, int(random.integers(1, 9))))
    assert tf.plan("8x8", "pattern", traffic=traffic).collective.longest_flits == 8


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_bounds_are_never_larger_than_plans(seed):
    """Whatever the lengths and the number of chunks, no plan takes fewer steps than the bound."""
    random = np.random.default_rng(seed)
    topology = tf.parse_topology(random.choice(["3x3", "mesh:2x4", "cube:3", "circulant:7:1,2"]))
    traffic = []
    for node in range(topology.nodes):
        others = [other for other in range(topology.nodes) if other != node]
        goals = random.permutation(others)[: random.integers(1, 5)].tolist()
        traffic.append((node, goals, int(random.integers(1, 9))))
    chunks = int(random.integers(1, 9))
    schedule = tf.plan(topology, "pattern", traffic=traffic, chunks=chunks)
    assert tf.bound(schedule) <= schedule.round_count


def test_bounds_count_whole_blocks():
    """Two messages of a flit fill two blocks; their bound counts the blocks."""
    ring = tf.Graph([(0, 1), (1, 2), (2, 0)])
    schedule = tf.plan(ring, "pattern", traffic=[(0, 1, 1), (0, 1, 5)], chunks=1)
    assert schedule.round_count == tf.bound(schedule) == 2
    assert least_time(ring, schedule.collective) * 5 == 6


@pytest.mark.parametrize(
    ("name", "traffic", "text"),
    [
        ("mesh:2x3", [(0, 1), (0, 2), (3, 5)], "3 messages over 2 links out of nodes 0 (0,0), 3"),
        ("8", [(k, 0) for k in range(1, 8)], "7 messages over 2 links into node 0"),
        ("8", [(1, 0, 4), (2, 0, 9)], "13 flits over 2 links into node 0"),
        ("8", [(0, k) for k in range(1, 8)], "7 messages over 2 links out of node 0"),
        ("5x5", [(k, (k + 7) % 25) for k in range(25)], "25 links that are full"),
    ],
)
def test_the_limit_is_named(name, traffic, text):
    """The cut, or the links, that make the bound are named in the report."""
    topology = tf.parse_topology(name)
    collective = tf.Collective("pattern", traffic=tf.Traffic(traffic))
    assert text in irregular_limit_text(topology, collective)


def test_plans_are_repeatable():
    """The same seed gives the same plan, another one may give another."""
    traffic = [(k, (k * 5 + 2) % 16, 1) for k in range(16) if k != (k * 5 + 2) % 16]
    plans = []
    for seed in (1, 1, 2):
        traffic_routes.cache_clear()
        schedule = tf.plan("4x4", "pattern", traffic=traffic, chunks=6, seed=seed)
        assert isinstance(schedule, Rounds)
        plans.append([step.listed.ids.tolist() for step in schedule.transfers])
    assert plans[0] == plans[1]


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.csv")), ids=lambda path: path.stem)
def test_traces_of_a_chip_come_near_their_bound(path):
    """Reshards on a Wormhole chip take at most 1.05 times the bound plus the diameter."""
    schedule = tf.plan("10x12", "pattern", traffic=path, check=False)
    bound = tf.bound(schedule)
    assert bound <= schedule.round_count <= 1.05 * bound + schedule.topology.diameter
