"""Nodes that only relay: in names, options, schedule files and graph files of each format."""

import json

import networkx as nx
import numpy as np
import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.planning import make_selection
from torusfabric.sweep.compare import HardwareSettings
from torusfabric.sweep.fault_costs import fault_costs
from torusfabric.topology import (
    Faulty,
    Graph,
    Torus,
    parse_topology,
    shared_network,
    topology_from_json,
    with_relays,
    without_faults,
)


def star(switch="hub"):
    """Return a NetworkX graph: three hosts around a switch, which comes second."""
    graph = nx.Graph()
    graph.add_node("a")
    graph.add_node(switch, relay=True)
    graph.add_edges_from((host, switch) for host in "abc")
    return graph


@pytest.mark.parametrize(
    "text", ["4x4!3=relay,4=relay", "4x4!(0,3)=relay,4=relay", "4x4!3-4=relay"]
)
def test_a_name_marks_relays(text):
    """The name that reports print, and the entry of a schedule file, are read as the network."""
    topology = parse_topology(text)
    assert topology.relays == (3, 4)
    assert topology.name == "4x4!3=relay,4=relay"
    assert parse_topology(topology.name) == topology == topology_from_json(topology.to_entry())
    assert (
        topology == with_relays(Torus(4, 4), [3, 4]) == Faulty(Torus(4, 4), relays=["4", "(0,3)"])
    )
    assert topology != Torus(4, 4)
    assert not topology.dimensions
    assert (topology.neighbours == Torus(4, 4).neighbours).all()


def test_ranges_are_written_and_read():
    topology = with_relays(Torus(4, 4), ["4-7", 9])
    assert topology.name == "4x4!4-7=relay,9=relay"
    assert parse_topology(topology.name).relays == (4, 5, 6, 7, 9)


def test_relays_keep_their_nodes_when_others_break():
    """Relays are written with the numbers of the whole network, and renumbered with all nodes."""
    topology = with_relays(Faulty(Torus(4, 4), broken_nodes=[1]), [3, 9])
    assert (topology.relays, topology.name) == ((2, 8), "4x4!1,3=relay,9=relay")
    assert [topology.node_name(node) for node in topology.relays] == ["(0,3)", "(2,1)"]
    broken = Faulty(topology, broken_nodes=[9])
    assert (broken.relays, broken.name) == ((2,), "4x4!1,9,3=relay")
    assert without_faults(Faulty(Torus(4, 4), ["0:+0"], relays=[5])).name == "4x4!5=relay"
    assert Faulty(Graph(star()), broken_nodes=["a"]).relays == (0,)
    assert Graph(star()).backwards.relays == (1,)


def test_modes_share_their_relays():
    first, second = (Faulty(Torus(4, 4), [link], relays=[5]) for link in ("0:+0", "1:+0"))
    assert shared_network([first, second]) == with_relays(Torus(4, 4), [5])
    with pytest.raises(InputError, match="Topology must be the same for all collectives"):
        shared_network([first, Faulty(Torus(4, 4), relays=[6])])


def test_a_graph_names_its_relays():
    """An argument, an attribute of NetworkX and a schedule file mark the same node."""
    arcs = [(0, 1), (1, 0), (1, 2), (2, 1), (1, 3), (3, 1)]
    topology = Graph(arcs, relays=1)
    assert topology.relays == (1,)
    assert topology_from_json(topology.to_entry()) == topology
    assert topology != Graph(arcs)
    marked = Graph(star())
    assert marked.relays == Graph(star(), relays=["hub"]).relays == (1,)
    assert with_relays(marked, ["hub"]) is marked
    assert with_relays(marked, ["a"]).relays == (0, 1)


@pytest.mark.parametrize(
    "write", ["node_link", nx.write_graphml, nx.write_graphml_xml, nx.write_gml]
)
def test_graph_files_mark_relays(tmp_path, caplog, write):
    """Each format with attributes of nodes keeps them; they are no attribute that is not used."""
    path = tmp_path / "star"
    if write == "node_link":
        path.write_text(json.dumps(nx.node_link_data(star(), edges="edges")))
    else:
        write(star(), path)
    topology = parse_topology(f"graph:{path}")
    assert (topology.relays, topology.node_name(1)) == ((1,), "(hub)")
    assert "not used" not in caplog.text


@pytest.mark.parametrize(
    ("value", "relays"), [(True, (1,)), ("true", (1,)), (1, (1,)), ("False", ()), (0, ())]
)
def test_values_of_the_attribute(value, relays):
    graph = star()
    graph.nodes["hub"]["relay"] = value
    assert Graph(graph).relays == relays


def ringed():
    """Return a ring of four nodes in which node 3 relays."""
    return with_relays(Torus(4), [3])


ANYNET = """
router 0 node 0 2 node 1
router 1 router 2 3 node 2 node 3
router 2 router 0
router 3 node 4 router 2
"""


