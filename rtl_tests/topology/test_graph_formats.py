"""Graph files of each format are told apart, read as NetworkX reads them, or refused by name."""

import json
import logging
import random

import networkx as nx
import numpy as np
import pytest

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.topology import Graph, parse_topology

NAMES = ["hub", "r1", "r2.a", "x-y", "Zürich", "b"]

#: Writers of NetworkX; True for a format that says itself whether edges are directed.
WRITERS = {
    "graphml": (nx.write_graphml, True),
    "graphml_xml": (nx.write_graphml_xml, True),
    "gml": (nx.write_gml, True),
    "edgelist": (nx.write_edgelist, False),
    "weighted_edgelist": (nx.write_weighted_edgelist, False),
    "adjlist": (nx.write_adjlist, False),
    "multiline_adjlist": (nx.write_multiline_adjlist, False),
}


def draw_graph(kind, seed, labels):
    """Return a strongly connected random graph of NetworkX, with parallel edges if it may."""
    chosen = random.Random(seed)
    nodes = list(labels)
    chosen.shuffle(nodes)
    graph = kind()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    graph.add_edges_from(tuple(chosen.sample(nodes, 2)) for _ in range(5))
    for position, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = 1.5 + position
    return graph


def named_arcs(topology):
    """Return all arcs of a topology as sorted pairs of labels."""
    names = [topology.node_name(node)[1:-1] for node in range(topology.nodes)]
    there = np.argwhere(topology.linked).tolist()
    return sorted((names[node], names[topology.neighbours[node, port]]) for node, port in there)


def arcs_of(graph):
    """Return all arcs of a graph of NetworkX as sorted pairs of labels."""
    pairs = [(str(a), str(b)) for a, b in graph.edges()]
    return sorted(pairs if graph.is_directed() else [*pairs, *((b, a) for a, b in pairs)])


@pytest.fixture
def read(tmp_path):
    """A function that reads a text as a graph file of some name."""

    def read_file(text, name="graph"):
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return parse_topology(f"graph:{path}")

    return read_file


