"""The blocks that every node holds, a bit a block, round by round.

The blocks are followed 64 to a word, in as many passes over the rounds as memory asks for. Nothing
is assumed of the schedule, so that this is the reference for the checks that use symmetry.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...collective import Blocks
from ...schedule import Everything, Grouped, Listed, Schedule, Transfers
from ...topology import IntArray, IntLike
from .fault import fault, unfinished
from .traffic import Progress, Tally

__all__ = ["Findings", "Held", "Words", "follow", "popcount", "set_bits", "track_blocks"]

#: Bits of blocks.
Words: TypeAlias = NDArray[np.uint64]

#: Bytes of state that a pass may keep.
BUDGET = 2**28

#: Passes beyond which the first that finds a fault is the last: a small file may ask for millions.
MANY = 8

#: Words of state that are moved at a time: small enough for a cache.
CHUNK = 2**17


def popcount(words: Words) -> IntArray:
    """Number of ones in each word of an array of uint64."""
    counts: IntArray
    if hasattr(np, "bitwise_count"):
        counts = np.bitwise_count(words)
        return counts
    octets = np.ascontiguousarray(words)[..., None].view(np.uint8)
    counts = np.unpackbits(octets, axis=-1).sum(axis=-1)
    return counts


def track_blocks(
    schedule: Schedule, limit: int, *, finish: bool = True, progress: Progress | None = None
) -> Tally:
    """Follow all blocks through the first rounds of a schedule.

    Parameters
    ----------
    schedule : Schedule
        Of a collective that does not reduce; its rounds keep the rules of `structure`.
    limit : int
        How many rounds to follow.
    finish : bool
        Whether to check at the end that every node holds all that must be delivered to it.

    Raises
    ------
    ScheduleError
        At the first block that its sender does not hold or, with ``finish``, that is missing; in
        more than `MANY` passes at the first among the blocks followed so far.
    """
    nodes, words = schedule.topology.nodes, -(-schedule.blocks.count // 64)
    passes = range(0, words, max(1, BUDGET // (nodes * 8)))
    return follow(schedule, _Window, passes, limit, finish=finish, progress=progress)


def follow(
    schedule: Schedule,
    window: Callable[[Schedule, int, int, "Findings"], Any],
    passes: range,
    limit: int,
    *,
    finish: bool,
    progress: Progress | None,
) -> Tally:
    """Follow what there is through the first rounds, in as many passes over them as are given.

    A window, of what one pass follows, has `move` for a round, and `finish`.
    """
    found = Findings(schedule)
    for done, first in enumerate(passes):
        followed = window(schedule, first, min(first + passes.step, passes.stop), found)
        try:
            for number, transfers in enumerate(islice(schedule.rounds(), found.before(limit)), 1):
                followed.move(number, transfers)
                if progress:
                    progress(done * limit + number, len(passes) * limit)
            if finish:
                followed.finish()
        except Stopped:
            pass
        if len(passes) > MANY and (found.sending or found.missing):
            found.sizes.clear()  # what no pass has found yet may come
            break
    return found.conclude()


class Stopped(Exception):
    """A pass has come to a fault."""


class Findings:
    """The earliest fault so far, and what has been counted, over all passes."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.sizes: dict[int, tuple[Transfers, IntArray]] = {}
        self.longest = [0] * schedule.round_count
        self.sending: tuple[int, int, int, int, int, str] | None = None
        self.missing: tuple[int, int] | None = None
        self.received = self.fresh = 0

    def before(self, limit: int) -> int:
        """How many rounds the next pass must follow: a fault in a later one cannot be first."""
        return limit if self.sending is None else min(limit, self.sending[0])

    def stop(
        self, number: int, transfers: Transfers, transfer: int, block: int, text: str
    ) -> NoReturn:
        """Note what is wrong with a block that is sent, and end the pass."""
        node, port = transfers.source[transfer], transfers.hops[transfer, 0]
        found = (number, int(transfer), int(block), int(node), int(port), text)
        self.sending = found if self.sending is None else min(self.sending, found)
        raise Stopped

    def lacks(self, node: int, block: int) -> None:
        """Note that a node lacks a block at the end."""
        found = (int(node), int(block))
        self.missing = found if self.missing is None else min(self.missing, found)

    def add_sizes(self, number: int, transfers: Transfers, sizes: IntArray) -> None:
        """Add what one pass finds of the sizes of a round's messages."""
        known = self.sizes.get(number)
        self.sizes[number] = (transfers, sizes if known is None else known[1] + sizes)

    def conclude(self) -> Tally:
        """Raise the first fault of all, or add up."""
        schedule = self.schedule
        never = schedule.round_count + 1, 0, 0, 0, 0, ""
        number, _, block, node, port, text = self.sending or never
        for round_, (transfers, sizes) in sorted(self.sizes.items()):
            empty = np.flatnonzero(sizes == 0)
            if empty.size and round_ < number:
                raise fault(schedule, round_, "sends a message without a block",
                            node=transfers.source[empty[0]],
                            port=transfers.hops[empty[0], 0])  # fmt: skip
            self.longest[round_ - 1] = int(sizes.max(initial=0))
            self.received += int(sizes.sum())
        if self.sending:
            raise fault(schedule, number, text, node=node, port=port, block=block)
        if self.missing:
            node, block = self.missing
            raise unfinished(schedule, node, block)
        return self.longest, self.received - self.fresh


