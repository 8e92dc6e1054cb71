"""Boards in a picture: a frame around the nodes of each, and a bar across each link that is cut.

Board 0 is named B0, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..topology.boards import Boards
from .layout import Caption, Layout, Region

__all__ = ["with_boards"]

#: How far frames are around nodes, and their names from the first node, in hops.
AROUND, NAME = 0.42, np.array([0.5, 0.58])

#: The colours of frames, of boards side by side in turn.
TINTS = ("#eaf2fb", "#fbeee6", "#edf6ea")

#: Half the length and the thickness of the bar across a cut link, and how far it is from the node
#: where the link is a stub, in hops.
LENGTH, THICKNESS, ALONG = 0.34, 0.05, 0.5

#: The colour of bars.
CUT = "#c0392b"


def with_boards(layout: Layout, boards: Boards) -> Layout:
    """The layout of a torus with the boards that it is cut into.

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
    """The corners of the rectangles that some nodes fill: one, or more where a picture wraps."""
    columns, rows = (_runs(np.unique(np.round(values, 6))) for values in points)
    for x in columns:
        for y in rows:
            inside = (points[0] >= x[0] - 1e-3) & (points[0] <= x[-1] + 1e-3)
            if (inside & (points[1] >= y[0] - 1e-3) & (points[1] <= y[-1] + 1e-3)).any():
                yield np.array([x[0], y[0]]) - AROUND, np.array([x[-1], y[-1]]) + AROUND


def _runs(values: np.ndarray) -> list[np.ndarray]:
    """Values in their order, apart where there is more than a hop between two."""
    return np.split(values, np.flatnonzero(np.diff(values) > 1.01) + 1)


def _bars(layout: Layout, boards: Boards) -> Iterator[Region]:
    """Bars across links between boards: one in the middle of a line, or one on each stub."""
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
