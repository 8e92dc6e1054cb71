"""Recognition of reductions along fixed trees, and of schedules of single blocks and single hops.

Hardware for such schedules is simpler. Along fixed trees, a node always combines the words of the
same in-ports and feeds the same out-ports, so messages of any length stream through. If every
transfer is a single block over a single hop, rounds need no pause.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..topology import IntArray
from .base import Rounds, Schedule
from .model import Switching
from .transfers import Grouped, KeptSums, Listed, Transfers

__all__ = ["SumTrees", "has_single_hops", "find_sum_trees"]


class SumTrees(NamedTuple):
    """The trees of a reduction, one for each chunk.

    Parameters
    ----------
    up : ndarray of int, shape (chunks, nodes)
        The out-port by which each node sends its sum towards the root; -1 at the root.
    down : ndarray of int, shape (chunks, nodes)
        The in-port at which the complete sum arrives; -1 at the root. In a reduce, -1 at all nodes,
        since the complete sum stays at the root.
    """

    up: IntArray
    down: IntArray

    @property
    def roots(self) -> IntArray:
        """The root of each tree, shape (chunks,)."""
        roots: IntArray = (self.up < 0).argmax(axis=1)
        return roots


def find_sum_trees(schedule: Schedule) -> SumTrees | None:
    """Return the trees along which a reduction moves its sums; None if it does not use trees.

    A reduction uses trees if the following holds for each chunk. Every node except the root of the
    chunk sends its sum once, by one hop. In an all-reduce, every node except the root then receives
    the complete sum once. No arc carries two blocks in the whole schedule. Chunks may have
    different roots.

    Returns
    -------
    SumTrees or None
        The ports along the trees; None for a schedule of any other kind.

    Examples
    --------
    On the torus 2x2, nodes 1 and 2 send their sums by port 1, and node 3 by port 3; node 0 is the
    root. On a ring of three, node 1 is the root of an all-reduce.

    >>> import torusfabric as tf
    >>> find_sum_trees(tf.plan("2x2", "reduce", algorithm="spanning-tree")).up[0].tolist()
    [-1, 1, 1, 3]
    >>> find_sum_trees(tf.plan("3", "allreduce", algorithm="spanning-tree"))
    SumTrees(up=array([[ 0, -1,  1]]), down=array([[ 0, -1,  1]]))
    """
    collective = schedule.collective
    reduction = collective.reducing and not collective.personal and collective.axes is None
    # Words cannot stream over links that carry less than a flit a cycle.
    slow = schedule.topology.spacing_multiple > 1
    reduction = reduction and not (collective.is_irregular or slow)
    store = schedule.switching == Switching.STORE_AND_FORWARD
    if not (reduction and store and isinstance(schedule, Rounds) and schedule.transfers):
        return None
    if collective.to_all and schedule.in_shares:
        return None
    topology, nodes = schedule.topology, schedule.topology.nodes
    used = np.zeros((nodes, topology.ports), bool)
    count = np.ones((schedule.chunks, nodes), int)
    up, down = np.full((2, schedule.chunks, nodes), -1)
    for transfers in schedule.transfers:
        if not len(transfers):
            continue
        chunk = _transfer_chunks(schedule, transfers)
        if chunk is None or (transfers.lengths != 1).any():
            return None
        source, port = transfers.source, transfers.hops[:, 0].astype(int)
        target, sent = topology.neighbours[source, port], count[chunk, source]
        whole = sent == nodes
        if used[source, port].any() or (up[chunk, source][~whole] >= 0).any():
            return None
        if (down[chunk, target][whole] >= 0).any():
            return None
        used[source, port] = True
        up[chunk[~whole], source[~whole]] = port[~whole]
        down[chunk[whole], target[whole]] = topology.opposite[port[whole]]
        count[chunk[~whole], source[~whole]] = 0
        np.add.at(count, (chunk, target), sent)
    found = SumTrees(up, down)
    roots, others = found.roots, nodes - 1
    if ((up >= 0).sum(axis=1) != others).any():
        return None
    if collective.to_root:
        spanning = (roots == (collective.root or 0)).all() and (down < 0).all()
    else:
        complete = ((down >= 0).sum(axis=1) == others).all()
        spanning = complete and (down[np.arange(len(up)), roots] < 0).all()
    return found if spanning else None


def _transfer_chunks(schedule: Schedule, transfers: Transfers) -> IntArray | None:
    """Return the chunk that each transfer carries; None if any transfer carries several chunks."""
    blocks, payload = schedule.blocks, transfers.payload
    match payload:
        case Grouped(group=group, wanted=wanted):
            alike = np.array_equal(group, blocks.chunk(np.arange(blocks.n_blocks)))
            return wanted if alike else None
        case Listed(indptr=indptr, ids=ids):
            chunk = blocks.chunk(np.asarray(ids))
            if len(indptr) <= 1 or (np.diff(indptr) == 0).any():
                return None
            bounds = indptr[:-1]
            lowest, highest = (each.reduceat(chunk, bounds) for each in (np.minimum, np.maximum))
            return lowest if (lowest == highest).all() else None
    return None


def has_single_hops(schedule: Schedule) -> bool:
    """Return True if every transfer carries one block, or the sum of one chunk, over one hop.

    Examples
    --------
    >>> import torusfabric as tf
    >>> kinds = ("allgather", "allreduce", "gather")
    >>> [has_single_hops(tf.plan("mesh:3", kind, algorithm="any-network")) for kind in kinds]
    [True, True, True]
    >>> has_single_hops(tf.plan("4x4", "gather", algorithm="max-flow"))
    False
    """
    blocks = schedule.blocks
    for transfers in schedule.rounds():
        if (transfers.hops[:, 1:] >= 0).any():
            return False
        match transfers.payload:
            case _ if not len(transfers.source):
                continue  # a file does not say how its transfers list their blocks
            case Listed(indptr=indptr, ids=ids):
                key = ids % blocks.blocks_per_origin if schedule.collective.reducing else ids
                same = np.append(True, key[1:] == key[:-1])
                same[indptr[:-1]] = True
                if not same.all() or (np.diff(indptr) == 0).any():
                    return False
            case KeptSums():
                continue
            case Grouped(group=group) if schedule.collective.reducing:
                if (group != np.arange(blocks.n_blocks) % blocks.blocks_per_origin).any():
                    return False
            case _:
                return False
    return True
