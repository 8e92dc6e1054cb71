"""Validation of a topology when it is made: a twisted torus, right and with each member wrong.

A walk around axis 0 of a twisted torus ends `twist` nodes further along axis 1. The nodes are the
integer points of the plane modulo (rows, -twist) and (0, columns). The group of 4 rows, 4 columns
and a twist of 2 is a product of cyclic groups of orders 2 and 8, not of 4 and 4.
"""

import json
import re
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.topology import CayleyGraph, registry, require_cayley_graph, topology_from_json
from torusfabric.topology.validate import MOST_NODES_FOR_PAIRS, validate_cayley_graph

ROWS = COLUMNS = 4
TWIST = 2


class Twisted(CayleyGraph):
    """The twisted torus of 4 by 4 nodes: node 4 x + y stands for the point (x, y)."""

    kind = "twisted"
    notation = "twisted:ROWSxCOLUMNS:TWIST"
    entry = '{"kind": "twisted", "sides": [.., ..], "twist": ..}'

    def __init__(self, rows=ROWS, columns=COLUMNS, twist=TWIST):
        self.sides, self.twist = (rows, columns), twist
        self.name = f"twisted:{rows}x{columns}:{twist}"
        self.nodes, self.ports = rows * columns, 4
        self.port_names = ("+0", "-0", "+1", "-1")
        self.opposite = np.arange(4) ^ 1

    @classmethod
    def parse(cls, text):
        match = re.fullmatch(r"twisted:(\d+)x(\d+):(\d+)", text)
        return cls(*map(int, match.groups())) if match else None

    @classmethod
    def from_json(cls, entry):
        rows, columns = entry["sides"]
        return cls(rows, columns, entry["twist"])

    def to_json(self):
        return {"kind": self.kind, "sides": list(self.sides), "twist": self.twist}

    def node(self, x, y):
        """The node of a point of the plane."""
        around, x = np.divmod(x, self.sides[0])
        return x * self.sides[1] + (y + around * self.twist) % self.sides[1]

    def add(self, a, b):
        (ax, ay), (bx, by) = np.divmod(a, self.sides[1]), np.divmod(b, self.sides[1])
        return self.node(ax + bx, ay + by)

    def subtract(self, a, b):
        (ax, ay), (bx, by) = np.divmod(a, self.sides[1]), np.divmod(b, self.sides[1])
        return self.node(ax - bx, ay - by)

    @property
    def generators(self):
        return self.node(np.array([1, -1, 0, 0]), np.array([0, 0, 1, -1]))

    @cached_property
    def distances(self):
        graph = nx.Graph([(v, int(n)) for v, row in enumerate(self.neighbours) for n in row])
        lengths = nx.single_source_shortest_path_length(graph, 0)
        return np.array([lengths[v] for v in range(self.nodes)])

    @property
    def moduli(self):
        return (2, 8)

    def coordinates(self, nodes):
        # The point (x, y) is x times (1, 0), of order 8, plus y + 2 x times (2, 1), of order 2:
        # twice (2, 1) is (4, 2), which is once around axis 0.
        x, y = np.divmod(nodes, self.sides[1])
        return np.stack([y % 2, (x - 2 * y) % 8])

    def node_name(self, node):
        return str(node)


class ByCoordinates(Twisted):
    """The smallest definition of the torus: addition and distances follow from coordinates."""

    add, subtract = CayleyGraph.add, CayleyGraph.subtract
    distances = CayleyGraph.distances


@pytest.mark.parametrize("family", few(1, [ByCoordinates, Twisted]))
def test_the_right_one_is_planned_and_built(family, monkeypatch, tmp_path):
    """A topology that is registered once or twice is named, planned for, built and saved."""
    monkeypatch.setattr(registry, "FAMILIES", dict(registry.FAMILIES))
    with pytest.raises(tf.InputError, match=r"^Topology must be"):
        tf.parse_topology("twisted:4x4:2")
    tf.register_topology(family)
    tf.register_topology(family)
    topology = require_cayley_graph(tf.parse_topology("twisted:4x4:2"))
    with pytest.raises(tf.InputError, match=r" or twisted:ROWSxCOLUMNS:TWIST, not 'x'"):
        tf.parse_topology("x")
    assert topology_from_json(json.loads(json.dumps(topology.to_json()))) == topology
    assert topology.distances.tolist() == Twisted().distances.tolist()
    for collective in ("allgather", "alltoall", "reduce-scatter"):
        schedule = tf.plan("twisted:4x4:2", collective, algorithm="matching")
        assert tf.check(schedule).rounds == schedule.steps
        schedule.save(tmp_path / "plan.json", force=True)
        assert tf.load(tmp_path / "plan.json").topology == topology
        program = tf.compile(schedule, flits=16 if collective == "reduce-scatter" else 2)
        assert tf.simulate(tf.Fabric(program, width=8)).passed


