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

from ..schedule import Lifted, Pattern, Schedule, SumPattern, Switching, Table
from ..toolchain.public import public
from ..topology import Arrowhead, Groups
from .boards import with_boards
from .cycles import draw_cycles
from .frame import MAX_PANELS, check_size, panels_of, titled
from .heat_map import heat_map
from .page import paint
from .picture import Picture, Sketch, Stroke
from .rounds import draw_first_use, draw_forests, draw_rounds
from .trees import draw_trees

if TYPE_CHECKING:
    from ..topology.boards import Boards

__all__ = ["check_size", "contents", "draw", "heat_map"]


@public
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


def contents(schedule: Schedule) -> Picture:
    """The picture of a schedule.

    Parameters
    ----------
    schedule : Schedule
        On at most 4096 nodes.

    Raises
    ------
    InputError
        If the topology has too many nodes for a picture.
    """
    topology = schedule.topology
    check_size(topology)
    if isinstance(schedule, Lifted):
        return _lifted(schedule, contents(schedule.part))
    if isinstance(schedule, Pattern | SumPattern):
        return draw_cycles(schedule)
    if isinstance(schedule, Table) or (
        schedule.blocks.single_origin and schedule.switching == Switching.STORE_AND_FORWARD
    ):
        return draw_trees(schedule)
    if isinstance(topology, Arrowhead) and schedule.blocks.single_origin:
        return draw_forests(schedule)
    if schedule.round_count <= MAX_PANELS:
        return draw_rounds(schedule)
    return draw_first_use(schedule)


def _lifted(schedule: Lifted, part: Picture) -> Picture:
    """The picture of the schedule of one group, drawn in all groups of the topology."""
    groups, root = schedule.blocks.groups, schedule.collective.root
    sketches = [
        Sketch(
            panel.title,
            [lifted for stroke in panel.strokes for lifted in _in_groups(stroke, groups)],
            [panel.fills[position] for position in groups.position],
        )
        for panel in part.panels
    ]
    centre = None if root is None else int(groups.members[0, root])
    picture = titled(
        schedule,
        panels_of(schedule, sketches, centre=centre),
        part.keys,
        stacked=len(sketches) > 1 and schedule.topology.dimensions > 2,
    )
    return replace(picture, subtitle=f"{part.subtitle}; in each of {groups.count} groups")


def _in_groups(stroke: Stroke, groups: Groups) -> list[Stroke]:
    """A stroke, in every group."""
    ports = groups.ports[list(stroke.ports)].tolist()
    starts = groups.members[:, stroke.node].tolist()
    return [replace(stroke, node=node, ports=ports) for node in starts]
