"""One step of an all-gather: the block that each in-port sends on, and its out-ports.

Each in-port has one *head*, chosen from a few blocks. Each out-port takes a delivery next to a
head; no two out-ports make the same delivery in a step. A matching finds the most deliveries for
given heads. Heads are changed one at a time, first to fill more out-ports, then at random.
"""

import random
from collections import Counter
from functools import partial
from typing import NamedTuple, TypeAlias

from ..bipartite import maximum_matching
from .small_router import Move

__all__ = ["Head", "HeadChoice"]

#: Inputs of out-ports: tuples of (out-port, in-port, age).
Inputs: TypeAlias = set[tuple[int, int, int]]

#: Random changes of heads, for each port, before idle ports are accepted.
TRIES = 12


class Head(NamedTuple):
    """A block that an in-port could send on.

    Parameters
    ----------
    source : int
        The in-port; numbers after the last in-port stand for the node's own memory.
    onward : list of (int, Move)
        The deliveries that it allows: the out-port and the move.
    """

    source: int
    onward: list[tuple[int, Move]]


def _fewest_ways(ways: Counter[int], head: Head) -> int:
    """Return the number of ways to make the rarest delivery next to a head."""
    return min(ways[move.word] for _, move in head.onward)


class HeadChoice:
    """The choice of heads for one step.

    Parameters
    ----------
    heads : list of list of Head
        The candidates of each in-port, best first.
    crowd : list of float
        The number of waiting blocks at each in-port; crowded in-ports are preferred.
    mixed : bool
        True if out-ports prefer in-ports at random instead.
    rare : bool
        True to prefer deliveries that can be made in the fewest ways.

    Attributes
    ----------
    work : int
        The number of matchings so far.
    """

    def __init__(
        self,
        heads: list[list[Head]],
        crowd: list[float],
        ports: int,
        rng: random.Random,
        *,
        mixed: bool,
        rare: bool,
    ) -> None:
        self.ports, self.rng, self.mixed, self.heads = ports, rng, mixed, heads
        self.ways: Counter[int] | None = None
        if rare:
            # The number of ways to make each delivery.
            moves = (move for mine in heads for head in mine for _, move in head.onward)
            self.ways = Counter(move.word for move in moves)
            self.heads = [sorted(mine, key=partial(_fewest_ways, self.ways)) for mine in heads]
        self.order = sorted(
            (in_port for in_port, mine in enumerate(heads) if mine),
            key=lambda in_port: -crowd[in_port],
        )
        self.work = 0

    def best_moves(self, used: Inputs) -> dict[int, Move]:
        """Return the `Move` of each out-port that is not idle.

        Parameters
        ----------
        used : set of (int, int, int)
            Inputs that out-ports have in any case: (out-port, in-port, age). Other inputs are taken
            only if they fill more out-ports.
        """
        _, best = self._hill_climb(used)
        if len(best) < self.ports:
            heads, found = self._hill_climb(None)
            if len(found) < self.ports:
                found = self._random_walk(heads, found)
            best = max(best, found, key=len)
        return best

    def _hill_climb(self, allowed: Inputs | None) -> tuple[dict[int, Head], dict[int, Move]]:
        """Change one head at a time as long as that fills more out-ports.

        Parameters
        ----------
        allowed : set of (int, int, int) or None
            Inputs that may be used; None for any.

        Returns
        -------
        heads : dict
            The head of each in-port.
        found : dict
            The move of each out-port that is not idle.
        """
        heads = {in_port: self.heads[in_port][0] for in_port in self.order}
        found, better = self._match_ports(heads, allowed), True
        while better and len(found) < self.ports:
            better = False
            for in_port in self.rng.sample(self.order, len(self.order)):
                for head in self.heads[in_port]:
                    new = self._match_ports(heads | {in_port: head}, allowed)
                    if len(new) > len(found):
                        found, heads[in_port], better = new, head, True
        return heads, found

    def _random_walk(self, heads: dict[int, Head], found: dict[int, Move]) -> dict[int, Move]:
        """Change heads at random to ones that could fill an idle out-port; return the most moves.

        A change that fills fewer out-ports is undone.
        """
        best = found
        for _ in range(TRIES * self.ports):
            options = [
                head
                for in_port in self.order
                for head in self.heads[in_port]
                if head is not heads[in_port]
                and any(out_port not in found for out_port, _ in head.onward)
            ]
            if not options or len(best) == self.ports:
                break
            head = self.rng.choice(options)
            new = self._match_ports(heads | {head.source: head}, None)
            if len(new) >= len(found):
                found, heads[head.source] = new, head
                best = max(best, found, key=len)
        return best

    def _match_ports(self, heads: dict[int, Head], allowed: Inputs | None) -> dict[int, Move]:
        """Return the moves that fill the most out-ports with given heads."""
        self.work += 1
        options: list[list[Move]] = [[] for _ in range(self.ports)]
        for in_port in self.order:
            for out_port, move in heads[in_port].onward:
                if allowed is None or (out_port, move.source, move.age) in allowed:
                    options[out_port].append(move)
        for mine in options:
            if self.mixed:
                self.rng.shuffle(mine)
            if (ways := self.ways) is not None:
                mine.sort(key=lambda move: ways[move.word])
        # Of several ways to make a delivery, the first is taken.
        ways_to = [{move.word: move for move in reversed(mine)} for mine in options]
        found = maximum_matching([[move.word for move in mine] for mine in options])
        return {out_port: ways_to[out_port][word] for out_port, word in found.items()}
