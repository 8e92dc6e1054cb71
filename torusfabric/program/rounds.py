"""Programs of schedules in rounds: circuits that are set up round by round.

In a round every node with something to send streams it over its injection ports, and the crossbars
on the way hold their settings until the last flit has arrived: ``1 + h + m`` cycles for a longest
path of links of ``h`` cycles, mostly one a hop, and a longest message of ``m`` flits. Where every
message is a block that goes one hop, rounds follow one another without a pause, each of as many
cycles as a block has flits, or as it takes until what has come can be sent on. What arrives
at an in-port is appended to the memory of that port, unless the node has all of it already, so the
address of every block is known in advance. Blocks that a later round takes apart by groups are sent
group by group, so that a group lies in few runs.

Where every message is a block that goes one hop, and none ever rests on its way, rounds are passed
flit by flit, a cycle each: blocks go from in-port to out-port, and only who wants one stores it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from .address_map import DirectMap, NodeMap
from .fields import (
    ACTIONS,
    IDLE,
    NEUTRAL,
    Action,
    Field,
    Loop,
    Order,
    Sources,
    fields_of,
    memories_of,
    number_equal,
)
from .mode import CycleCost
from .passing import passing_plan
from .request import Request
from .round_follower import follow_blocks
from .round_plan import RoundPlan
from .sum_follower import follow_sums
from .timing import ADDRESS, LINK, ROUND_SETUP, SETTING, round_pause, store_delay

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..topology import IntArray, Topology
    from .program import Program

__all__ = ["compile_rounds", "plan_rounds", "program_of"]

#: More blocks at nodes (nodes times blocks) than this are not followed one by one.
MAX_HELD_BLOCKS = 2**22


def compile_rounds(request: Request) -> Program:
    """The program of a schedule in rounds.

    Raises
    ------
    InputError
        If there is too much to follow, one location for each node and block it holds.

    Examples
    --------
    A round takes a cycle beyond its hops and flits, and the run three more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "broadcast", algorithm="diagonal")
    >>> program = compile_rounds(Request(schedule, schedule.chunks))
    >>> print(program.form.cost)
    alpha rounds + delta hops + tau flits + constant = 1 * 2 + 1 * 2 + 1 * 2 + 3 = 9 cycles
    """
    plan = plan_rounds(request, rests=request.fixed)
    program, block = program_of(request, plan), request.block
    paused = int(plan.blocks.sum()) * block + int(round_pause(plan.links).sum())
    if plan.rests and program.loop.rows * max(block, program.loop.least) > paused:
        return program_of(request, plan_rounds(request, rests=False))
    return program


def plan_rounds(request: Request, *, rests: bool) -> RoundPlan:
    """What all nodes do; rounds may follow one another without a pause."""
    schedule, sums = request.schedule, bool(request.operators)
    _check_size(schedule, sums=sums)
    if not sums and (passing := passing_plan(schedule)):
        return passing
    return (follow_sums if sums else follow_blocks)(schedule, rests=rests)


def program_of(request: Request, plan: RoundPlan, *, any_root: bool = False) -> Program:
    """The program of a plan.

    What a node sends is in one memory in rounds, in one for each chunk where messages stream. With
    any root, too, each chunk has a memory, of two halves: the lower for what a node would send as
    the root, the upper for what it has received.
    """
    block, topology, layout = request.block, request.topology, request.schedule.layout
    half, streams = 1 << (block - 1).bit_length(), plan.streams is not None
    loop, variant_of, first = _loop(plan, block, half if any_root else block)
    memories = (*plan.memories, *memories_of((), plan.depth.shape[1] - len(plan.memories)))
    own = [memory.own for memory in memories].index(True)
    send_map = DirectMap(own, layout.part_chunks, block, by_chunk=streams or any_root)
    receive_map, depth = plan.receive_map, plan.depth[first] * block
    if any_root:
        receive_map, depth = replace(send_map, base=half), np.full_like(depth, half + block)
    if receive_map is None:
        shape = (topology.nodes, layout.recv_parts, layout.part_chunks)
        base = np.where(plan.slot >= 0, plan.slot * block, -1)
        receive_map = NodeMap(plan.memory.reshape(shape), base.reshape(shape), variant_of)
    known_by = "the in-port" if streams else "round and address"
    return request.program(
        _by_flits(loop) if plan.passes else loop,
        send_map=send_map,
        receive_map=receive_map,
        moving=None if plan.passes else _cost(plan, block, topology),
        known_by="the root" if any_root else known_by,
        any_root=any_root,
        memories=memories,
        depth=depth,
        variant_of=variant_of,
    )


def _by_flits(loop: Loop) -> Loop:
    """The same rows, of a block each at the most, for the first flit of all blocks, then the next.

    Blocks that never rest need no pause: what leaves a node in a row came in the one before.
    """
    return replace(
        loop,
        order=Order.FLIT,
        pause=0 * loop.pause,
        blocks=0 * loop.blocks + 1,
        fields=tuple(map(_filled_in, loop.fields)),
    )


def _filled_in(field: Field) -> Field:
    """The same at all nodes, if it is at those that store: others have no such memory."""
    stores: IntArray = np.flatnonzero((field.values >= 0).any(axis=0))
    if not ACTIONS[field.point.action].stores or not len(stores):
        return field
    one = field.values[:, stores[:1]]
    if (field.values[:, stores] != one).any():
        return field
    return replace(field, values=np.broadcast_to(one, field.values.shape))


def _cost(plan: RoundPlan, block: int, topology: Topology) -> CycleCost:
    """What the cycles of rounds are made of, for blocks of so many flits."""
    links, flits = int(plan.links.sum()), int(plan.blocks.sum()) * block
    if plan.rests:
        return CycleCost(len(plan.links), 0, flits)
    # Where links differ, or sums wait on the way, a hop of several cycles counts as so many.
    each = 1 if plan.added else topology.one_latency or 1
    return CycleCost(len(plan.links), links // each, flits, alpha=ROUND_SETUP, hop_cycles=each)


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


def _loop(plan: RoundPlan, block: int, distance: int) -> tuple[Loop, IntArray, IntArray]:
    """The rows: the rounds, cut wherever a burst or a message begins or ends at any node.

    With them the variant of each node, and a node of each. Blocks are of so many flits; distance is
    that from the address of a slot of a memory to that of the next.
    """
    round_of, begin, end = _cut(plan)
    ends = np.append(np.diff(round_of) > 0, True)
    injections, memory, base = _reads(plan, round_of, begin, distance)
    write, source, tap = _stores(plan, round_of, begin, distance)
    added, stored = plan.added, store_delay(skew=plan.added.stored if plan.added else 0)
    late = [ADDRESS + cycles for cycles in added.late] if added else ADDRESS
    points: list[tuple[Action, IntArray, int | list[int]]] = [
        (Action.SELECT, plan.select[round_of], SETTING),
        *([(Action.OPERAND, added.operand[round_of], LINK)] if added else []),
        (Action.MEMORY, memory, late), (Action.READ, base, late),
        (Action.WRITE, write, stored), (Action.SOURCE, source, stored), (Action.TAP, tap, stored),
    ]  # fmt: skip
    done = np.concatenate([values for _, values, _ in points], axis=2).transpose(1, 0, 2)
    alike = zip(map(bytes, done), map(bytes, plan.depth), strict=True)
    variant_of, first = number_equal(alike)
    ports = plan.select.shape[2]
    departure = np.searchsorted(round_of, np.arange(len(plan.links)))
    loop = Loop(
        order=Order.ROW,
        flits=block,
        # Words of a round arrive in the pause behind its last row.
        pause=np.where(ends & (not plan.rests), round_pause(plan.links)[round_of], 0),
        blocks=end - begin,
        sources=Sources(
            ports,
            results=added is not None,
            injections=injections,
            made=added is not None and added.made,
        ),
        fields=tuple(
            field
            for action, values, delay in points
            for field in fields_of(action, values[:, first], delay)
        ),
        departure=np.broadcast_to(departure[:, None], (len(departure), ports)),
        least=_least(plan, round_of, begin) if plan.rests else 1,
        rests=plan.rests,
        streams=plan.streams,
    )
    return loop, variant_of, first


def _cut(plan: RoundPlan) -> tuple[IntArray, IntArray, IntArray]:
    """Of each row its round, and after how many blocks of that it begins and ends."""
    bursts = plan.bursts
    cuts = [
        (bursts.round, bursts.at),
        (bursts.round, bursts.at + bursts.length),
        (np.arange(len(plan.blocks)), plan.blocks),
    ]
    if plan.rests:  # a block a row
        several = np.flatnonzero(plan.blocks > 1)
        rounds = np.repeat(several, plan.blocks[several])
        cuts.append((rounds, 1 + np.arange(len(rounds)) - np.searchsorted(rounds, rounds)))
    round_of, end = np.unique(np.concatenate([np.stack(cut, axis=1) for cut in cuts]), axis=0).T
    there = (end > 0) | (plan.blocks[round_of] == 0)
    round_of, end = round_of[there], end[there]
    goes_on = np.append(False, np.diff(round_of) == 0)
    return round_of, np.where(goes_on, np.append(0, end[:-1]), 0), end


def _rows(
    round_of: IntArray, begin: IntArray, rounds: IntArray, at: IntArray, length: IntArray
) -> tuple[IntArray, IntArray]:
    """The rows of runs of blocks: the index of a run, and a row of it, elementwise."""
    most = int(begin.max(initial=0) + length.max(initial=0)) + 1
    low, high = (np.searchsorted(round_of * most + begin, rounds * most + k)
                 for k in (at, at + length))  # fmt: skip
    run = np.repeat(np.arange(len(low)), high - low)
    return run, np.arange(len(run)) - (np.cumsum(high - low) - high)[run]


def _least(plan: RoundPlan, round_of: IntArray, begin: IntArray) -> int:
    """The least cycles of a row with which all that is read in later rows has been stored."""
    bursts, receipts = plan.bursts, plan.receipts
    memories, slots = plan.depth.shape[1], 2 + int(plan.depth.max())

    def key(node: IntArray, memory: IntArray, slot: IntArray) -> IntArray:
        found: IntArray = (node * memories + memory) * slots + slot
        return found

    run, row = _rows(round_of, begin, receipts.round, 0 * receipts.length, receipts.length)
    stored = key(receipts.node[run], receipts.memory[run], receipts.slot[run] + begin[row])
    order = np.argsort(stored)
    stored, there, links = stored[order], row[order], receipts.links[run][order]
    run, row = _rows(round_of, begin, bursts.round, bursts.at, bursts.length)
    slot = bursts.slot[run] + begin[row] - bursts.at[run]
    read = key(bursts.node[run], bursts.memory[run], slot)
    at = np.minimum(np.searchsorted(stored, read), len(stored) - 1)
    known = stored[at] == read
    at, apart = at[known], row[known] - there[at[known]]
    assert (apart > 0).all(), "a block is sent on in a later row"
    least = SETTING - ADDRESS + round_pause(links[at])
    return int(np.max(-(-least // apart), initial=1))


def _reads(
    plan: RoundPlan, round_of: IntArray, begin: IntArray, distance: int
) -> tuple[tuple[tuple[int, ...], ...], IntArray, IntArray]:
    """Injection ports, and the memories and first addresses that their readers read.

    There are as many of each as any node needs. A reader reads the word that changes nothing while
    others of its injection port read more.
    """
    bursts = plan.bursts
    most = np.ones(int(bursts.injection.max(initial=0)) + 1, int)
    np.maximum.at(most, bursts.injection, bursts.place + 1)
    ends = np.append(0, np.cumsum(most))
    run, row = _rows(round_of, begin, bursts.round, bursts.at, bursts.length)
    where = row, bursts.node[run], (ends[bursts.injection] + bursts.place)[run]
    memory, base = np.full((2, len(round_of), plan.select.shape[1], ends[-1]), IDLE)
    memory[where] = bursts.memory[run]
    base[where] = (bursts.slot[run] + begin[row] - bursts.at[run]) * distance
    resting = (base < 0) & (base[..., np.repeat(ends[:-1], most)] >= 0)
    memory[resting], base[resting] = NEUTRAL, 0
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends.tolist())), memory, base


def _stores(plan: RoundPlan, round_of: IntArray, begin: IntArray, distance: int) -> IntArray:
    """What memories store in each row at each node: first addresses, sources and taps."""
    receipts = plan.receipts
    run, row = _rows(round_of, begin, receipts.round, 0 * receipts.length, receipts.length)
    stored = np.full((3, len(round_of), plan.select.shape[1], len(plan.memories)), IDLE)
    stored[:, row, receipts.node[run], receipts.memory[run]] = (
        (receipts.slot[run] + begin[row]) * distance,
        receipts.source[run],
        receipts.links[run],
    )
    return stored
