"""Boards in a picture: a frame around each board, and a bar across each link between boards.

A torus may be cut into boards, see `Boards`. Captions name them B0, B1, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..topology.boards import Boards
from .layout import Caption, NodeLayout, Region

__all__ = ["with_boards"]

#: Distance of a frame from its outer nodes, and of its caption from its first node, in hops.
FRAME_MARGIN, CAPTION_OFFSET = 0.42, np.array([0.5, 0.58])

#: Colours of frames. Boards that are drawn side by side have different ones.
TINTS = ("#eaf2fb", "#fbeee6", "#edf6ea")

#: Half the length and half the thickness of a bar, and its distance from the node, in hops.
BAR_LENGTH, BAR_THICKNESS, BAR_POSITION = 0.34, 0.05, 0.5

#: The colour of bars.
BAR_COLOUR = "#c0392b"


def with_boards(layout: NodeLayout, boards: Boards) -> NodeLayout:
    """Add the frames, captions and bars of boards to the layout of a torus.

    Parameters
    ----------
    layout : NodeLayout
        Positions of the nodes of the torus.
    boards : Boards
        The partition of this torus.

    Returns
    -------
    NodeLayout
        A copy with further regions and captions.

    Examples
    --------
    Two frames; a bar on each of four links, and two on each of the four that wrap around:

    >>> from torusfabric.draw.layout import torus_layout
    >>> from torusfabric.topology import Torus
    >>> torus = Torus(4, 4)
    >>> shown = with_boards(torus_layout(torus), Boards.parse("2x1", torus))
    >>> len(shown.regions), [text for _, _, text in shown.captions]
    (14, ['B0', 'B1'])
    """
    frames, captions = list[Region](), list[Caption]()
    places = np.stack(np.unravel_index(np.arange(boards.n_boards), boards.counts)).sum(axis=0)
    for board, nodes in enumerate(boards.nodes_by_board):
        tint = TINTS[places[board] % len(TINTS)]
        for low, high in _board_rectangles(layout.positions[:, nodes]):
            corners = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1])]
            frames.append(Region(np.array(corners).T, tint))
            x, y = np.minimum(low + FRAME_MARGIN + CAPTION_OFFSET, high - 0.1)
            captions.append((float(x), float(y), f"B{board}"))
    bars = list(_link_bars(layout, boards))
    return replace(
        layout,
        regions=(*layout.regions, *frames, *bars),
        captions=(*layout.captions, *captions),
    )


def _board_rectangles(points: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the low and high corner of each rectangle that the nodes of a board fill.

    `points` has the positions of the nodes, shape (2, nodes of the board), in hops. A board that
    extends beyond an edge of the picture has several rectangles.
    """
    columns, rows = (_split_at_gaps(np.unique(np.round(values, 6))) for values in points)
    for x in columns:
        for y in rows:
            inside = (points[0] >= x[0] - 1e-3) & (points[0] <= x[-1] + 1e-3)
            if (inside & (points[1] >= y[0] - 1e-3) & (points[1] <= y[-1] + 1e-3)).any():
                yield np.array([x[0], y[0]]) - FRAME_MARGIN, np.array([x[-1], y[-1]]) + FRAME_MARGIN


def _split_at_gaps(values: np.ndarray) -> list[np.ndarray]:
    """Split ascending coordinates wherever consecutive ones are more than one hop apart.

    `values` has the coordinates, in hops.
    """
    return np.split(values, np.flatnonzero(np.diff(values) > 1.01) + 1)


def _link_bars(layout: NodeLayout, boards: Boards) -> Iterator[Region]:
    """Yield a bar across each link between boards, as a small rectangle.

    A link that is drawn as two stubs (short lines) has a bar on each.

    `layout` has the positions of the nodes, and `boards` the board of each node.
    """
    board, _ = boards.node_locations
    for node, port in layout.drawn_links.tolist():
        if board[node] == board[boards.torus.neighbours[node, port]]:
            continue
        hop = layout.hop_vectors[node, port]
        middle = layout.positions[:, node] + BAR_POSITION * hop
        along = hop / np.hypot(*hop)
        across = np.array([-along[1], along[0]])
        corners = [middle + a * BAR_LENGTH * across + b * BAR_THICKNESS * along
                   for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]  # fmt: skip
        yield Region(np.array(corners).T, BAR_COLOUR)
