"""Search for few rounds: list scheduling of transfers, forwards and backwards in turn.

In each round, units move in the order of their urgency if all resources that they need are free.
Several urgencies are tried, and the schedule with the fewest rounds is kept:

- The unit with the longest chain of units behind it goes first.
- Trees begin one after another. A *tree* is a set of units that are ordered among each other, such
  as the transfers of one block. This helps if the arcs have many more rounds of work than a chain
  has units.
- The order of the user's rounds.
- The unit whose resources have the most work left goes first, if units need several resources.
- A schedule is planned backwards, from its last round to its first, and forwards again. A unit so
  learns how long the units behind it have to wait for arcs.
- The same with trees in random order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice, product
from math import ceil
from typing import NamedTuple

import numpy as np

from .placement import Workload, place_by_load, place_by_urgency
from .precedence import Precedence, earliest_rounds

__all__ = ["LowerBounds", "find_bounds", "find_rounds"]

#: Work of the search, in placed units times passes; its least and its most passes.
WORK_LIMIT, LEAST_PASSES, MOST_PASSES = 150_000, 11, 200

#: The trees begin one after another, in this share of the rounds that the bound leaves for it.
SHARES = 0.5, 0.8, 1.2

#: The rounds that a resource is busy count against this many times the units behind a unit.
WEIGHTS = 0.5, 1, 2

#: Passes forwards and backwards in turn, after which the urgency is changed at random.
TURNS = 3


class LowerBounds(NamedTuple):
    """Lower bounds on the rounds of a workload.

    Parameters
    ----------
    chain : int
        Rounds of the longest chain of units, of which each waits for the one before.
    load : int
        Rounds that the busiest resource needs for its transfers.
    busiest : int
        The number of this resource; -1 without transfers.
    rounds : int
        The largest bound. It also counts the rounds before a resource can begin, and after it ends.
    """

    chain: int
    load: int
    busiest: int
    rounds: int


def find_bounds(work: Workload) -> LowerBounds:
    """Return lower bounds on the rounds in which the units of a workload can move.

    A resource of capacity c serves c units in a round. Unit k can move from round ``head[k]`` on,
    and at least ``tail[k]`` rounds follow its own. The end is as early as possible if the resource
    serves, in each round, the ready units with the longest tails.

    Examples
    --------
    Three units need one arc, and another unit follows the second of them:

    >>> order = Precedence([[], [0], [], []], [[3]], [1])
    >>> find_bounds(Workload(order, [[0], [0], [0], [1]], [1, 1], [1] * 4, [0] * 4))
    LowerBounds(chain=2, load=3, busiest=0, rounds=3)
    """
    count = len(work.needs)
    if not count:
        return LowerBounds(0, 0, -1, 0)
    head = earliest_rounds(work.precedence, [0] * count)
    tail = earliest_rounds(work.precedence.reversed_edges(), [0] * count)
    chain = max(map(sum, zip(head, tail, strict=True))) + 1
    users: list[list[int]] = [[] for _ in work.capacity]
    for unit, needs in enumerate(work.needs):
        for resource in needs:
            users[resource].append(unit)
    loads = [ceil(len(each) / most) for each, most in zip(users, work.capacity, strict=True)]
    busiest = max(range(len(loads)), key=loads.__getitem__)
    least = max(chain, loads[busiest])
    for resource, units in enumerate(users):
        most_tail = max((tail[unit] for unit in units), default=0)
        if max((head[unit] for unit in units), default=0) + loads[resource] + most_tail > least:
            jobs = sorted((head[unit], -tail[unit]) for unit in units)
            least = max(least, _resource_rounds(jobs, work.capacity[resource]))
    return LowerBounds(chain, loads[busiest], busiest, least)


def _resource_rounds(jobs: list[tuple[int, int]], capacity: int) -> int:
    """Return the rounds until all units of a resource, and the units behind them, can be done.

    A job is (head, -tail) of a unit, see `find_bounds`; jobs are sorted. In a round the resource
    serves `capacity` of them.
    """
    end, now, place = 0, 0, 0
    waiting: list[int] = []
    while waiting or place < len(jobs):
        now = now if waiting else max(now, jobs[place][0])
        while place < len(jobs) and jobs[place][0] <= now:
            heappush(waiting, jobs[place][1])
            place += 1
        now += 1
        for _ in range(min(capacity, len(waiting))):
            end = max(end, now - heappop(waiting))
    return end


def find_rounds(
    work: Workload, bound: int, progress: Callable[[int, int], object] | None = None
) -> list[int]:
    """Return a round for each unit, from 0, so that all units move in few rounds.

    Of schedules with equally many rounds, the one with the shorter messages is taken: a round lasts
    as long as its longest message.

    Parameters
    ----------
    bound : int
        Lower bound on the rounds: the search ends when it is reached.
    progress : function of (done, total), optional
        Called after each pass, with the passes done and the most passes.

    Examples
    --------
    Three units need one arc, and another unit follows the second of them:

    >>> order = Precedence([[], [0], [], []], [[3]], [1])
    >>> find_rounds(Workload(order, [[0], [0], [0], [1]], [1, 1], [1] * 4, [0] * 4), 3)
    [1, 0, 2, 1]
    """
    count = len(work.needs)
    passes = max(LEAST_PASSES, min(MOST_PASSES, WORK_LIMIT // max(1, count)))
    equal = len({*work.sizes}) <= 1
    best, best_cost = list[int](), (count + 1, 0)
    for number, rounds in enumerate(islice(_try_urgencies(work, bound), passes), 1):
        cost = _round_cost(work, rounds)
        if cost < best_cost:
            best, best_cost = rounds, cost
        if progress:
            progress(number, passes)
        if best_cost[0] <= bound and (equal or number >= LEAST_PASSES):
            break
    if progress:
        progress(passes, passes)
    return best


def _try_urgencies(work: Workload, bound: int) -> Iterator[list[int]]:
    """Yield schedules of a workload, as the round of each unit, without end.

    `bound` is the lower bound on the rounds.
    """
    count = len(work.needs)
    source = random.Random(0)
    reverse = work.precedence.reversed_edges()
    tail = earliest_rounds(reverse, [0] * count)
    tree, trees = _number_trees(work.precedence)
    room = bound - max(tail, default=0)
    is_fixed = not work.precedence.has_choice

    def place_forwards(urgency: Sequence[float]) -> list[int]:
        return place_by_urgency(work, work.precedence, urgency)

    def place_late_units_first(rounds: Sequence[int]) -> list[int]:
        """Plan a schedule backwards, and then forwards."""
        behind = reverse if is_fixed else work.precedence.reversed_edges(rounds)
        left = place_by_urgency(work, behind, [-when for when in rounds])
        return place_forwards([-each for each in left])

    yield (last := place_forwards([-each for each in tail]))
    for share in SHARES:
        start = [share * room * each / trees for each in range(trees)]
        yield place_forwards([start[tree[unit]] - tail[unit] for unit in range(count)])
    yield place_forwards(work.turns)
    if any(len(needs) > 1 for needs in work.needs):
        for waiting_first, weight in product((False, True), WEIGHTS):
            part = [weight * each for each in tail]
            yield (last := place_by_load(work, part, waiting_first=waiting_first))
    while True:
        for _ in range(TURNS):
            yield (last := place_late_units_first(last))
        share = source.choice((0, *SHARES))
        order = source.sample(range(trees), trees)
        noise = source.choice((0, 1, 2, 4))
        last = place_forwards(
            [
                share * room * order[tree[unit]] / trees - tail[unit] + noise * source.random()
                for unit in range(count)
            ]
        )
        yield last


def _number_trees(precedence: Precedence) -> tuple[list[int], int]:
    """Return the tree of each unit, as a number, and the number of trees.

    Units are in one tree if an order between them is kept. The trees of two blocks are apart.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(precedence.fires)
    conditions = count + len(precedence.waiters)
    # A condition is a node of the graph, too: it joins its suppliers and its waiters.
    pairs = [
        (unit, count + condition)
        for units in (_fired_by(precedence), precedence.waiters)
        for condition, each in enumerate(units)
        for unit in each
    ]
    before, after = np.array(pairs, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (before, after)), shape=(conditions, conditions))
    _, label = connected_components(graph, directed=False)
    trees, tree = np.unique(label[:count], return_inverse=True)
    return tree.reshape(-1).tolist(), len(trees)


def _fired_by(precedence: Precedence) -> list[list[int]]:
    """Return the suppliers of each condition."""
    found: list[list[int]] = [[] for _ in precedence.waiters]
    for unit, conditions in enumerate(precedence.fires):
        for condition in conditions:
            found[condition].append(unit)
    return found


def _round_cost(work: Workload, rounds: Sequence[int]) -> tuple[int, int]:
    """Return the number of rounds, and the sum of the blocks of their longest messages."""
    longest = [0] * (max(rounds, default=-1) + 1)
    for size, when in zip(work.sizes, rounds, strict=True):
        longest[when] = max(longest[when], size)
    return len(longest), sum(longest)
