"""Plans of rounds for a root that each run chooses.

The topologies are Cayley graphs, so the plan for node 0 serves any root: a node acts as the plan
says for the node at its offset from the root. From run to run, a node acts like different nodes of
the plan. Each memory is therefore equally deep at all nodes: as deep as at the node of the plan
that needs the most.

Messages are written before the root is known. A node therefore stores its message as if it were the
root: block by block, by the offset of each destination from the node. The root stores received
blocks by the offsets of their origins from it. Other nodes store received blocks by their own
offsets from the root.

A plan is a `torusfabric.program.round_follower.RoundPlan`: the actions of all nodes in rounds. A
*reader* reads blocks out of a memory into an injection port of the router. A memory *slot* is the
space of one block.

A `Masked` schedule runs the collective for all roots at once, and one root's result is used. The
nodes then act alike for all roots; only the words that the host reads depend on the root.
"""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..topology import IntArray
from .fields import Memory
from .round_follower import RoundPlan

__all__ = ["separate_send_memories", "separate_chunk_memories"]


def separate_chunk_memories(plan: RoundPlan) -> RoundPlan:
    """Return a broadcast plan with a memory and an injection port for each chunk.

    An injection port is an input of the router for words from memories. Each memory has two slots
    (spaces of one block): slot 0 holds the block that the node sends if it is the root, slot 1 the
    block that it receives.
    """
    most = int(plan.blocks.max())
    if most > 1:
        raise InputError(
            f"Root any needs messages of one chunk, but this schedule combines {most}; plan with "
            "chunks 1, or give a node number"
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


def separate_send_memories(plan: RoundPlan) -> tuple[RoundPlan, IntArray, IntArray]:
    """Return the plan with a memory of its own for each reader of the message to send.

    A *reader* reads blocks from memory for the router. A memory holds the blocks that its reader
    reads, in the order in which they are read. Blocks that no reader sends, such as the block of
    the root for itself, are in the first memory. If some block is read twice, all blocks stay in
    one memory instead.

    Returns
    -------
    plan : RoundPlan
        Plan with the new memories.
    memory, slot : ndarray of int, shape (blocks,)
        Memory, and slot (space of one block) in it, of each sent block.

    Examples
    --------
    In a scatter from any root, each out-port has a reader and thus a memory. The memories hold
    three blocks (one of them never sent), two, two and two.

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
    # A block that the root sends to itself is received in the memory of sent blocks.
    located, at = plan.located.copy(), plan.located[1]
    kept = (located[0] == own) & (at >= 0)
    located[:, kept] = memory[at[kept]], slot[at[kept]]
    plan = plan._replace(
        bursts=banked,
        depth=np.hstack([plan.depth[:, :own], np.tile(depth, (len(plan.depth), 1))]),
        located=located,
    )
    return plan, memory, slot
