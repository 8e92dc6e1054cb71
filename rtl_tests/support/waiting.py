"""Waiting times of blocks in a node before they are sent on, measured on plain transfers."""

from collections import defaultdict
from itertools import pairwise

__all__ = ["shortest_wait"]


def shortest_wait(schedule):
    """Return the fewest steps between the arrival and the departure of a block or partial sum.

    A block that arrives in step t and leaves in step t + w waits w steps. The origin of a block
    need not wait. A partial sum waits for the last of its contributions. The result is None if no
    block is forwarded.
    """
    reducing = schedule.collective.reducing
    arrival: dict[int, dict[int, int]] = defaultdict(dict)
    waits = []
    for step, transfers in enumerate(schedule.rounds()):
        target = transfers.walk(schedule.topology)[:, -1].tolist()
        ids, indptr = transfers.payload.ids, transfers.payload.indptr
        lists = [ids[low:high] for low, high in pairwise(indptr)]
        for source, ids in zip(transfers.source.tolist(), lists, strict=True):
            waits += [step - arrival[source][key] for key in _keys(schedule, ids)
                      if key in arrival[source]]  # fmt: skip
        for node, ids in zip(target, lists, strict=True):
            for key in _keys(schedule, ids):
                if reducing:
                    arrival[node][key] = step
                else:
                    arrival[node].setdefault(key, step)
    return min(waits, default=None)


def _keys(schedule, ids):
    """Return the key of each block, or of the sums that contributions belong to."""
    if not schedule.collective.reducing:
        return ids.tolist()
    keys = schedule.blocks.n_blocks // schedule.topology.nodes
    return set((ids % keys).tolist())
