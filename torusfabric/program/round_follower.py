"""Following a schedule in rounds: what every node reads, passes on and stores, round by round.

What arrives at an in-port is appended to the memory of that port, so where everything lies is known
in advance. What lies there are blocks (see `BlockFollower`) or partial sums (see `SumFollower`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

import numpy as np

from ..schedule import Everything, Grouped
from ..topology import IntArray
from .circuits import Circuits, set_up_circuits
from .round_plan import NOTHING, NodeRounds, Readers, Receipt, RoundPlan, runs_of
from .send_order import SEND, Location, arrange

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers

__all__ = ["NOWHERE", "BlockFollower", "RoundFollower"]

#: Where a block lies that a node does not keep.
NOWHERE = Location(SEND, -1)

#: The blocks, or chunks, of a message, in the order they are sent.
Message: TypeAlias = list[int]

#: Where something that a node holds lies.
Held = TypeVar("Held")


class RoundFollower(ABC, Generic[Held]):
    """Follows messages through the memories of all nodes.

    Parameters
    ----------
    schedule : Schedule
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.topology = schedule.topology
        nodes, ports = self.topology.nodes, self.topology.ports
        self.held: list[dict[int, Held]] = [{} for _ in range(nodes)]
        self.filled = np.zeros((nodes, ports), int)
        self.send_depth = [0] * nodes
        self.select: list[IntArray] = []
        self.send: list[dict[int, tuple[Readers, ...]]] = []
        self.receive: list[dict[int, dict[int, Receipt]]] = []
        self.hops: list[int] = []
        self.message: list[int] = []

    @abstractmethod
    def _fill_send_memories(self) -> None:
        """Note what lies in the send memories before the first round."""

    @abstractmethod
    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        """What each transfer carries, given the groups in which blocks are needed next."""

    @abstractmethod
    def _send(
        self, node: int, messages: list[Message]
    ) -> tuple[list[Message], tuple[Readers, ...]]:
        """The messages of a node's injection ports as they are sent, and what is read for them."""

    @abstractmethod
    def _is_new(self, node: int, payload: Message) -> bool:
        """Whether a node stores a message that arrives."""

    @abstractmethod
    def _hold(self, node: int, block: int, location: Location) -> None:
        """Note where something that is stored lies."""

    @abstractmethod
    def location(self, node: int, block: int) -> Location:
        """Where a node keeps a block in the end, or `NOWHERE`."""

    def follow(self) -> RoundPlan:
        """What all nodes do."""
        self._fill_send_memories()
        rounds = list(self.schedule.rounds())
        for number, transfers in enumerate(rounds):
            later = (t.payload.group for t in rounds[number:] if isinstance(t.payload, Grouped))
            self._round(transfers, next(later, None))
        self._finish()
        return self._plan()

    def _finish(self) -> None:
        """Add what is done after the last round of the schedule; nothing by default."""

    def _round(self, transfers: Transfers, group: IntArray | None) -> None:
        """Follow the transfers of a round."""
        injection, payloads = self._inject(transfers, self._payloads(transfers, group))
        circuits = set_up_circuits(self.topology, transfers, injection)
        self.select.append(circuits.select)
        self.hops.append(int(transfers.lengths.max(initial=0)))
        self.message.append(max(map(len, payloads), default=0))
        self._deliver(circuits, transfers.lengths, payloads)

    def _inject(
        self, transfers: Transfers, payloads: list[Message]
    ) -> tuple[IntArray, list[Message]]:
        """Number the different messages of each sender, and note what is read for each.

        Returns
        -------
        injection : ndarray of int, shape (transfers,)
            The injection port of each transfer.
        payloads : list of Message
            The blocks of each transfer, in the order they are sent in the end.
        """
        queues: dict[int, dict[tuple[int, ...], int]] = {}
        injection = np.zeros(len(transfers), int)
        for k in np.argsort(transfers.hops[:, 0], kind="stable").tolist():
            queue = queues.setdefault(int(transfers.source[k]), {})
            injection[k] = queue.setdefault(tuple(payloads[k]), len(queue))
        sent = {
            node: self._send(node, [list(message) for message in queue])
            for node, queue in queues.items()
        }
        self.send.append({node: readers for node, (_, readers) in sent.items()})
        chosen = zip(transfers.source.tolist(), injection.tolist(), strict=True)
        return injection, [sent[node][0][number] for node, number in chosen]

    def _deliver(self, circuits: Circuits, lengths: IntArray, payloads: list[Message]) -> None:
        """Append each message that brings something new to the memory of its in-port."""
        receive: dict[int, dict[int, Receipt]] = {}
        ends = circuits.destination.tolist(), circuits.in_port.tolist(), lengths.tolist()
        for node, port, hops, payload in zip(*ends, payloads, strict=True):
            if self._is_new(node, payload):
                receive.setdefault(node, {})[port] = Receipt(hops, len(payload))
                self._store(node, port, payload)
        self.receive.append(receive)

    def _store(self, node: int, port: int, payload: Message) -> None:
        """Append a message to the memory of an in-port."""
        first = int(self.filled[node, port])
        for k, block in enumerate(payload):
            self._hold(node, block, Location(port, first + k))
        self.filled[node, port] += len(payload)

    def _plan(self) -> RoundPlan:
        """What has been followed."""
        memory, slot = self._locations()
        return RoundPlan(
            nodes=[self._node(node) for node in range(self.topology.nodes)],
            select=np.stack(self.select),
            hops=np.array(self.hops),
            blocks=np.array(self.message),
            memory=memory,
            slot=slot,
        )

    def _node(self, node: int) -> NodeRounds:
        """What one node does."""
        ports = range(self.topology.ports)
        return NodeRounds(
            select=np.stack([select[node] for select in self.select]).tobytes(),
            send=tuple(row.get(node, ()) for row in self.send),
            receive=tuple(
                tuple(row.get(node, {}).get(port, NOTHING) for port in ports)
                for row in self.receive
            ),
            depth=(*self.filled[node].tolist(), self.send_depth[node]),
        )

    def _locations(self) -> tuple[IntArray, IntArray]:
        """Where nodes keep what the host may ask for: memory and slot, by node, in its order."""
        layout = self.schedule.collective.layout(self.topology, self.schedule.chunks)
        nodes, index = np.arange(self.topology.nodes), np.arange(layout.recv_blocks)
        wanted = layout.received_block(nodes[:, None], index[None, :])
        locations = [
            [self.location(node, block) for block in row]
            for node, row in enumerate(wanted.tolist())
        ]
        memory, slot = np.moveaxis(np.array(locations).reshape(*wanted.shape, 2), -1, 0)
        return np.where(memory == SEND, self.topology.ports, memory), slot


