"""All-gathers on any network, step by step: every arc brings its head a block that it lacks.

In each step every node is brought as many different blocks as it has arcs, out of those that the
nodes behind these had before the step: a matching of arcs and blocks. Rare blocks go first. Where a
set of several nodes is as tight as the bound (`tight_sets`), an arc into it brings only what none
of its nodes has. It is tried again with other random numbers until the bound is met, or some times.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.cuts import tight_sets, worst_cut
from ...collective import Collective
from ...schedule import Listed, Transfers

if TYPE_CHECKING:
    from ...topology import BoolArray, IntArray, Topology

__all__ = ["allgather_rounds", "chunks_for"]

#: How often to try, and for how many blocks at nodes in all steps.
TRIES, WORK = 12, 60_000_000

#: Message times that are as good as the least, and the most chunks to come that near.
ALIKE, MOST_CHUNKS = 1.03, 12


def chunks_for(topology: Topology, collective: Collective) -> int:
    """The fewest chunks with which whole steps come near the bound in message times.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> [chunks_for(parse_topology(name), parse_collective("allgather"))
    ...  for name in ("8x8!0:+0", "4x4!10", "mesh:4x6")]
    [1, 3, 2]
    """
    cut = worst_cut(topology, collective)
    if cut is None:
        return 1
    return next(
        (k for k in range(1, MOST_CHUNKS) if ceil(cut.time * k) <= ALIKE * cut.time * k),
        MOST_CHUNKS,
    )


def allgather_rounds(topology: Topology, chunks: int, seed: int = 0) -> tuple[Transfers, ...]:
    """The steps of an all-gather, each block over each arc into every node once.

    Examples
    --------
    >>> from torusfabric.topology import parse_topology
    >>> len(allgather_rounds(parse_topology("8x8!0:+0"), 1))
    21
    """
    cut = worst_cut(topology, Collective("allgather"))
    if cut is None:
        return ()
    goal = max(ceil(cut.time * chunks), topology.diameter)
    sets = tight_sets(topology, cut.time)
    best: list[Transfers] | None = None
    cells = topology.nodes**2 * chunks * goal
    for trial in range(1 + min(TRIES, WORK // cells)):
        random = np.random.default_rng([seed, trial])
        most = None if best is None else len(best) - 1
        found = _Gathering(topology, chunks, sets, random).steps(most)
        if found is not None:
            best = found
        if best is not None and len(best) <= goal:
            break
    assert best is not None
    return tuple(best)


class _Gathering:
    """What all nodes hold while an all-gather goes on."""

    def __init__(
        self,
        topology: Topology,
        chunks: int,
        sets: Sequence[BoolArray],
        random: np.random.Generator,
    ) -> None:
        nodes = topology.nodes
        self.random = random
        #: The arcs into each node, in a row; -1 behind the last.
        tail, port = np.nonzero(topology.linked)
        head = topology.neighbours[tail, port]
        order = np.argsort(head, kind="stable")
        self.tail, self.port, self.head = tail[order], port[order], head[order].astype(np.int64)
        degree = np.bincount(self.head, minlength=nodes)
        self.into = np.full((nodes, degree.max()), -1)
        rank = np.arange(len(order)) - np.repeat(np.cumsum(degree) - degree, degree)
        self.into[self.head, rank] = np.arange(len(order))
        self.held = np.repeat(np.eye(nodes, dtype=bool), chunks, axis=1)
        self.sets = sets
        crossing = [~inside[self.tail] & inside[self.head] for inside in sets]
        #: Of the arcs into tight sets, those sets.
        self.narrow: dict[int, list[BoolArray]] = {}
        for inside, arcs in zip(sets, crossing, strict=True):
            for arc in np.flatnonzero(arcs).tolist():
                self.narrow.setdefault(arc, []).append(inside)

    def steps(self, most: int | None) -> list[Transfers] | None:
        """All steps, or None as soon as they are too many."""
        found: list[Transfers] = []
        for number in count(1):
            if self.held.all():
                return found
            if most is not None and number > most:
                return None
            found.append(self._step())
        return None

    def _step(self) -> Transfers:
        """Bring every node what it can get."""
        before, held = self.held, self.held.copy()
        rarity = before.sum(axis=0) + self.random.random(before.shape[1])
        brought = np.full(len(self.tail), -1)
        for arc in self.random.permutation(list(self.narrow)).tolist():
            beyond = np.any([held[inside].any(axis=0) for inside in self.narrow[arc]], axis=0)
            able = before[self.tail[arc]] & ~beyond
            if able.any():
                block = int(np.where(able, rarity, np.inf).argmin())
                brought[arc], held[self.head[arc], block] = block, True
        self._match(before, held, rarity, brought)
        self.held = held
        arcs = np.flatnonzero(brought >= 0)
        hops = self.port[arcs, None].astype(np.int8)
        return Transfers(self.tail[arcs], hops, Listed.single(brought[arcs]))

    def _match(
        self, before: BoolArray, held: BoolArray, rarity: np.ndarray, brought: IntArray
    ) -> None:
        """Match arcs and blocks at every node: those with few to choose from first."""
        lacking = ~held
        free = np.ones(len(self.tail) + 1, bool)
        free[[*self.narrow, len(self.tail)]] = False
        choice = (before[self.tail] & lacking[self.head]).sum(axis=1)
        key = np.append(np.where(free[:-1], choice, 2 * before.size), 2 * before.size)
        order = np.take_along_axis(self.into, np.argsort(key[self.into], axis=1), axis=1)
        for column in order.T:
            arc = column[(column >= 0) & free[column]]
            here = self.head[arc]
            able = before[self.tail[arc]] & ~held[here]
            score = np.where(able, rarity + self.random.random(before.shape[1]), np.inf)
            block = score.argmin(axis=1)
            got = able[np.arange(len(arc)), block]
            brought[arc[got]] = block[got]
            held[here[got], block[got]] = True
        for arc in np.flatnonzero((brought < 0) & free[:-1] & (choice > 0)).tolist():
            self._augment(before, held, lacking, brought, arc)

    def _augment(
        self,
        before: BoolArray,
        held: BoolArray,
        lacking: BoolArray,
        brought: IntArray,
        arc: int,
    ) -> None:
        """Let arcs into a node change blocks so that an idle one brings one, too."""
        node = int(self.head[arc])
        mine = [int(a) for a in self.into[node] if a >= 0 and a not in self.narrow]
        owner = {int(brought[a]): a for a in mine if brought[a] >= 0}
        came: dict[int, int] = {}
        queue, seen = [arc], {arc}
        for now in queue:
            able = np.flatnonzero(before[self.tail[now]] & lacking[node])
            for block in able.tolist():
                if block in came or (held[node, block] and block not in owner):
                    continue
                came[block] = now
                if block in owner:
                    if owner[block] not in seen:
                        seen.add(owner[block])
                        queue.append(owner[block])
                    continue
                held[node, block] = True
                while True:
                    giver = came[block]
                    block, brought[giver] = int(brought[giver]), block
                    if giver == arc:
                        return
