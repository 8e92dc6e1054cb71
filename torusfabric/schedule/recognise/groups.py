"""All-gathers over circuits in which nodes send parts of what they hold."""

from dataclasses import replace

import numpy as np

from ...topology import BoolArray
from ..base import Rounds
from ..held_blocks import HeldBlocks
from ..transfers import Grouped, Listed, Transfers

__all__ = ["grouped"]

#: More nodes times blocks are not searched for groups; no hardware could be built of them.
MOST_HELD = 2**26


def grouped(schedule: Rounds) -> Rounds:
    """A schedule whose lists are given as groups where that says the same."""
    if not any(_splits(transfers) for transfers in schedule.transfers):
        return schedule
    topology, blocks = schedule.topology, schedule.blocks
    if topology.nodes * blocks.count > MOST_HELD:
        return schedule
    held_blocks = HeldBlocks(topology, blocks)
    result = []
    for transfers in schedule.transfers:
        held = held_blocks.held.copy() if _splits(transfers) else None
        listed = held_blocks.carry_out(transfers)
        result.append(transfers if held is None else _by_groups(listed, held))
    return replace(schedule, transfers=tuple(result))


def _splits(transfers: Transfers) -> bool:
    """Whether payloads may be parts of what the senders hold, of several blocks."""
    match transfers.payload:
        case Listed(indptr):
            return bool((np.diff(indptr) > 1).any())
        case Grouped():
            return True
    return False


def _by_groups(transfers: Transfers, held: BoolArray) -> Transfers:
    """A round with its lists given as groups, if each lists all that its sender holds of a group.

    Blocks that stand in one list are of one group; those in no list form a group of their own.
    """
    # Here, since few schedules need it and its import takes longer than reading a small one.
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    assert isinstance(transfers.payload, Listed)
    count, ids, sizes = held.shape[1], transfers.payload.ids, np.diff(transfers.payload.indptr)
    owner = count + np.repeat(np.arange(len(sizes)), sizes)
    graph = coo_matrix((np.ones(len(ids), np.int8), (ids, owner)), (count + len(sizes),) * 2)
    _, joined = connected_components(graph, directed=False)
    listed = np.isin(np.arange(count), ids)
    joined[:count][~listed] = joined.max() + 1
    _, first, group = np.unique(joined[:count], return_index=True, return_inverse=True)
    group = np.argsort(np.argsort(first))[group]
    if not sizes.all():
        return transfers
    wanted = group[ids[transfers.payload.indptr[:-1]]]
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(first)))
    have = np.add.reduceat(held[:, order], starts, axis=1, dtype=np.int64)
    whole = have.sum(axis=1)[transfers.source] == sizes
    if whole.all() or (have[transfers.source, wanted] != sizes).any():
        return transfers
    return replace(transfers, payload=Grouped(group, wanted))
