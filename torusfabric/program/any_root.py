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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from ..errors import InputError
from ..schedule import Masked, Pattern
from .address_map import AddressMap, DirectMap, NodeMap, OffsetMap
from .fields import Action, Field, Loop, Memory, Point
from .patterns import compile_pattern, tree_plan
from .request import Request
from .round_follower import BlockFollower, Message
from .rounds import compile_rounds, cost_of, loop_of
from .send_order import Location
from .tables import compile_table

if TYPE_CHECKING:
    from ..schedule import Transfers
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
    program = compile_rounds(replace(request, fixed=False))
    form = replace(program.form, any_root=True, by_offset=True, receive_map=_receive_map(program))
    if collective.personal:
        send_map = _send_map(program)
        form = replace(form, send_map=send_map, write_delay=request.write_delay(send_map))
    depth = np.broadcast_to(program.depth.max(axis=0), program.depth.shape)
    opened = replace(program, forms=(form,), depth=depth)
    return _banked(opened) if collective.personal else opened


def _broadcast(request: Request) -> Program:
    """The program of a broadcast in rounds, or over trees.

    Each chunk has a memory of two halves, the lower for what a node would send as the root, the
    upper for what it has received.
    """
    schedule, block = request.schedule, request.block
    chunks, half = schedule.chunks, 1 << (block - 1).bit_length()
    if isinstance(schedule, Pattern) and schedule.streams:
        plan = tree_plan(schedule, by_chunk=True)
    else:
        plan = _ChunkFollower(schedule, rests=False).follow()
    loop, variant_of, first = loop_of(plan, block, half, receiving=chunks)
    send_map = DirectMap(0, chunks, block, by_chunk=True)
    memory, source = plan.receipts.memory, plan.receipts.source
    ports = (tuple(np.unique(source[memory == chunk]).tolist()) for chunk in range(chunks))
    return request.program(
        loop,
        send_map=send_map,
        receive_map=replace(send_map, base=half),
        moving=cost_of(plan, block, request.topology),
        known_by="the root",
        any_root=True,
        memories=tuple(Memory(used, own=True) for used in ports),
        depth=np.full((len(first), chunks), half + block),
        variant_of=variant_of,
    )


class _ChunkFollower(BlockFollower):
    """Follows a broadcast in which each chunk has a memory and an injection port of its own.

    Slot 0 of a memory is for what the root sends, slot 1 for what others receive.
    """

    @override
    def _own(self, block: int, number: int) -> Location:
        return Location(block, 0)

    @override
    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        payloads = super()._payloads(transfers, group)
        most = max(map(len, payloads), default=0)
        if most > 1:
            raise InputError(
                f"Root must be a node number where a message combines {most} chunks, not any"
            )
        return payloads

    @override
    def _injection(self, message: Message, number: int) -> int:
        return next(iter(message), 0)

    @override
    def _place(self, node: int, port: int, payload: Message) -> Location:
        return Location(payload[0], 1)


def _send_map(program: Program) -> AddressMap:
    """Where a node keeps what it sends: as node 0 does, by the offsets of destinations from it."""
    direct, nodes = program.form.send_map, np.arange(program.topology.nodes)
    assert isinstance(direct, DirectMap)
    chunks = np.arange(program.schedule.chunks)
    located = direct.locate(0, nodes[:, None], chunks[None, :])
    return OffsetMap(program.topology, *located, ahead=True)


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


def _banked(program: Program) -> Program:
    """The same with a memory of what a node sends for each reader, if that is possible."""
    form, own = program.form, len(program.memories) - 1
    send, receive, block = form.send_map, form.receive_map, program.block_flits
    assert isinstance(send, OffsetMap)
    assert isinstance(receive, OffsetMap)
    banks = send_banks(form.loop, own, send.base.size)
    if banks is None:
        return program
    memory = (own + banks.memory).reshape(send.memory.shape)
    base = (banks.slot * block).reshape(send.base.shape)
    # What the root has for itself stays where it keeps it.
    kept = (receive.memory == own) & (receive.base >= 0)
    send = replace(send, memory=memory, base=base)
    receive = replace(
        receive,
        memory=np.where(kept, memory, receive.memory),
        base=np.where(kept, base, receive.base),
    )
    loop = replace(form.loop, fields=banks.fields)
    form = replace(form, loop=loop, send_map=send, receive_map=receive)
    received, depth = program.depth[:, :own], np.array(banks.depth) * block
    depth = np.hstack([received, np.broadcast_to(depth, (len(received), len(depth)))])
    memories = (*program.memories[:own], *(program.memories[own] for _ in banks.depth))
    return replace(program, forms=(form,), memories=memories, depth=depth)


@dataclass(frozen=True, eq=False)
class SendBanks:
    """Memories in place of one memory of blocks that are sent.

    Parameters
    ----------
    fields : tuple of Field
        Those of the loop, in which each reader reads a memory of its own.
    depth : tuple of int
        Blocks in each memory.
    memory, slot : ndarray of int, shape (blocks,)
        Where each block lies: the memory, counted among these, and its place in it.
    """

    fields: tuple[Field, ...]
    depth: tuple[int, ...]
    memory: IntArray
    slot: IntArray


def send_banks(loop: Loop, own: int, blocks: int) -> SendBanks | None:
    """Give each reader of a memory one of its own; None if a block is read twice, or none is.

    In each it finds the blocks in the order in which it reads them. What nobody reads is in the
    first: its reader mostly forwards as well, and so passes on to the host what that asks for.

    Parameters
    ----------
    own : int
        The memory; those that come in its place are numbered from it on.

    Examples
    --------
    A scatter from any root: a reader for each out-port, and what each sends is a memory.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "scatter"), root="any")
    >>> [int(words) for words, memory in zip(program.depth[0], program.memories) if memory.own]
    [3, 2, 2, 2]
    """
    memory, slot = np.full(blocks, -1), np.zeros(blocks, int)
    depth: list[int] = []
    placed: dict[Point, Field] = {}
    for reader in range(loop.sources.readers):
        of_memory, of_base = (loop.field(a, reader) for a in (Action.MEMORY, Action.READ))
        if of_memory is None or of_base is None:
            continue
        here, bank = of_memory.values == own, len(depth)
        first = of_base.values[here] // loop.flits
        count = np.broadcast_to(loop.blocks[:, None], here.shape)[here]
        read = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        if len(np.unique(read)) < len(read) or (memory[read] >= 0).any():
            return None
        base = of_base.values.copy()
        if len(read):
            depth.append(len(read))
            memory[read], slot[read] = bank, np.arange(len(read))
            base[here] = slot[first] * loop.flits
        numbers = np.where(here, own + bank, of_memory.values)
        placed[of_memory.point] = replace(of_memory, values=numbers)
        placed[of_base.point] = replace(of_base, values=base)
    if not depth:
        return None
    rest = np.nonzero(memory < 0)[0]
    memory[rest], slot[rest] = 0, depth[0] + np.arange(len(rest))
    depth[0] += len(rest)
    fields = tuple(placed.get(field.point, field) for field in loop.fields)
    return SendBanks(fields, tuple(depth), memory, slot)