@pytest.mark.parametrize("labels", [NAMES, range(6)], ids=["names", "numbers"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_files_of_networkx_are_read_as_their_graph(read, tmp_path, kind, writer, seed, labels):
    write, tells_direction = WRITERS[writer]
    graph = draw_graph(kind, seed, labels)
    write(graph, tmp_path / "written")
    text = (tmp_path / "written").read_text(encoding="utf-8")
    if not tells_direction:
        text = ("directed\n" if graph.is_directed() else "undirected\n") + text
    topology = read(text)
    assert named_arcs(topology) == arcs_of(graph)
    assert sorted(map(str, graph)) == sorted(
        topology.node_name(node)[1:-1] for node in range(topology.nodes)
    )


@pytest.mark.parametrize("kind", [nx.Graph, nx.MultiGraph])
@pytest.mark.parametrize("writer", WRITERS)
def test_an_undirected_file_needs_no_word_about_direction(read, tmp_path, kind, writer):
    graph = draw_graph(kind, 1, NAMES)
    WRITERS[writer][0](graph, tmp_path / "written")
    assert named_arcs(read((tmp_path / "written").read_text("utf-8"))) == arcs_of(graph)


NODES_OF_TRIANGLE = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
TRIANGLE = [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]


@pytest.mark.parametrize(
    ("key", "graph", "ends"),
    [
        # NetworkX 1.9, 1.11, 2.8 to 3.5, and 3.6.
        ("links", [["name", "t"]], [(0, 1), (0, 2), (1, 2)]),
        ("links", {}, [(0, 1), (0, 2), (1, 2)]),
        ("links", {}, [("a", "b"), ("a", "c"), ("b", "c")]),
        ("edges", {}, [("a", "b"), ("a", "c"), ("b", "c")]),
    ],
)
def test_node_link_json_of_every_version_of_networkx(read, key, graph, ends):
    edges = [{"source": a, "target": b} for a, b in ends]
    head = {"directed": False, "multigraph": False, "graph": graph}
    assert named_arcs(read(head | {"nodes": NODES_OF_TRIANGLE, key: edges})) == TRIANGLE


def test_positions_and_ids_of_node_link_json(read, caplog):
    """Ends are positions only in files of NetworkX 1; a file that fits both readings is told."""
    caplog.set_level(logging.INFO, "torusfabric")
    data = {
        "nodes": [{"id": 2}, {"id": 0}, {"id": 1}],
        "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}],
    }
    by_id, by_position = [("0", "1"), ("1", "0"), ("1", "2"), ("2", "1")], [
        ("0", "1"), ("0", "2"), ("1", "0"), ("2", "0"),
    ]  # fmt: skip
    assert named_arcs(read(data)) == by_id
    assert "source and target are read as ids of nodes; NetworkX 1 would" in caplog.text
    assert named_arcs(read(data | {"graph": []})) == by_position


STAR = [("0", "1"), ("0", "2"), ("0", "3"), ("1", "0"), ("2", "0"), ("3", "0")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0 1\n0 2\n0 3\n", "graph"),
        ("0 1 2 3\n1\n2\n3\n", "graph"),
        ("0 1 2 3\n1 0\n2 0\n3 0\n", "graph"),
        ("directed\n0 1 2 3\n1 0\n2 0\n3 0\n", "graph"),
        ("adjacency\n0 1 2 3\n", "graph"),
        ("adjacency undirected\n0 1 2 3\n", "graph"),
        ("0 1 2 3\n", "graph.adjlist"),
        ("0 3\n1 {}\n2 {}\n3 {}\n", "graph"),
        ("0 1 2.5\n0 2 1e3\n0 3 nan\n", "graph"),
        ("0 1 3\n0 2 1\n0 3 2\n", "graph"),
        ("edges\n0 1 2\n0 2 0\n0 3 0\n", "graph"),
        ("0 1 {'a': 1}\n0 2\n0 3 {}\n", "graph"),
        ("graph [ node [ id 0 ] node [ id 1 ] node [ id 2 ] node [ id 3 ]"
         " edge [ source 0 target 1 ] edge [ source 2 target 0 ] edge [ source 0 target 3 ] ]",
         "graph"),
    ],
)  # fmt: skip
def test_a_star_in_any_form(read, text, name):
    assert named_arcs(read(text, name)) == STAR


def test_complete_graph_as_symmetric_adjacency_list(read):
    """A list that names each link at both ends holds each link once."""
    assert read("0 1 2 3\n1 0 2 3\n2 0 1 3\n3 0 1 2\n") == Graph(nx.complete_graph(4))
    assert named_arcs(read("0 1 2\n1 2 0\n2 0 1\n")) == arcs_of(nx.complete_graph(3))


def test_a_list_of_triples_that_fits_two_formats(read, caplog):
    """Mode words or the name of the file decide; otherwise the message names both formats."""
    text = "0 1 2\n1 2 3\n2 3 0\n3 0 1\n"
    with pytest.raises(InputError, match="it may be an adjacency list, or an edge list with a wei"):
        read("directed\n" + text)
    caplog.set_level(logging.INFO, "torusfabric")
    assert len(named_arcs(read("directed\n" + text, "a.adjlist"))) == 8
    assert "it is read as an adjacency list, because its name says so" in caplog.text
    assert len(named_arcs(read("directed\n" + text, "a.edgelist"))) == 4
    assert len(named_arcs(read("0 1 2\n1 3 4\n", "b.adj"))) == 8
    assert len(named_arcs(read("directed adjacency\n" + text))) == 8
    assert len(named_arcs(read("edges directed\n" + text))) == 4


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (nx.write_gexf, "GEXF"),
        (nx.write_pajek, "Pajek"),
        (nx.write_graph6, "graph6"),
        (nx.write_sparse6, "sparse6"),
        (lambda _, path: path.write_text('/* x */\ndigraph "g" {\n a -> b;\n}\n'), "DOT"),
        (lambda _, path: path.write_text("strict graph {\n}\n"), "DOT"),
        (lambda g, path: path.write_text(json.dumps(nx.adjacency_data(g))), "adjacency_data"),
        (lambda g, path: path.write_text(json.dumps(nx.cytoscape_data(g))), "Cytoscape"),
        (lambda _, path: path.write_text("[[0, 1], [1, 0]]"), "JSON list"),
        (lambda _, path: path.write_text("<svg></svg>"), "SVG"),
    ],
)
def test_other_formats_are_refused_by_name(tmp_path, write, name):
    path = tmp_path / "graph"
    write(nx.cycle_graph(4), path)
    with pytest.raises(InputError, match=rf"format {name}.*, which is not read; ") as found:
        parse_topology(f"graph:{path}")
    assert len(str(found.value).splitlines()) == 1


