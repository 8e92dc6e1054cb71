"""The values that a picture is made of, between what a schedule means and how it is painted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .layout import Layout

__all__ = ["Film", "Key", "Panel", "Sketch", "Picture", "Stroke"]


@dataclass(frozen=True)
class Stroke:
    """A path, or a link where it is drawn without an arrow.

    Parameters
    ----------
    node : int
        Where it begins.
    ports : sequence of int
        The out-port of each hop.
    offset : float
        How far beside the middle of a link it is drawn, to the right, in hops.
    grows : (float, float), optional
        The seconds from and to which it grows, in a picture that moves.
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
    """Strokes and nodes that belong together, before it is known where they are drawn.

    Parameters
    ----------
    fills : list of str
        The colour of each node.
    """

    title: str
    strokes: list[Stroke]
    fills: list[str]


@dataclass(frozen=True)
class Film:
    """When a picture that moves begins again, and nodes turn grey until then, in seconds."""

    seconds: float
    reached: Mapping[int, float]


@dataclass(frozen=True)
class Panel(Sketch):
    """One drawing of the network."""

    layout: Layout
    film: Film | None = None


@dataclass(frozen=True)
class Key:
    """An entry of the legend: one colour, or the colours from ``first`` to ``last``."""

    text: str
    colours: Sequence[str]
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class Picture:
    """Panels and their legend.

    Parameters
    ----------
    stacked : bool
        Whether the panels stand one below the other.
    """

    title: str
    subtitle: str
    panels: list[Panel]
    keys: list[Key] = field(default_factory=list)
    stacked: bool = False
