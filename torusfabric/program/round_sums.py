"""Reductions in rounds.

A node adds up on the way out: it streams its own contribution and everything that arrived for the
same sums from their memories at once, through adders into its injection port. So a node has as many
adders as it has children at most, and a fabric one less than it has nodes where each node sends
once. A complete sum is added up anew each time it is sent. In a last round, without a hop, nodes
add up what has arrived of the sums that they must have and keep it behind that.

A sum is known by its *key*: the chunk, or destination and chunk where each node gets a share.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .fields import IDLE, NEUTRAL
from .round_follower import NOWHERE, Message, RoundFollower
from .round_plan import Readers, Receipt, runs_of
from .send_order import SEND, Location

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers

__all__ = ["SumFollower"]

#: The word that changes nothing, for a reader that has nothing to add.
NOTHING_TO_ADD = Location(NEUTRAL, 0)


class SumFollower(RoundFollower[list[Location]]):
    """Follows sums: ``held[node][key]`` lists where what is to be combined lies.

    Parameters
    ----------
    schedule : Schedule

    Attributes
    ----------
    complete : set of (node, key)
        The senders of complete sums in the round that is followed.
    """

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        self.complete: set[tuple[int, int]] = set()

    def _fill_send_memories(self) -> None:
        """A contribution to each sum, in their order."""
        keys = self.schedule.blocks.per_origin
        for held in self.held:
            held.update({key: [Location(SEND, key)] for key in range(keys)})
        self.send_depth = [keys] * self.topology.nodes

    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        """The keys of each transfer: all contributions to one sum are one message."""
        listed = transfers.listed
        keys = np.asarray(listed.ids) % self.schedule.blocks.per_origin
        self.complete.clear()
        payloads = []
        for source, (low, high) in zip(
            transfers.source.tolist(), pairwise(np.asarray(listed.indptr).tolist()), strict=True
        ):
            sums, counts = np.unique(keys[low:high], return_counts=True)
            payloads.append(sums.tolist())
            whole = sums[counts == self.topology.nodes]
            self.complete.update((source, key) for key in whole.tolist())
        return payloads

    def _send(
        self, node: int, messages: list[Message]
    ) -> tuple[list[Message], tuple[Readers, ...]]:
        """The messages, and the readers of each; the node keeps nothing of partial sums."""
        readers = tuple(self._readers(node, message) for message in messages)
        for message in messages:
            partial = [key for key in message if (node, key) not in self.complete]
            self.held[node].update({key: [] for key in partial})
        return messages, readers

    def _readers(self, node: int, message: Message) -> Readers:
        """What is added up for a message: reader k reads the k-th summand of each sum."""
        summands = [self.held[node][key] for key in message]
        count = max(map(len, summands))
        return tuple(
            runs_of(row[k] if k < len(row) else NOTHING_TO_ADD for row in summands)
            for k in range(count)
        )

    def _is_new(self, node: int, payload: Message) -> bool:
        """A partial sum always is."""
        return True

    def _hold(self, node: int, block: int, location: Location) -> None:
        """One summand more."""
        self.held[node][block].append(location)

    def _finish(self) -> None:
        """The round in which nodes add up what they have of the sums that they must have."""
        send: dict[int, tuple[Readers, ...]] = {}
        receive: dict[int, dict[int, Receipt]] = {}
        for node, message in self._unfinished():
            # A memory without other words needs no multiplexer in front of it.
            port = int(np.argmin(self.filled[node]))
            send[node] = (self._readers(node, message),)
            receive[node] = {port: Receipt(0, len(message))}
            self._store(node, port, message)
        if not send:
            return
        self.send.append(send)
        self.receive.append(receive)
        self.select.append(np.full(self.filled.shape, IDLE, np.int16))
        self.hops.append(0)
        self.message.append(max(ports[port].length for ports in receive.values() for port in ports))

    def _unfinished(self) -> Iterator[tuple[int, Message]]:
        """The nodes that have sums in several parts, and their keys."""
        layout = self.schedule.collective.layout(self.topology, self.schedule.chunks)
        for node in layout.receivers.tolist():
            blocks = layout.received_block(node, np.arange(layout.recv_blocks))
            keys = (blocks % self.schedule.blocks.per_origin).tolist()
            message = [key for key in keys if len(self.held[node][key]) > 1]
            if message:
                yield node, message

    def location(self, node: int, block: int) -> Location:
        """Where a result lies: the last that was kept, at a node that must have it."""
        root = self.schedule.collective.root
        if root not in (None, node):
            return NOWHERE
        return self.held[node][block % self.schedule.blocks.per_origin][-1]
