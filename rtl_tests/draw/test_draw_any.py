"""Pictures of topologies from other packages."""

import json
import re

import numpy as np
import pytest
from cayley_graphs import AnyGraph
from helpers import few

import torusfabric as tf
from torusfabric.draw import draw, heat_map
from torusfabric.draw.animate import animation_page
from torusfabric.draw.graph_layout import MOST_SPRING_NODES, graph_layout, layout_of
from torusfabric.draw.moving import moving_picture

UNIT = np.eye(5, dtype=int).tolist()

GRAPHS = [
    AnyGraph((13,), [(1,), (-1,), (5,), (-5,)]),
    AnyGraph((2, 8), [(0, 1), (0, -1), (1, -2), (1, 2)]),
    AnyGraph((2, 2), [(1, 0), (1, 0), (0, 1), (0, 1)]),
    AnyGraph((3, 4, 5), [(1, 1, 0), (-1, -1, 0), (0, 1, 1), (0, -1, -1), (0, 0, 1), (0, 0, -1)]),
    AnyGraph((2,) * 5, UNIT),
    AnyGraph((2, 1, 1), [(1, 0, 0)]),
    AnyGraph((6,), [(1,), (-1,), (3,), (3,), (3,), (0,)]),
    AnyGraph((5,), [(1,), (-1,), (1,), (-1,), (2,), (-2,)]),
]


@pytest.mark.parametrize("topology", [*GRAPHS, tf.Torus(2, 3, 2), tf.Arrowhead(1)], ids=str)
def test_layouts_show_every_link_once(topology):
    """A layout shows every link once, as a line or as two stubs."""
    layout = layout_of(topology)
    nodes, joined = np.arange(topology.nodes)[:, None], layout.is_line
    places = np.round(layout.positions.T, 6)
    assert len(np.unique(places, axis=0)) == topology.nodes
    assert (joined == joined[topology.neighbours, topology.opposite]).all()
    assert not (joined & (topology.neighbours == nodes)).any(), "loops are stubs"
    lines = {frozenset((v, int(topology.neighbours[v, p]))) for v, p in np.argwhere(joined)}
    shown = layout.drawn_links.tolist()
    assert len(lines) == sum(joined[v, p] for v, p in shown), "no line covers another"
    stubs = [(v, p) for v, p in shown if not joined[v, p]]
    assert len(stubs) == (~joined).sum()
    assert (np.hypot(*np.moveaxis(layout.hop_vectors, 2, 0)) > 0.8).all()


def test_circles_and_springs_draw_lines():
    """In layouts on circles and by springs, only loops and links over another line are stubs."""
    for topology in (GRAPHS[0], GRAPHS[4]):
        assert graph_layout(topology).is_line.all()
    assert (~graph_layout(GRAPHS[6]).is_line).sum() == 6 * 2 + 6


def test_grids_draw_what_passes_no_node():
    """In a grid layout, a hop that would cross a node is a stub."""
    layout = graph_layout(AnyGraph((5, 6), [(0, 1), (0, -1), (2, 0), (-2, 0), (2, 1), (-2, -1)]))
    joined = layout.is_line.sum(axis=0).tolist()
    assert joined == [25, 25, 0, 0, 15, 15]


@pytest.mark.parametrize("topology", GRAPHS, ids=str)
@pytest.mark.parametrize("collective", few(1, ["broadcast", "allgather", "alltoall"]))
def test_any_topology_is_drawn(topology, collective):
    """Any topology has a picture, a heat map, a moving picture and an animation."""
    schedule = tf.plan(topology, collective)
    text = draw(schedule)
    assert text == draw(tf.plan(topology, collective))
    assert "nan" not in text
    for node in range(topology.nodes):
        assert f"node {node} &lt;{node}&gt;" in text
    assert "<svg" in heat_map(schedule)
    program = tf.compile(schedule)
    moving = moving_picture(program, 0)
    assert "<animate" in moving
    assert "nan" not in moving
    found = re.search(r'id="data"[^>]*>(.*?)</script>', animation_page(program), re.S)
    data = json.loads(found[1])
    assert len(data["nodes"]) == topology.nodes
    assert len(data["steps"]) in (1, topology.nodes)
    assert all(len(row) == topology.ports for row in data["steps"])


def test_a_page_of_a_torus_has_one_row_of_steps():
    """The page of a torus has one row of steps for all nodes."""
    program = tf.compile(tf.plan("3x4", "allgather"))
    data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', animation_page(program), re.S)[1])
    assert data["steps"] == [[[0, 1], [0, -1], [1, 0], [-1, 0]]]


def test_very_many_nodes_stand_on_a_circle():
    """Many nodes are placed on a circle, because a layout by springs would take minutes."""
    topology = AnyGraph((2,) * 11, np.eye(11, dtype=int).tolist())
    assert topology.nodes > MOST_SPRING_NODES
    radius = np.hypot(*graph_layout(topology).positions)
    assert np.ptp(radius) < 1e-6
