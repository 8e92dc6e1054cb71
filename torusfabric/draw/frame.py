"""Functions and colours that all pictures of schedules share: titles, panels, legend."""

from collections.abc import Sequence

from ..analysis.cost import step_length
from ..errors import InputError, ScheduleError
from ..schedule import Schedule
from ..topology import Arrowhead, Topology
from .graph_layout import layout_of
from .layout import arrowhead_layout, hexagon_layout
from .picture import LegendEntry, Panel, Picture, Sketch
from .svg import colour_at

__all__ = ["BLACK", "COLOURS", "GREY", "MAX_PANELS", "WHITE", "ROUND_SCALE", "check_size",
           "colour_bar", "make_panels", "group_roots", "rounds_text",
           "picture_with_titles"]  # fmt: skip

#: Colours for entries without an order, easy to distinguish.
COLOURS = ("#c8324a", "#1f6fb4", "#2b8a3e", "#d9820a", "#7a47a8", "#0b8f8a", "#8a5a34", "#c2459b",
           "#5f6b10", "#3b3f9e")  # fmt: skip

#: Colours for entries in an order, from the first to the last.
ROUND_SCALE = ("#30123b", "#3f5fd0", "#1aa6b7", "#35b34a", "#c9a40a", "#e8651a", "#a01818")

#: Most nodes of a picture. Why: beyond, nobody can read it, and browsers become slow.
MAX_NODES = 4096

#: Most panels for rounds; more rounds are drawn in one panel.
MAX_PANELS = 12

#: Colours of the root, of entries without a colour of their own, and of all other nodes.
BLACK, GREY, WHITE = "#202124", "#9aa0a6", "#ffffff"


def check_size(topology: Topology, what: str = "Drawing") -> None:
    """Raise an error if a topology has more nodes than a picture can show.

    Parameters
    ----------
    topology : Topology
        The topology to draw.
    what : str
        The noun for the error message.
    """
    if topology.nodes > MAX_NODES:
        raise InputError(
            f"{what} must have at most {MAX_NODES} nodes, not {topology.nodes}; choose a smaller "
            "network"
        )


def rounds_text(schedule: Schedule) -> str:
    """Return the number of steps or rounds of a schedule as text: ``4 steps``."""
    count = schedule.round_count
    return f"{count} {schedule.switching.unit}{'s' * (count != 1)}"


def group_roots(schedule: Schedule) -> list[int]:
    """Return the root of the collective in each group, or its first node if there is no root."""
    found: list[int] = schedule.blocks.groups.members[:, schedule.collective.root or 0].tolist()
    return found


def picture_with_titles(
    schedule: Schedule,
    panels: list[Panel],
    keys: list[LegendEntry],
    *,
    note: str = "",
    stacked: bool = False,
) -> Picture:
    """Return a picture of panels, with a title and subtitle that describe the schedule.

    Parameters
    ----------
    schedule : Schedule
        The schedule in the picture.
    panels : list of Panel
        Drawings of the network.
    keys : list of LegendEntry
        Entries of the legend.
    note : str
        Text to append to the subtitle.
    stacked : bool
        True to place the panels one below another.
    """
    chunks = f", {schedule.chunks} chunks" if schedule.chunks > 1 else ""
    return Picture(
        title=f"{schedule.topology.title} {schedule.collective}, {schedule.algorithm}",
        subtitle=f"{rounds_text(schedule)}{_round_length_text(schedule)}, {schedule.switching}, "
        f"{schedule.duplex} duplex, {schedule.ports} ports{chunks}{note}",
        panels=panels,
        keys=keys,
        stacked=stacked,
    )


def _round_length_text(schedule: Schedule) -> str:
    """Return the length of a round as text; empty for an incorrect schedule, which has none."""
    try:
        return f" of {step_length(schedule)}"
    except ScheduleError:
        return ""


def make_panels(
    schedule: Schedule, sketches: Sequence[Sketch], *, centre: int | None = None
) -> list[Panel]:
    """Return the drawings (panels) of the network from sketches, which have no positions yet.

    On an arrowhead torus, one or two sketches are drawn as arrowheads, and together once more
    folded to a hexagon. Three or more are drawn as hexagons only. On other topologies, there is a
    panel for each sketch.

    Parameters
    ----------
    schedule : Schedule
        The schedule in the picture.
    sketches : sequence of Sketch
        Strokes and colours of each panel.
    centre : int, optional
        The node to draw in the middle.
    """
    topology = schedule.topology
    if not isinstance(topology, Arrowhead):
        several = len(sketches) > 1
        layout = layout_of(topology, centre=centre, in_one_row=several)
        return [Panel(**vars(sketch), layout=layout) for sketch in sketches]
    root = centre or 0
    hexagon = hexagon_layout(topology, root)
    if len(sketches) > 2:
        return [Panel(**vars(sketch), layout=hexagon) for sketch in sketches]
    panels = [
        Panel(**vars(sketch), layout=arrowhead_layout(topology, root, turned=bool(turned)))
        for turned, sketch in enumerate(sketches)
    ]
    both = [stroke for sketch in sketches for stroke in sketch.strokes]
    title = "both, folded to a hexagon" if len(sketches) > 1 else "folded to a hexagon"
    return [*panels, Panel(title, both, sketches[0].fills, hexagon)]


def colour_bar(text: str, stops: Sequence[str], unit: str, last: int) -> LegendEntry:
    """Return the legend entry of a colour scale for steps or rounds 1 to `last`.

    `text` stands before the bar, `stops` are the colours of the scale at equal distances, and
    `unit` is the word before the first and the last number, such as "round".
    """
    if last == 1:
        return LegendEntry(f"{text} {unit} 1", [stops[0]])
    return LegendEntry(
        text, [colour_at(stops, s / 31) for s in range(32)], f"{unit} 1", f"{unit} {last}"
    )
