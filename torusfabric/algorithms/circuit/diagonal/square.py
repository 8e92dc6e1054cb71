"""Circuit-switched broadcast on tori with equal sides, from diagonal to diagonal.

With level numbers x_0 .. x_(k-1), H_s is the set of nodes with x_0 + .. + x_s = 0 and x_i = 0 for
i > s. Stage s < k goes from H_(s-1) to H_s, whose items differ in their level x_s; stage k
from H_(k-1) to all nodes, which differ in the sum of all x_i. Every item of a stage is a translate
of the informed one, so that the items are informed as one segment.
"""

import math

import numpy as np

from ..circuits import Circuits, Grid, Run, anchor, segment_rounds

__all__ = ["axis_rounds", "diagonal_stage", "square_rounds"]


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
