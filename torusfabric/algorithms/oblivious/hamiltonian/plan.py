"""All-gather, reduce-scatter and all-reduce along edge-disjoint Hamiltonian cycles.

Model: store-and-forward, full duplex, all ports, one hop a step, no storage on the way. On a torus
of d axes a message of an all-gather is cut into d chunks, and chunk i travels in both directions
along cycle i of d edge-disjoint Hamiltonian cycles. In a reduce-scatter a sum goes once around a
cycle, with one chunk in each direction, so that a node treats all passing words alike. In an
all-reduce the results go around once more.

The cycles are written as colours of links. A torus of d axes has d links a node; the link in the
positive direction of each axis is the node's own. A *colouring* is an int8 array of shape (nodes,
d): the cycle of each node's own links. Every node has two links of every colour, and the links of a
colour form a Hamiltonian cycle.

References
----------
.. [1] U. Meyer and J. F. Sibeyn, "Oblivious gossiping on tori", J. Algorithms 42 (2002), section 2.
.. [2] M. F. Foregger, "Hamiltonian decomposition of products of cycles", Discrete Math. 24 (1978).
.. [3] J. Aubert and B. Schneider, "Decomposition de la somme cartesienne d'un cycle et de l'union
   de deux cycles hamiltoniens en cycles hamiltoniens", Discrete Math. 38 (1982).
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ....collective import Collective
from ....schedule import Pattern, Schedule, SumPattern
from ....schedule.pattern import Flows
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options, all_ports_reason
from .join import forward_table, join_cycles, ring_order

__all__ = ["HAMILTONIAN", "colour_links", "is_decomposable", "cycle_of_colour"]


def is_decomposable(sides: Sequence[int]) -> bool:
    """Return True if a torus is known to split into as many Hamiltonian cycles as it has axes.

    Three kinds of tori are excluded.

    - 2 x odd: two links join neighbouring columns. The number of these links in one cycle has the
      same parity for all pairs of columns. If this number is even, one of the two cycles misses two
      of the gaps between columns, and so is no single cycle. If it is odd, each cycle also takes
      one of the two links within each column, and changes rows an odd number of times; but a
      closed path changes rows an even number of times.
    - 2 x 2 x 2: each cycle would leave out a perfect matching of the cube. The three matchings
      would form a perfect one-factorisation, which the cube does not have.
    - 2 x 2 x odd: by exhaustion 2 x 2 x 3 and 2 x 2 x 5 have no three such cycles, and none are
      known for longer sides.
    """
    odd = sum(side % 2 for side in sides)
    if len(sides) == 3:
        return sorted(sides)[1] > 2 or (odd == 0 and max(sides) > 2)
    return len(sides) != 2 or min(sides) > 2 or odd == 0


def colour_links(sides: Sequence[int]) -> np.ndarray:
    """Return the colour of every link of a torus: the Hamiltonian cycle to which it belongs.

    Parameters
    ----------
    sides : sequence of int
        The sides. If they are not `is_decomposable`, only colour 0 is a Hamiltonian cycle.

    Returns
    -------
    ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis.
    """
    sides = tuple(sides)
    if len(sides) == 1:
        return np.zeros((sides[0], 1), np.int8)
    if len(sides) == 2:
        pair = grid_pair(*sides) if is_decomposable(sides) else ladder_cycle(*sides)
        return np.stack(pair, axis=-1).reshape(-1, 2).astype(np.int8)
    halves = split_axes(sides)
    return product_colouring(sides, *halves) if halves else stack_layers(sides)


def grid_pair(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two Hamiltonian cycles of a torus of two axes, which share no link.

    For two even sides two kinds of nodes are enough [1]_. The other cases are a small torus, cut
    open and stretched by two rows or columns at a time.

    The two cycles on 4 x 4, where links at the right and at the bottom wrap::

        o  o--o  o--        o--o  o--o
        |  |  |                      |
        o--o  o--o          o  o--o  o--
                 |          |  |  |
        o  o--o  o--        o--o  o--o
        |  |  |                      |
        o--o  o--o          o  o--o  o--
                 |          |  |  |

    Returns
    -------
    down, right : ndarray, shape (rows, columns)
        For the link down and the link to the right of each node, its cycle: 0 or 1.
    """
    r, c = np.indices((rows, columns))
    if rows % 2 == 0 and columns % 2 == 0:
        return (r + (c == columns - 1)) % 2, (r + c + 1) % 2
    if columns % 2:
        if rows % 2 == 0:
            down, right = grid_pair(columns, rows)
            return right.T, down.T
        down = np.select([r >= 2, c >= 3], [c != 2 - r % 2, r != 0], c != r)
        right = np.select([r >= 3, c >= 2], [c == 1, r == c % 2], c == (r - 1) % 3)
        return down, right
    down = np.select([r >= 2, c >= 4], [(c + r % 2) // 2 != 1, r != 0], (c + 1) // 2 % 2 != r)
    right = np.select([r >= 3, c >= 3], [(c + 1) // 2 == 1, r == (c + 1) % 2], 0)
    right[:3, :3] = [[0, 0, 1], [1, 0, 1], [0, 1, 1]]
    return down, right


def ladder_cycle(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one Hamiltonian cycle where one side is 2 and the other is odd.

    The result has the form of `grid_pair`. Links of colour 0 form the cycle, those of colour 1 are
    left over.

    Parameters
    ----------
    rows, columns : int
        The two sides of the torus.
    """
    if rows > 2:
        down, right = ladder_cycle(columns, rows)
        return right.T, down.T
    r, c = np.indices((rows, columns))
    end = c == columns - 1
    return (r > 0) | ((c > 0) & ~end), end


def winding_pair(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two Hamiltonian cycles, as `grid_pair` does, where most columns run one way.

    The sides must have the same parity, and rows <= columns. Colour 0 runs through a whole column
    and leaves it one row below or above the row where it entered. In total it moves down by
    ``rows``. Colour 1 runs along rows that are shifted in the same way, and closes after ``rows -
    1`` rounds. Most columns are traversed in the same direction, which `join_cycles` needs.
    """
    fall = np.where(np.arange(columns) < (columns + rows) // 2, 1, -1)
    leave = np.cumsum(fall) % rows
    enter = np.roll(leave, 1)
    spared = np.where(fall > 0, enter, leave)
    r = np.arange(rows)[:, None]
    return r == spared, r != leave


class HamiltonianCycle(NamedTuple):
    """A Hamiltonian cycle, as three arrays with an entry for each node of the cycle in order.

    They are the node, and for the link to the next node its axis and its owner: the node from which
    the link leads in the positive direction of the axis.
    """

    nodes: np.ndarray
    owners: np.ndarray
    axes: np.ndarray


def cycle_of_colour(sides: Sequence[int], colours: np.ndarray, colour: int) -> HamiltonianCycle:
    """Return the Hamiltonian cycle that the links of a colour form, from node 0 on.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis.
    colour : int
        The colour whose links form the cycle.
    """
    if math.prod(sides) == 2:
        return HamiltonianCycle(np.arange(2), np.arange(2), np.zeros(2, int))
    forward = forward_table(sides)
    nodes = ring_order(forward, colours, colour)
    after = np.roll(nodes, -1)
    own = np.equal(colours.T, colour)
    ahead = (forward[:, nodes] == after) & own[:, nodes]
    back = (forward[:, after] == nodes) & own[:, after]
    return HamiltonianCycle(
        nodes, np.where(ahead.any(axis=0), nodes, after), (ahead | back).argmax(axis=0)
    )


def split_axes(sides: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Cut the axes into two halves whose tori both split into Hamiltonian cycles, or return None.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    """
    axes = range(len(sides))
    if len(sides) % 2:
        return None
    for first in combinations(axes, len(sides) // 2):
        second = tuple(axis for axis in axes if axis not in first)
        if all(is_decomposable([sides[axis] for axis in group]) for group in (first, second)):
            return first, second
    return None


def subtorus_nodes(sides: Sequence[int], axes: Collection[int]) -> np.ndarray:
    """Return the nodes whose coordinates outside the given axes are 0, in row-major order.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    axes : collection of int
        The axes along which the nodes of the result may differ.
    """
    nodes = np.arange(math.prod(sides)).reshape(sides)
    return nodes[tuple(slice(None) if a in axes else 0 for a in range(len(sides)))].ravel()


def colour_product(
    colours: np.ndarray,
    sides: Sequence[int],
    groups: Sequence[tuple[int, ...]],
    walks: tuple[HamiltonianCycle, HamiltonianCycle],
    pair: tuple[np.ndarray, np.ndarray],
    first: int,
) -> None:
    """Colour the links of a torus that is spanned by two cycles, like those of a grid.

    The cycles lie in two groups of axes. Node (i, j) of the grid is the node at position i of the
    first cycle and position j of the second.

    Parameters
    ----------
    colours : ndarray of int8, shape (nodes, axes)
        The colour of the link from each node in the positive direction of each axis; changed in
        place.
    sides : sequence of int
        The sides of the torus.
    groups : sequence of (tuple of int)
        The two groups of axes.
    walks : (HamiltonianCycle, HamiltonianCycle)
        A cycle in each group.
    pair : (ndarray, ndarray)
        The colours of a grid, 0 and 1, as `grid_pair` returns them.
    first : int
        The colour in `colours` for colour 0 of `pair`; ``first + 1`` is that for colour 1.
    """
    (a, b), (u, w) = walks, [subtorus_nodes(sides, axes) for axes in groups]
    axes = [np.array(group)[walk.axes] for group, walk in zip(groups, walks, strict=True)]
    down, right = pair
    colours[u[a.owners][:, None] + w[b.nodes], axes[0][:, None]] = first + down
    colours[u[a.nodes][:, None] + w[b.owners], axes[1]] = first + right


def product_colouring(sides: Sequence[int], *groups: tuple[int, ...]) -> np.ndarray:
    """Return the colour of every link, from the colours of links within two groups of axes.

    A colour stands for a Hamiltonian cycle. Each pair of cycles, one of each group, spans a torus
    of two axes, which gets two cycles. The array has the shape (nodes, axes).

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    *groups : tuple of int
        The axes of each of the two groups.
    """
    colours = np.empty((math.prod(sides), len(sides)), np.int8)
    part = [tuple(sides[axis] for axis in group) for group in groups]
    links = [colour_links(p) for p in part]
    for i in range(len(sides) // 2):
        walks = cycle_of_colour(part[0], links[0], i), cycle_of_colour(part[1], links[1], i)
        pair = grid_pair(len(walks[0].nodes), len(walks[1].nodes))
        colour_product(colours, sides, groups, walks, pair, 2 * i)
    return colours


def stack_layers(sides: Sequence[int]) -> np.ndarray:
    """Return the colour of every link of a torus, from the colours in its layers along one axis.

    A colour stands for a Hamiltonian cycle; the array has the shape (nodes, axes). All layers are
    coloured alike. Colour 0 of the layers, a cycle, and the axis across them span a torus of two
    axes. Its links are coloured anew with two cycles that wind through all layers. Each other
    colour is then one cycle in each layer; `join_cycles` joins these by exchanging links with the
    first two colours. The paper [3]_ shows that this is possible.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    """
    even = [side for side in sides if side % 2 == 0]
    odd = [side for side in sides if side % 2]
    # The higher the stack, the smaller its layers. Layers of 2 x odd have several cycles of a
    # colour, and fewer of these if they are small.
    height = min(even) if len(even) > 1 else max(odd) if 2 in even else min(odd)
    axis = sides.index(height)
    rest = tuple(a for a in range(len(sides)) if a != axis)
    layer = tuple(sides[a] for a in rest)
    links = colour_links(layer)
    colours = np.empty((math.prod(sides), len(sides)), np.int8)
    base, up = subtorus_nodes(sides, rest), subtorus_nodes(sides, (axis,))
    for a, own in zip(rest, links.T, strict=True):
        colours[base[:, None] + up, a] = own[:, None] + 1
    walks = (
        cycle_of_colour((height,), np.zeros((height, 1), np.int8), 0),
        cycle_of_colour(layer, links, 0),
    )
    winds = (len(base) - height) % 2 == 0 and height <= len(base)
    pair = (winding_pair if winds else grid_pair)(height, len(base))
    colour_product(colours, sides, ((axis,), rest), walks, pair, 0)
    if is_decomposable(sides):
        join_cycles(sides, colours)
    return colours


#: Chunks that alternate in each direction around a cycle. A sum is added to in each node, which
#: takes a step; with two chunks, every link is always busy.
DEFAULT_TURNS = 2


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus):
        return "a torus"
    if not is_decomposable(topology.sides):
        return "a torus other than 2 x odd, 2 x 2 x odd and 2 x 2 x 2"
    if collective.reducing and topology.nodes == 2:
        return "a torus of more than two nodes for sums"
    if collective.reducing and not isinstance(topology.link_latency, int):
        return "links of equal latency for sums"
    return all_ports_reason(options, topology.ports) or _chunk_count_reason(
        topology, collective, options
    )


def _chunk_count_reason(topology: Torus, collective: Collective, options: Options) -> str | None:
    """Return the need "--chunks divisible by .." if the cycles cannot share the chunks evenly.

    Each direction of each cycle gets the same number of chunks. `options` has the number of chunks
    for `collective`. The result is None if the number fits.
    """
    if options.chunks is None:
        return None
    if not collective.reducing:
        return "--chunks left out"
    least = topology.ports * _share_count(topology, collective)
    return f"--chunks divisible by {least}" if options.chunks % least else None


def _share_count(topology: Torus, collective: Collective) -> int:
    """Return the number of shares into which a message of `collective` is cut: N or 1.

    An all-reduce has a share for each of the N nodes, which completes the sum of its share. Each
    share is then cut into chunks.
    """
    return topology.nodes if collective.to_all else 1


def plan(topology: Torus, collective: Collective, options: Options) -> Schedule:
    """Plan an all-gather in ceil((N - 1) / 2) steps, or a reduce-scatter or an all-reduce.

    Chunks travel both ways along d Hamiltonian cycles that share no link, on a torus of N nodes and
    d axes. A reduce-scatter in which t chunks share each direction of each cycle takes t (N - 1)
    steps, an all-reduce twice as many. No schedule with this many chunks takes fewer.

    Parameters
    ----------
    collective : Collective
        An all-gather, a reduce-scatter or an all-reduce.
    options : Options
        ``chunks`` of a message in a reduce-scatter or all-reduce. By default, `DEFAULT_TURNS`
        chunks share each direction of each cycle. In an all-reduce, the message is first cut into a
        share for each node, and each share into so many chunks.

    Returns
    -------
    Pattern or SumPattern
        A pattern of d chunks, one for each cycle; or a pattern of sums.

    Notes
    -----
    In an all-gather a node receives 2 d blocks a step and d (N - 1) in all, so no algorithm with
    this many chunks takes fewer steps.

    Examples
    --------
    The number of steps, and the number of chunks:

    >>> import torusfabric as tf
    >>> schedule = HAMILTONIAN(tf.parse_topology("5x7"), tf.parse_collective("allgather"))
    >>> schedule.round_count, schedule.chunks
    (17, 2)
    >>> schedule = HAMILTONIAN(tf.parse_topology("5x7"), tf.parse_collective("reduce-scatter"))
    >>> schedule.round_count, schedule.chunks
    (68, 8)
    """
    both_ways = replace(collective, kind="allgather")
    pattern = pattern_of_colours(topology, both_ways, colour_links(topology.sides))
    if not collective.reducing:
        return pattern
    shares = _share_count(topology, collective)
    chunks = options.chunks or DEFAULT_TURNS * topology.ports * shares
    turns = chunks // (topology.ports * shares)
    return SumPattern(
        topology=topology,
        collective=collective,
        chunks=chunks,
        feed=pattern.feed,
        inject=Flows.from_pattern(pattern).flow * turns,
        turns=turns,
    )


def pattern_of_colours(topology: Torus, collective: Collective, links: np.ndarray) -> Pattern:
    """Return the pattern in which chunk i of a message goes both ways along the cycle of colour i.

    Parameters
    ----------
    collective : Collective
        The collective of the pattern.
    links : ndarray of int8, shape (nodes, axes)
        The colour of the link in the positive direction of each axis, from each node.
    """
    colours = np.empty((topology.nodes, topology.ports), np.int8)
    colours[:, 0::2] = links
    for axis in range(links.shape[1]):
        behind = topology.neighbours[:, 2 * axis + 1]
        colours[:, 2 * axis + 1] = links[behind, axis]
    # Sorted by colour, the two ports of a node on one cycle are side by side.
    order = np.argsort(colours, axis=1, kind="stable").astype(np.int8)
    feed = np.empty_like(colours)
    np.put_along_axis(feed, order[:, 0::2], order[:, 1::2], axis=1)
    np.put_along_axis(feed, order[:, 1::2], order[:, 0::2], axis=1)
    return Pattern(
        topology=topology,
        collective=collective,
        chunks=links.shape[1],
        steps=topology.nodes // 2,
        feed=feed,
        inject=colours,
    )


HAMILTONIAN = Algorithm(
    name="hamiltonian",
    source="Meyer & Sibeyn 2002, section 2",
    summary="all messages, or sums, both ways along each of d edge-disjoint Hamiltonian cycles",
    collectives=("allgather", "reduce-scatter", "allreduce"),
    options=("ports", "chunks"),
    misfit=unsupported_reason,
    plan=plan,
    last_for=("allreduce",),
)