class BlockFollower(RoundFollower[Location]):
    """Follows blocks: ``held[node][block]`` is where a block lies."""

    def _fill_send_memories(self) -> None:
        """Block (origin, [destination,] chunk) in the order of the host."""
        blocks = self.schedule.blocks
        numbers = np.arange(blocks.count)
        for block, node in zip(numbers.tolist(), blocks.origin(numbers).tolist(), strict=True):
            self.held[node][block] = Location(SEND, self.send_depth[node])
            self.send_depth[node] += 1

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
            case listed:
                bounds = zip(listed.indptr[:-1], listed.indptr[1:], strict=True)
                return [listed.ids[a:b].tolist() for a, b in bounds]

    def _in_order(self, node: int, group: IntArray | None) -> Message:
        """What a node holds, group by group and memory by memory."""
        held = self.held[node]
        if group is None:
            return sorted(held, key=held.__getitem__)
        number = group
        return sorted(held, key=lambda block: (number[block], held[block]))

    def _send(
        self, node: int, messages: list[Message]
    ) -> tuple[list[Message], tuple[Readers, ...]]:
        """The messages in the order in which they are sent; one reader for each."""
        held = self.held[node]
        messages = arrange(messages, held)
        return messages, tuple((runs_of(held[block] for block in m),) for m in messages)

    def _is_new(self, node: int, payload: Sequence[int]) -> bool:
        """Unless the node holds all of it."""
        return not all(block in self.held[node] for block in payload)

    def _hold(self, node: int, block: int, location: Location) -> None:
        """The first copy of a block is the one that is used."""
        self.held[node].setdefault(block, location)

    def location(self, node: int, block: int) -> Location:
        """Where a node keeps a block, or `NOWHERE`."""
        return self.held[node].get(block, NOWHERE)
