"""Files of graphs are read as the networks that they describe, or refused with the reason."""

import json
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.topology import Graph, parse_topology, topology_from_json

TRIANGLE = [(0, 1), (1, 2), (2, 0)]
BOTH_WAYS = sorted([*TRIANGLE, *((b, a) for a, b in TRIANGLE)])


def arcs(topology):
    """All arcs as pairs of nodes."""
    there = np.argwhere(topology.linked).tolist()
    return sorted((node, int(topology.neighbours[node, port])) for node, port in there)


@pytest.fixture
def read(tmp_path):
    """A function that reads a text, or an object as JSON, as a file of a graph."""

    def read_file(content):
        path = tmp_path / "graph"
        path.write_bytes(
            content if isinstance(content, bytes)
            else (content if isinstance(content, str) else json.dumps(content)).encode()
        )  # fmt: skip
        return parse_topology(f"graph:{path}")

    return read_file


def node_link(edges, *, nodes=3, key="edges", **rest):
    """Node-link JSON of some edges."""
    named = [{"source": tail, "target": head} for tail, head in edges]
    return {"nodes": [{"id": node} for node in range(nodes)], key: named} | rest


@pytest.mark.parametrize(
    "content",
    [
        "0 1\n1 2\n2 0\n",
        "\ufeff0 1\r\n1 2\r\n2 0\r\n",
        "# a comment\n\n 0\t1 # of a link\n1 2\n2 0",
        "undirected\n0 1\n1 2\n2 0\n",
        "directed\n0 1\n1 2\n2 0\n1 0\n2 1\n0 2\n",
        "0 1 {}\n1 2 {'weight': 1, 'colour': '#fff'}\n2 0 {} # of NetworkX\n",
        node_link(TRIANGLE),
        node_link(TRIANGLE, key="links"),
        node_link(TRIANGLE, multigraph=False, directed=False, graph={"name": "ring"}),
        node_link(BOTH_WAYS, directed=True),
        "\ufeff" + json.dumps(node_link(TRIANGLE)),
    ],
)
def test_a_triangle_in_any_form_is_the_same_network(read, content):
    topology = read(content)
    assert arcs(topology) == BOTH_WAYS
    assert topology_from_json(json.loads(json.dumps(topology.to_json()))) == topology


@pytest.mark.parametrize(
    "content",
    [
        "0 1\n1 2\n2 0\n0 1\n",
        "undirected\n0 1\n1 2\n2 0\n1 0\n",
        node_link([*TRIANGLE, (0, 1)]),
        node_link([*TRIANGLE, (1, 0)], multigraph=True),
    ],
)
def test_parallel_links_are_said_to_be_such(read, content):
    assert arcs(read(content)) == sorted([*BOTH_WAYS, (0, 1), (1, 0)])


