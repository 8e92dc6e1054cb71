"""Searches for table schedules whose routers are small.

In hardware a node keeps what came by an in-port in one memory with one read port. If no two words
that came by the same in-port leave in the same step, no memory is needed twice, and an out-port
chooses between few inputs. At a step a cycle, a word that waits for less than a memory takes goes
past it through a delay line, and each age is an input of its own. A search plans step by step, and
takes some steps back if what is left cannot be done in time.

The fewer turns words take, the fewer inputs an out-port has. Whichever way it is decided for each
pair of axes, any set of axes can be put in an order that takes allowed turns only (a tournament has
a Hamiltonian path), so that a shortest path is left to any node.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import combinations
from typing import NamedTuple, TypeAlias

from ....topology import CayleyGraph, Topology, Torus

__all__ = ["Goal", "MEMORY_AGE", "Move", "NOISES", "Patience", "Row", "SmallRouter", "all_turns",
           "few_turns", "first_axes", "smallest"]  # fmt: skip

#: Words of this age, in steps, and older come from a memory.
MEMORY_AGE = 3

#: How strongly random numbers change the preferences: not at first, and by one of these, drawn
#: anew, each time steps are taken back.
NOISES = 0.0, 0.3, 1.0, 2.0


class Patience(IntEnum):
    """Which words a search prefers to send on."""

    #: A word is sent on as soon as it may be, or never again.
    HASTY = 0
    #: What came last.
    BRISK = 1
    #: What is nearest to the origin, or has the longest path to go.
    PATIENT = 2


class Move(NamedTuple):
    """What an out-port sends in a step.

    Parameters
    ----------
    word : int
        A number of the search's own.
    source : int
        The in-port it came by; those after the last are memories of what the node itself sends.
    age : int
        How many steps ago it came, at most `MEMORY_AGE`.
    """

    word: int
    source: int
    age: int


class Goal(NamedTuple):
    """The schedule that a search looks for.

    Parameters
    ----------
    latency : int
        What arrives in step t leaves in step t + latency or later.
    steps : int
        How many steps the schedule may take.
    seed : int
        Where the search starts; the same seed gives the same schedule.
    """

    topology: CayleyGraph
    latency: int
    steps: int
    seed: int


#: What each out-port sends in a step; None for an idle one.
Row: TypeAlias = list[Move | None]


class SmallRouter(ABC):
    """The state of a search.

    Attributes
    ----------
    rows : list of list of (Move or None)
        What each out-port sends in each step so far.
    work : int
        What the search has cost so far, in a unit of its own.
    """

    def __init__(self, goal: Goal, patience: Patience) -> None:
        topology, self.latency, self.steps, seed = goal
        self.ports, self.opposite = topology.ports, topology.opposite.tolist()
        self.neighbours, self.patience = topology.neighbours.tolist(), patience
        self.rng, self.work = random.Random(3 * seed + patience), 0
        self.rows: list[Row] = []

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether nothing is left to do."""

    @abstractmethod
    def replay(self, noise: float) -> None:
        """Set the state to that after the steps so far, with other preferences from now on."""

    @abstractmethod
    def advance(self) -> bool:
        """Plan one more step; whether the rest can still be done in time."""

    def run(self, budget: int) -> bool:
        """Go on until all is planned; whether that took no more work than the budget."""
        while not self.complete:
            if self.work > budget:
                return False
            if not self.advance():
                # As likely to take back 1 to 2 steps as 16 to 32.
                self.retreat(round((len(self.rows) + 1) ** self.rng.random()))
        return True

    def retreat(self, count: int) -> None:
        """Take back some steps."""
        del self.rows[max(len(self.rows) - count, 0) :]
        self.replay(self.rng.choice(NOISES))

    def cost(self) -> tuple[int, int, int, int]:
        """What to keep small, most important first.

        Returns
        -------
        tables, tables_by_age : int
            Look-up tables a bit, if all words come from memories or not.
        memories, registers : int
            In-ports whose words come from a memory, or go past it late.
        """
        moves = [(out_port, move) for row in self.rows for out_port, move in enumerate(row) if move]
        came = {(move.source, move.age) for _, move in moves if move.source < self.ports}
        return (
            _tables({(out_port, move.source) for out_port, move in moves}),
            _tables({(out_port, move.source, move.age) for out_port, move in moves}),
            len({source for source, age in came if age == MEMORY_AGE}),
            len({source for source, age in came if 1 < age < MEMORY_AGE}),
        )

    def frugal(self) -> bool:
        """Whether words that go past memories need no more inputs."""
        return self.cost()[0] == self.cost()[1]


