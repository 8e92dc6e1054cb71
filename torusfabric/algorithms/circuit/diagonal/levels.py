"""Circuit-switched broadcast on tori with unequal sides, by levels that are made finer.

The *levels* of an axis are some of its coordinates, numbered from 0 (see `LevelGrid`). Every axis
has an even number of levels, in a cycle. A node at levels of all axes is informed if its level
numbers are all even or all odd. To *refine* an axis is to insert an even number of new levels into
each of its *gaps*, the stretches between neighbouring levels, and to inform the nodes on the new
levels in one round. Let p1 <= p2 <= .. be the new levels of a gap. The nodes on the level below the
gap inform p2, p4, .., and those on the level above inform p1, p3, ... When all gaps have one link,
`inform_grid` informs the remaining nodes. For example, with alpha = 2, a gap of nine links above
the even level 0::

    coordinate      0  1  2  3  4  5  6  7  8  9
    levels before   0                          1
    levels after    0        1        2        3    0 informs 2, and 3 (before: 1) informs 1

A gap above an even level gets up to 2 ceil(alpha / 2) new levels, a gap above an odd level up to 2
floor(alpha / 2), so that no node sends more than alpha messages. Gaps have an odd number of links
where possible, since an odd number splits into odd numbers. An odd side has one even gap. The
middle part of this gap is its only even part, and ends as two levels at the same coordinate.

The last rounds inform all other nodes from the informed half of the grid. By then neighbouring
levels have one link between them, except where a plane of nodes was left out. In up to three
dimensions every even node sends one level up on every axis and every odd node one level down.

Source: Wang, Tseng, Ni and Sheu 2001, Theorems 3, 4 and 7 to 9, whose stages this replaces.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from ....topology import Torus
from ..circuits import CircuitRounds, LevelGrid
from ..max_flow import FlowNetwork, search_rounds

__all__ = ["gap_capacities", "inform_grid", "inform_around_plane", "inform_parity_classes",
           "new_level_offsets", "refine_axis", "inform_by_flow", "inform_planes",
           "cut_into_gaps"]  # fmt: skip


@cache
def gap_capacities(rounds: int, alpha: int) -> tuple[int, int]:
    """Return the most links that a gap may have, to be cut into single links in `rounds` rounds.

    A gap is the space between two neighbouring levels, numbered coordinates whose nodes have the
    message. In each round, new levels are informed within each gap. `alpha` is the number of
    messages that a node may send in a round.

    Returns
    -------
    even, odd : int
        Links of a gap above a level with an even number, and above one with an odd number.
    """
    if rounds == 0:
        return 1, 1
    even, odd = gap_capacities(rounds - 1, alpha)
    up, down = -(-alpha // 2), alpha // 2
    return (up + 1) * even + up * odd, (down + 1) * odd + down * even


def cut_into_gaps(
    total: int, kinds: Sequence[int], rounds: int, alpha: int, least_even: int = 0, even_at: int = 0
) -> np.ndarray:
    """Place levels on a stretch of links; return the number of links from each level to the next.

    Levels are coordinates whose nodes get the message. The gaps between levels get almost equal
    shares of the links, in proportion to the links that each can be cut into in the remaining
    rounds. Each gap gets an odd number of links, except one if the total makes this impossible.

    Parameters
    ----------
    total : int
        Number of links of the stretch.
    kinds : sequence of int
        For each gap, the parity of the number of the level below it, 0 or 1.
    rounds, alpha : int
        Rounds that are left, and messages that a node may send in each.
    least_even, even_at : int
        If the number of links makes one gap even: its least number of links, and its index.

    Returns
    -------
    ndarray of int
        Links of each gap, in proportion to `gap_capacities`.
    """
    most = np.array(gap_capacities(rounds, alpha))[np.asarray(kinds)]
    least = np.ones(len(most), int)
    if (total - len(most)) % 2:
        least[even_at], most[even_at] = least_even, most[even_at] - 1
    room, pairs = (most - least) // 2, (total - least.sum()) // 2
    given = pairs * room // max(room.sum(), 1)
    spare = np.flatnonzero(given < room)[: pairs - given.sum()]
    given[spare] += 1
    return np.asarray(least + 2 * given)


@cache
def new_level_offsets(gap: int, kind: int, rounds: int, alpha: int) -> np.ndarray:
    """Return the positions of the new levels in a gap, as distances from the level below the gap.

    Levels are coordinates whose nodes have the message; the nodes at new levels get it in this
    round.

    Parameters
    ----------
    gap : int
        Number of links of the gap.
    kind : int
        Parity of the number of the level below the gap, 0 or 1.
    rounds : int
        Rounds that are left after this one.
    alpha : int
        Number of messages that a node may send in a round.
    """
    pairs = min((alpha + 1 - kind) // 2, gap // 2)
    kinds = [(kind + part) % 2 for part in range(2 * pairs + 1)]
    return np.cumsum(cut_into_gaps(gap, kinds, rounds, alpha, even_at=pairs))[:-1]


def refine_axis(
    circuits: CircuitRounds,
    grid: LevelGrid,
    axis: int,
    rounds: int,
    alpha: int,
    asides: Sequence[int],
) -> LevelGrid:
    """Add a round that informs nodes at new levels between the levels of an axis.

    Levels are the numbered coordinates whose nodes have the message. Return the grid with the new
    levels.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which one is added.
    grid : LevelGrid
        The levels that are informed.
    axis : int
        The axis that gets new levels.
    rounds : int
        Rounds that are left for this axis after this one.
    alpha : int
        Number of messages that a node may send in a round.
    asides : sequence of int
        Axes along which paths make detours, so that they share no arc: at least ceil(alpha / 2) - 1
        axes, none with two levels at one coordinate.

    Notes
    -----
    Take the messages that a node sends up, or down. The message to the farthest level goes
    straight. Every other message makes a detour along an axis of its own: it first goes one level
    aside, in the positive direction if it goes up, and returns at the end.
    """
    gaps = grid.gap_lengths(axis)
    inserted = [new_level_offsets(int(gap), i % 2, rounds, alpha) for i, gap in enumerate(gaps)]
    moved = np.arange(len(gaps)) + np.cumsum([0, *map(len, inserted)])[:-1]
    base = grid.levels[axis]
    levels = [one for at, new in zip(base, inserted, strict=True) for one in (at, *(at + new))]
    finer = grid.with_levels(axis, levels)
    pairs = np.array([len(new) // 2 for new in inserted])
    for sign, count in ((1, pairs), (-1, np.roll(pairs, 1))):
        for rank in range(int(count.max(initial=0))):
            sends = np.flatnonzero(count > rank)
            steps = sign * 2 * (count[sends] - rank)
            for parity in (0, 1):
                mine = sends % 2 == parity
                index, at = informed_levels(finer, axis, moved[sends[mine]], parity)
                runs = [(axis, steps[mine][at])]
                if rank:
                    runs = [(asides[rank - 1], sign), *runs, (asides[rank - 1], -sign)]
                circuits.send_between_levels(finer, index, runs)
    circuits.end_round()
    return finer


def informed_levels(
    grid: LevelGrid, axis: int, numbers: np.ndarray, parity: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes that have the message at some levels of an axis, by their level numbers.

    A level is a numbered coordinate. A node has the message if its level numbers on all axes are
    even, or all odd. The result has only the nodes with one of these parities.

    Parameters
    ----------
    grid : LevelGrid
        The grid that numbers the levels.
    axis : int
        The axis on which `numbers` are levels.
    numbers : ndarray of int
        The level numbers on this axis.
    parity : int
        Parity of the level numbers on the other axes: 0 for even, 1 for odd.

    Returns
    -------
    index : ndarray of int, shape (axes, nodes)
        The level numbers of each node.
    at : ndarray of int, shape (nodes,)
        For each node, the index in ``numbers`` of its level on the axis.
    """
    choices = [np.arange(parity, count, 2) for count in grid.level_counts]
    choices[axis] = np.asarray(numbers)
    index = np.stack([part.ravel() for part in np.meshgrid(*choices, indexing="ij")])
    position = np.meshgrid(*map(np.arange, map(len, choices)), indexing="ij")[axis].ravel()
    return index, position