def test_one_way_links(read):
    for content in ("directed\n0 1\n1 2\n2 0\n", node_link(TRIANGLE, directed=True)):
        assert arcs(read(content)) == sorted(TRIANGLE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "0 1\n1 0 2.5\n",
            "line 2 must be two nodes, not '1 0 2.5' (in an adjacency list each node",
        ),
        ("0 1\n1 ٢\n", "line 2 must name a node by a number, as line 1 does, not '٢'"),
        (
            "0,1\n",
            "line 1 must be two nodes, not '0,1' (separate columns by blanks, not by commas)",
        ),
        ("0 -1\n", "line 1 must be two nodes, not '0 -1'"),
        ("0 1\ndirected\n", "line 2 must be two nodes, not 'directed'"),
        ("0 1\n1 2\n2 0\n1 0\n", "line 4 must not join the nodes of line 1 again (begin the file"),
        ("0 99999\n", "line 1 must be of nodes from 0 to 4095, not '0 99999'"),
        ("0 1 {'rate': 2}\n", "line 1: Attribute 'rate' of the edge from 0 to 1 must be 1 or left"),
        ("0 1 {x}\n", "line 1 must have attributes such as {'port': 'a'}, not '{x}'"),
        ("0 1 {1}\n", "line 1 must have attributes such as {'port': 'a'}, not '{1}'"),
        (node_link(BOTH_WAYS), "edges[2] must not join the nodes of edges[0] again"),
        (node_link([*TRIANGLE, (0, 1)], multigraph=False), "edges[3] must not join the nodes of"),
        (node_link([*TRIANGLE, (0, 1)], multigraph=False, directed=True), "edges[3] must not join"),
        (node_link(TRIANGLE, directed="false"), 'directed must be true or false, not "false"'),
        (node_link(TRIANGLE, multigraph=0), "multigraph must be true or false, not 0"),
        (node_link(TRIANGLE, links=[]), "it must have the keys nodes and either edges or links"),
        ({"nodes": []}, "it must have the keys nodes and either edges or links, not nodes"),
        ({"edges": []}, "it must have the keys nodes and either edges or links, not edges"),
        ({"nodes": 3, "edges": []}, "nodes must be a list, not 3"),
        (
            {
                "nodes": [{"id": 0}, {"id": 1}],
                "multigraph": True,
                "edges": [
                    {"source": 0, "target": 1, "key": 0},
                    {"source": 1, "target": 0, "key": 0},
                ],
            },
            "edges[1].key must differ from those of other edges between its nodes, not 0",
        ),
        (node_link(TRIANGLE, weights=[1, 2, 3]), "it must have no keys but directed, multigraph,"),
        ('{"nodes": [], "edges": [], "edges": []}', 'an object has the key "edges" twi'),
        ('{"nodes": [{"id": NaN}], "edges": []}', "NaN is no number"),
        ('{"nodes": [{"id": "\\ud800"}], "edges": []}', "half of a surrogate pair stands alone"),
        ({"nodes": [{"id": 0}, {"id": 0}], "edges": []}, "nodes must have different ids, not 0 tw"),
        ({"nodes": [{"id": 1}, {"id": "1"}], "edges": []}, "Names of nodes must be different, not"),
        ({"nodes": [{"id": 1}, {"id": 1.0}], "edges": []}, "nodes must have different ids, not 1"),
        ({"nodes": [{"id": True}], "edges": []}, "nodes[0].id must be a text, a number or a list"),
        ({"nodes": [{"id": None}], "edges": []}, "nodes[0].id must be a text, a number or a list"),
        ({"nodes": [{"id": []}], "edges": []}, "nodes[0].id must be a text, a number or a list"),
        ({"nodes": [{}], "edges": []}, "nodes[0] must be an object with id, not {}"),
        ({"nodes": [0], "edges": []}, "nodes[0] must be an object with id, not 0"),
        (node_link([(0, 7)]), "edges[0].target must be the id of one of the nodes, not 7"),
        (node_link([(0, "1")]), "edges[0].target must be the id of one of the nodes, not '1'"),
        ({"nodes": [{"id": 0}], "edges": [{"source": 0}]}, "edges[0] must be an object with tar"),
        ({"nodes": [{"id": k} for k in range(4097)], "links": []}, "nodes must be at most 4096"),
        (node_link([(0, 1)] * 65537, nodes=2), "edges must be at most 65536, not 65537"),
        ('{"nodes": [{"id": ' + "[" * 5000 + "1" + "]" * 5000 + '}], "edges": []}', ""),
        (b"\xff\xfe0\x00 \x001\x00", ""),
    ],
)
def test_refused(read, content, message):
    with pytest.raises(InputError) as found:
        read(content)
    text = str(found.value)
    assert text.startswith("File of a graph ")
    assert message in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("capacity", 2), ("Bandwidth", "10G"), ("LinkSpeed", "10"), ("capacity", 0),
     ("capacity", True), ("gbps", 100), ("rate", np.float64(2)), ("delay", "2"), ("latency", 4)],
)  # fmt: skip
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_a_quantity_of_an_edge_is_refused_by_name(read, kind, name, value):
    graph = kind(TRIANGLE)
    tail, head, data = list(graph.edges(data=True))[1]
    data[name] = value
    message = f"Attribute {name!r} of the edge from {tail} to {head} must be 1 or left out, not "
    with pytest.raises(InputError, match=f"^{message}"):
        Graph(graph)
    if isinstance(name, str) and not isinstance(value, np.generic):
        with pytest.raises(InputError, match=message):
            read(_node_link_data(graph))


def test_other_attributes_say_nothing_of_a_link():
    graph = nx.Graph(TRIANGLE)
    graph.edges[0, 1].update(weight=1, capacity=1.0, label="10", colour="red", key=3, id=9)
    graph.edges[1, 2].update(weight=None, up=False, bandwidth="1", place=np.zeros(2), hops=[1])
    assert Graph(graph) == Graph(nx.Graph(TRIANGLE))


def test_ports_of_attributes():
    graph = nx.MultiDiGraph([(0, 1, {"port": 7}), (1, 0, {"port": np.int64(7)})])
    assert Graph(graph).port_names == ("7",)
    graph.edges[0, 1, 0]["back"] = "a"
    with pytest.raises(InputError, match=r"^Attribute back of the edge from 0 to 1 must be left"):
        Graph(graph)


def _node_link_data(graph, key="edges"):
    """Return a graph as any version of NetworkX writes it."""
    data = {"directed": graph.is_directed(), "multigraph": graph.is_multigraph(), "graph": {}}
    nodes = [{"id": node, **rest} for node, rest in graph.nodes(data=True)]
    edges = [{"source": a, "target": b, **rest} for a, b, rest in graph.edges(data=True)]
    return data | {"nodes": nodes, key: edges}


