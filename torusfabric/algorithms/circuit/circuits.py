"""Rounds of circuits on a torus, built from many alike paths at a time; broadcasts along a line.

A *grid* picks levels on each axis of a torus, the same count or not, so that paths can be given in
levels instead of nodes: neighbouring levels may be any number of links apart, or at the same
coordinate.

A line is of items, each of which may be a whole set of nodes. A *segment* of length L has one
informed item, at its anchor. It is cut into alpha + 1 pieces, as even as possible, the larger ones
nearest the middle; the informed item is at the anchor of the middle piece and sends to the anchors
of the others. The rest of the work is the same in every piece at the same time: exactly
ceil(log_(alpha + 1) L) rounds (after Wang, Tseng, Ni and Sheu 2001, section 3.1.1, where the source
stays at the centre, which fails for odd alpha).

On a torus of equal sides a broadcast goes from diagonal to diagonal. With level numbers x_0 ..
x_(k-1), H_s is the set of nodes with x_0 + .. + x_s = 0 and x_i = 0 for i > s. Stage s < k goes
from H_(s-1) to H_s, whose items differ in their level x_s; stage k from H_(k-1) to all nodes, which
differ in the sum of all x_i. Every item of a stage is a translate of the informed one, so that the
items are informed as one segment.
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

__all__ = ["Circuits", "Grid", "anchor", "axis_rounds", "clog", "diagonal_stage", "piece_sizes",
           "segment_rounds", "square_rounds", "translated"]  # fmt: skip

#: A part of a path: the axis, and the signed numbers of hops along it.
Run: TypeAlias = tuple[int, np.ndarray | int]


class Grid:
    """Levels on each axis of a torus.

    Parameters
    ----------
    levels : sequence of sequence of int
        The coordinates of the levels of each axis, in ascending order; equal ones may follow each
        other. By default every coordinate is a level.
    without : collection of int
        Axes of which the nodes of coordinate 1 are left out, so that levels count from 0 over the
        others.
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
    def counts(self) -> list[int]:
        """The number of levels of each axis."""
        return [len(axis) for axis in self.levels]

    def with_levels(self, axis: int, levels: Sequence[int] | np.ndarray) -> "Grid":
        """A grid with other levels on one axis."""
        changed = [levels if a == axis else own for a, own in enumerate(self.levels)]
        return Grid(self.sides, changed, self.without)

    def gaps(self, axis: int) -> np.ndarray:
        """How far it is from each level of an axis to the next, without nodes that are left out."""
        return np.diff(self.levels[axis], append=self.levels[axis][0] + self.spans[axis])

    def coordinate(self, axis: int, numbers: np.ndarray) -> np.ndarray:
        """Coordinates of level numbers of any size, counted on around the torus."""
        laps, numbers = np.divmod(numbers, len(self.levels[axis]))
        found = self.levels[axis][numbers]
        left_out = (axis in self.without) * (found > 0)
        return np.asarray(found + self.sides[axis] * laps + left_out)

    def nodes(self, index: np.ndarray) -> np.ndarray:
        """Coordinates of level numbers: arrays of shape (axes, nodes)."""
        found = [self.coordinate(axis, numbers) for axis, numbers in enumerate(index)]
        return np.asarray(np.stack(found) % np.array(self.sides)[:, None])


