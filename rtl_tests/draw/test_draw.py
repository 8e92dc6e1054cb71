"""Pictures of schedules, on tori and arrowheads: their content and their layout."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from drawn import SPACE, circuits, forest, rods_pattern, rows_pattern, trees, words
from helpers import few

from torusfabric.collective import Collective
from torusfabric.draw import draw, make_picture
from torusfabric.draw.layout import arrowhead_layout, hexagon_layout, torus_layout
from torusfabric.draw.svg import Svg, colour_at, mix_colours
from torusfabric.errors import InputError
from torusfabric.planning import plan
from torusfabric.schedule import Lifted, Listed, Rounds, Switching, Table, Transfers
from torusfabric.topology import Arrowhead, Torus


@pytest.mark.parametrize(
    "schedule",
    few(
        9,
        [
            *(forest(order, ports=ports) for order in (0, 1, 2, 3) for ports in (3, 6)),
            *(trees(order, trees=count) for order in (0, 1, 2, 3) for count in (1, 2)),
            rows_pattern(3, 4),
            rods_pattern(6, 5),
        ],
        tuples=True,
    ),
    ids=lambda schedule: f"{schedule.algorithm}-{schedule.topology}-{schedule.ports}",
)
def test_document(schedule):
    """A picture is well-formed, with title and subtitle, and every node number in every panel."""
    text = draw(schedule)
    found = words(text)
    heading = f"{schedule.topology} {schedule.collective}, {schedule.algorithm}"
    assert heading in found
    assert any(word.startswith(f"{schedule.round_count} ") for word in found if word)
    panels = len(make_picture(schedule).panels)
    for node in range(schedule.topology.nodes):
        assert found.count(str(node)) >= panels
    names = [element.text for element in ElementTree.fromstring(text).iter(f"{SPACE}title")]
    assert names.count(f"node 0 {schedule.topology.node_name(0)}") >= panels


def test_same_schedule_same_picture():
    """The same schedule gives the same picture."""
    assert draw(forest(2)) == draw(forest(2))


def test_everything_lies_on_the_page():
    """All coordinates are on the page."""
    for schedule in (forest(3), trees(3), rods_pattern(6, 5)):
        text = draw(schedule)
        ((width, height),) = np.array(
            re.findall(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', text), float
        )
        points = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", text)
        x, y = np.array(points, float).T
        assert x.min() >= 0
        assert y.min() >= 0
        assert x.max() <= width
        assert y.max() <= height


def test_a_broadcast_by_a_pattern_shows_its_trees():
    """A broadcast by a pattern has a panel for each tree, and one with both folded to a hexagon."""
    schedule = plan("arrowhead:2", "broadcast", algorithm="spanning-tree")
    assert schedule.form == "pattern"
    picture = make_picture(schedule)
    titles = [panel.title for panel in picture.panels]
    assert titles == ["tree 1: chunk 0", "tree 2: chunk 1", "both, folded to a hexagon"]
    assert [len(panel.strokes) for panel in picture.panels] == [15, 15, 30]
    assert not any("cycle" in key.text for key in picture.keys)


def test_rounds_on_a_torus():
    """Each round has a panel and a colour; a node has the colour of the round that reaches it."""
    schedule = circuits(Torus((3, 3)), [[(0, [0, 2])], [(0, [3]), (4, [2])]])
    picture = make_picture(schedule)
    assert [panel.title for panel in picture.panels] == ["round 1", "round 2"]
    first, second = picture.panels
    assert first.fills[4] == first.strokes[0].colour
    assert second.fills[4] != first.fills[4]
    assert second.fills[2] == second.fills[5] == second.strokes[0].colour
    assert second.fills[8] == "#ffffff"
    assert [key.text for key in picture.keys] == [
        "round 1: 1 path, up to 2 hops",
        "round 2: 2 paths, 1 hop each",
    ]


def test_many_rounds_share_a_panel():
    """If there are too many rounds for panels, each arc has the colour of its first use."""
    rounds = [[(node, [2])] for node in range(9)] + [[(0, [2, 2])], [(0, [0])]] * 2
    picture = make_picture(circuits(Torus((3, 3)), rounds, kind="allgather"))
    (panel,) = picture.panels
    assert len(panel.strokes) == 10
    assert (picture.keys[0].first, picture.keys[0].last) == ("round 1", "round 13")


def test_table_is_drawn_as_the_tree_of_node_0():
    """A table is drawn as the paths of node 0's message, with node 0 in the middle."""
    ring = Torus((5,))
    table = Table(
        topology=ring,
        collective=Collective("allgather"),
        algorithm="ring",
        switching=Switching.STORE_AND_FORWARD,
        ports=2,
        offset=np.array([[1, 4], [2, 3]]),
        chunk=np.zeros((2, 2), int),
    )
    picture = make_picture(table)
    (panel,) = picture.panels
    arcs = [(stroke.node, stroke.ports) for stroke in panel.strokes]
    assert arcs == [(0, (0,)), (0, (1,)), (1, (0,)), (4, (1,))]
    assert panel.layout.positions[0].tolist() == [2, 3, 4, 0, 1]
    assert "the message of node 0" in picture.subtitle


