"""Plans for blocks that never *rest*: each leaves a node in the cycle after it arrives.

A plan is a `torusfabric.program.round_follower.RoundPlan`: the actions of all nodes in rounds.

If all messages of a schedule are such blocks, its rounds are executed flit by flit without a pause.
A block is read once, at its origin, and stored once, at its destination. Down trees all blocks pass
in a single round with branching circuits.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Listed
from .fields import IDLE, make_node_memories
from .round_follower import Bursts, Receipts, RoundPlan, RoundRecord, crossbar_settings

if TYPE_CHECKING:
    from ..schedule import Pattern, Schedule, Transfers
    from ..topology import IntArray

__all__ = ["passing_plan", "tree_plan"]


def passing_plan(schedule: Schedule) -> RoundPlan | None:
    """Return the actions of nodes for a schedule whose blocks never rest; None if some blocks rest.

    A block never rests if each node forwards it in the cycle after it arrives. Only its
    destinations then store it. The result is also None if a memory would need different write
    addresses at different nodes, because rows that are executed flit by flit have one address for
    all nodes. So nodes that store several blocks of an in-port must all store them in the same
    rounds.

    Examples
    --------
    In a scatter of two rounds on a ring, node 0 reads four blocks, and each other node stores one.

    >>> import torusfabric as tf
    >>> plan = passing_plan(tf.plan("5", "scatter", algorithm="farthest-first"))
    >>> len(plan.links), plan.bursts.node.tolist(), sorted(plan.receipts.node.tolist())
    (2, [0, 0, 0, 0], [1, 2, 3, 4])
    """
    topology, blocks, rounds = schedule.topology, schedule.blocks, list(schedule.rounds())
    # On links of several cycles a block arrives too late to leave in the next row.
    if topology.longest_link > 1 or not all(map(_has_single_blocks, rounds)):
        return None
    record = RoundRecord(schedule, blocks.n_blocks)
    record.place_own_messages()
    #: Pairs of a node and a block that it must receive; None if all nodes receive all blocks.
    wanted: set[tuple[int, ...]] | None = None
    if not blocks.collective.to_all or blocks.collective.is_irregular:
        wanted = set(
            map(
                tuple, np.stack(blocks.required_copies(np.arange(blocks.n_blocks)), axis=1).tolist()
            )
        )
    origin = blocks.origin_nodes(np.arange(blocks.n_blocks))
    own = [origin[transfers.listed.ids] == transfers.source for transfers in rounds]
    #: The out-ports by which each node sends blocks of its own; each has a reader.
    readers: dict[int, list[int]] = defaultdict(list)
    pairs = [
        np.stack([t.source, t.hops[:, 0]], axis=1)[mine]
        for t, mine in zip(rounds, own, strict=True)
    ]
    for node, out in np.unique(np.concatenate(pairs), axis=0).tolist():
        readers[node].append(out)
    #: The in-port by which a block arrived at a node in the previous round, by node and block.
    came: dict[tuple[int, int], int] = {}
    for transfers, mine in zip(rounds, own, strict=True):
        entry, messages = np.zeros(len(transfers), int), transfers.listed.ids[:, None].tolist()
        read: dict[tuple[int, int], int] = {}
        for k, (node, (block,)) in enumerate(zip(transfers.source.tolist(), messages, strict=True)):
            if mine[k] and (node, block) not in read:
                reader = readers[node].index(int(transfers.hops[k, 0]))
                record.add_bursts(node, reader, [block])
                read[node, block] = topology.ports + reader
            source = (read if mine[k] else came).get((node, block))
            if source is None:  # the block has rested
                return None
            entry[k] = source
        select, ends = crossbar_settings(topology, transfers, entry)
        came = {}
        for (node, port, links), message in zip(ends, messages, strict=True):
            came[node, message[0]] = port
            if wanted is None or (node, *message) in wanted:
                record.receive_message(node, port, links, message)
        record.end_round(select, ends, messages)
    plan = record.make_plan()
    stored, receipts = plan.depth[:, :-1], plan.receipts
    for memory in np.flatnonzero((stored > 1).any(axis=0)).tolist():
        here = receipts.memory == memory
        nodes = (stored[:, memory] > 0).sum()
        alike = np.unique(np.stack([receipts.round, receipts.slot])[:, here], axis=1)
        if here.sum() != nodes * alike.shape[1]:
            return None
    return plan


def _has_single_blocks(transfers: Transfers) -> bool:
    """True if each transfer of a round, in `transfers`, is a single block that goes one hop."""
    payload = transfers.payload
    single = isinstance(payload, Listed) and bool((np.diff(payload.indptr) == 1).all())
    return single and not (transfers.hops[:, 1:] >= 0).any()


def tree_plan(pattern: Pattern) -> tuple[RoundPlan, IntArray]:
    """Return the actions of nodes for a pattern whose words pass down trees as they arrive.

    All words pass in one round. The root has a memory for each chunk, and an injection port, the
    input of the router for its words. Every node stores the first arrival of each chunk.

    Returns
    -------
    plan : RoundPlan
        Plan of the single round.
    skew : ndarray of int, shape (nodes, ports)
        Cycles by which words leave each node through each port later than they leave the root
        (see `Loop.departure_skew`).

    Examples
    --------
    On a ring of five, node 0 is the root. Node 1 forwards words by port +0, and node 4 by port -0,
    one cycle after node 0.

    >>> import torusfabric as tf
    >>> _, skew = tree_plan(tf.plan("5", "broadcast", trees=1))
    >>> skew.tolist()
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
    plan = RoundPlan(
        select=select[None],
        links=np.array([cycles.max(initial=0)]),
        blocks=np.ones(1, int),
        bursts=Bursts(zero, zero + root, numbers, zero, zero, ports + numbers, zero, zero + 1),
        receipts=Receipts(0 * node, node, entry, entry, cycles, 0 * node, one),
        depth=depth,
        memories=make_node_memories(range(ports), 0),
        located=located,
    )
    return plan, skew
