"""What all pictures of schedules share: titles, panels, colours."""

from collections.abc import Sequence

from ..analysis.cost import step_length
from ..errors import InputError, ScheduleError
from ..schedule import Schedule
from ..topology import Arrowhead, Topology
from .graph_layout import layout_of
from .layout import arrowhead_layout, hexagon_layout
from .picture import Key, Panel, Picture, Sketch
from .svg import ramp

__all__ = [
    "BLACK",
    "COLOURS",
    "GREY",
    "MAX_PANELS",
    "PLAIN",
    "SEQUENCE",
    "check_size",
    "colour_bar",
    "panels_of",
    "roots",
    "rounds_in_words",
    "titled",
]

#: Colours of things without an order, easy to distinguish.
COLOURS = ("#c8324a", "#1f6fb4", "#2b8a3e", "#d9820a", "#7a47a8", "#0b8f8a", "#8a5a34", "#c2459b",
           "#5f6b10", "#3b3f9e")  # fmt: skip

#: Colours of things in an order, first to last.
SEQUENCE = ("#30123b", "#3f5fd0", "#1aa6b7", "#35b34a", "#c9a40a", "#e8651a", "#a01818")

#: More nodes than this are a picture that nobody can read, and a page that browsers do not like.
MAX_NODES = 4096

#: More rounds than this are drawn in one panel.
MAX_PANELS = 12

#: The fill of the root, of things without a colour of their own, and of other nodes.
BLACK, GREY, PLAIN = "#202124", "#9aa0a6", "#ffffff"


def check_size(topology: Topology, what: str = "Drawing") -> None:
    """Refuse a topology of more nodes than can be shown."""
    if topology.nodes > MAX_NODES:
        raise InputError(f"{what} must have at most {MAX_NODES} nodes, not {topology.nodes}")


def rounds_in_words(schedule: Schedule) -> str:
    """How many steps or rounds there are."""
    count = schedule.round_count
    return f"{count} {schedule.switching.unit}{'s' * (count != 1)}"


def roots(schedule: Schedule) -> list[int]:
    """The root of each group; node 0 where no node is special."""
    found: list[int] = schedule.blocks.groups.members[:, schedule.collective.root or 0].tolist()
    return found


def titled(
    schedule: Schedule,
    panels: list[Panel],
    keys: list[Key],
    *,
    note: str = "",
    stacked: bool = False,
) -> Picture:
    """A picture with what it shows above it."""
    chunks = f", {schedule.chunks} chunks" if schedule.chunks > 1 else ""
    return Picture(
        title=f"{schedule.topology.title} {schedule.collective}, {schedule.algorithm}",
        subtitle=f"{rounds_in_words(schedule)}{_each(schedule)}, {schedule.switching}, "
        f"{schedule.duplex} duplex, {schedule.ports} ports{chunks}{note}",
        panels=panels,
        keys=keys,
        stacked=stacked,
    )


def _each(schedule: Schedule) -> str:
    """How long the rounds are; nothing of a schedule with a fault, where that means nothing."""
    try:
        return f" of {step_length(schedule)}"
    except ScheduleError:
        return ""


def panels_of(
    schedule: Schedule, sketches: Sequence[Sketch], *, centre: int | None = None
) -> list[Panel]:
    """Panels for sketches, one each; but the arrowhead and its folding for one or two."""
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


def colour_bar(text: str, stops: Sequence[str], unit: str, last: int) -> Key:
    """The colours of steps or rounds 1 to last, as an entry of the legend."""
    if last == 1:
        return Key(f"{text} {unit} 1", [stops[0]])
    return Key(text, [ramp(stops, s / 31) for s in range(32)], f"{unit} 1", f"{unit} {last}")
