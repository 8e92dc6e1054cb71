"""Plans on networks with slow links, which carry a message only every few steps.

An algorithm for equal links plans on the network of `at_equal_rates`, in which a link is replaced
by parallel links in proportion to its rate. Several copies of this plan follow one another, each
with chunks of its own. A *hop* is the move of one block, or one sum, over one arc. The hops keep
their arcs and their order, and `_HopList.schedule` gives them new steps: a step is a cycle, an arc
takes hops as far apart as its spacing, and data leave a node once they are in its memory.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...analysis.volume import least_time
from ...collective import Blocks, Collective
from ...schedule import Grouped, Listed, Rounds, Schedule, Transfers
from ...schedule.transfers import NOTHING
from ...topology import IntArray, Topology, at_equal_rates
from ..algorithm import Options

__all__ = ["plan_with_slow_links"]

#: The steps relative to the bound with which no more copies are tried; the most chunks and hops of
#: a plan whose chunks are left open; and the numbers of copies.
NEAR_FACTOR, MOST_CHUNKS, MOST_HOPS = Fraction(105, 100), 1024, 100_000
COPIES = tuple(1 << k for k in range(10))

#: The chunks of a plan, of which copies are made, for an exchange or halo.
LOCAL_CHUNKS = 6

#: A function that plans a collective on a network with equal links.
PlanEqual = Callable[[Topology, Collective, Options], Schedule]


def plan_with_slow_links(
    plan: PlanEqual, topology: Topology, collective: Collective, options: Options
) -> Rounds:
    """Plan a collective on a network with slow links.

    Parameters
    ----------
    plan : function of (Topology, Collective, Options) -> Schedule
        A planner for networks with equal links. Its schedules have one block a message, and paths
        of one hop.
    options : Options
        ``chunks``, by default few that come near the bound, and ``seed``.
    """
    least, best = least_time(topology, collective), None
    for equal, copies in _equal_plans(plan, topology, collective, options):
        chunks = equal.chunks * copies
        hops = _HopList(equal, topology, copies)
        if best is not None and len(hops.arc) > MOST_HOPS:
            break
        found = hops.schedule()
        if best is None or Fraction(found.steps, chunks) < Fraction(best.steps, best.chunks):
            best = found
        if found.steps <= NEAR_FACTOR * least * chunks:
            break
    assert best is not None
    return best


def _equal_plans(
    plan: PlanEqual, topology: Topology, collective: Collective, options: Options
) -> Iterator[tuple[Schedule, int]]:
    """Yield plans on the network with equal links, each with a number of copies of it."""
    network, chunks = at_equal_rates(topology), options.chunks
    alone = bool(collective.lengths)  # chunks of unequal messages are of one plan
    # Few chunks are as good as many where messages go to neighbours, and are planned soon.
    open_options = replace(options, chunks=LOCAL_CHUNKS if collective.local else None)
    if chunks is None:
        equal = plan_once(plan, network, collective, open_options)
        for copies in COPIES[: 1 if alone else len(COPIES)]:
            if copies == 1 or equal.chunks * copies <= MOST_CHUNKS:
                yield equal, copies
        return
    if collective.is_irregular:
        yield plan_once(plan, network, collective, options), 1
        return
    natural = plan_once(plan, network, collective, open_options).chunks
    each = max(k for k in range(1, min(natural, chunks) + 1) if chunks % k == 0)
    if collective.kind in ("broadcast", "reduce"):
        options = replace(options, chunks=None, trees=each)
    elif collective.kind == "allreduce":
        options = replace(options, trees=each, chunks=each)
    else:
        options = replace(options, chunks=each)
    yield plan_once(plan, network, collective, options), chunks // each


@lru_cache(maxsize=16)
def plan_once(
    plan: PlanEqual, network: Topology, collective: Collective, options: Options
) -> Schedule:
    """Return ``plan(network, collective, options)``; the last schedules are kept.

    Why: the choice of an algorithm asks for several numbers of chunks.
    """
    return plan(network, collective, options)


class _HopList:
    """The hops of some copies of a plan, as lists with an entry for each hop.

    Parameters
    ----------
    equal : Schedule
        The plan on the network of `at_equal_rates`, with M chunks.
    topology : Topology
        The network with slow links.
    copies : int
        Number of copies of the plan; copy j has chunks j M to (j + 1) M - 1 of each message.

    Attributes
    ----------
    arc : list of int
        The arc of each hop, as node * ports + port.
    data : list of int
        The number of the block; in a reduction the number of the sum.
    after : list of (list of int)
        The hops that must wait until a hop has ended.
    """

    def __init__(self, equal: Schedule, topology: Topology, copies: int) -> None:
        self.topology, self.equal, self.copies = topology, equal, copies
        self.arc: list[int] = []
        self.data: list[int] = []
        self.after: list[list[int]] = []
        self._waits: list[int] = []
        self._planned: list[int] = []
        self._sums = equal.collective.reducing
        for number in range(copies):
            self._add_copy(number)

    @property
    def blocks(self) -> Blocks:
        """The blocks of the new schedule."""
        return self.equal.collective.blocks(self.topology, self.equal.chunks * self.copies)

    def _add_copy(self, number: int) -> None:
        """Add the hops of copy `number`."""
        equal, network = self.equal, at_equal_rates(self.topology)
        chunks, copies, port_of = equal.chunks, self.copies, network.copies.port
        arrivals: dict[tuple[int, int], list[int]] = defaultdict(list)
        for step, transfers in enumerate(equal.rounds()):
            if not len(transfers):
                continue
            first, data = len(self.arc), self._moved_data(transfers)
            tail, head = transfers.source, transfers.walk(network)[:, -1]
            port = port_of[transfers.hops[:, 0]]
            part, chunk = np.divmod(data, chunks)
            self.arc += (tail * self.topology.ports + port).tolist()
            self.data += (part * (chunks * copies) + number * chunks + chunk).tolist()
            self._planned += [step + number * equal.steps] * len(data)
            for hop, key in enumerate(zip(tail.tolist(), data.tolist(), strict=True), first):
                # A block has come once it arrives; a sum when all its parts have.
                before = arrivals.get(key, [])[: None if self._sums else 1]
                self.after.append([])
                self._waits.append(len(before))
                for earlier in before:
                    self.after[earlier].append(hop)
            for hop, key in enumerate(zip(head.tolist(), data.tolist(), strict=True), first):
                arrivals[key].append(hop)

    def _moved_data(self, transfers: Transfers) -> IntArray:
        """Return the number of the block, or of the sum, that each transfer of a round carries."""
        payload = transfers.payload
        if isinstance(payload, Grouped):
            return payload.wanted
        assert isinstance(payload, Listed), "planners list blocks or sums"
        first: IntArray = payload.ids[payload.indptr[:-1]]
        return first % self.equal.blocks.blocks_per_origin if self._sums else first

    def schedule(self) -> Rounds:
        """Return the schedule with the fewest steps of two orders in which hops are urgent.

        The orders are that of the plan, and by the cycles of the longest chain of hops that follow.
        """
        chain = self._chain_cycles()
        orders = [
            sorted(range(len(self.arc)), key=lambda hop: (self._planned[hop], -chain[hop])),
            sorted(range(len(self.arc)), key=lambda hop: (-chain[hop], self._planned[hop])),
        ]
        return self._make_rounds(min(map(self._find_steps, orders), key=max))

    def _arc_cycles(self) -> tuple[list[int], list[int]]:
        """Return, for each arc, the spacing, and the cycles until data can be sent on."""
        arcs = WeightedArcs(self.topology)
        ready = np.zeros(self.topology.linked.shape, int)
        ready[arcs.tail, arcs.port] = arcs.forwarding_steps
        return self.topology.spacing_of_arc.ravel().tolist(), ready.ravel().tolist()

    def _chain_cycles(self) -> list[int]:
        """Return the cycles of the longest chain of hops that begins with each hop."""
        _, ready = self._arc_cycles()
        chain = [0] * len(self.arc)
        for hop in reversed(range(len(self.arc))):
            following = max((chain[other] for other in self.after[hop]), default=0)
            chain[hop] = ready[self.arc[hop]] + following
        return chain

    def _find_steps(self, order: list[int]) -> list[int]:
        """Return the step of each hop: each arc takes the hop that is ready and first in `order`.

        The list ends with the last step in which an arc is busy, or a sum is not complete.
        """
        spacing, ready = self._arc_cycles()
        rank, waits = np.argsort(order).tolist(), [*self._waits]
        earliest, step = [0] * len(rank), [0] * len(rank)
        queues: dict[int, list[int]] = defaultdict(list)
        free: dict[int, int] = defaultdict(int)
        # Events: a hop becomes ready (its number), or a busy arc is free again (-1 - arc).
        events = [(0, hop) for hop, count in enumerate(waits) if not count]
        last = 0
        while events:
            now, looked = events[0][0], set[int]()
            while events and events[0][0] == now:
                _, event = heapq.heappop(events)
                if event >= 0:
                    heapq.heappush(queues[self.arc[event]], rank[event])
                looked.add(self.arc[event] if event >= 0 else -1 - event)
            for arc in looked:
                if free[arc] > now or not queues[arc]:
                    continue
                hop = order[heapq.heappop(queues[arc])]
                step[hop], free[arc] = now, now + spacing[arc]
                # Nodes combine the words of complete sums once they are in memory.
                last = max(last, now + (ready if self._sums else spacing)[arc] - 1)
                heapq.heappush(events, (free[arc], -1 - arc))
                for other in self.after[hop]:
                    waits[other] -= 1
                    earliest[other] = max(earliest[other], now + ready[arc])
                    if not waits[other]:
                        heapq.heappush(events, (earliest[other], other))
        return [*step, last]

    def _make_rounds(self, steps: list[int]) -> Rounds:
        """Return the schedule in which hops have these steps; the last entry is the last step."""
        *when, last = steps
        step, (tail, port) = np.array(when), np.divmod(np.array(self.arc), self.topology.ports)
        data, blocks = np.array(self.data), self.blocks
        group = np.arange(blocks.n_blocks) % blocks.blocks_per_origin
        order = np.argsort(step, kind="stable")
        ends = np.searchsorted(step[order], np.arange(last + 2))
        transfers = []
        for first, end in pairwise(ends.tolist()):
            hops = order[first:end]
            payload = Grouped(group, data[hops]) if self._sums else Listed.single(data[hops])
            transfers.append(
                Transfers.hop(tail[hops], port[hops], payload if len(hops) else NOTHING)
            )
        head = self.equal.head | {"topology": self.topology, "chunks": blocks.chunks}
        return Rounds(**head | {"ports": self.topology.ports}, transfers=tuple(transfers))
