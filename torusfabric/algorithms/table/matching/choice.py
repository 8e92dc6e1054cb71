"""One step of an all-gather: the block that each in-port sends on, and its out-ports.

The plan is for the blocks of node 0, and all nodes do the same after a translation. A *delivery* is
the first arrival of such a block at a node. In each step, each in-port has one *head*: the only
block that came by this in-port and is sent on in the step. Each out-port either is idle or sends
one of the heads to the neighbour at its end, which is a delivery. No two out-ports make the same
delivery in a step. A matching finds the most deliveries for given heads. Heads are changed one at a
time, first to fill more out-ports, then at random.
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
    """A block that an in-port may send on in a step, with the moves that are possible then.

    Parameters
    ----------
    source : int
        The in-port by which the block came; numbers after the last in-port stand for the memory of
        the node's own message.
    onward : list of (int, Move)
        The possible moves, each as an out-port and a `Move`.
    """

    source: int
    onward: list[tuple[int, Move]]


def _fewest_ways(ways: Counter[int], head: Head) -> int:
    """Return a number by which heads are sorted: heads with a rare delivery come first.

    A head is a block that an in-port may send on. Each of its possible moves makes a delivery, and
    ``ways[word]`` is the number of moves, of all heads, that make delivery `word`. The result is
    the least of these numbers over the moves of the head.
    """
    return min(ways[move.word] for _, move in head.onward)


class HeadChoice:
    """The choice, in one step, of the block (head) that each in-port sends on.

    A head may leave by several out-ports. It is chosen so that few out-ports are idle.

    Parameters
    ----------
    heads : list of list of Head
        The candidates for the head of each in-port, best first.
    crowd : list of float
        The number of blocks that wait at each in-port; where an out-port could take blocks of
        several in-ports, it prefers the in-port with the most.
    mixed : bool
        True to prefer in-ports in a random order, in place of `crowd`.
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
        """Choose the head of each in-port; return the `Move` of each out-port that is not idle.

        Parameters
        ----------
        used : set of (int, int, int)
            Inputs of out-ports that earlier steps use already: (out-port, in-port, age), see
            `Move`. Other inputs are used only if more out-ports then have a delivery.
        """
        _, best = self._hill_climb(used)
        if len(best) < self.ports:
            heads, found = self._hill_climb(None)
            if len(found) < self.ports:
                found = self._random_walk(heads, found)
            best = max(best, found, key=len)
        return best

    def _hill_climb(self, allowed: Inputs | None) -> tuple[dict[int, Head], dict[int, Move]]:
        """Change the head of one in-port at a time, as long as fewer out-ports are idle afterwards.

        The head of an in-port is the block that it sends on in this step.

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
        """Change the heads of in-ports at random; return the moves with the fewest idle out-ports.

        The head of an in-port is the block that it sends on in this step. `heads` and `found` are
        as `_hill_climb` returns them. A new head must have a move by an idle out-port. A change
        after which more out-ports are idle is undone.
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
        """Return the moves that leave the fewest out-ports idle, for given heads of in-ports.

        The head of an in-port is the block that it sends on in this step. `allowed` has the inputs
        (out-port, in-port, age) that may be used; None for any. The result maps out-ports to moves.
        """
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
