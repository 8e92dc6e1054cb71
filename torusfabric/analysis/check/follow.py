"""The follower: checks any schedule by following every block, or every contribution to a sum.

It assumes nothing about the schedule, so it is the reference for the fast proofs. If the state of
all blocks does not fit in memory, the follower makes several passes over the rounds. Each pass
follows a *window*, which is some of the blocks, or the sums of some keys:

- `BlockWindow`: blocks are copied. Each node has one bit for each block, 64 to a word.
- `SumWindow`: partial sums move, complete sums are copied.
- `KeptSumsWindow`: nodes keep their sums, add words that arrive, and send copies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...collective import Blocks
from ...errors import InputError, ScheduleError
from ...schedule import (
    Everything,
    Grouped,
    KeptSums,
    Lifted,
    Listed,
    Rounds,
    Schedule,
    Transfers,
)
from ...topology import IntArray, IntLike
from .rules import SlowLinkUse, inspect_round, make_end_fault, make_fault, occurrence_ranks

__all__ = [
    "BlockHoldings",
    "Progress",
    "CheckedTraffic",
    "Words",
    "follow_rounds",
    "popcount",
    "set_bits",
]

#: Callback for progress, with the work done and the total work.
Progress: TypeAlias = Callable[[int, int], object]

#: Sets of blocks as bits.
Words: TypeAlias = NDArray[np.uint64]

#: The most bytes of state of one pass over blocks.
BLOCK_BUDGET = 2**28

#: The largest product of keys and nodes of one pass over sums.
SUM_BUDGET = 2**24

#: The most bytes for the contributions to kept sums of one chunk.
KEPT_BUDGET = 2**31

#: With more passes than this, the follower stops after the first pass that finds a fault, because
#: a small file may need millions of passes.
MOST_FULL_PASSES = 8

#: Words of state moved in one numpy operation, so that they fit in a cache.
CELLS_AT_ONCE = 2**17


@dataclass(frozen=True)
class CheckedTraffic:
    """The transfers, hops and blocks of a schedule that passed its check.

    Parameters
    ----------
    rounds : int
        Number of rounds of the schedule, with those in which no data move.
    transfers : int
        Number of transfers in all rounds.
    arcs_used : int
        The lengths of all paths, added up: a transfer over three links counts as three.
    longest : int
        Hops of the longest path.
    duplicates : int
        Number of times that a node received a block that it already held, or received twice in a
        round.
    round_hops : tuple of int
        Hops of the longest path of each round, 0 for a round in which no data move.
    round_blocks : tuple of int
        Blocks of the longest message of each round. A partial sum counts as one block, regardless
        of its number of contributions.
    """

    rounds: int
    transfers: int
    arcs_used: int
    longest: int
    duplicates: int
    round_hops: tuple[int, ...]
    round_blocks: tuple[int, ...]

    @classmethod
    def from_steps(
        cls, transfers: int, moving: tuple[int, ...], *, duplicates: int = 0
    ) -> "CheckedTraffic":
        """Return the traffic of a schedule in which every transfer moves one block over one link.

        Parameters
        ----------
        transfers, duplicates : int
            The fields of the result with these names.
        moving : tuple of int
            For each step, 1 if blocks move in it, otherwise 0.

        Examples
        --------
        Twelve transfers in two steps, and one step in which no block moves:

        >>> CheckedTraffic.from_steps(12, (1, 1, 0)).round_hops
        (1, 1, 0)
        """
        longest = max(moving, default=0)
        return cls(len(moving), transfers, transfers, longest, duplicates, moving, moving)


def follow_rounds(
    schedule: Schedule,
    progress: Progress | None = None,
    *,
    twice: bool = False,
    crowded: bool = False,
) -> CheckedTraffic:
    """Check the transfers of a schedule in any form, round by round, and count its traffic.

    Every block, or every contribution to a sum, is followed. If the state of all blocks does not
    fit in memory, this takes several passes over the rounds, each for some of the blocks.

    Parameters
    ----------
    progress : function of (done, total), optional
        As for `check`.
    twice : bool
        True if a contribution may be in a kept sum more than once, as for ``max``.
    crowded : bool
        True if arcs may carry, and nodes may send and receive, any number of messages in a round.

    Raises
    ------
    InputError
        If nodes keep sums and there are too many nodes.
    ScheduleError
        At the first fault. With more than `MOST_FULL_PASSES` passes, at the first fault of the
        first pass that finds one.
    """
    nodes, blocks, kept = schedule.topology.nodes, schedule.blocks, schedule.keeps_sums
    hops: list[int] = []
    arcs, count, broken = 0, 0, None
    slow = None
    if schedule.topology.spacing_multiple > 1 and not crowded:
        slow = SlowLinkUse(schedule)
    for number, transfers in enumerate(schedule.rounds(), 1):
        try:
            longest, used = inspect_round(schedule, number, transfers, kept=kept, crowded=crowded)
            if slow is not None:
                slow.check_round(number, transfers)
        except ScheduleError as error:
            broken = error
            break
        hops.append(longest)
        arcs += used
        count += len(transfers)
    window: Any = BlockWindow
    size, most = -(-blocks.n_blocks // 64), BLOCK_BUDGET // (nodes * 8)
    if kept:
        window = partial(KeptSumsWindow, twice=twice)
        size, most, ports = schedule.chunks, 1, schedule.topology.ports
        if nodes * nodes * (ports + 1) > KEPT_BUDGET:
            limit = int((KEPT_BUDGET / (ports + 1)) ** 0.5)
            raise InputError(
                f"Nodes must be at most {limit} to check sums that nodes keep, not {nodes}; "
                "choose another algorithm or a smaller network"
            )
    elif schedule.collective.reducing:
        window, size, most = SumWindow, blocks.n_blocks // blocks.group_size, SUM_BUDGET // nodes
    found = Findings(schedule)
    passes = range(0, size, max(1, most))
    for done, first in enumerate(passes):
        state = window(schedule, first, min(first + passes.step, size), found)
        try:
            for number, transfers in enumerate(
                islice(schedule.rounds(), found.rounds_to_execute(len(hops))), 1
            ):
                if len(transfers):
                    state.execute_round(number, transfers)
                if progress:
                    progress(done * len(hops) + number, len(passes) * len(hops))
            if broken is None:
                state.check_end()
        except PassStopped:
            pass
        if len(passes) > MOST_FULL_PASSES and (found.sending or found.missing):
            found.sizes.clear()  # sizes are incomplete, since later passes would add to them
            break
    found.raise_fault_or_count()
    if broken is not None:
        raise broken
    if slow is not None:
        slow.check_end(found.longest)
    return CheckedTraffic(
        rounds=len(hops),
        transfers=count,
        arcs_used=arcs,
        longest=max(hops, default=0),
        duplicates=found.received - found.fresh,
        round_hops=tuple(hops),
        round_blocks=tuple(found.longest),
    )


class PassStopped(Exception):
    """Raised to end a pass over the rounds at the first fault that this pass finds."""


class Findings:
    """The earliest fault so far, and the counts, over all passes of the follower.

    A pass executes all rounds for some of the blocks.

    Attributes
    ----------
    sizes : dict of int to (Transfers, ndarray of int)
        Number of a round -> its transfers, and the number of blocks of each transfer. It has only
        rounds whose transfers do not list their blocks; the numbers are complete after all passes.
    sending : tuple or None
        The earliest fault of a transfer: round, transfer, block or -1, node, out-port, text.
    missing : tuple or None
        The lowest node that lacks a block at the end: node, block, text.
    longest : list of int
        Blocks of the longest message of each round.
    received, fresh : int
        Blocks received, and the received blocks that their receiver did not hold before.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.sizes: dict[int, tuple[Transfers, IntArray]] = {}
        self.longest = [0] * schedule.round_count
        self.sending: tuple[int, int, int, int, int, str] | None = None
        self.missing: tuple[int, int, str] | None = None
        self.received = self.fresh = 0

    def rounds_to_execute(self, limit: int) -> int:
        """Return the number of rounds that the next pass must execute, at most `limit`.

        After a fault in round r, later passes look only for faults in rounds 1 to r, because the
        earliest fault is reported.
        """
        return limit if self.sending is None else min(limit, self.sending[0])

    def record_and_stop(
        self, number: int, transfers: Transfers, transfer: int, block: int | None, text: str
    ) -> NoReturn:
        """Store the fault of a transfer, unless an earlier fault is known, and end the pass.

        Parameters
        ----------
        number : int
            The round, counted from 1.
        transfers : Transfers
            The transfers of the round.
        transfer : int
            Index of the transfer at fault.
        block : int or None
            Number of the block at fault; None if no single block is at fault.
        text : str
            Description of the fault, as for `make_fault`.
        """
        node, port = transfers.source[transfer], transfers.hops[transfer, 0]
        at = -1 if block is None else int(block)
        found = (number, int(transfer), at, int(node), int(port), text)
        self.sending = found if self.sending is None else min(self.sending, found)
        raise PassStopped

    def record_missing(self, node: int, block: int, text: str = "ends without {block}") -> None:
        """Store that a node lacks a block at the end, unless a lower node is known to lack one.

        `block` is the number of the block. `text` is the description, as for `make_end_fault`.
        """
        found = (int(node), int(block), text)
        self.missing = found if self.missing is None else min(self.missing, found)

    def add_sizes(self, number: int, transfers: Transfers, sizes: IntArray) -> None:
        """Count the blocks that the transfers of a round carry, over all passes.

        `number` is the number of the round, and `transfers` are its transfers. A pass follows only
        some of the blocks; ``sizes[k]`` is the number of these in transfer k. It is added to the
        number of blocks that earlier passes found in the transfer.
        """
        known = self.sizes.get(number)
        self.sizes[number] = (transfers, sizes if known is None else known[1] + sizes)

    def raise_fault_or_count(self) -> None:
        """Raise the earliest fault; without a fault, complete `longest` and `received`.

        It is called after the last pass. A transfer that carries no block in any pass is a fault,
        too.
        """
        schedule = self.schedule
        for number, (transfers, sizes) in sorted(self.sizes.items()):
            empty = np.flatnonzero(sizes == 0)
            if empty.size and (self.sending is None or number < self.sending[0]):
                raise make_fault(schedule, number, "sends a message without a block",
                            node=transfers.source[empty[0]],
                            port=transfers.hops[empty[0], 0])  # fmt: skip
            self.longest[number - 1] = int(sizes.max(initial=0))
            self.received += int(sizes.sum())
        if self.sending:
            number, _, block, node, port, text = self.sending
            named = None if block < 0 else block
            raise make_fault(schedule, number, text, node=node, port=port, block=named)
        if self.missing:
            raise make_end_fault(schedule, *self.missing)


