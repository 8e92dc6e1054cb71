"""The heat map of a schedule: idle and busy rounds of each arc.

Each arc, named by its port and its node, has a row of the map. Each round has a column. A cell is
busy (#) or idle (.)::

    port +0   node 0   ####..####   bar: share of rounds in which the arc is busy
              node 1   ####....##   bar
    port -0   node 0   ..########   bar
              ..
                       bars: share of arcs that are busy in each round
"""

from collections.abc import Iterator

import numpy as np

from ..analysis.link_use import busy_arcs
from ..errors import InputError
from ..schedule import Schedule
from ..topology import BoolArray
from .frame import rounds_text
from .svg import Svg, colour_at

__all__ = ["heat_map"]

#: Most arcs times rounds of a heat map; nobody could read more.
MOST_CELLS = 2**20

#: Colours of busy and idle cells, and of shares from 0 to 1.
BUSY, IDLE, SHARE_SCALE = "#2578c4", "#f6d8ae", ("#f6d8ae", "#8fbfe0", "#2578c4", "#0c2f66")

#: Sizes in pixels: margin, width of names, length of the longest bar, and letters.
MARGIN, NAME_WIDTH, BAR_LENGTH, LETTERS = 24.0, 90.0, 90.0, 12.0

#: Width of the legend of colours, in pixels.
LEGEND_WIDTH = 170.0


def heat_map(schedule: Schedule) -> str:
    """Return an SVG picture with a row for each arc and a column for each round.

    A cell shows if the arc is busy in the round. Bars show the share of busy cells in each row and
    column.

    Parameters
    ----------
    schedule : Schedule
        Any schedule.

    Raises
    ------
    InputError
        If there are too many arcs and rounds for a picture.
    """
    topology, rounds = schedule.topology, schedule.round_count
    cells = topology.nodes * topology.ports * rounds
    if cells > MOST_CELLS:
        raise InputError(
            f"Arcs times {schedule.switching.unit}s must be at most {MOST_CELLS} for a heat map, "
            f"not {cells}; choose a smaller network"
        )
    shape = topology.ports, topology.nodes, rounds
    busy = np.zeros(shape, bool)
    for number, arcs in enumerate(busy_arcs(schedule)):
        busy[:, :, number] = arcs.T
    return _HeatMapPage(schedule, busy).render()


