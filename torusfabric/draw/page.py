"""Layout of a page: the titles, the panels in rows, and the legend."""

import math
from collections.abc import Sequence

import numpy as np

from .brush import HOP_PIXELS, INK, PanelPainter
from .picture import LegendEntry, Picture
from .svg import Svg

__all__ = ["paint_picture"]

#: Least size of letters, in pixels, and their size on a wide page as a share of its width.
LETTERS = 12.0
LETTER_SHARE = 1 / 150

MARGIN = 24.0


def paint_picture(picture: Picture) -> str:
    """Return the SVG document of a picture."""
    svg = Svg()
    sizes = np.array(
        [HOP_PIXELS * np.ptp(panel.layout.bounding_box, axis=0) for panel in picture.panels]
    )
    wide, high = sizes.max(axis=0)
    columns = _column_count(len(sizes), wide, high, stacked=picture.stacked)
    letters = max(LETTERS, LETTER_SHARE * columns * sizes[:, 0].max())
    titles = [0.65 * letters * len(panel.title) for panel in picture.panels]
    sizes = np.stack([np.maximum(sizes[:, 0], titles), sizes[:, 1]], axis=1)
    middles, (wide, below) = _panel_middles(sizes, columns, 2 * letters * any(titles), letters)
    for panel, size, middle in zip(picture.panels, sizes, middles, strict=True):
        x, y = middle[0], middle[1] - size[1] / 2 - letters
        svg.add_text(x, y, panel.title, letters, fill=INK, text_anchor="middle")
        PanelPainter(svg, panel, middle, letters).paint()
    words = max(0.75 * len(picture.title), 0.5 * len(picture.subtitle)) * letters
    wide = max(wide, words + 2 * MARGIN)
    svg.add_text(MARGIN, MARGIN + 0.8 * letters, picture.title, 1.2 * letters, font_weight="bold")
    svg.add_text(MARGIN, MARGIN + 2.4 * letters, picture.subtitle, 0.9 * letters, fill="#5f6368")
    height = _paint_legend(svg, picture.keys, below, wide, 0.9 * letters)
    return svg.render(wide, height, f"{picture.title}: {picture.subtitle}")


def _column_count(count: int, width: float, height: float, *, stacked: bool) -> int:
    """Return the number of panels in a row, for a page about 1.6 times as wide as high.

    There are `count` panels of equal width and height; with `stacked` each has its own row.
    """
    if stacked:
        return 1
    columns = min(count, max(1, math.ceil(math.sqrt(1.6 * count * height / width))))
    # The same number of rows, filled evenly.
    return math.ceil(count / math.ceil(count / columns))


def _panel_middles(
    sizes: np.ndarray, columns: int, title: float, letters: float
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Return the position of each panel on the page, and the extent of all panels.

    Parameters
    ----------
    sizes : ndarray of float, shape (panels, 2)
        Width and height of each panel, in pixels.
    columns : int
        Number of panels in a row.
    title : float
        Height of the title of a panel, in pixels; the panel is below it.
    letters : float
        Size of letters, in pixels.

    Returns
    -------
    middles : list of (float, float)
        Middle (x, y) of each panel, in pixels.
    end : (float, float)
        Right and lower end of all panels, in pixels.
    """
    widths = [sizes[k::columns, 0].max() for k in range(columns)]
    heights = [sizes[k : k + columns, 1].max() + title for k in range(0, len(sizes), columns)]
    lefts = MARGIN + np.cumsum([0, *widths]) + MARGIN * np.arange(columns + 1)
    tops = MARGIN + 3.6 * letters + np.cumsum([0, *heights]) + MARGIN * np.arange(len(heights) + 1)
    middles = []
    for k in range(len(sizes)):
        column, line = k % columns, k // columns
        y = tops[line] + (heights[line] + title) / 2
        middles.append((lefts[column] + widths[column] / 2, y))
    return middles, (lefts[-1], tops[-1])


def _paint_legend(
    svg: Svg, keys: Sequence[LegendEntry], top: float, wide: float, letters: float
) -> float:
    """Paint the legend in one line or several, and return the height of the page, in pixels.

    `svg` gets the shapes, and `keys` are the entries of the legend. `top` is the y coordinate of
    the first line, `wide` the width of the page, and `letters` the size of letters, all in pixels.
    """
    x, y = MARGIN, top
    for key in keys:
        many = len(key.colours) > 1
        before = f"{key.text} {key.first}" if many else ""
        after = key.last if many else key.text
        bar, gap = (10 if many else 2.4) * letters, 0.6 * letters
        start = x + (0.64 * letters * len(before) + gap if many else 0)
        end = start + bar + gap + 0.64 * letters * len(after)
        if x > MARGIN and end > wide - MARGIN:
            start, end = start - x + MARGIN, end - x + MARGIN
            x, y = MARGIN, y + 1.8 * letters
        svg.add_text(x, y + 0.36 * letters, before, letters, fill=INK)
        each = bar / len(key.colours)
        for k, colour in enumerate(key.colours):
            svg.add_element(
                "rect",
                x=start + k * each,
                y=y - 0.36 * letters,
                width=each + 0.3,
                height=0.72 * letters,
                fill=colour,
            )
        svg.add_text(start + bar + gap, y + 0.36 * letters, after, letters, fill=INK)
        x = end + 2 * letters
    return y + MARGIN
