"""Topologies: names, classes of topologies, and groups of nodes."""

import networkx as nx
import numpy as np
import pytest

import torusfabric as tf
from torusfabric.errors import InputError
from torusfabric.topology import (
    Arrowhead,
    Groups,
    Torus,
    parse_topology,
    register_topology,
    topology_from_json,
)


def test_sides_one_by_one_or_all_at_once():
    same = [
        Torus(4, 6),
        Torus([4, 6]),
        Torus((4, 6)),
        Torus(np.array([4, 6])),
        Torus(4, np.int8(6)),
    ]
    assert len({torus.sides for torus in same}) == 1
    assert Torus(8) == Torus([8]) == parse_topology("8")
    assert parse_topology("4x6") == topology_from_json(same[0].to_json()) == same[0]


@pytest.mark.parametrize("sides", [(5,), (3, 4), (2, 5), (3, 3, 4), (2, 2, 2)])
def test_torus_is_a_product_of_rings(sides):
    """Neighbours, distances and translations of a torus agree with NetworkX."""
    torus, nodes = Torus(sides), np.arange(np.prod(sides))
    graph = nx.grid_graph(sides[::-1], periodic=[side > 2 for side in sides[::-1]])
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    points = [tuple(map(int, torus.coordinates(node))) for node in nodes]
    names = [point if len(point) > 1 else point[0] for point in points]
    for node, name in enumerate(names):
        assert {names[v] for v in torus.neighbours[node]} == set(graph[name])
        assert torus.distance(node, nodes).tolist() == [lengths[name][other] for other in names]
    there = torus.neighbours[nodes[:, None], np.arange(torus.ports)]
    assert (torus.neighbours[there, torus.opposite] == nodes[:, None]).all(), "opposite ports"
    offset = torus.subtract(nodes[:, None], nodes[None, :])
    assert (torus.add(nodes[None, :], offset) == nodes[:, None]).all()
    assert torus.diameter == max(map(max, (row.values() for row in lengths.values())))


@pytest.mark.parametrize("sides", [(), ([],), (1, 4), (4, "4"), ("44",), (2.5,), ([4], 4), (None,)])
def test_wrong_sides(sides):
    with pytest.raises(
        InputError, match=r"^Sides of a torus must be integers of at least 2, not '"
    ):
        Torus(*sides)


def test_a_kind_is_registered_once():
    class Other(Torus):
        pass

    with pytest.raises(InputError, match=r"^Kind of a topology must be a new one, not 'torus'$"):
        register_topology(Other)


@pytest.mark.parametrize(
    ("sides", "axes"),
    [((3, 4), (0,)), ((3, 4), (1,)), ((2, 3, 4), (0, 2)), ((2, 3, 2, 5), (1, 3)), ((3, 4), None)],
)
def test_groups(sides, axes):
    """Every node is in one group, and a port leads to the same position in each group."""
    torus = Torus(sides)
    groups = Groups(torus, axes)
    assert sorted(groups.members.ravel().tolist()) == list(range(torus.nodes))
    assert groups.members.shape == (groups.n_groups, groups.group_size)
    nodes = np.arange(torus.nodes)
    assert (groups.members[groups.group_of_node, groups.position_of_node] == nodes).all()
    assert (groups.node_in_same_group(nodes, groups.position_of_node) == nodes).all()
    for port, there in enumerate(groups.port_in_topology.tolist()):
        assert groups.port_in_group[there] == port
        neighbour = torus.neighbours[:, there]
        assert (groups.group_of_node[neighbour] == groups.group_of_node).all()
        along = groups.group_topology.neighbours[groups.position_of_node, port]
        assert (groups.position_of_node[neighbour] == along).all()
    outside = np.flatnonzero(groups.port_in_group < 0)
    for port in outside.tolist():
        assert (groups.group_of_node[torus.neighbours[:, port]] != groups.group_of_node).all()


def test_groups_are_translations():
    """Offsets within a group are the same in all groups."""
    torus = Torus(3, 4, 2)
    groups = Groups(torus, (0, 2))
    for members in groups.members:
        assert (torus.subtract(members, members[0]) == groups.members[0]).all()


@pytest.mark.parametrize("axes", [(), (2,), (0, 0), (-1,)])
def test_axes_that_are_none(axes):
    with pytest.raises(InputError, match=r"^Axes must be some of the axes 0, 1 of 3x4, each once"):
        Groups(Torus(3, 4), axes)


def test_one_group_of_all_nodes():
    """All nodes of an arrowhead form one group."""
    groups = Groups(Arrowhead(2))
    assert (groups.n_groups, groups.group_size, groups.group_topology) == (1, 16, Arrowhead(2))
    assert groups.position_of_node.tolist() == list(range(16))


@pytest.mark.parametrize("name", ["92x92", "91x92~7", "8300", "21x20x20"])
def test_columns_of_many_nodes(name):
    """Offsets of more than 8192 nodes in a column are those of the nodes one by one.

    NumPy has wrong entries in such a column.
    """
    topology = parse_topology(name)
    assert isinstance(topology, tf.CayleyGraph)
    nodes, ports = np.arange(topology.nodes), topology.generators
    for change in (topology.subtract, topology.add):
        each = np.stack([change(nodes, port) for port in ports], axis=1)
        assert np.array_equal(change(nodes[:, None], ports[None, :]), each)
    coordinates = topology.coordinates(nodes[:, None])
    assert np.array_equal(coordinates[:, :, 0], topology.coordinates(nodes))


def test_a_tree_on_many_nodes():
    """A tree of shortest paths reaches all of 8464 nodes."""
    assert tf.plan("92x92", "broadcast", algorithm="spanning-tree", trees=1).steps == 92