@pytest.mark.parametrize("sides", [(5,), (2, 2), (3, 4), (3, 4, 5), (2, 3, 2, 3), (2,) * 5])
def test_torus_layout(sides):
    """Each node has a position of its own beside its neighbours.

    Links across the border are stubs.
    """
    torus = Torus(sides)
    layout = torus_layout(torus)
    assert len(np.unique(layout.positions.round(6), axis=1).T) == torus.nodes
    gaps = layout.positions[:, :, None] - layout.positions[:, None, :]
    apart = np.hypot(*gaps) + 9 * np.eye(torus.nodes)
    assert apart.min() >= 1 - 1e-9
    lines = layout.is_line.sum(axis=0)
    rows = (1, *sides)[-2]
    for port in range(torus.ports):
        side = sides[port // 2]
        drawn = torus.nodes // side * (side - 1) if port // 2 >= len(sides) - 2 else 0
        assert lines[port] == drawn, rows


def test_layers():
    """Seven layers are in one row beside other panels, and in a block if they are alone."""
    cube = Torus((7, 7, 7))
    row = torus_layout(cube, in_one_row=True)
    assert np.ptp(row.positions[1]) == 6
    block = torus_layout(cube)
    assert 1 < np.ptp(block.positions[0]) / np.ptp(block.positions[1]) < 3
    assert [text for *_, text in row.captions] == [f"({x},·,·)" for x in range(7)]


@pytest.mark.parametrize("centre", [0, 7, 19])
def test_centre(centre):
    """The root of a broadcast is in the middle."""
    layout = torus_layout(Torus((4, 5)), centre=centre)
    assert layout.positions[:, centre].tolist() == [2, 2]


def test_too_many_nodes():
    """A network with too many nodes is refused."""
    schedule = circuits(Torus((65, 64)), [[(0, [0])]])
    with pytest.raises(
        InputError,
        match=r"^Drawing must have at most 4096 nodes, not 4160; choose a smaller network$",
    ):
        draw(schedule)


def test_empty_rounds():
    """Schedules with empty rounds, or without rounds, can be drawn."""
    torus = Torus((3, 3))
    empty = Transfers(np.zeros(0, int), np.zeros((0, 0), np.int8), Listed.single(np.zeros(0, int)))
    for transfers in ((), (empty,)):
        for switching in Switching:
            schedule = Rounds(
                topology=torus,
                collective=Collective("broadcast", 0),
                algorithm="none",
                switching=switching,
                ports=4,
                transfers=transfers,
            )
            assert "8" in words(draw(schedule))


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [("allgather@1", "hamiltonian"), ("alltoall@0", "matching"), ("broadcast@1", "max-flow")],
)
def test_groups_are_drawn_alike(collective, algorithm):
    """All groups are drawn with the lines and colours of one group, along their own axes."""
    schedule = plan("3x4", collective, algorithm=algorithm, check=False)
    assert isinstance(schedule, Lifted)
    groups = schedule.blocks.groups
    whole, part = make_picture(schedule), make_picture(schedule.part)
    assert whole.title == f"3x4 {collective}, {algorithm}"
    assert whole.subtitle == f"{part.subtitle}; in each of {groups.n_groups} groups"
    for panel, alone in zip(whole.panels, part.panels, strict=True):
        assert len(panel.strokes) == groups.n_groups * len(alone.strokes)
        assert {port for stroke in panel.strokes for port in stroke.ports} <= set(
            groups.port_in_topology
        )
        starts = {(stroke.node, tuple(stroke.ports)) for stroke in panel.strokes}
        for stroke in alone.strokes:
            ports = tuple(groups.port_in_topology[list(stroke.ports)])
            assert {(node, ports) for node in groups.members[:, stroke.node]} <= starts
        for members in groups.members:
            assert [panel.fills[node] for node in members] == alone.fills
    assert "11" in words(draw(schedule))


def test_colours():
    """Colours between two colours are interpolated."""
    assert mix_colours("#000000", "#ff8000", 0.5) == "#804000"
    assert colour_at(("#000000", "#ffffff", "#ff0000"), 1) == "#ff0000"
    assert colour_at(("#000000", "#ffffff", "#ff0000"), 0.25) == "#808080"


