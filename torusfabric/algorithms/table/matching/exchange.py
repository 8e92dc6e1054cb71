"""All-to-all by matching, with a small router: one block leaves for each in-port and step.

Blocks are the jobs of an open shop and ports its machines, see `plan_alltoall`. In addition, of all
blocks that came by the same in-port only one leaves in a step. A step therefore matches out-ports
to in-ports, or to blocks of the node's own. Routes in which blocks finish an axis before they turn,
and which have few turns, are tried first.
"""

from functools import partial
from itertools import islice

import numpy as np

from ....topology import CayleyGraph
from ..bipartite import maximum_matching
from .small_router import (
    MEMORY_AGE,
    NOISES,
    Move,
    Patience,
    Row,
    SearchGoal,
    SmallRouterSearch,
    limited_turns,
    possible_first_axes,
    smallest_schedule,
)

__all__ = ["plan_exchange"]

#: The most work of a search, in moves: in general; if blocks may not wait; and to find a better
#: schedule than the first. The last number is the additional work for each hop.
BUDGET, HASTY_BUDGET, EXTRA_BUDGET, BUDGET_PER_HOP = 12_000, 4_000, 1_000, 3

#: The most hops with which blocks that never wait are tried; with more hops such plans were rarely
#: found in time.
HASTY_HOPS = 200

#: The inverse of the work to replay a move, and to sort a block, in moves.
REPLAY, SORT = 4, 16

#: The inverse of the share of steps that is taken back one by one; if more are taken back, the
#: state is replayed.
UNDO = 4


def plan_exchange(
    topology: CayleyGraph, routes: np.ndarray, latency: int, steps: int, seed: int = 0
) -> list[list[int]] | None:
    """Plan an all-to-all with small routers: in a step, only one block of each in-port is sent on.

    The plan is for the blocks of node 0; all other nodes do the same.

    Parameters
    ----------
    routes : ndarray of int, shape (blocks, ports)
        The number of hops that each block takes on each port, in any order.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    steps : int
        The most steps that the schedule may take.
    seed : int
        Seed of the search.

    Returns
    -------
    list of list of int, or None
        For each step, the index of the block that each port takes, -1 for an idle port; None if no
        schedule was found.
    """
    hops, goal = int(routes.sum()), SearchGoal(topology, latency, steps, seed)
    few = limited_turns(topology)
    choices = (few, None) if few else (None,)
    searches = (partial(_ExchangeSearch, goal, routes, turns) for turns in choices)
    haste = HASTY_BUDGET if hops <= HASTY_HOPS else 0
    return smallest_schedule(searches, latency, BUDGET + BUDGET_PER_HOP * hops, haste, EXTRA_BUDGET)


