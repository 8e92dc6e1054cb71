"""The steps in which messages go along given paths, where an arc carries one message a step.

Two orders are tried, and the order with fewer steps is taken:

- *Farthest first*: in every step each arc sends, of the messages that wait for it, the message with
  the most hops to go (`spread.schedule_trees`).
- *Insertion*: messages choose their steps one after another, those with the longest paths first.
  Each takes, arc by arc, the first step in which the arc is free. Messages with paths of equal
  length come in the order of a Latin square: first from every node to the next one, then from every
  node to the one after that.

Why: around a hub, some arcs out of the hub are idle unless messages for different nodes arrive in
each step. Farthest first lets all leaves send to the same node at once; in a Latin square each leaf
sends to another node.

Messages that arrive too late are moved to the front of the order, and all messages are inserted
again.

Source: D. E. Joslin, D. P. Clements, "Squeaky wheel optimization", J. Artificial Intelligence
Research 10, 1999, for moving late messages to the front.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...schedule import Transfers
from ...topology import IntArray
from .spread import schedule_trees

__all__ = ["schedule_paths"]

#: The most repetitions of the insertion, and the most hops of all repetitions.
TRIES, WORK_LIMIT = 12, 1_000_000


def schedule_paths(
    arcs: WeightedArcs,
    paths: Sequence[Sequence[int]],
    ends: tuple[IntArray, IntArray],
    blocks: IntArray,
) -> tuple[Transfers, ...]:
    """Return the transfers of each step, in which blocks go along given paths.

    An arc carries one block in a step. Two methods are tried, and the result with fewer steps is
    taken. In the first, the block with the most hops to go comes first on each arc. In the second,
    blocks choose their steps one after another, those with the longest paths first.

    Parameters
    ----------
    paths : sequence of sequence of int
        The arcs of each path, in order, by their numbers in `arcs`.
    ends : (ndarray of int, ndarray of int)
        The first and the last node of each path.
    blocks : ndarray of int
        The number of the block that goes along each path.

    Examples
    --------
    In a star, nodes 1 to 3 are linked to node 0 only. Each of them sends a block to both others.
    The six blocks arrive within three steps:

    >>> from torusfabric.analysis.congestion import WeightedArcs
    >>> from torusfabric.topology import Graph
    >>> arcs = WeightedArcs(Graph([(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)]))
    >>> arc_of = {ends: arc for arc, ends in enumerate(zip(arcs.tail.tolist(), arcs.head.tolist()))}
    >>> ends = np.array([1, 1, 2, 2, 3, 3]), np.array([2, 3, 1, 3, 1, 2])
    >>> paths = [[arc_of[leaf, 0], arc_of[0, other]] for leaf, other in zip(*ends)]
    >>> len(schedule_paths(arcs, paths, ends, np.arange(6)))
    3
    """
    found = schedule_trees(arcs, paths, blocks)
    # Lower bound: the load of the busiest arc, and the longest path.
    lengths = [len(path) for path in paths]
    load = np.bincount([arc for path in paths for arc in path], minlength=1)
    fewest = max(int(load.max()), *lengths, 0)
    if len(found) <= fewest:
        return found
    # The longest paths come first; among these, small differences of the node numbers.
    order = np.lexsort(((ends[1] - ends[0]) % arcs.nodes, -np.array(lengths)))
    steps = _insert_in_orders(arcs, paths, order, fewest)
    if 1 + max(taken[-1] for taken in steps) >= len(found):
        return found
    block = np.repeat(blocks, lengths)
    arc, step = np.concatenate(paths), np.concatenate(steps)
    return Transfers.by_step(step, arcs.tail[arc], arcs.port[arc], block)


def _insert_in_orders(
    arcs: WeightedArcs, paths: Sequence[Sequence[int]], order: IntArray, fewest: int
) -> list[list[int]]:
    """Schedule paths in several orders, and return the steps of the order that needs fewest steps.

    The result has, for each path, the step in which its block goes over each arc. In an order,
    paths take the first free steps one after another. `order` has the indices of the paths for the
    first order; afterwards, late paths are moved to the front. The search ends when only `fewest`
    steps, a lower bound, are needed. A path is a list of indices of `arcs`.
    """
    best: list[list[int]] = []
    least, rank = np.inf, np.argsort(order)
    for _ in range(1 + min(TRIES, WORK_LIMIT // sum(map(len, paths)))):
        steps = _insert_paths(arcs, paths, np.argsort(rank).tolist())
        last = np.array([taken[-1] for taken in steps])
        if last.max() < least:
            least, best = last.max(), steps
        if least < fewest:
            break
        rank = rank - len(paths) * (last >= fewest)
    return best


def _insert_paths(
    arcs: WeightedArcs, paths: Sequence[Sequence[int]], order: Sequence[int]
) -> list[list[int]]:
    """Choose the steps of paths one after another; each takes the first steps with free arcs.

    The result has, for each path, the step in which its block goes over each arc. `order` has the
    indices of the paths. A path is a list of indices of `arcs`.
    """
    apart, busy = arcs.forwarding_steps, [0] * len(arcs.tail)
    steps: list[list[int]] = [[]] * len(paths)
    for number in order:
        taken, step = [], 0
        for arc in paths[number]:
            free = ~(busy[arc] >> step)
            step += (free & -free).bit_length() - 1
            busy[arc] |= 1 << step
            taken.append(step)
            step += apart[arc]
        steps[number] = taken
    return steps