class Held:
    """Which nodes hold which of some blocks, a bit each: at first those that they have to send.

    ``words[k // 64, node]`` has bit ``k % 64`` set where the node holds the k-th of the blocks.
    """

    def __init__(self, blocks: Blocks, ids: IntArray) -> None:
        self.blocks, self.ids = blocks, ids
        self.words = np.zeros((-(-len(ids) // 64), blocks.groups.topology.nodes), np.uint64)
        nodes, _ = blocks.initial(ids)
        set_bits(self.words, np.tile(np.arange(len(ids)), blocks.groups.count), nodes)

    def lacking(self, column: IntArray, node: IntArray) -> IntArray:
        """The places at which a node lacks a block, given by its place among the blocks."""
        words = self.words[column >> 6, node]
        found: IntArray = np.flatnonzero(words >> (column & 63).astype(np.uint64) & 1 == 0)
        return found

    def came(self) -> int:
        """How many blocks nodes hold that they did not hold at first."""
        start = self.blocks.groups.count * len(self.ids)
        return int(popcount(self.words).sum(dtype=np.int64)) - start

    def missing(self) -> tuple[int, int] | None:
        """The lowest node that lacks any that it must hold in the end, and the lowest of these."""
        node: IntArray
        ids: IntArray
        if self.blocks.collective.to_all:
            full = np.zeros((len(self.words), 1), np.uint64)
            set_bits(full, np.arange(len(self.ids)), 0)
            nodes = np.flatnonzero(((self.words & full) != full).any(axis=0))[:1]
            node, ids = np.repeat(nodes, len(self.ids)), np.tile(self.ids, len(nodes))
        else:
            node, ids = self.blocks.final(self.ids)
        order = np.argsort(self.ids)
        missing = self.lacking(order[np.searchsorted(self.ids, ids, sorter=order)], node)
        return min(zip(node[missing].tolist(), ids[missing].tolist(), strict=True), default=None)


def set_bits(state: Words, column: IntArray, position: IntLike) -> None:
    """Set bits at positions in a state of shape (words, positions)."""
    bit = np.uint64(1) << (column & 63).astype(np.uint64)
    np.bitwise_or.at(state.reshape(-1), (column >> 6) * state.shape[1] + position, bit)


class _Window(Held):
    """The state of all nodes for blocks ``64 * first`` up to ``64 * last``."""

    def __init__(self, schedule: Schedule, first: int, last: int, found: Findings) -> None:
        self.schedule, self.first, self.found = schedule, 64 * first, found
        super().__init__(
            schedule.blocks, np.arange(64 * first, min(64 * last, schedule.blocks.count))
        )

    def move(self, number: int, transfers: Transfers) -> None:
        """Carry out one round."""
        if not len(transfers):
            return
        target = transfers.walk(self.schedule.topology)[:, -1]
        match transfers.payload:
            case Listed() as payload:
                self._move_listed(number, transfers, payload, target)
            case Everything():
                sizes = np.zeros(len(transfers), np.int64)
                self._move_held(transfers.source, target, sizes)
                self.found.add_sizes(number, transfers, sizes)
            case Grouped() as payload:
                sizes = np.zeros(len(transfers), np.int64)
                self._move_grouped(transfers, payload, target, sizes)
                self.found.add_sizes(number, transfers, sizes)

    def _move_listed(
        self, number: int, transfers: Transfers, payload: Listed, target: IntArray
    ) -> None:
        """Carry listed blocks, and note the first that its sender does not hold."""
        sizes = np.diff(payload.indptr)
        self.found.longest[number - 1] = int(sizes.max(initial=0))
        owner = np.repeat(np.arange(len(transfers)), sizes)
        ids = np.asarray(payload.ids, np.int64)
        mine: Any = slice(None)
        if len(self.ids) < self.schedule.blocks.count:
            mine = (ids >= self.first) & (ids < self.first + len(self.ids))
        owner, ids = owner[mine], ids[mine]
        lacking = self.lacking(ids - self.first, transfers.source[owner])
        if lacking.size:
            first = lacking[np.lexsort((ids[lacking], owner[lacking]))[0]]
            text = "sends {block} before it holds it"
            self.found.stop(number, transfers, owner[first], ids[first], text)
        self.found.received += len(ids)
        set_bits(self.words, ids - self.first, target[owner])

    def _move_held(
        self,
        source: IntArray,
        target: IntArray,
        sizes: IntArray,
        masks: Words | None = None,
        group: IntArray | None = None,
    ) -> None:
        """Carry all that the senders hold, or the blocks of a group, and count them."""
        order = np.argsort(target, kind="stable")
        source, target = source[order], target[order]
        new = np.concatenate([[True], target[1:] != target[:-1]])
        starts, reached = np.flatnonzero(new), target[new]
        counted = np.zeros(len(order), np.int64)
        if group is not None:
            group = group[order]
        step = max(1, CHUNK // max(len(source), self.words.shape[1]))
        for low in range(0, len(self.words), step):
            part = self.words[low : low + step]
            moved = part[:, source]
            if masks is not None:
                moved &= masks[low : low + step, group]
            counted += popcount(moved).sum(axis=0, dtype=np.int64)
            if len(starts) < len(target):
                moved = np.bitwise_or.reduceat(moved, starts, axis=1)
            part[:, reached] |= moved
        sizes[order] += counted

    def _move_grouped(
        self, transfers: Transfers, payload: Grouped, target: IntArray, sizes: IntArray
    ) -> None:
        """Carry the blocks of one group for each transfer."""
        wanted, index = np.unique(payload.wanted, return_inverse=True)
        masks = self._group_masks(payload.group, wanted)
        self._move_held(transfers.source, target, sizes, masks, index)

    def _group_masks(self, group: IntArray, wanted: IntArray) -> Words:
        """The blocks of each wanted group as bits: an array of shape (words, groups)."""
        masks = np.zeros((len(self.words), len(wanted)), np.uint64)
        mine = np.asarray(group)[self.ids]
        index = np.minimum(np.searchsorted(wanted, mine), len(wanted) - 1)
        member = np.flatnonzero(wanted[index] == mine)
        set_bits(masks, member, index[member])
        return masks

    def finish(self) -> None:
        """Check that every node holds what it must, and count what it came to hold."""
        self.found.fresh += self.came()
        if missing := self.missing():
            self.found.lacks(*missing)