#: Wrong members, and the message of each.
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    # Members with which a fabric once delivered wrong words.
    "a group that it is not": (
        {"moduli": (4, 4), "coordinates": lambda _, nodes: np.stack(np.divmod(nodes, 4))},
        "Add of nodes 4 and 12 of .* must be 0, .* modulo (4, 4), not 2",
    ),
    "a group by coordinates alone": (
        {"moduli": (4, 4), "coordinates": lambda _, nodes: np.stack(np.divmod(nodes, 4)),
         "add": CayleyGraph.add, "subtract": CayleyGraph.subtract},
        "Opposite of port +0 .* must be the port that leads back, .* modulo (4, 4), not -0",
    ),
    "moduli of too few": ({"moduli": (2, 4)}, "Moduli of .* product is the 16 nodes, not (2, 4)"),
    "moduli that are no numbers": ({"moduli": ("a", 8)}, "Moduli of"),
    "no moduli": ({"moduli": None}, "Moduli of .*, not TypeError"),
    "coordinates beyond moduli": (
        {"moduli": (8, 2)}, "Coordinates 1 of .* must be below their modulus 2, not 7"
    ),
    "coordinates that are the same": (
        {"coordinates": lambda _, nodes: np.stack([0 * nodes, nodes % 8])},
        "Coordinates of .* must be different for all nodes, not the same for nodes 0 and 8",
    ),
    "coordinates of another origin": (
        {"coordinates": lambda self, nodes: (Twisted.coordinates(self, nodes) + 1) % [[2], [8]]},
        "Coordinates of node 0 of .* must be all 0, not [1, 1]",
    ),
    "coordinates of another shape": (
        {"coordinates": lambda _, nodes: np.asarray(nodes)}, "Coordinates of .* shape (2, 16)"
    ),
    "coordinates that fail": ({"coordinates": lambda *_: [][0]}, "Coordinates of .*IndexError"),
    "addition": (
        {"add": lambda _, a, b: np.add(a, b) % 16}, "Add of nodes .* must be .*modulo (2, 8), not"
    ),
    "addition of one pair": (
        {"add": lambda self, a, b: np.where((np.equal(a, 9)) & (np.equal(b, 14)), 0,
                                            Twisted.add(self, a, b))},
        "Add of nodes 9 and 14 of .* must be 5, .*, not 0",
    ),
    "addition of single nodes": (
        {"add": lambda self, a, b: Twisted.add(self, a, b) + (np.ndim(a) == 0)},
        "Add of nodes 0 and 0 of .* must be 0, .*, not 1",
    ),
    "subtraction": (
        {"subtract": Twisted.add}, "Subtract of nodes 0 and 1 of .* must be 3, .*not 1"
    ),
    "generators": ({"generators": np.array([4, 12, 1, 3])}, "Opposite of port +0 of"),
    "generators that do not exist": ({"generators": np.array([4, 16, 1, 3])}, "Generators of"),
    "generators of numbers with a point": ({"generators": np.ones(4)}, "Generators of .*float64"),
    "generators that do not reach all": (
        {"generators": np.array([2, 2, 2, 2])}, "Nodes of .* linked to node 0 .*, not 2 of them"
    ),
    "generators and neighbours": (
        {"neighbours": np.zeros((16, 4), int)}, "Neighbour of node 0 at port +0 of .* must be 4"
    ),
    "opposite ports": ({"opposite": np.array([0, 1, 2, 3])}, "Opposite of port +0 .*, not +0"),
    "opposite ports that do not exist": ({"opposite": np.array([4, 0, 3, 2])}, "Opposite ports"),
    "distances": (
        {"distances": np.arange(16)}, "Distance of node 3 from node 0 of .* must be 1, not 3"
    ),
    "diameter": ({"diameter": 2}, "Diameter of .* must be 3, not 2"),
    "too many ports": ({"ports": 5}, "Names of ports of .* must be 5 different words"),
    "ports of one name": ({"port_names": ("a", "a", "b", "c")}, "Names of ports of"),
    "no nodes": ({"nodes": 0}, "Nodes of .* must be an integer from 1 to 2147483647, not 0"),
    "half a node": ({"nodes": 16.0}, "Nodes of .*, not 16.0"),
    "dimensions": ({"dimensions": 2}, "Dimensions of .* must be left out, .*, not 2"),
    "an entry of another kind": ({"to_json": lambda _: {"kind": "torus"}}, "Entry of"),
    "an entry that JSON does not write": (
        {"to_json": lambda _: {"kind": "twisted", "sides": {4}}}, "Entry of .*TypeError"
    ),
    "reading an entry": (
        {"from_json": classmethod(lambda cls, entry: cls(4, 4, 0))},
        "Entry of .* must be one that from_json reads as twisted:4x4:2 again",
    ),
    "reading no entry": ({"from_json": classmethod(lambda *_: None)}, "Entry of .*read as None"),
    "reading a name": (
        {"parse": classmethod(lambda cls, text: cls(4, 4, 2 - int(text[-1])))},
        "Name of .* must be one that parse reads as twisted:4x4:2 again, not read as twisted:4x4:0",
    ),
    "a notation of several lines": ({"notation": "a\nb"}, "Notation of .* must be a line of text"),
    "names of nodes": ({"node_name": lambda _, node: node}, "Name of the first node of"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_one_is_refused(what, monkeypatch):
    """A wrong member is refused in one line that names it, before anything is planned."""
    members, message = WRONG[what]
    monkeypatch.setattr(registry, "FAMILIES", dict(registry.FAMILIES))
    simple = {name: value for name, value in members.items() if name in vars(Twisted())}
    others = members.keys() - simple.keys()

    def __init__(self, *arguments):
        Twisted.__init__(self, *arguments)
        vars(self).update(simple)

    body = {name: members[name] for name in others} | {"__init__": __init__}
    family = tf.register_topology(type("Wrong", (Twisted,), body))
    pattern = re.escape(message).replace(r"\.\*", ".*")
    makers: list[Any] = [family]
    if "parse" not in members:
        makers.append(lambda: tf.plan("twisted:4x4:2", "allgather"))
    for make in makers:
        with pytest.raises(tf.InputError, match=f"^{pattern}") as caught:
            make()
        assert "\n" not in str(caught.value)


SIZES = [
    *map(tf.Torus, [(2,), (5,), (4096,), (2, 2), (4, 6), (3, 3, 4), (2, 3, 2, 5), (16, 16, 16)]),
    *map(tf.Arrowhead, range(6)),
]


@pytest.mark.parametrize("topology", few(5, [*SIZES], tuples=True), ids=str)
def test_our_own_are_proved_here(topology):
    """The built-in topologies, which are not validated when made, are valid."""
    validate_cayley_graph(topology)


def test_each_value_is_proved_once():
    """Equal topologies are validated once."""
    asked = []

    class Counting(Twisted):
        def coordinates(self, nodes):
            asked.append(self)
            return super().coordinates(nodes)

    first = Counting()
    count = len(asked)
    assert first == Counting() == Counting(4, 4, 2)
    assert len(asked) == count > 0


class Large(ByCoordinates):
    """A topology of many nodes, whose addition follows from coordinates."""

    kind = "large"

    def __init__(self, rows=49, columns=2401, twist=0):
        super().__init__(rows, columns, twist)

    moduli = property(lambda self: self.sides)

    def coordinates(self, nodes):
        return np.stack(np.divmod(nodes, self.sides[1]))


def test_large_ones_add_by_coordinates():
    """A topology with too many nodes to compare all pairs must not define its own addition."""
    assert Large().diameter == 24 + 1200
    own = type("Own", (Large,), {"add": Twisted.add})
    assert own(64, 64).nodes == MOST_NODES_FOR_PAIRS
    with pytest.raises(tf.InputError, match=r"^Add of .* must be left out, .* above 4096 nodes"):
        own(64, 65)


def test_too_many_arcs_are_not_tried():
    with pytest.raises(tf.InputError, match=r"^Arcs of topology .* must be at most 16777216, not"):
        Large(40000, 50000)


def test_a_subclass_of_ours_is_the_same_network():
    """A subclass must have the neighbours of its class, because algorithms rely on these."""
    assert type("Renamed", (tf.Torus,), {"node_name": lambda self, node: f"n{node}"})(3, 4)
    swapped = {"generators": property(lambda self: tf.Torus(self.sides).generators[[2, 3, 0, 1]])}
    with pytest.raises(tf.InputError, match=r"^Neighbours of .* must be those of 4x4, for its cla"):
        type("Swapped", (tf.Torus,), swapped)(4, 4)
    rolled = {"generators": property(lambda self: np.roll(tf.Arrowhead(2).generators, 1))}
    with pytest.raises(tf.InputError, match=r"^Neighbours of .* must be those of arrowhead:2"):
        type("Rolled", (tf.Arrowhead,), rolled)(2)


@pytest.mark.parametrize("family", [int, "torus", type("Bare", (CayleyGraph,), {"kind": "bare"})])
def test_what_is_registered_is_a_class_of_topologies(family):
    with pytest.raises(tf.InputError, match=r"^Class of topologies .*must"):
        tf.register_topology(family)


@pytest.mark.parametrize("text", ["twisted:axb:c", "x", 4, None, ["4x4"], b"4x4"])
def test_what_names_no_topology(text, monkeypatch):
    """Anything that names no topology is refused in one line, even if a class fails to read it."""
    monkeypatch.setattr(registry, "FAMILIES", dict(registry.FAMILIES))
    careless = classmethod(lambda cls, text: cls(int(text.split(":")[1])) if ":" in text else None)
    tf.register_topology(type("Careless", (Twisted,), {"parse": careless}))
    with pytest.raises(tf.InputError, match=r"^Topology must be .*, not ") as caught:
        tf.parse_topology(text)
    assert "\n" not in str(caught.value)
