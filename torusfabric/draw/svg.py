"""Text of scalable vector graphics, put together from shapes."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ..toolchain.quoting import xml_attribute, xml_text

__all__ = ["Point", "Style", "Svg", "Value", "change", "mix", "ramp"]

#: Where something is: x and y.
Point: TypeAlias = Sequence[float] | np.ndarray

#: The value of an attribute; None leaves it out.
Value: TypeAlias = str | float | None

#: Attributes of a shape, an underscore for each dash.
Style: TypeAlias = dict[str, Value]

FONT = "font-family:'DejaVu Sans',Verdana,Helvetica,sans-serif"


def _number(value: float) -> str:
    """A number with one decimal at most."""
    return f"{round(float(value), 1):g}"


def mix(first: str, second: str, share: float) -> str:
    """The colour between two colours ``#rrggbb``, ``share`` of the way."""
    pairs = [(int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def ramp(stops: Sequence[str], share: float) -> str:
    """The colour ``share`` of the way along evenly spaced colours."""
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    index = min(int(at), len(stops) - 2)
    return mix(stops[index], stops[index + 1], at - index)


def change(name: str, values: str, moments: Sequence[float]) -> str:
    """An attribute that changes between the second and the third of four moments, in seconds.

    It begins again after the last one.
    """
    times = ";".join(f"{moment / moments[-1]:.4f}" for moment in moments)
    return (
        f'<animate attributeName="{name}" dur="{moments[-1]:.2f}s" repeatCount="indefinite" '
        f'keyTimes="{times}" values="{values}"/>'
    )


class Svg:
    """Shapes in the order in which they are painted."""

    def __init__(self) -> None:
        self._shapes: list[str] = []

    def add(self, tag: str, /, **attributes: Value) -> None:
        """Add an element without content; an underscore in an attribute's name is a dash."""
        self._shapes.append(f"<{tag}{_attributes(attributes)}/>")

    def text(self, x: float, y: float, text: str, size: float, **attributes: Value) -> None:
        """Add a line of words."""
        written = _attributes({"x": x, "y": y, "font_size": size, **attributes})
        self._shapes.append(f"<text{written}>{xml_text(text)}</text>")

    def lines(self, lines: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add open lines of one style, each a sequence of points."""
        if lines:
            self.add("path", d="".join(map(_line, lines)), fill="none", **attributes)

    def grow(self, line: Sequence[Point], change: str, **attributes: Value) -> None:
        """Add an open line whose dash changes with time, so that the line grows."""
        style = {"fill": "none", "pathLength": "1", "stroke_dasharray": "1 1", **attributes}
        written = _attributes({"d": _line(line), **style, "stroke_dashoffset": "1"})
        self._shapes.append(f"<path{written}>{change}</path>")

    def areas(self, areas: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add closed areas of one style, each a sequence of corners."""
        if areas:
            self.add("path", d="".join(_line(area) + "z" for area in areas), **attributes)

    def disc(
        self, x: float, y: float, radius: float, title: str, change: str = "", **attributes: Value
    ) -> None:
        """Add a disc that says what it is where the mouse rests on it, and may change with time."""
        place = f'cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"'
        style = _attributes(attributes)
        self._shapes.append(
            f"<circle {place}{style}><title>{xml_text(title)}</title>{change}</circle>"
        )

    def render(self, width: float, height: float, title: str) -> str:
        """The whole document."""
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
    """Attributes as written in a tag."""
    return "".join(
        f" {name.replace('_', '-')}="
        + xml_attribute(value if isinstance(value, str) else _number(value))
        for name, value in values.items()
        if value is not None
    )


def _line(points: Iterable[Point]) -> str:
    """A line as path data."""
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)
