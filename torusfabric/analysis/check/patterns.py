"""Fast proof for patterns: of a `Pattern` by doubling, of a `SumPattern` by its shape.

Every arc of a `Pattern` is fed by at most one arc, its *feeder*. At step t, an arc carries the
block that its feeder carried at step t - 1. So it carries the block that the arc t - 1 feeders back
injected in step 1, if that arc exists and injected a block. Let S(t, a) be the set of blocks that
passed arc a in steps 1..t. Then

    S(t + u, a) = S(t, a) | S(u, feeder^t(a)),

and log2(steps) doublings compute S for all steps, exactly, for every arc and every block. The
sender of a block always holds it: an arc only carries blocks that its tail received in the step
before, or in step 1 blocks of the tail's own message.

In a `SumPattern`, the out-ports that carry a chunk must form one directed cycle through all nodes.
Then every sum passes every node once before it reaches its owner, and gets each contribution once.
"""

from functools import cached_property

import numpy as np

from ...schedule import ALL, Duplex, Pattern, SumPattern, Transfers
from ...topology import IntArray
from .follow import BlockHoldings, CheckedTraffic, Progress, Words, set_bits
from .rules import check_arcs, make_end_fault, make_fault, occurrence_ranks

__all__ = ["check_pattern", "check_sum_pattern", "inspect_pattern", "inspect_sum_pattern",
           "is_static_pattern", "pattern_traffic"]  # fmt: skip

#: The approximate number of groups of arcs that `_Feeders.arc_groups` makes.
MOST_GROUPS = 16

#: Words of state moved in one numpy operation, so that they fit in a cache.
CELLS_AT_ONCE = 2**16


def inspect_pattern(schedule: Pattern) -> None:
    """Check that a pattern suits its collective, and that its arrays are valid.

    The arrays must have the right shape, and name existing ports and chunks.
    """
    if schedule.collective.personal:
        kind = schedule.collective.kind
        raise make_fault(schedule, None, f"a pattern cannot address the blocks of {kind}")
    _inspect_entries(schedule, schedule.chunks, 1 if schedule.steps else None)


def _inspect_entries(schedule: Pattern | SumPattern, chunks: int, number: int | None) -> None:
    """Check the arrays of a pattern: their shape, and that they name valid ports and chunks.

    Parameters
    ----------
    chunks : int
        Number of chunks that may be named.
    number : int or None
        Round that error messages name, counted from 1; None for no round.
    """
    shape = schedule.topology.nodes, schedule.topology.ports
    if np.shape(schedule.feed) != shape or np.shape(schedule.inject) != shape:
        raise make_fault(schedule, None, f"the tables of a pattern must have shape {shape}")
    feed, inject = schedule.feed, schedule.inject
    for wrong, place, text in [
        (((feed >= 0) | (inject >= 0)) & ~schedule.topology.linked, 1, "has no link"),
        ((feed < -1) | (feed >= shape[1]), number, "is fed by a port that is none"),
        ((inject < -1) | (inject >= chunks), number, "sends a block that does not exist"),
    ]:
        bad = np.argwhere(wrong)
        if len(bad):
            raise make_fault(schedule, place, text, node=bad[0][0], port=bad[0][1])


def is_static_pattern(schedule: Pattern) -> bool:
    """Return True if one check of arcs and ports is enough for all steps of a pattern.

    For this check, the arcs of all steps are used in one step. It is passed if no node sends or
    receives more messages than its ports allow and, in half duplex, if no link is used both ways.
    The result is False for a pattern without steps.
    """
    if schedule.steps < 1:
        return False
    topology = schedule.topology
    used = (schedule.feed >= 0) | (schedule.inject >= 0)
    arriving = used[topology.upstream]
    if used.sum(axis=1).max() > schedule.ports or arriving.sum(axis=1).max() > schedule.ports:
        return False
    return schedule.duplex == Duplex.FULL or not bool((used & arriving).any())


