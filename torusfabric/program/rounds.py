"""Programs of schedules in rounds: circuits that are set up round by round.

In a round every node with something to send streams it over its injection ports, and the crossbars
on the way hold their settings until the last flit has arrived: ``1 + h + m`` cycles for a longest
path of ``h`` hops and a longest message of ``m`` flits. What arrives at an in-port is appended to
the memory of that port, unless the node has all of it already, so the address of every block is
known in advance. Blocks that a later round takes apart by groups are sent group by group, so that a
group lies in few runs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .address_map import DirectMap, NodeMap
from .cost import CycleCost
from .mode import Mode, block_flits
from .program import Program
from .round_follower import BlockFollower
from .round_plan import NodeRounds, Readers, RoundPlan
from .round_sums import SumFollower
from .timing import ROUND_DRAIN, ROUND_SETUP, round_pause
from .values import MADE, NEUTRAL, Loop, Memory, Order, Reads, Run, Writes
from .variants import number_equal
from .write_delay import direct_write_delay

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from ..topology import IntArray

__all__ = ["compile_rounds"]

#: More blocks at nodes (nodes times blocks) than this are not followed one by one.
MAX_HELD_BLOCKS = 2**22


def compile_rounds(
    schedule: Schedule,
    flits: int,
    operators: tuple[Operator, ...] = (),
    *,
    any_length: bool = False,
) -> Program:
    """The program of a schedule in rounds.

    Parameters
    ----------
    schedule : Schedule
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
        If there is too much to follow, one location for each node and block it holds, or a message
        of so many flits cannot be cut into equal chunks.

    Examples
    --------
    A round takes a cycle beyond its hops and flits, and the run three more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "broadcast", algorithm="diagonal")
    >>> program = compile_rounds(schedule, schedule.chunks)
    >>> print(program.mode.cost)
    alpha rounds + delta hops + tau flits + constant = 1 * 2 + 1 * 2 + 1 * 2 + 3 = 9 cycles
    """
    block = block_flits(schedule, flits)
    _check_size(schedule, sums=bool(operators))
    follower = SumFollower(schedule) if operators else BlockFollower(schedule)
    plan = follower.follow()
    variant_of, first = number_equal(plan.nodes)
    loop = _loop(plan, [plan.nodes[node] for node in first], plan.select[:, first], block)
    layout = schedule.collective.layout(schedule.topology, schedule.chunks)
    shape = (schedule.topology.nodes, layout.recv_parts, layout.part_chunks)
    slot = plan.slot.reshape(shape)
    mode = Mode(
        schedule=schedule,
        operators=operators,
        loop=loop,
        send_map=DirectMap(plan.ports, layout.part_chunks, block),
        receive_map=NodeMap(
            plan.memory.reshape(shape), np.where(slot >= 0, slot * block, -1), variant_of
        ),
        write_delay=direct_write_delay(layout, flits, any_length=any_length),
        moving=CycleCost(
            rounds=loop.rows,
            hops=int(plan.hops.sum()),
            flits=int(plan.blocks.sum()) * block,
            alpha=ROUND_SETUP,
            hop_cycles=1,
        ),
        any_length=any_length,
        known_by="round and address",
    )
    received = tuple(
        Memory((port, MADE) if port in plan.made else (port,)) for port in range(plan.ports)
    )
    return Program(
        topology=schedule.topology,
        flits=flits,
        modes=(mode,),
        memories=(*received, Memory((), own=True)),
        depth=np.array([plan.nodes[node].depth for node in first]) * block,
        variant_of=variant_of,
    )


def _check_size(schedule: Schedule, *, sums: bool) -> None:
    """Refuse what has too much to follow."""
    nodes = schedule.topology.nodes
    held = nodes * (schedule.blocks.per_origin if sums else schedule.blocks.count)
    if schedule.blocks.collective.personal and not sums:
        held //= nodes
    if held > MAX_HELD_BLOCKS:
        raise InputError(
            f"Nodes times blocks must be at most {MAX_HELD_BLOCKS} for hardware that works in "
            f"rounds, not {held} (plan and check have no such limit)"
        )


def _loop(plan: RoundPlan, variants: list[NodeRounds], select: IntArray, block: int) -> Loop:
    """The rows: the rounds."""
    injections, reads = _injections(plan, variants, block)
    rounds = len(plan.hops)
    return Loop(
        order=Order.ROW,
        flits=block,
        pause=round_pause(plan.hops),
        blocks=plan.blocks,
        draining=ROUND_DRAIN,
        select=select,
        delayed=(),
        injections=injections,
        reads=reads,
        writes=_writes(variants, plan.ports, block),
        departure=np.broadcast_to(np.arange(rounds)[:, None], (rounds, plan.ports)),
    )


def _injections(
    plan: RoundPlan, variants: list[NodeRounds], block: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[Reads, ...]]:
    """Injection ports, and what their readers read: as many of each as any variant needs."""
    most: list[int] = []
    for variant in variants:
        for injections in variant.send:
            most += [0] * (len(injections) - len(most))
            for number, readers in enumerate(injections):
                most[number] = max(most[number], len(readers))
    ends = np.cumsum([0, *most]).tolist()
    groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
    reads = []
    for number, count in enumerate(most):
        for reader in range(count):
            runs = [
                [_runs(plan, row, number, reader, block) for row in rows]
                for rows in zip(*(variant.send for variant in variants), strict=True)
            ]
            reads.append(Reads.of_lists(runs))
    return groups, tuple(reads)


def _runs(
    plan: RoundPlan, injections: tuple[Readers, ...], number: int, reader: int, block: int
) -> tuple[Run, ...]:
    """What a reader of an injection port reads in a round, in words.

    It is the word that changes nothing, while others of its injection port read more.
    """
    if number >= len(injections):
        return ()
    readers = injections[number]
    if reader >= len(readers):
        return (Run(NEUTRAL, 0, sum(run.length for run in readers[0])),)
    return tuple(
        Run(plan.memory_number(run.memory), run.slot * block, run.length) for run in readers[reader]
    )


def _writes(variants: list[NodeRounds], ports: int, block: int) -> tuple[Writes, ...]:
    """What the memory of each in-port stores: appended to what it has already."""
    table = np.array([variant.receive for variant in variants], int)
    hops, blocks = table.transpose(3, 2, 1, 0)
    writes = []
    for port in range(ports):
        before = np.cumsum(blocks[port], axis=0) - blocks[port]
        base = np.where(blocks[port] > 0, before * block, -1)
        source = np.where(hops[port] > 0, port, MADE)
        writes.append(Writes(base, blocks[port], hops[port], source))
    return tuple(writes)
