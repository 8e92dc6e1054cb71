"""Proof of a pattern of sums by its shape.

If the out-ports that carry a chunk form one directed cycle through all nodes, every sum passes
every node once before it comes to its owner, and gets each contribution once: nothing has to be
followed step by step.
"""

import numpy as np

from ...schedule import ALL, SumPattern, Transfers
from .fault import check_entries_fed, check_ports_fed, fault, unfinished
from .structure import check_arcs
from .traffic import Traffic

__all__ = ["check_sum_pattern", "inspect_sum_pattern"]


def check_sum_pattern(schedule: SumPattern) -> Traffic:
    """What a pattern of sums moves that `inspect_sum_pattern` accepts."""
    steps = schedule.round_count
    arcs = int((schedule.inject >= 0).sum())
    return Traffic.of_steps(arcs * steps, (int(arcs > 0),) * steps)


def inspect_sum_pattern(schedule: SumPattern) -> None:
    """Check a pattern of sums.

    Raises
    ------
    ScheduleError
        At the first fault.
    """
    topology, collective = schedule.topology, schedule.collective
    if not collective.reducing or collective.rooted:
        raise fault(schedule, None, f"a pattern of sums cannot carry out {collective.kind}")
    check_ports_fed(schedule)
    if schedule.turns < 1:
        raise fault(schedule, None, f"turns must be at least 1, not {schedule.turns}")
    if not schedule.sums_of_owner or (not collective.personal and schedule.chunks % topology.nodes):
        raise fault(
            schedule, None, f"chunks must be divisible by {topology.nodes}, not {schedule.chunks}"
        )
    check_entries_fed(schedule, schedule.sums_of_owner - schedule.turns + 1, 1)
    if topology.nodes > 1:
        # In every step, all that are ever used are busy.
        source, port = np.nonzero(schedule.inject >= 0)
        check_arcs(schedule, 1, Transfers.hop(source, port, ALL))
        _inspect_cycles(schedule)
        _inspect_feeds(schedule)


def _inspect_cycles(schedule: SumPattern) -> None:
    """Check that each chunk has one cycle through all nodes."""
    topology, inject = schedule.topology, schedule.inject
    nodes = np.arange(topology.nodes)
    covered = np.zeros(schedule.sums_of_owner, int)
    for chunk in np.unique(inject[inject >= 0]).tolist():
        mine = inject == chunk
        bad = np.flatnonzero(mine.sum(axis=1) > 1)
        if len(bad):
            node = int(bad[0])
            port = np.flatnonzero(mine[node])[1]
            block = _block(schedule, node, chunk)
            raise fault(schedule, 1, "sends {block} again", node=node, port=port, block=block)
        onward = np.where(mine.any(axis=1), topology.neighbours[nodes, mine.argmax(axis=1)], -1)
        here, passed = int(mine.any(axis=1).argmax()), np.zeros(topology.nodes, bool)
        while here >= 0 and not passed[here]:
            passed[here] = True
            here = int(onward[here])
        if not passed.all():
            node, owner = int((~passed).argmax()), int(passed.argmax())
            text = "ends without the complete sum that has {block}"
            raise unfinished(schedule, owner, _block(schedule, node, chunk, owner), text)
        covered[chunk : chunk + schedule.turns] += 1
    if (covered != 1).any():
        chunk = int((covered != 1).argmax())
        text = "{block} is counted twice" if covered[chunk] else "ends without the sum of {block}"
        raise unfinished(schedule, 0, _block(schedule, 0, chunk, 0), text)


def _inspect_feeds(schedule: SumPattern) -> None:
    """Check that every out-port in use passes on what arrives of its own chunk.

    Of each chunk a single in-port of a node brings anything.
    """
    topology, feed, inject = schedule.topology, schedule.feed, schedule.inject
    arriving = inject[topology.upstream]
    nodes = np.arange(topology.nodes)[:, None]
    bad = np.argwhere(np.where(feed >= 0, arriving[nodes, feed], -1) != inject)
    if len(bad):
        node, port = bad[0].tolist()
        chunk = max(int(inject[node, port]), 0)
        text = "sends {block}, which does not arrive by the in-port that feeds it"
        block = _block(schedule, node, chunk)
        raise fault(schedule, 1 + schedule.turns, text, node=node, port=port, block=block)


def _block(schedule: SumPattern, node: int, chunk: int, owner: int | None = None) -> int:
    """The number of a contribution of a node; by default to the sum of the next node."""
    owner = (node + 1) % schedule.topology.nodes if owner is None else owner
    if not schedule.collective.personal:
        chunk += owner * schedule.sums_of_owner
    return int(schedule.blocks.encode(node, chunk, owner))
