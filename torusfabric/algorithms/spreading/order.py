"""The order that the transfers of a schedule must keep, so that each carries the same data.

Where blocks are copied, a transfer waits until its sender holds its blocks. Where sums are moved or
kept, a sum also must not change before it is sent: words that arrive later in the schedule wait for
the transfer. The user's rounds say what comes first; a transfer that is early is moved back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from ...schedule import KeptSums
from ...schedule.kept_sums import sum_after
from ...topology import IntArray
from .precedence import NEVER, Precedence, earliest_rounds
from .transfer_list import TransferList, split_lists

__all__ = ["TransferOrder", "order_transfers"]

#: The events at a sum, as (round, place among the words of the round, transfer). Words that arrive
#: have places from 0, and transfers that send the sum have place -1.
Event: TypeAlias = tuple[int, int, int]

#: An edge: the transfer before, the transfer after, and the rounds between them, 0 or 1.
Edge: TypeAlias = tuple[int, int, int]

#: The place of transfers that send the sum: they leave before words arrive.
SENT = -1


class TransferOrder(NamedTuple):
    """The order of the transfers of a schedule.

    Parameters
    ----------
    rounds : ndarray of int
        The round of each transfer without regard to collisions: its round in the schedule, or a
        later one if it is early; `NEVER` if no delay helps.
    units : list of list of int
        The transfers of each unit: those that must share a round.
    precedence : Precedence
        The order of units.
    """

    rounds: IntArray
    units: list[list[int]]
    precedence: Precedence


def order_transfers(moves: TransferList, *, early: bool) -> TransferOrder:
    """Return the order that the transfers of a schedule must keep.

    Parameters
    ----------
    moves : TransferList
        All transfers.
    early : bool
        True if some transfers may be early.

    Examples
    --------
    Node 1 of a ring sends on what it gets only in the same round:

    >>> import torusfabric as tf
    >>> both = tf.Transfers(np.array([0, 1]), np.array([[0], [0]]), tf.Listed.single([0, 0]))
    >>> mine = tf.Rounds(topology=tf.Torus(3), collective=tf.Collective("broadcast", 0),
    ...     transfers=(both,))
    >>> order_transfers(TransferList(mine), early=True).rounds
    array([0, 1])
    """
    if not moves.schedule.collective.reducing:
        precedence = _copy_precedence(moves)
        rounds = np.array(earliest_rounds(precedence, moves.round.tolist()), np.int64)
        return TransferOrder(rounds, [[k] for k in range(len(moves))], precedence)
    rounds = moves.round
    if isinstance(moves.transfers.payload, KeptSums):
        edges = _kept_edges(moves, moves.transfers.payload)
    else:
        if early:
            rounds = np.array(_Replay(moves).rounds, np.int64)
            if (rounds == NEVER).any():
                return TransferOrder(rounds, [], Precedence([], [], []))
        edges = _moved_edges(moves, rounds)
    before, after, lag = np.array([*edges], np.int64).reshape(-1, 3).T
    return TransferOrder(rounds, *_join_units(before, after, lag, len(moves)))


def _join_units(
    before: IntArray, after: IntArray, lag: IntArray, count: int
) -> tuple[list[list[int]], Precedence]:
    """Return the units of `count` transfers, and their precedence.

    Transfers on a cycle of edges with lag 0 must share a round, as in an exchange of sums: each
    node sends its sum before the sum of the other one arrives. The arrays are as for
    `Precedence.from_edges`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    same = lag == 0
    graph = coo_array((np.ones(same.sum()), (before[same], after[same])), shape=(count, count))
    number, unit = connected_components(graph, connection="strong")
    apart = unit[before] != unit[after]
    precedence = Precedence.from_edges(
        unit[before[apart]].astype(np.int64), unit[after[apart]].astype(np.int64), lag[apart],
        number,
    )  # fmt: skip
    return split_lists(unit, np.arange(count), number), precedence


def _copy_precedence(moves: TransferList) -> Precedence:
    """Return the precedence of transfers that copy blocks.

    A condition stands for a block that a node does not hold at first, and sends. Each transfer of
    this block to the node is a supplier.
    """
    blocks, nodes = moves.schedule.blocks, moves.nodes.astype(np.int64)
    owner, ids = moves.listed_pairs
    needed, reached = (nodes[owner, column] * blocks.n_blocks + ids for column in (0, -1))
    node, first = blocks.initial_copies(np.arange(blocks.n_blocks))
    lacking = np.flatnonzero(~np.isin(needed, node * np.int64(blocks.n_blocks) + first))
    cells, which = np.unique(needed[lacking], return_inverse=True)
    waiters = _distinct_lists(which.reshape(-1), owner[lacking], len(cells))
    place = np.searchsorted(cells, reached)
    hit = np.flatnonzero(np.append(cells, -1)[place] == reached)
    fires = _distinct_lists(owner[hit], place[hit], len(moves))
    return Precedence(fires, waiters, [1] * len(cells))


