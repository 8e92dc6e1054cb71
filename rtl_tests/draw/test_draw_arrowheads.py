"""Drawing arrowheads: where nodes lie, and what each panel shows."""

from xml.etree import ElementTree

import numpy as np
import pytest
from drawn import SPACE, forest, trees

from torusfabric.draw import contents, draw
from torusfabric.draw.layout import arrowhead_layout, hexagon_layout
from torusfabric.topology import Arrowhead


@pytest.mark.parametrize("order", range(5))
def test_arrowhead_needs_no_stubs_for_its_tree(order):
    """In the arrowhead as it is built, both trees, one turned, are drawn with unbroken lines."""
    topology = Arrowhead(order)
    for turned, part in ((False, trees(order, trees=1)), (True, trees(order, trees=2))):
        joined = arrowhead_layout(topology, turned=turned).joined
        for transfers in part.rounds():
            mine = transfers.payload.ids == int(turned)
            assert joined[transfers.source[mine], transfers.hops[mine, 0]].all()


@pytest.mark.parametrize("order", range(6))
def test_arrowhead_layout_is_sierpinski_like(order):
    """All nodes lie in the triangle, four copies of the order below, the corners of it empty."""
    layout = arrowhead_layout(Arrowhead(order))
    assert len(np.unique(layout.positions.round(6), axis=1).T) == 4**order
    assert (-layout.positions[1]).max() == 2**order - 1
    tip = -layout.positions[1] > 2**order / 2
    # A node in the hexagon is drawn at the same place in both pictures; a head moves by 2^n.
    moved = hexagon_layout(Arrowhead(order)).positions - layout.positions
    assert np.allclose(moved[:, tip], [[0], [2**order]])
    heads = np.hypot(*moved) > 1e-6
    assert heads.sum() == 3 * tip.sum()
    if order:
        inner = arrowhead_layout(Arrowhead(order - 1)).positions
        north = layout.positions[:, 4 ** (order - 1) : 2 * 4 ** (order - 1)]
        assert np.allclose(north, inner - [[0], [2 ** (order - 1)]])


@pytest.mark.parametrize("order", range(6))
def test_hexagon_has_no_holes(order):
    """Folded, all nodes lie in a hexagon whose sides are 2^(n-1) hops from the middle."""
    layout = hexagon_layout(Arrowhead(order))
    assert len(np.unique(layout.positions.round(6), axis=1).T) == 4**order
    across = layout.steps.T @ layout.positions
    assert across.max() <= 2**order / 2 + 1e-9
    # the only links that are no lines are those across the border: fewer than along a whole side
    assert (~layout.joined).sum() <= 12 * 2**order


def test_nine_triangles():
    """The arrowhead's triangle is divided into six of the hexagon and three heads, all equal."""
    layout = arrowhead_layout(Arrowhead(3))
    assert len(layout.regions) == 9
    areas = []
    for region in layout.regions:
        a, b, c = region.corners.T
        areas.append(abs(np.linalg.det([b - a, c - a])) / 2)
    assert areas == pytest.approx([areas[0]] * 9)
    # the hexagon has the area of all nodes, each of which has half the root of 3
    assert 6 * areas[0] == pytest.approx(64 * 3**0.5 / 2)
    assert [text for *_, text in layout.captions] == ["T1", "T2", "T3"]
    assert [text for *_, text in hexagon_layout(Arrowhead(3)).captions] == ["U1", "U2", "U3"]


def test_forest_panels():
    """The two halves on the arrowhead and the arrowhead turned, and both on the hexagon."""
    picture = contents(forest(3))
    assert [panel.title for panel in picture.panels] == [
        "first half: N, SW, SE",
        "second half: S, NE, NW",
        "both, folded to a hexagon",
    ]
    first, second, both = (len(panel.strokes) for panel in picture.panels)
    assert first == second == 63
    assert both == 126
    assert [key.text for key in picture.keys] == [
        "round 1: 6 paths, up to 4 hops",
        "round 2: 24 paths, up to 2 hops",
        "round 3: 96 paths, 1 hop each",
    ]
    assert len({stroke.colour for stroke in picture.panels[0].strokes}) == 3


def test_forest_on_three_ports():
    """One half, two pictures."""
    titles = [panel.title for panel in contents(forest(2, ports=3)).panels]
    assert titles == ["all rounds: N, SW, SE", "folded to a hexagon"]


def test_hops_across_the_border_of_the_hexagon():
    """They lead to second pictures of nodes, not to stubs: one for each place beyond the border."""
    schedule = trees(2)
    text = draw(schedule)
    discs = len(ElementTree.fromstring(text).findall(f".//{SPACE}circle"))
    hexagon = hexagon_layout(schedule.topology)
    beyond = set()
    for stroke in contents(schedule).panels[2].strokes:
        if not hexagon.joined[stroke.node, stroke.ports[0]]:
            place = hexagon.positions[:, stroke.node] + hexagon.hops[stroke.node, stroke.ports[0]]
            beyond.add(tuple(place.round(3)))
    assert beyond
    assert discs == 3 * 16 + len(beyond)


@pytest.mark.parametrize("packets", [1, 4])
def test_tree_panels(packets):
    """Packets that follow one another are one tree; a tree has as many lines as it has arcs."""
    picture = contents(trees(3, packets=packets))
    assert [len(panel.strokes) for panel in picture.panels] == [63, 63, 126]
    assert [key.text for key in picture.keys] == ["tree 1:", "tree 2:"]
    assert picture.keys[0].last == "step 7"
