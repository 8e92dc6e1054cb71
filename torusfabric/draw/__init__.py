"""Pictures of schedules as SVG; `draw` is the main function.

The form of a schedule decides the kind of picture:

- A pattern of a collective with many origins: its cycles, each in one colour (`cycles.py`).
- A table, or a broadcast or scatter in steps of one hop: the trees along which the message of one
  node spreads (`trees.py`).
- Rounds of circuits: a panel and a colour for each round, or all rounds in one panel (`rounds.py`).
- A collective in groups: the picture of one group, repeated in each group.

The topology decides the positions of the nodes (`layout.py`, `graph_layout.py`). A torus has rows
and columns, and a layer for each position on further axes. An arrowhead torus is drawn twice: as
the arrowhead of the paper, and folded to a hexagon. Any other topology is drawn as a circle, a
grid, or the equilibrium of springs in place of the links, depending on the mathematical group by
which it is defined. If the ends of a link are not drawn side by side, the link is drawn as a
*stub*, a short line, at either end.

A picture is made in four stages: `Sketch` (strokes and colours), `Panel` (a sketch with a layout),
`Picture` (panels with titles and a legend), and SVG text (`paint`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..schedule import Lifted, Pattern, Schedule, SumPattern, Switching, Table
from ..toolchain.public import public
from ..topology import Arrowhead, Groups
from .boards import with_boards
from .cycles import draw_cycles
from .frame import MAX_PANELS, check_size, make_panels, picture_with_titles
from .heat_map import heat_map
from .page import paint_picture
from .picture import Picture, Sketch, Stroke
from .rounds import draw_first_use, draw_forests, draw_rounds
from .trees import draw_trees

if TYPE_CHECKING:
    from ..topology.boards import Boards

__all__ = ["check_size", "make_picture", "draw", "heat_map"]


@public
def draw(schedule: Schedule, boards: Boards | None = None) -> str:
    """Return a picture of a schedule as SVG.

    Parameters
    ----------
    schedule : Schedule
        A schedule on at most 4096 nodes.
    boards : Boards, optional
        A partition of its torus into boards. Each board gets a frame, and each link between boards
        a bar.

    Returns
    -------
    str
        A complete SVG document.

    Raises
    ------
    InputError
        If the topology has more nodes than a picture can show.
    """
    picture = make_picture(schedule)
    if boards is not None:
        panels = [replace(p, layout=with_boards(p.layout, boards)) for p in picture.panels]
        picture = replace(picture, panels=panels)
    return paint_picture(picture)


def make_picture(schedule: Schedule) -> Picture:
    """Return the picture of a schedule before it is painted: panels, titles and a legend.

    Parameters
    ----------
    schedule : Schedule
        A schedule on at most 4096 nodes.

    Raises
    ------
    InputError
        If the topology has too many nodes for a picture.
    """
    topology = schedule.topology
    check_size(topology)
    if isinstance(schedule, Lifted):
        return _repeat_in_groups(schedule, make_picture(schedule.part))
    # The tree of a broadcast has no cycle, although nodes forward as a pattern says.
    if isinstance(schedule, Pattern | SumPattern) and not schedule.blocks.single_origin:
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


def _repeat_in_groups(schedule: Lifted, part: Picture) -> Picture:
    """Return a picture in which `part`, the picture of one group, is repeated in all groups."""
    groups, root = schedule.blocks.groups, schedule.collective.root
    sketches = [
        Sketch(
            panel.title,
            [lifted for stroke in panel.strokes for lifted in _copies_in_groups(stroke, groups)],
            [panel.fills[position] for position in groups.position_of_node],
        )
        for panel in part.panels
    ]
    centre = None if root is None else int(groups.members[0, root])
    picture = picture_with_titles(
        schedule,
        make_panels(schedule, sketches, centre=centre),
        part.keys,
        stacked=len(sketches) > 1 and schedule.topology.dimensions > 2,
    )
    return replace(picture, subtitle=f"{part.subtitle}; in each of {groups.n_groups} groups")


def _copies_in_groups(stroke: Stroke, groups: Groups) -> list[Stroke]:
    """Return the line of a path in one group of nodes, copied to each of `groups`.

    The stroke (this line) is given by the positions and ports of its nodes in the torus of its
    group.
    """
    ports = groups.port_in_topology[list(stroke.ports)].tolist()
    starts = groups.members[:, stroke.node].tolist()
    return [replace(stroke, node=node, ports=ports) for node in starts]
