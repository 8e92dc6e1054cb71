"""Arc-disjoint and link-disjoint spanning trees of tori, and the collectives that use them."""

from itertools import product

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric.algorithms.oblivious.shallow_trees import make_shallower
from torusfabric.algorithms.oblivious.spanning_trees import (
    bounded_disjoint_trees,
    disjoint_trees,
    link_disjoint_trees,
    shallow_disjoint_trees,
    shortest_path_tree,
)
from torusfabric.topology import Torus, parse_topology, require_cayley_graph

SIDES = [
    *((n,) for n in range(2, 9)),
    *product(range(2, 7), repeat=2),
    *product((2, 3, 5), repeat=3),
    *product((2, 3), repeat=4),
]


def check_trees(topology, trees):
    """Check that trees span all nodes from node 0, have the stated depths, and share no arc."""
    nodes, arcs, port = np.arange(topology.nodes), [], topology.opposite[trees.entry]
    for ports, depths in zip(port, trees.depth, strict=True):
        parent = topology.subtract(nodes, topology.generators[ports])
        assert depths[0] == 0
        assert (depths[1:] > 0).all()
        assert (depths[parent[1:]] == depths[1:] - 1).all()
        arcs += (parent[1:] * topology.ports + ports[1:]).tolist()
    assert len(arcs) == len(set(arcs)) == len(port) * (topology.nodes - 1)


@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_trees_share_no_arc(sides):
    """A torus has as many arc-disjoint spanning trees as ports."""
    torus = Torus(sides)
    trees = disjoint_trees(torus)
    assert len(trees.entry) == torus.ports
    check_trees(torus, trees)
    assert trees.height <= 1 + sum(side - 1 for side in sides)


@pytest.mark.parametrize("sides", few(9, [s for s in SIDES if min(s) > 2], tuples=True), ids=str)
def test_nearer_trees_share_no_arc(sides):
    """Bounded trees share no arc, and are at most the diameter + longest side / 2 + 1 deep."""
    torus = Torus(sides)
    trees = bounded_disjoint_trees(torus)
    assert len(trees.entry) == torus.ports
    check_trees(torus, trees)
    assert trees.height <= torus.diameter + max(sides) // 2 + 1


@pytest.mark.parametrize("sides", [(7, 7, 7), (16, 16), (16, 16, 16)], ids=str)
def test_larger_tori_have_trees_of_at_most_half_a_side_more_than_the_diameter(sides):
    """On larger tori, a search that starts from these bounded trees finds shallower ones."""
    torus = Torus(sides)
    assert shallow_disjoint_trees(torus).height < torus.diameter + sides[0] // 2


@pytest.mark.parametrize("sides", SIDES[::3], ids=str)
def test_shallow_trees_share_no_arc(sides):
    """Shallow trees are as many as ports, share no arc, and are no deeper than plain trees."""
    torus = Torus(sides)
    trees = shallow_disjoint_trees(torus)
    assert len(trees.entry) == torus.ports
    check_trees(torus, trees)
    assert trees.height <= disjoint_trees(torus).height


def check_link_trees(topology, trees):
    """Check that trees span all nodes, have the stated depths and roots, and share no link."""
    nodes, links = np.arange(topology.nodes), []
    for entry, depth in zip(*trees, strict=True):
        (root,) = np.flatnonzero(depth == 0)
        others = nodes != root
        parent = topology.neighbours[nodes, entry]
        assert (depth[others] == depth[parent[others]] + 1).all()
        arcs = np.stack(
            [nodes * topology.ports + entry, parent * topology.ports + topology.opposite[entry]]
        )
        links += arcs.min(axis=0)[others].tolist()
    assert len(links) == len(set(links)) == len(trees.entry) * (topology.nodes - 1)