#: The messages of an even node before a left-out plane; an odd node behind the plane sends the
#: opposite ones. Axis 0 here is at a right angle to the plane, which is one link away. One of the
#: other axes may have two levels at the same coordinate. Wherever two of these messages then meet
#: on a link, they have the same destination, and one of them is left out.
PATHS_BEFORE_PLANE = {
    2: (((0, 1),), ((1, 1),)),
    3: (((0, 1),), ((1, 1),), ((2, 1),), ((1, -1), (2, 1)), ((2, -1), (0, 1))),
}


def inform_grid(circuits: CircuitRounds, grid: LevelGrid) -> None:
    """Add a round that informs all nodes of a grid in two or three dimensions.

    Before, nodes whose level numbers are all even or all odd have the message. The even ones send
    one level up on every axis, the odd ones one level down. A level is a numbered coordinate.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which one is added.
    grid : LevelGrid
        The levels, with neighbouring levels one link apart.
    """
    for parity, sign in ((0, 1), (1, -1)):
        index, _ = informed_levels(grid, 0, np.arange(parity, grid.level_counts[0], 2), parity)
        for axis in range(len(grid.level_counts)):
            circuits.send_between_levels(grid, index, [(axis, sign)])
    circuits.end_round()


def inform_around_plane(circuits: CircuitRounds, grid: LevelGrid, axis: int) -> None:
    """Add a round that informs all nodes of a grid, and those of a plane that the grid leaves out.

    Before, nodes whose level numbers are all even or all odd have the message. A level is a
    numbered coordinate.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which one is added.
    grid : LevelGrid
        The levels; the plane is between level numbers 0 and 1.
    axis : int
        The axis at a right angle to the plane; the plane has coordinate 1 on this axis.
    """
    levels = [
        np.arange(grid.sides[axis]) if a == axis else own for a, own in enumerate(grid.levels)
    ]
    whole = LevelGrid(grid.sides, levels)
    order = sorted(range(len(levels)), key=lambda a: a != axis)
    for parity, sign in ((0, 1), (1, -1)):
        index, _ = informed_levels(
            grid, axis, np.arange(parity, grid.level_counts[axis], 2), parity
        )
        near = index[axis] == parity
        index[axis] += index[axis] > 0
        for path in PATHS_BEFORE_PLANE[len(order)]:
            runs = [(order[a], sign * step) for a, step in path]
            circuits.send_between_levels(whole, index[:, near], runs)
        for a in order:
            circuits.send_between_levels(whole, index[:, ~near], [(a, sign)])
    circuits.end_round()


