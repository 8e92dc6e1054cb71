"""Blocks that never rest on their way: from in-port to out-port, in the cycle after they came.

Rounds in which every message is such a block are passed flit by flit, with no pause: a block is
read once, where it comes from, and stored once, where it is wanted. Down trees all blocks pass in
one round, whose circuits branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Listed
from .fields import IDLE, memories_of
from .round_follower import Bursts, Receipts, Record, RoundPlan, settings_of

if TYPE_CHECKING:
    from ..schedule import Pattern, Schedule
    from ..topology import IntArray

__all__ = ["passing_plan", "tree_plan"]


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


def tree_plan(pattern: Pattern) -> RoundPlan:
    """Return the plan of a pattern whose words pass on down trees as they come.

    The root has a memory and an injection port for each chunk; every node stores the first arrival
    of a chunk.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plan = tree_plan(tf.plan("5", "broadcast", trees=1))
    >>> plan.skew.tolist()
    [[0, 0], [1, 0], [0, 0], [0, 0], [0, 1]]
    """
    topology, chunks, root = pattern.topology, pattern.chunks, pattern.collective.root or 0
    ports, numbers = topology.ports, np.arange(chunks)
    select = np.full(pattern.feed.shape, IDLE, np.int16)
    skew = np.zeros(pattern.feed.shape, int)
    located = np.full((2, topology.nodes, chunks), IDLE)
    located[:, root] = ports + numbers, 0 * numbers
    receipts = [np.zeros((4, 0), int)]
    node: IntArray
    entry: IntArray
    cycles: IntArray
    node, port = np.nonzero(pattern.inject >= 0)
    chunk = pattern.inject[node, port]
    entry, cycles = ports + chunk, np.zeros_like(node)
    for _ in range(pattern.steps):
        select[node, port], skew[node, port] = entry, cycles
        cycles = cycles + topology.cycles_of_arc[node, port]
        node, entry = topology.neighbours[node, port], topology.opposite[port]
        new = np.flatnonzero(located[0, node, chunk] < 0)
        new = new[np.unique(np.stack([node, chunk])[:, new], axis=1, return_index=True)[1]]
        located[:, node[new], chunk[new]] = entry[new], 0 * new
        receipts.append(np.stack([node, chunk, entry, cycles])[:, new])
        branch, port = np.nonzero(pattern.feed[node] == entry[:, None])
        node, chunk, entry, cycles = (each[branch] for each in (node, chunk, entry, cycles))
    node, chunk, entry, cycles = np.concatenate(receipts, axis=1)
    depth = np.zeros((topology.nodes, ports + chunks), int)
    depth[node, entry] = depth[root, ports:] = 1
    zero, one = 0 * numbers, 0 * node + 1
    return RoundPlan(
        select=select[None],
        links=np.array([cycles.max(initial=0)]),
        blocks=np.ones(1, int),
        bursts=Bursts(zero, zero + root, numbers, zero, zero, ports + numbers, zero, zero + 1),
        receipts=Receipts(0 * node, node, entry, entry, cycles, 0 * node, one),
        depth=depth,
        memories=memories_of(range(ports), 0),
        located=located,
        skew=skew,
        known_by="the in-port",
    )
