"""The steps in which messages go along given routes, where an arc carries one message a step.

Paths (`schedule_paths`):

1. *Insertion*: messages choose their steps one after another, those with the longest paths first.
   Each takes, arc by arc, the first step in which the arc is free. Messages with paths of equal
   length come in the order of a Latin square: first from every node to the next one, then from
   every node to the one after that. Why: around a hub, an arc out of the hub is idle unless
   messages for different nodes arrive in each step.
2. *Both ways round*: the last hops are made as late as possible, then the hops before them, and so
   on to the first. Then the first hops are made as early as possible, and so on to the last. This
   is repeated while it saves steps.
3. *Ejection*: the messages that arrive in the last step must take earlier steps. A message may take
   a step in which its arc is busy; the message in that step is ejected and inserted again. Each
   message takes the steps with the smallest sum of weights of ejected messages. A message weighs
   more with each hop, and with each time that it was ejected, so that the same messages do not
   eject each other for ever. This is repeated until no step can be saved.

Trees, and sums that go up trees and down again (`choose_steps`): in every step each arc takes, of
the hops that are ready, the one that begins the longest chain of hops. Then both ways round.

Sources: K. Y. Li, R. J. Willis, "An iterative scheduling technique for resource-constrained project
scheduling", European Journal of Operational Research 56, 1992, for both ways round;
Y. Nagata, O. Bräysy, "A powerful route minimization heuristic for the vehicle routing problem with
time windows", Operations Research Letters 37, 2009, for the ejections.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...schedule import Transfers
from ...topology import IntArray
from .spread import schedule_hops

__all__ = ["choose_steps", "schedule_paths"]

#: The weight of a message that may be ejected, for the message and for each hop. The weight grows
#: by 1 with each ejection.
MESSAGE_WEIGHT, HOP_WEIGHT = 10, 2

#: The work of the ejections, in pairs of an arc and a step: the most in all, the most for each
#: message, and the fixed part of an insertion. The most takes about one second.
WORK_LIMIT, WORK_PER_MESSAGE, INSERTION_WORK = 60_000_000, 20_000, 1000

#: The most pairs of an arc and a step with which messages are ejected, to save memory.
MOST_PAIRS = 30_000_000

#: A sum of weights that is larger than any other.
FORBIDDEN = 1 << 60


def schedule_paths(
    arcs: WeightedArcs,
    paths: Sequence[Sequence[int]],
    ends: tuple[IntArray, IntArray],
    blocks: IntArray,
    turn: np.ndarray | None = None,
) -> tuple[Transfers, ...]:
    """Return the transfers of each step, in which blocks go along given paths.

    An arc carries one block in a step. Blocks choose their steps one after another, those with the
    longest paths first; then hop by hop, from the last step to the first one and back. Blocks that
    arrive in the last steps then take steps of other blocks, which choose again.

    Parameters
    ----------
    paths : sequence of sequence of int
        The arcs of each path, in order, by their numbers in `arcs`.
    ends : (ndarray of int, ndarray of int)
        The first and the last node of each path.
    blocks : ndarray of int
        The number of the block that goes along each path.
    turn : ndarray of float, optional
        A number for each block. Blocks also choose their steps in the order of these numbers, and
        the order with the fewest steps is taken.

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
    if not paths:
        return ()
    apart, lengths = np.array(arcs.forwarding_steps), np.array([len(path) for path in paths])
    arc, first = np.concatenate(paths), np.cumsum(lengths) - lengths
    apart_here = apart[arc]
    before = np.cumsum(apart_here) - apart_here
    before -= np.repeat(before[first], lengths)
    end = before[first + lengths - 1]
    after = np.repeat(end, lengths) - before
    fewest = max(_least_end(arc, *pair) for pair in ((before, after), (after, before)))
    # The longest paths come first; among these, small differences of the node numbers.
    keys = (ends[1] - ends[0]) % arcs.nodes, -lengths
    last = np.zeros(len(arc), bool)
    last[first + lengths - 1] = True
    hop = np.flatnonzero(~last)
    pairs, found = _HopPairs(arcs, arc, hop, hop + 1), []
    for order in (keys,) if turn is None else (keys, (*keys, turn)):
        rank = np.argsort(np.lexsort(order))
        step = pairs.insert_hops(np.argsort(np.repeat(rank, lengths), kind="stable"))
        found.append(pairs.save_steps(step, fewest))
    step = min(found, key=lambda one: int(one.max()))
    parts = [part.tolist() for part in np.split(step, first[1:])]
    step = np.concatenate(_save_steps(arcs, paths, parts, fewest))
    # While all blocks are on slow arcs, the fabric waits: such a step is left out.
    _, step = np.unique(step, return_inverse=True)
    return Transfers.by_step(step, arcs.tail[arc], arcs.port[arc], np.repeat(blocks, lengths))


