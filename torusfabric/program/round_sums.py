"""Reductions to a root in rounds.

A node adds up on the way out: it streams its own contribution and everything that arrived for the
same chunks from their memories at once, through adders into its lane. So a node has as many adders
as it has children at most, and a fabric one less than it has nodes where each node sends once. In a
last round, without a hop, the root adds up what has arrived and keeps it behind that.
"""

from __future__ import annotations

import numpy as np

from .lanes import OWN, BlockRun
from .rounds import Receipt, RoundCompiler
from .values import IDLE, NEUTRAL

__all__ = ["SumCompiler"]


class SumCompiler(RoundCompiler):
    """Follows sums: ``held[node][chunk]`` lists where what is to be combined lies."""

    def __init__(self, schedule):
        super().__init__(schedule)
        self._finish()

    def _own_blocks(self):
        for node, held in enumerate(self.held):
            held |= {chunk: [(OWN, chunk)] for chunk in range(self.schedule.chunks)}
            self.own[node] = self.schedule.chunks

    def _payloads(self, transfers, group):
        chunks, payload = self.schedule.chunks, transfers.payload
        bounds = zip(payload.indptr[:-1], payload.indptr[1:], strict=True)
        return [np.unique(payload.ids[a:b] % chunks).tolist() for a, b in bounds]

    def _sent(self, node, messages):
        """The chunks of each lane, and what its readers read; the node keeps nothing of them."""
        readers = tuple(self._readers(node, message) for message in messages)
        for message in messages:
            self.held[node] |= {chunk: [] for chunk in message}
        return messages, readers

    def _readers(self, node, message):
        """What is added up for a message: a tuple of runs for each reader."""
        places = [self.held[node][chunk] for chunk in message]
        count = max(map(len, places))
        return tuple(
            _runs([row[k] if k < len(row) else (NEUTRAL, 0) for row in places])
            for k in range(count)
        )

    def _deliver(self, destinations, ports, lengths, payloads):
        receive: dict[int, dict] = {}
        arrivals = zip(
            destinations.tolist(), ports.tolist(), lengths.tolist(), payloads, strict=True
        )
        for node, port, length, payload in arrivals:
            receive.setdefault(node, {})[port] = Receipt(length, len(payload))
            self._keep(node, port, payload)
        self.receive.append(receive)

    def _keep(self, node, port, payload):
        """Append what arrives to a bank."""
        first = int(self.fill[node, port])
        for k, chunk in enumerate(payload):
            self.held[node][chunk].append((port, first + k))
        self.fill[node, port] += len(payload)

    def _finish(self):
        """The round in which the root adds up what it has."""
        root, chunks = self.schedule.collective.root, self.schedule.chunks
        message = list(range(chunks))
        # A bank without other words needs no multiplexer in front of it.
        port = int(np.argmin(self.fill[root]))
        self.send.append({root: (self._readers(root, message),)})
        self.receive.append({root: {port: Receipt(0, chunks)}})
        self.select.append(np.full(self.fill.shape, IDLE, np.int16))
        self.hops.append(0)
        self.message.append(chunks)
        self._keep(root, port, message)

    def _place(self, node, block):
        """Where a result lies: the last that was kept."""
        root = self.schedule.collective.root
        return self.held[node][block][-1] if node == root else (OWN, -1)


def _runs(places):
    """Places as runs."""
    runs: list[BlockRun] = []
    for bank, slot in places:
        if runs:
            last, end = runs[-1], runs[-1].slot + runs[-1].length
            if last.bank == bank and (bank == NEUTRAL or end == slot):
                runs[-1] = last._replace(length=last.length + 1)
                continue
        runs.append(BlockRun(bank, slot, 1))
    return tuple(runs)
