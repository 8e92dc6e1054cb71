"""Boards in a picture: a frame around each board, and a bar across each link between boards.

A torus may be cut into boards, see `Boards`. Captions name them B0, B1, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..topology.boards import Boards
from .layout import Caption, Layout, Region

__all__ = ["with_boards"]

#: Distance of a frame from its outer nodes, and of its caption from its first node, in hops.
AROUND, NAME = 0.42, np.array([0.5, 0.58])

#: Colours of frames. Boards that are drawn side by side have different ones.
TINTS = ("#eaf2fb", "#fbeee6", "#edf6ea")

#: Half the length and half the thickness of a bar, and its distance from the node, in hops.
LENGTH, THICKNESS, ALONG = 0.34, 0.05, 0.5

#: The colour of bars.
CUT = "#c0392b"


def with_boards(layout: Layout, boards: Boards) -> Layout:
    """Add the frames, captions and bars of boards to the layout of a torus.

    Parameters
    ----------
    layout : Layout
        Positions of the nodes of the torus.
    boards : Boards
        The partition of this torus.

    Returns
    -------
    Layout
        A copy with further regions and captions.

    Examples
    --------
    >>> from torusfabric.draw.layout import torus_layout
    >>> from torusfabric.topology import Torus
    >>> torus = Torus(4, 4)
    >>> shown = with_boards(torus_layout(torus), Boards.parse("2x1", torus))
    >>> len(shown.regions), [text for _, _, text in shown.captions]
    (14, ['B0', 'B1'])
    """
    frames, captions = list[Region](), list[Caption]()
    places = np.stack(np.unravel_index(np.arange(boards.number), boards.counts)).sum(axis=0)
    for board, nodes in enumerate(boards.nodes):
        tint = TINTS[places[board] % len(TINTS)]
        for low, high in _pieces(layout.positions[:, nodes]):
            corners = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
            frames.append(Region(np.array(corners).T, tint))
            x, y = np.minimum(low + AROUND + NAME, high - 0.1)
            captions.append((float(x), float(y), f"B{board}"))
    bars = list(_bars(layout, boards))
    return replace(
        layout,
        regions=(*layout.regions, *frames, *bars),
        captions=(*layout.captions, *captions),
    )


def _pieces(points: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the low and high corner of each rectangle that the nodes of a board fill.

    A board that extends beyond an edge of the picture has several rectangles.
    """
    columns, rows = (_runs(np.unique(np.round(values, 6))) for values in points)
    for x in columns:
        for y in rows:
            inside = (points[0] >= x[0] - 1e-3) & (points[0] <= x[-1] + 1e-3)
            if (inside & (points[1] >= y[0] - 1e-3) & (points[1] <= y[-1] + 1e-3)).any():
                yield np.array([x[0], y[0]]) - AROUND, np.array([x[-1], y[-1]]) + AROUND


def _runs(values: np.ndarray) -> list[np.ndarray]:
    """Split ascending values wherever two neighbours are more than one hop apart."""
    return np.split(values, np.flatnonzero(np.diff(values) > 1.01) + 1)


def _bars(layout: Layout, boards: Boards) -> Iterator[Region]:
    """Yield the bars across links between boards: one on each line, and one on each stub."""
    board, _ = boards.located
    for node, port in layout.links.tolist():
        if board[node] == board[boards.torus.neighbours[node, port]]:
            continue
        hop = layout.hops[node, port]
        middle = layout.positions[:, node] + ALONG * hop
        along = hop / np.hypot(*hop)
        across = np.array([-along[1], along[0]])
        corners = [middle + a * LENGTH * across + b * THICKNESS * along
                   for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]  # fmt: skip
        yield Region(np.array(corners).T, CUT)
