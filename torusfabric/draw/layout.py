"""Where nodes are drawn: positions in the plane, and the direction of each port.

Those of a torus and an arrowhead torus are here, of any other topology in `graph_layout`.

Coordinates count hops, x to the right and y downwards. A link is drawn as a line where its two ends
lie one hop apart in the direction of its port, and as a stub at either end everywhere else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..topology import Arrowhead, Topology, Torus
from ..topology.arrowhead import DIRECTIONS

__all__ = [
    "Caption",
    "Layout",
    "Region",
    "arrowhead_layout",
    "axis_directions",
    "hexagon_layout",
    "rows_and_layers",
    "torus_layout",
]

#: Words in a picture and the middle of their base line: (x, y, text).
Caption: TypeAlias = tuple[float, float, str]

#: Free space between two layers, in hops.
LAYER_GAP = 1.4

#: Directions of the ports that lead to another layer, by axis from the third last, in degrees.
LAYER_ANGLES = (45, 135, 22, 112, 67, 157)

#: The colours of the three heads of an arrowhead.
HEAD_TINTS = ("#fbeee6", "#eaf2fb", "#edf6ea")


@dataclass(frozen=True, eq=False)
class Region:
    """An outline behind the nodes.

    Parameters
    ----------
    corners : ndarray of float, shape (2, corners)
    fill : str
        A colour, or ``none``.
    """

    corners: np.ndarray
    fill: str = "none"


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the nodes of a topology are drawn.

    Parameters
    ----------
    positions : ndarray of float, shape (2, nodes)
    steps : ndarray of float, shape (2, 1, ports) or (2, nodes, ports)
        One hop along each port, of all nodes alike or of each.
    ghosts : bool
        Whether a single hop that cannot be drawn as a line leads to a second picture of its end,
        one hop away, instead of a stub.
    """

    topology: Topology
    positions: np.ndarray
    steps: np.ndarray
    regions: tuple[Region, ...] = ()
    captions: tuple[Caption, ...] = ()
    ghosts: bool = False

    @cached_property
    def joined(self) -> np.ndarray:
        """Whether the neighbour at each port is one hop away, a bool array (nodes, ports)."""
        there = self.positions[:, self.topology.neighbours]
        gap = there - self.positions[:, :, None] - self.steps
        return np.asarray((np.hypot(*gap) < 1e-6) & self.topology.linked)

    @cached_property
    def hops(self) -> np.ndarray:
        """One hop along each port of each node, a float array of shape (nodes, ports, 2)."""
        shape = 2, self.topology.nodes, self.topology.ports
        return np.moveaxis(np.broadcast_to(self.steps, shape), 0, 2)

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """One hop along each end of a link, (nodes, ends, 2), and the end at which ports arrive.

        The first ends are the out-ports. Where links lead both ways, in-ports are the same; else
        they follow.
        """
        topology = self.topology
        if topology.backwards is topology:
            return self.hops, topology.opposite
        came = -self.hops[topology.upstream]
        return np.concatenate([self.hops, came], axis=1), topology.ports + topology.opposite

    @cached_property
    def links(self) -> np.ndarray:
        """What shows each link once: rows (node, port), of both its ends where it is two stubs."""
        if self.topology.backwards is not self.topology:
            return np.argwhere(self.topology.linked)
        near, back = self.topology.neighbours, self.topology.opposite
        nodes, ports = np.arange(self.topology.nodes)[:, None], np.arange(self.topology.ports)
        first = (ports < back) | ((ports == back) & (nodes < near))
        return np.argwhere((first | ~self.joined) & self.topology.linked)

    @cached_property
    def box(self) -> np.ndarray:
        """The least and greatest coordinates, an array of shape (2, 2), stubs included."""
        margin = 1.2 if self.ghosts else 0.75
        boxes = [self.positions - margin, self.positions + margin]
        boxes += [region.corners for region in self.regions]
        boxes += [np.array([(x - 0.5, x + 0.5), (y - 0.4, y + 0.2)]) for x, y, _ in self.captions]
        points = np.concatenate(boxes, axis=1)
        return np.stack([points.min(axis=1), points.max(axis=1)])


def torus_layout(topology: Torus, *, centre: int | None = None, in_one_row: bool = False) -> Layout:
    """Rows and columns for the last two axes, and a layer for each position on the others.

    Parameters
    ----------
    centre : int, optional
        The node that is drawn in the middle; by default node 0 is drawn in the upper left corner.
    in_one_row : bool
        Whether the layers of a torus of three axes stand side by side.
    """
    coordinates = topology.coordinates(np.arange(topology.nodes))
    positions, captions = rows_and_layers(
        topology.sides, coordinates, centre=centre, in_one_row=in_one_row
    )
    plus = axis_directions(len(topology.sides))
    steps = np.stack([plus, -plus], axis=2).reshape(2, 1, -1)
    return Layout(topology, positions, steps, captions=captions)


