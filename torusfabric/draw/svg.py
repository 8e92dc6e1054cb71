"""SVG text, composed of shapes: `Svg`; and colours between two others."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ..toolchain.quoting import xml_attribute, xml_text

__all__ = ["Point", "Style", "Svg", "Value", "change", "mix", "ramp"]

#: A point: x and y, in pixels.
Point: TypeAlias = Sequence[float] | np.ndarray

#: The value of an attribute; an attribute with None is left out.
Value: TypeAlias = str | float | None

#: Attributes of a shape; an underscore in a name stands for a dash.
Style: TypeAlias = dict[str, Value]

FONT = "font-family:'DejaVu Sans',Verdana,Helvetica,sans-serif"


def _number(value: float) -> str:
    """Return a number as text with at most one decimal."""
    return f"{round(float(value), 1):g}"


def mix(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours ``#rrggbb``, with `share` of the second."""
    pairs = [(int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def ramp(stops: Sequence[str], share: float) -> str:
    """Return the colour at a position of a colour scale.

    Parameters
    ----------
    stops : sequence of str
        Colours ``#rrggbb`` at equal distances.
    share : float
        Position from 0 (the first colour) to 1 (the last).
    """
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(at), len(stops) - 2)
    return mix(stops[index], stops[index + 1], at - index)


def change(name: str, values: str, moments: Sequence[float]) -> str:
    """Return an ``<animate>`` element that repeats forever.

    Parameters
    ----------
    name : str
        The attribute that changes.
    values : str
        Four values of the attribute, separated by semicolons.
    moments : sequence of float
        Second of each value. The last one is the duration.
    """
    times = ";".join(f"{moment / moments[-1]:.4f}" for moment in moments)
    return (
        f'<animate attributeName="{name}" dur="{moments[-1]:.2f}s" repeatCount="indefinite" '
        f'keyTimes="{times}" values="{values}"/>'
    )


class Svg:
    """An SVG text under construction: shapes from back to front."""

    def __init__(self) -> None:
        self._shapes: list[str] = []

    def add(self, tag: str, /, **attributes: Value) -> None:
        """Add an element without content; an underscore in an attribute stands for a dash."""
        self._shapes.append(f"<{tag}{_attributes(attributes)}/>")

    def text(self, x: float, y: float, text: str, size: float, **attributes: Value) -> None:
        """Add a line of text."""
        written = _attributes({"x": x, "y": y, "font_size": size, **attributes})
        self._shapes.append(f"<text{written}>{xml_text(text)}</text>")

    def lines(self, lines: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add open lines in one style, each a sequence of points."""
        if lines:
            self.add("path", d="".join(map(_line, lines)), fill="none", **attributes)

    def grow(self, line: Sequence[Point], change: str, **attributes: Value) -> None:
        """Add an open line that grows with time; `change` animates the offset of its dash."""
        style = {"fill": "none", "pathLength": "1", "stroke_dasharray": "1 1", **attributes}
        written = _attributes({"d": _line(line), **style, "stroke_dashoffset": "1"})
        self._shapes.append(f"<path{written}>{change}</path>")

    def areas(self, areas: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add closed areas in one style, each a sequence of corners."""
        if areas:
            self.add("path", d="".join(_line(area) + "z" for area in areas), **attributes)

    def disc(
        self, x: float, y: float, radius: float, title: str, change: str = "", **attributes: Value
    ) -> None:
        """Add a disc with a title for mouse pointers, and perhaps an ``<animate>`` element."""
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        style = _attributes(attributes)
        self._shapes.append(
            f"<circle {place}{style}><title>{xml_text(title)}</title>{change}</circle>"
        )

    def render(self, width: float, height: float, title: str) -> str:
        """Return the complete document.

        Parameters
        ----------
        width, height : float
            Size of the page, in pixels.
        title : str
            Title for browsers and screen readers.
        """
        size = f'width="{_number(width)}" height="{_number(height)}"'
        box = f'viewBox="0 0 {_number(width)} {_number(height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} style="{FONT}">',
                f"<title>{xml_text(title)}</title>",
                '<rect width="100%" height="100%" fill="#ffffff"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def _attributes(values: Style) -> str:
    """Return the text of attributes in a tag."""
    return "".join(
        f" {name.replace('_', '-')}="
        + xml_attribute(value if isinstance(value, str) else _number(value))
        for name, value in values.items()
        if value is not None
    )


def _line(points: Iterable[Point]) -> str:
    """Return the path data of a line."""
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
