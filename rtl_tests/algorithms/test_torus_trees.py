"""Arc-disjoint spanning trees of tori, and broadcasts over them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.algorithms import Options, find
from torusfabric.algorithms.oblivious.spanning_trees import disjoint_trees, shortest_tree
from torusfabric.collective import parse_collective
from torusfabric.schedule.recognise import recognise
from torusfabric.topology import Torus, parse_topology

SIDES = [
    *((n,) for n in range(2, 9)),
    *product(range(2, 7), repeat=2),
    *product((2, 3, 5), repeat=3),
    *product((2, 3), repeat=4),
]


def check_trees(topology, port, depth):
    """Trees span all nodes from node 0, are as deep as they say, and share no arc."""
    nodes, arcs = np.arange(topology.nodes), []
    for ports, depths in zip(port, depth, strict=True):
        parent = topology.subtract(nodes, topology.generators[ports])
        assert depths[0] == 0
        assert (depths[1:] > 0).all()
        assert (depths[parent[1:]] == depths[1:] - 1).all()
        arcs += (parent[1:] * topology.ports + ports[1:]).tolist()
    assert len(arcs) == len(set(arcs)) == len(port) * (topology.nodes - 1)


@pytest.mark.parametrize("sides", SIDES, ids=str)
def test_trees_share_no_arc(sides):
    """As many trees as ports, each of all nodes."""
    torus = Torus(sides)
    port, depth = disjoint_trees(torus)
    assert len(port) == torus.ports
    check_trees(torus, port, depth)
    assert depth.max() <= 1 + sum(side - 1 for side in sides)


@pytest.mark.parametrize("name", ["2", "7", "4x4", "3x5", "2x3x4", "3x3x3x3", "arrowhead:2"])
def test_shortest_tree(name):
    """A tree of shortest paths."""
    topology = parse_topology(name)
    port, depth = shortest_tree(topology)
    check_trees(topology, port, depth)
    assert (depth[0] == topology.distances).all()


@pytest.mark.parametrize("sides", SIDES[::5], ids=str)
@pytest.mark.parametrize("trees", [None, 1])
def test_broadcast_streams(sides, trees):
    """What is planned is right, and every node gets every word, of any length, from any root."""
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
    """A run may choose the root, and the length."""
    schedule = tf.plan("3x4", "broadcast", algorithm="spanning-tree", trees=trees)
    program = tf.compile(schedule, max_flits=9, root="any")
    words = np.random.default_rng(0).integers(0, 2**31, (12, 9))
    for root, length in ((0, 9), (5, 1), (11, 6)):
        received = program.execute(words[:, :length], root=root, length=length)
        others = np.arange(12) != root
        assert (received[others] == words[root, :length]).all()


def test_file_keeps_the_form(tmp_path):
    """A file is recognised as what was written."""
    schedule = tf.plan("3x4", "broadcast", algorithm="spanning-tree", root=5)
    schedule.save(tmp_path / "plan.json")
    loaded = tf.load(tmp_path / "plan.json")
    assert isinstance(loaded, tf.Pattern)
    assert isinstance(schedule, tf.Pattern)
    assert loaded.streams
    assert (loaded.feed == schedule.feed).all()
    assert (loaded.inject == schedule.inject).all()


def test_fault_is_found():
    """A node that is fed by the wrong in-port lacks a chunk."""
    schedule = tf.plan("4x4", "broadcast", algorithm="spanning-tree")
    assert isinstance(schedule, tf.Pattern)
    feed = schedule.feed.copy()
    node, port = np.argwhere(feed >= 0)[3]
    feed[node, port] = -1
    with pytest.raises(tf.ScheduleError):
        tf.check(replace(schedule, feed=feed))


def test_misfits():
    """Trees are one or as many as ports, a chunk for each."""
    torus, broadcast = Torus(4, 4), parse_collective("broadcast")
    algorithm = find("spanning-tree")
    for options, need in [
        (Options(trees=2), "--trees 1 or 4"),
        (Options(chunks=3), "--chunks 4, one for each tree"),
        (Options(ports=2), "--ports 4"),
        (Options(packets=2), "--packets left out on a torus, where messages stream flit by flit"),
    ]:
        assert algorithm.why_not(torus, broadcast, options) == need
    assert recognise(algorithm(torus, broadcast)).form == "pattern"
