"""The planner for schedules in rounds: circuits that are set up round by round.

In a round, every sender streams its messages over its injection ports. All crossbars on the paths
hold their settings until the last flit has arrived. A round takes ``1 + h + m`` cycles, where h is
the cycles of the links on the longest path, mostly one a hop, and m the flits of the longest
message.

The actions of all nodes are planned as a `RoundPlan`: *bursts* (a burst is a series of blocks in
successive memory slots, which a reader reads) and *receipts* (a receipt is the write of a message
that arrives). A memory *slot* is the space of one block.

If every message is a single block that goes one hop, rounds follow one another without a pause.
Each then takes the cycles of a block, or those until arrived words can be sent on, if these are
more. If furthermore no block rests on its way, rounds are executed flit by flit, one cycle each:
blocks go from in-port to out-port, and only their destinations store them.

Words that arrive at an in-port are appended to the memory of that port, unless the node has all of
them already. So the address of every block is known in advance. In a later round, the receiver of
these blocks may send some of them to one node and others to another node. A sender therefore orders
the blocks of a message by these sets. Each set then lies in few series of successive memory slots
at the receiver, and is read in few bursts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import Pattern, Rounds, Transfers
from ..schedule.transfers import NOTHING
from .address_map import AddressMap
from .any_root import separate_chunk_memories, separate_send_memories
from .fields import (
    IDENTITY_MEMORY,
    IDLE,
    Action,
    Loop,
    Order,
    Sources,
    first_own_memory,
    make_node_memories,
)
from .mode import CycleCost
from .moves import CompileRequest, Moves, Points, group_equal_nodes, slot_addresses
from .passing import passing_plan, tree_plan
from .round_follower import RoundPlan, follow_blocks
from .sum_follower import follow_arriving_sums, follow_sums, link_latencies
from .timing import ADDRESS, PASS, ROUND_SETUP, SETTING, round_pause_cycles

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..topology import IntArray

__all__ = ["arriving_sum_moves", "round_moves"]

#: The largest number of pairs of a node and a block that are followed one by one.
MOST_FOLLOWED_BLOCKS = 2**22


def round_moves(request: CompileRequest) -> Moves:
    """Return the moves (actions of all nodes) of a schedule of circuits round by round.

    If every block leaves a node in the cycle after it arrives, rounds are executed flit by flit.
    Otherwise a round ends with a pause, in which its last words arrive. Where every message is one
    block that goes one hop, rounds follow one another without pauses, if this takes no more cycles.

    Parameters
    ----------
    request : CompileRequest
        Schedule, with the properties that its program must have.

    Raises
    ------
    InputError
        If nodes times blocks, the number of pairs that must be followed, is too large.

    Examples
    --------
    A round takes a cycle beyond its hops and flits, and the run three more.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "broadcast", algorithm="diagonal")
    >>> program = tf.compile(schedule)
    >>> print(program.form.cost)
    alpha rounds + delta hops + tau flits + constant = 1 * 2 + 1 * 2 + 1 * 2 + 3 = 9 cycles
    """
    schedule, sums = request.schedule, bool(request.operators)
    if isinstance(schedule, Pattern) and schedule.streams:
        plan, skew = tree_plan(schedule)
        plan = separate_chunk_memories(plan) if request.has_half_memories else plan
        return _make_moves(request, plan, skew=skew)
    nodes = schedule.topology.nodes
    held = nodes * (schedule.blocks.blocks_per_origin if sums else schedule.blocks.n_blocks)
    if schedule.blocks.collective.personal and not sums:
        held //= schedule.blocks.group_size
    if held > MOST_FOLLOWED_BLOCKS:
        raise InputError(
            f"Nodes times blocks must be at most {MOST_FOLLOWED_BLOCKS} for hardware that works in "
            f"rounds, not {held}; choose fewer chunks, a smaller network or another algorithm"
        )
    if schedule.topology.spacing_multiple > 1:
        return _slow_link_moves(request)
    if request.has_half_memories:
        return _make_moves(request, separate_chunk_memories(follow_blocks(schedule, rests=False)))
    passing = None if sums else passing_plan(schedule)
    if passing:
        moves = _make_moves(request, passing, by_flit=True)
        stores = moves.points[-1].values
        stores |= {action: _common_values(values) for action, values in stores.items()}
        return moves
    follow = follow_sums if sums else follow_blocks
    # With loaded tables, and with any root, every round ends with a pause.
    plan = follow(schedule, rests=request.fixed and not request.any_root)
    moves = _make_moves(request, plan)
    paused = int(plan.blocks.sum()) * request.block_flits + int(
        round_pause_cycles(plan.links).sum()
    )
    if plan.rests and moves.loop.n_rows * max(request.block_flits, moves.loop.least) > paused:
        return _make_moves(request, follow(schedule, rests=False))
    return moves


def _slow_link_moves(request: CompileRequest) -> Moves:
    """Return the moves of a schedule on a network in which some links carry no flit in each cycle.

    Such a link has spacing n: it carries a message in at most one of n successive rounds. If blocks
    have one flit, a round is a row of at least one cycle. Longer blocks go flit by flit: a round is
    then as many rows of one cycle as words need to be sent on, and all rows are repeated for each
    flit.
    """
    schedule, follow = request.schedule, follow_sums if request.operators else follow_blocks
    plan = follow(schedule, rests=True)
    if not plan.rests:
        raise InputError(
            "Links with rates below 1 need messages of one block that go one hop a round, which "
            f"{schedule.algorithm} does not have; choose another algorithm"
        )
    if request.block_flits == 1 and not request.any_length:
        return _make_moves(request, plan)
    least = _least_row_cycles(plan, *_cut_rows(plan)[:2])
    if least > 1:
        none = Transfers.hop(np.zeros(0, int), np.zeros(0, int), NOTHING)
        spaced = [each for one in schedule.rounds() for each in (one, *[none] * (least - 1))]
        plan = follow(Rounds(**schedule.head, transfers=tuple(spaced)), rests=True)
    moves = _make_moves(request, plan, by_flit=True)
    loop = replace(moves.loop, departure=moves.loop.departure[::least])
    return replace(moves, loop=loop)


def arriving_sum_moves(request: CompileRequest) -> tuple[Schedule, Moves] | None:
    """Return the moves of a reduction in which nodes add each word as it arrives.

    The result also has the schedule, of which some rounds have become several, see
    `follow_arriving_sums`. It is None if nodes cannot add the words of this schedule so.
    """
    schedule = request.schedule
    found = follow_arriving_sums(schedule) if isinstance(schedule, Rounds) else None
    if found is None:
        return None
    split, plan, operands = found
    return split, _make_moves(replace(request, schedule=split), plan, operands=operands)


def _make_moves(
    request: CompileRequest, plan: RoundPlan, *, by_flit: bool = False,
    skew: IntArray | None = None, operands: IntArray | None = None,
) -> Moves:  # fmt: skip
    """Return the moves for a plan of rounds: the actions of all nodes, row by row.

    A round becomes one or several rows. A new row begins wherever a message, or a burst (a series
    of blocks that is read from successive addresses), begins or ends.

    A node keeps the message that it sends in one memory. If runs choose the root, it has such a
    memory for each reader, or, in a broadcast, for each chunk.

    Parameters
    ----------
    request : CompileRequest
        Schedule, with the properties that its program must have.
    plan : RoundPlan
        Actions of all nodes in the rounds of the schedule.
    by_flit : bool
        True to execute rows flit by flit without a pause, one cycle each. Words that leave a node
        in a row must have arrived early enough.
    skew : ndarray of int, optional
        For words that pass down trees: the cycles by which they leave each node later than the
        root, as in `Loop.departure_skew`.
    operands : ndarray of int16, shape (rounds, nodes, ports), optional
        For words that nodes add as they arrive: the source of the second operand of each operator.
    """
    topology, layout, block = request.topology, request.schedule.layout, request.block_flits
    parts, chunks, own = layout.send_parts, layout.part_chunks, first_own_memory(plan.memories)
    if request.any_root and request.schedule.collective.personal:
        # A node stores its message like node 0, by the offsets of destinations from the node.
        plan, memory, slot = separate_send_memories(plan)
        memory, base = (x.reshape(1, -1, chunks) for x in (memory, slot * block))
        send_map = AddressMap.from_offset_table(memory, base, topology, ahead=True)
    elif own < plan.depth.shape[1] - 1:
        send_map = AddressMap.from_chunk_memories(own, chunks)
    else:
        send_map = AddressMap.from_sequence(own, parts, chunks, block)
    known_by = "round and address" if skew is None else "the in-port"
    if request.has_half_memories:
        known_by = "the root"
    round_of, begin, end = _cut_rows(plan)
    ends = np.append(np.diff(round_of) > 0, True)
    injections, reads = _reader_slots(plan, round_of, begin)
    receipts = plan.receipts
    run, row = _covered_rows(round_of, begin, receipts.round, 0 * receipts.length, receipts.length)
    stored = np.full((3, len(round_of), topology.nodes, len(plan.memories)), IDLE)
    stored[:, row, receipts.node[run], receipts.memory[run]] = (
        receipts.slot[run] + begin[row], receipts.source[run], receipts.links[run],
    )  # fmt: skip
    memory, slot = reads
    routers, late = [Points({Action.SELECT: plan.select[round_of]})], 0 * slot[0, 0]
    if operands is not None:
        # The sum of a node is read when a word arrives.
        for number, links in enumerate(link_latencies(topology), 1):
            late[number * topology.ports :] = links
        routers.append(Points({Action.OPERAND: operands[round_of]}, topology.one_latency or PASS))
    points, depth, variant_of = group_equal_nodes(
        (*routers, Points.from_readers(memory, slot, late), Points.from_memories(*stored)),
        plan.depth,
    )
    steps = max(request.schedule.round_count, len(plan.links))
    departure = np.searchsorted(round_of, np.arange(len(plan.links)))
    loop = Loop(
        order=Order.FLIT if by_flit else Order.ROW,
        flits=block,
        # Words of a round arrive in the pause behind its last row.
        pause=np.where(ends & (not plan.rests), round_pause_cycles(plan.links)[round_of], 0),
        blocks=end - begin,
        sources=Sources(topology.ports, results=operands is not None, injections=injections),
        departure=np.broadcast_to(departure[:, None], (steps, topology.ports)),
        departure_skew=np.zeros(1, int) if skew is None else skew,
        least=_least_row_cycles(plan, round_of, begin) if plan.rests else 1,
        rests=plan.rests,
    )
    if by_flit:
        loop = replace(loop, pause=0 * loop.pause, blocks=0 * loop.blocks + 1, least=1, rests=False)
    return Moves(
        loop=loop,
        points=points,
        memories=(*plan.memories, *make_node_memories((), depth.shape[1] - len(plan.memories))),
        depth=depth,
        variant_of=variant_of,
        send_map=send_map,
        receive_map=_receive_map(request, plan, variant_of),
        known_by=known_by,
        cost=None if by_flit else _round_cost(plan, request),
    )


def _round_cost(plan: RoundPlan, request: CompileRequest) -> CycleCost:
    """Return the cycles of a run as a formula of rounds, hops and flits (see `CycleCost`).

    The run executes the rounds of `plan`, with the length of blocks in `request`. Cycles that a run
    takes once, at its start and end, are not included.
    """
    flits = int(plan.blocks.sum()) * request.block_flits
    if request.topology.spacing_multiple > 1:
        flits = len(plan.links) * request.block_flits  # rounds in which nothing is sent count
    if plan.rests:
        return CycleCost(len(plan.links), 0, flits)
    # If links differ in latency, a hop of k cycles counts as k hops.
    each = request.topology.one_latency or 1
    hops = int(plan.links.sum()) // each
    return CycleCost(len(plan.links), hops, flits, alpha=ROUND_SETUP, hop_cycles=each)


def _cut_rows(plan: RoundPlan) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows of the program into which the rounds of `plan` are cut.

    A row ends wherever a message ends, or a burst (a series of blocks that is read from successive
    addresses) begins or ends.

    Returns
    -------
    round, begin, end : ndarray of int, shape (rows,)
        Round of each row, and the number of blocks of this round that are sent before the row
        begins, and before it ends.
    """
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