class Circuits:
    """The rounds of a broadcast from node 0, as far as they are built.

    Messages to nodes that are informed, or that a message built before reaches in the same round,
    are left out.
    """

    def __init__(self, topology: Torus) -> None:
        self.topology = topology
        self.informed = np.zeros(topology.nodes, bool)
        self.informed[0] = True
        self.rounds: list[Transfers] = []
        self.pending: list[tuple[np.ndarray, list[tuple[int, np.ndarray]]]] = []

    def send(self, start: np.ndarray, runs: Sequence[Run]) -> None:
        """Let a message go from each of some nodes, in the present round.

        Parameters
        ----------
        runs : list of (int, ndarray of int or int)
            The path: along which axis, and over how many links in which direction.
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

    def send_levels(self, grid: Grid, index: np.ndarray, runs: Sequence[Run]) -> None:
        """The same in level numbers of a grid."""
        index = np.array(index)
        moves, here = [], index.copy()
        for axis, steps in runs:
            there = here[axis] + steps
            moves.append((axis, grid.coordinate(axis, there) - grid.coordinate(axis, here[axis])))
            here[axis] = there
        self.send(grid.nodes(index), moves)

    def end_round(self) -> None:
        """Close the present round and begin the next."""
        sources = [source for source, _ in self.pending]
        paths = [_hops(runs, len(source)) for source, runs in self.pending]
        longest = max((path.shape[1] for path in paths), default=1)
        padded = [
            np.pad(path, ((0, 0), (0, longest - path.shape[1])), constant_values=-1)
            for path in paths
        ] or [np.empty((0, 1), np.int8)]
        source = np.concatenate(sources) if sources else np.empty(0, np.int64)
        self.rounds.append(Transfers(source, np.concatenate(padded)))
        self.pending = []


def translated(
    topology: CayleyGraph, root: int, rounds: Iterable[Transfers]
) -> tuple[Transfers, ...]:
    """Rounds planned for node 0, moved to another root."""
    return tuple(replace(t, source=topology.add(t.source, root)) for t in rounds)


def _hops(runs: Sequence[tuple[int, np.ndarray]], count: int) -> np.ndarray:
    """The out-ports along paths of signed runs, an int8 array padded with -1."""
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


def clog(number: int | Fraction, alpha: int) -> int:
    """ceil(log_(alpha + 1) of a number), at least 0; exact for integers and fractions."""
    rounds, reached = 0, 1
    while reached < number:
        rounds, reached = rounds + 1, reached * (alpha + 1)
    return rounds


def piece_sizes(length: int, alpha: int) -> list[int]:
    """Sizes of the alpha + 1 pieces of a segment."""
    size, rest = divmod(length, alpha + 1)
    nearest = sorted(range(alpha + 1), key=lambda piece: abs(piece - alpha // 2))
    return [size + (piece in nearest[:rest]) for piece in range(alpha + 1)]


@cache
def anchor(length: int, alpha: int) -> int:
    """Where the informed item of a segment is."""
    if length <= 1:
        return 0
    sizes, middle = piece_sizes(length, alpha), alpha // 2
    return sum(sizes[:middle]) + anchor(sizes[middle], alpha)


def segment_rounds(length: int, alpha: int) -> list[dict[int, tuple[np.ndarray, np.ndarray]]]:
    """Who sends where, in each round.

    Parameters
    ----------
    length : int
        Number of items; the one at `anchor` is informed.
    alpha : int
        To how many items an informed one may send in a round.

    Returns
    -------
    list of dict
        For each round ``{rank: (items, offsets)}``: each of ``items`` sends over a signed distance;
        a message of rank i has i others before it on its side, nearer to the sender. Both sides
        are in the same arrays, and a sender is in them up to twice.
    """
    segments, rounds = [(0, length)], []
    while max(size for _, size in segments) > 1:
        messages: dict[int, list[tuple[int, int]]] = {}
        pieces = []
        for start, size in segments:
            here, anchors = start + anchor(size, alpha), []
            for piece in filter(None, piece_sizes(size, alpha)):
                pieces.append((start, piece))
                anchors.append(start + anchor(piece, alpha))
                start += piece
            above = [there for there in anchors if there > here]
            below = [there for there in anchors if there < here][::-1]
            for rank, there in [*enumerate(above), *enumerate(below)]:
                messages.setdefault(rank, []).append((here, there - here))
        rounds.append({rank: tuple(np.array(pairs).T) for rank, pairs in messages.items()})
        segments = pieces
    return rounds


def square_rounds(circuits: Circuits, grid: Grid, alpha: int) -> None:
    """Inform all levels of a grid with k axes of n levels each, in k clog n rounds.

    Parameters
    ----------
    circuits : Circuits
        Where the rounds go; node 0 is informed.
    grid : Grid
        With as many levels on each axis.

    Notes
    -----
    Theorems 1, 2, 5 and 6 of Wang, Tseng, Ni and Sheu 2001, and section 5, with other paths.
    """
    for stage in range(1, len(grid.counts) + 1):
        diagonal_stage(circuits, grid, alpha, stage)


def diagonal_stage(circuits: Circuits, grid: Grid, alpha: int, stage: int, stride: int = 1) -> None:
    """Stage 1 to k; the last may inform every ``stride``-th of its diagonals only.

    Notes
    -----
    On each side of a sender, message number i to a node whose level is higher by d moves as
    follows. Stage s < k: i = 0: d along axis s, then -d along axis 0; i = 1 .. s: -d along axis
    i - 1, then d along s; i > s: a step towards d along i, d along s, -d along 0, a step back.
    Stage k: d along axis i.
    """
    dimensions, side = len(grid.counts), grid.counts[0]
    count = side // stride
    for messages in segment_rounds(count, alpha):
        for rank, (items, offsets) in messages.items():
            levels = (items - anchor(count, alpha)) * stride
            index = _senders(dimensions, side, stage, levels)
            steps = np.repeat(offsets * stride, side ** (stage - 1))
            circuits.send_levels(grid, index, _runs(dimensions, stage, rank, steps))
        circuits.end_round()


def _senders(dimensions: int, side: int, stage: int, levels: np.ndarray) -> np.ndarray:
    """The level numbers of all nodes of items, an array of shape (axes, items * nodes of each)."""
    free = np.indices((side,) * (stage - 1)).reshape(stage - 1, side ** (stage - 1))
    free, level = np.tile(free, len(levels)), np.repeat(levels, side ** (stage - 1))
    index = np.zeros((dimensions, len(level)), int)
    index[1:stage] = free
    if stage < dimensions:
        index[stage] = level
        level = -level
    index[0] = level - free.sum(axis=0)
    return index


def _runs(dimensions: int, stage: int, rank: int, steps: np.ndarray) -> list[Run]:
    """The path of a message by its rank on its side."""
    if stage == dimensions:
        return [(rank, steps)]
    if rank == 0:
        return [(stage, steps), (0, -steps)]
    if rank <= stage:
        return [(rank - 1, -steps), (stage, steps)]
    aside = np.sign(steps)
    return [(rank, aside), (stage, steps), (0, -steps), (rank, -aside)]


def axis_rounds(circuits: Circuits, grid: Grid, alpha: int) -> None:
    """Inform all levels of a grid one axis after another, with one or two messages a node.

    The sum of clog n_i rounds (Wang, Tseng, Ni and Sheu 2001, section 3.2.3).
    """
    for axis, count in enumerate(grid.counts):
        done = np.indices(grid.counts[:axis]).reshape(axis, math.prod(grid.counts[:axis]))
        for messages in segment_rounds(count, alpha):
            for items, offsets in messages.values():
                index = np.zeros((len(grid.counts), done.shape[1] * len(items)), int)
                index[:axis] = np.tile(done, len(items))
                index[axis] = np.repeat(items - anchor(count, alpha), done.shape[1])
                steps = np.repeat(offsets, done.shape[1])
                circuits.send_levels(grid, index, [(axis, steps)])
            circuits.end_round()
