"""Bars side by side: what several schedules take, one chart for each figure."""

from collections.abc import Mapping, Sequence

from .svg import Svg

__all__ = ["bar_charts"]

#: Colours of a first and of other bars; the page: its margin, bars, and the size of letters.
COLOURS = ("#c8324a", "#2578c4")
MARGIN, BAR, LONGEST, LETTERS = 24.0, 16.0, 260.0, 12.0

#: How wide a letter is, of its size.
WIDTH = 0.62


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
    indent = MARGIN + WIDTH * LETTERS * max(map(len, names)) + 8
    svg.text(MARGIN, MARGIN + LETTERS, title, 1.2 * LETTERS, font_weight="bold")
    top = MARGIN + 3 * LETTERS
    for figure, values in charts.items():
        svg.text(MARGIN, top + LETTERS, figure, LETTERS, font_weight="bold")
        top += 1.6 * LETTERS
        most = max((value for value in values if value is not None), default=0) or 1
        for number, (name, value) in enumerate(zip(names, values, strict=True)):
            middle = top + 0.75 * BAR
            svg.text(indent - 8, middle, name, LETTERS, text_anchor="end")
            length = LONGEST * (value or 0) / most
            colour = COLOURS[number >= marked]
            svg.add("rect", x=indent, y=top + 2, width=length, height=BAR - 4, fill=colour)
            text = "-" if value is None else f"{value:g}"
            svg.text(indent + length + 6, middle, text, LETTERS)
            top += BAR
        top += LETTERS
    wide = max(indent + LONGEST + 90, 2 * MARGIN + 0.75 * LETTERS * len(title))
    return svg.render(wide, top + MARGIN, title)
