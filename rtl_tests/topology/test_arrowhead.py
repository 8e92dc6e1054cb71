"""The arrowhead torus: a Cayley graph with quaternary labels."""

import networkx as nx
import numpy as np
import pytest

from torusfabric.errors import InputError
from torusfabric.topology import Arrowhead, parse_topology, topology_from_json

DIAMETERS = [0, 1, 2, 5, 10, 21, 42, 85, 170]


@pytest.mark.parametrize(
    ("node", "neighbours"),
    [
        (0, [1, 2, 3, 5, 10, 15]),
        (1, [4, 15, 10, 0, 7, 6]),
        (2, [15, 8, 5, 11, 0, 9]),
        (3, [10, 5, 12, 14, 13, 0]),
        (4, [5, 6, 7, 1, 14, 11]),
        (7, [14, 1, 8, 10, 9, 4]),
        (15, [6, 9, 0, 2, 1, 12]),
    ],
)
def test_neighbours_of_order_2(node, neighbours):
    """Node numbers are the paper's labels (figure 3), neighbours in the order N SW SE S NE NW."""
    assert Arrowhead(2).neighbours[node].tolist() == neighbours


@pytest.mark.parametrize("order", range(8))
def test_nodes_links_diameter(order):
    """Order n has 4^n nodes, links in three directions, and the diameter of equation (7)."""
    topology = Arrowhead(order)
    assert topology.nodes == 4**order
    assert topology.neighbours.shape == (4**order, 6)
    assert topology.distances.max() == topology.diameter == DIAMETERS[order]
    nodes = np.arange(topology.nodes)
    for port in range(6):
        assert sorted(topology.neighbours[:, port]) == nodes.tolist()
        back = topology.neighbours[topology.neighbours[:, port], topology.opposite[port]]
        assert (back == nodes).all()


@pytest.mark.parametrize("order", [8, 9])
def test_large_orders(order):
    """Distances and diameter agree for large tables, too."""
    topology = Arrowhead(order)
    assert topology.distances.max() == topology.diameter == (2 ** (order + 1) - 1) // 3


def graph(topology):
    """The network as a graph with the number of parallel links."""
    network = nx.Graph()
    for node in range(topology.nodes):
        for port in range(3):
            neighbour = int(topology.neighbours[node, port])
            links = network.get_edge_data(node, neighbour, {"capacity": 0})["capacity"]
            network.add_edge(node, neighbour, capacity=links + 1)
    return network


@pytest.mark.parametrize("order", [1, 2, 3])
def test_edge_connectivity(order):
    """Six links must fail before two nodes are cut off from each other."""
    network = graph(Arrowhead(order))
    flows = [nx.maximum_flow_value(network, 0, node) for node in range(1, 4**order)]
    assert min(flows) == 6


def test_order_1_has_double_links():
    """Every neighbour is reached by two ports with different names."""
    topology = Arrowhead(1)
    assert topology.neighbours[0].tolist() == [1, 2, 3, 1, 2, 3]
    assert sorted(set(nx.get_edge_attributes(graph(topology), "capacity").values())) == [2]


def test_order_0_is_one_node_with_loops():
    """Order 0 is one node with three loops: six ports that lead to the node itself."""
    topology = Arrowhead(0)
    assert topology.neighbours.tolist() == [[0] * 6]
    assert (topology.diameter, topology.distances.tolist(), topology.node_name(0)) == (0, [0], "0")


@pytest.mark.parametrize("order", range(5))
def test_generators(order):
    """N + SW + SE = 0, and 2^n hops in one direction lead back, fewer do not: (1) and (2)."""
    topology = Arrowhead(order)
    north, south_west, south_east = topology.generators[:3]
    assert topology.add(topology.add(north, south_west), south_east) == 0
    for generator in topology.generators:
        node, hops = topology.add(0, generator), 1
        while node != 0:
            node, hops = topology.add(node, generator), hops + 1
        assert hops == 2**order


@pytest.mark.parametrize("order", range(1, 6))
def test_recursive_connection(order):
    """Equation (6): two hops from 4x lead to 4 times the neighbour of x; one N to 4x + 1."""
    outer, inner = Arrowhead(order), Arrowhead(order - 1)
    x = np.arange(inner.nodes)
    for port in range(6):
        once = outer.neighbours[4 * x, port]
        assert (outer.neighbours[once, port] == 4 * inner.neighbours[x, port]).all()
        if port < 3:
            assert (once == 4 * x + port + 1).all()


def test_ring_around_a_node():
    """The SW neighbour of the N neighbour is the NW neighbour, and so on around."""
    topology = Arrowhead(3)
    ring = [topology.port(name) for name in ("N", "NW", "SW", "S", "SE", "NE")]
    for k, port in enumerate(ring):
        turned = topology.neighbours[topology.neighbours[:, port], ring[(k + 2) % 6]]
        assert (turned == topology.neighbours[:, ring[(k + 1) % 6]]).all()


def test_ports():
    """The order of the ports is fixed."""
    topology = Arrowhead(2)
    assert topology.port_names == ("N", "SW", "SE", "S", "NE", "NW")
    opposite = {"N": "S", "SW": "NE", "SE": "NW"}
    for name, other in opposite.items():
        assert topology.opposite[topology.port(name)] == topology.port(other)
    assert topology.arc_name(13, 4) == "node 13 31 port NE"


@pytest.mark.parametrize(("order", "node", "name"), [(3, 27, "123"), (3, 3, "003"), (1, 2, "2")])
def test_node_name_is_the_label(order, node, name):
    """The name of a node is its n quaternary digits."""
    assert Arrowhead(order).node_name(node) == name


def test_coordinates():
    """Coordinates and numbers are two names for a node."""
    topology = Arrowhead(3)
    nodes = np.arange(64)
    assert (topology.node(topology.coordinates(nodes)) == nodes).all()
    assert topology.node((-1, -1)) == topology.port("SE") + 1
    assert (topology.embedding % 8 == topology.coordinates(nodes)).all()


@pytest.mark.parametrize("order", [0, 1, 5, 8])
def test_names_and_files(order):
    """Name and JSON entry are read as the same topology."""
    topology = parse_topology(f"arrowhead:{order}")
    assert topology.to_json() == {"kind": "arrowhead", "order": order}
    assert topology_from_json(topology.to_json()) == topology
    assert str(topology) == f"arrowhead:{order}"
    assert topology != Arrowhead(order + 1)


@pytest.mark.parametrize("order", [-1, 13, 2.0, "3", True, None])
def test_order_is_limited(order):
    """The message gives the limit of the order and the reason."""
    words = rf"^Order of an arrowhead must be an integer from 0 to 12, .* memory, not {order!r}$"
    with pytest.raises(InputError, match=words):
        topology_from_json({"kind": "arrowhead", "order": order})


@pytest.mark.parametrize("text", ["arrowhead", "arrowhead:", "arrowhead:-1", "arrowhead:3x", "a:3"])
def test_unknown_names(text):
    """A misspelt name is refused with the list of notations."""
    words = rf"^Topology must be side lengths .*, arrowhead:ORDER, .*, cube:AXES, .*, not '{text}'$"
    with pytest.raises(InputError, match=words):
        parse_topology(text)


def test_unknown_entry():
    """An incomplete JSON entry is refused."""
    with pytest.raises(InputError, match=r"^Topology must be .*, not \{'kind': 'arrowhead'\}$"):
        topology_from_json({"kind": "arrowhead"})
