"""What to draw of a schedule: panels of strokes with a key, whatever form the schedule has."""

from dataclasses import replace

from ..errors import InputError
from ..schedule import Lifted, Pattern, Schedule, SumPattern, Switching, Table
from ..topology import Arrowhead, Groups, Topology
from .cycles import draw_cycles
from .frame import MAX_PANELS, panels_of, titled
from .picture import Picture, Sketch, Stroke
from .rounds import draw_first_use, draw_forests, draw_rounds
from .trees import draw_trees

__all__ = ["check_size", "contents"]

#: More nodes than this are a picture that nobody can read.
MAX_NODES = 4096


def check_size(topology: Topology) -> None:
    """Refuse a topology of more nodes than a picture can show."""
    if topology.nodes > MAX_NODES:
        raise InputError(f"Drawing must have at most {MAX_NODES} nodes, not {topology.nodes}")


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
