"""Trees of sums: reductions in which what is done with what arrives never changes."""

from __future__ import annotations

import numpy as np

from ..topology import IntArray
from .base import Schedule
from .model import Switching
from .rounds import Rounds
from .transfers import Listed

__all__ = ["sum_trees"]


def sum_trees(schedule: Schedule) -> IntArray | None:
    """The out-port by which each node sends its sum of each chunk, if the sums go along trees.

    Every node but the root sends its sum of each chunk once, by one hop, and no arc carries two.
    So a node always combines what comes by the same in-ports, and passes it on by the same
    out-port: messages of any length stream through.

    Parameters
    ----------
    schedule : Schedule
        A checked one.

    Returns
    -------
    ndarray of int, shape (chunks, nodes), or None
        -1 at the root; None if it is no such reduction.

    Examples
    --------
    >>> import torusfabric as tf
    >>> sum_trees(tf.plan("2x2", "reduce", algorithm="spanning-tree"))[0].tolist()
    [-1, 1, 1, 3]
    """
    collective = schedule.collective
    reduction = collective.reducing and collective.to_root and collective.axes is None
    store = schedule.switching == Switching.STORE_AND_FORWARD
    if not (reduction and store and isinstance(schedule, Rounds) and schedule.transfers):
        return None
    found = []
    for transfers in schedule.transfers:
        if not len(transfers):
            continue
        payload = transfers.payload
        if not isinstance(payload, Listed) or (transfers.lengths != 1).any():
            return None
        chunk = schedule.blocks.chunk(np.asarray(payload.ids))
        lowest, highest = (
            reduce.reduceat(chunk, payload.indptr[:-1]) for reduce in (np.minimum, np.maximum)
        )
        if (lowest != highest).any():
            return None
        found.append(np.stack([lowest, transfers.source, transfers.hops[:, 0]]))
    sent, node, port = np.concatenate(found, axis=1)
    nodes, degree = schedule.topology.nodes, schedule.topology.ports
    cells, arcs = sent * nodes + node, node * degree + port
    expected = schedule.chunks * (nodes - 1)
    if not len(np.unique(cells)) == len(np.unique(arcs)) == len(cells) == expected:
        return None
    trees: IntArray = np.full((schedule.chunks, nodes), -1)
    trees[sent, node] = port
    return trees if (trees[:, collective.root or 0] < 0).all() else None
