"""Joining the cycles of a coloured torus by switches of squares.

The links of a torus are coloured so that every node has two links of each colour. So each colour is
a set of disjoint cycles. Take a square with two opposite links of one colour and two of another. A
*switch* exchanges these colours. For either colour, it replaces two links by the other two of the
square. Then two cycles become one, or one becomes two, or one stays whole with a part of it
reversed; the last happens if the cycle runs through both links in the same direction.

References
----------
.. [1] J. Aubert and B. Schneider, "Decomposition de la somme cartesienne d'un cycle et de l'union
   de deux cycles hamiltoniens en cycles hamiltoniens", Discrete Math. 38 (1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ....errors import WorkFailed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["forward_table", "join_cycles", "ring_order"]

#: The most switches for each node before the search is given up: many times the number that any
#: torus tried took.
MOST_SWITCHES_PER_NODE = 500

#: A plane: the two axes of a square, and for each axis of length 2, True if the square has the
#: other one of the two links between a pair of nodes.
Plane: TypeAlias = tuple[int, int, bool, bool]


def forward_table(sides: Sequence[int]) -> np.ndarray:
    """Return every node's neighbour in the positive direction of each axis, shape (axes, nodes).

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    """
    nodes = np.arange(math.prod(sides)).reshape(sides)
    return np.stack([np.roll(nodes, -1, axis).ravel() for axis in range(len(sides))])


def link_graph(forward: np.ndarray, colours: np.ndarray, colour: int) -> csr_matrix:
    """Return the links of one colour, as a sparse matrix of shape (nodes, nodes) with a 1 for each.

    Parameters
    ----------
    forward : ndarray of int, shape (axes, nodes)
        The result of `forward_table`.
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis.
    colour : int
        The colour of the links to return.
    """
    # Imported here, because the import takes longer than a plan without it.
    from scipy.sparse import coo_matrix

    nodes, axes = np.nonzero(colours == colour)
    ends = nodes, forward[axes, nodes]
    return coo_matrix((np.ones(len(nodes), np.int8), ends), (len(colours),) * 2).tocsr()


def ring_order(forward: np.ndarray, colours: np.ndarray, colour: int, start: int = 0) -> np.ndarray:
    """Return the nodes of a cycle in order: the cycle of links of one colour through a node.

    Parameters
    ----------
    forward : ndarray of int, shape (axes, nodes)
        The result of `forward_table`.
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis.
    colour : int
        The colour of the cycle.
    start : int
        The node at which the order begins.
    """
    from scipy.sparse.csgraph import depth_first_order

    graph = link_graph(forward, colours, colour)
    order: np.ndarray = depth_first_order(graph, start, directed=False, return_predecessors=False)
    return order


class Square(NamedTuple):
    """Squares of four links, by their nodes; each field is a node, or an array for many squares.

    ::

        above ---- opposite      link at the top: owned by `upper`
          |           |
        corner --- beside        link at the right: owned by `right`

    A node owns the links in the positive direction of each axis; the two links at `corner` are its
    own. Mostly `upper` is `above`, and `right` is `beside`. On an axis of length 2 there are two
    links between a pair of nodes. There `upper` or `right` may be `opposite`, so that the square
    has the other one of the two links.
    """

    corner: np.ndarray
    beside: np.ndarray
    above: np.ndarray
    opposite: np.ndarray
    upper: np.ndarray
    right: np.ndarray


class ColourCycles:
    """The cycles that the links of each colour form, updated when colours are exchanged.

    Each node has two links of each colour. `switch_square` exchanges the two colours of a square of
    four links.

    Parameters
    ----------
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis; changed in
        place.

    Attributes
    ----------
    count : int
        The number of cycles of all colours together.
    """

    def __init__(self, sides: Sequence[int], colours: np.ndarray) -> None:
        from scipy.sparse.csgraph import connected_components, depth_first_order

        self.colours, self.forward = colours, forward_table(sides)
        self.cycle, self.position, self.length = np.zeros((3, len(sides), len(colours)), int)
        self.count = 0
        for colour in range(len(sides)):
            graph = link_graph(self.forward, colours, colour)
            count, cycle = connected_components(graph, directed=False)
            self.count += count
            for start in np.unique(cycle, return_index=True)[1]:
                self.enter_cycle(
                    colour,
                    depth_first_order(graph, start, directed=False, return_predecessors=False),
                )

    def enter_cycle(self, colour: int, nodes: np.ndarray) -> None:
        """Record a cycle of a colour, given by its nodes in order."""
        self.cycle[colour, nodes] = nodes[0]
        self.position[colour, nodes] = np.arange(len(nodes))
        self.length[colour, nodes] = len(nodes)

    def squares_at(self, corner: np.ndarray, plane: Plane) -> Square:
        """Return the squares of four links in a plane of two axes that begin at given nodes.

        `corner` has the first node of each square.
        """
        a, b, twin_a, twin_b = plane
        beside, above = self.forward[a, corner], self.forward[b, corner]
        opposite = self.forward[b, beside]
        upper, right = opposite if twin_a else above, opposite if twin_b else beside
        return Square(corner, beside, above, opposite, upper, right)

    def switchable_squares(self, plane: Plane) -> tuple[np.ndarray, np.ndarray]:
        """Return the squares of a plane whose colours can be exchanged, as two arrays.

        In such a square, opposite links have the same colour. The arrays are the corner of each
        square, and the change of the number of cycles by the exchange, from -2 to 2.
        """
        a, b = plane[:2]
        colours = self.colours
        square = self.squares_at(np.arange(len(colours)), plane)
        level, steep = colours[:, a], colours[:, b]
        fits = (colours[square.upper, a] == level) & (colours[square.right, b] == steep)
        fits = np.nonzero(fits & (level != steep))[0]
        square = Square(*(field[fits] for field in square))
        corner, beside, above, opposite = square[:4]
        gain = self.cycle_gain(level[fits], corner, beside, above, opposite)
        return fits, gain + self.cycle_gain(steep[fits], corner, above, beside, opposite)

    def cycle_gain(
        self, colour: np.ndarray, p: np.ndarray, q: np.ndarray, r: np.ndarray, s: np.ndarray
    ) -> np.ndarray:
        """Return the change of the number of cycles of a colour, if one square is switched.

        To switch a square of four links is to exchange its two colours: links pq and rs have the
        colour before, links pr and qs after. The result has an entry for each of many squares,
        every one of which is switched alone: -1 if two cycles are joined, 0, or 1 if a cycle is
        split.

        Parameters
        ----------
        colour : ndarray of int
            The colour whose cycles are counted, for each square.
        p, q, r, s : ndarray of int
            The corners of each square.
        """
        length, position = self.length[colour, p], self.position
        first = (position[colour, q] - position[colour, p]) % length == 1
        second = (position[colour, s] - position[colour, r]) % length == 1
        apart = self.cycle[colour, p] != self.cycle[colour, r]
        return np.where(apart, -1, (first != second).astype(int))

    def switch_square(self, plane: Plane, corner: int) -> None:
        """Exchange the two colours of a square of four links, given by its plane and its corner."""
        a, b = plane[:2]
        square = self.squares_at(np.array(corner), plane)
        beside, above, opposite, upper, right = (int(node) for node in square[1:])
        level, steep = int(self.colours[corner, a]), int(self.colours[corner, b])
        self.colours[[corner, upper], a] = steep
        self.colours[[corner, right], b] = level
        self.reconnect_links(level, corner, beside, above, opposite)
        self.reconnect_links(steep, corner, above, beside, opposite)

    def reconnect_links(self, colour: int, p: int, q: int, r: int, s: int) -> None:
        """Update the cycles of a colour, in which links pq and rs are replaced by pr and qs.

        Parameters
        ----------
        colour : int
            The colour whose cycles change.
        p, q, r, s : int
            The corners of a square.
        """
        path = self.open_cycle(colour, q, p)
        if self.cycle[colour, p] != self.cycle[colour, r]:
            self.enter_cycle(colour, np.concatenate([path, self.open_cycle(colour, r, s)]))
            self.count -= 1
            return
        self.enter_cycle(colour, path)
        at = self.position[colour, [r, s]]
        head, tail = path[: at.max()], path[at.max() :]
        if at[0] < at[1]:
            self.enter_cycle(colour, np.concatenate([head, tail[::-1]]))
        else:
            self.enter_cycle(colour, head)
            self.enter_cycle(colour, tail)
            self.count += 1

    def open_cycle(self, colour: int, first: int, last: int) -> np.ndarray:
        """Return all nodes of a cycle of a colour in order, from `first` to `last`.

        The two are neighbours on the cycle, and the order leads the long way round.
        """
        nodes = np.nonzero(self.cycle[colour] == self.cycle[colour, first])[0]
        order = np.empty_like(nodes)
        order[self.position[colour, nodes]] = nodes
        order = np.roll(order, -self.position[colour, first])
        return order if order[-1] == last else np.roll(order[::-1], 1)


def join_cycles(sides: Sequence[int], colours: np.ndarray) -> None:
    """Join the cycles of each colour into one, by exchanging colours of links in place.

    An exchange (switch) takes a square with two opposite links of one colour and two of another.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis. Every node has
        two links of each colour.

    Raises
    ------
    WorkFailed
        If the cycles cannot be joined within the allowed number of switches.

    Notes
    -----
    Each time the first switch that leaves fewer cycles is taken. If there is none, which was seen
    only with sides of 2, a random switch that leaves as many cycles, or one more, is taken. Random
    numbers are the same in every run. A switch takes a few passes over the nodes.
    """
    factors, draw = ColourCycles(sides, colours), Random(0)
    twins = [(False, True) if side == 2 else (False,) for side in sides]
    planes = [
        (a, b, twin_a, twin_b)
        for a, b in combinations(range(len(sides)), 2)
        for twin_a, twin_b in product(twins[a], twins[b])
    ]
    for _ in range(MOST_SWITCHES_PER_NODE * len(colours)):
        if factors.count == len(sides):
            return
        factors.switch_square(*choose_square(factors, planes, draw))
    raise WorkFailed(f"No edge-disjoint Hamiltonian cycles were found for sides {sides}")


def choose_square(factors: ColourCycles, planes: list[Plane], draw: Random) -> tuple[Plane, int]:
    """Return the plane and the corner of the square whose colours are exchanged next.

    A square that leaves fewer cycles is preferred, see `join_cycles`.

    Parameters
    ----------
    factors : ColourCycles
        The cycles of each colour.
    planes : list of Plane
        The planes (pairs of axes) of all squares, changed in place: a plane with a square that
        leaves fewer cycles moves to the front.
    draw : random.Random
        Source of random choices.
    """
    detours: tuple[list[tuple[Plane, int]], list[tuple[Plane, int]]] = [], []
    for index, plane in enumerate(planes):
        corners, gains = factors.switchable_squares(plane)
        if (gains < 0).any():
            # A plane that served last is likely to serve next, so it moves to the front.
            planes.insert(0, planes.pop(index))
            return plane, int(corners[(gains < 0).argmax()])
        for gain, squares in enumerate(detours):
            squares += [(plane, int(corner)) for corner in corners[gains == gain]]
    neutral, worse = detours
    squares = worse if worse and (not neutral or draw.random() < 0.5) else neutral
    return squares[draw.randrange(len(squares))]