def _tables(inputs: Iterable[tuple[int, ...]]) -> int:
    """Look-up tables a bit for inputs (out-port, ..): one of 4 bits joins two inputs to others."""
    count: dict[int, int] = {}
    for port, *_ in inputs:
        count[port] = count.get(port, 0) + 1
    return sum(-(-feeds // 2) for feeds in count.values() if feeds > 1)


def smallest(
    searches: Iterable[Callable[[Patience], SmallRouter]],
    latency: int,
    budget: int,
    haste: int,
    more: int,
) -> list[list[int]] | None:
    """The smallest of the schedules found with different preferences, of the first search with any.

    Parameters
    ----------
    searches : iterable of callable
        Each makes a `SmallRouter` of a patience.
    budget, haste, more : int
        How much work each search may be, if it is `Patience.HASTY`, and to find another schedule.

    Returns
    -------
    list of list of int, or None
        The word that each port sends in each step, or -1; None if no schedule was found.
    """
    for search in searches:
        rows = _smallest(search, latency, budget, haste, more)
        if rows is not None:
            return [[move.word if move else -1 for move in row] for row in rows]
    return None


def _smallest(
    search: Callable[[Patience], SmallRouter], latency: int, budget: int, haste: int, more: int
) -> list[Row] | None:
    """The rows of the best schedule of one search."""
    best = None
    for patience in Patience if latency < MEMORY_AGE else (Patience.PATIENT,):
        state = search(patience)
        limit = haste if patience == Patience.HASTY else budget
        while state.run(limit):
            if best is None or state.cost() < best[0]:
                best = state.cost(), list(state.rows)
            if state.frugal():
                return best[1]
            limit = min(limit, state.work + more)
            state.retreat(len(state.rows))
    return best and best[1]


def all_turns(topology: Topology) -> list[list[int]]:
    """By which out-ports may leave what came by each in-port, if anything may."""
    return [list(range(topology.ports)) for _ in range(topology.ports)]


def few_turns(topology: Topology) -> list[list[int]] | None:
    """By which out-ports may leave what came by each in-port, if it takes few turns.

    Words turn from an axis to the next half of the others, the first following the last: from the
    first to the second on two axes, cyclically on three.

    Returns
    -------
    list of list of int, or None
        None if it is no torus of two axes or more.
    """
    if not isinstance(topology, Torus) or len(topology.sides) < 2:
        return None
    axes, ports = len(topology.sides), range(topology.ports)
    return [
        [
            out_port
            for out_port in ports
            if out_port // 2 == in_port // 2 or _follows(in_port // 2, out_port // 2, axes)
        ]
        for in_port in ports
    ]


def _follows(first: int, then: int, axes: int) -> bool:
    """Whether words turn from an axis to another."""
    ahead = (then - first) % axes
    return 0 < 2 * ahead < axes or (2 * ahead == axes and first < then)


def first_axes(axes: int) -> dict[frozenset[int], set[int]]:
    """With which axes a path may start that takes few turns, and no axis twice.

    Returns
    -------
    dict
        For each set of axes on which the path has hops, a frozenset: a set of axes.
    """
    starts = {frozenset({axis}): {axis} for axis in range(axes)}
    for size in range(2, axes + 1):
        for chosen in map(frozenset, combinations(range(axes), size)):
            starts[chosen] = {
                first
                for first in chosen
                if any(_follows(first, then, axes) for then in starts[chosen - {first}])
            }
    return starts
