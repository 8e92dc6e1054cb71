"""Charts of the command ``compare`` as SVG: bars for algorithms, curves over the message length."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log2

from ..toolchain.public import public
from .svg import Style, Svg

__all__ = ["bar_charts", "curve_chart"]

#: Corners of the markers of curves, in turn; no corners stand for a circle. Every other marker is
#: hollow, so that markers at the same point are all visible.
MARKERS: tuple[Sequence[tuple[float, float]], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((0, 1.2), (1.1, -0.8), (-1.1, -0.8)),
)

#: Half the width of a marker.
MARKER_SIZE = 4.0

#: Colours of curves, in turn; then the colour of the limit and the axes, and of the grid.
COLOURS = ("#2578c4", "#c8324a", "#2f9e63", "#c98a1b", "#7a4fb5", "#4a4a4a", "#1aa3b8", "#a8577e")
INK, GRID = "#000000", "#dddddd"

#: Sizes of a page of curves: margin, width and height of the chart, and letters, in pixels.
MARGIN, WIDE, HIGH, LETTERS = 28.0, 460.0, 320.0, 12.0

#: Colours of marked and of other bars, distinct in black and white. Sizes of a page of bars: its
#: margin, height of a bar and longest bar in pixels, and width of a letter relative to its size.
BAR_COLOURS = ("#9a1f33", "#7db4e6")
BAR_MARGIN, BAR_HEIGHT, LONGEST_BAR, LETTER_WIDTH = 24.0, 16.0, 260.0, 0.62


@public
def curve_chart(
    title: str,
    lengths: Sequence[int],
    curves: Mapping[str, Sequence[int | None]],
    limit: Sequence[int],
) -> str:
    """Return an SVG chart of cycles over message lengths, both on logarithmic axes.

    Curves have different markers, so that they can be told apart in black and white.

    Parameters
    ----------
    title : str
        Title of the chart.
    lengths : sequence of int
        Flits of a message, ascending.
    curves : dict of str to sequence of (int or None)
        Cycles of each algorithm at each length; None where the algorithm has no schedule.
    limit : sequence of int
        Lower bound on the cycles at each length, drawn as a dashed line.

    Examples
    --------
    >>> text = curve_chart("two", [1, 2, 4], {"a": [4, 5, 7], "b": [3, 6, None]}, [1, 2, 4])
    >>> text.count("<circle"), ">flits of a message<" in text
    (4, True)
    """
    known = [n for values in (*curves.values(), limit) for n in values if n is not None]
    x = _Axis(lengths[0], lengths[-1], MARGIN + 50, MARGIN + 50 + WIDE)
    low, high = floor(log2(max(min(known), 1))), ceil(log2(max(known)))
    y = _Axis(2**low, 2 ** max(high, low + 1), MARGIN + 3 * LETTERS + HIGH, MARGIN + 3 * LETTERS)
    svg = Svg()
    svg.add_text(MARGIN, MARGIN + LETTERS, title, 1.2 * LETTERS, font_weight="bold")
    _draw_axes(svg, x, y)
    svg.add_lines(
        [_curve_points(x, y, lengths, limit)], stroke=INK, stroke_dasharray="4 3", stroke_width=1.5
    )
    left, line = x.end + 16, y.end + 1.6 * LETTERS
    svg.add_lines([[(left, line), (left + 28, line)]], stroke=INK, stroke_dasharray="4 3")
    svg.add_text(left + 36, line + 4, "cycle limit", LETTERS, fill=INK)
    for number, (name, values) in enumerate(curves.items()):
        line += 1.6 * LETTERS
        _draw_curve(svg, number, _curve_points(x, y, lengths, values))
        _draw_curve(svg, number, [(left, line), (left + 28, line)], marked=[(left + 14, line)])
        svg.add_text(left + 36, line + 4, name, LETTERS, fill=INK)
    wide = left + 36 + 0.66 * LETTERS * max(map(len, [*curves, "cycle limit"])) + MARGIN
    wide = max(wide, 2 * MARGIN + 0.75 * LETTERS * len(title))
    return svg.render(wide, max(y.start + 3.5 * LETTERS, line) + MARGIN, title)


class _Axis:
    """A logarithmic axis for values from `first` to `last`, between two pixel coordinates."""

    def __init__(self, first: int, last: int, start: float, end: float) -> None:
        self.ends, self.start, self.end = {first, last}, start, end
        self._low, self._high = log2(first), log2(last)
        if self._high - self._low < 1:  # one value, or nearly: in the middle of a factor of 2
            middle = (self._low + self._high) / 2
            self._low, self._high = middle - 0.5, middle + 0.5

    def pixel_at(self, value: int) -> float:
        """Return the pixel coordinate of a value."""
        share = (log2(max(value, 1)) - self._low) / (self._high - self._low)
        return self.start + share * (self.end - self.start)

    def tick_values(self, apart: float) -> list[int]:
        """Return the values at the ticks: powers of 2 that are at least `apart` pixels apart.

        If fewer than two powers of 2 lie on the axis, the ticks are the ends of the axis.
        """
        powers = range(ceil(self._low - 1e-9), floor(self._high + 1e-9) + 1)
        each = abs(self.end - self.start) / (self._high - self._low)
        found = [2**n for n in powers if n >= 0 and not n % ceil(apart / each)]
        return found if len(found) > 1 else sorted(self.ends)


def _draw_axes(svg: Svg, x: _Axis, y: _Axis) -> None:
    """Draw the grid, the axes with their ticks, and the names of the axes.

    `svg` gets the shapes. `x` is the axis of flits, `y` the axis of cycles.
    """
    across, along = (
        y.tick_values(1.4 * LETTERS),
        x.tick_values(0.66 * LETTERS * len(f"{max(x.ends)} ")),
    )
    svg.add_lines([[(x.start, y.pixel_at(n)), (x.end, y.pixel_at(n))] for n in across], stroke=GRID)
    svg.add_lines([[(x.pixel_at(n), y.start), (x.pixel_at(n), y.end)] for n in along], stroke=GRID)
    corner = (x.start, y.start)
    svg.add_lines([[corner, (x.end, y.start)], [corner, (x.start, y.end)]], stroke=INK)
    for n in across:
        svg.add_text(x.start - 6, y.pixel_at(n) + 4, str(n), LETTERS, text_anchor="end", fill=INK)
    for n in along:
        svg.add_text(
            x.pixel_at(n), y.start + 1.5 * LETTERS, str(n), LETTERS, text_anchor="middle", fill=INK
        )
    middle, below = (x.start + x.end) / 2, y.start + 3 * LETTERS
    svg.add_text(middle, below, "flits of a message", LETTERS, text_anchor="middle", fill=INK)
    aside, middle = MARGIN, (y.start + y.end) / 2
    svg.add_text(
        aside, middle, "cycles from start to done", LETTERS,
        text_anchor="middle", transform=f"rotate(-90 {aside:g} {middle:g})", fill=INK,
    )  # fmt: skip


def _curve_points(
    x: _Axis, y: _Axis, lengths: Sequence[int], values: Sequence[int | None]
) -> list[tuple[float, float]]:
    """Return the points (x, y) of a curve in pixels, without points for values of None.

    `x` and `y` are the axes of the chart, `lengths` and `values` the coordinates on them.
    """
    pairs = zip(lengths, values, strict=True)
    return [(x.pixel_at(length), y.pixel_at(value)) for length, value in pairs if value is not None]


def _draw_curve(
    svg: Svg,
    number: int,
    points: Sequence[tuple[float, float]],
    marked: Sequence[tuple[float, float]] | None = None,
) -> None:
    """Draw a curve through `points`, in pixels, with markers at `marked`, or at all points.

    `svg` gets the shapes. The colour and the marker are those of curve `number`.
    """
    colour = COLOURS[number % len(COLOURS)]
    svg.add_lines([points], stroke=colour, stroke_width=1.8)
    shape, fill = MARKERS[number % len(MARKERS)], "none" if number % 2 else colour
    style: Style = {"fill": fill, "stroke": colour, "stroke_width": 1.8}
    for x, y in points if marked is None else marked:
        if shape:
            svg.add_areas(
                [[(x + MARKER_SIZE * dx, y + MARKER_SIZE * dy) for dx, dy in shape]], **style
            )
        else:
            svg.add_element("circle", cx=x, cy=y, r=MARKER_SIZE, **style)


@public
def bar_charts(
    title: str,
    names: Sequence[str],
    charts: Mapping[str, Sequence[float | None]],
    *,
    marked: int = 0,
) -> str:
    """Return an SVG picture with a bar chart for each quantity.

    Parameters
    ----------
    title : str
        Title of the picture.
    names : sequence of str
        Names of the bars, equal in all charts.
    charts : dict of str to sequence of (float or None)
        For each quantity, the values of all bars; None for an unknown value.
    marked : int
        Number of bars, from the first on, that have a different colour.

    Examples
    --------
    >>> bar_charts("two", ["a", "b"], {"steps": [1, 2]}).count("<rect")
    3
    """
    svg = Svg()
    indent = BAR_MARGIN + LETTER_WIDTH * LETTERS * max(map(len, names)) + 8
    svg.add_text(BAR_MARGIN, BAR_MARGIN + LETTERS, title, 1.2 * LETTERS, font_weight="bold")
    top = BAR_MARGIN + 3 * LETTERS
    for figure, values in charts.items():
        svg.add_text(BAR_MARGIN, top + LETTERS, figure, LETTERS, font_weight="bold")
        top += 1.6 * LETTERS
        most = max((value for value in values if value is not None), default=0) or 1
        for number, (name, value) in enumerate(zip(names, values, strict=True)):
            middle = top + 0.75 * BAR_HEIGHT
            svg.add_text(indent - 8, middle, name, LETTERS, text_anchor="end")
            length = LONGEST_BAR * (value or 0) / most
            colour = BAR_COLOURS[number >= marked]
            svg.add_element(
                "rect", x=indent, y=top + 2, width=length, height=BAR_HEIGHT - 4, fill=colour
            )
            text = "-" if value is None else f"{value:g}"
            svg.add_text(indent + length + 6, middle, text, LETTERS)
            top += BAR_HEIGHT
        top += LETTERS
    wide = max(indent + LONGEST_BAR + 90, 2 * BAR_MARGIN + 0.75 * LETTERS * len(title))
    return svg.render(wide, top + BAR_MARGIN, title)