def rows_and_layers(
    sides: tuple[int, ...],
    coordinates: np.ndarray,
    *,
    centre: int | None = None,
    in_one_row: bool = False,
) -> tuple[np.ndarray, tuple[Caption, ...]]:
    """Positions of nodes in a grid of one axis or more, and captions of its layers.

    Parameters
    ----------
    coordinates : ndarray of int, shape (axes, nodes)
    centre : int, optional
        The node that is drawn in the middle.
    in_one_row : bool
        Whether the layers of three axes stand side by side.
    """
    missing = max(2 - len(sides), 0)
    sides = (1,) * missing + sides
    coordinates = np.concatenate([np.zeros((missing, coordinates.shape[1]), int), coordinates])
    if centre is not None:
        middle = np.array(sides) // 2 - coordinates[:, centre]
        shown = (coordinates + middle[:, None]) % np.array(sides)[:, None]
    else:
        shown = coordinates
    *lead, rows, columns = sides
    across = lead[-1] if lead else 1
    if len(lead) == 1 and not in_one_row:
        # somewhat wider than high; and as few lines, but filled evenly
        across = min(lead[0], math.ceil(math.sqrt(1.6 * lead[0] * rows / columns)))
        across = math.ceil(lead[0] / math.ceil(lead[0] / across))
    layer = np.ravel_multi_index(shown[:-2], lead) if lead else np.zeros(shown.shape[1], int)
    corner = np.array(
        [layer % across * (columns + LAYER_GAP), layer // across * (rows + LAYER_GAP)]
    )
    captions = _layer_captions(layer, corner, coordinates[:-2], columns) if lead else ()
    return corner + shown[:-3:-1], captions


def axis_directions(axes: int) -> np.ndarray:
    """One hop along each axis, (2, axes): the last to the right, the one before down, or aslant."""
    plus = np.zeros((2, axes))
    for axis in range(axes):
        before_last = axes - 1 - axis
        if before_last < 2:
            plus[before_last, axis] = 1
        else:
            angle = math.radians(LAYER_ANGLES[(before_last - 2) % len(LAYER_ANGLES)])
            plus[:, axis] = 0.9 * math.cos(angle), -0.9 * math.sin(angle)
    return plus


def _layer_captions(
    layer: np.ndarray, corner: np.ndarray, lead: np.ndarray, columns: int
) -> tuple[Caption, ...]:
    """The coordinates that the nodes of each layer share, above it."""
    captions = []
    for first in np.unique(layer, return_index=True)[1]:
        shared = ",".join(str(x) for x in lead[:, first])
        x, y = corner[:, first]
        captions.append((x + (columns - 1) / 2, y - 0.7, f"({shared},·,·)"))
    return tuple(captions)


def _lattice(points: np.ndarray) -> np.ndarray:
    """Lattice points (x, y) of the arrowhead in the plane: N is up, SW and SE a third turn away."""
    x, y = np.asarray(points, float)
    return np.stack([-math.sqrt(3) / 2 * y, y / 2 - x])


def _triangles(side: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The nine triangles of the paper's pictogram: three heads, and the six of the hexagon.

    The triangle around the arrowhead has its corners 2^n hops from the middle. The middle hexagon
    has two thirds of its area, as much as all nodes need.
    """
    middle = np.zeros((2, 1))
    corners = _lattice(
        side / 3 * np.array([(2, 1), (1, 2), (-1, 1), (-2, -1), (-1, -2), (1, -1)]).T
    )
    sectors = [np.c_[middle, corners[:, [k, (k + 1) % 6]]] for k in range(6)]
    tips = _lattice(side * DIRECTIONS[:3].T)
    bases = [(0, 5), (1, 2), (3, 4)]
    heads = [np.c_[tips[:, [k]], corners[:, list(base)]] for k, base in enumerate(bases)]
    return heads, sectors


def arrowhead_layout(topology: Arrowhead, root: int = 0, *, turned: bool = False) -> Layout:
    """The arrowhead as it is built: four arrowheads of the order below, and so on (figure 2b).

    Parameters
    ----------
    root : int
        The node in the middle.
    turned : bool
        Whether the picture is turned by half a turn, heads to the south.
    """
    sign = -1 if turned else 1
    offset = topology.subtract(np.arange(topology.nodes), root)
    label = topology.subtract(0, offset) if turned else offset
    heads, sectors = _triangles(2**topology.order)
    regions = [Region(sign * sector) for sector in sectors]
    regions += [Region(sign * head, tint) for head, tint in zip(heads, HEAD_TINTS, strict=True)]
    return Layout(
        topology,
        positions=sign * _lattice(topology.embedding[:, label]),
        steps=_lattice(DIRECTIONS.T)[:, None],
        regions=tuple(regions),
        captions=_names("T", [sign * head for head in heads]),
        ghosts=True,
    )


def hexagon_layout(topology: Arrowhead, root: int = 0) -> Layout:
    """The arrowhead folded to a hexagon without holes (figure 2c).

    Each of the three heads is moved back by 2^n hops, from beyond one side of the hexagon into the
    holes beside the opposite side: the sector U of the same number.

    Parameters
    ----------
    root : int
        The node in the middle.
    """
    side = 2**topology.order
    points = topology.embedding[:, topology.subtract(np.arange(topology.nodes), root)]
    x, y = points
    for along, direction in zip((2 * x - y, 2 * y - x, -x - y), DIRECTIONS[:3], strict=True):
        points = points - np.where(along > side, side, 0) * direction[:, None]
    sectors = _triangles(side)[1]
    filled = [sectors[k] for k in (2, 4, 0)]
    regions = [Region(sector) for sector in sectors]
    regions += [Region(sector, tint) for sector, tint in zip(filled, HEAD_TINTS, strict=True)]
    return Layout(
        topology,
        positions=_lattice(points),
        steps=_lattice(DIRECTIONS.T)[:, None],
        regions=tuple(regions),
        captions=_names("U", filled),
        ghosts=True,
    )


def _names(letter: str, triangles: Sequence[np.ndarray]) -> tuple[Caption, ...]:
    """Captions T1, T2, T3 beyond the tips of heads, or U1, U2, U3 beyond the sides of sectors."""
    captions = []
    for k, triangle in enumerate(triangles, 1):
        far, beyond = (
            (triangle[:, 0], 0.5) if letter == "T" else (triangle[:, 1:].mean(axis=1), 1.2)
        )
        x, y = far * (1 + beyond / np.hypot(*far))
        captions.append((x, y + 0.15, f"{letter}{k}"))
    return tuple(captions)