def pattern_traffic(schedule: Pattern) -> tuple[int, int]:
    """Count the blocks that a pattern moves.

    Returns
    -------
    transfers : int
        Number of blocks carried over an arc, in all steps.
    busy : int
        Number of steps until no block moves any more.
    """
    feeder = _Feeders(schedule).feeder
    injects = np.append(schedule.inject.reshape(-1) >= 0, False)
    carried, last = injects.astype(np.int64), injects.astype(np.int64)
    here, length = np.arange(len(feeder)), 1
    transfers, busy, done = 0, 0, 0
    while True:
        if schedule.steps & length:
            transfers += int(carried[here].sum())
            until = last[here].max(initial=0)
            busy = done + int(until) if until else busy
            here, done = feeder[here], done + length
        if 2 * length > schedule.steps:
            return transfers, busy
        carried = carried + carried[feeder]
        later = last[feeder]
        last = np.where(later > 0, later + length, last)
        feeder, length = feeder[feeder], 2 * length


def check_pattern(schedule: Pattern, *, progress: Progress | None = None) -> CheckedTraffic:
    """Check that every node receives all blocks in a pattern, and return its traffic.

    Parameters
    ----------
    schedule : Pattern
        A pattern with at least one step, which has passed `inspect_pattern` and
        `is_static_pattern`.
    progress : function of (done, total), optional
        As for `check`.

    Raises
    ------
    ScheduleError
        At the first block that its sender does not hold, or that is missing at the end.
    """
    feeders, blocks = _Feeders(schedule), schedule.blocks
    arcs, ids = feeders.injected_blocks
    nodes, ports = np.divmod(arcs, schedule.topology.ports)
    bad = np.flatnonzero(blocks.precondition(ids) != nodes)
    if bad.size:
        raise make_fault(schedule, 1, "sends {block} before it holds it", node=nodes[bad[0]],
                    port=ports[bad[0]], block=ids[bad[0]])  # fmt: skip
    words, fresh, groups = -(-blocks.n_blocks // 64), 0, feeders.arc_groups()
    missing: list[tuple[int, int]] = []
    step = max(1, CELLS_AT_ONCE // schedule.topology.nodes)
    for first in range(0, words, step):
        last = min(first + step, words)
        held = BlockHoldings(blocks, feeders.block_order[64 * first : 64 * last])
        for group in groups:
            group.deliver_blocks(held.words, first, last)
        fresh += held.count_received()
        missing += filter(None, [held.first_missing()])
        if progress:
            progress(last, words)
    if missing:
        node, block = min(missing)
        raise make_end_fault(schedule, node, block)
    transfers, busy = pattern_traffic(schedule)
    moving = (1,) * busy + (0,) * (schedule.steps - busy)
    return CheckedTraffic.from_steps(transfers, moving, duplicates=transfers - fresh)


class _Feeders:
    """The feeders of a pattern: for each arc, the arc whose words it carries one step later.

    An arc has the number node * ports + out-port. ``feeder[arc]`` is the number of its feeder, or
    the number of all arcs if it has none.
    """

    def __init__(self, schedule: Pattern) -> None:
        self.schedule, topology = schedule, schedule.topology
        self.arcs = topology.nodes * topology.ports
        node, port = topology.feeding(schedule.feed)
        before = node.astype(np.int64) * topology.ports + port
        feeder = np.where(schedule.feed >= 0, before, self.arcs).reshape(-1)
        self.feeder = np.append(feeder, self.arcs)

    @cached_property
    def block_order(self) -> IntArray:
        """The numbers of all blocks, in the order in which they are followed: chunk by chunk."""
        ids = np.arange(self.schedule.blocks.n_blocks)
        return np.argsort(self.schedule.blocks.chunk(ids), kind="stable")

    @cached_property
    def injected_blocks(self) -> tuple[IntArray, IntArray]:
        """The arcs that carry a block of their own node in step 1, and the numbers of these blocks.

        Both are arrays with one entry for each such arc. An arc has the number node * ports +
        out-port.
        """
        nodes, ports = np.nonzero(self.schedule.inject >= 0)
        chunks = self.schedule.inject[nodes, ports]
        return nodes * self.schedule.topology.ports + ports, self.schedule.blocks.encode(
            nodes, chunks
        )

    def _chain_labels(self) -> IntArray:
        """Return a number for each arc, equal for arcs on the same chain of feeders.

        Each arc has at most one feeder, the arc whose words it carries one step later. Two arcs
        have equal numbers if the chains of their feeders lead back to the same arc or cycle. Jumps
        along the chains double in length. Why: a search by a graph library would do the same, but
        importing the library takes longer than checking a small pattern.
        """
        back = np.where(self.feeder[:-1] < self.arcs, self.feeder[:-1], np.arange(self.arcs))
        feeder, lowest = back, np.arange(self.arcs)
        while True:
            # Now `lowest` has the lowest of the arc and its nearest 1, 3, 7 .. feeders.
            lowest, back = np.minimum(lowest, lowest[back]), back[back]
            last = lowest[back]
            if (last == last[feeder]).all():
                number: IntArray = np.cumsum(last == np.arange(self.arcs)) - 1
                return number[last]

    def arc_groups(self) -> "list[_ArcGroup]":
        """Divide the arcs into about `MOST_GROUPS` sets; an arc and its feeder are in one set.

        The feeder of an arc is the arc whose words it carries one step later. Sets of arcs over
        which no block moves are left out.
        """
        label = self._chain_labels()
        moving = np.zeros(label.max() + 1, bool)
        moving[label[self.injected_blocks[0]]] = True
        sizes = np.bincount(label)
        order = np.argsort(-sizes, kind="stable")
        filled = np.cumsum(sizes[order]) - sizes[order]
        group = np.empty(len(sizes), np.int64)
        group[order] = filled // max(1, self.arcs // MOST_GROUPS)
        member = np.where(moving[label], group[label], -1)
        return [
            _ArcGroup(self, np.flatnonzero(member == g)) for g in np.unique(member[member >= 0])
        ]


class _ArcGroup:
    """A set of arcs of a pattern, with jumps from each arc to earlier ones.

    Each arc has at most one feeder, the arc whose words it carries one step later; the feeder is in
    the set, too. Jump j is an array: for each arc, the arc that is 2^j feeders back. A last jump
    covers the remaining steps, so that all jumps together go back over all steps.
    """

    def __init__(self, feeders: _Feeders, arcs: IntArray) -> None:
        topology = feeders.schedule.topology
        local = np.full(feeders.arcs + 1, len(arcs))
        local[arcs] = np.arange(len(arcs))
        self.size = len(arcs)
        # Feeders at distances 1, 2, 4 .., and a last jump so that all steps are covered.
        jump, length = np.append(local[feeders.feeder[arcs]], len(arcs)), 1
        self.jumps: list[IntArray] = []
        while 2 * length <= feeders.schedule.steps:
            self.jumps.append(jump)
            jump, length = jump[jump], 2 * length
        if missing := feeders.schedule.steps - length:
            rest: IntArray = np.arange(len(jump))
            for power, each in enumerate(self.jumps):
                if missing >> power & 1:
                    rest = each[rest]
            self.jumps.append(rest)
        head = topology.neighbours.reshape(-1)[arcs]
        turn = occurrence_ranks(head)
        self.entries = np.full((turn.max() + 1, topology.nodes), len(arcs))
        self.entries[turn, head] = np.arange(len(arcs))
        column = np.empty(feeders.schedule.blocks.n_blocks, np.int64)
        column[feeders.block_order] = np.arange(len(column))
        injecting, ids = feeders.injected_blocks
        mine = np.flatnonzero(local[injecting] < len(arcs))
        mine = mine[np.argsort(column[ids[mine]], kind="stable")]
        self.column, self.arc = column[ids[mine]], local[injecting[mine]]

    def deliver_blocks(self, held: Words, first: int, last: int) -> None:
        """Set the bits of the blocks that nodes receive over the arcs of this set.

        ``held[k]`` is an array of uint64, in which each node has 64 bits for the blocks 64 (first +
        k) to 64 (first + k) + 63. Blocks up to those of word ``last - 1`` are followed.
        """
        low, high = np.searchsorted(self.column, [64 * first, 64 * last])
        if low == high:
            return
        passed = np.zeros((last - first, self.size + 1), np.uint64)
        set_bits(passed, self.column[low:high] - 64 * first, self.arc[low:high])
        for row, word in zip(passed, held, strict=True):
            for jump in self.jumps:
                row |= row[jump]
            for entry in self.entries:
                word |= row[entry]


def check_sum_pattern(schedule: SumPattern) -> CheckedTraffic:
    """Return the traffic of a pattern of sums, which has passed `inspect_sum_pattern`."""
    steps = schedule.round_count
    arcs = int((schedule.inject >= 0).sum())
    return CheckedTraffic.from_steps(arcs * steps, (int(arcs > 0),) * steps)


def inspect_sum_pattern(schedule: SumPattern) -> None:
    """Check all rules for a pattern of sums; no contribution needs to be followed.

    The out-ports that carry a chunk must form one cycle through all nodes, and each of them must be
    fed by the in-port at which this chunk arrives.

    Raises
    ------
    ScheduleError
        At the first fault.
    """
    topology, collective = schedule.topology, schedule.collective
    if not collective.reducing or collective.rooted:
        raise make_fault(schedule, None, f"a pattern of sums cannot execute {collective.kind}")
    if schedule.turns < 1:
        raise make_fault(schedule, None, f"turns must be at least 1, not {schedule.turns}")
    if not schedule.sums_of_owner or (not collective.personal and schedule.chunks % topology.nodes):
        raise make_fault(
            schedule, None, f"chunks must be divisible by {topology.nodes}, not {schedule.chunks}"
        )
    _inspect_entries(schedule, schedule.sums_of_owner - schedule.turns + 1, 1)
    if topology.nodes > 1:
        # Every step uses the same arcs, so one step is enough for the check of arcs and ports.
        source, port = np.nonzero(schedule.inject >= 0)
        check_arcs(schedule, 1, Transfers.hop(source, port, ALL))
        _inspect_cycles(schedule)
        # Every out-port in use must be fed by the in-port at which its own chunk arrives.
        feed, inject, nodes = schedule.feed, schedule.inject, np.arange(topology.nodes)[:, None]
        fed = np.where(feed >= 0, inject[topology.upstream][nodes, feed], -1)
        bad = np.argwhere(fed != inject)
        if len(bad):
            node, at = bad[0].tolist()
            block = _block_of_contribution(schedule, node, max(int(inject[node, at]), 0))
            text = "sends {block}, which does not arrive by the in-port that feeds it"
            raise make_fault(schedule, 1 + schedule.turns, text, node=node, port=at, block=block)


def _inspect_cycles(schedule: SumPattern) -> None:
    """Check that the out-ports which carry the same chunk form one cycle through all nodes.

    The cycles together must cover each chunk once; a cycle covers as many chunks as the pattern has
    turns.
    """
    topology, inject = schedule.topology, schedule.inject
    nodes = np.arange(topology.nodes)
    covered = np.zeros(schedule.sums_of_owner, int)
    for chunk in np.unique(inject[inject >= 0]).tolist():
        mine = inject == chunk
        bad = np.flatnonzero(mine.sum(axis=1) > 1)
        if len(bad):
            node = int(bad[0])
            port = np.flatnonzero(mine[node])[1]
            block = _block_of_contribution(schedule, node, chunk)
            raise make_fault(schedule, 1, "sends {block} again", node=node, port=port, block=block)
        onward = np.where(mine.any(axis=1), topology.neighbours[nodes, mine.argmax(axis=1)], -1)
        here, passed = int(mine.any(axis=1).argmax()), np.zeros(topology.nodes, bool)
        while here >= 0 and not passed[here]:
            passed[here] = True
            here = int(onward[here])
        if not passed.all():
            node, owner = int((~passed).argmax()), int(passed.argmax())
            text = "ends without the complete sum that has {block}"
            raise make_end_fault(
                schedule, owner, _block_of_contribution(schedule, node, chunk, owner), text
            )
        covered[chunk : chunk + schedule.turns] += 1
    if (covered != 1).any():
        chunk = int((covered != 1).argmax())
        text = "{block} is counted twice" if covered[chunk] else "ends without the sum of {block}"
        raise make_end_fault(schedule, 0, _block_of_contribution(schedule, 0, chunk, 0), text)


def _block_of_contribution(
    schedule: SumPattern, node: int, chunk: int, owner: int | None = None
) -> int:
    """Return the block number of the contribution of `node` to a sum, for an error message.

    The sum is the one that node `owner` has at the end. By default it is that of node ``node + 1``,
    as an example: a fault of a cycle concerns all sums on it. `chunk` is the number of the sum
    among the sums of this owner.
    """
    owner = (node + 1) % schedule.topology.nodes if owner is None else owner
    if not schedule.collective.personal:
        chunk += owner * schedule.sums_of_owner
    return int(schedule.blocks.encode(node, chunk, owner))