def _least_end(arc: IntArray, before: IntArray, after: IntArray) -> int:
    """Return a number of steps that all hops need, by the hops on each arc.

    Parameters
    ----------
    arc, before, after : ndarray of int
        The arc of each hop, and the steps that its block needs before it and after it.
    """
    order = np.lexsort((-after, arc))
    arc, soonest = arc[order], np.full(arc.max() + 1, np.iinfo(int).max)
    np.minimum.at(soonest, arc, before[order])
    # The first k hops of an arc in this order are followed by at least as many steps as hop k.
    number = np.arange(1, 1 + len(arc)) - np.searchsorted(arc, arc)
    return int((soonest[arc] + number + after[order]).max())


def choose_steps(
    arcs: WeightedArcs, arc: IntArray, earlier: IntArray, later: IntArray, turn: IntArray
) -> IntArray:
    """Return the step of each hop, where an arc carries one block in a step.

    Parameters
    ----------
    arc : ndarray of int
        The arc of each hop.
    earlier, later : ndarray of int
        Pairs of hops: hop ``later[k]`` waits until the data of hop ``earlier[k]`` have arrived.
    turn : ndarray of float
        A number for each hop. The most urgent hop that waits for an arc is the one that begins the
        longest chain of hops, or else the one with the smallest number; both are tried.

    Examples
    --------
    Hops 0 and 1 need the same arc, and hop 2 waits for hop 0:

    >>> from torusfabric.analysis.congestion import WeightedArcs
    >>> from torusfabric.topology import parse_topology
    >>> arcs = WeightedArcs(parse_topology("mesh:3"))
    >>> pairs = np.array([0]), np.array([2])
    >>> choose_steps(arcs, np.array([0, 0, 1]), *pairs, np.zeros(3)).tolist()
    [0, 1, 1]
    """
    if not len(arc):
        return np.empty(0, int)
    pairs, count = _HopPairs(arcs, arc, earlier, later), len(arc)
    chain, found = pairs.longest_chains(), []
    waits, apart = np.bincount(later, minlength=count).tolist(), arcs.forwarding_steps
    on, hops = arc.tolist(), np.arange(count)
    for key in ((hops, -chain), (hops, -chain, turn)):
        urgency = np.argsort(np.lexsort(key)).tolist()
        step = np.empty(count, int)
        for number, sent in enumerate(schedule_hops(on, pairs.after, waits, urgency, apart)):
            step[sent] = number
        # `schedule_hops` leaves out the steps in which all blocks are on slow arcs.
        step = pairs.insert_hops(np.argsort(step, kind="stable"))
        found.append(pairs.save_steps(step, int(np.bincount(arc).max())))
    step = min(found, key=lambda one: int(one.max()))
    return np.unique(step, return_inverse=True)[1]