class _HeatMapPage:
    """The picture under construction; `render` returns it.

    Parameters
    ----------
    schedule : Schedule
        The schedule, for the titles.
    busy : ndarray of bool, shape (ports, nodes, rounds)
        True if an arc carries a block in a round.
    """

    def __init__(self, schedule: Schedule, busy: BoolArray) -> None:
        self.schedule, self.busy, self.svg = schedule, busy, Svg()
        ports, nodes, rounds = busy.shape
        self.wide = min(max(480.0 / max(rounds, 1), 2.0), 24.0)
        self.high = min(max(640.0 / (ports * nodes), 1.0), 12.0)
        self.gap = max(self.high, 4.0)
        self.left, self.top = MARGIN + NAME_WIDTH, MARGIN + 5.5 * LETTERS
        self.right = self.left + rounds * self.wide
        self.bottom = self.top + ports * nodes * self.high + (ports - 1) * self.gap

    @property
    def explanation(self) -> str:
        """The text that explains rows, columns and bars."""
        unit = self.schedule.switching.unit
        return f"a row for each node, a column for each {unit}; bars: share that is busy"

    def render(self) -> str:
        """Draw all parts, and return the SVG document."""
        for port in range(len(self.busy)):
            self._draw_port(port)
        self._draw_rounds()
        title, subtitle = self._title_and_subtitle()
        self.svg.add_text(MARGIN, MARGIN + 0.8 * LETTERS, title, 1.2 * LETTERS, font_weight="bold")
        self.svg.add_text(MARGIN, MARGIN + 2.4 * LETTERS, subtitle, 0.9 * LETTERS, fill="#5f6368")
        top = MARGIN + 3.6 * LETTERS
        for number, (colour, text) in enumerate(((BUSY, "busy"), (IDLE, "idle"))):
            x = MARGIN + number * 80
            self._draw_rect(x, top, 2 * LETTERS, 0.7 * LETTERS, colour)
            self.svg.add_text(x + 2.5 * LETTERS, top + 0.7 * LETTERS, text, 0.9 * LETTERS)
        x, y = MARGIN + LEGEND_WIDTH, top + 0.7 * LETTERS
        self.svg.add_text(x, y, self.explanation, 0.9 * LETTERS, fill="#5f6368")
        letters = max(
            1.25 * len(title), len(subtitle), len(self.explanation) + LEGEND_WIDTH / 0.6 / LETTERS
        )
        wide = max(
            self.right + 0.5 * MARGIN + BAR_LENGTH + MARGIN, 2 * MARGIN + 0.6 * LETTERS * letters
        )
        return self.svg.render(wide, self.bottom + BAR_LENGTH + 2 * MARGIN, f"{title}: {subtitle}")

    def _title_and_subtitle(self) -> tuple[str, str]:
        """Return the title, and the subtitle with the total use of links."""
        schedule = self.schedule
        arcs, unused = self.busy[..., 0].size, int((~self.busy.any(axis=2)).sum())
        never = f", {unused} of {arcs} arcs never" if unused else ""
        share = f"{100 * self.busy.mean():.1f} % of link time used{never}"
        title = f"{schedule.topology} {schedule.collective}, {schedule.algorithm}: use of links"
        return title, f"{rounds_text(schedule)}, {share}"

    def _draw_port(self, port: int) -> None:
        """Draw the rows of the arcs of one port, and the bar of each row."""
        nodes, rounds = self.busy.shape[1:]
        top = self.top + port * (nodes * self.high + self.gap)
        name = f"port {self.schedule.topology.port_names[port]}"
        middle = top + nodes * self.high / 2 + 0.35 * LETTERS
        self.svg.add_text(self.left - 8, middle, name, LETTERS, text_anchor="end")
        self._draw_rect(self.left, top, rounds * self.wide, nodes * self.high, BUSY)
        for node, first, end in _idle_ranges(self.busy[port]):
            y = top + node * self.high
            self._draw_rect(
                self.left + first * self.wide, y, (end - first) * self.wide, self.high, IDLE
            )
        for node, share in enumerate(self.busy[port].mean(axis=1).tolist()):
            y = top + node * self.high
            self._draw_rect(
                self.right + MARGIN / 2,
                y,
                BAR_LENGTH * share,
                self.high,
                colour_at(SHARE_SCALE, share),
            )

    def _draw_rounds(self) -> None:
        """Draw the numbers of the rounds above the columns, and the bar of each column below."""
        top = self.bottom + MARGIN / 2
        shares = self.busy.mean(axis=(0, 1)).tolist()
        for number, share in enumerate(shares):
            x = self.left + number * self.wide
            self._draw_rect(x, top, self.wide, BAR_LENGTH * share, colour_at(SHARE_SCALE, share))
        step = max(1, round(len(shares) / 10))
        for number in range(0, len(shares), step):
            x = self.left + (number + 0.5) * self.wide
            self.svg.add_text(x, self.top - 4, str(number + 1), 0.8 * LETTERS, text_anchor="middle")

    def _draw_rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """Draw a rectangle: a cell, several cells side by side, or a bar.

        `x` and `y` are its upper left corner, `width` and `height` its size, all in pixels. `fill`
        is its colour.
        """
        self.svg.add_element("rect", x=x, y=y, width=width, height=height, fill=fill)


def _idle_ranges(busy: BoolArray) -> Iterator[tuple[int, int, int]]:
    """Yield (node, first, end) for each longest range of rounds in which an arc is idle.

    `busy` has the shape (nodes, rounds), for the arcs of one port. The arc is idle in the rounds
    `first` to `end` - 1.
    """
    padded = np.pad(~busy, ((0, 0), (1, 1))).astype(np.int8)
    change = np.diff(padded, axis=1)
    starts, ends = np.argwhere(change > 0), np.argwhere(change < 0)
    for (node, first), (_, end) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield node, first, end
