"""Placement of units into rounds: two list schedulers, which differ in the order of ready units."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from .precedence import NEVER, Precedence

__all__ = ["Workload", "place_by_load", "place_by_urgency"]


class Workload(NamedTuple):
    """The units that are assigned to rounds.

    Parameters
    ----------
    precedence : Precedence
        The order that units must keep.
    needs : list of list of int
        For each unit, the resources that it needs in its round.
    capacity : list of int
        For each resource, the number of transfers that it serves in a round.
    sizes : list of int
        Number of blocks in the longest message of each unit.
    turns : list of int
        The round of each unit in the user's schedule, by which equally urgent units are sorted.
    """

    precedence: Precedence
    needs: list[list[int]]
    capacity: list[int]
    sizes: list[int]
    turns: list[int]


class _Placement:
    """A schedule that is built round by round.

    Attributes
    ----------
    rounds : list of int
        The round of each unit; `NEVER` for units that have none yet.
    used : dict of int to int
        For each resource, the transfers that it serves in the present round.
    coming : list of int
        The units that are ready from the next round on.
    """

    def __init__(self, work: Workload, precedence: Precedence) -> None:
        self._needs, self._capacity, self._precedence = work.needs, work.capacity, precedence
        self._waits = precedence.wait_counts
        self._ready = [0] * len(work.needs)
        self._is_met = bytearray(len(precedence.lag))
        # Units with a resource several times are transfers that must share a round.
        self._has_repetitions = [len(own) != len({*own}) for own in work.needs]
        self.rounds = [NEVER] * len(work.needs)
        self.coming = [unit for unit, count in enumerate(self._waits) if not count]
        self._now = -1
        self.used: dict[int, int] = {}

    def begin_round(self) -> list[int]:
        """Begin the next round, and return the units that are ready from this round on."""
        self._now, self.used = self._now + 1, {}
        coming, self.coming = self.coming, []
        return coming

    def place_unit(self, unit: int) -> list[int] | None:
        """Place a unit into the present round; return the units that may follow in this round.

        The result is None if a resource of the unit is not free.
        """
        own, used, capacity = self._needs[unit], self.used, self._capacity
        for resource in own:
            count = own.count(resource) if self._has_repetitions[unit] else 1
            if used.get(resource, 0) + count > capacity[resource]:
                return None
        for resource in own:
            used[resource] = used.get(resource, 0) + 1
        self.rounds[unit] = self._now
        following = list[int]()
        for condition in self._precedence.fires[unit]:
            if self._is_met[condition]:
                continue
            self._is_met[condition] = True
            first = self._now + self._precedence.lag[condition]
            for waiter in self._precedence.waiters[condition]:
                self._ready[waiter] = max(self._ready[waiter], first)
                self._waits[waiter] -= 1
                if not self._waits[waiter]:
                    (self.coming if self._ready[waiter] > self._now else following).append(waiter)
        return following


def place_by_urgency(work: Workload, precedence: Precedence, urgency: Sequence[float]) -> list[int]:
    """Return a round for each unit: in each round, the most urgent units take what is free.

    Parameters
    ----------
    precedence : Precedence
        The order of units: that of `work`, or the reversed one.
    urgency : sequence of float
        The unit with the least value goes first.

    Examples
    --------
    Two units need one arc, and the second is more urgent:

    >>> free = Precedence([[], []], [], [])
    >>> place_by_urgency(Workload(free, [[0], [0]], [1], [1, 1], [0, 0]), free, [0, -1])
    [1, 0]
    """
    by_rank = sorted(
        range(len(work.needs)), key=lambda unit: (urgency[unit], work.turns[unit], unit)
    )
    rank = [0] * len(by_rank)
    for place, unit in enumerate(by_rank):
        rank[unit] = place
    first_need = [needs[0] for needs in work.needs]
    state = _Placement(work, precedence)
    # Units that are ready, as heaps of ranks: one for each resource that is the first of a unit.
    queues: dict[int, list[int]] = {}
    while state.coming or queues:
        for unit in state.begin_round():
            heappush(queues.setdefault(first_need[unit], []), rank[unit])
        heads = [(queue[0], first) for first, queue in queues.items()]
        heapify(heads)
        blocked: list[int] = []
        while heads:
            place, first = heappop(heads)
            queue = queues[first]
            if not queue or queue[0] != place:
                continue  # the unit has moved, or another one has come before it
            unit = by_rank[heappop(queue)]
            following = state.place_unit(unit)
            if following is None:
                blocked.append(unit)
            for waiter in following or ():
                heappush(queues.setdefault(first_need[waiter], []), rank[waiter])
                heappush(heads, (queues[first_need[waiter]][0], first_need[waiter]))
            if queue and state.used.get(first, 0) < work.capacity[first]:
                heappush(heads, (queue[0], first))
        for unit in blocked:
            heappush(queues[first_need[unit]], rank[unit])
        queues = {first: queue for first, queue in queues.items() if queue}
    return state.rounds


def place_by_load(
    work: Workload, tail: Sequence[float], *, waiting_first: bool = False
) -> list[int]:
    """Return a round for each unit: in each round, units of the busiest resources go first.

    A resource is the busier the more units still need it. This matters if units need several
    resources, because a round that leaves the busiest resource idle may be lost.

    Parameters
    ----------
    tail : sequence of float
        A number for each unit, in rounds, that is added to the rounds of its busiest resource.
    waiting_first : bool
        True if the longest wait decides between equals, False if the user's rounds do.

    Examples
    --------
    Units 1 and 2 take turns on arc 0, and unit 2 has the longer tail:

    >>> order = Precedence([[], [], []], [], [])
    >>> work = Workload(order, [[1], [0], [0]], [1, 1], [1] * 3, [0] * 3)
    >>> place_by_load(work, [0, 0, 1])
    [0, 1, 0]
    """
    left = [0.0] * len(work.capacity)
    for needs in work.needs:
        for resource in needs:
            left[resource] += 1 / work.capacity[resource]
    state, ready = _Placement(work, work.precedence), list[int]()
    while state.coming or ready:
        ready += state.begin_round()
        busy = {unit: max(left[each] for each in work.needs[unit]) + tail[unit] for unit in ready}
        if not waiting_first:
            ready.sort(key=lambda unit: (work.turns[unit], unit))
        ready.sort(key=busy.__getitem__, reverse=True)  # a stable sort
        blocked = []
        for unit in ready:
            following = state.place_unit(unit)
            if following is None:
                blocked.append(unit)
                continue
            ready += following  # they are tried in this round, too
            for resource in work.needs[unit]:
                left[resource] -= 1 / work.capacity[resource]
        ready = blocked
    return state.rounds
