"""Shapes and colours of the block diagrams in `microarchitecture` and `terms`."""

from collections.abc import Sequence

from torusfabric.draw.svg import Svg

__all__ = [
    "AMBER",
    "BLUE",
    "GREEN",
    "GRID",
    "INK",
    "LINE",
    "LINK",
    "PALE",
    "PLAIN",
    "arrow",
    "box",
    "label",
    "rectangle",
]

#: Colours of text, of secondary text and arrows, of borders, of borders of cells, and of links.
INK, PALE, LINE, GRID, LINK = "#202124", "#5f6368", "#9aa0a6", "#c4c9ce", "#1f6fb4"

#: Colours of areas.
BLUE, GREEN, AMBER, PLAIN = "#eaf2fb", "#edf6ea", "#fdf3df", "#ffffff"


def label(svg: Svg, x: float, y: float, text: str, size: float = 12, **style: str) -> None:
    """Draw a line of text, pale unless its style says otherwise."""
    svg.add_text(x, y, text, size, **{"fill": PALE, **style})


def rectangle(
    svg: Svg,
    place: Sequence[float],
    fill: str,
    *,
    rx: float | None = None,
    stroke: str = LINE,
    stroke_width: float = 1.2,
) -> None:
    """Draw a rectangle at (x, y, width, height); `rx` is the radius of its corners."""
    x, y, width, height = place
    svg.add_element("rect", x=x, y=y, width=width, height=height, rx=rx, fill=fill, stroke=stroke,
                    stroke_width=stroke_width)  # fmt: skip


def box(svg: Svg, place: Sequence[float], name: str, text: str = "", *, fill: str = PLAIN) -> None:
    """Draw a part at (x, y, width, height), with its name and a word below it."""
    x, y, width, height = place
    rectangle(svg, place, fill, rx=5)
    middle = y + height / 2 + (0 if text else 4.5)
    style = {"fill": INK, "text_anchor": "middle"}
    svg.add_text(x + width / 2, middle - (2 if text else 0), name, 13, font_weight="bold", **style)
    if text:
        svg.add_text(x + width / 2, middle + 13, text, 10.5, fill=PALE, text_anchor="middle")


def arrow(svg: Svg, *points: tuple[float, float], dashed: bool = False) -> None:
    """Draw a line through points, with a tip at its end; the last piece is parallel to an axis."""
    (x0, y0), (x, y) = points[-2:]
    length = max(abs(x - x0), abs(y - y0))
    dx, dy = (x - x0) / length, (y - y0) / length
    end = (x - 7 * dx, y - 7 * dy)
    svg.add_lines([[*points[:-1], end]], stroke=PALE, stroke_width=1.4,
              stroke_dasharray="4 3" if dashed else None)  # fmt: skip
    left = (end[0] - 4 * dy, end[1] + 4 * dx)
    right = (end[0] + 4 * dy, end[1] - 4 * dx)
    svg.add_areas([[(x, y), left, right]], fill=PALE)