def _distinct_lists(index: IntArray, values: IntArray, count: int) -> list[list[int]]:
    """Return the lists of `split_lists`, each sorted and without repetitions."""
    pairs = (
        np.unique(np.array([index, values]), axis=1) if len(index) else np.array([index, values])
    )
    return split_lists(pairs[0], pairs[1], count)


def _moved_edges(moves: TransferList, rounds: IntArray) -> Iterator[Edge]:
    """Yield the edges between transfers that move partial sums, or copy complete sums.

    ``rounds[k]`` is the round of transfer k without regard to collisions.
    """
    owner, ids = moves.listed_pairs
    keys = np.int64(moves.sum_count)
    transfer, key = np.divmod(np.unique(owner * keys + ids % keys), keys)
    events: dict[int, list[Event]] = defaultdict(list)
    ends = moves.nodes[transfer][:, [0, -1]] * keys + key[:, None]
    for number, when, (source, target) in zip(
        transfer.tolist(), rounds[transfer].tolist(), ends.tolist(), strict=True
    ):
        events[source].append((when, SENT, number))
        events[target].append((when, 0, number))
    for each in events.values():
        yield from _cell_edges(each)


def _cell_edges(events: Iterable[Event]) -> Iterator[Edge]:
    """Yield the edges between the transfers that send a sum of a node, or bring words for it.

    A transfer that sends the sum follows all words that arrive before, and precedes all that arrive
    later; these may arrive in its own round, since sums leave before words arrive.
    """
    arrived: list[int] = []
    sent: list[int] = []
    before: list[int] = []
    for _, place, transfer in sorted(events):
        if place == SENT:
            yield from ((word, transfer, 1) for word in arrived if word != transfer)
            sent.append(transfer)
            continue
        if sent:
            before, arrived, sent = sent, [], []
        yield from ((sender, transfer, 0) for sender in before if sender != transfer)
        arrived.append(transfer)


def _kept_edges(moves: TransferList, payload: KeptSums) -> Iterator[Edge]:
    """Yield the edges between transfers of a reduction in which nodes keep their sums.

    Words that are added may arrive in any order. If a word replaces the sum, all words that arrive
    before the next transfer of the sum keep their order.
    """
    sums: dict[tuple[int, int], list[Event]] = defaultdict(list)
    ports: dict[tuple[int, int, int], list[Event]] = defaultdict(list)
    replaced = set()
    for entry in _kept_words(moves, payload):
        here, there, when = (entry.node, entry.chunk), (entry.target, entry.chunk), entry.round
        if entry.passed >= 0:
            ports[entry.node, entry.passed, entry.chunk].append((when, SENT, entry.transfer))
        else:
            sums[here].append((when, SENT, entry.transfer))
        sums[there].append((when, entry.place, entry.transfer))
        ports[entry.target, entry.in_port, entry.chunk].append((when, entry.place, entry.transfer))
        if entry.replaces:
            replaced.add(there)
    for cell, events in sums.items():
        yield from _cell_edges(events)
        if cell in replaced:
            yield from _chain_edges(events)
    for events in ports.values():
        if any(place == SENT for _, place, _ in events):
            yield from _cell_edges(events)
            yield from _chain_edges(events)


def _chain_edges(events: Iterable[Event]) -> Iterator[Edge]:
    """Yield edges by which words arrive at a node in the order that they have."""
    words = sorted(event for event in events if event[1] != SENT)
    for (first, _, before), (then, _, after) in pairwise(words):
        yield before, after, int(then > first)


class _KeptWord(NamedTuple):
    """A word that a transfer carries, in a reduction in which nodes keep their sums.

    Parameters
    ----------
    transfer, round : int
        Number of the transfer in the list, and its round from 0.
    node, target, in_port : int
        The sender, the receiver, and the in-port of the receiver.
    chunk, passed : int
        As in `KeptSums`.
    place : int
        Place of the word among those that arrive at the receiver in the round.
    replaces : bool
        True if the word replaces the sum, or if its effect is not known.
    """

    transfer: int
    round: int
    node: int
    target: int
    in_port: int
    chunk: int
    passed: int
    place: int
    replaces: bool


def _kept_words(moves: TransferList, payload: KeptSums) -> Iterator[_KeptWord]:
    """Yield the word of each transfer, while the sums of all nodes are followed."""
    hops, opposite = moves.transfers.hops, moves.schedule.topology.opposite
    in_port = opposite[hops[np.arange(len(moves)), moves.transfers.lengths - 1]].tolist()
    chunks, passed = payload.chunk.tolist(), payload.passed.tolist()
    source, target = moves.nodes[:, 0].tolist(), moves.nodes[:, -1].tolist()
    sums: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int, int], int] = {}
    bounds = np.flatnonzero(np.diff(moves.round, prepend=-1, append=-1)).tolist()
    for low, high in pairwise(bounds):
        arriving: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for k in range(low, high):
            word = sums.get((source[k], chunks[k]), 1 << source[k])
            if passed[k] >= 0:
                word = last.get((source[k], passed[k], chunks[k]), 0)
            arriving[target[k], chunks[k]].append((k, word))
        for cell, words in arriving.items():
            held = sums.get(cell, 1 << cell[0])
            after = sum_after(held, [word for _, word in words])
            order = range(len(words)) if after is None else _arrival_order(held, words)
            for place, index in enumerate(order):
                k, word = words[index]
                last[cell[0], in_port[k], cell[1]] = word
                replaces = after is None or not held & ~word
                yield _KeptWord(k, int(moves.round[k]), source[k], cell[0], in_port[k], cell[1],
                                passed[k], place, replaces)  # fmt: skip
            if after is not None:
                sums[cell] = after.contributions
            else:
                for _, word in words:
                    held |= word
                sums[cell] = held