XML = '<graphml>{}<graph edgedefault="{}"><node id="a"/><node id="b"/>{}</graph></graphml>'
LINK = '<edge source="a" target="b"/>'


def test_graphml_with_ports_and_single_arcs(read):
    """Ports of GraphML are those of arcs, and an edge may differ from the graph in direction."""
    edge = '<edge source="a" target="b" sourceport="p" targetport="q"/>'
    topology = read(XML.format("", "undirected", edge))
    assert topology.to_json()["arcs"] == [[0, 1, "p"], [1, 0, "q"]]
    arcs = '<edge source="a" target="b" directed="true"/><edge source="b" target="a"/>'
    assert named_arcs(read(XML.format("", "undirected", arcs))) == [
        ("a", "b"), ("a", "b"), ("b", "a"),
    ]  # fmt: skip


def test_labels_of_numbered_nodes(read):
    """Where ids only number nodes, the label is the attribute label or name."""
    key = '<key id="d0" for="node" attr.name="name" attr.type="string"/>'
    text = XML.format(key, "undirected", '<edge source="n0" target="n1"/>')
    for name, node in ("Bern", "a"), ("Genf", "b"):
        number = "n0" if node == "a" else "n1"
        text = text.replace(
            f'<node id="{node}"/>', f'<node id="{number}"><data key="d0">{name}</data></node>'
        )
    assert named_arcs(read(text)) == [("Bern", "Genf"), ("Genf", "Bern")]
    gml = "graph [ node [ id 5 ] node [ id 7 {} ] edge [ source 5 target 7 ] ]"
    assert named_arcs(read(gml.format(""))) == [("5", "7"), ("7", "5")]
    assert named_arcs(read(gml.format('label "x"'))) == [("5", "7"), ("7", "5")]
    both = gml.format('label "a&#228;"').replace("id 5", 'id 5 label "[ #1 ]"')
    assert named_arcs(read(both)) == [("[ #1 ]", "aä"), ("aä", "[ #1 ]")]


ANYNET = """
router 0 node 0 router 1 3 router 2 2
router 1 node 1 router 0 3
router 2 node 2 router 1
"""


def test_a_network_of_booksim(read, caplog):
    """Latencies are those of the links, and the larger one counts both ways."""
    caplog.set_level(logging.INFO, "torusfabric")
    topology = read(ANYNET)
    assert named_arcs(topology) == arcs_of(nx.complete_graph(3))
    cycles = {
        (node, int(topology.neighbours[node, port])): int(topology.cycles_of_arc[node, port])
        for node, port in np.argwhere(topology.linked).tolist()
    }
    assert cycles == {(0, 1): 3, (1, 0): 3, (0, 2): 2, (2, 0): 2, (1, 2): 1, (2, 1): 1}
    assert "of two latencies of a link, the larger counts both ways" in caplog.text
    assert parse_topology(topology.name) == topology
    assert tf.simulate(
        tf.Fabric(tf.compile(tf.plan(topology, "allgather"), flits=2), width=4)
    ).passed


def test_a_network_of_booksim_with_equal_latencies(read):
    text = "router 0 node 1 router 1 4\nrouter 1 node 0 router 0 4\n"
    topology = read(text)
    assert (topology.link_latency, topology.node_name(0)) == (4, "(router1)")
    assert named_arcs(read("node 0 router 0\nnode 1 router 1\nrouter 0 router 1\n")) == [
        ("0", "1"), ("1", "0"),
    ]  # fmt: skip


