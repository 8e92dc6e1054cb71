"""Drawing patterns: the cycles that words go round."""

from dataclasses import replace

import numpy as np
import pytest
from drawn import rods_pattern, rows_pattern

from torusfabric.draw import contents
from torusfabric.draw.cycles import number_cycles


def test_cycles_of_rows():
    """A cycle that is run both ways is one cycle, drawn without arrows."""
    pattern = rows_pattern(3, 4)
    number, on_cycle, count = number_cycles(pattern)
    assert count == 3
    assert number[:, 2].tolist() == number[:, 3].tolist() == np.repeat([0, 1, 2], 4).tolist()
    assert on_cycle[:, 2:].all()
    assert not on_cycle[:, :2].any()
    picture = contents(pattern)
    (panel,) = picture.panels
    assert len(panel.strokes) == 12
    assert not any(stroke.arrow for stroke in panel.strokes)
    assert [key.text for key in picture.keys] == [
        f"cycle {k}: 4 links, both ways" for k in (1, 2, 3)
    ]


def test_cycles_one_way():
    """A cycle that is run one way has arrows."""
    pattern = rows_pattern(2, 5)
    feed, inject = pattern.feed.copy(), pattern.inject.copy()
    feed[:, 3] = inject[:, 3] = -1
    pattern = replace(pattern, feed=feed, inject=inject)
    picture = contents(pattern)
    assert [key.text for key in picture.keys] == ["cycle 1: 5 links, one way",
                                                  "cycle 2: 5 links, one way"]  # fmt: skip
    assert all(stroke.arrow for stroke in picture.panels[0].strokes)


def test_cycles_with_copies():
    """Copies to the sides have the colour of the cycle that feeds them; both cycles stay apart."""
    pattern = rods_pattern(6, 8)
    number, on_cycle, count = number_cycles(pattern)
    assert count == 2
    # each of the two cycles has n1 n2 / 2 + n1 links and is run both ways
    assert on_cycle.sum() == 2 * 2 * (6 * 8 // 2 + 6)
    keys = [key.text for key in contents(pattern).keys]
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
    """A row one way round, and cycles that use its links and others the other way, stay apart."""
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
    lengths = sorted(key.text.partition(": ")[2] for key in contents(pattern).keys)
    assert lengths == ["4 links, one way"] + ["6 links, one way"] * (len(cycles) - 1)


def test_injection_only():
    """Arcs that send in step 1 and carry nothing later are grey."""
    pattern = rows_pattern(3, 3)
    inject = pattern.inject.copy()
    inject[:, 0] = 0
    assert contents(replace(pattern, inject=inject)).keys[-1].text == "grey: fed by no cycle"
