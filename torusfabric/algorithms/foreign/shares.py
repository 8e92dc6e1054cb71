"""Which chunk of a message each node completes in an all-reduce that is cut into shares."""

import numpy as np

from ...schedule.foreign.dataflow import Dataflow
from ...topology import IntArray

__all__ = ["chunk_numbers"]


def chunk_numbers(dataflow: Dataflow, nodes: IntArray) -> IntArray:
    """New numbers of the chunks, by which node n completes chunks n M to n M + M - 1.

    Which part of a message is called which chunk is free in an all-reduce. By these numbers a
    schedule that looks the same from every node is written the same at every node, which is what a
    `Table` takes.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)

    Returns
    -------
    ndarray of int, shape (chunks,)
        The chunks as they are if this is no all-reduce, or if not every node completes as many.
    """
    buffers = dataflow.buffers
    same = np.arange(buffers.chunks)
    collective, share = buffers.collective, buffers.chunks // buffers.ranks
    if not (collective.reducing and collective.to_all) or buffers.chunks % buffers.ranks:
        return same
    # Whoever receives a complete sum has not completed it.
    completes = np.ones((buffers.chunks, buffers.ranks), bool)
    for message in dataflow.messages:
        if message is None:
            continue
        for key, ranks in message.values:
            if ranks == buffers.full:
                completes[key, message.target] = False
    owner = nodes[completes.argmax(axis=1)]
    if (completes.sum(axis=1) != 1).any() or (np.bincount(owner) != share).any():
        return same
    numbers = np.empty_like(same)
    numbers[np.argsort(owner, kind="stable")] = same
    return numbers
