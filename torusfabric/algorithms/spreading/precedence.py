"""`Precedence`: the order that transfers must keep, and the earliest rounds that it allows.

A *unit* is one transfer, or several that must share a round. A *condition* is met as soon as one of
its suppliers has moved. A unit waits for several conditions. A condition with lag 1 admits its
units in the round after the supplier, a condition with lag 0 already in the same round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from ...topology import IntArray
from .transfer_list import split_lists

__all__ = ["NEVER", "Precedence", "earliest_rounds"]

#: In place of a round: the unit waits for a condition that is never met.
NEVER = -1


class Precedence(NamedTuple):
    """The conditions under which units may move.

    Parameters
    ----------
    fires : list of list of int
        For each unit, the conditions that it meets when it moves.
    waiters : list of list of int
        For each condition, the units that wait for it.
    lag : list of int
        For each condition, the rounds from the supplier to the first round of its waiters: 0 or 1.
    """

    fires: list[list[int]]
    waiters: list[list[int]]
    lag: list[int]

    @classmethod
    def from_edges(cls, before: IntArray, after: IntArray, lag: IntArray, count: int) -> Precedence:
        """Return the precedence of `count` units, in which unit ``after[k]`` follows ``before[k]``.

        Unit ``after[k]`` moves at least ``lag[k]`` rounds later than unit ``before[k]``.

        Examples
        --------
        Units 1 and 2 come a round after unit 0:

        >>> one = np.array([1, 1])
        >>> Precedence.from_edges(np.array([0, 0]), np.array([1, 2]), one, 3)
        Precedence(fires=[[0], [], []], waiters=[[1, 2]], lag=[1])
        """
        edges = np.unique(np.array([before * 2 + lag, after]), axis=1)
        condition, which = np.unique(edges[0], return_inverse=True)
        waiters = split_lists(which.reshape(-1), edges[1], len(condition))
        fires = split_lists(condition // 2, np.arange(len(condition)), count)
        return cls(fires, waiters, (condition % 2).tolist())

    @property
    def wait_counts(self) -> list[int]:
        """The number of conditions for which each unit waits."""
        counts = [0] * len(self.fires)
        for units in self.waiters:
            for unit in units:
                counts[unit] += 1
        return counts

    @property
    def has_choice(self) -> bool:
        """True if a condition has several suppliers."""
        conditions = [condition for each in self.fires for condition in each]
        return len(conditions) > len({*conditions})

    def list_edges(
        self, rounds: Sequence[int] | None = None
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return the arrays `before`, `after` and `lag` of `from_edges`.

        Parameters
        ----------
        rounds : sequence of int, optional
            The round of each unit. The supplier of a condition is the one that moves first. By
            default, conditions with several suppliers are left out.
        """
        supplier = [-1] * len(self.lag)
        several = set()
        for unit, conditions in enumerate(self.fires):
            for condition in conditions:
                known = supplier[condition]
                if known < 0 or (rounds is not None and rounds[unit] < rounds[known]):
                    supplier[condition] = unit
                if known >= 0:
                    several.add(condition)
        skipped = several if rounds is None else set()
        found = [
            (supplier[condition], unit, self.lag[condition])
            for condition, units in enumerate(self.waiters)
            if supplier[condition] >= 0 and condition not in skipped
            for unit in units
        ]
        before, after, lag = np.array(found, np.int64).reshape(-1, 3).T
        return before, after, lag

    def reversed_edges(self, rounds: Sequence[int] | None = None) -> Precedence:
        """Return the precedence of the reversed schedule, whose last round is the first.

        `rounds` is as for `list_edges`.
        """
        before, after, lag = self.list_edges(rounds)
        return Precedence.from_edges(after, before, lag, len(self.fires))


def earliest_rounds(precedence: Precedence, release: Iterable[int]) -> list[int]:
    """Return the earliest round of each unit, if arcs carry any number of messages.

    The result is `NEVER` for a unit that waits for a condition that is never met.

    Parameters
    ----------
    release : iterable of int
        The first round in which each unit may move.

    Examples
    --------
    Unit 1 follows unit 0, and unit 2 waits for something that nobody does:

    >>> earliest_rounds(Precedence([[0], [], []], [[1], [2]], [1, 1]), [0, 0, 0])
    [0, 1, -1]
    """
    ready, waits = [*release], precedence.wait_counts
    rounds = [NEVER] * len(ready)
    is_met = bytearray(len(precedence.lag))
    queue = [(ready[unit], unit) for unit, count in enumerate(waits) if not count]
    heapify(queue)
    while queue:
        now, unit = heappop(queue)
        rounds[unit] = now
        for condition in precedence.fires[unit]:
            if is_met[condition]:
                continue
            is_met[condition] = True
            for waiter in precedence.waiters[condition]:
                ready[waiter] = max(ready[waiter], now + precedence.lag[condition])
                waits[waiter] -= 1
                if not waits[waiter]:
                    heappush(queue, (ready[waiter], waiter))
    return rounds
