"""All-gather by matching, with a small router: one block an in-port and step is sent on.

Of the blocks that came by the same in-port at most one is sent on in a step, the *head* of the
in-port, by as many out-ports as it has somewhere to go; of the node's own blocks likewise. On three
and more axes, blocks that take few turns only are tried first.
"""

from functools import partial
from heapq import heappop, heappush

import numpy as np

from ....topology import CayleyGraph
from .choice import Head, HeadChoice
from .small_router import (
    MEMORY_AGE,
    NOISES,
    Goal,
    Move,
    Patience,
    Row,
    SmallRouter,
    all_turns,
    few_turns,
    smallest,
)

__all__ = ["few_heads", "nearness"]

#: How much work a search may be, in matchings times ports, if blocks may not rest, and to find a
#: better schedule than the first; and how much more for each delivery.
BUDGET, HASTE, MORE, SHARE = 50_000, 15_000, 6_000, 20

#: Work to replay a delivery, and to look at one link, in the same unit: its inverse.
REPLAY, LINK = 4, 25

#: How many heads of an in-port a step looks at.
HEADS = 6

#: In how many steps, for a noise of 1, in-ports where most blocks wait are not preferred.
MIXED = 0.25

#: For how many times the latency, in steps before the end, deliveries that can be made in few ways
#: are preferred. The last ones have no heads after them: with latency 1 that hardly matters.
RARE = 16


def few_heads(
    topology: CayleyGraph, chunks: int, latency: int, steps: int, seed: int = 0
) -> list[list[int]] | None:
    """Deliver every chunk of node 0 to every node, with one head an in-port and step.

    Parameters
    ----------
    steps : int
        How many steps it may take.

    Returns
    -------
    list of list of int, or None
        For each step the delivery of each port, node ``* chunks`` + chunk, or -1; None if no
        schedule was found.
    """
    goal = Goal(topology, latency, steps, seed)
    # Of a latency for which all words come from memories there is one kind of search only.
    budget = BUDGET * (2 if latency >= MEMORY_AGE else 1) + SHARE * topology.nodes * chunks
    haste = HASTE if chunks == 1 and _may_hurry(topology, latency, steps) else 0
    anywhere = all_turns(topology)
    # One block cannot use parallel links at once.
    parallel = len(set(topology.generators.tolist())) < topology.ports
    least, most = min(chunks, 1 + parallel), min(chunks, topology.ports)
    choices = [(anywhere, own) for own in sorted({least, most})]
    # On two axes few turns leave some ports no work, on sides of 2 straight on is back.
    few = few_turns(topology)
    if few and topology.ports > 4 and not parallel:
        choices.insert(0, (few, least))
    searches = (partial(_Heads, goal, chunks, turns, own) for turns, own in choices)
    return smallest(searches, latency, budget, haste, MORE)


