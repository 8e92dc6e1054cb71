"""Following a schedule in rounds: what every node reads, passes on and stores, counted in blocks.

What arrives at an in-port is appended to the memory of that port, so where everything lies is known
in advance. Where words are combined, a node adds up on the way out: it streams its own contribution
and everything that arrived for the same sums from their memories at once, through operators into
its injection port. So a node has as many operators as it has children at most, and a fabric one
less than it has nodes where each node sends once. A complete sum is added up anew each time it is
sent. In a last round, without a hop, nodes add up what has arrived of the sums that they must have
and keep it behind that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from typing_extensions import override

from ..schedule import Everything, Grouped
from ..schedule.sum_trees import single_hops
from ..topology import IntArray
from .fields import IDLE, NEUTRAL, Memory, memories_of
from .round_plan import Bursts, Receipts, RoundPlan
from .send_order import SEND, Location, arrange

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers

__all__ = ["BlockFollower", "Message", "SumFollower"]

#: Where a block lies that a node does not keep.
NOWHERE = Location(SEND, -1)

#: The blocks, or the keys of sums, of a message, in the order they are sent.
Message: TypeAlias = list[int]


class BlockFollower:
    """Follows blocks through the memories of all nodes.

    Parameters
    ----------
    rests : bool
        Whether rounds may follow one another without a pause, where the schedule allows it.

    Attributes
    ----------
    held : list of (dict of int to (list of Location))
        Of each node and block, where it lies, or all that it is to be combined of.
    filled : ndarray of int, shape (nodes, memories)
        Blocks in the memory of each in-port, in that of results if there is one, and in that of
        what a node sends.
    """

    def __init__(self, schedule: Schedule, *, rests: bool = True) -> None:
        self.schedule, self.topology = schedule, schedule.topology
        self.held: list[dict[int, list[Location]]] = [{} for _ in range(self.topology.nodes)]
        self.single = single_hops(schedule)
        self.rests = rests and self.single
        #: Whether results have a memory: in that of an in-port something may arrive meanwhile.
        self.results = self.rests and schedule.collective.reducing
        memories = self.topology.ports + self.results + 1
        self.filled = np.zeros((self.topology.nodes, memories), int)
        self._select: list[IntArray] = []
        self._links: list[int] = []
        self._message: list[int] = []
        self._bursts: list[tuple[int, ...]] = []
        self._receipts: list[tuple[int, ...]] = []

    def follow(self) -> RoundPlan:
        """What all nodes do."""
        self._fill()
        rounds = list(self.schedule.rounds())
        for number, transfers in enumerate(rounds):
            later = (t.payload.group for t in rounds[number:] if isinstance(t.payload, Grouped))
            self._follow(transfers, next(later, None))
        self._finish()
        memory, slot = self._locations()
        own = self.filled.shape[1] - 1
        bursts = Bursts(*np.array(self._bursts, int).reshape(-1, len(Bursts._fields)).T)
        return RoundPlan(
            select=np.stack(self._select),
            links=np.array(self._links),
            blocks=np.array(self._message),
            bursts=bursts._replace(memory=np.where(bursts.memory == SEND, own, bursts.memory)),
            receipts=Receipts(*np.array(self._receipts, int).reshape(-1, len(Receipts._fields)).T),
            depth=self.filled,
            memories=(*memories_of(range(self.topology.ports), 0), *[Memory(())] * self.results),
            memory=np.where(memory == SEND, own, memory),
            slot=slot,
            rests=self.rests,
        )

    def _fill(self) -> None:
        """Note what lies in the memories before the first round, in the order of the host."""
        blocks = self.schedule.blocks
        numbers = np.arange(blocks.count)
        for block, node in zip(numbers.tolist(), blocks.origin(numbers).tolist(), strict=True):
            self.held[node][block] = [Location(SEND, int(self.filled[node, SEND]))]
            self.filled[node, SEND] += 1

    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        """The blocks of each transfer, in the order they are sent.

        Where that is free, it is by the groups in which they are needed next, and within a group in
        the order of the memories.
        """
        sources: list[int] = transfers.source.tolist()
        match transfers.payload:
            case Everything():
                held = {node: self._in_order(node, group) for node in set(sources)}
                return [held[node] for node in sources]
            case Grouped(group=group, wanted=wanted):
                held = {node: self._in_order(node, group) for node in set(sources)}
                return [
                    [block for block in held[node] if group[block] == want]
                    for node, want in zip(sources, wanted, strict=True)
                ]
            case _:
                listed = transfers.listed
                return [listed.ids[a:b].tolist() for a, b in pairwise(listed.indptr)]

    def _in_order(self, node: int, group: IntArray | None) -> Message:
        """What a node holds, group by group and memory by memory."""
        held = self.held[node]
        if group is None:
            return sorted(held, key=held.__getitem__)
        number = group
        return sorted(held, key=lambda block: (number[block], held[block]))

    def _follow(self, transfers: Transfers, group: IntArray | None) -> None:
        """Follow the transfers of a round."""
        topology = self.topology
        entry, payloads = self._inject(transfers, self._payloads(transfers, group))
        walk, hops = transfers.walk(topology), transfers.hops
        select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
        for hop in range(hops.shape[1]):
            on = hops[:, hop] >= 0
            select[walk[on, hop], hops[on, hop]] = entry[on]
            entry = np.where(on, topology.opposite[hops[:, hop]], entry)
        ends = walk[:, -1].tolist(), entry.tolist(), transfers.link_cycles(topology).tolist()
        for node, port, links, payload in zip(*ends, payloads, strict=True):
            if self._is_new(node, payload):
                self._store(node, port, links, payload, self._place(node, port, payload))
        self._end(select, max(ends[2], default=0), max(map(len, payloads), default=0))

    def _end(self, select: IntArray, links: int, message: int) -> None:
        """End a round, given its settings, cycles of its longest path, and longest message."""
        self._select.append(select)
        self._links.append(links)
        self._message.append(message)

    def _inject(
        self, transfers: Transfers, payloads: list[Message]
    ) -> tuple[IntArray, list[Message]]:
        """The source of each transfer at its sender, and its blocks in the order they are sent.

        That is an injection port: different messages of a sender have different ones, which read
        what is combined for them.
        """
        queues: dict[int, dict[tuple[int, ...], int]] = {}
        injection = np.zeros(len(transfers), int)
        for k in np.argsort(transfers.hops[:, 0], kind="stable").tolist():
            queue = queues.setdefault(int(transfers.source[k]), {})
            injection[k] = queue.setdefault(tuple(payloads[k]), len(queue))
        sent = {
            node: dict(zip(queue.values(), self._send(node, queue), strict=True))
            for node, queue in queues.items()
        }
        chosen = zip(transfers.source.tolist(), injection.tolist(), strict=True)
        arranged = [sent[node][number] for node, number in chosen]
        return self.topology.ports + injection, arranged

    def _send(self, node: int, queue: dict[tuple[int, ...], int]) -> list[Message]:
        """Read the messages of a node's injection ports; the messages as they are sent."""
        messages = self._arranged(node, list(map(list, queue)))
        for injection, message in zip(queue.values(), messages, strict=True):
            self._read(node, injection, message)
        return messages

    def _arranged(self, node: int, messages: list[Message]) -> list[Message]:
        """Messages in an order in which no two read a memory at once, if there is one."""
        held = self.held[node]
        return arrange(messages, {block: held[block][0] for m in messages for block in m})

    def _read(self, node: int, injection: int, message: Message) -> None:
        """Note the bursts of a message: reader k reads the k-th of what each block is made of."""
        held = [self.held[node][block] for block in message]
        for place in range(max(map(len, held), default=0)):
            read = ((at, *(h[place] if place < len(h) else (NEUTRAL, at)))
                    for at, h in enumerate(held))  # fmt: skip
            for _, run in groupby(read, key=lambda one: (one[1], one[2] - one[0])):
                (at, memory, slot), *others = run
                if memory != NEUTRAL:
                    facts = len(self._select), node, injection, place, at, memory, slot
                    self._bursts.append((*facts, 1 + len(others)))

    def _is_new(self, node: int, payload: Message) -> bool:
        """Whether a node stores a message that arrives: unless it holds all of it."""
        return not all(block in self.held[node] for block in payload)

    def _place(self, node: int, port: int, payload: Message) -> Location:
        """Make room for what arrives at an in-port: behind what has arrived there before."""
        first = int(self.filled[node, port])
        self.filled[node, port] += len(payload)
        return Location(port, first)

    def _store(self, node: int, source: int, links: int, payload: Message, first: Location) -> None:
        """Store a message from a place on."""
        memory, slot = first
        self._receipts.append((len(self._select), node, memory, source, links, slot, len(payload)))
        for number, block in enumerate(payload, slot):
            self._hold(node, block, Location(memory, number))

    def _hold(self, node: int, block: int, location: Location) -> None:
        """Note where something lies: the first copy of a block is the one that is used."""
        self.held[node].setdefault(block, [location])

    def _finish(self) -> None:
        """Add what is done after the last round of the schedule."""

    def _locations(self) -> tuple[IntArray, IntArray]:
        """Where nodes keep what the host may ask for: memory and slot, by node, in its order."""
        layout = self.schedule.collective.layout(self.topology, self.schedule.chunks)
        index = np.arange(layout.recv_blocks)
        located = np.empty((self.topology.nodes, len(index), 2), int)
        located[:] = NOWHERE
        for node in layout.receivers.tolist():
            wanted = layout.received_block(node, index).tolist()
            located[node] = [self._location(node, block) for block in wanted]
        return located[..., 0], located[..., 1]

    def _location(self, node: int, block: int) -> Location:
        """Where a node keeps a block in the end, or `NOWHERE`."""
        return self.held[node].get(block, [NOWHERE])[-1]


