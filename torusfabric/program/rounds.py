"""Programs of schedules in rounds: circuits that are set up round by round.

In a round every node with something to send streams it over its injection ports, and the crossbars
on the way hold their settings until the last flit has arrived: ``1 + h + m`` cycles for a longest
path of ``h`` hops and a longest message of ``m`` flits. What arrives at an in-port is appended to
the memory of that port, unless the node has all of it already, so the address of every block is
known in advance. Blocks that a later round takes apart by groups are sent group by group, so that a
group lies in few runs.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .address_map import DirectMap, NodeMap
from .fields import (
    IDLE,
    NEUTRAL,
    Action,
    Field,
    Loop,
    Memory,
    Order,
    Sources,
    fields_of,
    number_equal,
)
from .mode import CycleCost, Mode, block_flits
from .program import Program
from .round_follower import BlockFollower
from .round_plan import NodeRounds, Readers, RoundPlan
from .round_sums import SumFollower
from .timing import ADDRESS, ROUND_SETUP, SETTING, round_pause, store_delay
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
            rounds=len(plan.hops),
            hops=int(plan.hops.sum()),
            flits=int(plan.blocks.sum()) * block,
            alpha=ROUND_SETUP,
            hop_cycles=1,
        ),
        any_length=any_length,
        known_by="round and address",
    )
    received = tuple(Memory((port,)) for port in range(plan.ports))
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
    """The rows: the rounds, cut wherever a burst begins or ends at any node."""
    cuts = [_cuts(plan, number, variants) for number in range(len(plan.hops))]
    round_of = np.repeat(np.arange(len(cuts)), [len(ends) for ends in cuts])
    end = np.array([end for ends in cuts for end in ends])
    first = np.append(True, np.diff(round_of) > 0)
    begin = np.where(first, 0, np.append(0, end[:-1]))
    rows = list(zip(round_of.tolist(), begin.tolist(), strict=True))
    injections, reads = _injections(plan, variants, rows, block)
    departure = np.flatnonzero(first)[:, None]
    sources = Sources(plan.ports, injections=injections)
    return Loop(
        order=Order.ROW,
        flits=block,
        # Words of a round arrive in the pause behind its last row.
        pause=np.where(np.append(first[1:], True), round_pause(plan.hops)[round_of], 0),
        blocks=end - begin,
        sources=sources,
        fields=(
            *fields_of(Action.SELECT, select[round_of], SETTING),
            *reads,
            *_stores(variants, round_of, begin, sources, block),
        ),
        departure=np.broadcast_to(departure, (len(cuts), plan.ports)),
    )


def _cuts(plan: RoundPlan, number: int, variants: list[NodeRounds]) -> list[int]:
    """After how many blocks of a round its rows end: wherever a burst or a message does."""
    ends = {int(plan.blocks[number])}
    for variant in variants:
        ends |= {receipt.length for receipt in variant.receive[number]}
        for readers in variant.send[number]:
            for runs in readers:
                ends |= set(accumulate(run.length for run in runs))
    return sorted(ends - {0}) or [0]


def _injections(
    plan: RoundPlan, variants: list[NodeRounds], rows: list[tuple[int, int]], block: int
) -> tuple[tuple[tuple[int, ...], ...], list[Field]]:
    """Injection ports, and what their readers read: as many of each as any variant needs."""
    most: list[int] = []
    for variant in variants:
        for injections in variant.send:
            most += [0] * (len(injections) - len(most))
            for number, readers in enumerate(injections):
                most[number] = max(most[number], len(readers))
    ends = np.cumsum([0, *most]).tolist()
    groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
    fields: list[Field] = []
    for number, group in enumerate(groups):
        for place, reader in enumerate(group):
            bursts = np.array(
                [
                    [_burst(plan, variant.send[k], number, place, at) for variant in variants]
                    for k, at in rows
                ]
            )
            memory, slot = bursts[..., :1], bursts[..., 1:]
            base = np.where(slot >= 0, slot * block, IDLE)
            fields += fields_of(Action.MEMORY, memory, ADDRESS, first=reader)
            fields += fields_of(Action.READ, base, ADDRESS, first=reader)
    return groups, fields


def _burst(
    plan: RoundPlan, injections: tuple[Readers, ...], number: int, place: int, at: int
) -> tuple[int, int]:
    """The memory and slot that a reader of an injection port reads after so many blocks of a round.

    It is the word that changes nothing, while others of its injection port read more.
    """
    readers = injections[number] if number < len(injections) else ()
    if place >= len(readers):
        reading = bool(readers) and at < sum(run.length for run in readers[0])
        return (NEUTRAL, 0) if reading else (IDLE, IDLE)
    for memory, slot, length in readers[place]:
        if at < length:
            return (NEUTRAL, 0) if memory == NEUTRAL else (plan.memory_number(memory), slot + at)
        at -= length
    return IDLE, IDLE


def _stores(
    variants: list[NodeRounds], round_of: IntArray, begin: IntArray, sources: Sources, block: int
) -> list[Field]:
    """What the memory of each in-port stores: appended to what it has already."""
    table = np.array([variant.receive for variant in variants], int)
    fields: list[Field] = []
    for port in range(sources.ports):
        hops, length = table[:, :, port].transpose(2, 1, 0)
        before = (np.cumsum(length, axis=0) - length)[round_of] + begin[:, None]
        there = begin[:, None] < length[round_of]
        source = np.where(hops > 0, port, sources.first_injection)[round_of]
        facts = {
            Action.WRITE: before * block,
            Action.SOURCE: source,
            Action.TAP: hops[round_of],
        }
        for action, values in facts.items():
            chosen = np.where(there, values, IDLE)[..., None]
            fields += fields_of(action, chosen, store_delay(), first=port)
    return fields