@pytest.mark.parametrize("sides", few(34, [*SIDES], tuples=True), ids=str)
def test_trees_share_no_link(sides):
    """A torus has as many link-disjoint trees as axes.

    The search for shallower trees keeps their roots.
    """
    torus = Torus(sides)
    trees = link_disjoint_trees(torus)
    assert len(trees.entry) == len(sides)
    check_link_trees(torus, trees)
    most = max(-(-side // 2) + sum(s - 1 for s in sides) - (side - 1) for side in sides)
    assert trees.height <= most
    found = make_shallower(torus, trees, links=True, least=torus.diameter)
    check_link_trees(torus, found)
    assert (found.depth == 0).tolist() == (trees.depth == 0).tolist()
    assert torus.diameter <= found.height <= trees.height


@pytest.mark.parametrize(
    ("name", "arcs", "links"),
    [
        ("4x4", 5, 4),
        ("8x8", 9, 8),
        ("5x7", 7, 6),
        ("4x4x4", 7, 6),
        ("2x2x2x2", 5, 4),
        ("12x12", 16, 14),  # the first start of the search gives 16; other starts give 14
    ],
)
def test_heights(name, arcs, links):
    """Trees without common arcs are about as deep as the diameter plus one.

    Trees without common links are about as deep as the diameter.
    """
    torus = Torus(*map(int, name.split("x")))
    assert shallow_disjoint_trees(torus)[1].max() <= arcs
    trees = link_disjoint_trees(torus)
    assert make_shallower(torus, trees, links=True, least=torus.diameter).height <= links


@pytest.mark.parametrize("sides", SIDES[::4], ids=str)
def test_allreduce_streams(sides):
    """A streamed all-reduce delivers the sum at each length, within the promised cycles."""
    torus = Torus(sides)
    schedule = tf.plan(torus, "allreduce", algorithm="spanning-tree")
    assert schedule.chunks == len(sides)
    tf.check(schedule)
    for flits in (1, 13):
        program = tf.compile(schedule, flits=flits)
        words = np.random.default_rng(flits).integers(0, 2**60, (torus.nodes, flits), np.uint64)
        assert (program.execute(words) == words.sum(axis=0)).all()
        # A hop upwards takes two cycles, and one more if a child waits for another child.
        height = schedule.steps // 2
        assert program.cycles() <= 3 * height + -(-flits // len(sides)) + 6 + height // 2


@pytest.mark.parametrize(
    ("name", "flits"), [("8x8", 16), ("8x8", 64), ("7x7x7", 16), ("7x7x7", 64)]
)
def test_allreduce_is_near_the_limit(name, flits):
    """An all-reduce takes at most 1.05 times the volume, four diameters and twelve cycles."""
    schedule = tf.plan(name, "allreduce", algorithm="spanning-tree")
    nodes, ports = schedule.topology.nodes, schedule.topology.ports
    volume = 2 * flits * (nodes - 1) / (nodes * ports)
    goal = 1.05 * volume + 4 * schedule.topology.diameter + 12
    assert tf.compile(schedule, flits=flits).cycles() <= goal


@pytest.mark.parametrize("name", ["2", "7", "4x4", "3x5", "2x3x4", "3x3x3x3", "arrowhead:2"])
def test_shortest_tree(name):
    """The shortest-path tree has the distance of each node as its depth."""
    topology = require_cayley_graph(parse_topology(name))
    trees = shortest_path_tree(topology)
    check_trees(topology, trees)
    assert (trees.depth[0] == topology.distances).all()


@pytest.mark.parametrize("sides", SIDES[::5], ids=str)
@pytest.mark.parametrize("trees", [None, 1])
def test_broadcast_streams(sides, trees):
    """A streamed broadcast delivers every word, at each length, within the predicted cycles."""
    torus = Torus(sides)
    root = torus.nodes - 1
    schedule = tf.plan(torus, "broadcast", algorithm="spanning-tree", root=root, trees=trees)
    assert isinstance(schedule, tf.Pattern)
    assert schedule.streams
    assert schedule.chunks == (trees or torus.ports)
    for flits in (1, 2, schedule.chunks + 1, 13):
        program = tf.compile(schedule, flits=flits)
        words = np.random.default_rng(flits).integers(0, 2**31, (torus.nodes, program.send_words))
        assert (program.execute(words) == words[root, :flits]).all()
        assert program.cycles() == schedule.steps + -(-flits // schedule.chunks) + 4


@pytest.mark.parametrize("trees", [None, 1])
def test_any_root(trees):
    """A run can choose root and length."""
    schedule = tf.plan("3x4", "broadcast", algorithm="spanning-tree", trees=trees)
    program = tf.compile(schedule, max_flits=9, root="any")
    words = np.random.default_rng(0).integers(0, 2**31, (12, 9))
    for root, length in ((0, 9), (5, 1), (11, 6)):
        received = program.execute(words[:, :length], root=root, length=length)
        others = np.arange(12) != root
        assert (received[others] == words[root, :length]).all()
