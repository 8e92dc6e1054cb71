"""A picture that moves: how the message of one node spreads, in scalable vector graphics.

It plays by itself, again and again, wherever a browser shows a picture: no script is needed.
"""

from collections.abc import Iterable

import numpy as np

from ..errors import InputError
from ..program import Program
from ..program.trace import Arrival, arrivals
from .brush import HOP, INK, LINK, RADIUS, STUB, link_lines
from .frame import BLACK, COLOURS, GREY, titled
from .graph_layout import layout_of
from .svg import Svg

__all__ = ["moving_picture"]

#: Seconds for which the whole is shown before it begins again, and at most for all rounds.
REST, LONGEST = 2.0, 9.0

MARGIN, LETTERS = 20.0, 12.0

#: How far beside the middle of a link a path is drawn, in hops.
ASIDE = 0.07


def moving_picture(program: Program, node: int = 0) -> str:
    """The message of a node on its way, round by round.

    Parameters
    ----------
    program : Program
        Of one root.
    node : int
        Whose blocks are shown.

    Raises
    ------
    InputError
        If there is no such node.
    """
    if not 0 <= node < program.topology.nodes:
        raise InputError(f"Node must be from 0 to {program.topology.nodes - 1}, not {node}")
    return _Film(program, node).text()


class _Film:
    """Puts the picture together."""

    def __init__(self, program: Program, node: int) -> None:
        self.program, self.node, self.svg = program, node, Svg()
        self.layout = layout_of(program.topology, root=program.schedule.collective.root or 0)
        count = max(program.schedule.round_count, 1)
        self.round = min(0.8, LONGEST / count)
        self.seconds = self.round * count + REST
        corner = np.array([MARGIN, MARGIN + 3.6 * LETTERS])
        self.shift = corner - HOP * self.layout.box[0]

    def text(self) -> str:
        """The document."""
        moves = [
            (move, chunk) for move in arrivals(self.program) if (chunk := self._chunk(move)) >= 0
        ]
        lines = [[*map(self._page, line)] for line in link_lines(self.layout)]
        self.svg.lines(lines, stroke=LINK, stroke_width=1.2)
        for move, chunk in moves:
            self._path(move, COLOURS[chunk % len(COLOURS)])
        self._nodes(moves)
        picture = titled(self.program.schedule, [], [])
        title, subtitle = picture.title, f"{picture.subtitle}; the message of node {self.node}"
        self.svg.text(MARGIN, MARGIN + 0.8 * LETTERS, title, 1.2 * LETTERS, fill=INK,
                      font_weight="bold")  # fmt: skip
        self.svg.text(MARGIN, MARGIN + 2.4 * LETTERS, subtitle, 0.9 * LETTERS, fill="#5f6368")
        wide, high = HOP * np.ptp(self.layout.box, axis=0) + 2 * MARGIN
        letters = 0.58 * max(1.3 * len(title), 0.9 * len(subtitle)) * LETTERS + 2 * MARGIN
        return self.svg.render(max(wide, letters), high + 3.6 * LETTERS, f"{title}: {subtitle}")

    def _chunk(self, move: Arrival) -> int:
        """Which chunk of the node's message a transfer carries; -1 if none."""
        blocks = self.program.blocks
        ids = np.asarray(move.blocks)
        members = blocks.groups.members[int(blocks.groups.group[move.path[0]])]
        mine = ids[members[blocks.origin(ids)] == self.node]
        return int(blocks.chunk(mine[:1])[0]) if mine.size else -1

    def _page(self, point: np.ndarray) -> np.ndarray:
        return np.asarray(self.shift + HOP * point)

    def _path(self, move: Arrival, colour: str) -> None:
        """A path that grows in its round, each link for as long."""
        first = (move.round - 1) * self.round
        each = self.round / len(move.hops)
        for number, (node, port) in enumerate(zip(move.path, move.hops, strict=False)):
            begin = first + number * each
            for piece in self._hop(node, port):
                data = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in map(self._page, piece))
                grows = self._change("stroke-dashoffset", "1;1;0;0", begin, begin + each)
                self.svg.hold("path", grows, d=data, fill="none", stroke=colour, stroke_width=3,
                              stroke_linecap="round", pathLength="1", stroke_dasharray="1 1",
                              stroke_dashoffset="1")  # fmt: skip

    def _hop(self, node: int, port: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """The lines of a hop: one, or a stub at either end."""
        layout, there = self.layout, self.program.topology.neighbours[node, port]
        ends, back_at = layout.ends
        back = ends[there, back_at[port]]
        step = layout.hops[node, port]
        places = layout.positions[:, node], layout.positions[:, there]
        if layout.joined[node, port]:
            return [(places[0] + _right(step), places[1] + _right(step))]
        start, end = places[0] + _right(step), places[1] - _right(back)
        return [(start, start + STUB * step), (end + STUB * back, end)]

    def _nodes(self, moves: list[tuple[Arrival, int]]) -> None:
        """Each node changes its colour when the last it gets of the message has come."""
        complete = {move.node: move.round for move, _ in moves}
        for node, place in enumerate(self.layout.positions.T):
            (x, y), size = self._page(place), RADIUS * HOP
            style = {"cx": x, "cy": y, "r": size, "stroke": "#5f6368", "stroke_width": 1}
            if node == self.node or node not in complete:
                fill = BLACK if node == self.node else "#ffffff"
                self.svg.add("circle", fill=fill, **style)
                continue
            at = complete[node] * self.round
            change = self._change("fill", f"#ffffff;#ffffff;{GREY};{GREY}", at - 0.01, at)
            self.svg.hold("circle", change, fill="#ffffff", **style)

    def _change(self, name: str, values: str, begin: float, end: float) -> str:
        """An attribute that changes between two moments of each showing."""
        times = ";".join(f"{time / self.seconds:.4f}" for time in (0, begin, end, self.seconds))
        return (
            f'<animate attributeName="{name}" dur="{self.seconds:.2f}s" repeatCount="indefinite" '
            f'keyTimes="{times}" values="{values}"/>'
        )


def _right(step: np.ndarray) -> np.ndarray:
    """How far beside the middle of a link a path is drawn, to the right."""
    return np.asarray(ASIDE * np.array([-step[1], step[0]]) / np.hypot(*step))
