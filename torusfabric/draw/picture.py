"""The parts of a picture: strokes, sketches, panels and legend, independent of SVG.

A picture has one or several *panels*, each a drawing of the whole network. A *sketch* is the
contents of a panel before the nodes have positions. Modules such as `cycles` and `trees` make these
values from a schedule; `page` paints them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .layout import NodeLayout

__all__ = ["MotionTimes", "LegendEntry", "Panel", "Sketch", "Picture", "Stroke"]


@dataclass(frozen=True)
class Stroke:
    """The line of a path of one hop or several.

    Parameters
    ----------
    node : int
        First node of the path.
    ports : sequence of int
        Out-port of each hop.
    colour : str
        Colour of the line, ``#rrggbb``.
    offset : float
        Distance to the right of the middle of a link, in hops.
    width : float
        Width of the line, in pixels.
    arrow : bool
        True to draw an arrow's tip at the end.
    grows : (float, float), optional
        Seconds between which the line grows, in a moving picture.
    """

    node: int
    ports: Sequence[int]
    colour: str
    offset: float = 0.27
    width: float = 1.8
    arrow: bool = True
    grows: tuple[float, float] | None = None


@dataclass(frozen=True)
class Sketch:
    """Strokes and colours of nodes, without positions.

    Parameters
    ----------
    title : str
        Title of the panel.
    strokes : list of Stroke
        Lines of paths.
    fills : list of str
        Colour of each node.
    """

    title: str
    strokes: list[Stroke]
    fills: list[str]


@dataclass(frozen=True)
class MotionTimes:
    """Times of a moving picture.

    Parameters
    ----------
    seconds : float
        Duration of the animation before it repeats.
    reached : mapping of int to float
        Second of the animation from which on each node is grey, keyed by the node.
    """

    seconds: float
    reached: Mapping[int, float]


@dataclass(frozen=True)
class Panel(Sketch):
    """A sketch with the positions of its nodes: one drawing of the network.

    Parameters
    ----------
    layout : NodeLayout
        The positions.
    film : MotionTimes, optional
        The times of a moving picture; None for a still one.
    """

    layout: NodeLayout
    film: MotionTimes | None = None


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend: one colour with its text, or a bar of a colour range.

    Parameters
    ----------
    text : str
        The text beside the colour, or before the bar.
    colours : sequence of str
        One colour, or the colours of the bar from left to right.
    first, last : str
        The texts at the ends of the bar, such as ``round 1``; empty for one colour.
    """

    text: str
    colours: Sequence[str]
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class Picture:
    """Panels with titles and a legend.

    Parameters
    ----------
    title, subtitle : str
        Two lines above the panels.
    panels : list of Panel
        Drawings of the network.
    keys : list of LegendEntry
        Entries of the legend.
    stacked : bool
        True to place the panels one below another.
    """

    title: str
    subtitle: str
    panels: list[Panel]
    keys: list[LegendEntry] = field(default_factory=list)
    stacked: bool = False
