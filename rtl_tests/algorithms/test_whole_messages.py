"""Scatter and gather of whole messages take the fewest possible steps."""

from math import ceil

import networkx as nx
import numpy as np
import pytest

import torusfabric as tf
from torusfabric.algorithms import Options
from torusfabric.algorithms.network.plan import ANY_NETWORK
from torusfabric.analysis.volume import least_time
from torusfabric.collective import parse_collective
from torusfabric.topology import Graph, parse_topology

#: A graph on which a scatter once took five steps, and the reverse gather three.
UNEVEN = Graph(nx.Graph([(0, 4), (0, 2), (1, 5), (2, 3), (2, 5), (3, 4)]))


def steps_of(topology, kind, root):
    """Return the steps of a checked schedule of whole messages."""
    collective = parse_collective(kind, topology=topology, root=root)
    schedule = ANY_NETWORK(topology, collective, Options(chunks=1))
    tf.check(schedule)
    return schedule.round_count


def bound_of(topology, root):
    """Return the steps that every scatter needs, by cuts and by distances."""
    collective = parse_collective("scatter", topology=topology, root=root)
    return max(ceil(least_time(topology, collective)), int(topology.all_distances[root].max()))


def is_enough(graph, root, steps):
    """Return True if a flow over time shows that a scatter can be done in `steps` steps."""
    timed = nx.DiGraph()
    for step in range(steps):
        for node in graph:
            timed.add_edge((node, step), (node, step + 1))
        for one, two in graph.edges:
            for tail, head in ((one, two), (two, one)):
                timed.add_edge((tail, step), (head, step + 1), capacity=1)
    for node in set(graph) - {root}:
        timed.add_edge((node, steps), "end", capacity=1)
    return nx.maximum_flow_value(timed, (root, 0), "end") == len(graph) - 1


@pytest.mark.parametrize(
    ("topology", "root"),
    [(parse_topology("mesh:3x3"), 4), (parse_topology("mesh:3x4"), 5), (UNEVEN, 0), (UNEVEN, 3)],
)
def test_scatters_and_gathers_meet_the_bound(topology, root):
    """Scatter and gather meet the bound from the middle of a mesh, and on an uneven graph."""
    for kind in ("scatter", "gather"):
        assert steps_of(topology, kind, root) == bound_of(topology, root)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    """On random graphs, one step fewer would be too few, for scatter and gather."""
    random = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(random.integers(3, 9)), 0.5, seed=seed)
    if not nx.is_connected(graph):
        graph = nx.star_graph(len(graph) - 1)
    topology = Graph(graph)
    for root in {0, int(random.integers(len(graph)))}:
        steps = steps_of(topology, "scatter", root)
        assert steps == steps_of(topology, "gather", root)
        assert steps == bound_of(topology, root) or not is_enough(graph, root, steps - 1)


def test_parallel_and_one_way_links():
    """Parallel links carry a block each; a one-way ring carries all blocks in one direction."""
    twice = Graph(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (1, 2), (2, 3)]))
    ring = Graph([(0, 1), (1, 2), (2, 3), (3, 0)])
    for topology, steps in ((twice, 3), (ring, 3)):
        for kind in ("scatter", "gather"):
            assert steps_of(topology, kind, 0) == steps


def test_slow_links():
    """Scatter and gather over a slow link deliver every word in hardware."""
    for kind in ("scatter", "gather"):
        schedule = tf.plan("4x4!0:+0,0:+1=9", kind, algorithm="any-network", chunks=1)
        assert tf.simulate(tf.Fabric(tf.compile(schedule, flits=2), width=8)).passed
