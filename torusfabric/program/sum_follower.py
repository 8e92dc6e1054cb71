"""The simulation of sums in rounds: nodes combine words on their way out.

A node reads its own contribution and all words that arrived for the same sum from their memories at
once, and combines them by operators in front of its injection port. A node thus has at most as many
operators as children. If each node sends once, a fabric has one operator less than nodes.

A complete sum is combined again each time that it is sent. In a last round without hops, nodes
combine the words of the sums that they must have, and store the results behind these words.

In some schedules nodes *keep* their sums. Then a node sends copies: the words of its sum stay in
memory. If an arriving word already contains all contributions of the sum, it replaces the sum, and
is its only word from then on.

Each sum has a *key*: the chunk, or the pair of destination and chunk for shares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from ..schedule import Grouped, KeptSums, Transfers
from ..schedule.kept_sums import SumParts, sum_after
from ..schedule.sum_trees import has_single_hops
from .fields import IDLE
from .round_follower import Message, RoundRecord, crossbar_settings
from .send_order import SEND_MEMORY, Location
from .timing import COMBINE

if TYPE_CHECKING:
    from ..schedule import Rounds, Schedule
    from ..topology import IntArray, Topology
    from .round_follower import RoundPlan

__all__ = ["follow_arriving_sums", "follow_sums", "link_latencies"]


def follow_sums(schedule: Schedule, *, rests: bool) -> RoundPlan:
    """Simulate a schedule of sums round by round, and return the actions of all nodes.

    Parameters
    ----------
    rests : bool
        True if rounds may follow one another without a pause; they then do so if every message is
        the sum of one chunk that goes one hop.
    """
    single = has_single_hops(schedule)
    follower_of = _KeptSumFollower if schedule.keeps_sums else _SumFollower
    follower = follower_of(schedule, single=single, results=rests and single)
    for transfers in schedule.rounds():
        follower.follow_round(transfers)
    follower.add_final_round()
    return follower.record.make_plan(rests=rests and single)


def follow_arriving_sums(schedule: Rounds) -> tuple[Rounds, RoundPlan, IntArray] | None:
    """Simulate a schedule of sums in which nodes add each word as it arrives.

    Returns
    -------
    schedule : Rounds
        The schedule, in which some transfers come in other rounds, see `_spread_additions`.
    plan : RoundPlan
        The actions of all nodes. With P ports, the injection ports (k + 1) P and following are for
        operators at links of latency k of `link_latencies`.
    operands : ndarray of int16, shape (rounds, nodes, ports)
        The source of the second operand of each operator.

    The result is None if messages have several hops or sums, if nodes keep their sums, or if links
    differ in rate.
    """
    slow = schedule.topology.spacing_multiple > 1
    if schedule.keeps_sums or slow or not has_single_hops(schedule):
        return None
    schedule = _spread_additions(schedule)
    follower = _ArrivingSumFollower(schedule)
    for transfers in schedule.rounds():
        follower.follow_round(transfers)
    return schedule, follower.record.make_plan(), np.stack(follower.operands)


class _SumFollower:
    """A simulation of the memories of all nodes in a reduction, round by round.

    A node combines a sum when it sends it: it then reads its own contribution and all words that
    have arrived for the sum. A sum is identified by its *key*, the block number of the contribution
    of origin 0 to it.

    Parameters
    ----------
    single : bool
        True if every message is the sum of one chunk that goes one hop.
    results : bool
        True if complete sums have a memory of their own (see `RoundRecord`).
    """

    def __init__(self, schedule: Schedule, *, single: bool, results: bool) -> None:
        self._schedule, self._topology = schedule, schedule.topology
        self._single, self._results = single, results
        self._keys = schedule.blocks.blocks_per_origin
        self.record = RoundRecord(schedule, self._keys, results=results)
        #: Number of contributions to each sum, by node and key.
        self._count = np.zeros((self._topology.nodes, self._keys), int)
        for slot, node, key in self._own_contributions():
            self.record.held[node][key] = [Location(SEND_MEMORY, slot)]
            self.record.filled[node, SEND_MEMORY] += 1
            self._count[node, key] = 1
        #: Complete sums that are still to be stored as one word, by node.
        self._to_keep: dict[int, dict[int, None]] = {}

    def _own_contributions(self) -> Iterator[tuple[int, int, int]]:
        """Yield (slot, node, key) for each contribution: its memory slot at its node, and its sum.

        A node outside of listed groups has no contributions.
        """
        blocks = self._schedule.blocks
        ids, size = np.arange(self._keys), blocks.blocks_per_node
        for origin in range(blocks.group_size):
            nodes, own = blocks.initial_copies(ids + origin * self._keys)
            for node, key in zip(nodes.tolist(), (own % self._keys).tolist(), strict=True):
                yield key % size, node, key

    def follow_round(self, transfers: Transfers) -> None:
        """Simulate one round: senders read and combine their sums, and receivers store them.

        All contributions to one sum that a transfer carries are one word.
        """
        record, held, topology = self.record, self.record.held, self._topology
        payloads = self.list_messages(transfers)
        complete = self.move_contributions(transfers, payloads)
        entry, payloads = record.inject_transfers(transfers, payloads, lambda _, messages: messages)
        for node, message in zip(transfers.source.tolist(), payloads, strict=True):
            held[node].update({key: [] for key in message if (node, key) not in complete})
        if self._results:
            self._store_complete_sums(complete, transfers, entry, payloads)
        select, ends = crossbar_settings(topology, transfers, entry)
        for (node, port, links), payload in zip(ends, payloads, strict=True):
            for key, location in record.store_message(node, port, port, links, payload):
                held[node].setdefault(key, []).append(location)
        record.end_round(select, ends, payloads)

    def list_messages(self, transfers: Transfers) -> list[Message]:
        """Return the keys of the sums that each transfer of a round carries."""
        if isinstance(transfers.payload, Grouped) and self._single:
            single: list[Message] = transfers.payload.wanted[:, None].tolist()
            return single
        listed = transfers.listed
        keys, bounds = np.asarray(listed.ids) % self._keys, np.asarray(listed.indptr)
        return [np.unique(keys[a:b]).tolist() for a, b in pairwise(bounds.tolist())]

    def move_contributions(
        self, transfers: Transfers, payloads: list[Message]
    ) -> set[tuple[int, int]]:
        """Count the contributions after a round; return (sender, key) of the complete sums.

        Partial sums move, complete sums are copied. `payloads` has the keys of each transfer.
        """
        owner = np.repeat(np.arange(len(payloads)), list(map(len, payloads)))
        sums = np.array([key for message in payloads for key in message], int)
        source, target = transfers.source[owner], transfers.walk(self._topology)[owner, -1]
        carried = self._count[source, sums]
        whole = carried == self._schedule.blocks.contribution_counts[sums]
        self._count[source[~whole], sums[~whole]] = 0
        np.add.at(self._count, (target, sums), carried)
        return set(zip(source[whole].tolist(), sums[whole].tolist(), strict=True))

    def _store_complete_sums(
        self,
        complete: set[tuple[int, int]],
        transfers: Transfers,
        entry: IntArray,
        payloads: list[Message],
    ) -> None:
        """Let each node store a complete sum, of which it has several words, as one word.

        A node can store one sum in a round. It stores a sum that it also sends, if possible;
        otherwise an injection port (an input of the router for words from memories) that has
        nothing to send reads the words of a sum. Sums for which there is no injection port wait for
        a later round.

        Parameters
        ----------
        complete : set of (int, int)
            Pairs of a node and the key of a sum that the node sends complete in this round.
        transfers : Transfers
            Transfers of the round.
        entry : ndarray of int, shape (transfers,)
            Number of the source that feeds each transfer at its sender.
        payloads : list of Message
            Keys of the sums that each transfer carries.
        """
        for node, key in sorted(complete):
            if len(self.record.held[node][key]) > 1:
                self._to_keep.setdefault(node, {})[key] = None
        injected: dict[int, dict[int, int]] = {}
        for node, source, message in zip(
            transfers.source.tolist(), entry.tolist(), payloads, strict=True
        ):
            injected.setdefault(node, {})[source - self._topology.ports] = message[0]
        ports = self._topology.ports
        for node, keys in [*self._to_keep.items()]:
            busy = injected.get(node, {})
            sent = [(port, key) for port, key in busy.items() if key in keys]
            free = [p for p in range(int(self._topology.linked[node].sum())) if p not in busy]
            if sent:
                port, key = sent[0]
            elif free:
                port, key = free[0], next(iter(keys))
                self.record.add_bursts(node, port, [key])
            else:
                continue
            del keys[key]
            ((_, location),) = self.record.store_message(node, ports, ports + port, 0, [key])
            self.record.held[node][key] = [location]
            if not keys:
                del self._to_keep[node]

    def add_final_round(self) -> None:
        """Add a round without hops, in which nodes combine the sums that are delivered to them.

        A sum of which a node has several words is then stored as one word. If there is no such sum,
        no round is added.
        """
        record, topology, messages = self.record, self._topology, []
        layout = self._schedule.layout
        for node in layout.receiving_nodes.tolist():
            blocks = layout.received_block(node, np.arange(layout.recv_blocks))
            keys = (blocks[blocks >= 0] % self._keys).tolist()
            message = [key for key in keys if len(record.held[node][key]) > 1]
            if not message:
                continue
            record.add_bursts(node, 0, message)
            # The memory with the fewest words is taken: an empty one needs no multiplexer.
            memory = topology.ports
            if not self._results:
                memory = int(np.argmin(record.filled[node, :-1]))
            for key, location in record.store_message(node, memory, topology.ports, 0, message):
                record.held[node][key].append(location)
            messages.append(message)
        if messages:
            idle = np.full((topology.nodes, topology.ports), IDLE, np.int16)
            record.end_round(idle, [], messages)


class _ArrivingSumFollower(_SumFollower):
    """A simulation of a reduction in which nodes add each word as it arrives.

    The operator behind an in-port combines an arriving word with the sum of the node, which a
    reader reads when the word arrives. So a node has one word of each sum.

    Attributes
    ----------
    operands : list of ndarray of int16, shape (nodes, ports)
        For each round, the source of the second operand of each operator.
    """

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule, single=True, results=False)
        self.operands: list[IntArray] = []

    @override
    def follow_round(self, transfers: Transfers) -> None:
        """Simulate a round. Sources have the numbers of `Sources` with results."""
        record, held, ports = self.record, self.record.held, self._topology.ports
        latencies = link_latencies(self._topology)
        messages = self.list_messages(transfers)
        complete = self.move_contributions(transfers, messages)
        entry, messages = record.inject_transfers(transfers, messages, lambda _, each: each)
        select, ends = crossbar_settings(self._topology, transfers, entry)
        operand, injection = np.full_like(select, IDLE), Counter[int]()
        for (node, port, links), (key,) in zip(ends, messages, strict=True):
            adds = bool(held[node].get(key))
            if adds:
                number = ports * (1 + latencies.index(links)) + injection[node]
                injection[node] += 1
                record.add_bursts(node, number, [key])
                operand[node, port] = 2 * ports + number
            ((_, location),) = record.store_message(
                node, port, port + ports * adds, links + COMBINE * adds, [key]
            )
            held[node][key] = [location]
        for node, (key,) in zip(transfers.source.tolist(), messages, strict=True):
            if (node, key) not in complete:
                held[node][key] = []
        record.end_round(np.where(select >= ports, select + ports, select), ends, messages)
        self.operands.append(operand)


def link_latencies(topology: Topology) -> list[int]:
    """Return the different latencies of the links of a network in cycles, ascending."""
    found: list[int] = np.unique(topology.cycles_of_arc[topology.linked]).tolist()
    return found


def _spread_additions(schedule: Rounds) -> Rounds:
    """Return a schedule in which nodes have an operator and a reader for all that they do at once.

    In a round, a node adds at most one word to a sum. A node has a reader for each port, and needs
    one for each word that it sends, and for each word to which it adds. Each transfer comes in the
    first round in which this is so, its arc is free, and its sum has arrived.
    """
    follower, ports = _SumFollower(schedule, single=True, results=False), schedule.topology.ports
    has_sum = {(node, key) for node, held in enumerate(follower.record.held) for key in held}
    last: dict[tuple[int, int], int] = defaultdict(lambda: -1)
    reads: list[Counter[int]] = []
    moved: list[list[tuple[int, int, int]]] = []
    for transfers in schedule.rounds():
        messages = follower.list_messages(transfers)
        complete = follower.move_contributions(transfers, messages)
        target, port = transfers.walk(schedule.topology)[:, 1], transfers.hops[:, 0]
        each = zip(*map(np.ndarray.tolist, (transfers.source, port, target)), messages, strict=True)
        for sender, out, node, (key,) in each:
            adds, at = (node, key) in has_sum, 1 + max(last[sender, key], last[node, key])
            while at < len(reads) and (
                any((sender, out) == one[:2] for one in moved[at])
                or reads[at][sender] == ports
                or (adds and reads[at][node] == ports)
            ):
                at += 1
            moved.extend([] for _ in range(at - len(moved) + 1))
            reads.extend(Counter() for _ in range(at - len(reads) + 1))
            moved[at].append((sender, out, key))
            reads[at].update([sender, node] if adds else [sender])
            last[node, key] = at
            has_sum.add((node, key))
        left = zip(transfers.source.tolist(), messages, strict=True)
        has_sum -= {(node, key) for node, (key,) in left} - complete
    group = np.arange(schedule.blocks.n_blocks) % schedule.blocks.blocks_per_origin
    columns = [np.array(each, int).reshape(-1, 3).T for each in moved]
    return replace(
        schedule,
        transfers=tuple(
            Transfers.hop(source, port, Grouped(group, key)) for source, port, key in columns
        ),
    )


class _KeptSumFollower(_SumFollower):
    """A simulation of a reduction in which nodes keep their sums and send copies.

    Instead of its sum, a node may send the last word that came for this sum by an in-port p. With K
    sums, numbered by keys k from 0, such a word has the key k + (p + 1) K.

    Attributes
    ----------
    _ranks : dict of (int, int) to int
        For each node and key, the contributions that the sum contains at the node, as a number with
        a bit for each contribution. At first a sum contains only the contribution of its own node.
    """

    def __init__(self, schedule: Schedule, *, single: bool, results: bool) -> None:
        super().__init__(schedule, single=single, results=results)
        self._ranks: dict[tuple[int, int], int] = {}

    def follow_round(self, transfers: Transfers) -> None:
        record, payload, payloads = self.record, transfers.payload, list[Message]()
        if len(transfers):
            assert isinstance(payload, KeptSums)
            payloads = (payload.chunk + self._keys * (1 + payload.passed))[:, None].tolist()
        sources = zip(transfers.source.tolist(), payloads, strict=True)
        places = [(node, key) for node, (key,) in sources]
        words = [self._contributions(place) for place in places]
        entry, payloads = record.inject_transfers(transfers, payloads, lambda _, messages: messages)
        if self._results:
            full = (1 << self._topology.nodes) - 1
            own = {place for place in places if place[1] < self._keys}
            complete = {place for place in own if self._contributions(place) == full}
            self._store_complete_sums(complete, transfers, entry, payloads)
        select, ends = crossbar_settings(self._topology, transfers, entry)
        arriving: dict[tuple[int, int], list[tuple[int, Location]]] = {}
        for (node, port, links), message, ranks in zip(ends, payloads, words, strict=True):
            for key, location in record.store_message(node, port, port, links, message):
                arriving.setdefault((node, key % self._keys), []).append((ranks, location))
                passing = key % self._keys + self._keys * (1 + port)
                record.held[node][passing], self._ranks[node, passing] = [location], ranks
        for place, arrivals in arriving.items():
            held, key = record.held[place[0]], place[1]
            found = [ranks for ranks, _ in arrivals]
            parts = sum_after(self._contributions(place), found)
            if parts is None:  # with idempotent operators a contribution may be included twice
                ranks = reduce(or_, found, self._contributions(place))
                parts = SumParts(ranks, keeps=True, words=[*range(len(found))])
            self._ranks[place] = parts.contributions
            held[key] = held[key] * parts.keeps + [arrivals[number][1] for number in parts.words]
        record.end_round(select, ends, payloads)

    def _contributions(self, place: tuple[int, int]) -> int:
        """Return the contributions to a sum, as an integer whose bit v stands for node v.

        `place` is the node that has the sum, and the key of the sum.
        """
        return self._ranks.get(place, 1 << place[0])
