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
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import Masked, Pattern
from .address_map import AddressMap, DirectMap, NodeMap, OffsetMap
from .any_root_broadcast import compile_broadcast
from .patterns import compile_pattern
from .rounds import compile_rounds
from .send_banks import send_banks
from .tables import compile_table
from .write_delay import look_up_delay

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from .program import Program

__all__ = ["compile_any_root"]


def compile_any_root(
    schedule: Schedule,
    flits: int,
    operators: tuple[Operator, ...] = (),
    *,
    any_length: bool = False,
) -> Program:
    """The program of a schedule from or to any root.

    Parameters
    ----------
    schedule : Schedule
        Of a broadcast, scatter, gather or reduce from or to node 0.
    flits : int
        Flits of a message.
    operators : tuple of Operator
        Of a reduction.
    any_length : bool
        Whether messages may be shorter.

    Returns
    -------
    Program

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
    >>> program = compile_any_root(schedule, 2)
    >>> program.any_root, program.depth.min(axis=0).tolist()
    (True, [4, 4, 4, 4, 2])
    """
    collective = schedule.collective
    if not collective.rooted:
        raise InputError(f"Root must be left out for {collective.kind}, which has none, not any")
    if collective.single_origin and collective.to_all:
        return compile_broadcast(schedule, flits, any_length=any_length)
    if isinstance(schedule, Masked):
        return _unmasked(schedule, flits, operators, any_length=any_length)
    program = compile_rounds(schedule, flits, operators, any_length=any_length)
    mode, layout = program.mode, program.layout
    mode = replace(mode, any_root=True, by_offset=True, receive_map=_receive_map(program))
    if collective.personal:
        delay = look_up_delay(layout, flits, any_length=any_length)
        mode = replace(mode, send_map=_send_map(program), write_delay=delay)
    depth = np.broadcast_to(program.depth.max(axis=0), program.depth.shape)
    opened = replace(program, modes=(mode,), depth=depth)
    return _banked(opened) if collective.personal else opened


def _unmasked(
    schedule: Masked, flits: int, operators: tuple[Operator, ...], *, any_length: bool
) -> Program:
    """The program of a schedule that serves all roots alike: that of all of it."""
    match schedule.whole:
        case Pattern() as pattern:
            program = compile_pattern(pattern, flits, any_length=any_length)
        case table:
            program = compile_table(table, flits, operators, any_length=any_length)
    mode = replace(program.mode, schedule=schedule, any_root=True)
    return replace(program, modes=(mode,))


def _send_map(program: Program) -> AddressMap:
    """Where a node keeps what it sends: as node 0 does, by the offsets of destinations from it."""
    direct, nodes = program.mode.send_map, np.arange(program.topology.nodes)
    assert isinstance(direct, DirectMap)
    chunks = np.arange(program.schedule.chunks)
    located = direct.locate(0, nodes[:, None], chunks[None, :])
    return OffsetMap(program.topology, *located, ahead=True)


def _receive_map(program: Program) -> AddressMap:
    """Where a node keeps what it receives.

    The root keeps it as node 0 does, by the offsets of origins from it; others as the nodes at
    their offsets from the root do.
    """
    nodes, topology = program.mode.receive_map, program.topology
    assert isinstance(nodes, NodeMap)
    if program.schedule.collective.to_root:
        return OffsetMap(topology, nodes.memory[0], nodes.base[0], ahead=True)
    return OffsetMap(topology, nodes.memory[:, 0], nodes.base[:, 0])


def _banked(program: Program) -> Program:
    """The same with a memory of what a node sends for each reader, if that is possible."""
    mode, own = program.mode, len(program.memories) - 1
    send, receive, block = mode.send_map, mode.receive_map, program.block_flits
    assert isinstance(send, OffsetMap)
    assert isinstance(receive, OffsetMap)
    banks = send_banks(mode.loop, own, send.base.size)
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
    loop = replace(mode.loop, fields=banks.fields)
    mode = replace(mode, loop=loop, send_map=send, receive_map=receive)
    received, depth = program.depth[:, :own], np.array(banks.depth) * block
    depth = np.hstack([received, np.broadcast_to(depth, (len(received), len(depth)))])
    memories = (*program.memories[:own], *(program.memories[own] for _ in banks.depth))
    return replace(program, modes=(mode,), memories=memories, depth=depth)