class _ExchangeSearch(SmallRouterSearch):
    """A search for an all-to-all in which a step sends on only one block of each in-port.

    It has the steps planned so far, and the remaining hops of each block and each port. A node's
    own blocks are in several memories, one for each out-port by which they leave.

    Parameters
    ----------
    turns : list of list of int, or None
        For each in-port, the out-ports by which its blocks may leave once they have no more hops on
        its axis; None if hops may be taken in any order.
    """

    def __init__(
        self,
        goal: SearchGoal,
        routes: np.ndarray,
        turns: list[list[int]] | None,
        patience: Patience,
    ) -> None:
        super().__init__(goal, patience)
        self.turns = turns
        self.hops: list[list[int]] = routes.tolist()
        self.first = {} if turns is None else possible_first_axes(self.ports // 2)
        self.replay_steps(NOISES[0])

    @property
    def is_complete(self) -> bool:
        return not any(self.load)

    def replay_steps(self, noise: float) -> None:
        self.work += len(self.rows) * self.ports // REPLAY + len(self.hops) // SORT
        self.noise = noise
        self.routes = [list(route) for route in self.hops]
        self.length = [sum(route) for route in self.routes]
        self.load = [sum(hops) for hops in zip(*self.routes, strict=True)]
        self.capacity = self.ports * (2 * self.latency - 1) * (1 + noise * self.rng.random())
        self.started = bytearray(len(self.routes))
        self.waiting: list[list[int]] = [[] for _ in range(self.ports)]
        for block in range(len(self.routes)):
            for port in self._allowed_out_ports(block, None):
                self.waiting[port].append(block)
        for port, waiting in enumerate(self.waiting):
            urgency = {block: self._start_urgency(block, port) for block in waiting}
            waiting.sort(key=urgency.__getitem__)
        # For each in-port, the blocks that came by it and still wait, with the step in which they
        # came.
        self.resting: list[dict[int, int]] = [{} for _ in range(self.ports)]
        # For each block, the steps in which it arrived at the nodes that it has left.
        self.came: list[list[int]] = [[] for _ in self.routes]
        self.used: set[tuple[int, int, int]] = set()
        for step, row in enumerate(self.rows):
            self._note_step(step, row)

    def take_back_steps(self, count: int) -> None:
        if count * UNDO > len(self.rows):
            super().take_back_steps(count)
        else:
            self.noise = self.rng.choice(NOISES)
            self.work += count * self.ports
            for _ in range(count):
                self._undo_step(self.rows.pop())

    def _undo_step(self, row: Row) -> None:
        """Take back the last step, whose moves are `row`."""
        moves = [(port, move) for port, move in enumerate(row) if move]
        for port, move in moves:
            self.resting[self.opposite[port]].pop(move.word, None)
            self.routes[move.word][port] += 1
            self.length[move.word] += 1
            self.load[port] += 1
        for _, move in moves:
            if move.source < self.ports:
                self.resting[move.source][move.word] = self.came[move.word].pop()
            else:
                self.started[move.word] = 0
                for port in self._allowed_out_ports(move.word, None):
                    self.waiting[port].append(move.word)

    def _start_urgency(self, block: int, port: int) -> float:
        """Return a number that is larger the sooner a block of the node should leave by a port.

        The main part is the number of hops of the block, because blocks with long paths should
        start first. The hops that the block will make on other axes count again, once or twice if
        the latency is 2 or more. Why: the block then waits at each turn, so blocks that turn should
        start early, and blocks without a turn remain for the end. A random part makes the searches
        differ.
        """
        length, after = self.length[block], self.length[block] - self.routes[block][port]
        return length + min(self.latency - 1, 2) * after + self.noise * self.rng.random()

    def _allowed_out_ports(self, block: int, in_port: int | None) -> list[int]:
        """Return the out-ports by which a block may leave.

        It came by `in_port`, or is the node's own block if `in_port` is None.
        """
        route = self.routes[block]
        outs = [port for port, hops in enumerate(route) if hops]
        if self.turns is None or not outs:
            return outs
        if in_port is not None and route[self.opposite[in_port]]:
            return [self.opposite[in_port]]
        first = self.first[frozenset(port // 2 for port in outs)]
        allowed = outs if in_port is None else self.turns[in_port]
        return [port for port in outs if port // 2 in first and port in allowed]

    def _note_step(self, step: int, row: Row) -> None:
        """Record the moves `row` of step `step`, and the inputs of out-ports that they use.

        A move is a block that an out-port sends, with the in-port by which the block came.
        """
        for port, move in enumerate(row):
            if move:
                block = move.word
                if move.source < self.ports:
                    self.came[block].append(self.resting[move.source].pop(block))
                self.started[block] = 1
                self.routes[block][port] -= 1
                self.length[block] -= 1
                self.load[port] -= 1
                self.used.add((port, move.source, move.age))
        for port, move in enumerate(row):
            if move and self.length[move.word]:
                self.resting[self.opposite[port]][move.word] = step

    def plan_step(self) -> bool:
        self.work += self.ports
        moves, must = self._possible_moves()
        order = sorted(range(self.ports), key=lambda port: -self.load[port])
        taken = maximum_matching([list(moves[port]) for port in order], must)
        if not must <= set(taken.values()):
            return False
        row: list[Move | None] = [None] * self.ports
        for place, item in taken.items():
            row[order[place]] = moves[order[place]][item]
        ahead = self.steps - len(self.rows)
        if any(not move and load >= ahead for move, load in zip(row, self.load, strict=True)):
            return False
        self._note_step(len(self.rows), row)
        self.rows.append(row)
        return True

    def _possible_moves(self) -> tuple[list[dict[int, Move]], set[int]]:
        """Return the possible moves of each out-port, best first, and the moves that cannot wait.

        The moves of an out-port are a dict from a key to the move. The key is the in-port, or
        ``ports`` + block for a block of the node's own. The second result is the set of the keys of
        moves that cannot wait.
        """
        moves: list[dict[int, Move]] = [{} for _ in range(self.ports)]
        must = set()
        for in_port in self._ordered_in_ports():
            ready = self._ready_blocks(in_port)
            if ready and (self.patience == Patience.HASTY or ready[0][0] <= 0):
                ready = [item for item in ready if item[0] <= 0] or ready
                must.add(in_port)
            for _, age, block in ready:
                for port in self._allowed_out_ports(block, in_port):
                    moves[port].setdefault(in_port, Move(block, in_port, age))
        aboard, ahead = sum(map(len, self.resting)), self.steps - len(self.rows)
        for port, mine in enumerate(moves):
            used = {in_port for in_port, move in mine.items() if (port, *move[1:]) in self.used}
            mine = {
                in_port: mine[in_port]
                for in_port in sorted(mine, key=lambda in_port: in_port not in used)
            }
            wanted = self.load[port] >= ahead or aboard < self.capacity
            for block in self._unstarted_blocks(port):
                late = self._slack_steps(block) <= 0
                if late or wanted:
                    mine[self.ports + block] = Move(block, self.ports, MEMORY_AGE)
                if late:
                    must.add(self.ports + block)
            moves[port] = mine
        return moves, must

    def _ordered_in_ports(self) -> list[int]:
        """Return the in-ports in order of preference: those with the most waiting blocks first."""
        crowd = [len(blocks) + 2 * self.noise * self.rng.random() for blocks in self.resting]
        return sorted(range(self.ports), key=lambda in_port: -crowd[in_port])

    def _ready_blocks(self, in_port: int) -> list[tuple[int, int, int]]:
        """Return the blocks of `in_port` that may leave now, as (slack, age, block), best first.

        The slack is the number of steps for which the block may still wait and arrive in time; the
        age is the number of steps since it came.
        """
        now = len(self.rows)
        ready = [
            (self._slack_steps(block), min(now - came, MEMORY_AGE), block)
            for block, came in self.resting[in_port].items()
            if now - came >= self.latency
        ]
        if self.patience == Patience.BRISK:
            return sorted(ready, key=lambda item: (item[0] > 0, item[1], item[0]))
        return sorted(ready)

    def _slack_steps(self, block: int) -> int:
        """Return the number of steps for which a block may still wait and arrive in time."""
        ahead = self.steps - len(self.rows)
        return ahead - 1 - (self.length[block] - 1) * self.latency

    def _unstarted_blocks(self, port: int) -> list[int]:
        """Return the node's own blocks that may leave by a port, those with the most hops first."""
        waiting = self.waiting[port]
        while waiting and self.started[waiting[-1]]:
            waiting.pop()
        fresh = (block for block in reversed(waiting) if not self.started[block])
        return list(islice(fresh, self.ports))