def test_routers_of_booksim_with_several_nodes_or_none_relay(tmp_path):
    """A router with one node is one node with it; other routers come after all nodes."""
    path = tmp_path / "anynet"
    path.write_text(ANYNET)
    topology = parse_topology(f"graph:{path}")
    names = [topology.node_name(node)[1:-1] for node in range(topology.nodes)]
    assert names == ["0", "1", "2", "3", "router3", "router0", "router1", "router2"]
    assert topology.relays == (5, 6, 7)
    cycles = {
        (names[node], names[topology.neighbours[node, port]]): topology.cycles_of_arc[node, port]
        for node, port in np.argwhere(topology.linked).tolist()
    }
    links = "0 router0 2, 1 router0 1, 2 router1 1, 3 router1 1, router1 router2 3, "
    links += "router0 router2 1, router3 router2 1"
    one_way = {(a, b): int(each) for a, b, each in map(str.split, links.split(","))}
    assert cycles == one_way | {(b, a): each for (a, b), each in one_way.items()}
    assert tf.plan(topology, "allgather").collective.members == ((0, 1, 2, 3, 4),)


def test_a_collective_runs_among_all_other_nodes():
    """A root is a node of the network; the schedule names its position in the group."""
    topology = with_relays(Torus(2, 3), [1, 4])
    assert tf.parse_collective("allgather", topology=topology).members == ((0, 2, 3, 5),)
    for root in (3, "3", "(1,0)"):
        found = tf.parse_collective("broadcast", root=root, topology=topology)
        assert found.members[0].index(3) == found.root
    schedule = tf.plan("2x3", "broadcast", relays="1,4", root=5)
    assert (schedule.topology, schedule.collective.root) == (topology, 3)
    counts = tf.plan("2x3", "alltoall", relays=[1, 4], counts=np.eye(4, dtype=int)[::-1])
    assert counts.collective.lengths[0] == (0, 0, 0, 1)


def test_options_and_files_keep_relays(tmp_path, capsys):
    path = tmp_path / "plan.json"
    assert (
        main(["plan", "4x4", "allgather", "--relay", "3,(1,0)", "--relay", "9", "-o", str(path)])
        == 0
    )
    assert tf.load(path).topology.relays == (3, 4, 9)
    assert main(["check", str(path)]) == 0
    assert "4x4!3=relay,4=relay,9=relay" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: with_relays(Torus(4, 4), [16]), "Relay must be a node from 0 to 15"),
        (lambda: with_relays(Torus(4, 4), ["0-14"]), "Relays must leave at least two nodes"),
        (lambda: with_relays(Torus(4, 4), ["5-3"]), "Range of relays must ascend, not 5-3"),
        (lambda: Graph(star(), relays=["x"]), "Relay must be a node from 0 to 3 or a name"),
        (lambda: tf.plan("4x4", "broadcast", relays=3, root=3), "Root must be a node that sends"),
        (lambda: tf.plan("4x4", "allgather@{0,3}", relays=3), "Groups must leave out the relay 3"),
        (lambda: tf.plan("4x4", "allgather@0", relays=3), "4x4!3=relay has no axes"),
        (
            lambda: tf.plan("4x4", "pattern", relays=3, traffic=[(0, 3)]),
            "Traffic must leave out no",
        ),
        (
            lambda: tf.plan("4x4", "pattern", relays=0, traffic=[(0, 3)]),
            "Traffic must leave out no",
        ),
        (
            lambda: tf.parse_collective("pattern", traffic=[(0, 3)]).targets(ringed()),
            "Traffic must leave out node 3",
        ),
        (
            lambda: tf.Collective("allgather").groups(ringed()),
            "must list the node",
        ),
        (lambda: tf.plan("4x4", "allgather", relays=3, algorithm="matching"), "matching needs"),
    ],
)
def test_relays_are_no_ends_of_messages(act, message):
    with pytest.raises(InputError, match=message):
        act()


def test_the_cost_of_faults_keeps_relays():
    """Networks with fewer faults have the same relays; relays alone are no fault."""
    hardware = HardwareSettings(flits=2)
    chosen = make_selection("3x3!1,0:+0,5=relay", "broadcast", root=5)
    found = fault_costs(chosen, hardware)
    assert [one["faults"] for one in found] == [
        "5=relay",
        "0:+0,5=relay",
        "1,5=relay",
        "0:+0,1,5=relay",
    ]
    assert not fault_costs(make_selection("3x3!5=relay", "broadcast"), hardware)


def test_a_wrong_value_of_the_attribute_is_refused():
    graph = star()
    graph.nodes["hub"]["relay"] = "maybe"
    with pytest.raises(InputError, match="Node hub must have relay true or false, not 'maybe'"):
        Graph(graph)
