"""Rates of links as part of a network: notations, files, parallel links and slow links."""

import json
import pickle
from fractions import Fraction

import networkx as nx
import pytest

import torusfabric as tf
from torusfabric.topology import (
    Faulty,
    ParallelLinks,
    Rated,
    at_equal_rates,
    topology_from_json,
    with_rates,
)


@pytest.mark.parametrize(
    ("rates", "text", "ports", "spacing"),
    [
        (2, "2", 8, 1),
        ("0:2", "0:2", 6, 1),
        ({0: 2, "1": "2/4"}, "0:2,1:1/2", 6, 2),
        (0.25, "1/4", 4, 4),
        (Fraction(3, 2), "3/2", 12, 2),
        ("1/2,1:2", "1/2,1:2", 6, 2),
        ({"0:+0": "1/3"}, "0:+0=1/3", 4, 3),
    ],
)
def test_rates_are_given_in_many_ways_and_kept_in_names_and_files(rates, text, ports, spacing):
    network = with_rates("4x4", rates)
    assert network.name == f"4x4%{text}"
    assert (network.ports, network.spacing_multiple) == (ports, spacing)
    assert tf.parse_topology(network.name) == network
    assert topology_from_json(json.loads(json.dumps(network.to_entry()))) == network
    assert pickle.loads(pickle.dumps(network)) == network
    assert network.nodes == 16
    assert network.diameter == 4


def test_a_rate_of_one_changes_nothing():
    assert with_rates("4x4", 1) == tf.Torus(4, 4)


def test_a_link_is_stronger_than_its_axis_and_that_stronger_than_all():
    network = with_rates("4x4", "0:+1=3,1:1/2,1/4")
    spacing, linked = network.spacing_of_arc, network.linked
    # Ports: +0 -0 +1 +1.2 +1.3 -1 -1.2 -1.3
    assert spacing[0].tolist() == [4, 4, 1, 1, 1, 2, 1, 1]
    assert spacing[2].tolist() == [4, 4, 2, 1, 1, 2, 1, 1]
    assert linked[0].tolist() == [True] * 6 + [False] * 2
    assert linked[2].tolist() == [True, True, True, False, False, True, False, False]
    # The link leads back from node 1, at the opposite port.
    assert linked[1].tolist() == [True, True, True, False, False, True, True, True]
    assert network.neighbours[1][network.port("-1.3")] == 0


def test_whole_rates_of_a_cayley_graph_leave_all_nodes_alike():
    """The second link of a port has the suffix 2, and leads to the same in-port number back."""
    network = with_rates("4x4", "0:2")
    assert isinstance(network, ParallelLinks)
    assert network.port_names == ("+0", "+0.2", "-0", "-0.2", "+1", "-1")
    assert network.opposite.tolist() == [2, 3, 0, 1, 5, 4]
    assert network.neighbours[0].tolist() == [4, 4, 12, 12, 1, 3]
    assert network.has_parallel_links
    assert isinstance(with_rates("mesh:3x3", 2), Rated)
    assert isinstance(with_rates("4x4", "0:+0=2"), Rated)


@pytest.mark.parametrize("name", ["mesh:3x4", "cube:3", "circulant:8:1,3", "arrowhead:2", "4x4~2"])
def test_any_network_has_rates(name):
    whole, network = tf.parse_topology(name), with_rates(name, "3/2")
    assert network.ports == 3 * whole.ports
    assert network.linked.sum() == 3 * whole.linked.sum()
    assert (network.spacing_of_arc[network.linked] == 2).all()


def test_a_slow_link_has_the_latency_of_a_flit_in_parts():
    network = with_rates("4x4", "1:1/3").on_links("0:2")
    assert network.cycles_of_arc[0].tolist() == [2, 2, 3, 3]
    assert network.on_links(5).cycles_of_arc[0].tolist() == [5, 5, 5, 5]
    assert network.one_latency is None
    assert network.longest_link == 3


def test_faults_stand_behind_rates():
    faulty = tf.parse_topology("4x4%0:2,1:1/2!0:+0.2,9")
    assert isinstance(faulty, Faulty)
    assert faulty.linked[0].tolist() == [True, False, True, True, True, True]
    assert faulty.spacing_of_arc[0].tolist() == [1, 1, 1, 1, 2, 2]
    assert faulty.cycles_of_arc[0].tolist() == [1, 1, 1, 1, 2, 2]
    longer = tf.parse_topology("4x4%1:1/3!0:+1=2,0:-1=5")
    assert longer.cycles_of_arc[0].tolist() == [1, 1, 3, 5]
    assert with_rates("4x4!9", "1:1/2") == tf.parse_topology("4x4%1:1/2!9")
    entry = faulty.on_links("2").to_entry()
    assert topology_from_json(entry) == faulty.on_links(2)


