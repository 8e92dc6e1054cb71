"""Charts: bars side by side, and curves over the length of messages."""

from collections.abc import Mapping, Sequence
from math import log2

from ..toolchain.public import public
from .svg import Svg

__all__ = ["bar_charts", "curve_chart"]

#: Colours of curves, in turn; of the limit, and of the grid.
COLOURS = ("#2578c4", "#c8324a", "#2f9e63", "#c98a1b", "#7a4fb5", "#4a4a4a", "#1aa3b8", "#a8577e")
LIMIT, GRID = "#000000", "#dddddd"

#: The page: its margin, the sides of the chart, the size of letters.
MARGIN, WIDE, HIGH, LETTERS = 28.0, 460.0, 320.0, 12.0

#: Colours of a first and of other bars; the page of bars: its margin, bars, and how wide a letter
#: is, of its size.
BAR_COLOURS = ("#c8324a", "#2578c4")
BAR_MARGIN, BAR, LONGEST, WIDTH = 24.0, 16.0, 260.0, 0.62


@public
def curve_chart(
    title: str,
    lengths: Sequence[int],
    curves: Mapping[str, Sequence[int | None]],
    limit: Sequence[int],
) -> str:
    """A picture of cycles over the flits of a message.

    Parameters
    ----------
    lengths : sequence of int
        Flits, ascending.
    curves : dict of str to sequence of (int or None)
        The cycles of each algorithm at each length; None where there are none.
    limit : sequence of int
        The cycles that nothing can do without, a dashed line.

    Examples
    --------
    >>> curve_chart("two", [1, 2, 4], {"a": [4, 5, 7], "b": [3, 6, None]}, [1, 2, 4]).count("<path")
    4
    """
    svg, left, top = Svg(), MARGIN + 40, MARGIN + 3 * LETTERS
    known = [n for values in (*curves.values(), limit) for n in values if n is not None]
    low, high = int(log2(max(min(known), 1))), -int(-log2(max(known)) // 1)
    first, last = log2(lengths[0]), max(log2(lengths[-1]), log2(lengths[0]) + 1)

    def x(length: int) -> float:
        return left + WIDE * (log2(length) - first) / (last - first)

    def y(cycles: float) -> float:
        return top + HIGH * (1 - (log2(max(cycles, 1)) - low) / max(high - low, 1))

    svg.text(MARGIN, MARGIN + LETTERS, title, 1.2 * LETTERS, font_weight="bold")
    levels = [[(left, y(2**n)), (left + WIDE, y(2**n))] for n in range(low, high + 1)]
    svg.lines(levels, stroke=GRID)
    for n in range(low, high + 1):
        svg.text(left - 6, y(2**n) + 4, str(2**n), LETTERS, text_anchor="end")
    for length in lengths:
        svg.text(x(length), top + HIGH + 1.5 * LETTERS, str(length), LETTERS, text_anchor="middle")
    svg.text(left + WIDE / 2, top + HIGH + 3 * LETTERS, "flits", LETTERS, text_anchor="middle")
    points = [(x(length), y(cycles)) for length, cycles in zip(lengths, limit, strict=True)]
    svg.lines([points], stroke=LIMIT, stroke_dasharray="4 3", stroke_width=1.5)
    named = [("limit", LIMIT)]
    for number, (name, values) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        there = [(x(n), y(v)) for n, v in zip(lengths, values, strict=True) if v is not None]
        svg.lines([there], stroke=colour, stroke_width=2.0)
        named.append((name, colour))
    for number, (name, colour) in enumerate(named):
        height = top + LETTERS * 1.6 * (number + 1)
        svg.text(left + WIDE + 16, height, name, LETTERS, fill=colour, font_weight="bold")
    longest = max(len(name) for name, _ in named)
    wide = left + WIDE + 24 + 0.66 * LETTERS * longest + MARGIN
    return svg.render(wide, top + HIGH + 3.5 * LETTERS + MARGIN, title)


@public
def bar_charts(
    title: str,
    names: Sequence[str],
    charts: Mapping[str, Sequence[float | None]],
    *,
    marked: int = 0,
) -> str:
    """A picture with a chart for each figure, and a bar in each for each name.

    Parameters
    ----------
    charts : dict of str to sequence of (float or None)
        The values of each figure, by names; None where there is none.
    marked : int
        How many of the first bars have a colour of their own.

    Examples
    --------
    >>> bar_charts("two", ["a", "b"], {"steps": [1, 2]}).count("<rect")
    3
    """
    svg = Svg()
    indent = BAR_MARGIN + WIDTH * LETTERS * max(map(len, names)) + 8
    svg.text(BAR_MARGIN, BAR_MARGIN + LETTERS, title, 1.2 * LETTERS, font_weight="bold")
    top = BAR_MARGIN + 3 * LETTERS
    for figure, values in charts.items():
        svg.text(BAR_MARGIN, top + LETTERS, figure, LETTERS, font_weight="bold")
        top += 1.6 * LETTERS
        most = max((value for value in values if value is not None), default=0) or 1
        for number, (name, value) in enumerate(zip(names, values, strict=True)):
            middle = top + 0.75 * BAR
            svg.text(indent - 8, middle, name, LETTERS, text_anchor="end")
            length = LONGEST * (value or 0) / most
            colour = BAR_COLOURS[number >= marked]
            svg.add("rect", x=indent, y=top + 2, width=length, height=BAR - 4, fill=colour)
            text = "-" if value is None else f"{value:g}"
            svg.text(indent + length + 6, middle, text, LETTERS)
            top += BAR
        top += LETTERS
    wide = max(indent + LONGEST + 90, 2 * BAR_MARGIN + 0.75 * LETTERS * len(title))
    return svg.render(wide, top + BAR_MARGIN, title)
