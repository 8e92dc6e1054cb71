"""Layouts: positions of nodes in the plane, and the direction of each port.

This module has the layouts of a torus and an arrowhead torus, `graph_layout` those of all other
topologies. In the pictures of Deserable ("Broadcasting in the Arrowhead Torus", INRIA research
report 2827, 1996), an arrowhead torus is a large triangle: a hexagon in the middle, cut into six
triangular *sectors*, and at the corners three *heads*, T1 to T3.

Coordinates are in hops, x to the right and y downwards. In this module, a *step* is the vector from
a node to the end of one hop along a port. If a neighbour lies exactly one step away, the link is
drawn as a line. Any other link, such as the wrap-around link of a torus, is drawn as a stub at
either end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..topology import Arrowhead, Topology, Torus
from ..topology.arrowhead import DIRECTIONS

__all__ = ["Caption", "NodeLayout", "Region", "arrowhead_layout", "axis_directions",
           "hexagon_layout", "grid_positions", "torus_layout"]  # fmt: skip

#: A text in a picture: (x, y, text), with x and y of the middle of its base line, in hops.
Caption: TypeAlias = tuple[float, float, str]

#: Distance between two layers, in hops, in addition to one hop.
LAYER_GAP = 1.4

#: Directions of the ports to other layers, in degrees, for the third last axis and those before it.
LAYER_ANGLES = (45, 135, 22, 112, 67, 157)

#: Colours of the three heads of an arrowhead.
HEAD_TINTS = ("#fbeee6", "#eaf2fb", "#edf6ea")


@dataclass(frozen=True, eq=False)
class Region:
    """An area behind the nodes, with an outline.

    Parameters
    ----------
    corners : ndarray of float, shape (2, corners)
        Corners of the area, in hops.
    fill : str
        Colour of the area, or ``none``.
    """

    corners: np.ndarray
    fill: str = "none"


@dataclass(frozen=True, eq=False)
class NodeLayout:
    """Positions of the nodes of a topology, directions of their ports, areas and captions.

    Parameters
    ----------
    topology : Topology
        The network in the picture.
    positions : ndarray of float, shape (2, nodes)
        Position of each node, in hops.
    steps : ndarray of float, shape (2, 1, ports) or (2, nodes, ports)
        Vector of one hop along each port, equal for all nodes or for each node.
    regions : tuple of Region
        Areas behind the nodes.
    captions : tuple of Caption
        Texts in the picture.
    ghosts : bool
        True to draw a path of one hop whose ends are not side by side, such as over a wrap-around
        link, to a *ghost*: a second, pale picture of the neighbour. False to draw two short lines
        (stubs).
    """

    topology: Topology
    positions: np.ndarray
    steps: np.ndarray
    regions: tuple[Region, ...] = ()
    captions: tuple[Caption, ...] = ()
    ghosts: bool = False

    @cached_property
    def is_line(self) -> np.ndarray:
        """True for each port whose link is drawn as one line, a bool array of shape (nodes, ports).

        This is so if the neighbour lies in the picture exactly one hop away in the direction of the
        port. Any other link is drawn as a stub, a short line, at either end.
        """
        there = self.positions[:, self.topology.neighbours]
        gap = there - self.positions[:, :, None] - self.steps
        return np.asarray((np.hypot(*gap) < 1e-6) & self.topology.linked)

    @cached_property
    def hop_vectors(self) -> np.ndarray:
        """Vector (x, y) of one hop along each port in the picture, shape (nodes, ports, 2)."""
        shape = 2, self.topology.nodes, self.topology.ports
        return np.moveaxis(np.broadcast_to(self.steps, shape), 0, 2)

    @cached_property
    def link_end_directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Directions in which links leave and reach each node in the picture.

        If every link goes both ways, the ends of links at a node are its ports, end p at port p.
        If some link goes one way only, a node with P ports has 2 P ends: end p is out-port p, and
        end P + p is in-port p.

        Returns
        -------
        directions : ndarray of float, shape (nodes, ends, 2)
            For each end, the vector (x, y) in hops from the node along the link: towards the
            neighbour at an out-port, towards the sender at an in-port.
        back : ndarray of int, shape (ports,)
            For each out-port, the number of the end at the neighbour where its link arrives.
        """
        topology = self.topology
        if topology.backwards is topology:
            return self.hop_vectors, topology.opposite
        came = -self.hop_vectors[topology.upstream]
        return np.concatenate([self.hop_vectors, came], axis=1), topology.ports + topology.opposite

    @cached_property
    def drawn_links(self) -> np.ndarray:
        """Ports at which a line for a link begins, as an array of pairs (node, port).

        A link that is drawn as one line has one pair, a link that is drawn as two stubs (short
        lines) has two. If some link goes one way only, each arc has a pair.
        """
        if self.topology.backwards is not self.topology:
            return np.argwhere(self.topology.linked)
        near, back = self.topology.neighbours, self.topology.opposite
        nodes, ports = np.arange(self.topology.nodes)[:, None], np.arange(self.topology.ports)
        first = (ports < back) | ((ports == back) & (nodes < near))
        return np.argwhere((first | ~self.is_line) & self.topology.linked)

    @cached_property
    def bounding_box(self) -> np.ndarray:
        """Bounds of the picture in hops, stubs included: an array [[x, y], [x, y]] of two corners.

        The first row has the smallest coordinates, the second row the largest.
        """
        margin = 1.2 if self.ghosts else 0.75
        boxes = [self.positions - margin, self.positions + margin]
        boxes += [region.corners for region in self.regions]
        boxes += [np.array([(x - 0.5, x + 0.5), (y - 0.4, y + 0.2)]) for x, y, _ in self.captions]
        points = np.concatenate(boxes, axis=1)
        return np.stack([points.min(axis=1), points.max(axis=1)])


