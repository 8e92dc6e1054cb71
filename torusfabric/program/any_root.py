"""Programs whose root is chosen anew for every run.

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

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..schedule import Masked, Pattern
from .address_map import AddressMap, NodeMap, OffsetMap
from .fields import Memory
from .patterns import compile_pattern, tree_plan
from .request import Request
from .round_follower import follow_blocks
from .round_plan import RoundPlan
from .rounds import plan_rounds, program_of
from .tables import compile_table

if TYPE_CHECKING:
    from ..topology import IntArray
    from .program import Program

__all__ = ["compile_any_root", "send_banks"]


def compile_any_root(request: Request) -> Program:
    """The program of a schedule from or to any root; it is that for node 0.

    Raises
    ------
    InputError
        If the collective has no root, there is too much to follow, or a message of a broadcast
        combines chunks.

    Examples
    --------
    Each of nine nodes does what the plan says for its offset from the root, and any of them may
    have to keep what the root gathers.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "gather")
    >>> program = compile_any_root(Request(schedule, 2))
    >>> program.any_root, program.depth.min(axis=0).tolist()
    (True, [4, 4, 4, 4, 2])
    """
    schedule, collective = request.schedule, request.schedule.collective
    if not collective.rooted:
        raise InputError(f"Root must be left out for {collective.kind}, which has none, not any")
    if collective.single_origin and collective.to_all:
        return _broadcast(request)
    if isinstance(schedule, Masked):
        compiler = compile_pattern if isinstance(schedule.whole, Pattern) else compile_table
        program = compiler(replace(request, schedule=schedule.whole))
        return replace(program, forms=(replace(program.form, schedule=schedule, any_root=True),))
    # Every round ends with a pause, as where tables are loaded.
    plan = plan_rounds(request, rests=False)
    if not collective.personal:
        return _by_offset(program_of(request, plan))
    # A node keeps what it sends as node 0 does, by the offsets of destinations from it.
    plan, memory, slot = send_banks(plan)
    memory, base = (x.reshape(-1, schedule.chunks) for x in (memory, slot * request.block))
    send_map = OffsetMap(request.topology, memory, base, ahead=True)
    write_delay = request.write_delay(send_map)
    return _by_offset(program_of(request, plan), send_map=send_map, write_delay=write_delay)


def _by_offset(program: Program, **maps: Any) -> Program:
    """The same for any root: all nodes have the memories, as deep, of any of them."""
    receive_map = _receive_map(program)
    form = replace(program.form, any_root=True, by_offset=True, receive_map=receive_map, **maps)
    depth = np.broadcast_to(program.depth.max(axis=0), program.depth.shape)
    return replace(program, forms=(form,), depth=depth)


def _broadcast(request: Request) -> Program:
    """The program of a broadcast in rounds, or over trees."""
    schedule, nodes = request.schedule, request.topology.nodes
    if isinstance(schedule, Pattern) and schedule.streams:
        plan = tree_plan(schedule, by_chunk=True)
    else:
        plan = _by_chunk(follow_blocks(schedule, rests=False))
    memory, source = plan.receipts.memory, plan.receipts.source
    memories = tuple(
        Memory(tuple(np.unique(source[memory == chunk]).tolist()), own=True)
        for chunk in range(schedule.chunks)
    )
    plan = plan._replace(memories=memories, depth=np.zeros((nodes, len(memories)), int))
    return program_of(request, plan, any_root=True)


def _by_chunk(plan: RoundPlan) -> RoundPlan:
    """The same broadcast with a memory and an injection port of its own for each chunk.

    Slot 0 of a memory is for what the root sends, slot 1 for what others receive.
    """
    most = int(plan.blocks.max())
    if most > 1:
        raise InputError(
            f"Root must be a node number where a message combines {most} chunks, not any"
        )
    bursts, receipts, ports = plan.bursts, plan.receipts, plan.select.shape[2]
    chunk_at = np.zeros((*plan.depth.shape, int(plan.depth.max())), int)
    chunk_at[np.arange(len(plan.depth))[:, None], plan.memory, plan.slot] = np.arange(
        plan.memory.shape[1]
    )
    read = chunk_at[bursts.node, bursts.memory, bursts.slot]
    stored = chunk_at[receipts.node, receipts.memory, receipts.slot]
    injected = np.zeros_like(plan.select)
    injected[bursts.round, bursts.node, bursts.injection] = read
    entry = ports + np.take_along_axis(injected, np.maximum(plan.select - ports, 0), axis=2)
    received = (bursts.memory < len(plan.memories)).astype(int)
    return plan._replace(
        select=np.where(plan.select < ports, plan.select, entry).astype(np.int16),
        bursts=bursts._replace(injection=read, memory=read, slot=received),
        receipts=receipts._replace(memory=stored, slot=np.ones_like(stored)),
    )


def _receive_map(program: Program) -> AddressMap:
    """Where a node keeps what it receives.

    The root keeps it as node 0 does, by the offsets of origins from it; others as the nodes at
    their offsets from the root do.
    """
    nodes, topology = program.form.receive_map, program.topology
    assert isinstance(nodes, NodeMap)
    if program.schedule.collective.to_root:
        return OffsetMap(topology, nodes.memory[0], nodes.base[0], ahead=True)
    return OffsetMap(topology, nodes.memory[:, 0], nodes.base[:, 0])


def send_banks(plan: RoundPlan) -> tuple[RoundPlan, IntArray, IntArray]:
    """The same with a memory of what a node sends for each reader, if that is possible.

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
    kept = (plan.memory == own) & (plan.slot >= 0)
    plan = plan._replace(
        bursts=banked,
        depth=np.hstack([plan.depth[:, :own], np.tile(depth, (len(plan.depth), 1))]),
        memory=np.where(kept, memory[plan.slot], plan.memory),
        slot=np.where(kept, slot[plan.slot], plan.slot),
    )
    return plan, memory, slot