GML = 'graph [\n  node [ id 0 label "a" ]\n  node [ id 1 label "b" ]\n{}\n]\n'
GML_LINK = "  edge [ source 0 target 1 ]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it must have a line for each edge or node, but it is empty"),
        ("directed\n# nothing\n", "it must have a line for each edge or node, but it is empty"),
        ("directed undirected\n0 1\n", "line 1 must not say 'directed undirected', for one"),
        ("a b\nb c\nc c\n", "line 3: Edge must lead to another node, not from c to itself"),
        ("a b\nb 7\n", "line 2 must name a node by a word, as line 1 does, not '7'"),
        ("a b\nb c\nc\nd\n", "The graph has no link at node 3 (d); add links, or leave out"),
        ("1 2\n2 3\n", "The graph has no link at node 0 (0); add links, or leave out nodes (numbe"),
        ("(0, 0) (0, 1) {}\n", "line 1 must be two nodes, not '(0, 0) (0, 1) {}'"),
        ("0 1\n1 2 3\n2 0\n", "line 2 must be two nodes, not '1 2 3' (in an adjacency list each"),
        ("0 1 2\n1 0\n2\n", "line 1 must name node 2 in the line of node 0 and back, as line 1"),
        ("0 1 2.5 7\n1 2 2.5 7\n2 0 2.5 7\n", "line 1 must be two nodes, not '0 1 2.5 7'"),
        ("0 1 0\n1 0\n", "line 1: Edge must lead to another node, not from 0 to itself"),
        ("0 2\n1 {}\n1 1\n", "line 3 must be a neighbour of node 0, for line 1 announces 2"),
        ("0 2\n1 {}\n", "line 1 must announce the lines that follow, not 1 more than there are"),
        ("0 x\n1 {}\n", "line 1 must be a node and the number of its neighbours, not '0 x'"),
        ("0 1\n1 {'a'}\n", "line 2 must have attributes such as {'port': 'a'}, not \"{'a'}\""),
        (GML.format(GML_LINK + "\n" + GML_LINK), "edge in line 5 must not join the nodes of edge"),
        (GML.format("  edge [ source 0 target 2 ]"), "edge in line 4 must have as target the id o"),
        (GML.format("  edge [ source 0 target 0 ]"), "edge in line 4: Edge must lead to another"),
        (GML.format("  edge [ source 0 ]"), "edge in line 4 must have one integer as target, not"),
        (GML.format("  node [ id 1 ]"), "node in line 4 must have a new id, not 1 again"),
        (GML.format("  node [ label \"c\" ]"), "node in line 4 must have one integer as id, not N"),
        (GML.format("  node [ id 2 id 3 ]"), "node must have one id, not another one in line 4"),
        (GML.format("  node 3"), "node in line 4 must be a list in brackets"),
        (GML.format("  directed 2"), "line 4 must say directed 0 or directed 1, not 2"),
        (GML.format("  directed 0 directed 0"), "line 4 must not say directed again"),
        (GML.format("  edge ]"), "line 4 must have a value for edge, not ']'"),
        (GML.format("  3"), "line 4 must have a key, such as node or edge, not '3'"),
        (GML.format("  ?"), "line 4 must be GML, not '?'"),
        (GML.format('  label "x'), "line 4 must be GML, not '\"x'"),
        (GML.format("  edge ["), "line 1 must have a bracket that closes, but the file ends"),
        (GML.format("]  edge"), "line 5 must have a value for edge, not ']'"),
        (GML.format(GML_LINK) + "x", "line 6 must have a value for x, but the file ends"),
        (GML.format(GML_LINK) * 2, "it must have one list with the key graph, not 2"),
        (GML.format("  edge [ source 0 target 1 capacity 4 ]"), "edge in line 4: Attribute 'capac"),
        (GML.format("  node [ id 2 label \"c\" ]\n" + GML_LINK), "The graph has no link at node 2"),
        ("<graphml>\n<graph></graphml>", "line 2 must be XML, not damaged (mismatched tag)"),
        ("<graphml></graphml>", "it must have one graph, not 0"),
        ("<!DOCTYPE x [<!ENTITY e 'e'>]>\n<graphml/>", "line 1 must have no document type (DOCTYP"),
        (XML.format("", "both", LINK), "graph in line 1 must have edgedefault directed or undirec"),
        (XML.format("", "undirected", LINK.replace("b", "c")), "edge in line 1 must have as targe"),
        (XML.format("", "undirected", LINK.replace("b", "a")), "edge in line 1: Edge must lead to"),
        (XML.format("", "undirected", LINK.replace('target="b"', "")), "edge in line 1 must have"),
        (XML.format("", "undirected", LINK + '\n<edge source="b" target="a"/>'), "edge in line 2"),
        (XML.format("", "undirected", '<node id="a"/>'), "node in line 1 must have a new id, not"),
        (XML.format("", "undirected", '<node id="c"><graph/></node>'), "node in line 1 must have"),
        (XML.format("", "undirected", "<hyperedge/>"), "hyperedge in line 1 must be an edge, for"),
        (XML.format("", "undirected", LINK.replace("/>", '><data key="k"/></edge>')), "data in li"),
        (XML.format('<key id="k" attr.name="w" attr.type="int"/>', "undirected",
         LINK.replace("/>", '><data key="k">x</data></edge>')), "must be of the type int for w, n"),
        (XML.format("", "directed", LINK.replace("/>", ' directed="yes"/>')), "edge in line 1 mus"),
        ("router 0 node 0\nrouter 1 node 0\n", "line 2 must not connect node 0 to router 1, for i"),
        ("router 0 node 0 router 1\n", "Relays must leave at least two nodes that send and receiv"),
        ("router 0 node 0 router 2 node 1\n", "it must number each router from 0 to 1, as BookSim"),
        ("router 0 node 0 router 1 65\n", "line 1 must have latencies from 1 to 64 cycles, not 65"),
        ("router 0 7 node 0\n", "line 1 must be a router and its connections, as in `router 0 nod"),
        ("router 0 node 0 switch 3\n", "line 1 must be a router and its connections, as in `route"),
        ("node 0 node 1\n", "line 1 must not connect node 0 to node 1"),
        ("router 0 router 5000\n", "line 1 must have numbers from 0 to 4095, not router 5000"),
        ("router 0 node 0 router 1 3\nrouter 0 router 1\nnode 1 router 1\n", "line 2 must not giv"),
        ("router 0 node 0 router 0\n", "line 1: Edge must lead to another node, not from 0 to its"),
    ],
)  # fmt: skip
def test_damage_is_named_by_line_or_key(read, text, message):
    with pytest.raises(InputError) as found:
        read(text)
    assert str(found.value).startswith("File of a graph ")
    assert message in str(found.value)
    assert len(str(found.value).splitlines()) == 1