def torus_layout(
    topology: Torus, *, centre: int | None = None, in_one_row: bool = False
) -> NodeLayout:
    """Return the layout of a torus: a grid of rows and columns for each layer.

    The last two axes are the rows and columns of a grid. The nodes with equal coordinates on all
    other axes form a layer, with a grid of its own.

    Parameters
    ----------
    topology : Torus
        The torus to draw.
    centre : int, optional
        The node to draw in the middle. By default node 0 is drawn in the upper left corner.
    in_one_row : bool
        True to place the layers of a torus of three axes side by side.
    """
    coordinates = topology.coordinates(np.arange(topology.nodes))
    positions, captions = grid_positions(
        topology.sides, coordinates, centre=centre, in_one_row=in_one_row
    )
    plus = axis_directions(len(topology.sides))
    steps = np.stack([plus, -plus], axis=2).reshape(2, 1, -1)
    return NodeLayout(topology, positions, steps, captions=captions)


def grid_positions(
    sides: tuple[int, ...],
    coordinates: np.ndarray,
    *,
    centre: int | None = None,
    in_one_row: bool = False,
) -> tuple[np.ndarray, tuple[Caption, ...]]:
    """Return the positions of nodes in a grid, and the captions of its layers.

    A layer has all nodes with equal coordinates on all axes except the last two.

    Parameters
    ----------
    sides : tuple of int
        Length of each axis, one axis or more.
    coordinates : ndarray of int, shape (axes, nodes)
        Coordinates of each node.
    centre : int, optional
        The node to draw in the middle.
    in_one_row : bool
        True to place the layers of a grid of three axes side by side. By default, layers form a
        grid, too.

    Returns
    -------
    positions : ndarray of float, shape (2, nodes)
        Position of each node, in hops.
    captions : tuple of Caption
        Coordinates that the nodes of each layer share.
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
        # A page that is 1.6 times as wide as high; then the same rows of layers, filled evenly.
        across = min(lead[0], math.ceil(math.sqrt(1.6 * lead[0] * rows / columns)))
        across = math.ceil(lead[0] / math.ceil(lead[0] / across))
    layer = np.ravel_multi_index(shown[:-2], lead) if lead else np.zeros(shown.shape[1], int)
    corner = np.array(
        [layer % across * (columns + LAYER_GAP), layer // across * (rows + LAYER_GAP)]
    )
    captions = _layer_captions(layer, corner, coordinates[:-2], columns) if lead else ()
    return corner + shown[:-3:-1], captions


def axis_directions(axes: int) -> np.ndarray:
    """Return the vector of one hop along each axis, shape (2, axes).

    The last axis points to the right, the one before it down, all others obliquely upwards.
    """
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
    """Return a caption above each layer, such as "(1,·,·)": the coordinates that its nodes share.

    A layer has all nodes with equal coordinates on all axes except the last two.

    Parameters
    ----------
    layer : ndarray of int, shape (nodes,)
        Number of each node's layer.
    corner : ndarray of float, shape (2, nodes)
        Position, in hops, of the upper left node of each node's layer.
    lead : ndarray of int, shape (axes - 2, nodes)
        Coordinates of each node on all axes except the last two.
    columns : int
        Number of nodes in a row of a layer.
    """
    captions = []
    for first in np.unique(layer, return_index=True)[1]:
        shared = ",".join(str(x) for x in lead[:, first])
        x, y = corner[:, first]
        captions.append((x + (columns - 1) / 2, y - 0.7, f"({shared},·,·)"))
    return tuple(captions)


def _lattice_to_plane(points: np.ndarray) -> np.ndarray:
    """Map points of the triangular lattice to the picture: from (x, y) to (x, y) in hops.

    In lattice points, x counts hops in direction N, and y hops in direction SW. In the picture N is
    up, and SW and SE are a third of a turn away from it. Both arrays have the shape (2, points).
    """
    x, y = np.asarray(points, float)
    return np.stack([-math.sqrt(3) / 2 * y, y / 2 - x])


def _pictogram_triangles(side: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the nine triangles of the picture of an arrowhead torus, as lists (heads, sectors).

    In this picture (Deserable 1996, figure 2) an arrowhead torus of order n is a large triangle,
    whose corners are `side` = 2^n hops from the middle. In its middle is a hexagon, cut into six
    triangles, the sectors. The three heads are triangles from the hexagon to the corners. Each
    triangle is an array of its corners in hops, shape (2, 3).
    """
    middle = np.zeros((2, 1))
    corners = _lattice_to_plane(
        side / 3 * np.array([(2, 1), (1, 2), (-1, 1), (-2, -1), (-1, -2), (1, -1)]).T
    )
    sectors = [np.c_[middle, corners[:, [k, (k + 1) % 6]]] for k in range(6)]
    tips = _lattice_to_plane(side * DIRECTIONS[:3].T)
    bases = [(0, 5), (1, 2), (3, 4)]
    heads = [np.c_[tips[:, [k]], corners[:, list(base)]] for k, base in enumerate(bases)]
    return heads, sectors