def _may_hurry(topology: CayleyGraph, latency: int, steps: int) -> bool:
    """Whether there can be time enough if no block rests.

    If the network is bipartite, offsets at an odd distance are then reached in the first, third, ..
    step of latency 1, others in the second, fourth, ..: one kind may have too few steps.
    """
    odd = topology.distances % 2
    if latency > 1 or not (odd[topology.neighbours] != odd[:, None]).all():
        return True
    count, ports = int(odd.sum()), topology.ports
    even = topology.nodes - 1 - count
    return count <= ports * -(-steps // 2) and even <= ports * (steps // 2)


class _Heads(SmallRouter):
    """The steps so far, and what each in-port could send on.

    Words are deliveries. The node's own blocks have one head, as if they came by one more in-port,
    or some heads, each for a share of the chunks.

    Parameters
    ----------
    turns : list of list of int
        By which out-ports may leave what came by each in-port.
    own : int
        How many heads the node's own blocks have.
    """

    def __init__(
        self, goal: Goal, chunks: int, turns: list[list[int]], own: int, patience: Patience
    ) -> None:
        super().__init__(goal, patience)
        topology, latency, steps, _ = goal
        self.chunks = chunks
        self.turns = [*turns, *[list(range(self.ports))] * own]
        self.near = nearness(topology).tolist()
        self.total = (topology.nodes - 1) * chunks
        # Whether a block may come too late even if no port is idle.
        self.tight = steps <= (topology.diameter + 1) * latency
        age = MEMORY_AGE if patience == Patience.PATIENT else min(latency, MEMORY_AGE)
        self.preferred = {
            (out_port, in_port, age) for in_port, outs in enumerate(turns) for out_port in outs
        }
        self.replay(NOISES[0])

    @property
    def complete(self) -> bool:
        return not self.left

    def replay(self, noise: float) -> None:
        self.work += self.total // REPLAY
        self.noise, self.left, self.used = noise, self.total, set(self.preferred)
        self.done = bytearray(len(self.near) * self.chunks)
        self.done[: self.chunks] = b"\1" * self.chunks
        self.came = dict.fromkeys(range(self.chunks), -MEMORY_AGE)
        self.waiting: list[list[tuple[float, int]]] = [[] for _ in self.turns]
        for chunk in range(self.chunks):
            self._wait(self.ports + chunk % (len(self.turns) - self.ports), chunk)
        for step, row in enumerate(self.rows):
            self._note(step, row)
        for step in range(len(self.rows) - self.latency):
            self._ready(step)

    def advance(self) -> bool:
        self._ready(len(self.rows) - self.latency)
        heads = [self._heads(in_port) for in_port in range(len(self.turns))]
        crowd = [len(waiting) + 2 * self.noise * self.rng.random() for waiting in self.waiting]
        mixed = self.rng.random() < self.noise * MIXED
        rare = self.latency > 1 and self.left <= RARE * self.ports * self.latency
        choice = HeadChoice(heads, crowd, self.ports, self.rng, mixed=mixed, rare=rare)
        chosen = choice.best(self.used)
        self.work += choice.work * self.ports
        row = [chosen.get(out_port) for out_port in range(self.ports)]
        self._note(len(self.rows), row)
        self.rows.append(row)
        return self._in_time()

    def _note(self, step: int, row: Row) -> None:
        """Note what a step delivers, and which inputs it takes."""
        for out_port, move in enumerate(row):
            if move:
                self.done[move.word] = 1
                self.came[move.word] = step
                self.used.add((out_port, move.source, move.age))
                self.left -= 1

    def _ready(self, step: int) -> None:
        """Let what arrived in a step be sent on from now on."""
        for out_port, move in enumerate(self.rows[step] if step >= 0 else ()):
            if move:
                self._wait(self.opposite[out_port], move.word)

    def _wait(self, in_port: int, delivery: int) -> None:
        """Let a block wait, those near the origin first."""
        key = self.near[delivery // self.chunks] + self.noise * self.rng.random()
        heappush(self.waiting[in_port], (key, delivery))

    def _heads(self, in_port: int) -> list[Head]:
        """What could be the head of an in-port, best first."""
        own = in_port >= self.ports
        waiting = self._nearest(in_port) if own or self.patience != Patience.HASTY else {}
        recent = {} if own else self._recent(in_port)
        found = waiting | recent if self.patience == Patience.PATIENT else recent | waiting
        return [Head(in_port, onward) for onward in found.values()]

    def _nearest(self, in_port: int) -> dict[int, list[tuple[int, Move]]]:
        """What each of the nearest to the origin that wait could deliver."""
        waiting, taken = self.waiting[in_port], []
        found: dict[int, list[tuple[int, Move]]] = {}
        while waiting and len(found) < HEADS:
            item = heappop(waiting)
            if onward := self._onward(item[1], in_port):
                found[item[1]] = onward
                taken.append(item)
        for item in taken:
            heappush(waiting, item)
        return found

    def _recent(self, in_port: int) -> dict[int, list[tuple[int, Move]]]:
        """What each that came so late that it goes past the memory could deliver."""
        found: dict[int, list[tuple[int, Move]]] = {}
        oldest = self.latency if self.patience == Patience.HASTY else MEMORY_AGE - 1
        for age in range(self.latency, min(oldest, len(self.rows)) + 1):
            move = self.rows[-age][self.opposite[in_port]]
            if move and (onward := self._onward(move.word, in_port)):
                found[move.word] = onward
        return found

    def _onward(self, delivery: int, in_port: int) -> list[tuple[int, Move]]:
        """What a head could deliver, as (out-port, move)."""
        node, chunk = divmod(delivery, self.chunks)
        around, chunks, done = self.neighbours[node], self.chunks, self.done
        age = min(len(self.rows) - self.came[delivery], MEMORY_AGE)
        return [
            (out_port, Move(there, in_port, age))
            for out_port in self.turns[in_port]
            if not done[there := around[out_port] * chunks + chunk]
        ]

    def _in_time(self) -> bool:
        """Whether the steps that are left could be enough."""
        ahead = self.steps - len(self.rows)
        if self.left > self.ports * ahead:
            return False
        if not self.tight:
            return True
        soonest = self._soonest(ahead)
        late = [0]
        for count in reversed(soonest):
            late.append(late[-1] + count)
        fits = all(count <= self.ports * steps for steps, count in enumerate(late))
        return fits and late[-1] == self.left

    def _soonest(self, ahead: int) -> list[int]:
        """How much could be delivered first in each step that is left, were ports no limit."""
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


def nearness(topology: CayleyGraph) -> np.ndarray:
    """A number for each node, the less the sooner it should be reached.

    Near nodes come first, and of those at one distance the ones with most neighbours farther away.

    Returns
    -------
    ndarray of float, shape (nodes,)
        The distance from node 0, less a part of a hop.
    """
    distance = topology.distances
    farther = (distance[topology.neighbours] > distance[:, None]).sum(axis=1)
    return np.asarray(distance - farther / (topology.ports + 1))
