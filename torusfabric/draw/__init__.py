"""Drawing a schedule: which message goes where, as a picture in scalable vector graphics.

A pattern is drawn with one colour a cycle, a table as the trees along which the message of node 0
spreads, rounds of circuits with one panel and one colour a round. A torus is drawn in rows and
columns, layer by layer from three axes on; an arrowhead torus both as the arrowhead of the paper
and folded to a hexagon; any other topology as a circle, a grid, or as springs in place of its
links would pull it, by its group. A collective in groups is drawn as that of one group, in each of
them. A link whose ends are not drawn side by side is a stub at either end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..schedule import Schedule
from .boards import with_boards
from .contents import check_size, contents
from .heat_map import heat_map
from .page import paint

if TYPE_CHECKING:
    from ..topology.boards import Boards

__all__ = ["check_size", "draw", "heat_map"]


def draw(schedule: Schedule, boards: Boards | None = None) -> str:
    """The picture of a schedule.

    Parameters
    ----------
    schedule : Schedule
        On at most 4096 nodes.
    boards : Boards, optional
        Those that its torus is cut into: each has a frame, and links between them have bars.

    Returns
    -------
    str
        A whole SVG document.

    Raises
    ------
    InputError
        If the topology has more nodes than a picture can show.
    """
    picture = contents(schedule)
    if boards is not None:
        panels = [replace(p, layout=with_boards(p.layout, boards)) for p in picture.panels]
        picture = replace(picture, panels=panels)
    return paint(picture)