def test_text_is_escaped():
    """Text is escaped in the document."""
    svg = Svg()
    svg.add_text(1, 2, "a < b & c", 12)
    assert words(svg.render(10, 10, '"<>"')) == ["a < b & c"]


@pytest.mark.parametrize("order", range(5))
def test_arrowhead_needs_no_stubs_for_its_tree(order):
    """Both trees of an arrowhead are drawn with unbroken lines, the second one turned."""
    topology = Arrowhead(order)
    for turned, part in ((False, trees(order, trees=1)), (True, trees(order, trees=2))):
        joined = arrowhead_layout(topology, turned=turned).is_line
        for transfers in part.rounds():
            mine = transfers.payload.ids == int(turned)
            assert joined[transfers.source[mine], transfers.hops[mine, 0]].all()


@pytest.mark.parametrize("order", range(6))
def test_arrowhead_layout_is_sierpinski_like(order):
    """All nodes of an arrowhead lie in a triangle of four copies of the previous order."""
    layout = arrowhead_layout(Arrowhead(order))
    assert len(np.unique(layout.positions.round(6), axis=1).T) == 4**order
    assert (-layout.positions[1]).max() == 2**order - 1
    tip = -layout.positions[1] > 2**order / 2
    # A node in the hexagon has the same position in both pictures. A head moves by 2^n.
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
    """All nodes lie in a hexagon with sides of 2^(n-1) hops, and few links are stubs."""
    layout = hexagon_layout(Arrowhead(order))
    assert len(np.unique(layout.positions.round(6), axis=1).T) == 4**order
    across = layout.steps.T @ layout.positions
    assert across.max() <= 2**order / 2 + 1e-9
    # only links across the border are no lines: fewer than along a whole side
    assert (~layout.is_line).sum() <= 12 * 2**order


def test_nine_triangles():
    """The triangle is divided into nine equal triangles: six of the hexagon, and three heads."""
    layout = arrowhead_layout(Arrowhead(3))
    assert len(layout.regions) == 9
    areas = []
    for region in layout.regions:
        a, b, c = region.corners.T
        areas.append(abs(np.linalg.det([b - a, c - a])) / 2)
    assert areas == pytest.approx([areas[0]] * 9)
    # the hexagon has the area of all nodes; each node has an area of half the root of 3
    assert 6 * areas[0] == pytest.approx(64 * 3**0.5 / 2)
    assert [text for *_, text in layout.captions] == ["T1", "T2", "T3"]
    assert [text for *_, text in hexagon_layout(Arrowhead(3)).captions] == ["U1", "U2", "U3"]


def test_forest_panels():
    """A forest has panels for both halves, and a panel with both on the hexagon."""
    picture = make_picture(forest(3))
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
    """A forest on three ports has two panels, both for one half."""
    titles = [panel.title for panel in make_picture(forest(2, ports=3)).panels]
    assert titles == ["all rounds: N, SW, SE", "folded to a hexagon"]


def test_hops_across_the_border_of_the_hexagon():
    """A hop across the border of the hexagon leads to a second picture of its node."""
    schedule = trees(2)
    text = draw(schedule)
    discs = len(ElementTree.fromstring(text).findall(f".//{SPACE}circle"))
    hexagon = hexagon_layout(schedule.topology)
    beyond = set()
    for stroke in make_picture(schedule).panels[2].strokes:
        if not hexagon.is_line[stroke.node, stroke.ports[0]]:
            place = (
                hexagon.positions[:, stroke.node]
                + hexagon.hop_vectors[stroke.node, stroke.ports[0]]
            )
            beyond.add(tuple(place.round(3)))
    assert beyond
    assert discs == 3 * 16 + len(beyond)


@pytest.mark.parametrize("packets", [1, 4])
def test_tree_panels(packets):
    """Packets that follow one another are drawn as one tree, with one line for each arc."""
    picture = make_picture(trees(3, packets=packets))
    assert [len(panel.strokes) for panel in picture.panels] == [63, 63, 126]
    assert [key.text for key in picture.keys] == ["tree 1:", "tree 2:"]
    assert picture.keys[0].last == "step 7"


def test_relays_are_squares():
    """Nodes that only relay are squares, all others discs; a title says what a mark is."""
    text = draw(plan("3x3", "broadcast", relays=[1, 5]))
    root = ElementTree.fromstring(text)
    squares = root.findall(f".//{SPACE}rect/{SPACE}title")
    discs = root.findall(f".//{SPACE}circle")
    panels = len(discs) // 7
    assert (len(discs), len(squares)) == (7 * panels, 2 * panels)
    assert {title.text for title in squares} == {"relay 1 (0,1)", "relay 5 (1,2)"}
