"""All-to-alls on networks with faults: the schedule of the intact network, repaired.

The intact network looks the same from every node, so an open shop plans it in as few steps as its
busiest port allows (`matching`). A broken link interrupts only some messages. All other messages
keep their steps. Each interrupted message takes a new path over slots that are free: a *slot* is a
step of an arc. Slots are free where the arc was idle, where an interrupted message left, and in
additional steps, which are spread over the schedule.

Messages choose their paths one after another, by fewest hops. Messages without a path are moved to
the front, and all choose again (Joslin and Clements, "Squeaky wheel optimization", 1999). If that
does not help, there are more additional steps.

Why: on 1,024 nodes there are 7 million hops, of which a broken link interrupts one in 400.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...analysis.congestion import WeightedArcs
from ...collective import Blocks
from ...schedule import Transfers
from ...topology import BoolArray, CayleyGraph, Faulty, IntArray, Topology
from ..table.matching.alltoall import plan_alltoall

__all__ = ["repair_alltoall"]

#: The largest share of messages that are interrupted. More faults are planned from the start.
MOST_INTERRUPTED = 0.25

#: Additional steps that are tried, one number after another, relative to the steps of the schedule.
ADDITIONAL_STEPS = (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.03, 0.04, 0.05)

#: The share of messages without a path above which an order of messages is given up, the number of
#: messages before that is decided, and the share of them that another order may leave.
HOPELESS, FIRST_MESSAGES, PROGRESS = 0.1, 100, 0.75

#: The most hops of a path beyond the distance in the intact network.
LONGEST_DETOUR = 8


class Hops(NamedTuple):
    """Hops of messages: for each hop the step, the arc in the intact network, and the block.

    An arc is numbered node * ports + port; a block as in the network with faults.
    """

    step: IntArray
    arc: IntArray
    block: IntArray


class Interrupted(NamedTuple):
    """The messages that need a new path: their ends in the intact network, distances and blocks."""

    source: IntArray
    target: IntArray
    distance: IntArray
    block: IntArray


def repair_alltoall(
    topology: Topology, blocks: Blocks, seed: int = 0
) -> tuple[Transfers, ...] | None:
    """Return the transfers of each step of an all-to-all, or None if repair fails.

    Repair applies to networks with a few faults that look the same from every node without them,
    and whose links all have the same latency.

    Parameters
    ----------
    topology : Topology
        The network with faults.
    blocks : Blocks
        The blocks of an all-to-all among all nodes.
    seed : int
        Seed of the search.

    Examples
    --------
    On the intact network, an all-to-all takes 184 steps:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import parse_topology
    >>> topology = parse_topology("4x8x8~1,2:0!0:+0")
    >>> steps = repair_alltoall(topology, parse_collective("alltoall").blocks(topology, 1))
    >>> steps is not None and 184 <= len(steps) <= 193
    True
    """
    if not isinstance(topology, Faulty) or not isinstance(topology.whole, CayleyGraph):
        return None
    if max(WeightedArcs(topology).forwarding_steps) > 1:
        return None
    whole, ports = topology.whole, topology.ports
    linked = np.zeros((whole.nodes, ports), bool)
    linked[topology.kept] = topology.linked
    kept, lost = _separate_messages(topology, whole, blocks, linked, seed)
    if len(lost.block) > MOST_INTERRUPTED * blocks.n_blocks:
        return None
    steps = int(kept.step.max(initial=-1)) + 1
    for more in sorted({round(share * steps) for share in ADDITIONAL_STEPS}):
        spread = kept.step + (kept.step + 1) * more // (steps + 1)
        free = np.repeat(linked.ravel()[:, None], steps + more, axis=1)
        free[kept.arc, spread] = False
        found = _FreeSlots(whole, free).route_all(lost, np.random.default_rng(seed))
        if found is not None:
            step, arc, block = (
                np.concatenate(each) for each in zip(kept._replace(step=spread), found, strict=True)
            )
            number = np.cumsum(np.isin(np.arange(whole.nodes), topology.kept)) - 1
            return Transfers.by_step(step, number[arc // ports], arc % ports, block)
    return None


def _separate_messages(
    topology: Faulty, whole: CayleyGraph, blocks: Blocks, linked: BoolArray, seed: int
) -> tuple[Hops, Interrupted]:
    """Return the hops of all messages that keep their paths, and the messages that do not.

    `linked`, shape (nodes, ports) of the intact network, is False for a missing arc.
    """
    reached, chunk, goal = plan_alltoall(whole, blocks.chunks, seed=seed)
    step, port = np.nonzero(reached >= 0)
    item = goal[step, port] * blocks.chunks + chunk[step, port]
    here = whole.subtract(reached[step, port], whole.generators[port])
    origin = np.arange(whole.nodes)[:, None]
    sender = whole.add(origin, here[None])
    number = np.full(whole.nodes, -1)
    number[topology.kept] = np.arange(topology.nodes)
    goals, chunks = np.divmod(np.arange(whole.nodes * blocks.chunks), blocks.chunks)
    target = whole.add(origin, goals[None])
    there = (number[origin] >= 0) & (number[target] >= 0) & (goals > 0)[None]
    block = blocks.encode(number[origin], chunks[None], number[target])
    interrupted = np.zeros_like(there)
    at, hop = np.nonzero(~linked[sender, port[None]])
    interrupted[at, item[hop]] = True
    at, hop = np.nonzero((there & ~interrupted)[:, item])
    kept = Hops(step[hop], sender[at, hop] * topology.ports + port[hop], block[at, item[hop]])
    at, each = np.nonzero(there & interrupted)
    away = whole.distances[goals[each]]
    return kept, Interrupted(at, target[at, each], away, block[at, each])


class _FreeSlots:
    """The slots that no message uses: a table with the next free step of each arc from each step.

    Entry [arc, step] is the first free step of the arc that is not before `step`, or the number of
    steps if there is none.
    """

    def __init__(self, whole: CayleyGraph, free: BoolArray) -> None:
        self._nodes, self._steps = whole.nodes, free.shape[1]
        self._tails = whole.neighbours.astype(np.int64)
        self._arcs = self._tails * whole.ports + whole.opposite
        steps = np.arange(self._steps + 1, dtype=np.int32)
        next_free = np.where(np.pad(free, ((0, 0), (0, 1))), steps, self._steps)
        self._at_first = np.minimum.accumulate(next_free[:, ::-1], axis=1)[:, ::-1].astype(np.int32)

    def route_all(self, lost: Interrupted, random: np.random.Generator) -> Hops | None:
        """Return the hops of paths for all messages, or None if some messages find no path."""
        front, most = np.zeros(len(lost.block)), HOPELESS * len(lost.block)
        while True:
            order = np.lexsort((random.random(len(front)), -lost.distance, -front))
            hops, failed = self._route_in_order(lost, order.tolist())
            if not failed:
                step, arc, block = np.array(hops, np.int64).reshape(-1, 3).T
                return Hops(step, arc, block)
            if len(failed) > most:
                return None
            front[failed] += 1
            most = PROGRESS * len(failed)

    def _route_in_order(
        self, lost: Interrupted, order: list[int]
    ) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the hops of paths, and the messages without a path, which are some if not all.

        Messages choose their paths in the given order. A hop is a step, an arc and a block.
        """
        self._next, hops, failed = self._at_first.copy(), [], []
        for count, message in enumerate(order):
            ends = int(lost.source[message]), int(lost.target[message])
            path = self._take_path(*ends, int(lost.distance[message]) + LONGEST_DETOUR)
            hops += [(step, arc, int(lost.block[message])) for step, arc in path]
            if not path:
                failed.append(message)
            if count > FIRST_MESSAGES and len(failed) > HOPELESS * count:
                return [], order
        return hops, failed

    def _take_path(self, source: int, target: int, longest: int) -> list[tuple[int, int]]:
        """Take the slots of a path with the fewest hops, at most `longest`, if there is one.

        Return the steps and arcs, last hop first; an empty list if there is no such path.
        """
        ready = np.full(self._nodes, self._steps)
        ready[source] = 0
        # For each number of hops, the first step in which the message can leave each node.
        levels = [ready]
        while len(levels) <= longest:
            steps = self._next[self._arcs, ready[self._tails]].min(axis=1)
            ready = np.minimum(steps + 1, self._steps)
            levels.append(ready)
            if steps[target] < self._steps:
                break
        else:
            return []
        path, node = [], target
        for ready in levels[-2::-1]:
            steps = self._next[self._arcs[node], ready[self._tails[node]]]
            port = int(steps.argmin())
            step, arc = int(steps[port]), int(self._arcs[node, port])
            row = self._next[arc, : step + 1]
            row[row == step] = self._next[arc, step + 1]
            path.append((step, arc))
            node = int(self._tails[node, port])
        return path
