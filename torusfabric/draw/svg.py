"""SVG text, composed of shapes: `Svg`; and colours between two others."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ..toolchain.quoting import xml_attribute, xml_text

__all__ = ["Point", "Style", "Svg", "Value", "animate_attribute", "mix_colours", "colour_at"]

#: A point: x and y, in pixels.
Point: TypeAlias = Sequence[float] | np.ndarray

#: The value of an attribute; an attribute with None is left out.
Value: TypeAlias = str | float | None

#: Attributes of a shape; an underscore in a name stands for a dash.
Style: TypeAlias = dict[str, Value]

FONT = "font-family:'DejaVu Sans',Verdana,Helvetica,sans-serif"

#: Half the side of a square mark relative to the radius of a disc of about the same area.
SQUARE_SIZE = 0.88


def _format_number(value: float) -> str:
    """Return the number `value` as text with at most one decimal."""
    return f"{round(float(value), 1):g}"


def mix_colours(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours, `first` and `second`.

    Parameters
    ----------
    first, second : str
        The colours, ``#rrggbb``.
    share : float
        Share of `second` in the mixture, from 0 to 1.
    """
    pairs = [(int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def colour_at(stops: Sequence[str], share: float) -> str:
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
    return mix_colours(stops[index], stops[index + 1], at - index)


def animate_attribute(name: str, values: str, moments: Sequence[float]) -> str:
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

    def add_element(self, tag: str, /, **attributes: Value) -> None:
        """Add an element without content; an underscore in an attribute stands for a dash."""
        self._shapes.append(f"<{tag}{_attribute_text(attributes)}/>")

    def add_text(self, x: float, y: float, text: str, size: float, **attributes: Value) -> None:
        """Add a line of text.

        Parameters
        ----------
        x, y : float
            A point of the baseline, in pixels; by default the text begins there.
        text : str
            The line, in plain characters.
        size : float
            Size of the letters, in pixels.
        **attributes : str, float or None
            Further attributes, such as ``fill`` or ``text_anchor``.
        """
        written = _attribute_text({"x": x, "y": y, "font_size": size, **attributes})
        self._shapes.append(f"<text{written}>{xml_text(text)}</text>")

    def add_lines(self, lines: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add open lines in one style, each a sequence of points."""
        if lines:
            self.add_element("path", d="".join(map(_path_data, lines)), fill="none", **attributes)

    def add_growing_line(self, line: Sequence[Point], change: str, **attributes: Value) -> None:
        """Add an open line that grows with time.

        `change` is the ``<animate>`` element for its attribute ``stroke-dashoffset``, which goes
        from 1 (nothing is visible) to 0.
        """
        style = {"fill": "none", "pathLength": "1", "stroke_dasharray": "1 1", **attributes}
        written = _attribute_text({"d": _path_data(line), **style, "stroke_dashoffset": "1"})
        self._shapes.append(f"<path{written}>{change}</path>")

    def add_areas(self, areas: Sequence[Sequence[Point]], **attributes: Value) -> None:
        """Add closed areas in one style, each a sequence of corners."""
        if areas:
            self.add_element(
                "path", d="".join(_path_data(area) + "z" for area in areas), **attributes
            )

    def add_mark(
        self, x: float, y: float, radius: float, title: str, change: str = "", *,
        square: bool = False, **attributes: Value,
    ) -> None:  # fmt: skip
        """Add a disc or square with a title for mouse pointers, and perhaps an animation.

        Parameters
        ----------
        x, y : float
            Centre of the mark, in pixels.
        radius : float
            Radius of the disc, in pixels; a square has about the same area.
        title : str
            Text that appears when the mouse pointer is on the mark.
        change : str
            An SVG element inside the mark, such as the result of `animate_attribute`.
        square : bool
            True for a square, False for a disc.
        **attributes : str, float or None
            Attributes of the mark, such as ``fill``.
        """
        half = SQUARE_SIZE * radius
        place: Style = {"cx": x, "cy": y, "r": radius}
        name = "rect" if square else "circle"
        if square:
            place = {"x": x - half, "y": y - half, "width": 2 * half, "height": 2 * half}
        style = _attribute_text({**place, **attributes})
        self._shapes.append(f"<{name}{style}><title>{xml_text(title)}</title>{change}</{name}>")

    def render(self, width: float, height: float, title: str) -> str:
        """Return the complete document.

        Parameters
        ----------
        width, height : float
            Size of the page, in pixels.
        title : str
            Title for browsers and screen readers.
        """
        size = f'width="{_format_number(width)}" height="{_format_number(height)}"'
        box = f'viewBox="0 0 {_format_number(width)} {_format_number(height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} style="{FONT}">',
                f"<title>{xml_text(title)}</title>",
                '<rect width="100%" height="100%" fill="#ffffff"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


def _attribute_text(values: Style) -> str:
    """Return the text of attributes in a tag.

    `values` has the value of each attribute; an attribute with None is left out.
    """
    return "".join(
        f" {name.replace('_', '-')}="
        + xml_attribute(value if isinstance(value, str) else _format_number(value))
        for name, value in values.items()
        if value is not None
    )


def _path_data(points: Iterable[Point]) -> str:
    """Return the attribute ``d`` of a path: straight lines through all `points`, in order."""
    return "M" + "L".join(f"{_format_number(x)} {_format_number(y)}" for x, y in points)