def arrowhead_layout(topology: Arrowhead, root: int = 0, *, turned: bool = False) -> NodeLayout:
    """Return the layout of an arrowhead torus as a large triangle (Deserable 1996, figure 2b).

    The parts of the picture at the corners of the triangle are called its heads, T1 to T3.

    Parameters
    ----------
    topology : Arrowhead
        The arrowhead torus to draw.
    root : int
        The node in the middle.
    turned : bool
        True to rotate the picture by half a turn, so that head T1 points down.
    """
    sign = -1 if turned else 1
    offset = topology.subtract(np.arange(topology.nodes), root)
    label = topology.subtract(0, offset) if turned else offset
    heads, sectors = _pictogram_triangles(2**topology.order)
    regions = [Region(sign * sector) for sector in sectors]
    regions += [Region(sign * head, tint) for head, tint in zip(heads, HEAD_TINTS, strict=True)]
    return NodeLayout(
        topology,
        positions=sign * _lattice_to_plane(topology.embedding[:, label]),
        steps=_lattice_to_plane(DIRECTIONS.T)[:, None],
        regions=tuple(regions),
        captions=_corner_captions("T", [sign * head for head in heads]),
        ghosts=True,
    )


def hexagon_layout(topology: Arrowhead, root: int = 0) -> NodeLayout:
    """Return the layout of an arrowhead torus as a hexagon (Deserable 1996, figure 2c).

    In the picture of an arrowhead torus of order n as a large triangle, the corners of the triangle
    (its heads T1 to T3) are outside of this hexagon, and the hexagon has holes. Here each head is
    moved by 2^n hops into the holes at the opposite side of the hexagon, U1 to U3. The torus stays
    the same, because 2^n hops in one direction lead back to the first node.

    Parameters
    ----------
    topology : Arrowhead
        The arrowhead torus to draw.
    root : int
        The node in the middle.
    """
    side = 2**topology.order
    points = topology.embedding[:, topology.subtract(np.arange(topology.nodes), root)]
    x, y = points
    for along, direction in zip((2 * x - y, 2 * y - x, -x - y), DIRECTIONS[:3], strict=True):
        points = points - np.where(along > side, side, 0) * direction[:, None]
    sectors = _pictogram_triangles(side)[1]
    filled = [sectors[k] for k in (2, 4, 0)]
    regions = [Region(sector) for sector in sectors]
    regions += [Region(sector, tint) for sector, tint in zip(filled, HEAD_TINTS, strict=True)]
    return NodeLayout(
        topology,
        positions=_lattice_to_plane(points),
        steps=_lattice_to_plane(DIRECTIONS.T)[:, None],
        regions=tuple(regions),
        captions=_corner_captions("U", filled),
        ghosts=True,
    )


def _corner_captions(letter: str, triangles: Sequence[np.ndarray]) -> tuple[Caption, ...]:
    """Return the captions T1 to T3 or U1 to U3 of three triangles of an arrowhead torus.

    Each caption is placed outside of its triangle. With `letter` "T", the triangles are the corners
    of the picture as a large triangle. With "U", they are the places in the picture as a hexagon to
    which these corners are moved. A triangle is an array of corners, shape (2, 3).
    """
    captions = []
    for k, triangle in enumerate(triangles, 1):
        far, beyond = (
            (triangle[:, 0], 0.5) if letter == "T" else (triangle[:, 1:].mean(axis=1), 1.2)
        )
        x, y = far * (1 + beyond / np.hypot(*far))
        captions.append((x, y + 0.15, f"{letter}{k}"))
    return tuple(captions)
