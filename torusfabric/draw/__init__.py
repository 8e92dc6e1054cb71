"""Drawing a schedule: which message goes where, as a picture in scalable vector graphics.

A pattern is drawn with one colour a cycle, a table as the trees along which the message of node 0
spreads, rounds of circuits with one panel and one colour a round. A torus is drawn in rows and
columns, layer by layer from three axes on; an arrowhead torus both as the arrowhead of the paper
and folded to a hexagon; any other topology as a circle, a grid, or as springs in place of its
links would pull it, by its group. A collective in groups is drawn as that of one group, in each of
them. A link whose ends are not drawn side by side is a stub at either end.
"""

from ..schedule import Schedule
from .contents import check_size, contents
from .heat_map import heat_map
from .page import paint

__all__ = ["check_size", "draw", "heat_map"]


def draw(schedule: Schedule) -> str:
    """The picture of a schedule.

    Parameters
    ----------
    schedule : Schedule
        On at most 4096 nodes.

    Returns
    -------
    str
        A whole SVG document.

    Raises
    ------
    InputError
        If the topology has more nodes than a picture can show.
    """
    return paint(contents(schedule))
