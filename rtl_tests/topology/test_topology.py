"""Topologies: how users name them, and a class of topologies that registers itself."""

import networkx as nx
import numpy as np
import pytest

from torusfabric.algorithms import find
from torusfabric.analysis.check import check
from torusfabric.collective import parse_collective
from torusfabric.errors import InputError
from torusfabric.schedule.file import load, save
from torusfabric.topology import (
    CayleyGraph,
    Torus,
    parse_topology,
    register_topology,
    registry,
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
    """Neighbours, distances and translations, against an independent graph library."""
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


class Circulant(CayleyGraph):
    """A ring of N nodes with chords of a given length."""

    kind = "ring"
    notation = "ring:NODES:CHORD"
    entry = '{"kind": "ring", "nodes": .., "chord": ..}'
    ports = 4
    port_names = ("right", "left", "up", "down")

    def __init__(self, nodes, chord):
        self.nodes, self.chord, self.name = nodes, chord, f"ring:{nodes}:{chord}"
        self.opposite = np.arange(4) ^ 1

    @property
    def moduli(self):
        return (self.nodes,)

    @property
    def generators(self):
        return np.array([1, -1, self.chord, -self.chord]) % self.nodes

    @property
    def distances(self):
        graph = nx.circulant_graph(self.nodes, [1, self.chord])
        lengths = nx.single_source_shortest_path_length(graph, 0)
        return np.array([lengths[node] for node in range(self.nodes)])

    @classmethod
    def parse(cls, text):
        family, *numbers = text.split(":")
        return cls(*map(int, numbers)) if family == "ring" else None

    @classmethod
    def from_json(cls, entry):
        return cls(entry["nodes"], entry["chord"])

    def to_json(self):
        return {"kind": self.kind, "nodes": self.nodes, "chord": self.chord}

    def add(self, a, b):
        return np.add(a, b) % self.nodes

    def subtract(self, a, b):
        return np.subtract(a, b) % self.nodes

    def coordinates(self, nodes):
        return np.asarray(nodes)[None]

    def node_name(self, node):
        return str(node)


def test_a_topology_from_outside(tmp_path, monkeypatch):
    """It is named, planned for, checked, and kept in files like any other."""
    with pytest.raises(InputError, match=r"^Topology must be"):
        parse_topology("ring:13:5")
    monkeypatch.setattr(registry, "FAMILIES", dict(registry.FAMILIES))
    register_topology(Circulant)
    register_topology(Circulant)
    topology = parse_topology("ring:13:5")
    schedule = find("matching")(topology, parse_collective("allgather"))
    assert check(schedule).rounds == 3
    path = tmp_path / "plan.json"
    save(schedule, path)
    assert load(path).topology == topology
    with pytest.raises(InputError, match=r"^Topology must be .* or ring:NODES:CHORD, not 'x'"):
        parse_topology("x")


def test_a_kind_is_registered_once():
    class Other(Torus):
        pass

    with pytest.raises(InputError, match=r"^Kind of a topology must be a new one, not 'torus'$"):
        register_topology(Other)
