"""Searches for table schedules whose routers are small.

In hardware a node keeps the words that came by an in-port in one memory with one read port. If no
two words of the same in-port leave in the same step, no memory is read twice in a step, and an
out-port chooses between few inputs. At one step a cycle, a word that waits for fewer cycles than
the memory takes goes past the memory through a delay line. Each *age* of such words, the steps
since they came, is an input of its own::

    in-port --> register --+------------------> age 1
                           +--> register -----> age 2
                           +--> memory -------> age 3 and older

A search plans step by step, and takes steps back if the rest cannot be finished in time.

The fewer *turns* from one axis to another words may take, the fewer inputs an out-port has. Choose
one direction of turns for each pair of axes. Then any set of axes can be ordered so that only
chosen turns are taken, because a tournament has a Hamiltonian path. So a shortest path to every
node remains.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import combinations
from typing import NamedTuple, TypeAlias

from ....topology import CayleyGraph, Topology, Torus

__all__ = ["SearchGoal", "MEMORY_AGE", "Move", "NOISES", "Patience", "Row", "SmallRouterSearch",
           "all_turns", "limited_turns", "possible_first_axes", "smallest_schedule"]  # fmt: skip

#: Words of this age, in steps, and older words come from a memory.
MEMORY_AGE = 3

#: Amplitudes of random changes of the preferences: 0 at first; one of these is chosen anew each
#: time that steps are taken back.
NOISES = 0.0, 0.3, 1.0, 2.0


class Patience(IntEnum):
    """The rule by which a search chooses, of several waiting words, the word to send on.

    With `HASTY` and `BRISK`, words that have just arrived go first. With `PATIENT`, those go first
    that still have the most to do: words near their origin in an all-gather, words with the longest
    remaining path in an all-to-all.
    """

    #: A word is sent on as soon as possible, or never again.
    HASTY = 0
    #: The words that arrived last are sent on first.
    BRISK = 1
    #: Words nearest to the origin, or with the longest remaining path, come first.
    PATIENT = 2


class Move(NamedTuple):
    """A word that an out-port sends in a step, with its origin in the router.

    Parameters
    ----------
    word : int
        The number of the word. In an all-gather it stands for the arrival of a chunk at a node, in
        an all-to-all for a block.
    source : int
        The in-port by which the word came. Numbers after the last in-port are memories of the
        node's own words.
    age : int
        Steps since the word came, at most `MEMORY_AGE`.
    """

    word: int
    source: int
    age: int


class SearchGoal(NamedTuple):
    """The demands on the schedule that a search looks for.

    Parameters
    ----------
    latency : int
        A block that arrives in step t leaves in step t + latency or later.
    steps : int
        The most steps of the schedule.
    seed : int
        Seed of the search; the same seed gives the same schedule.
    """

    topology: CayleyGraph
    latency: int
    steps: int
    seed: int


#: The move of each out-port in a step; None for an idle one.
Row: TypeAlias = list[Move | None]


class SmallRouterSearch(ABC):
    """A search for a schedule whose routers are small, with the steps that it has planned so far.

    Each step is a list of moves, one for each out-port. Subclasses plan all-gathers and
    all-to-alls.

    Attributes
    ----------
    rows : list of list of (Move or None)
        The move of each out-port in each step so far.
    work : int
        The work of the search so far, in a unit that each subclass chooses.
    """

    def __init__(self, goal: SearchGoal, patience: Patience) -> None:
        topology, self.latency, self.steps, seed = goal
        self.ports, self.opposite = topology.ports, topology.opposite.tolist()
        self.neighbours, self.patience = topology.neighbours.tolist(), patience
        self.rng, self.work = random.Random(3 * seed + patience), 0
        self.rows: list[Row] = []

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """True if all words are planned."""

    @abstractmethod
    def replay_steps(self, noise: float) -> None:
        """Compute the state anew from the steps so far, and prefer other words from now on.

        Parameters
        ----------
        noise : float
            The amplitude of random changes of the order in which words are preferred, one of
            `NOISES`; 0 for none.
        """

    @abstractmethod
    def plan_step(self) -> bool:
        """Plan one more step; return True if the rest can still be done in time."""

    def run_to_end(self, budget: int) -> bool:
        """Plan steps until all words are planned; return True on success.

        The result is False if the search takes more `work` than `budget`.
        """
        while not self.is_complete:
            if self.work > budget:
                return False
            if not self.plan_step():
                # 1 to 2 steps are as likely to be taken back as 16 to 32.
                self.take_back_steps(round((len(self.rows) + 1) ** self.rng.random()))
        return True

    def take_back_steps(self, count: int) -> None:
        """Take back the last `count` steps, and change the preferences at random."""
        del self.rows[max(len(self.rows) - count, 0) :]
        self.replay_steps(self.rng.choice(NOISES))

    def router_cost(self) -> tuple[int, int, int, int]:
        """Return four numbers that measure the size of the routers, the most important first.

        The schedule with the smaller tuple is the better one.

        Returns
        -------
        tables, tables_by_age : int
            LUTs of a router for each bit of the word. `tables` holds if all words come from
            memories, `tables_by_age` if words that have just arrived go past the memories through
            delay lines.
        memories, registers : int
            Number of in-ports with words from a memory, and of in-ports with words from a delay
            line.
        """
        moves = [(out_port, move) for row in self.rows for out_port, move in enumerate(row) if move]
        came = {(move.source, move.age) for _, move in moves if move.source < self.ports}
        return (
            _luts_per_bit({(out_port, move.source) for out_port, move in moves}),
            _luts_per_bit({(out_port, move.source, move.age) for out_port, move in moves}),
            len({source for source, age in came if age == MEMORY_AGE}),
            len({source for source, age in came if 1 < age < MEMORY_AGE}),
        )

    def is_frugal(self) -> bool:
        """Return True if delay lines past the memories make no multiplexer of the router larger.

        A word that has just arrived goes through such a delay line, which is an input of its own.
        """
        return self.router_cost()[0] == self.router_cost()[1]


def _luts_per_bit(inputs: Iterable[tuple[int, ...]]) -> int:
    """Return the number of LUTs that the router of a node needs for each bit of the word.

    `inputs` has a tuple for each input of each out-port; the first element of the tuple is the
    out-port.

    A multiplexer of n inputs takes ceil(n / 2) LUTs, each of which joins two inputs to the LUTs
    before it; a single input takes none.
    """
    count: dict[int, int] = {}
    for port, *_ in inputs:
        count[port] = count.get(port, 0) + 1
    return sum(-(-feeds // 2) for feeds in count.values() if feeds > 1)


def smallest_schedule(
    searches: Iterable[Callable[[Patience], SmallRouterSearch]],
    latency: int,
    budget: int,
    haste: int,
    more: int,
) -> list[list[int]] | None:
    """Return the schedule with the smallest routers that the first successful search finds.

    A search is repeated with different preferences, to find smaller ones.

    Parameters
    ----------
    searches : iterable of callable
        Functions of a `Patience`, the rule for the choice among waiting words, that return a new
        search.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    budget, haste, more : int
        Limits on the `work` of a search: `budget` in general, `haste` with `Patience.HASTY`, and
        `more` for the search of a further schedule after the first one is found.

    Returns
    -------
    list of list of int, or None
        The word that each port sends in each step, or -1; None if no schedule was found.
    """
    for search in searches:
        rows = _smallest_rows(search, latency, budget, haste, more)
        if rows is not None:
            return [[move.word if move else -1 for move in row] for row in rows]
    return None


def _smallest_rows(
    search: Callable[[Patience], SmallRouterSearch],
    latency: int,
    budget: int,
    haste: int,
    more: int,
) -> list[Row] | None:
    """Return the steps of the schedule with the smallest routers that one search finds, or None.

    A step is a list with the move of each out-port. ``search(patience)`` starts the search. The
    arguments `latency`, `budget`, `haste` and `more` are those of `smallest_schedule`.
    """
    best = None
    for patience in Patience if latency < MEMORY_AGE else (Patience.PATIENT,):
        state = search(patience)
        limit = haste if patience == Patience.HASTY else budget
        while state.run_to_end(limit):
            if best is None or state.router_cost() < best[0]:
                best = state.router_cost(), list(state.rows)
            if state.is_frugal():
                return best[1]
            limit = min(limit, state.work + more)
            state.take_back_steps(len(state.rows))
    return best and best[1]


def all_turns(topology: Topology) -> list[list[int]]:
    """Return for each in-port the out-ports that its words may take: all ports."""
    return [list(range(topology.ports)) for _ in range(topology.ports)]


def limited_turns(topology: Topology) -> list[list[int]] | None:
    """Return for each in-port the out-ports that its words may take, with few turns.

    A turn is a change of axis on a path. Words may turn from an axis to the next half of the other
    axes, in a cycle: from the first to the second on two axes; from each axis to the next one on
    three.

    Returns
    -------
    list of list of int, or None
        The out-ports of each in-port; None if the topology is no torus of at least two axes.
    """
    if not isinstance(topology, Torus) or len(topology.sides) < 2:
        return None
    axes, ports = len(topology.sides), range(topology.ports)
    return [
        [
            out_port
            for out_port in ports
            if out_port // 2 == in_port // 2 or _is_turn_allowed(in_port // 2, out_port // 2, axes)
        ]
        for in_port in ports
    ]


def _is_turn_allowed(first: int, then: int, axes: int) -> bool:
    """Return True if words may turn from axis `first` to axis `then`, of `axes` axes.

    They may turn to the next half of the axes, in a cycle: on three axes, from 0 to 1, from 1 to 2,
    and from 2 to 0.
    """
    ahead = (then - first) % axes
    return 0 < 2 * ahead < axes or (2 * ahead == axes and first < then)


def possible_first_axes(axes: int) -> dict[frozenset[int], set[int]]:
    """Return the axes on which a path may start, for each set of axes along which it has hops.

    The path takes each axis once, and only the turns that `limited_turns` allows.

    Parameters
    ----------
    axes : int
        Number of axes of the torus.

    Returns
    -------
    dict
        From each set of axes, a frozenset, to the set of possible first axes. For two axes it is
        {0} -> {0}, {1} -> {1}, {0, 1} -> {0}.
    """
    starts = {frozenset({axis}): {axis} for axis in range(axes)}
    for size in range(2, axes + 1):
        for chosen in map(frozenset, combinations(range(axes), size)):
            starts[chosen] = {
                first
                for first in chosen
                if any(_is_turn_allowed(first, then, axes) for then in starts[chosen - {first}])
            }
    return starts