@pytest.mark.parametrize("key", ["edges", "links"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_files_of_networkx_are_read_as_their_graph(read, tmp_path, kind, seed, key):
    drawn = nx.gnp_random_graph(6, 0.6, seed=seed, directed=kind().is_directed())
    graph = kind(drawn.edges())
    graph.add_edges_from(graph.reverse().edges() if graph.is_directed() else [])
    expected = Graph(graph)
    assert read(_node_link_data(graph, key)) == expected
    if key == "edges":
        assert read(nx.node_link_data(graph, edges="edges")) == expected
        nx.write_edgelist(nx.convert_node_labels_to_integers(graph), tmp_path / "edges")
        head = "directed\n" if graph.is_directed() else ""
        assert arcs(read(head + (tmp_path / "edges").read_text())) == arcs(expected)


def test_nodes_of_a_grid_keep_their_names(read):
    topology = read(_node_link_data(nx.grid_2d_graph(2, 3)))
    assert topology.node_name(4) == "((1, 1))"
    assert topology == Graph(nx.grid_2d_graph(2, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Graph(nx.DiGraph([("a\ud800", "b"), ("b", "a\ud800")])),
        lambda: Graph([(0, 1, "\udc00"), (1, 0, "\udc00")]),
        lambda: topology_from_json({"kind": "graph", "nodes": ["\ud800", "b"],
                                    "arcs": [[0, 1, "a"], [1, 0, "a"]]}),
    ],
)  # fmt: skip
def test_no_name_is_taken_that_a_file_cannot_hold(make):
    with pytest.raises(InputError, match="must be text without halves of surrogate pairs, not "):
        make()


TWO = {"kind": "graph", "nodes": 2, "arcs": [[0, 1, "a"], [1, 0, "a"]]}


@pytest.mark.parametrize(
    "changed",
    [
        {"nodes": True}, {"nodes": 10**12}, {"nodes": ["a", "a"]}, {"nodes": [1, 2]},
        {"weights": [1, 2]}, {"nodes": 2.0}, {"arcs": [[0, True, "a"], [1, 0, "a"]]},
        {"arcs": [[0, 1, "a", 17], [1, 0, "a"]]}, {"arcs": [[0, 1, "a", True], [1, 0, "a"]]},
        {"arcs": [[0, 1, 1], [1, 0, 1]]},
        {"link_latency": True}, {"link_latency": 1.0}, {"link_latency": None},
        {"link_latency": [True]}, {"link_latency": 0},
    ],
)  # fmt: skip
def test_entries_of_schedule_files_are_read_strictly(tmp_path, changed):
    plan = tf.plan(Graph([(0, 1, "a"), (1, 0, "a")]), "allgather")
    plan.save(tmp_path / "plan.json")
    data = json.loads((tmp_path / "plan.json").read_text())
    assert data["topology"] == TWO
    (tmp_path / "plan.json").write_text(json.dumps(data | {"topology": TWO | changed}))
    with pytest.raises(InputError, match=r"^Schedule file .* must be "):
        tf.load(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "mesh", "sides": [3, 3], "wraps": [1, 0]},
        {"kind": "mesh", "sides": [3, 3], "wraps": [True, False], "faults": []},
        {"kind": "torus", "sides": [3, 3], "link_latency": [True, 2]},
        {"kind": "torus", "sides": [3, 3], "link_latency": True},
        {"kind": "circulant", "nodes": 5, "offsets": [True, 2]},
        {"kind": "complete", "nodes": 5, "offsets": [1]},
        {"kind": "faulty", "whole": {"kind": "torus", "sides": [3]}, "broken_links": ["0:+0"],
         "broken_nodes": [], "slow": []},
        {"kind": "faulty", "whole": {"kind": "torus", "sides": [3]}, "broken_links": [],
         "broken_nodes": [True]},
    ],
)  # fmt: skip
def test_entries_say_what_is_read_and_no_more(entry):
    with pytest.raises(InputError):
        topology_from_json(entry)


@pytest.mark.parametrize("name", ["a\ud800", "", "a\nb", "x" * 101, 7])
def test_no_schedule_has_a_name_that_its_file_may_not_have(name):
    plan = tf.plan("3", "allgather")
    with pytest.raises(InputError, match=r"^Algorithm of a schedule must be a name of 1 to 100"):
        tf.Rounds(**plan.head | {"algorithm": name}, transfers=tuple(plan.rounds()))


def test_a_schedule_file_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "plan.json"
    tf.plan("3", "allgather").save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert tf.load(path).steps == 1


def test_the_command_names_file_and_line(tmp_path, capsys):
    path = tmp_path / "edges"
    path.write_text("0 1\n1 0\n")
    assert main(["plan", f"graph:{path}", "allgather"]) == 1
    assert capsys.readouterr() == (
        "",
        f"torusfabric: File of a graph {path}: line 2 must not join the nodes of line 1 again "
        "(begin the file with a line `directed` if a line is one way, else `undirected`)\n",
    )


def test_port_is_the_name_at_the_source(read):
    """The source keeps its port, whichever node comes first in the file."""
    for source, target in (0, 1), (1, 0):
        edge = {"source": source, "target": target, "port": "p", "back": "q"}
        topology = read({"nodes": [{"id": 0}, {"id": 1}], "edges": [edge]})
        arcs = topology.to_json()["arcs"]
        assert sorted(arcs) == sorted([[source, target, "p"], [target, source, "q"]])


def test_plain_formats_do_not_import_networkx(tmp_path):
    """Edge lists are read without the half second that the import of NetworkX takes."""
    (tmp_path / "links").write_text("0 1\n1 2\n")
    code = f"import sys, torusfabric as tf; tf.parse_topology('graph:{tmp_path / 'links'}')"
    code += "; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
