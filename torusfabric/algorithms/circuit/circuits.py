"""Rounds of circuits on a torus, and the broadcasts along a line and from diagonal to diagonal.

A *grid* picks *levels*, coordinates, on each axis of a torus. Paths are then given in level numbers
instead of nodes. Neighbouring levels may be any number of links apart, or at the same coordinate;
axes may have different numbers of levels.

A node is *informed* if it has the message of the broadcast. A node may send up to alpha messages in
a round. A line consists of items, each of which may be a whole set of nodes. A *segment* of length
L has one informed item, at its *anchor*. It is cut into alpha + 1 pieces, as even as possible, the
larger ones nearest the middle. The informed item is at the anchor of the middle piece and sends to
the anchors of the other pieces. Then all pieces continue in the same way at the same time. This
takes exactly ceil(log_(alpha + 1) L) rounds (after Wang, Tseng, Ni and Sheu 2001, section 3.1.1;
their source stays at the centre, which fails for odd alpha).

With L = 7 and alpha = 2 the anchor is item 3, and the pieces have 2, 3 and 2 items. The round in
which each item is informed::

    item   0 1 2 3 4 5 6
    round  2 1 2 0 2 2 1

On a torus of equal sides a broadcast goes from diagonal to diagonal. With level numbers x_0 ..
x_(k-1), H_s is the set of nodes with x_0 + .. + x_s = 0 and x_i = 0 for i > s. Stage s < k goes
from H_(s-1) to H_s; the items of H_s are its parts with equal level x_s. Stage k goes from H_(k-1)
to all nodes; items are the sets with an equal sum of all x_i. Every item of a stage is a translate
of the informed one, so that the items are informed like one segment.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np

from ...schedule import Transfers
from ...topology import CayleyGraph, Torus

__all__ = ["CircuitRounds", "LevelGrid", "anchor_position", "inform_axis_by_axis", "ceil_log",
           "inform_diagonals", "piece_sizes", "segment_rounds", "inform_square_grid",
           "translate_rounds"]  # fmt: skip

#: A straight part of a path: its axis, and the signed number of hops of each message.
Run: TypeAlias = tuple[int, np.ndarray | int]


class LevelGrid:
    """Some coordinates on each axis of a torus, called levels and numbered from 0.

    Paths can then be given in level numbers, and a step may stand for many links.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    levels : sequence of sequence of int
        The coordinates of the levels of each axis, in ascending order. Equal coordinates may follow
        each other. By default every coordinate is a level.
    without : collection of int
        Axes on which the plane of nodes with coordinate 1 is left out. On these axes `levels` refer
        to the remaining coordinates, numbered without a gap.
    """

    def __init__(
        self,
        sides: Sequence[int],
        levels: Sequence[Sequence[int] | np.ndarray] | None = None,
        without: Collection[int] = (),
    ) -> None:
        self.sides, self.without = tuple(sides), frozenset(without)
        self.spans = [side - (axis in self.without) for axis, side in enumerate(self.sides)]
        self.levels = [np.asarray(axis) for axis in levels or map(np.arange, self.spans)]

    @property
    def level_counts(self) -> list[int]:
        """The number of levels (numbered coordinates) of the grid on each axis."""
        return [len(axis) for axis in self.levels]

    def with_levels(self, axis: int, levels: Sequence[int] | np.ndarray) -> "LevelGrid":
        """Return a grid with the coordinates `levels` on `axis`, and no other change."""
        changed = [levels if a == axis else own for a, own in enumerate(self.levels)]
        return LevelGrid(self.sides, changed, self.without)

    def gap_lengths(self, axis: int) -> np.ndarray:
        """Return the number of hops from each level of an axis to the next one, around the torus.

        A level is a numbered coordinate. The last entry leads from the last level to the first.
        Nodes of a plane that is left out are not counted.
        """
        return np.diff(self.levels[axis], append=self.levels[axis][0] + self.spans[axis])

    def coordinates_of_levels(self, axis: int, numbers: np.ndarray) -> np.ndarray:
        """Return the coordinates on `axis` that belong to the level numbers `numbers`.

        Numbers continue around the torus: with n levels, number n is level 0, with a coordinate
        that is larger by the side.
        """
        laps, numbers = np.divmod(numbers, len(self.levels[axis]))
        found = self.levels[axis][numbers]
        left_out = (axis in self.without) * (found > 0)
        return np.asarray(found + self.sides[axis] * laps + left_out)

    def node_coordinates(self, index: np.ndarray) -> np.ndarray:
        """Return the coordinates of nodes that are given by their level numbers `index`.

        A level is a numbered coordinate of the grid. Both arrays have the shape (axes, nodes).
        """
        found = [self.coordinates_of_levels(axis, numbers) for axis, numbers in enumerate(index)]
        return np.asarray(np.stack(found) % np.array(self.sides)[:, None])


class CircuitRounds:
    """A circuit-switched broadcast from node 0 while it is planned round by round.

    `informed` is True for each node that has the message.

    A message is left out if its target is already informed, also by an earlier message of the same
    round.
    """

    def __init__(self, topology: Torus) -> None:
        self.topology = topology
        self.informed = np.zeros(topology.nodes, bool)
        self.informed[0] = True
        self.rounds: list[Transfers] = []
        self.pending: list[tuple[np.ndarray, list[tuple[int, np.ndarray]]]] = []

    def send_from_nodes(self, start: np.ndarray, runs: Sequence[Run]) -> None:
        """Add a message from each of some nodes to the present round, on paths of the same shape.

        Parameters
        ----------
        start : ndarray of int, shape (axes, nodes)
            Coordinates of the senders.
        runs : list of (int, ndarray of int or int)
            The straight parts of the paths, in order: the axis, and the signed number of hops, one
            for all nodes or one for each.
        """
        count = start.shape[1]
        signed = [(axis, np.broadcast_to(np.asarray(hops), count)) for axis, hops in runs]
        end = start.copy()
        for axis, hops in signed:
            end[axis] += hops
        source, target = self.topology.node(start), self.topology.node(end)
        keep = np.flatnonzero(~self.informed[target])
        keep = keep[np.sort(np.unique(target[keep], return_index=True)[1])]
        if len(keep):
            self.informed[target[keep]] = True
            self.pending.append((source[keep], [(axis, hops[keep]) for axis, hops in signed]))

    def send_between_levels(self, grid: LevelGrid, index: np.ndarray, runs: Sequence[Run]) -> None:
        """Add messages to the present round, with senders and paths given in level numbers.

        A level is a numbered coordinate of a grid.

        Parameters
        ----------
        grid : LevelGrid
            The grid that numbers the levels.
        index : ndarray of int, shape (axes, messages)
            The level numbers of the sender of each message.
        runs : sequence of Run
            The straight parts of the paths, in order, with hops counted in levels.
        """
        index = np.array(index)
        moves, here = [], index.copy()
        for axis, steps in runs:
            there = here[axis] + steps
            moves.append(
                (
                    axis,
                    grid.coordinates_of_levels(axis, there)
                    - grid.coordinates_of_levels(axis, here[axis]),
                )
            )
            here[axis] = there
        self.send_from_nodes(grid.node_coordinates(index), moves)

    def end_round(self) -> None:
        """Close the present round and begin the next."""
        sources = [source for source, _ in self.pending]
        paths = [_hop_table(runs, len(source)) for source, runs in self.pending]
        longest = max((path.shape[1] for path in paths), default=1)
        padded = [
            np.pad(path, ((0, 0), (0, longest - path.shape[1])), constant_values=-1)
            for path in paths
        ] or [np.empty((0, 1), np.int8)]
        source = np.concatenate(sources) if sources else np.empty(0, np.int64)
        self.rounds.append(Transfers(source, np.concatenate(padded)))
        self.pending = []


def translate_rounds(
    topology: CayleyGraph, root: int, rounds: Iterable[Transfers]
) -> tuple[Transfers, ...]:
    """Return the rounds of a broadcast from node 0, translated so that it starts at `root`."""
    return tuple(replace(t, source=topology.add(t.source, root)) for t in rounds)


def _hop_table(runs: Sequence[tuple[int, np.ndarray]], count: int) -> np.ndarray:
    """Return the out-port at each hop of `count` paths, an array of shape (paths, longest path).

    `runs` are the straight parts of the paths: pairs of an axis and the signed number of hops of
    each path. Entries past the end of a path are -1.
    """
    total = sum((np.abs(hops) for _, hops in runs), np.zeros(count, int))
    column = np.arange(max(int(total.max()), 1))
    table = np.full((count, len(column)), -1, np.int8)
    begin = np.zeros(count, int)
    for axis, hops in runs:
        end = begin + np.abs(hops)
        inside = (column >= begin[:, None]) & (column < end[:, None])
        port = (2 * axis + (hops < 0)).astype(np.int8)
        table = np.where(inside, port[:, None], table)
        begin = end
    return table


def ceil_log(number: int | Fraction, alpha: int) -> int:
    """Return ceil(log_(alpha + 1) of `number`), at least 0; exact for integers and fractions."""
    rounds, reached = 0, 1
    while reached < number:
        rounds, reached = rounds + 1, reached * (alpha + 1)
    return rounds


def piece_sizes(length: int, alpha: int) -> list[int]:
    """Return the sizes of the alpha + 1 pieces into which a line of `length` items is cut.

    The sizes are as equal as possible, and the larger ones are nearest the middle: [2, 3, 2] for 7
    items and an `alpha` of 2. `alpha` is the number of messages that a node may send in a round; an
    item is a node, or a set of nodes.
    """
    size, rest = divmod(length, alpha + 1)
    nearest = sorted(range(alpha + 1), key=lambda piece: abs(piece - alpha // 2))
    return [size + (piece in nearest[:rest]) for piece in range(alpha + 1)]


@cache
def anchor_position(length: int, alpha: int) -> int:
    """Return the index of the item from which a broadcast along a line starts, near its middle.

    In each round, the line is cut into pieces (see `piece_sizes`), and the item sends to the item
    at the anchor position of each other piece.

    Parameters
    ----------
    length : int
        Number of items of the line; an item is a node, or a set of nodes.
    alpha : int
        Number of messages that a node may send in a round.
    """
    if length <= 1:
        return 0
    sizes, middle = piece_sizes(length, alpha), alpha // 2
    return sum(sizes[:middle]) + anchor_position(sizes[middle], alpha)


def segment_rounds(length: int, alpha: int) -> list[dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Return the messages of a broadcast along a line, from the item at `anchor_position`.

    An item is a node or a set of nodes; it is informed once it has the message.

    Parameters
    ----------
    length : int
        Number of items of the line.
    alpha : int
        Number of items to which an informed item may send in a round.

    Returns
    -------
    list of dict
        For each round ``{rank: (items, offsets)}``: ``items[k]`` sends to the item at the signed
        distance ``offsets[k]``. The rank of a message is the number of receivers between its sender
        and its own receiver. A sender occurs up to twice in an array, once for each side.
    """
    segments, rounds = [(0, length)], []
    while max(size for _, size in segments) > 1:
        messages: dict[int, list[tuple[int, int]]] = {}
        pieces = []
        for start, size in segments:
            here, anchors = start + anchor_position(size, alpha), []
            for piece in filter(None, piece_sizes(size, alpha)):
                pieces.append((start, piece))
                anchors.append(start + anchor_position(piece, alpha))
                start += piece
            above = [there for there in anchors if there > here]
            below = [there for there in anchors if there < here][::-1]
            for rank, there in [*enumerate(above), *enumerate(below)]:
                messages.setdefault(rank, []).append((here, there - here))
        rounds.append({rank: tuple(np.array(pairs).T) for rank, pairs in messages.items()})
        segments = pieces
    return rounds


