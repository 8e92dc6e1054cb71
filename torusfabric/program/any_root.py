"""Plans of rounds for a root that is chosen anew for every run.

Topologies are Cayley graphs, so what is planned for node 0 serves any root: a node does what the
plan says for its offset from the root. Every node has the memories, as deep, of whichever offset
needs the most. Nodes keep what they send before it is known who the root is; so a node keeps it as
it would as the root, by the offsets of destinations from itself, which then are those from the
root. What the root receives lies by the offsets of origins from it, and what the others receive by
their own offsets from the root.

Where all nodes do the same, for all roots at once (`Masked`), nothing depends on the root but what
the host reads.
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..topology import IntArray
from .fields import Memory
from .round_follower import RoundPlan

__all__ = ["bank_sent_blocks", "give_chunks_memories"]


def give_chunks_memories(plan: RoundPlan) -> RoundPlan:
    """Return the plan of a broadcast with a memory and an injection port for each chunk.

    Slot 0 of a memory is for what the root sends, slot 1 for what others receive.
    """
    most = int(plan.blocks.max())
    if most > 1:
        raise InputError(
            f"Root must be a node number where a message combines {most} chunks, not any"
        )
    bursts, receipts, ports = plan.bursts, plan.receipts, plan.select.shape[2]
    chunk_at = np.zeros((*plan.depth.shape, int(plan.depth.max())), int)
    memory, slot = plan.located
    chunk_at[np.arange(len(plan.depth))[:, None], memory, slot] = np.arange(memory.shape[1])
    read = chunk_at[bursts.node, bursts.memory, bursts.slot]
    stored = chunk_at[receipts.node, receipts.memory, receipts.slot]
    injected = np.zeros_like(plan.select)
    injected[bursts.round, bursts.node, bursts.injection] = read
    entry = ports + np.take_along_axis(injected, np.maximum(plan.select - ports, 0), axis=2)
    received = (bursts.memory < len(plan.memories)).astype(int)
    memories = tuple(
        Memory(tuple(np.unique(receipts.source[stored == chunk]).tolist()), own=True)
        for chunk in range(memory.shape[1])
    )
    return plan._replace(
        memories=memories,
        depth=np.full((len(plan.depth), len(memories)), 2),
        select=np.where(plan.select < ports, plan.select, entry).astype(np.int16),
        bursts=bursts._replace(injection=read, memory=read, slot=received),
        receipts=receipts._replace(memory=stored, slot=np.ones_like(stored)),
    )


def bank_sent_blocks(plan: RoundPlan) -> tuple[RoundPlan, IntArray, IntArray]:
    """Return a plan with a memory of sent blocks for each reader, if that is possible.

    In each a reader finds the blocks in the order in which it reads them. What nobody reads is in
    the first: its reader mostly forwards as well, and so passes on to the host what that asks for.
    Where a block is read twice, all stay in one memory.

    Returns
    -------
    plan : RoundPlan
    memory, slot : ndarray of int, shape (blocks,)
        Where each block lies.

    Examples
    --------
    A scatter from any root: a reader for each out-port, and what each sends is a memory.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "scatter"), root="any")
    >>> [int(words) for words, memory in zip(program.depth[0], program.memories) if memory.own]
    [3, 2, 2, 2]
    """
    bursts, own = plan.bursts, len(plan.memories)
    numbers = np.arange(int(plan.depth[:, own].max()))
    sent = np.flatnonzero(bursts.memory == own)
    sent = sent[np.lexsort((bursts.at[sent], bursts.round[sent], bursts.injection[sent]))]
    first, length = bursts.slot[sent], bursts.length[sent]
    burst = np.repeat(np.arange(len(sent)), length)
    read = first[burst] + np.arange(len(burst)) - (np.cumsum(length) - length)[burst]
    if not len(read) or len(np.unique(read)) < len(read):
        return plan, np.full_like(numbers, own), numbers
    reader = np.unique(bursts.injection[sent], return_inverse=True)[1]
    bank, slot = np.zeros((2, len(numbers)), int)
    bank[read] = reader[burst]
    depth = np.bincount(bank)
    order = np.concatenate([read, np.setdiff1d(numbers, read)])
    order = order[np.argsort(bank[order], kind="stable")]
    slot[order] = numbers - (np.cumsum(depth) - depth)[bank[order]]
    memory, banked = (
        own + bank,
        bursts._replace(memory=bursts.memory.copy(), slot=bursts.slot.copy()),
    )
    banked.memory[sent], banked.slot[sent] = memory[first], slot[first]
    # What the root has for itself stays where it keeps it.
    located, at = plan.located.copy(), plan.located[1]
    kept = (located[0] == own) & (at >= 0)
    located[:, kept] = memory[at[kept]], slot[at[kept]]
    plan = plan._replace(
        bursts=banked,
        depth=np.hstack([plan.depth[:, :own], np.tile(depth, (len(plan.depth), 1))]),
        located=located,
    )
    return plan, memory, slot
