"""Reductions to a root in rounds.

A node adds up on the way out: it streams its own contribution and everything that arrived for the
same chunks from their memories at once, through adders into its injection port. So a node has as
many adders as it has children at most, and a fabric one less than it has nodes where each node
sends once. In a last round, without a hop, the root adds up what has arrived and keeps it behind
that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .round_follower import NOWHERE, Message, RoundFollower
from .round_plan import Readers, Receipt, runs_of
from .send_order import SEND, Location
from .values import IDLE, NEUTRAL

if TYPE_CHECKING:
    from ..schedule import Transfers

__all__ = ["SumFollower"]

#: The word that changes nothing, for a reader that has nothing to add.
NOTHING_TO_ADD = Location(NEUTRAL, 0)


class SumFollower(RoundFollower[list[Location]]):
    """Follows sums: ``held[node][chunk]`` lists where what is to be combined lies."""

    def _fill_send_memories(self) -> None:
        """A chunk each, in their order."""
        chunks = self.schedule.chunks
        for held in self.held:
            held.update({chunk: [Location(SEND, chunk)] for chunk in range(chunks)})
        self.send_depth = [chunks] * self.topology.nodes

    def _payloads(self, transfers: Transfers, group: IntArray | None) -> list[Message]:
        """The chunks of each transfer: contributions to one chunk are one partial sum."""
        chunks, listed = self.schedule.chunks, transfers.listed
        bounds = zip(listed.indptr[:-1], listed.indptr[1:], strict=True)
        return [np.unique(listed.ids[a:b] % chunks).tolist() for a, b in bounds]

    def _send(
        self, node: int, messages: list[Message]
    ) -> tuple[list[Message], tuple[Readers, ...]]:
        """The messages, and the readers of each; the node keeps nothing of them."""
        readers = tuple(self._readers(node, message) for message in messages)
        for message in messages:
            self.held[node].update({chunk: [] for chunk in message})
        return messages, readers

    def _readers(self, node: int, message: Message) -> Readers:
        """What is added up for a message: reader k reads the k-th summand of each chunk."""
        summands = [self.held[node][chunk] for chunk in message]
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
        """The round in which the root adds up what it has."""
        root, chunks = self.schedule.collective.root, self.schedule.chunks
        assert root is not None
        message = list(range(chunks))
        # A memory without other words needs no multiplexer in front of it.
        port = int(np.argmin(self.filled[root]))
        self.send.append({root: (self._readers(root, message),)})
        self.receive.append({root: {port: Receipt(0, chunks)}})
        self.select.append(np.full(self.filled.shape, IDLE, np.int16))
        self.hops.append(0)
        self.message.append(chunks)
        self._store(root, port, message)

    def location(self, node: int, block: int) -> Location:
        """Where a result lies: the last that was kept, at the root."""
        root = self.schedule.collective.root
        return self.held[node][block][-1] if node == root else NOWHERE