class _HopPairs:
    """Hops, with the pairs of hops of which one has to wait for the other.

    Parameters
    ----------
    arc : ndarray of int
        The arc of each hop.
    earlier, later : ndarray of int
        Hop ``later[k]`` waits until the data of hop ``earlier[k]`` have arrived.
    """

    def __init__(
        self, arcs: WeightedArcs, arc: IntArray, earlier: IntArray, later: IntArray
    ) -> None:
        self._arcs, self._on = len(arcs.tail), arc.tolist()
        self._apart = np.array(arcs.forwarding_steps)[arc].tolist()
        #: For each hop, the hops that wait for it, and the hops for which it waits.
        self.after: list[list[int]] = [[] for _ in self._on]
        self.before: list[list[int]] = [[] for _ in self._on]
        for hop, other in zip(earlier.tolist(), later.tolist(), strict=True):
            self.after[hop].append(other)
            self.before[other].append(hop)

    def longest_chains(self) -> IntArray:
        """Return the number of hops of the longest chain that begins with each hop."""
        waits = [len(hops) for hops in self.before]
        order = [hop for hop, count in enumerate(waits) if not count]
        for hop in order:
            for other in self.after[hop]:
                waits[other] -= 1
                if not waits[other]:
                    order.append(other)
        chain = [1] * len(order)
        for hop in reversed(order):
            for other in self.before[hop]:
                chain[other] = max(chain[other], 1 + chain[hop])
        return np.array(chain)

    def insert_hops(self, order: IntArray, *, backwards: bool = False) -> IntArray:
        """Choose the steps of hops one after another; each takes the first step with a free arc.

        Parameters
        ----------
        order : ndarray of int
            The hops in the order in which they choose; each comes after all hops before it.
        backwards : bool
            True to go from the end of the schedule to its beginning. Steps are then counted from
            the last one, and each hop comes after all hops that wait for it.
        """
        busy, on, apart = [0] * self._arcs, self._on, self._apart
        step, following = [0] * len(on), self.before if backwards else self.after
        for hop in order.tolist():
            free = ~(busy[on[hop]] >> step[hop])
            step[hop] += (free & -free).bit_length() - 1
            busy[on[hop]] |= 1 << step[hop]
            for other in following[hop]:
                soonest = step[hop] + apart[other if backwards else hop]
                if soonest > step[other]:
                    step[other] = soonest
        return np.array(step)

    def save_steps(self, step: IntArray, fewest: int) -> IntArray:
        """Return steps with an earlier end, found by going both ways round.

        The search ends when no step is saved, or only `fewest` steps, a lower bound, are needed.
        """
        while step.max() >= fewest:
            late = self.insert_hops(np.argsort(-step, kind="stable"), backwards=True)
            early = self.insert_hops(np.argsort(-late, kind="stable"))
            if early.max() >= step.max():
                break
            step = early
        return step


def _save_steps(
    arcs: WeightedArcs,
    paths: Sequence[Sequence[int]],
    steps: list[list[int]],
    fewest: int,
) -> list[list[int]]:
    """Return steps of paths with an earlier end, found by ejections.

    ``steps[k]`` has the step in which block k goes over each arc of ``paths[k]``. The search ends
    when only `fewest` steps, a lower bound, are needed, or after a limit of work.
    """
    count, end = len(paths), 1 + max(taken[-1] for taken in steps)
    if end <= fewest or end * len(arcs.tail) > MOST_PAIRS:
        return steps
    apart, work = arcs.forwarding_steps, min(WORK_LIMIT, WORK_PER_MESSAGE * count)
    # A step in which an arc is free has the block number `count`, which has no weight.
    block_at = np.full((len(arcs.tail), end), count, np.int32)
    weight = np.array([*(MESSAGE_WEIGHT + HOP_WEIGHT * len(path) for path in paths), 0])
    for number, taken in enumerate(steps):
        block_at[paths[number], taken] = number
    best = steps
    while end > fewest:
        end, best, steps = end - 1, steps, [*steps]
        waiting = [number for number, taken in enumerate(steps) if taken[-1] == end]
        for number in waiting:
            block_at[paths[number], steps[number]] = count
        while waiting:
            number = waiting.pop()
            path = paths[number]
            work -= INSERTION_WORK + end * len(path)
            if work < 0:
                return best
            taken = _least_weights(weight[block_at[path, :end]], [apart[arc] for arc in path[:-1]])
            for other in {*block_at[path, taken].tolist()} - {count}:
                block_at[paths[other], steps[other]] = count
                weight[other] += 1
                waiting.append(other)
            block_at[path, taken] = number
            steps[number] = taken
    return steps


def _least_weights(sums: IntArray, apart: Sequence[int]) -> list[int]:
    """Return a step for each arc of a path, so that the sum of the weights is smallest.

    ``sums[k, step]`` is the weight for arc k of the path; sums of weights take its place.
    ``apart[k]`` is the least difference between the steps of arcs k and k + 1. Among equal sums,
    the last arc has the earliest step.
    """
    for arc, gap in enumerate(apart, 1):
        sums[arc, gap:] += np.minimum.accumulate(sums[arc - 1])[:-gap]
        sums[arc, :gap] = FORBIDDEN
    taken, until = [], sums.shape[1]
    for row, gap in zip(sums[::-1], [*apart[::-1], 0], strict=True):
        taken.append(int(row[:until].argmin()))
        until = taken[-1] - gap + 1
    return taken[::-1]