def _covered_rows(
    round_of: IntArray, begin: IntArray, rounds: IntArray, at: IntArray, length: IntArray
) -> tuple[IntArray, IntArray]:
    """Return all rows in which the blocks of each series are sent.

    A series is a number of successive blocks of a round. If a round is cut into rows before blocks
    0, 2 and 3, a series of the blocks 1 to 3 would be sent in all of these rows.

    Parameters
    ----------
    round_of, begin : ndarray of int, shape (rows,)
        Round of each row, and the number of blocks of the round before the row, as from
        `_cut_rows`.
    rounds, at, length : ndarray of int, shape (series,)
        Round of each series, the number of blocks of the round before it, and its number of blocks.

    Returns
    -------
    series, row : ndarray of int
        All pairs of the index of a series and one of its rows.
    """
    most = int(begin.max(initial=0) + length.max(initial=0)) + 1
    low, high = (np.searchsorted(round_of * most + begin, rounds * most + k)
                 for k in (at, at + length))  # fmt: skip
    run = np.repeat(np.arange(len(low)), high - low)
    return run, np.arange(len(run)) - (np.cumsum(high - low) - high)[run]


def _least_row_cycles(plan: RoundPlan, round_of: IntArray, begin: IntArray) -> int:
    """Return the least number of cycles that a row of `plan` must take.

    With fewer cycles, a later row would read a word before the word is stored. The arrays
    `round_of` and `begin` are those of `_cut_rows`.
    """
    bursts, receipts = plan.bursts, plan.receipts
    memories, slots, rows = plan.depth.shape[1], 2 + int(plan.depth.max()), len(round_of)

    def access_key(node: IntArray, memory: IntArray, slot: IntArray, row: IntArray) -> IntArray:
        found: IntArray = ((node * memories + memory) * slots + slot) * rows + row
        return found

    run, row = _covered_rows(round_of, begin, receipts.round, 0 * receipts.length, receipts.length)
    slot = receipts.slot[run] + begin[row]
    stored = access_key(receipts.node[run], receipts.memory[run], slot, row)
    order = np.argsort(stored)
    stored, there, links = stored[order], row[order], receipts.links[run][order]
    run, row = _covered_rows(round_of, begin, bursts.round, bursts.at, bursts.length)
    slot = bursts.slot[run] + begin[row] - bursts.at[run]
    read = access_key(bursts.node[run], bursts.memory[run], slot, row)
    # The word that is read is the last one that was stored there in an earlier row.
    at = np.maximum(np.searchsorted(stored, read) - 1, 0)
    known = (stored[at] // rows == read // rows) & (stored[at] < read)
    at, apart = at[known], row[known] - there[at[known]]
    least = SETTING - ADDRESS + round_pause_cycles(links[at])
    return int(np.max(-(-least // apart), initial=1))


def _reader_slots(
    plan: RoundPlan, round_of: IntArray, begin: IntArray
) -> tuple[tuple[tuple[int, ...], ...], IntArray]:
    """Return the readers of each injection port, and the slots that they read in each row.

    An injection port is an input of the router for words from memories; there are as many as any
    node needs. A memory slot is the space of one block. The second result has the shape (2, rows,
    nodes, readers), and is made from the bursts (series of successive reads) of `plan`; `round_of`
    and `begin` are those of `_cut_rows`. If the words of several readers are combined, a reader
    without a word gives the identity word.
    """
    bursts = plan.bursts
    most = np.ones(int(bursts.injection.max(initial=0)) + 1, int)
    np.maximum.at(most, bursts.injection, bursts.place + 1)
    ends = np.append(0, np.cumsum(most))
    run, row = _covered_rows(round_of, begin, bursts.round, bursts.at, bursts.length)
    where = row, bursts.node[run], (ends[bursts.injection] + bursts.place)[run]
    memory, slot = reads = np.full((2, len(round_of), plan.select.shape[1], ends[-1]), IDLE)
    memory[where] = bursts.memory[run]
    slot[where] = bursts.slot[run] + begin[row] - bursts.at[run]
    resting = (slot < 0) & (slot[..., np.repeat(ends[:-1], most)] >= 0)
    memory[resting], slot[resting] = IDENTITY_MEMORY, 0
    return tuple(tuple(range(a, b)) for a, b in pairwise(ends.tolist())), reads


def _common_values(values: IntArray) -> IntArray:
    """Return a setting of the memories with equal values at as many nodes as possible.

    `values` is the setting, such as the write address, shape (rows, nodes, memories), with negative
    entries where nothing is stored. A node that never stores words in a memory can have any setting
    for it. If all other nodes have equal settings for this memory, the node gets the same. Why: the
    sequencer can then send one setting to all nodes.
    """
    shared: IntArray = values.copy()
    for number, of_memory in enumerate(values.transpose(2, 0, 1)):
        stores = np.flatnonzero((of_memory >= 0).any(axis=0))
        if len(stores) and (of_memory[:, stores] == of_memory[:, stores[:1]]).all():
            shared[..., number] = of_memory[:, stores[:1]]
    return shared


def _receive_map(request: CompileRequest, plan: RoundPlan, variant_of: IntArray) -> AddressMap:
    """Return the table of addresses of received blocks, which lie at the locations in `plan`.

    If each run chooses the root (`request.any_root`), the plan is one for root 0, and blocks are
    found by offsets. In a gather, the root stores the block of an origin at offset d from the root
    as node 0 of the plan stores the block of node d. In a broadcast or scatter, the node at offset
    d from the root stores its blocks as node d of the plan does. Otherwise the table has a row for
    each node, or for each variant: ``variant_of[v]`` is a number that is equal for all nodes that
    act like node v.
    """
    layout, topology, words = request.schedule.layout, request.topology, request.words_per_slot
    if request.has_half_memories:
        return AddressMap.from_chunk_memories(0, layout.part_chunks, words)
    shape = topology.nodes, layout.recv_parts, layout.part_chunks
    memory, slot = (each.reshape(shape) for each in plan.located)
    base = slot_addresses(slot, words)
    if not request.any_root:
        return AddressMap.from_table(memory, base, topology, variant_of)
    if request.schedule.collective.to_root:
        return AddressMap.from_offset_table(memory[:1], base[:1], topology, ahead=True)
    return AddressMap.from_offset_table(memory[None, :, 0], base[None, :, 0], topology)
