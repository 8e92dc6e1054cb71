"""Networks that are no Cayley graphs: meshes, users' graphs, faults."""

import json

import networkx as nx
import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.topology import Faulty, Graph, Mesh, Torus, parse_topology, topology_from_json


def arcs(topology):
    """All arcs as pairs of nodes."""
    there = np.argwhere(topology.linked).tolist()
    return sorted((node, int(topology.neighbours[node, port])) for node, port in there)


def check_tables(topology):
    """Check that each out-port leads to the opposite in-port, and that no other out-port does."""
    node, port = topology.upstream
    assert len(set(zip(node.ravel().tolist(), port.ravel().tolist(), strict=True))) == node.size
    for tail, out in np.argwhere(topology.linked).tolist():
        head, entry = topology.neighbours[tail, out], topology.opposite[out]
        assert (node[head, entry], port[head, entry]) == (tail, out)
    absent = ~topology.linked
    here = np.arange(topology.nodes)[:, None]
    assert (np.where(absent, topology.neighbours, here) == here).all()


@pytest.mark.parametrize("seed", range(8))
def test_graphs_have_as_many_ports_as_their_degree(seed):
    graph = nx.gnp_random_graph(8, 0.5, seed=seed, directed=True)
    if not nx.is_strongly_connected(graph):
        with pytest.raises(InputError, match=r"^The graph cuts off node"):
            Graph(graph)
        return
    topology = Graph(graph)
    assert arcs(topology) == sorted(graph.edges())
    assert topology.ports == max(max(dict(ways).values()) for ways in
                                 (graph.in_degree(), graph.out_degree()))  # fmt: skip
    assert arcs(topology.backwards) == sorted((b, a) for a, b in graph.edges())
    assert topology.diameter == nx.diameter(graph)
    for each in (topology, topology.backwards):
        check_tables(each)
    assert topology.backwards.backwards is topology


@pytest.mark.parametrize(
    "name",
    ["mesh:4x6", "mesh:5", "8|x8", "3x4|x2", "4x4!4:+1,10", "4x4!0:+0:out", "mesh:3x3!0:+0",
     "cube:3!0:1", "arrowhead:1!0:N", "circulant:9:1,2!3", "8x4~4!0:+0"],
)  # fmt: skip
def test_names_and_entries(name):
    """Name and JSON entry are read as the same network."""
    topology = parse_topology(name)
    assert topology.name == name
    assert topology_from_json(json.loads(json.dumps(topology.to_json()))) == topology
    check_tables(topology)


def test_mesh():
    """A mesh is a grid graph with nodes numbered row by row."""
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted")
    both = sorted([*grid.edges(), *((b, a) for a, b in grid.edges())])
    assert arcs(Mesh([3, 4])) == both
    assert Mesh([3, 4]).distance(0, 11) == 5
    cylinder = Mesh([3, 4], [False, True])
    assert cylinder.name == "3|x4"
    assert cylinder.distance(0, 3) == 1


def test_faults():
    """Links are broken both ways or one way; renumbered nodes keep their names."""
    whole = set(arcs(Torus(4, 4)))
    assert whole - set(arcs(Faulty(Torus(4, 4), ["0:+1"]))) == {(0, 1), (1, 0)}
    assert whole - set(arcs(Faulty(Torus(4, 4), ["0:+1:out"]))) == {(0, 1)}
    faulty = Faulty(Torus(4, 4), [(0, "+1")], [5, 10])
    assert faulty == Faulty(Faulty(Torus(4, 4), ["1:-1"]), broken_nodes=[10, 5])
    assert faulty.nodes == 14
    assert faulty.renumbered == "6 to 9 as 5 to 8, 11 to 15 as 9 to 13"
    assert faulty.node_name(5) == "(1,2)"
    assert (0, 1) not in arcs(faulty)


def test_files(tmp_path):
    """Node-link JSON with or without names of ports, and edge lists, are read as networks."""
    ring = nx.DiGraph()
    for node in range(4):
        ring.add_edge(node, (node + 1) % 4, port="on")
        ring.add_edge((node + 1) % 4, node, port="back")
    path = tmp_path / "ring.json"
    path.write_text(json.dumps(nx.node_link_data(ring, edges="edges")))
    topology = parse_topology(f"graph:{path}")
    assert topology.port_names == ("on", "back")
    assert topology.neighbours[:, 0].tolist() == [1, 2, 3, 0]
    assert topology.name == f"graph:{path}"
    (tmp_path / "edges").write_text("0 1\n1 2  # a comment\n\n2 0\n0 1\n")
    assert arcs(parse_topology(f"graph:{tmp_path / 'edges'}")) == sorted(
        [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (0, 1), (1, 0)]
    )
    broken = parse_topology(f"graph:{path}!0:on=4,1:on")
    assert isinstance(broken, Faulty)
    assert broken.faults == "1:on,0:on=4"
    (tmp_path / "odd!0:on").write_text("0 1\n")
    assert parse_topology(f"graph:{tmp_path / 'odd!0:on'}").nodes == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph(4), "Graph must be of NetworkX, or a list of arcs, not 4"),
        (lambda: Graph([(0, 1)]), "The graph cuts off node"),
        (lambda: Graph([(0, 0)]), "Arc must lead to another node, not from node 0 to itself"),
        (lambda: Graph([(0, 1, "a"), (1, 0)]), "Ports of a graph must be named for all arcs or"),
        (lambda: Graph([(0, 1, "a"), (1, 0, "a"), (0, 1, "a")]),
         "Ports of arcs that leave a node must have different names, not a twice at node 0"),
        (lambda: Graph([(0, 2, "a"), (1, 2, "a"), (2, 0, "a"), (2, 1, "b")]),
         "Ports of arcs that enter a node must have different names, not a twice at node 2"),
        (lambda: Mesh([4, 4], [True, True]), "Mesh must have an axis without wrap, not the torus"),
        (lambda: Mesh(4, 6),  # type: ignore[arg-type]
         "Wraps of a mesh must be true or false for each of its axes, not 6"),
        (lambda: Mesh([4, 1]), "Sides of a torus must be integers of at least 2"),
        (lambda: Faulty(Torus(4), ["0:+1"]), "Port must be "),
        (lambda: Faulty(Torus(4), ["4:+0"]), "Broken link must be NODE:PORT with a node below 4"),
        (lambda: Faulty(Torus(4), [], [4]), "Broken node must be a node from 0 to 3, not 4"),
        (lambda: Faulty(Torus(4)), "No fault of 4 is given; name a broken link or node"),
        (lambda: Faulty(Torus(4), [], range(4)), "Broken nodes must leave at least one node"),
        (lambda: Faulty(Mesh([3]), ["0:-0"]), "Broken link must be one of mesh:3, not 0:-0"),
        (lambda: Faulty(Mesh([4]), [], [1]),
         r"These broken links and nodes cut off node 0 \(0\)"),
        (lambda: parse_topology("graph:/none/such"), "File of a graph /none/such could not be"),
    ],
)  # fmt: skip
def test_refused(make, message):
    with pytest.raises(InputError, match=f"^{message}"):
        make()
