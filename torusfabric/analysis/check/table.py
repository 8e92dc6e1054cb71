"""Proof of a translation-invariant `Table` by looking at one origin, or one owner of sums.

Every node does the same relative to itself, so block (origin, chunk) is at ``origin + d`` exactly
when (0, chunk) is at ``d``. In a step each node sends one block on each port in use: an arc never
carries two, and ports are counted once for all nodes. So a table is right if every delivery at an
offset follows an earlier one at the offset a hop before, or starts from the origin (Fragopoulou and
Akl, Lemma 5), and if the blocks are delivered at all offsets.

In a reduction, what is true of the sums that belong to node 0 is true of all. Only how many
contributions each offset keeps has to be followed: a partial sum moves, so no contribution is in
two of them, and a table names for each sum that it sends all that has come together at its sender,
which is what its sender keeps unless it has sent its own contribution before.
"""

from typing import Any, NoReturn

import numpy as np

from ...schedule import Duplex, Schedule, Table
from ...topology import BoolArray, IntArray
from .fault import busy_arc, busy_node, fault, unfinished
from .traffic import Traffic

__all__ = ["check_sums_table", "check_table", "inspect_table", "raise_busy", "table_traffic"]


def inspect_table(schedule: Table) -> None:
    """Check that the entries of a table have the right shape and name blocks that exist."""
    topology = schedule.topology
    personal = schedule.collective.personal and not schedule.collective.reducing
    shape = (len(schedule.offset), topology.ports)
    if personal and schedule.destination is None:
        raise fault(schedule, None, f"a table for {schedule.collective.kind} needs destinations")
    columns: list[tuple[Any, int, int, str]] = [
        (schedule.offset, -1, topology.nodes, "offset"),
        (schedule.chunk, 0, schedule.chunks, "chunk"),
    ]
    if personal:
        columns.append((schedule.destination, 0, schedule.blocks.goals, "destination"))
    for column, _, _, _ in columns:
        if np.shape(column) != shape:
            raise fault(schedule, None, f"the entries of a table must have shape {shape}")
    used = schedule.offset != -1
    for column, low, high, name in columns:
        bad = np.argwhere(used & ((column < low) | (column >= high)))
        if len(bad):
            raise fault(schedule, int(bad[0][0]) + 1, f"sends a block whose {name} does not exist",
                        node=0, port=bad[0][1])  # fmt: skip


def table_traffic(schedule: Table) -> tuple[int, tuple[int, ...]]:
    """How much a table carries: transfers of all steps, and for each step 1 or 0 for none."""
    used = schedule.offset >= 0
    return int(used.sum()) * schedule.topology.nodes, tuple(used.any(axis=1).astype(int).tolist())


def check_table(schedule: Table) -> Traffic:
    """Check a table for an all-gather or a total exchange.

    Parameters
    ----------
    schedule : Table
        With entries that `inspect_table` accepts.

    Raises
    ------
    ScheduleError
        At the first fault, as it shows at node 0.
    """
    step, port = np.nonzero(schedule.offset >= 0)
    key, before, starts = _keys(schedule, step, port)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    known = np.concatenate([key[first], [np.iinfo(np.int64).max]])
    at = np.minimum(np.searchsorted(known, before), len(first))
    delivered = np.append(step[first], schedule.round_count)
    early = ~starts & ((known[at] != before) | (delivered[at] >= step))
    _raise_first(schedule, step, port, early)
    _check_coverage(schedule, known[:-1])
    transfers, moving = table_traffic(schedule)
    fresh = np.zeros(len(first), bool)
    fresh[which] = schedule.offset[step, port] != 0
    repeated = transfers - int(fresh.sum()) * schedule.topology.nodes
    return Traffic.of_steps(transfers, moving, duplicates=repeated)


def _encode(
    schedule: Table, offset: IntArray, chunk: IntArray, destination: IntArray | None
) -> IntArray:
    """A number for (offset, chunk) or (destination, offset, chunk)."""
    key: IntArray = np.asarray(offset, np.int64) * schedule.chunks + chunk
    if destination is not None:
        key = key + np.asarray(destination, np.int64) * schedule.topology.nodes * schedule.chunks
    return key