def _arrival_order(held: int, words: list[tuple[int, int]]) -> list[int]:
    """Return the indices of the words of a round in the order in which `sum_after` applies them.

    Words that replace the sum `held` come first. An entry of `words` is (transfer, contributions).
    """
    return sorted(
        range(len(words)),
        key=lambda k: (bool(held & ~words[k][1]), words[k][1].bit_count()),
    )


class _Replay:
    """The rounds of transfers of sums, some of which are early, without regard to collisions.

    A transfer moves in its round of the schedule, or as soon as its sender holds the listed sums. A
    word that such a late transfer does not carry waits until the transfer has left.

    Attributes
    ----------
    rounds : list of int
        The round of each transfer; `NEVER` if its sender never holds the sums that it lists.
    """

    def __init__(self, moves: TransferList) -> None:
        self.rounds = [NEVER] * len(moves)
        self._original = moves.round.tolist()
        self._keys, blocks = moves.sum_count, moves.schedule.blocks
        #: The contributions to each sum when it is complete, as bits.
        self._complete = [(1 << count) - 1 for count in blocks.contribution_counts.tolist()]
        self._source, self._target = moves.nodes[:, 0].tolist(), moves.nodes[:, -1].tolist()
        #: The contributions to each sum of a node, as bits.
        self._held: dict[tuple[int, int], int] = defaultdict(int)
        node, ids = blocks.initial_copies(np.arange(blocks.n_blocks))
        for at, block in zip(node.tolist(), ids.tolist(), strict=True):
            self._held[at, block % self._keys] |= 1 << block // self._keys
        #: The contributions that each transfer lists, by their sums.
        self._sums: list[dict[int, int]] = [defaultdict(int) for _ in range(len(moves))]
        owner, ids = moves.listed_pairs
        for transfer, block in zip(owner.tolist(), ids.tolist(), strict=True):
            self._sums[transfer][block % self._keys] |= 1 << block // self._keys
        self._execute_rounds()

    def _execute_rounds(self) -> None:
        """Give a round to each transfer that can ever move."""
        waiting: list[int] = []
        following = iter([*enumerate(self._original), (-1, NEVER)])
        transfer, when = next(following)
        now = 0
        while waiting or transfer >= 0:
            while when == now:
                waiting.append(transfer)
                transfer, when = next(following)
            moving = self._find_movable(waiting)
            self._move_sums(moving, now)
            if not moving and transfer < 0:
                return
            waiting = [each for each in waiting if self.rounds[each] == NEVER]
            now += 1

    def _find_movable(self, waiting: list[int]) -> list[int]:
        """Return the transfers of `waiting` that can move now, in their order."""
        leaving: set[tuple[int, int]] = set()
        moving = []
        for transfer in waiting:
            node, sums = self._source[transfer], self._sums[transfer]
            cells = {(node, key) for key, each in sums.items() if each != self._complete[key]}
            holds = all(self._held[node, key] == each for key, each in sums.items())
            if holds and not cells & leaving:
                leaving |= cells
                moving.append(transfer)
        # A word must not change a sum that another transfer still has to send. What then stays
        # behind may in turn stop others.
        while True:
            stay = {*waiting}.difference(moving)
            late: dict[tuple[int, int], list[int]] = defaultdict(list)
            for transfer in stay:
                for key in self._sums[transfer]:
                    late[self._source[transfer], key].append(transfer)
            free = [transfer for transfer in moving if not self._is_held_back(transfer, late)]
            if len(free) == len(moving):
                return moving
            moving = free

    def _is_held_back(self, transfer: int, late: dict[tuple[int, int], list[int]]) -> bool:
        """Return True if a transfer brings words to a sum that must be sent without them.

        ``late[node, key]`` has the transfers that wait to send a sum.
        """
        return any(
            sums & ~self._sums[other][key] and self._original[other] <= self._original[transfer]
            for key, sums in self._sums[transfer].items()
            for other in late.get((self._target[transfer], key), ())
        )

    def _move_sums(self, moving: list[int], now: int) -> None:
        """Move the sums of the transfers in `moving` in round `now`."""
        for transfer in moving:
            self.rounds[transfer] = now
            for key, sums in self._sums[transfer].items():
                if sums != self._complete[key]:
                    self._held[self._source[transfer], key] = 0
        for transfer in moving:
            for key, sums in self._sums[transfer].items():
                self._held[self._target[transfer], key] |= sums
