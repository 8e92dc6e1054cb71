"""Blocks that never rest on their way: from in-port to out-port, in the cycle after they came.

Rounds in which every message is such a block are passed flit by flit, with no pause: a block is
read once, where it comes from, and stored once, where it is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Listed
from .round_follower import Record, settings_of

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..topology import IntArray
    from .round_follower import RoundPlan

__all__ = ["passing_plan"]


def _arrived_by(schedule: Schedule) -> list[IntArray] | None:
    """Of each round, the in-port by which what a transfer sends arrived in the round before.

    That is -1 for what is the sender's own. None if a block rests on its way.
    """
    topology, blocks = schedule.topology, schedule.blocks
    key, by = np.full(1, -1), np.full(1, -1)
    found = []
    for transfers in schedule.rounds():
        payload, hops, source = transfers.payload, transfers.hops, transfers.source.astype(int)
        if not isinstance(payload, Listed) or (hops[:, 1:] >= 0).any():
            return None
        if (np.diff(payload.indptr) != 1).any():
            return None
        sent = source * blocks.count + payload.ids
        place = np.minimum(np.searchsorted(key, sent), len(key) - 1)
        own = blocks.origin(payload.ids) == source
        if not (own | (key[place] == sent)).all():
            return None
        found.append(np.where(own, -1, by[place]))
        arrived = topology.neighbours[source, hops[:, 0]] * blocks.count + payload.ids
        order = np.argsort(arrived, kind="stable")
        key = np.append(arrived[order], topology.nodes * blocks.count)
        by = np.append(topology.opposite[hops[:, 0]][order], -1)
    return found


def passing_plan(schedule: Schedule) -> RoundPlan | None:
    """What nodes do with blocks that never rest; None if some do.

    A node finds by itself where to store only one block for each in-port. So nodes that store more
    have to do it alike, or this is None as well.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plan = passing_plan(tf.plan("5", "scatter", algorithm="farthest-first"))
    >>> len(plan.links), plan.bursts.node.tolist(), sorted(plan.receipts.node.tolist())
    (2, [0, 0, 0, 0], [1, 2, 3, 4])
    """
    # On longer links a block has not come when the next flit is to leave.
    came = _arrived_by(schedule) if schedule.topology.longest_link == 1 else None
    if came is None:
        return None
    plan = _follow(schedule, came)
    stored, receipts = plan.depth[:, :-1], plan.receipts
    for memory in np.flatnonzero((stored > 1).any(axis=0)).tolist():
        here = receipts.memory == memory
        nodes = (stored[:, memory] > 0).sum()
        alike = np.unique(np.stack([receipts.round, receipts.slot])[:, here], axis=1)
        if here.sum() != nodes * alike.shape[1]:
            return None
    return plan


def _follow(schedule: Schedule, came: list[IntArray]) -> RoundPlan:
    """Follow blocks that are read once, and stored once, given what `_arrived_by` says."""
    topology, blocks = schedule.topology, schedule.blocks
    record = Record(schedule, blocks.count)
    record.hold_own()
    rounds = list(schedule.rounds())
    #: Pairs of node and block; None where all nodes receive all.
    wanted: set[tuple[int, ...]] | None = None
    if not blocks.collective.to_all:
        wanted = set(map(tuple, np.stack(blocks.final(np.arange(blocks.count)), axis=1).tolist()))
    sent = [
        np.stack([t.source, t.hops[:, 0]], axis=1)[by < 0]
        for t, by in zip(rounds, came, strict=True)
    ]
    #: Of each node the out-ports by which it ever sends a block of its own: each has a reader.
    own = np.unique(np.concatenate(sent), axis=0)
    for transfers, by in zip(rounds, came, strict=True):
        entry, messages = by.copy(), transfers.listed.ids[:, None].tolist()
        of_node = np.searchsorted(own[:, 0], transfers.source)
        read: dict[tuple[int, int], int] = {}
        for k in np.flatnonzero(by < 0).tolist():
            node, (block,) = int(transfers.source[k]), messages[k]
            out = own[of_node[k] :, 1].tolist().index(int(transfers.hops[k, 0]))
            if (node, block) not in read:
                record.read(node, out, [block])
            entry[k] = topology.ports + read.setdefault((node, block), out)
        select, ends = settings_of(topology, transfers, entry)
        for (node, port, links), message in zip(ends, messages, strict=True):
            if wanted is None or (node, *message) in wanted:
                record.receive(node, port, links, message)
        record.end_round(select, ends, messages)
    return record.plan()