def inform_planes(circuits: CircuitRounds, axes: Sequence[int]) -> None:
    """Add a round that informs the nodes of one plane, or of two planes that cross.

    All other nodes have the message before.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which one is added.
    axes : sequence of int
        The axis at a right angle to each plane. The nodes of a plane have coordinate 1 on its axis.

    Notes
    -----
    The first plane is informed from above, the second from below. Nodes where the planes cross are
    informed from the node above both; this message first meets the second plane.
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
        circuits.send_from_nodes(start, runs)
    circuits.end_round()


def inform_parity_classes(circuits: CircuitRounds, grid: LevelGrid, alpha: int) -> None:
    """Add rounds that inform all nodes of a grid of any number of dimensions.

    Before, nodes whose level numbers are all even or all odd have the message. A level is a
    numbered coordinate.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which others are added.
    grid : LevelGrid
        The grid; no two neighbouring levels are at the same coordinate.
    alpha : int
        Number of messages that a node may send in a round.

    Notes
    -----
    All nodes whose level numbers have the same parities act alike. The rounds are therefore those
    of a broadcast from two opposite corners of a torus of two nodes a side, planned by maximum
    flows.
    """
    dimensions = len(grid.level_counts)
    corners = Torus((2,) * dimensions)
    informed = np.zeros(corners.nodes, bool)
    informed[[0, -1]] = True
    for transfers in search_rounds(FlowNetwork(corners), informed, alpha):
        for corner, hops in zip(transfers.source, transfers.hops, strict=True):
            parities = corners.coordinates(corner)
            choices = [np.arange(p, n, 2) for p, n in zip(parities, grid.level_counts, strict=True)]
            index = np.stack([part.ravel() for part in np.meshgrid(*choices, indexing="ij")])
            runs = [(port // 2, 1 - port % 2 * 2) for port in hops[hops >= 0].astype(int)]
            circuits.send_between_levels(grid, index, runs)
        circuits.end_round()


def inform_by_flow(circuits: CircuitRounds, alpha: int) -> None:
    """Add rounds after which all nodes have the message, planned by maximum flows.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which others are added.
    alpha : int
        Number of messages that a node may send in a round.
    """
    circuits.rounds += search_rounds(FlowNetwork(circuits.topology), circuits.informed, alpha)
    circuits.informed[:] = True