def test_capacities_at_equal_rates():
    """Four links in place of one of rate 1, two in place of one of 1/2, one in place of 1/4."""
    network = at_equal_rates(with_rates("mesh:2x2", "0:1/4,1:1/2,0:+1=1"))
    counts: dict[tuple[int, int], int] = {}
    for node, port in zip(*network.linked.nonzero(), strict=True):
        ends = int(node), int(network.neighbours[node, port])
        counts[ends] = counts.get(ends, 0) + 1
    assert counts == {
        (0, 1): 4, (1, 0): 4, (2, 3): 2, (3, 2): 2, (0, 2): 1, (2, 0): 1, (1, 3): 1, (3, 1): 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("topology", "rates", "message"),
    [
        ("4x4", "0", "^Rate must be flits a cycle, from 1/16 to 16, such as 2, 1/2 or 3/2, not"),
        ("4x4", "17", "^Rate must be flits a cycle"),
        ("4x4", "1/17", "^Rate must be flits a cycle"),
        ("4x4", "1/0", "^Rate must be flits a cycle"),
        ("4x4", float("nan"), "^Rate must be flits a cycle"),
        ("4x4", True, "^Rate must be flits a cycle"),
        ("4x4", {}, "^Rates must name a rate"),
        ("4x4", "2:1/2", "^Rate must be of some of the axes 0, 1 of 4x4, or of a link"),
        ("cube:3", "0:2", "^Rate must be of links of cube:3, or of a link"),
        ("4x4", "0:2,0:3", "^Rate must be given once for each axis or link, not for 0 twice"),
        ("4x4", "2,3", "^Rate must be given once for each axis or link, not for twice"),
        ("4x4", "0:+7=2", "^Port must be one of"),
        ("4x4", "99:+0=2", "^Link with a rate must be NODE:PORT"),
        ("4x4%2", "2", "^4x4%2 has rates already"),
        ("4x4", "capacity/50", "^Rate must be flits a cycle"),
        ("mesh:200x200", "2", "^Network with rates must have at most"),
    ],
)
def test_wrong_rates_are_refused(topology, rates, message):
    with pytest.raises(tf.InputError, match=message):
        with_rates(topology, rates)


def capacities(*values):
    """Return a ring with an edge of each capacity."""
    ring = nx.cycle_graph(len(values))
    for (a, b), value in zip(ring.edges, values, strict=True):
        ring.edges[a, b]["capacity"] = value
    return ring


def links(network):
    """Return (links, spacing) for each pair of linked nodes."""
    found: dict[tuple[int, int], list[int]] = {}
    for node, port in zip(*network.linked.nonzero(), strict=True):
        ends = int(node), int(network.neighbours[node, port])
        found.setdefault(ends, []).append(int(network.spacing_of_arc[node, port]))
    return found


def test_an_attribute_of_a_graph_and_its_unit_give_rates():
    network = tf.Graph(capacities(100, 50, 25), rate="capacity/50")
    assert links(network) == {
        (0, 1): [1, 1], (1, 0): [1, 1], (0, 2): [1], (2, 0): [1], (1, 2): [2], (2, 1): [2],
    }  # fmt: skip
    assert topology_from_json(json.loads(json.dumps(network.to_entry()))) == network
    # The attribute itself may be the rate.
    assert links(tf.Graph(capacities("3/2", 1, 1.0), rate="capacity"))[0, 1] == [2, 2, 2]


def test_named_ports_of_an_edge_get_suffixes():
    graph = nx.DiGraph()
    graph.add_edge(0, 1, port="a", speed=2)
    graph.add_edge(1, 0, port="b", speed=1)
    assert tf.Graph(graph, rate="speed").port_names == ("a", "a.2", "b")


def test_a_file_with_capacities_needs_their_unit(tmp_path):
    path = tmp_path / "net.json"
    path.write_text(json.dumps(nx.node_link_data(capacities(100, 50, 25), edges="edges")))
    with pytest.raises(tf.InputError, match=r"must be 1 or left out, not 100; for a capacity, .*"
                       r"as in --rate capacity/50"):  # fmt: skip
        tf.parse_topology(f"graph:{path}")
    network = tf.parse_topology(f"graph:{path}%capacity/50")
    assert links(network)[0, 1] == [1, 1]
    assert with_rates(f"graph:{path}", "capacity/50") == network
    broken = with_rates(f"graph:{path}!0:0", "capacity/50")
    assert broken.linked.sum() == network.linked.sum() - 2
    plan = tf.plan(f"graph:{path}", "allgather", rate="capacity/50")
    plan.save(tmp_path / "plan.json")
    path.unlink()  # the schedule file has all rates
    assert tf.check(tmp_path / "plan.json").rounds == plan.steps


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("capacity/9", "^Attribute capacity of the edge from 0 to 1, divided by 9, must be flits"),
        ("capacity/0", "^Rate of a graph must be an attribute of its edges and the value"),
        ("1/2", "^Rate of a graph must be an attribute of its edges and the value"),
        ("speed/50", "^Attribute 'capacity' of the edge from 0 to 1 must be 1 or left out"),
    ],
)
def test_wrong_units_are_refused(rate, message):
    with pytest.raises(tf.InputError, match=message):
        tf.Graph(capacities(100, 50, 25), rate=rate)


def test_an_edge_without_its_capacity_is_refused():
    graph = capacities(100, 50, 25)
    del graph.edges[1, 2]["capacity"]
    with pytest.raises(
        tf.InputError, match=r"^Attribute capacity of the edge from 1 to 2 must be "
    ):
        tf.Graph(graph, rate="capacity/50")
    with pytest.raises(tf.InputError, match=r"^Rate capacity needs a graph whose edges have"):
        tf.Graph([(0, 1), (1, 0)], rate="capacity/50")


def test_each_way_of_a_link_may_have_its_own_rate():
    graph = nx.DiGraph()
    graph.add_edge(0, 1, speed=1)
    graph.add_edge(1, 0, speed="1/3")
    network = tf.Graph(graph, rate="speed")
    assert links(network) == {(0, 1): [1], (1, 0): [3]}
    assert links(network.backwards) == {(0, 1): [3], (1, 0): [1]}
    assert links(at_equal_rates(network)) == {(0, 1): [1, 1, 1], (1, 0): [1]}
    reduce = tf.plan(network, "reduce", root=0)
    assert tf.check(reduce).rounds >= 3 * reduce.chunks