def _keys(schedule: Table, step: IntArray, port: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
    """What each entry delivers, what must have been delivered before, and whether that is own."""
    topology = schedule.topology
    offset, chunk = schedule.offset[step, port], schedule.chunk[step, port]
    destination = schedule.destination
    if destination is not None:
        destination = destination[step, port]
    previous = topology.subtract(offset, topology.generators[port])
    key = _encode(schedule, offset, chunk, destination)
    return key, _encode(schedule, previous, chunk, destination), previous == 0


def raise_busy(schedule: Schedule, step: int, entries: IntArray) -> None:
    """Raise a fault if a step uses both ways of a link in half duplex, or too many ports.

    The entries of the step are one a port, -1 where that is idle.
    """
    used = entries >= 0
    ports = np.flatnonzero(used)
    both = ports[used[schedule.topology.opposite[ports]]]
    if schedule.duplex == Duplex.HALF and both.size:
        raise busy_arc(schedule, step + 1, 0, both[0])
    if len(ports) > schedule.ports:
        raise busy_node(schedule, step + 1, "sends", 0, ports[schedule.ports])


def _raise_first(schedule: Table, step: IntArray, port: IntArray, early: BoolArray) -> None:
    """Raise the first fault of any step, if any."""
    topology = schedule.topology
    first = np.flatnonzero(early)
    stop = schedule.round_count if not first.size else step[first[0]] + 1
    if schedule.duplex == Duplex.HALF or schedule.ports < topology.ports:
        for now in range(stop):
            raise_busy(schedule, now, schedule.offset[now])
    if not first.size:
        return
    now, bad = stop - 1, port[first[0]]
    origin = topology.subtract(topology.generators[bad], schedule.offset[now, bad])
    destination = schedule.destination
    if destination is not None:
        destination = schedule.goal(origin, destination[now, bad])
    block = schedule.blocks.encode(origin, schedule.chunk[now, bad], destination)
    raise fault(schedule, now + 1, "sends {block} before it holds it", node=0, port=bad,
                block=block)  # fmt: skip


def _check_coverage(schedule: Table, delivered: IntArray) -> None:
    """Check that all offsets, or all destinations, are delivered."""
    topology, blocks, personal = schedule.topology, schedule.blocks, schedule.collective.personal
    offset = blocks.targets[0] if schedule.collective.local else np.arange(1, topology.nodes)
    goal = np.arange(len(offset)) if schedule.collective.local else offset
    chunk = np.tile(np.arange(schedule.chunks), len(offset))
    offset, goal = np.repeat(offset, schedule.chunks), np.repeat(goal, schedule.chunks)
    required = _encode(schedule, offset, chunk, goal if personal else None)
    missing = ~np.isin(required, delivered)
    if missing.any():
        origin = topology.subtract(0, offset[missing])
        named = schedule.goal(origin, goal[missing])
        raise unfinished(schedule, 0, blocks.encode(origin, chunk[missing], named).min())


def check_sums_table(schedule: Table) -> Traffic:
    """Check a table for a reduce-scatter or an all-reduce.

    Parameters
    ----------
    schedule : Table
        With entries that `inspect_table` accepts, and chunks below its `sums_of_owner`.

    Raises
    ------
    ScheduleError
        At the first fault, as it shows at node 0.
    """
    topology, nodes = schedule.topology, schedule.topology.nodes
    # Of the sums of node 0: how many contributions each offset keeps, and whether it has sent any.
    count = np.ones((nodes, schedule.sums_of_owner), np.int64)
    sent = np.zeros(count.shape, bool)

    def stop(k: int, text: str) -> NoReturn:
        """Raise a fault of node 0, when it stands at an offset from the owner of a sum."""
        owner = int(topology.subtract(0, sender[k]))
        raise fault(schedule, step + 1, text, node=0, port=ports[k],
                    block=_contribution(schedule, 0, owner, chunk[k]))  # fmt: skip

    for step in range(schedule.round_count):
        raise_busy(schedule, step, schedule.offset[step])
        ports = np.flatnonzero(schedule.offset[step] >= 0)
        target, chunk = schedule.offset[step, ports], schedule.chunk[step, ports]
        sender = topology.subtract(target, topology.generators[ports])
        # All sums leave before any arrives.
        carried = count[sender, chunk]
        for k, here in enumerate(zip(sender, chunk, strict=True)):
            if carried[k] < nodes if step >= schedule.reducing else sent[here]:
                stop(k, "sends {block} before it holds it")
            sent[here] = True
        partial = carried < nodes
        count[sender[partial], chunk[partial]] = 0
        for k, there in enumerate(zip(target, chunk, strict=True)):
            if count[there] + carried[k] > nodes:
                stop(k, "sends {block}, which is counted twice")
            count[there] += carried[k]
    lacking = np.argwhere((count[:1] if schedule.collective.personal else count) < nodes)
    if len(lacking):
        owner = int(topology.subtract(0, lacking[0][0]))
        block = _contribution(schedule, owner, owner, lacking[0][1])
        text = "ends without the complete sum that has {block}"
        raise unfinished(schedule, 0, block, text)
    transfers, moving = table_traffic(schedule)
    return Traffic.of_steps(transfers, moving)


def _contribution(schedule: Table, origin: int, owner: int, chunk: int) -> int:
    """The number of a contribution to a sum of an owner."""
    blocks = schedule.blocks
    if schedule.collective.personal:
        return int(blocks.encode(origin, chunk, owner))
    return int(blocks.encode(origin, owner * schedule.sums_of_owner + chunk))