def test_random_damage_never_leads_to_another_error(read, tmp_path):
    """A file of any format with a few random changes is read or refused in one line."""
    graph = draw_graph(nx.Graph, 0, NAMES)
    texts = [json.dumps(nx.node_link_data(graph, edges="edges")), ANYNET]
    for write, _ in WRITERS.values():
        write(graph, tmp_path / "written")
        texts.append((tmp_path / "written").read_text("utf-8"))
    chosen = random.Random(63)
    for turn in range(600):
        text = list(texts[turn % len(texts)])
        for _ in range(chosen.randint(1, 4)):
            place = chosen.randrange(len(text))
            text[place] = chosen.choice(["", *'\n 07[]"<{a\0'])
        error = None
        try:
            read("".join(text))
        except InputError as raised:
            error = raised
        assert len(str(error).splitlines()) == 1


def test_data_that_are_not_used_are_named_in_one_line(read, tmp_path, caplog):
    caplog.set_level(logging.INFO, "torusfabric")
    graph = draw_graph(nx.Graph, 0, NAMES)
    nx.set_node_attributes(graph, 3, "floor")
    nx.write_gml(graph, tmp_path / "written")
    text = (tmp_path / "written").read_text("utf-8")
    for _ in range(2):
        read(text)
    read("a b 1.0\nb c 1\n", "units")
    assert [record.getMessage() for record in caplog.records] == [
        f"graph:{tmp_path / 'graph'}: read and not used: weight of edges; floor of nodes (each "
        "link carries one flit a cycle)"
    ]


def test_names_that_are_numbers_in_another_order_are_told(read, caplog):
    caplog.set_level(logging.INFO, "torusfabric")
    topology = read("graph [ node [ id 1 ] node [ id 0 ] edge [ source 0 target 1 ] ]")
    assert "so node 0 is named 1; commands take numbers, not these names" in caplog.text
    assert tf.plan(topology, "broadcast", root="1").collective.root == 1
