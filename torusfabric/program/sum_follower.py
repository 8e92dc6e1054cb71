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

from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from ..schedule import Grouped, KeptSums
from ..schedule.kept_sums import SumParts, sum_after
from ..schedule.sum_trees import has_single_hops
from .fields import IDLE
from .round_follower import Message, RoundRecord, crossbar_settings
from .send_order import SEND_MEMORY, Location

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers
    from ..topology import IntArray
    from .round_follower import RoundPlan

__all__ = ["follow_sums"]


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
        if isinstance(transfers.payload, Grouped) and self._single:
            payloads: list[Message] = transfers.payload.wanted[:, None].tolist()
        else:
            listed = transfers.listed
            keys, bounds = np.asarray(listed.ids) % self._keys, np.asarray(listed.indptr)
            payloads = [np.unique(keys[a:b]).tolist() for a, b in pairwise(bounds.tolist())]
        # Partial sums move; complete sums are copied.
        owner = np.repeat(np.arange(len(payloads)), list(map(len, payloads)))
        sums = np.array([key for message in payloads for key in message], int)
        source, target = transfers.source[owner], transfers.walk(topology)[owner, -1]
        carried = self._count[source, sums]
        whole = carried == self._schedule.blocks.contribution_counts[sums]
        self._count[source[~whole], sums[~whole]] = 0
        np.add.at(self._count, (target, sums), carried)
        complete = set(zip(source[whole].tolist(), sums[whole].tolist(), strict=True))
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
