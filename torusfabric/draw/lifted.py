"""The picture of a collective in groups: that of one group, in every group."""

from dataclasses import replace

from ..schedule import Lifted
from ..topology import Groups
from .frame import panels_of, titled
from .picture import Picture, Sketch, Stroke

__all__ = ["draw_lifted"]


def draw_lifted(schedule: Lifted, part: Picture) -> Picture:
    """The picture of one group, drawn in all groups of the topology.

    Parameters
    ----------
    part : Picture
        That of the schedule of a group.
    """
    groups, root = schedule.blocks.groups, schedule.collective.root
    sketches = [
        Sketch(
            panel.title,
            [lifted for stroke in panel.strokes for lifted in _strokes(stroke, groups)],
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


def _strokes(stroke: Stroke, groups: Groups) -> list[Stroke]:
    """A stroke, in every group."""
    ports = groups.ports[list(stroke.ports)].tolist()
    starts = groups.members[:, stroke.node].tolist()
    return [replace(stroke, node=node, ports=ports) for node in starts]