class SumFollower(BlockFollower):
    """Follows sums, each known by its *key*: the chunk, or, of shares, destination and chunk."""

    @override
    def _fill(self) -> None:
        self._keys = self.schedule.blocks.per_origin
        for held in self.held:
            held.update({key: [Location(SEND, key)] for key in range(self._keys)})
        self.filled[:, SEND] = self._keys
        #: Of some nodes, the complete sums that they have yet to keep in one piece.
        self._to_keep: dict[int, dict[int, None]] = {}
        #: Of each node and key, the contributions to its sum.
        self._count = np.ones((self.topology.nodes, self._keys), int)
        #: The senders of complete sums in the round that is followed, and their keys.
        self._complete: set[tuple[int, int]] = set()

    @override
    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        """The keys of each transfer: all contributions to one sum are one message."""
        payloads: list[Message]
        match transfers.payload:
            case Grouped(wanted=wanted) if self.single:
                payloads = wanted[:, None].tolist()
            case _:
                listed = transfers.listed
                keys, ends = np.asarray(listed.ids) % self._keys, np.asarray(listed.indptr)
                payloads = [np.unique(keys[a:b]).tolist() for a, b in pairwise(ends.tolist())]
        owner = np.repeat(np.arange(len(payloads)), list(map(len, payloads)))
        key = np.array([key for message in payloads for key in message], int)
        source, target = transfers.source[owner], transfers.walk(self.topology)[owner, -1]
        carried = self._count[source, key]
        whole = carried == self.topology.nodes
        self._complete = set(zip(source[whole].tolist(), key[whole].tolist(), strict=True))
        self._count[source[~whole], key[~whole]] = 0
        np.add.at(self._count, (target, key), carried)
        return payloads

    @override
    def _send(self, node: int, queue: dict[tuple[int, ...], int]) -> list[Message]:
        """As of blocks; the node keeps nothing of partial sums."""
        messages = super()._send(node, queue)
        for message in messages:
            partial = [key for key in message if (node, key) not in self._complete]
            self.held[node].update({key: [] for key in partial})
        return messages

    @override
    def _inject(
        self, transfers: Transfers, payloads: list[Message]
    ) -> tuple[IntArray, list[Message]]:
        """As of blocks; nodes keep complete sums, one a round, as they are sent, or later."""
        for node, key in sorted(self._complete):
            if self.results and len(self.held[node][key]) > 1:
                self._to_keep.setdefault(node, {})[key] = None
        entry, payloads = super()._inject(transfers, payloads)
        injected: dict[int, dict[int, int]] = {}
        for node, source, message in zip(
            transfers.source.tolist(), entry.tolist(), payloads, strict=True
        ):
            injected.setdefault(node, {})[source - self.topology.ports] = message[0]
        for node, keys in [*self._to_keep.items()]:
            self._keep(node, keys, injected.get(node, {}))
        return entry, payloads

    def _keep(self, node: int, keys: dict[int, None], injected: dict[int, int]) -> None:
        """Store a complete sum that is injected, or one by an injection port that is not in use."""
        sent = [(port, key) for port, key in injected.items() if key in keys]
        free = [p for p in range(int(self.topology.linked[node].sum())) if p not in injected]
        if sent:
            port, key = sent[0]
        elif free:
            port, key = free[0], next(iter(keys))
            self._read(node, port, [key])
        else:
            return
        del keys[key]
        self.held[node][key] = []
        source = self.topology.ports + port
        self._store(node, source, 0, [key], self._place(node, self.topology.ports, [key]))
        if not keys:
            del self._to_keep[node]

    @override
    def _arranged(self, node: int, messages: list[Message]) -> list[Message]:
        return messages

    @override
    def _is_new(self, node: int, payload: Message) -> bool:
        return True

    @override
    def _hold(self, node: int, block: int, location: Location) -> None:
        self.held[node][block].append(location)

    @override
    def _finish(self) -> None:
        """The round in which nodes add up what they have of the sums that they must have."""
        longest = 0
        for node, message in self._unfinished():
            self._read(node, 0, message)
            # A memory without other words needs no multiplexer in front of it.
            port = self.topology.ports
            if not self.results:
                port = int(np.argmin(self.filled[node, :-1]))
            self._store(node, self.topology.ports, 0, message, self._place(node, port, message))
            longest = max(longest, len(message))
        if longest:
            self._end(np.full_like(self._select[0], IDLE), 0, longest)

    def _unfinished(self) -> Iterator[tuple[int, Message]]:
        """The nodes that have sums in several parts, and their keys."""
        layout = self.schedule.collective.layout(self.topology, self.schedule.chunks)
        for node in layout.receivers.tolist():
            blocks = layout.received_block(node, np.arange(layout.recv_blocks))
            keys = (blocks % self._keys).tolist()
            message = [key for key in keys if len(self.held[node][key]) > 1]
            if message:
                yield node, message

    @override
    def _location(self, node: int, block: int) -> Location:
        """Where a result lies: the last that was kept."""
        return self.held[node][block % self._keys][-1]
