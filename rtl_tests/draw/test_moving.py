"""Moving pictures of a message, and pictures of the cycles of a pattern."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from drawn import rods_pattern, rows_pattern
from helpers import program_of

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw import make_picture
from torusfabric.draw.cycles import number_cycles
from torusfabric.draw.moving import moving_picture
from torusfabric.errors import InputError
from torusfabric.program.trace import list_arrivals

SVG = "{http://www.w3.org/2000/svg}"


def shown(text):
    """Yield each animated circle and line with the times of its changes, in seconds."""
    root = ElementTree.fromstring(text)
    for element in root:
        change = element.find(f"{SVG}animate")
        if change is not None:
            seconds = float(change.get("dur")[:-1])
            times = [float(time) * seconds for time in change.get("keyTimes").split(";")]
            assert times == sorted(times)
            yield element, times


@pytest.mark.parametrize(
    ("selection", "node"),
    [
        ("4x5 allgather:hamiltonian", 0),
        ("4x4 allgather:matching", 7),
        ("3x3 alltoall:matching", 4),
        ("5x5 broadcast:diagonal", 0),
        ("arrowhead:2 broadcast:wormhole-forest", 0),
        ("3x4 allgather@1:hamiltonian", 5),
    ],
)
def test_hops_are_those_of_the_schedule(selection, node):
    """A moving picture has a line (or two stubs) for each hop, and each node once."""
    program = tf.compile(tf.plan(*selection.split()))
    blocks = program.blocks
    moves = [
        move
        for move in list_arrivals(program)
        for group in [int(blocks.groups.group_of_node[move.path[0]])]
        if node in {int(blocks.groups.members[group][blocks.origin(id)]) for id in move.blocks}
    ]
    found = list(shown(moving_picture(program, node)))
    lines = [times for element, times in found if element.tag == f"{SVG}path"]
    nodes = [times for element, times in found if element.tag == f"{SVG}circle"]
    hops = sum(len(move.hops) for move in moves)
    assert hops <= len(lines) <= 2 * hops
    assert len(nodes) == len({move.node for move in moves} - {node})
    begins = {round(times[1], 2) for times in lines}
    assert len(begins) >= len({move.round for move in moves})


def test_what_does_not_exist():
    """A node that does not exist is refused."""
    with pytest.raises(InputError, match=r"^Node must be from 0 to 8, not 9$"):
        moving_picture(program_of("3x3", "allgather"), 9)


def test_command(tmp_path, capsys):
    """The command writes a moving picture; --moving and --links exclude each other."""
    path = tmp_path / "moving.svg"
    assert main(["draw", "3x3", "allgather", "--moving", "4", "-o", str(path)]) == 0
    assert re.search("the message of node 4<", path.read_text())
    assert main(["draw", "3x3", "allgather", "--moving", "4", "--links", "-o", str(path)]) == 1
    assert "--moving and --links exclude each other" in capsys.readouterr().err


def test_cycles_of_rows():
    """A cycle that is used in both directions is one cycle, drawn without arrows."""
    pattern = rows_pattern(3, 4)
    number, on_cycle, count = number_cycles(pattern)
    assert count == 3
    assert number[:, 2].tolist() == number[:, 3].tolist() == np.repeat([0, 1, 2], 4).tolist()
    assert on_cycle[:, 2:].all()
    assert not on_cycle[:, :2].any()
    picture = make_picture(pattern)
    (panel,) = picture.panels
    assert len(panel.strokes) == 12
    assert not any(stroke.arrow for stroke in panel.strokes)
    assert [key.text for key in picture.keys] == [
        f"cycle {k}: 4 links, both ways" for k in (1, 2, 3)
    ]


def test_cycles_one_way():
    """A cycle that is used in one direction has arrows."""
    pattern = rows_pattern(2, 5)
    feed, inject = pattern.feed.copy(), pattern.inject.copy()
    feed[:, 3] = inject[:, 3] = -1
    pattern = replace(pattern, feed=feed, inject=inject)
    picture = make_picture(pattern)
    assert [key.text for key in picture.keys] == ["cycle 1: 5 links, one way",
                                                  "cycle 2: 5 links, one way"]  # fmt: skip
    assert all(stroke.arrow for stroke in picture.panels[0].strokes)


def test_cycles_with_copies():
    """Copies to the sides have the colour of the cycle that feeds them."""
    pattern = rods_pattern(6, 8)
    number, on_cycle, count = number_cycles(pattern)
    assert count == 2
    # each cycle has n1 n2 / 2 + n1 links, and is used in both directions
    assert on_cycle.sum() == 2 * 2 * (6 * 8 // 2 + 6)
    keys = [key.text for key in make_picture(pattern).keys]
    assert keys[:2] == ["cycle 1: 30 links, both ways", "cycle 2: 30 links, both ways"]
    assert keys[2].startswith("thin arrows")
    below = np.arange(48) >= 12
    assert (number[below, 2] == number[below, 3]).all()
    assert (number[below, 2] == number[below, 0]).all()


DOWN, UP, RIGHT, LEFT = range(4)
ROW = [(0, LEFT), (3, LEFT), (2, LEFT), (1, LEFT)]

BELOW = [(3, RIGHT), (0, RIGHT), (1, DOWN), (5, RIGHT), (6, RIGHT), (7, UP)]

ABOVE = [(1, RIGHT), (2, RIGHT), (3, UP), (11, LEFT), (10, LEFT), (9, DOWN)]

BOUNCING = [(0, RIGHT), (1, DOWN), (5, UP), (1, RIGHT), (2, RIGHT), (3, RIGHT)]


@pytest.mark.parametrize("cycles", [(ROW, BELOW, ABOVE), (ROW, BOUNCING)])
def test_cycles_that_only_share_links(cycles):
    """Cycles that share links in opposite directions stay apart."""
    pattern = rows_pattern(3, 4)
    feed, inject = np.full_like(pattern.feed, -1), np.full_like(pattern.inject, -1)
    for cycle in cycles:
        for (_, came), (node, port) in zip([cycle[-1], *cycle[:-1]], cycle, strict=True):
            feed[node, port] = pattern.topology.opposite[came]
            inject[node, port] = 0
    pattern = replace(pattern, feed=feed, inject=inject)
    number, on_cycle, count = number_cycles(pattern)
    assert count == len(cycles)
    for cycle in cycles:
        assert len({number[arc] for arc in cycle}) == 1
        assert all(on_cycle[arc] for arc in cycle)
    lengths = sorted(key.text.partition(": ")[2] for key in make_picture(pattern).keys)
    assert lengths == ["4 links, one way"] + ["6 links, one way"] * (len(cycles) - 1)


def test_injection_only():
    """Arcs that send in step 1 and carry nothing later are grey."""
    pattern = rows_pattern(3, 3)
    inject = pattern.inject.copy()
    inject[:, 0] = 0
    assert make_picture(replace(pattern, inject=inject)).keys[-1].text == "grey: fed by no cycle"
