"""All-gather by matching, with a small router: one block leaves for each in-port and step.

Of the blocks that came by the same in-port at most one is sent on in a step, by any number of
out-ports: the *head* of the in-port. The node's own blocks have a head in the same way. On three
and more axes, routes with few turns are tried first.
"""

from functools import partial
from heapq import heappop, heappush

import numpy as np

from ....topology import CayleyGraph
from .choice import Head, HeadChoice
from .small_router import (
    MEMORY_AGE,
    NOISES,
    Move,
    Patience,
    Row,
    SearchGoal,
    SmallRouterSearch,
    all_turns,
    limited_turns,
    smallest_schedule,
)

__all__ = ["plan_few_heads", "node_ranks"]

#: The most work of a search, in matchings times ports: in general; if blocks may not wait; and to
#: find a better schedule than the first. The last number is the additional work for each delivery.
BUDGET, HASTY_BUDGET, EXTRA_BUDGET, BUDGET_PER_DELIVERY = 50_000, 15_000, 6_000, 20

#: The inverse of the work to replay a delivery, and to look at one link, in the same unit.
REPLAY, LINK = 4, 25

#: The most candidates for the head of an in-port in a step.
MOST_HEADS = 6

#: The share of steps, at a noise of 1, in which crowded in-ports are not preferred.
MIXED_PROBABILITY = 0.25

#: For this many times the latency, in steps before the end, deliveries with few ways to make them
#: are preferred. The last deliveries have no heads after them; with latency 1 that hardly matters.
RARE = 16


def plan_few_heads(
    topology: CayleyGraph, chunks: int, latency: int, steps: int, seed: int = 0
) -> list[list[int]] | None:
    """Plan an all-gather with small routers: in a step, only one block of each in-port is sent on.

    The block may leave by several out-ports. The plan is for the blocks of node 0; all other nodes
    do the same.

    Parameters
    ----------
    chunks : int
        Number of chunks of a message.
    latency : int
        Steps from the arrival of a block to its earliest departure.
    steps : int
        The most steps of the schedule.
    seed : int
        Seed of the search.

    Returns
    -------
    list of list of int, or None
        For each step and port, the block that is delivered, as node * ``chunks`` + chunk: chunk
        `chunk` of node 0 arrives at node `node`. It is -1 for an idle port. None if no schedule was
        found.
    """
    goal = SearchGoal(topology, latency, steps, seed)
    # If all words come from memories, there is one kind of search only, which may take twice the
    # work.
    budget = (
        BUDGET * (2 if latency >= MEMORY_AGE else 1) + BUDGET_PER_DELIVERY * topology.nodes * chunks
    )
    haste = HASTY_BUDGET if chunks == 1 and _has_time_without_rests(topology, latency, steps) else 0
    anywhere = all_turns(topology)
    # One block cannot use parallel links at once.
    parallel = len(set(topology.generators.tolist())) < topology.ports
    least, most = min(chunks, 1 + parallel), min(chunks, topology.ports)
    choices = [(anywhere, own) for own in sorted({least, most})]
    # On two axes, few turns leave some ports without work. On sides of 2, straight on is back.
    few = limited_turns(topology)
    if few and topology.ports > 4 and not parallel:
        choices.insert(0, (few, least))
    searches = (partial(_HeadSearch, goal, chunks, turns, own) for turns, own in choices)
    return smallest_schedule(searches, latency, budget, haste, EXTRA_BUDGET)


