"""Painting of one panel as SVG: links, strokes, and nodes with their numbers.

A *stroke* is the line of a path. Each of its points is given relative to a port of a node: `ahead`
is the distance from the node in the direction of the port, `offset` the distance to the right of
this direction, both in hops.
"""

import math
from collections.abc import Iterable

import numpy as np

from .picture import Panel, Stroke
from .svg import Point, Style, Svg, animate_attribute

__all__ = ["HOP_PIXELS", "INK", "PanelPainter"]

#: Length of a hop in pixels, and radius of a node in hops.
HOP_PIXELS = 36.0
RADIUS = 0.21

#: Length of a stub from the middle of its node, in hops.
STUB_LENGTH = 0.52

#: Distance from its first and its last node at which a path of several hops reaches its offset, in
#: hops.
TURN_DISTANCE = 0.47

INK, LINK = "#202124", "#d5d8dc"

#: Colour of a node in a moving picture after its last part of the message has arrived.
REACHED = "#9aa0a6"


class PanelPainter:
    """The painter of one panel; `paint` adds its shapes to an SVG text.

    Parameters
    ----------
    svg : Svg
        The text to which shapes are added.
    panel : Panel
        The panel to paint.
    middle : pair of float
        Middle of the panel on the page, in pixels.
    letters : float
        Size of the captions, in pixels.
    """

    def __init__(self, svg: Svg, panel: Panel, middle: Point, letters: float) -> None:
        self._svg = svg
        self._letters = letters
        self._panel = panel
        self._ghosts: dict[tuple[float, float], int] = {}
        self._layout = panel.layout
        self._topology = panel.layout.topology
        self._origin = np.asarray(middle) - HOP_PIXELS * panel.layout.bounding_box.mean(axis=0)
        self._positions = panel.layout.positions.T
        self._steps, self._back = panel.layout.link_end_directions
        self._length = np.hypot(*np.moveaxis(self._steps, 2, 0))
        self._along = self._steps / self._length[:, :, None]
        # The direction to the right of a port's direction; y grows downwards on the page.
        self._right = np.stack([-self._along[:, :, 1], self._along[:, :, 0]], axis=2)

    def _to_pixels(self, points: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Convert points from hops to pixels of the page."""
        return [self._origin + HOP_PIXELS * point for point in points]

    def paint(self) -> None:
        """Paint areas, captions, links, paths (strokes) and nodes, from back to front."""
        for region in self._layout.regions:
            self._svg.add_areas(
                [self._to_pixels(region.corners.T)],
                fill=region.fill,
                stroke="#c9ccd1",
                stroke_width=0.8,
                stroke_dasharray="4 4",
            )
        for x, y, text in self._layout.captions:
            ((x, y),) = self._to_pixels([np.array((x, y))])
            self._svg.add_text(x, y, text, self._letters, fill="#80868b", text_anchor="middle")
        self._paint_links()
        self._paint_strokes()
        self._paint_nodes()

    def _paint_links(self) -> None:
        """Paint the links of the network, each once."""
        layout, lines = self._layout, []
        for node, port in layout.drawn_links.tolist():
            place = layout.positions[:, node]
            length = 1 if layout.is_line[node, port] else STUB_LENGTH
            lines.append(self._to_pixels([place, place + length * layout.hop_vectors[node, port]]))
        self._svg.add_lines(lines, stroke=LINK, stroke_width=1)

    def _paint_strokes(self) -> None:
        """Paint the lines of paths with a white rim, in one SVG path for each colour and width."""
        groups: dict[tuple[str, float], tuple[list[list[np.ndarray]], list[list[np.ndarray]]]] = {}
        for stroke in self._panel.strokes:
            if stroke.grows:
                self._paint_growing(stroke, *stroke.grows)
                continue
            lines, tips = groups.setdefault((stroke.colour, stroke.width), ([], []))
            pieces = self._stroke_points(stroke)
            if stroke.arrow:
                tips.append(self._arrow_tip(pieces[-1], stroke.width))
            lines.extend(self._to_pixels(piece) for piece in pieces)
        for (colour, width), (lines, _) in groups.items():
            style = {"stroke_linejoin": "round"}
            self._svg.add_lines(lines, stroke="#ffffff", stroke_width=width + 1.2, **style)
            self._svg.add_lines(lines, stroke=colour, stroke_width=width, **style)
        for (colour, _), (_, tips) in groups.items():
            self._svg.add_areas(tips, fill=colour)

    def _paint_growing(self, stroke: Stroke, begin: float, end: float) -> None:
        """Paint the line of a path that grows from second `begin` to second `end`."""
        assert self._panel.film is not None
        moments = (0, begin, end, self._panel.film.seconds)
        style: Style = {"stroke": stroke.colour, "stroke_width": stroke.width}
        for piece in self._stroke_points(stroke):
            growing = animate_attribute("stroke-dashoffset", "1;1;0;0", moments)
            self._svg.add_growing_line(
                self._to_pixels(piece), growing, stroke_linecap="round", **style
            )

    def _stroke_points(self, stroke: Stroke) -> list[list[np.ndarray]]:
        """Return the points of a stroke, as a list of lines, each a list of points (x, y) in hops.

        A stroke has several lines if it crosses a link that is drawn as two *stubs*, short lines at
        both ends of the link. The first stub ends a line, and the second one begins the next line.
        """
        node, offset, bent = stroke.node, stroke.offset, len(stroke.ports) > 1
        if not bent:
            offset = min(offset, 0.13)
            if self._layout.ghosts and not self._layout.is_line[node, stroke.ports[0]]:
                return [self._ghost_points(node, stroke.ports[0], offset, arrow=stroke.arrow)]
        pieces = [[self._start_point(node, stroke.ports[0], offset, bent=bent)]]
        back = -1
        for k, port in enumerate(stroke.ports):
            if k:
                pieces[-1].extend(self._turn_points(node, back, port, offset))
            elif bent:
                pieces[-1].append(self._point_beside(node, port, offset, TURN_DISTANCE))
            joined = self._layout.is_line[node, port]
            if not joined:
                end = STUB_LENGTH * self._length[node, port]
                pieces[-1].append(self._point_beside(node, port, offset, end))
            node, back = self._topology.neighbours[node, port], self._back[port]
            if not joined:
                end = STUB_LENGTH * self._length[node, back]
                pieces.append([self._point_beside(node, back, -offset, end)])
        if bent:
            pieces[-1].append(self._point_beside(node, back, -offset, TURN_DISTANCE))
        pieces[-1].append(self._end_point(node, back, offset, bent=bent, arrow=stroke.arrow))
        return pieces

    def _ghost_points(
        self, node: int, port: int, offset: float, *, arrow: bool
    ) -> list[np.ndarray]:
        """Return the points of a hop to a ghost: a second, pale disc for the neighbour.

        The hop leaves `node` by its out-port `port`. The line is `offset` hops to the right of the
        line between the centres. With `arrow`, it ends a little earlier, before the rim of the
        ghost.
        """
        step = self._steps[node, port]
        ghost = self._topology.neighbours[node, port]
        self._ghosts[tuple(np.round(self._positions[node] + step, 3))] = ghost
        start = self._start_point(node, port, offset, bent=False)
        rim = 0.8 * RADIUS + 0.03 * arrow
        back = math.sqrt(max(rim**2 - offset**2, 0))
        return [start, self._point_beside(node, port, offset, np.hypot(*step) - back)]

    def _point_beside(self, node: int, port: int, offset: float, ahead: float) -> np.ndarray:
        """Return a point beside the direction of a port, in hops.

        The point is `ahead` hops from `node` towards its out-port `port`, and `offset` hops to the
        right.
        """
        arc = node, port
        beside, ahead_by = offset * self._right[arc], ahead * self._along[arc]
        return np.asarray(self._positions[node] + beside + ahead_by)

    def _turn_points(self, node: int, back: int, port: int, offset: float) -> list[np.ndarray]:
        """Return the points of a stroke's turn at a node, from the link of one port to another.

        Parameters
        ----------
        node : int
            The node at which the stroke turns.
        back : int
            The port by which the path arrives. The path runs against the direction of this port, so
            its right is the left of the port.
        port : int
            The port by which the path leaves.
        offset : float
            Distance to the right of the links, in hops.
        """
        before, after = -self._right[node, back], self._right[node, port]
        spread = 1 + before @ after
        if spread > 0.45:
            return [self._positions[node] + offset * (before + after) / spread]
        return [
            self._point_beside(node, back, -offset, 0),
            self._point_beside(node, port, offset, 0),
        ]

    def _start_point(self, node: int, port: int, offset: float, *, bent: bool) -> np.ndarray:
        """Return the point near the rim of a node at which the line of a path begins.

        The path leaves `node` by `port`. If it has several hops (`bent`), the line begins 0.4 radii
        to the right of the middle of the link, whatever the `offset`. The line of one hop begins
        `offset` hops to the right.
        """
        if bent:
            return self._point_beside(node, port, 0.4 * RADIUS, 0.9 * RADIUS)
        return self._point_beside(node, port, offset, math.sqrt(max(RADIUS**2 - offset**2, 0)))

    def _end_point(
        self, node: int, back: int, offset: float, *, bent: bool, arrow: bool
    ) -> np.ndarray:
        """Return the point at the rim of a node at which the line of a path ends.

        The path arrives at `node` through the port `back`. `offset` and `bent` are those of
        `_start_point`; with `arrow`, the point is slightly outside the rim.
        """
        rim = RADIUS + 0.03 * arrow
        if bent:
            return self._point_beside(node, back, -0.4 * rim, 0.9 * rim)
        return self._point_beside(node, back, -offset, math.sqrt(max(rim**2 - offset**2, 0)))

    def _arrow_tip(self, piece: list[np.ndarray], width: float) -> list[np.ndarray]:
        """Return the three corners of an arrow's tip at the end of the line `piece`, in pixels.

        The last point of `piece` is moved back, so that the line ends within the tip. A tip is
        larger for a line of larger `width`.
        """
        *_, before, end = piece
        ahead = (end - before) / max(np.hypot(*(end - before)), 1e-9)
        aside = np.array((-ahead[1], ahead[0]))
        size = 0.11 + 0.03 * width
        base = end - size * ahead
        piece[-1] = end - 0.7 * size * ahead
        return self._to_pixels([end, base + 0.48 * size * aside, base - 0.48 * size * aside])

    def _paint_nodes(self) -> None:
        """Paint the nodes and their numbers.

        Ghosts, second pictures of a neighbour at the end of a path, are smaller and pale.
        """
        ring: Style = {"stroke": "#5f6368", "stroke_width": 0.8}
        film = self._panel.film
        for node, place in enumerate(self._positions):
            fill, turns = self._panel.fills[node], ""
            if film and (at := film.reached.get(node)):
                turns = animate_attribute(
                    "fill", f"{fill};{fill};{REACHED};{REACHED}", (0, at - 0.01, at, film.seconds)
                )
            dark = sum(int(fill[i : i + 2], 16) for i in (1, 3, 5)) < 400
            ink = "#ffffff" if dark else INK
            self._paint_disc(node, place, RADIUS, ink, {"fill": fill, **ring}, turns)
        pale: Style = {
            "fill": "#ffffff",
            "stroke": "#9aa0a6",
            "stroke_width": 0.6,
            "stroke_dasharray": "1.5 1.5",
        }
        for place, node in self._ghosts.items():
            self._paint_disc(node, np.array(place), 0.8 * RADIUS, "#80868b", pale)

    def _paint_disc(
        self, node: int, place: np.ndarray, radius: float, ink: str, style: Style, turns: str = ""
    ) -> None:
        """Paint the disc of a node, or of a second picture of it (ghost), with its number.

        `place` is the centre and `radius` the radius of the disc, both in hops. `ink` is the colour
        of the number, `style` has the SVG attributes of the disc, and `turns` is an SVG element
        inside the disc, such as an animation of its colour.
        """
        (x, y), number = self._origin + HOP_PIXELS * place, str(node)
        relays = node in self._topology.relays
        title = f"{'relay' if relays else 'node'} {number} {self._topology.node_name(node)}"
        size = min(0.99 * radius * HOP_PIXELS, 2.9 * radius * HOP_PIXELS / len(number))
        self._svg.add_mark(x, y, radius * HOP_PIXELS, title, turns, square=relays, **style)
        self._svg.add_text(x, y + 0.36 * size, number, size, fill=ink, text_anchor="middle")
