"""Nodes are called by their names: roots, groups, broken nodes and links; numbers come first."""

import json

import networkx as nx
import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw import draw
from torusfabric.errors import InputError
from torusfabric.topology import Faulty, Graph, Torus

LINKS = [("hub", "a"), ("hub", "b"), ("hub", "c"), ("c", "d"), ("d", "hub")]


@pytest.fixture
def graph():
    """A hub with five nodes in all."""
    return Graph(nx.Graph(LINKS), name="hub-and-spokes")


@pytest.fixture
def file(tmp_path):
    """The name of a graph file with the same network."""
    path = tmp_path / "links"
    path.write_text("".join(f"{tail} {head}\n" for tail, head in LINKS))
    return f"graph:{path}"


@pytest.mark.parametrize(
    ("topology", "name", "number"),
    [
        (Torus(4, 4), "(1,2)", 6),
        (Torus(4, 4), "1,2", 6),
        (Torus(4, 4), "9", 9),
        (Torus(4, 4), 9, 9),
        (Faulty.of(Torus(4, 4), "5"), "(1,2)", 5),
        (tf.parse_topology("cube:3"), "(110)", 6),
        (Graph(nx.Graph([(2, 1), (1, 0), (0, 2)])), "1", 1),
        (Graph(nx.grid_2d_graph(2, 2)), "(0, 1)", 1),
    ],
)
def test_a_node_has_a_number_and_a_name(topology, name, number):
    assert topology.node_number(name) == topology.find_node(name) == number


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("e", r"Node must be a node from 0 to 4 or a name such as \(hub\), not 'e'"),
        ("hubb", r"not 'hubb' \(did you mean hub"),
        ("5", "Node must be a node from 0 to 4, not 5$"),
        (-1, "Node must be a node from 0 to 4, not -1$"),
        (True, "Node must be a node from 0 to 4, not True$"),
        (1.0, "Node must be a node from 0 to 4, not 1.0$"),
    ],
)
def test_unknown_names(graph, name, message):
    with pytest.raises(InputError, match=message):
        graph.node_number(name)
    assert graph.find_node(name) is None


def test_a_number_is_never_a_name():
    """Of nodes 7 and 8, with the numbers 0 and 1, the text 7 means neither."""
    graph = Graph(nx.Graph([(7, 8)]))
    with pytest.raises(InputError, match=r"not 7 \(the node of this name has the number 0\)"):
        graph.node_number("7")
    assert graph.node_number("(7)") == 0


def test_roots_groups_and_faults_in_python(graph):
    assert tf.plan(graph, "broadcast", root="c").collective.root == 3
    assert tf.plan(graph, "gather@{hub,c,1}", root="c").collective.members == ((0, 3, 1),)
    grouped = tf.plan(graph, "broadcast", groups=[["a", 3, "d"]], root="d").collective
    assert (grouped.members, grouped.root) == (((1, 3, 4),), 2)
    broken = tf.plan(graph, "broadcast", broken_nodes=["b"], broken_links="c:2", root="d")
    assert (str(broken.topology), broken.collective.root) == ("hub-and-spokes!0:3,2", 3)
    assert broken.topology.node_name(3) == "(d)"
    assert Faulty.of(graph, "b,c:2") == Faulty(graph, [(3, 2)], [2])


@pytest.mark.parametrize(
    ("collective", "root", "message"),
    [
        ("broadcast@{a,b}{c,d}", "d", "Root must be a position in a group for several groups"),
        ("broadcast@{a,b}", "d", "Root must be a node of the group, not 'd'"),
        (
            "broadcast@{a,x}",
            None,
            "Nodes of a group must be numbers and ranges, .*, not x in {a,x}",
        ),
        ("broadcast@{a,1}", None, "Node 1 is listed twice"),
        ("broadcast@{a,}", None, "Nodes of a group must be numbers and ranges"),
    ],
)
def test_names_that_do_not_fit(graph, collective, root, message):
    with pytest.raises(InputError, match=message):
        tf.plan(graph, collective, root=root)


def test_names_in_commands(file, tmp_path, capsys):
    """A plan file keeps the names, and reports print that of the root."""
    plan = tmp_path / "plan.json"
    assert (
        main(["plan", file, "broadcast", "--root", "d", "--broken-node", "b", "-o", str(plan)]) == 0
    )
    assert "root           node 3 (d)\n" in capsys.readouterr().out
    assert json.loads(plan.read_text())["topology"]["whole"]["nodes"] == ["hub", *"abcd"]
    assert main(["check", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["root"] == "node 3 (d)"
    assert main(["plan", f"{file}!b", "broadcast@{hub,d}", "--root", "hub", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["root"] == "node 0 (hub)"
    modes = [
        file,
        "broadcast@{hub,d},allgather@{a,b}",
        "--root",
        "d",
        "--flits",
        "2",
        "--width",
        "4",
    ]
    assert main(["simulate", *modes]) == 0
    assert "words wrong       0\n" in capsys.readouterr().out
    assert main(["plan", file, "broadcast", "--root", "x"]) == 1
    assert capsys.readouterr().err == (
        "torusfabric: Root must be a node from 0 to 4 or a name such as (hub), not 'x'\n"
    )


def test_pictures_show_names(graph):
    picture = draw(tf.plan(graph, "broadcast", root="hub"))
    assert "<title>node 3 (c)" in picture
