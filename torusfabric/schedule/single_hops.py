"""Schedules of which every message is a block, or the sum of a chunk, that goes one hop."""

import numpy as np

from .base import Schedule
from .transfers import Grouped, Listed

__all__ = ["single_hops"]


def single_hops(schedule: Schedule) -> bool:
    """Whether every message is a block, or the sum of a chunk, that goes one hop.

    Examples
    --------
    >>> import torusfabric as tf
    >>> kinds = ("allgather", "allreduce", "gather")
    >>> [single_hops(tf.plan("mesh:3", kind, algorithm="any-network")) for kind in kinds]
    [True, True, True]
    >>> single_hops(tf.plan("4x4", "gather", algorithm="max-flow"))
    False
    """
    blocks = schedule.blocks
    for transfers in schedule.rounds():
        if (transfers.hops[:, 1:] >= 0).any():
            return False
        match transfers.payload:
            case Listed(indptr=indptr, ids=ids):
                key = ids % blocks.per_origin if schedule.collective.reducing else ids
                same = np.append(True, key[1:] == key[:-1])
                same[indptr[:-1]] = True
                if not same.all() or (np.diff(indptr) == 0).any():
                    return False
            case Grouped(group=group) if schedule.collective.reducing:
                if (group != np.arange(blocks.count) % blocks.per_origin).any():
                    return False
            case _:
                return False
    return True
