"""Boards in pictures: a frame around the nodes of each board, and a bar across each cut link."""

from pathlib import Path

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.draw.boards import BAR_COLOUR, with_boards
from torusfabric.draw.layout import torus_layout
from torusfabric.topology.boards import Boards


@pytest.mark.parametrize(
    ("sides", "counts", "centre"),
    [((4, 4), "2x1", None), ((4, 6), "2x3", 9), ((6,), "3", None), ((4, 4, 2), "2x1x2", None)],
)
def test_frames_hold_the_nodes_of_their_board_and_no_others(sides, counts, centre):
    """A frame contains the nodes of its board and no others."""
    torus = tf.Torus(*sides)
    boards, layout = Boards.parse(counts, torus), torus_layout(torus, centre=centre)
    shown = with_boards(layout, boards)
    names = [text for _, _, text in shown.captions[len(layout.captions) :]]
    frames = [region for region in shown.regions if region.fill != BAR_COLOUR]
    assert len(names) == len(frames)
    found = [set() for _ in range(boards.n_boards)]
    for name, frame in zip(names, frames, strict=True):
        low, high = frame.corners.min(axis=1), frame.corners.max(axis=1)
        inside = (layout.positions > low[:, None]) & (layout.positions < high[:, None])
        found[int(name[1:])] |= {*np.flatnonzero(inside.all(axis=0)).tolist()}
    assert [sorted(nodes) for nodes in found] == np.sort(boards.nodes_by_board).tolist()


def test_each_cut_link_has_a_bar():
    """A cut link has a bar on its line, or on each of its stubs."""
    torus = tf.Torus(4, 4)
    shown = with_boards(torus_layout(torus), Boards.parse("2x1", torus))
    bars = [region.corners.mean(axis=1) for region in shown.regions if region.fill == BAR_COLOUR]
    assert sorted(map(tuple, np.round(bars, 6).tolist())) == sorted(
        (x, y) for x in range(4) for y in (-0.5, 1.5, 3.5)
    )


def test_the_commands_draw_them(tmp_path, capsys):
    """`draw` and `animate` show boards, and `--boards` excludes `--links`."""
    picture, page = str(tmp_path / "a.svg"), str(tmp_path / "a.html")
    assert main(["draw", "4x4", "allgather", "--boards", "2x1", "-o", picture]) == 0
    assert main(["animate", "4x4", "allgather", "--boards", "2x1", "-o", page]) == 0
    for file in (picture, page):
        text = Path(file).read_text(encoding="utf-8")
        assert BAR_COLOUR in text
        assert "B1" in text
    capsys.readouterr()
    words = ["draw", "4x4", "allgather", "--boards", "2x1", "--links", "-o", picture]
    assert main(words) == 1
    assert "--boards excludes --links and --moving" in capsys.readouterr().err