def popcount(words: Words) -> IntArray:
    """Return the number of ones in each element of `words`, an array of uint64."""
    counts: IntArray
    if hasattr(np, "bitwise_count"):
        counts = np.bitwise_count(words)
        return counts
    octets = np.ascontiguousarray(words)[..., None].view(np.uint8)
    counts = np.unpackbits(octets, axis=-1).sum(axis=-1)
    return counts


def set_bits(state: Words, column: IntArray, position: IntLike) -> None:
    """Set bits in `state`, an array of uint64 of shape (words, positions).

    For each k, bit ``column[k]`` at position ``position[k]`` becomes 1. Word w has the bits 64 w to
    64 w + 63.
    """
    bit = np.uint64(1) << (column & 63).astype(np.uint64)
    np.bitwise_or.at(state.reshape(-1), (column >> 6) * state.shape[1] + position, bit)


class BlockHoldings:
    """A table of bits for some blocks: each bit says if a node holds a block.

    `ids` are the numbers of the blocks. For block ``ids[k]``, bit ``k % 64`` of ``words[k // 64,
    node]`` is 1 if the node holds the block. At first, only origins hold their blocks.
    """

    def __init__(self, blocks: Blocks, ids: IntArray) -> None:
        self.blocks, self.ids = blocks, ids
        self.words = np.zeros((-(-len(ids) // 64), blocks.groups.topology.nodes), np.uint64)
        nodes, held = blocks.initial_copies(ids)
        self._first_held = len(held)
        set_bits(self.words, self._find_columns(held), nodes)

    def _find_columns(self, ids: IntArray) -> IntArray:
        """Return the columns of blocks in the table, given their numbers."""
        order = np.argsort(self.ids, kind="stable")
        found: IntArray = order[np.searchsorted(self.ids, ids, sorter=order)]
        return found

    def lacking_pairs(self, column: IntArray, node: IntArray) -> IntArray:
        """Return the indices k for which node ``node[k]`` lacks block ``ids[column[k]]``."""
        words = self.words[column >> 6, node]
        found: IntArray = np.flatnonzero(words >> (column & 63).astype(np.uint64) & 1 == 0)
        return found

    def count_received(self) -> int:
        """Return the number of blocks that nodes hold and did not hold at first.

        A block counts once for each node that holds it.
        """
        return int(popcount(self.words).sum(dtype=np.int64)) - self._first_held

    def first_missing(self) -> tuple[int, int] | None:
        """Return the lowest node that lacks a required block, and the lowest of these blocks.

        The result is None if every node holds the blocks that the collective delivers to it.
        """
        node: IntArray
        ids: IntArray
        if self.blocks.collective.to_all and not self.blocks.collective.is_irregular:
            full = np.zeros((len(self.words), 1), np.uint64)
            set_bits(full, np.arange(len(self.ids)), 0)
            # Nodes outside of all groups need no block.
            members = np.sort(self.blocks.groups.members, axis=None)
            nodes = members[((self.words & full) != full).any(axis=0)[members]][:1]
            node, ids = np.repeat(nodes, len(self.ids)), np.tile(self.ids, len(nodes))
        else:
            node, ids = self.blocks.required_copies(self.ids)
        missing = self.lacking_pairs(self._find_columns(ids), node)
        return min(zip(node[missing].tolist(), ids[missing].tolist(), strict=True), default=None)


class BlockWindow(BlockHoldings):
    """One pass over a schedule in which blocks are copied: it follows some of the blocks.

    These are the blocks ``64 * first`` to ``64 * last - 1``. The table of bits, see
    `BlockHoldings`, says which nodes hold them, and is updated round by round.
    """

    def __init__(self, schedule: Schedule, first: int, last: int, found: Findings) -> None:
        self.schedule, self.first, self.found = schedule, 64 * first, found
        end = min(64 * last, schedule.blocks.n_blocks)
        super().__init__(schedule.blocks, np.arange(64 * first, end))

    def execute_round(self, number: int, transfers: Transfers) -> None:
        """Copy the blocks of a round to the receivers, and check that senders hold them before.

        `number` is the number of the round, and `transfers` are its transfers.
        """
        target = transfers.walk(self.schedule.topology)[:, -1]
        if not isinstance(transfers.payload, Listed):
            self.found.add_sizes(number, transfers, self._copy_held_blocks(transfers, target))
            return
        owner = np.repeat(np.arange(len(transfers)), np.diff(transfers.payload.indptr))
        ids = np.asarray(transfers.payload.ids, np.int64)
        if len(self.ids) < self.schedule.blocks.n_blocks:
            mine = (ids >= self.first) & (ids < self.first + len(self.ids))
            owner, ids = owner[mine], ids[mine]
        lacking = self.lacking_pairs(ids - self.first, transfers.source[owner])
        if lacking.size:
            first = lacking[np.lexsort((ids[lacking], owner[lacking]))[0]]
            text = "sends {block} before it holds it"
            self.found.record_and_stop(number, transfers, owner[first], ids[first], text)
        self.found.longest[number - 1] = int(np.diff(transfers.payload.indptr).max(initial=0))
        self.found.received += len(ids)
        set_bits(self.words, ids - self.first, target[owner])

    def _copy_held_blocks(self, transfers: Transfers, target: IntArray) -> IntArray:
        """Execute transfers that do not list their blocks; returns the blocks that each carries.

        Such a transfer carries all blocks that its sender holds, or those that belong to one set.
        The result is an array with a number for each transfer. ``target[k]`` is the receiver of
        transfer k.
        """
        masks = None
        if isinstance(transfers.payload, Grouped):
            wanted, group = np.unique(transfers.payload.wanted, return_inverse=True)
            asked = np.asarray(transfers.payload.group)[self.ids]
            index = np.minimum(np.searchsorted(wanted, asked), len(wanted) - 1)
            member = np.flatnonzero(wanted[index] == asked)
            masks = np.zeros((len(self.words), len(wanted)), np.uint64)
            set_bits(masks, member, index[member])
        order = np.argsort(target, kind="stable")
        source, target = transfers.source[order], target[order]
        new = np.concatenate([[True], target[1:] != target[:-1]])
        starts, reached = np.flatnonzero(new), target[new]
        counted = np.zeros(len(order), np.int64)
        step = max(1, CELLS_AT_ONCE // max(len(source), self.words.shape[1]))
        for low in range(0, len(self.words), step):
            part = self.words[low : low + step]
            moved = part[:, source]
            if masks is not None:
                moved &= masks[low : low + step, group[order]]
            counted += popcount(moved).sum(axis=0, dtype=np.int64)
            if len(starts) < len(target):
                moved = np.bitwise_or.reduceat(moved, starts, axis=1)
            part[:, reached] |= moved
        sizes = np.zeros(len(order), np.int64)
        sizes[order] = counted
        return sizes

    def check_end(self) -> None:
        """Record a node that lacks a required block, and count the received blocks in `found`."""
        self.found.fresh += self.count_received()
        if missing := self.first_missing():
            self.found.record_missing(*missing)


class SumWindow:
    """One pass over a reduction in which partial sums move: it follows some of the sums.

    All contributions to one sum have the same *key*, which is (chunk) or (destination, chunk) as a
    number: the block number without the origin. The pass follows the keys ``first`` to ``last -
    1``. A node has at most one partial sum of each key. A *cell* stands for one key at one node;
    its number is (key - first) * nodes + node.

    - ``count[cell]`` is the number of contributions to the sum at this cell.
    - ``where[cell]`` follows the contribution of the cell's node to the sum with the cell's key: it
      is the cell whose partial sum contains this contribution now. There is one such cell, because
      partial sums move. After a sum is complete, ``where`` stays at the cell where this happened.

    Each group of nodes has its own sums. A sum is complete if it has a contribution of each node of
    the group.
    """

    def __init__(self, schedule: Schedule, first: int, last: int, found: Findings) -> None:
        self.schedule, self.first, self.last, self.found = schedule, first, last, found
        self.nodes, self.groups = schedule.topology.nodes, schedule.blocks.groups
        self.keys = schedule.blocks.blocks_per_origin
        #: Number of contributions to each sum of the window.
        self.full = schedule.blocks.contribution_counts[first:last]
        self.where = np.arange((last - first) * self.nodes)
        self._onward = self.where.copy()
        count = np.zeros((last - first, self.nodes), np.int32)
        if self.groups.listed:
            mates = self._mates_of(np.arange(last - first))
            np.put_along_axis(count, mates, 1, axis=1)
        else:
            count[:, self.groups.members.ravel()] = 1
        self.count = count.ravel()

    def _group_of(self, key: IntLike, node: IntLike = 0) -> IntArray:
        """Return the number of the group that contributes to a sum, elementwise.

        They are all nodes of one group. If a user has listed the groups, each group has keys of its
        own, so `key` decides. Groups along axes (sub-tori) have the same keys, so the group is that
        of `node`.
        """
        if self.groups.listed:
            return self.schedule.blocks.group_of_block(np.asarray(key) + self.first)
        group: IntArray = self.groups.group_of_node[node]
        return group

    def _mates_of(self, key: IntLike, node: IntLike = 0) -> IntArray:
        """Return the nodes that contribute to a sum, elementwise, in an additional last axis.

        The arguments are those of `_group_of`.
        """
        found: IntArray = self.groups.members[self._group_of(key, node)]
        return found

    def block_of_cell(self, cell: int) -> int:
        """Return the block number of a contribution, given its node and key as a cell number.

        A cell stands for one sum (key) at one node: cell = (key - first) * nodes + node.
        """
        key, origin = divmod(int(cell), self.nodes)
        return int(self.groups.position_of_node[origin]) * self.keys + self.first + key

    def execute_round(self, number: int, transfers: Transfers) -> None:
        """Move partial sums, and copy complete sums, from the senders to the receivers of a round.

        A sender must hold the sums before the round. `number` is the number of the round, and
        `transfers` are its transfers.
        """
        owner, key = self._carried_sums(number, transfers)
        source = key * self.nodes + transfers.source[owner]
        target = key * self.nodes + transfers.walk(self.schedule.topology)[owner, -1]
        carried = self.count[source]
        moving = np.flatnonzero(carried < self.full[key])
        leaving = source[moving]
        again = moving[occurrence_ranks(leaving) > 0]
        if again.size:
            text = "sends the partial sum with {block} a second time"
            self.found.record_and_stop(
                number, transfers, owner[again[0]], self.block_of_cell(source[again[0]]), text
            )
        self._onward[leaving] = target[moving]
        self.where = self._onward[self.where]
        self._onward[leaving] = leaving
        self.count[leaving] = 0
        np.add.at(self.count, target, carried)
        over = np.flatnonzero(self.count[target] > self.full[key])
        if over.size:
            # A complete sum leaves no partial sum of its key, so two complete sums have met here.
            arriving = np.flatnonzero(target == target[over[0]])
            total = self.count[target[over[0]]] - np.cumsum(carried[arriving][::-1])[::-1]
            first = arriving[np.argmax(total + carried[arriving] > self.full[key[over[0]]])]
            node = target[first] % self.nodes
            cell = target[first] - node + self._mates_of(target[first] // self.nodes, node)[0]
            text = "sends {block}, which is counted twice"
            self.found.record_and_stop(
                number, transfers, owner[first], self.block_of_cell(cell), text
            )
        self.found.add_sizes(number, transfers, np.bincount(owner, minlength=len(transfers)))
        self.found.fresh += len(owner)

    def _carried_sums(self, number: int, transfers: Transfers) -> tuple[IntArray, IntArray]:
        """Return the sums that the transfers of a round carry.

        The result is two arrays, with one entry for each sum: the index of the transfer, and the
        key, a number that all contributions to the sum have in common. `number` is the number of
        the round.
        """
        source, payload = transfers.source, transfers.payload
        if isinstance(payload, Listed):
            owner = np.repeat(np.arange(len(transfers)), np.diff(payload.indptr))
            return self._listed_sums(number, transfers, owner, np.asarray(payload.ids, np.int64))
        if isinstance(payload, Everything):
            kept = self.count.reshape(-1, self.nodes).T[source] > 0
            owner, key = np.nonzero(kept)
            return owner, key
        assert isinstance(payload, Grouped)
        group = np.asarray(payload.group).reshape(-1, self.keys)[:, self.first : self.last]
        if (group == group[0]).all():
            order = np.argsort(group[0], kind="stable")
            ordered = group[0][order]
            low = np.searchsorted(ordered, payload.wanted, "left")
            many = np.searchsorted(ordered, payload.wanted, "right") - low
            owner = np.repeat(np.arange(len(transfers)), many)
            within = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
            key = order[np.repeat(low, many) + within]
            there = self.count[key * self.nodes + source[owner]] > 0
            return owner[there], key[there]
        first = np.arange(self.last - self.first)[:, None] * self.nodes
        owners, lists = [], []
        for transfer, (node, wanted) in enumerate(zip(source, payload.wanted, strict=True)):
            keys = np.arange(self.last - self.first)
            held = self.where[first + self._mates_of(keys, node)] == first + node
            held |= self.count[first + node] == self.full[:, None]
            held &= self.groups.is_member[self._group_of(keys, node)]
            key, origin = np.nonzero(held & (wanted == group.T))
            lists.append(origin * self.keys + self.first + key)
            owners.append(np.full(len(key), transfer))
        return self._listed_sums(number, transfers, np.concatenate(owners), np.concatenate(lists))

    def _listed_sums(
        self, number: int, transfers: Transfers, owner: IntArray, ids: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the sums whose contributions the transfers of a round list one by one.

        Transfer ``owner[k]`` lists block ``ids[k]``, which is one contribution. A transfer must
        list all contributions to a sum that its sender holds; to list a part of them is a fault.
        The result has the form of `_carried_sums`, and `number` is the number of the round.
        """
        key, position = ids % self.keys - self.first, ids // self.keys
        mine = (key >= 0) & (key < self.last - self.first)
        owner, key, ids = owner[mine], key[mine], ids[mine]
        cell = key * self.nodes + transfers.source[owner]
        origin = self.groups.members[self._group_of(key, transfers.source[owner]), position[mine]]
        there = self.where[key * self.nodes + origin]
        lacking = np.flatnonzero((there != cell) & (self.count[cell] < self.full[key]))
        if lacking.size:
            wrong = lacking[0]
            text = "sends {block} before it holds it"
            if there[wrong] == self.where[cell[wrong]]:  # moved with the node's own
                text = "sends {block}, whose partial sum it has sent on: that moved, and is no copy"
            self.found.record_and_stop(number, transfers, owner[wrong], ids[wrong], text)
        pair, start, index, many = np.unique(
            owner * np.int64(self.last - self.first) + key,
            return_index=True, return_inverse=True, return_counts=True,
        )  # fmt: skip
        twice = np.flatnonzero(occurrence_ranks(index * np.int64(self.nodes) + origin))
        if twice.size:
            wrong = twice[0]
            self.found.record_and_stop(
                number, transfers, owner[wrong], ids[wrong], "lists {block} twice"
            )
        short = np.flatnonzero(many < self.count[cell[start]])
        if short.size:
            wrong = start[short].min()
            text = "sends less than its whole partial sum with {block}"
            self.found.record_and_stop(number, transfers, owner[wrong], ids[wrong], text)
        return pair // (self.last - self.first), pair % (self.last - self.first)

    def check_end(self) -> None:
        """Record the first node that must hold a complete sum at the end and does not hold it."""
        node, ids = self.schedule.blocks.required_copies(np.arange(self.first, self.last))
        key = ids - self.first
        lacking = np.flatnonzero(self.count[key * self.nodes + node] < self.full[key])
        lacking = lacking[np.argsort(node[lacking], kind="stable")]
        node, key = node[lacking], key[lacking]
        if len(node):
            mates = key[0] * self.nodes + self._mates_of(key[0], node[0])
            missing = mates[self.where[mates] != key[0] * self.nodes + node[0]]
            self.found.record_missing(node[0], self.block_of_cell(missing[0]))


class KeptSumsWindow:
    """One pass over a reduction in which nodes keep their sums and send copies.

    It follows the sums of one chunk.

    - ``total[node, k]`` is the number of times that the sum of `node` has the contribution of node
      k; 2 stands for any larger number, too.
    - ``arrived[node, port]`` is the word that arrived last by an in-port, if ``came[node, port]``.

    A word that arrives is added to the sum. In a schedule that lists its rounds (`Rounds`), a word
    that has all contributions of the sum replaces it. In a table, nodes only add.
    """

    def __init__(
        self,
        schedule: Schedule,
        chunk: int,
        _: int,
        found: Findings,
        *,
        twice: bool,
    ) -> None:
        self.schedule, self.chunk, self.found, self.twice = schedule, chunk, found, twice
        kernel = schedule.part if isinstance(schedule, Lifted) else schedule
        self.replaces = isinstance(kernel, Rounds)
        nodes, ports = schedule.topology.nodes, schedule.topology.ports
        self.total = np.eye(nodes, dtype=np.uint8)
        self.arrived = np.zeros((nodes, ports, nodes), np.uint8)
        self.came = np.zeros((nodes, ports), bool)

    def execute_round(self, number: int, transfers: Transfers) -> None:
        """Execute one round: all words leave their senders before any word arrives.

        `number` is the number of the round, and `transfers` are its transfers.
        """
        topology, payload = self.schedule.topology, transfers.payload
        assert isinstance(payload, KeptSums)
        mine = np.flatnonzero(payload.chunk == self.chunk)
        self.found.add_sizes(number, transfers, (payload.chunk == self.chunk).astype(np.int64))
        self.found.fresh += len(mine)
        source, passed = transfers.source[mine], payload.passed[mine]
        lost = np.flatnonzero((passed >= 0) & ~self.came[source, passed])
        if lost.size:
            text = "passes on a word of a chunk that has not arrived"
            self.found.record_and_stop(number, transfers, mine[lost[0]], None, text)
        words = np.where(passed[:, None] >= 0, self.arrived[source, passed], self.total[source])
        target = transfers.walk(topology)[mine, -1]
        # Of the words that arrive at a node in a round, the words that replace the sum come first.
        added = ((words == 0) & (self.total[target] > 0)).any(axis=1)
        order = np.lexsort(((words > 0).sum(axis=1), added))
        turn = np.empty(len(order), int)
        turn[order] = occurrence_ranks(target[order])
        for layer in range(int(turn.max(initial=-1)) + 1):
            now = np.flatnonzero(turn == layer)
            held = self.total[target[now]]
            total = held + words[now]
            if self.replaces:
                whole = ((words[now] > 0) | (held == 0)).all(axis=1)
                total[whole] = words[now[whole]]
            k, origin = np.nonzero(total > 1)
            if k.size and self.schedule.collective.to_all and not self.twice:
                text = "sends {block}, which is counted twice"
                self.found.record_and_stop(
                    number, transfers, mine[now[k[0]]], self._block_of_node(origin[0]), text
                )
            self.total[target[now]] = np.minimum(total, 2)
        last = transfers.hops[mine, transfers.lengths[mine] - 1]
        self.arrived[target, topology.opposite[last]] = words
        self.came[target, topology.opposite[last]] = True

    def _block_of_node(self, origin: int) -> int:
        """Return the block number of the contribution of node `origin` to the sum of the chunk."""
        blocks = self.schedule.blocks
        return int(blocks.encode(blocks.groups.position_of_node[origin], self.chunk))

    def check_end(self) -> None:
        """Record the first node whose sum lacks a contribution at the end, or has one twice.

        In a reduce only the root is checked, in an all-reduce every node.
        """
        root = self.schedule.collective.root
        for group in self.schedule.blocks.groups.members:
            receivers = group if root is None else group[[root]]
            count = self.total[np.ix_(receivers, group)]
            wrong = np.argwhere(count < 1 if self.twice else count != 1)
            if len(wrong):
                at, k = wrong[0]
                text = "ends without the complete sum that has {block}"
                if count[at, k]:
                    text = "ends with a sum in which {block} is counted twice"
                self.found.record_missing(receivers[at], self._block_of_node(group[k]), text)