def inform_square_grid(circuits: CircuitRounds, grid: LevelGrid, alpha: int) -> None:
    """Add the rounds of a broadcast that informs all levels of a square grid.

    A level is a numbered coordinate of the grid. With k axes of n levels each, there are k
    ceil(log_(alpha + 1) n) rounds.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which those of the broadcast are added; only node 0 has the message.
    grid : LevelGrid
        A grid with the same number of levels on each axis.
    alpha : int
        Messages that a node may send in a round.

    Notes
    -----
    Theorems 1, 2, 5 and 6 and section 5 of Wang, Tseng, Ni and Sheu 2001, with other paths.
    """
    for stage in range(1, len(grid.level_counts) + 1):
        inform_diagonals(circuits, grid, alpha, stage)


def inform_diagonals(
    circuits: CircuitRounds, grid: LevelGrid, alpha: int, stage: int, stride: int = 1
) -> None:
    """Add the rounds of one stage, from 1 to k, of a broadcast from diagonal to diagonal.

    A level is a numbered coordinate of the grid, and k the number of axes. Let H_s be the set of
    nodes whose level numbers on the first s + 1 axes have the sum 0, and are 0 on all other axes.
    Before stage s < k, the nodes of H_(s-1) have the message; after it, those of H_s have it. Stage
    k informs all nodes; the nodes of a diagonal, those with an equal sum of level numbers, get the
    message in the same round.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which the stage is added.
    grid : LevelGrid
        The levels, equally many on each axis.
    alpha : int
        Number of messages that a node may send in a round.
    stage : int
        The stage, from 1 to k.
    stride : int
        In the last stage, every ``stride``-th diagonal is informed, the others are not.

    Notes
    -----
    The rank i of a message is the number of nearer receivers on the same side of its sender. Let d
    be the difference of the level numbers of receiver and sender. In stage s < k the path is:

    - i = 0: d along axis s, then -d along axis 0;
    - i = 1 .. s: -d along axis i - 1, then d along s;
    - i > s: one step towards d along i, d along s, -d along 0, one step back along i.

    In stage k it is d along axis i.
    """
    dimensions, side = len(grid.level_counts), grid.level_counts[0]
    count = side // stride
    for messages in segment_rounds(count, alpha):
        for rank, (items, offsets) in messages.items():
            levels = (items - anchor_position(count, alpha)) * stride
            index = _sender_levels(dimensions, side, stage, levels)
            steps = np.repeat(offsets * stride, side ** (stage - 1))
            circuits.send_between_levels(grid, index, _path_runs(dimensions, stage, rank, steps))
        circuits.end_round()


