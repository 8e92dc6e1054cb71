"""How long blocks wait in a node before they are sent on, measured on the plain transfers."""

from collections import defaultdict
from itertools import pairwise

__all__ = ["shortest_wait"]


def shortest_wait(schedule):
    """The fewest steps between the arrival of a block, or a partial sum, and its departure.

    A block that arrives in step t and leaves in step t + w waits w steps; the node whose block it
    is need not wait. A partial sum waits for the last of its contributions. None if nothing is
    forwarded at all.
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
    """The key of each block, or of the sums that contributions belong to."""
    if not schedule.collective.reducing:
        return ids.tolist()
    keys = schedule.blocks.n_blocks // schedule.topology.nodes
    return set((ids % keys).tolist())
