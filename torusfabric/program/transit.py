"""Memory slots of nodes that only pass blocks on: they are used again after a block has left.

A *slot* is the space of one block, and a *run of slots* holds blocks that were stored one after
another and that one burst may read together. At a node that takes part in a collective, every block
keeps its slot. At other nodes, a run of slots is free again after its last read.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray

if TYPE_CHECKING:
    from .round_follower import RoundPlan

__all__ = ["reuse_slots"]


@dataclass
class _Run:
    """A run of slots of one memory: its first round, its last round, and its place."""

    begin: int
    end: int
    length: int
    slot: int = 0


def reuse_slots(plan: RoundPlan, nodes: IntArray) -> RoundPlan:
    """Return the plan with smaller memories at nodes that only pass blocks on.

    Parameters
    ----------
    plan : RoundPlan
        A plan in which each memory is filled from slot 0 on, and no slot is used twice.
    nodes : ndarray of int
        The nodes that keep no block.
    """
    depth = plan.depth.copy()
    slots = {"receipts": plan.receipts.slot.copy(), "bursts": plan.bursts.slot.copy()}
    for node in nodes.tolist():
        at_node = np.flatnonzero(plan.receipts.node == node)
        from_node = np.flatnonzero(plan.bursts.node == node)
        for memory in np.flatnonzero(plan.depth[node, : len(plan.memories)]).tolist():
            stored = at_node[plan.receipts.memory[at_node] == memory]
            read = from_node[plan.bursts.memory[from_node] == memory]
            place = _place_slots(plan, stored, read, int(plan.depth[node, memory]))
            for name, at in ("receipts", stored), ("bursts", read):
                slots[name][at] = place[slots[name][at]]
            depth[node, memory] = place.max() + 1
    return plan._replace(
        depth=depth,
        receipts=plan.receipts._replace(slot=slots["receipts"]),
        bursts=plan.bursts._replace(slot=slots["bursts"]),
    )


def _place_slots(plan: RoundPlan, stored: IntArray, read: IntArray, depth: int) -> IntArray:
    """Return the new slot of each slot of a memory, shape (depth,).

    `stored` and `read` are the entries of the plan's receipts and bursts that concern the memory.
    """
    begin, end = np.zeros((2, depth), int)
    starts_run = np.zeros(depth, bool)
    starts_run[plan.receipts.slot[stored]] = True
    for k in stored:
        begin[plan.receipts.slot[k] :][: plan.receipts.length[k]] = plan.receipts.round[k]
    for k in read:
        span = slice(plan.bursts.slot[k], plan.bursts.slot[k] + plan.bursts.length[k])
        end[span] = np.maximum(end[span], plan.bursts.round[k])
        starts_run[span.start + 1 : span.stop] = False
    place, busy = np.zeros(depth, int), list[_Run]()
    bounds = [*np.flatnonzero(starts_run).tolist(), depth]
    for low, high in itertools.pairwise(bounds):
        first = int(begin[low:high].min())
        run = _Run(first, max(first, int(end[low:high].max())), high - low)
        # A block that arrives in the round in which another leaves needs a slot of its own.
        busy = sorted((one for one in busy if one.end >= first), key=lambda one: one.slot)
        for one in busy:
            if run.slot + run.length <= one.slot:
                break
            run.slot = max(run.slot, one.slot + one.length)
        busy.append(run)
        place[low:high] = run.slot + np.arange(run.length)
    return place