def _sender_levels(dimensions: int, side: int, stage: int, levels: np.ndarray) -> np.ndarray:
    """Return the level numbers of all nodes that belong to some items of a stage of the broadcast.

    An item is a set of nodes that are informed together: in the last stage a diagonal, else the
    nodes with equal number on axis `stage`. `levels` has this number, or the sum that tells
    diagonals apart, for each item. The torus has `dimensions` axes with `side` levels each. The
    result has the shape (axes, items * nodes of an item).
    """
    free = np.indices((side,) * (stage - 1)).reshape(stage - 1, side ** (stage - 1))
    free, level = np.tile(free, len(levels)), np.repeat(levels, side ** (stage - 1))
    index = np.zeros((dimensions, len(level)), int)
    index[1:stage] = free
    if stage < dimensions:
        index[stage] = level
        level = -level
    index[0] = level - free.sum(axis=0)
    return index


def _path_runs(dimensions: int, stage: int, rank: int, steps: np.ndarray) -> list[Run]:
    """Return the path of a message as straight parts (axis, signed hops), see `inform_diagonals`.

    The rank of the message is the number of nearer receivers on the same side of its sender.
    `steps` has, for each sender, the difference of the level numbers. `dimensions` is the number of
    axes, and `stage` the stage of the broadcast.
    """
    if stage == dimensions:
        return [(rank, steps)]
    if rank == 0:
        return [(stage, steps), (0, -steps)]
    if rank <= stage:
        return [(rank - 1, -steps), (stage, steps)]
    aside = np.sign(steps)
    return [(rank, aside), (stage, steps), (0, -steps), (rank, -aside)]


def inform_axis_by_axis(circuits: CircuitRounds, grid: LevelGrid, alpha: int) -> None:
    """Add the rounds of a broadcast that informs all levels of a grid, one axis after another.

    A level is a numbered coordinate of the grid. A node sends one or two messages in a round. With
    n_i levels on axis i there are ceil(log_(alpha + 1) n_i) rounds for this axis (Wang, Tseng, Ni
    and Sheu 2001, section 3.2.3).

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which those of the broadcast are added.
    grid : LevelGrid
        The levels to inform.
    alpha : int
        Number of messages that a node may send in a round, 1 or 2.
    """
    for axis, count in enumerate(grid.level_counts):
        done = np.indices(grid.level_counts[:axis]).reshape(
            axis, math.prod(grid.level_counts[:axis])
        )
        for messages in segment_rounds(count, alpha):
            for items, offsets in messages.values():
                index = np.zeros((len(grid.level_counts), done.shape[1] * len(items)), int)
                index[:axis] = np.tile(done, len(items))
                index[axis] = np.repeat(items - anchor_position(count, alpha), done.shape[1])
                steps = np.repeat(offsets, done.shape[1])
                circuits.send_between_levels(grid, index, [(axis, steps)])
            circuits.end_round()
