"""The last rounds of a broadcast by levels: from every other node to all nodes.

The level numbers of informed nodes are all even or all odd, and neighbouring levels have one link
between them, except where a plane of nodes was left out. In up to three dimensions every even node
sends one level up on every axis and every odd node one level down.
"""

from collections.abc import Sequence

import numpy as np

from ....topology import Torus
from ..circuits import Circuits, Grid
from ..max_flow.network import Network
from ..max_flow.search import search
from .refine import informed_index

__all__ = ["fill", "fill_around_plane", "fill_by_classes", "serve_by_flow", "serve_planes"]

#: What an even node before a left-out plane sends; an odd node behind it sends the opposite. Axis 0
#: here is that of the plane, which is one link away. One of the others may have two levels at the
#: same coordinate: wherever two of these messages then meet on a link, they have the same
#: destination, and one of them is left out.
BEFORE_PLANE = {
    2: (((0, 1),), ((1, 1),)),
    3: (((0, 1),), ((1, 1),), ((2, 1),), ((1, -1), (2, 1)), ((2, -1), (0, 1))),
}


def fill(circuits: Circuits, grid: Grid) -> None:
    """Inform all levels of a grid in two or three dimensions, in one round."""
    for parity, sign in ((0, 1), (1, -1)):
        index, _ = informed_index(grid, 0, np.arange(parity, grid.counts[0], 2), parity)
        for axis in range(len(grid.counts)):
            circuits.send_levels(grid, index, [(axis, sign)])
    circuits.end_round()


def fill_around_plane(circuits: Circuits, grid: Grid, axis: int) -> None:
    """The same where one plane is left out, which is informed in the same round.

    Parameters
    ----------
    grid : Grid
        The levels; the plane is between numbers 0 and 1.
    axis : int
        The axis that is at a right angle to the plane.
    """
    levels = [
        np.arange(grid.sides[axis]) if a == axis else own for a, own in enumerate(grid.levels)
    ]
    whole = Grid(grid.sides, levels)
    order = sorted(range(len(levels)), key=lambda a: a != axis)
    for parity, sign in ((0, 1), (1, -1)):
        index, _ = informed_index(grid, axis, np.arange(parity, grid.counts[axis], 2), parity)
        near = index[axis] == parity
        index[axis] += index[axis] > 0
        for path in BEFORE_PLANE[len(order)]:
            runs = [(order[a], sign * step) for a, step in path]
            circuits.send_levels(whole, index[:, near], runs)
        for a in order:
            circuits.send_levels(whole, index[:, ~near], [(a, sign)])
    circuits.end_round()


def serve_planes(circuits: Circuits, axes: Sequence[int]) -> None:
    """Inform one plane, or two that cross, when all else is informed, in one round.

    Parameters
    ----------
    axes : sequence of int
        One or two axes of which the nodes of coordinate 1 are to be informed.

    Notes
    -----
    The first plane is informed from above, the second from below, and where they cross, from the
    node above both, which first meets the second plane.
    """
    sides = circuits.topology.sides
    nodes = np.indices(sides).reshape(len(sides), -1)
    on = {axis: nodes[axis] == 1 for axis in axes}
    both = on[axes[0]] & on[axes[-1]]
    if len(axes) == 1:
        ways = [(both, [(axes[0], -1)])]
    else:
        first, second = axes
        ways = [
            (on[first] & ~both, [(first, -1)]),
            (on[second] & ~both, [(second, 1)]),
            (both, [(second, -1), (first, -1)]),
        ]
    for chosen, runs in ways:
        start = nodes[:, chosen]
        for axis, step in runs:
            start[axis] = (start[axis] - step) % sides[axis]
        circuits.send(start, runs)
    circuits.end_round()


def fill_by_classes(circuits: Circuits, grid: Grid, alpha: int) -> None:
    """Inform all levels of a grid of any number of dimensions.

    Parameters
    ----------
    grid : Grid
        The levels, none at the same coordinate as the next.
    alpha : int
        How many messages a node may send in a round.

    Notes
    -----
    All nodes whose level numbers have the same parities do the same. So this is a broadcast from
    two opposite corners of a torus of two nodes a side, planned by maximum flows.
    """
    dimensions = len(grid.counts)
    corners = Torus((2,) * dimensions)
    informed = np.zeros(corners.nodes, bool)
    informed[[0, -1]] = True
    for transfers in search(Network(corners), informed, alpha):
        for corner, hops in zip(transfers.source, transfers.hops, strict=True):
            parities = corners.coordinates(corner)
            choices = [np.arange(p, n, 2) for p, n in zip(parities, grid.counts, strict=True)]
            index = np.stack([part.ravel() for part in np.meshgrid(*choices, indexing="ij")])
            runs = [(port // 2, 1 - port % 2 * 2) for port in hops[hops >= 0].astype(int)]
            circuits.send_levels(grid, index, runs)
        circuits.end_round()


def serve_by_flow(circuits: Circuits, alpha: int) -> None:
    """Inform all nodes that are left, by maximum flows."""
    circuits.rounds += search(Network(circuits.topology), circuits.informed, alpha)
    circuits.informed[:] = True