def _has_time_without_rests(topology: CayleyGraph, latency: int, steps: int) -> bool:
    """Return False if an all-gather in which no block waits needs more than `steps` steps.

    On a bipartite network with latency 1, nodes at an odd distance are then reached in the first,
    third, .. step, and others in the second, fourth, .. step. The steps of one parity may be too
    few. The result True says only that there may be enough steps.
    """
    odd = topology.distances % 2
    if latency > 1 or not (odd[topology.neighbours] != odd[:, None]).all():
        return True
    count, ports = int(odd.sum()), topology.ports
    even = topology.nodes - 1 - count
    return count <= ports * -(-steps // 2) and even <= ports * (steps // 2)


class _HeadSearch(SmallRouterSearch):
    """A search for an all-gather in which a step sends on only one block of each in-port, the head.

    The number of a word stands for a delivery: node * chunks + chunk, the arrival of a chunk of
    node 0 at a node. The node's own blocks have one head, as if they came by one more in-port, or
    several heads, each for a share of the chunks.

    Parameters
    ----------
    turns : list of list of int
        For each in-port, the out-ports by which its words may leave.
    own : int
        Number of heads of the node's own blocks.
    """

    def __init__(
        self, goal: SearchGoal, chunks: int, turns: list[list[int]], own: int, patience: Patience
    ) -> None:
        super().__init__(goal, patience)
        topology, latency, steps, _ = goal
        self.chunks = chunks
        self.turns = [*turns, *[list(range(self.ports))] * own]
        self.near = node_ranks(topology).tolist()
        self.total = (topology.nodes - 1) * chunks
        # True if a block may come too late even if no port is idle.
        self.tight = steps <= (topology.diameter + 1) * latency
        age = MEMORY_AGE if patience == Patience.PATIENT else min(latency, MEMORY_AGE)
        self.preferred = {
            (out_port, in_port, age) for in_port, outs in enumerate(turns) for out_port in outs
        }
        self.replay_steps(NOISES[0])

    @property
    def is_complete(self) -> bool:
        return not self.left

    def replay_steps(self, noise: float) -> None:
        self.work += self.total // REPLAY
        self.noise, self.left, self.used = noise, self.total, set(self.preferred)
        self.done = bytearray(len(self.near) * self.chunks)
        self.done[: self.chunks] = b"\1" * self.chunks
        self.came = dict.fromkeys(range(self.chunks), -MEMORY_AGE)
        self.waiting: list[list[tuple[float, int]]] = [[] for _ in self.turns]
        for chunk in range(self.chunks):
            self._add_waiting(self.ports + chunk % (len(self.turns) - self.ports), chunk)
        for step, row in enumerate(self.rows):
            self._note_step(step, row)
        for step in range(len(self.rows) - self.latency):
            self._release_arrivals(step)

    def plan_step(self) -> bool:
        self._release_arrivals(len(self.rows) - self.latency)
        heads = [self._candidate_heads(in_port) for in_port in range(len(self.turns))]
        crowd = [len(waiting) + 2 * self.noise * self.rng.random() for waiting in self.waiting]
        mixed = self.rng.random() < self.noise * MIXED_PROBABILITY
        rare = self.latency > 1 and self.left <= RARE * self.ports * self.latency
        choice = HeadChoice(heads, crowd, self.ports, self.rng, mixed=mixed, rare=rare)
        chosen = choice.best_moves(self.used)
        self.work += choice.work * self.ports
        row = [chosen.get(out_port) for out_port in range(self.ports)]
        self._note_step(len(self.rows), row)
        self.rows.append(row)
        return self._is_in_time()

    def _note_step(self, step: int, row: Row) -> None:
        """Record the moves `row` of step `step`, and the inputs of out-ports that they use.

        A move is a word that an out-port sends, with the in-port by which the word came.
        """
        for out_port, move in enumerate(row):
            if move:
                self.done[move.word] = 1
                self.came[move.word] = step
                self.used.add((out_port, move.source, move.age))
                self.left -= 1

    def _release_arrivals(self, step: int) -> None:
        """Mark the blocks that arrived in step `step` as waiting at their in-ports."""
        for out_port, move in enumerate(self.rows[step] if step >= 0 else ()):
            if move:
                self._add_waiting(self.opposite[out_port], move.word)

    def _add_waiting(self, in_port: int, delivery: int) -> None:
        """Add a block to those that wait at `in_port`, ordered by the distance from node 0.

        `delivery` is node * chunks + chunk for a chunk of node 0 that has arrived at a node.
        In-port numbers after the last one stand for the node's own blocks.
        """
        key = self.near[delivery // self.chunks] + self.noise * self.rng.random()
        heappush(self.waiting[in_port], (key, delivery))

    def _candidate_heads(self, in_port: int) -> list[Head]:
        """Return the blocks of `in_port` that may be sent on in this step, best first.

        In-port numbers after the last one stand for the node's own blocks.
        """
        own = in_port >= self.ports
        waiting = (
            self._waiting_deliveries(in_port) if own or self.patience != Patience.HASTY else {}
        )
        recent = {} if own else self._recent_deliveries(in_port)
        found = waiting | recent if self.patience == Patience.PATIENT else recent | waiting
        return [Head(in_port, onward) for onward in found.values()]

    def _waiting_deliveries(self, in_port: int) -> dict[int, list[tuple[int, Move]]]:
        """Return blocks that wait at `in_port`, at most `MOST_HEADS` and those nearest to node 0.

        The result maps the delivery of a block, node * chunks + chunk, to its possible next moves,
        see `_onward_moves`.
        """
        waiting, taken = self.waiting[in_port], []
        found: dict[int, list[tuple[int, Move]]] = {}
        while waiting and len(found) < MOST_HEADS:
            item = heappop(waiting)
            if onward := self._onward_moves(item[1], in_port):
                found[item[1]] = onward
                taken.append(item)
        for item in taken:
            heappush(waiting, item)
        return found

    def _recent_deliveries(self, in_port: int) -> dict[int, list[tuple[int, Move]]]:
        """Return the blocks that came by `in_port` so recently that they go past the memory.

        The result maps the delivery of a block, node * chunks + chunk, to its possible next moves,
        see `_onward_moves`.
        """
        found: dict[int, list[tuple[int, Move]]] = {}
        oldest = self.latency if self.patience == Patience.HASTY else MEMORY_AGE - 1
        for age in range(self.latency, min(oldest, len(self.rows)) + 1):
            move = self.rows[-age][self.opposite[in_port]]
            if move and (onward := self._onward_moves(move.word, in_port)):
                found[move.word] = onward
        return found

    def _onward_moves(self, delivery: int, in_port: int) -> list[tuple[int, Move]]:
        """Return the moves that a block can make next, as pairs (out-port, move).

        `delivery` says where the block is: node * chunks + chunk. It came by `in_port`. Out-ports
        are left out if the turn is not allowed, or if the next node has the chunk already.
        """
        node, chunk = divmod(delivery, self.chunks)
        around, chunks, done = self.neighbours[node], self.chunks, self.done
        age = min(len(self.rows) - self.came[delivery], MEMORY_AGE)
        return [
            (out_port, Move(there, in_port, age))
            for out_port in self.turns[in_port]
            if not done[there := around[out_port] * chunks + chunk]
        ]

    def _is_in_time(self) -> bool:
        """Return True if the remaining steps may be enough for all remaining deliveries."""
        ahead = self.steps - len(self.rows)
        if self.left > self.ports * ahead:
            return False
        if not self.tight:
            return True
        soonest = self._soonest_counts(ahead)
        late = [0]
        for count in reversed(soonest):
            late.append(late[-1] + count)
        fits = all(count <= self.ports * steps for steps, count in enumerate(late))
        return fits and late[-1] == self.left

    def _soonest_counts(self, ahead: int) -> list[int]:
        """Return an upper limit of the deliveries in each of `ahead` remaining steps, as a list.

        A delivery is the arrival of a chunk of node 0 at a node. Entry k counts the deliveries that
        become possible k steps from now, if every block is sent to all neighbours as soon as it may
        leave. The limit of one block a step for each port is not taken into account.
        """
        self.work += self.total * self.ports // LINK
        leaving: list[list[int]] = [[] for _ in range(ahead)]
        for delivery, step in self.came.items():
            wait = max(step + self.latency - len(self.rows), 0)
            if wait < ahead:
                leaving[wait].append(delivery)
        counts, seen = [], bytearray(self.done)
        for step, sources in enumerate(leaving):
            fresh = []
            for delivery in sources:
                node, chunk = divmod(delivery, self.chunks)
                for neighbour in self.neighbours[node]:
                    there = neighbour * self.chunks + chunk
                    if not seen[there]:
                        seen[there] = 1
                        fresh.append(there)
            if step + self.latency < ahead:
                leaving[step + self.latency].extend(fresh)
            counts.append(len(fresh))
        return counts


def node_ranks(topology: CayleyGraph) -> np.ndarray:
    """Return a rank for each node: the smaller, the sooner it should be reached.

    Near nodes come first. Among nodes at one distance, those with the most neighbours farther away
    come first.

    Returns
    -------
    ndarray of float, shape (nodes,)
        The distance from node 0, less a part of a hop.
    """
    distance = topology.distances
    farther = (distance[topology.neighbours] > distance[:, None]).sum(axis=1)
    return np.asarray(distance - farther / (topology.ports + 1))
