"""Programs of reductions to a root in rounds.

A node adds up on the way out: it streams its own contribution and everything that arrived for the
same chunks from their memories at once, through adders into its lane. So a node has as many adders
as it has children at most, and a fabric one less than it has nodes where each node sends once. In a
last round, without a hop, the root adds up what has arrived and keeps it behind that.
"""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from ..collective import Operator
from .base import IDLE, OWN
from .lanes import Run
from .rounds import Receipt, RoundCompiler, RoundProgram, check_places

__all__ = ["NEUTRAL", "ReduceProgram", "compile_reduce"]

#: Bank number of the word that changes nothing.
NEUTRAL = -2


@dataclass(frozen=True, eq=False, kw_only=True)
class ReduceProgram(RoundProgram):
    """The program of a reduction to a root.

    Parameters
    ----------
    operator : Operator
    """

    operator: Operator = field(default_factory=Operator)

    def execute(self, messages, width=64):
        """Carry out the program on words of so many bits, as the hardware does."""
        nodes = self.topology.nodes
        own = messages.reshape(nodes, self.layout.send_blocks, -1)
        neutral = np.full_like(own[0, :1], self.operator.identity(width))
        memory = [{OWN: list(own[node])} for node in range(nodes)]
        for number in range(self.rounds):
            arriving = []
            for node in range(nodes):
                endpoint = self.endpoints[self.endpoint_class[node]]
                for lane, group in enumerate(endpoint.groups):
                    readers = [endpoint.send[number][reader] for reader in group]
                    if readers[0]:
                        words = [self._stream(memory[node], runs, neutral) for runs in readers]
                        message = list(self.operator.reduce(np.array(words), width))
                        arriving += [(end, message) for end in self._ends(number, node, lane)]
                        arriving += [
                            ((node, port), message)
                            for port, receipt in enumerate(endpoint.receive[number])
                            if receipt.length and not receipt.hops
                        ]
            for (node, port), message in arriving:
                memory[node].setdefault(port, []).extend(message)
        root = self.schedule.collective.root or 0
        view = np.zeros_like(own)
        for place in range(self.layout.recv_blocks):
            bank, slot = int(self.bank[root, place]), int(self.slot[root, place])
            view[root, place] = memory[root][bank][slot]
        return view.reshape(nodes, -1)

    @staticmethod
    def _stream(memory, runs, neutral):
        """The blocks that a reader reads."""
        return [
            block
            for run in runs
            for block in (
                neutral.repeat(run.length, axis=0)
                if run.bank == NEUTRAL
                else memory[run.bank][run.slot :][: run.length]
            )
        ]


def compile_reduce(schedule, operator):
    """The switch program of a reduction to a root.

    Parameters
    ----------
    schedule : Schedule
        In rounds.
    operator : Operator

    Returns
    -------
    ReduceProgram

    Raises
    ------
    InputError
        If there are too many places to follow, one for each node and chunk.
    """
    check_places(schedule.topology.nodes * schedule.chunks)
    return _SumCompiler(schedule).program(ReduceProgram, operator=operator)


class _SumCompiler(RoundCompiler):
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
        ends = np.zeros(self.fill.shape, bool)
        ends[destinations, ports] = True
        arrivals = zip(
            destinations.tolist(), ports.tolist(), lengths.tolist(), payloads, strict=True
        )
        for node, port, length, payload in arrivals:
            receive.setdefault(node, {})[port] = Receipt(length, len(payload))
            self._keep(node, port, payload)
        self.receive.append(receive)
        self.ends.append(ends)

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
        self.ends.append(np.zeros(self.fill.shape, bool))
        self.hops.append(0)
        self.message.append(chunks)
        self._keep(root, port, message)

    def _endpoint(self, node):
        """The program of one node's endpoint, with as many readers a lane as it ever needs."""
        rows = [row.get(node, ()) for row in self.send]
        lanes = max(map(len, rows))
        counts = [max((len(r[k]) for r in rows if k < len(r)), default=0) for k in range(lanes)]
        ends = np.cumsum([0, *counts])
        groups = tuple(tuple(range(a, b)) for a, b in itertools.pairwise(ends))
        send = tuple(
            tuple(
                _reader(row[lane] if lane < len(row) else (), k)
                for lane, count in enumerate(counts)
                for k in range(count)
            )
            for row in rows
        )
        return replace(super()._endpoint(node), send=send, groups=groups)

    def _place(self, node, block):
        """Where a result lies: the last that was kept."""
        root = self.schedule.collective.root
        return self.held[node][block][-1] if node == root else (OWN, -1)


def _reader(readers, number):
    """What a reader of a lane reads: nothing of value if others do."""
    if number < len(readers) or not readers:
        return readers[number] if readers else ()
    return (Run(NEUTRAL, 0, sum(run.length for run in readers[0])),)


def _runs(places):
    """Places as runs."""
    runs: list[Run] = []
    for bank, slot in places:
        if runs:
            last, end = runs[-1], runs[-1].slot + runs[-1].length
            if last.bank == bank and (bank == NEUTRAL or end == slot):
                runs[-1] = last._replace(length=last.length + 1)
                continue
        runs.append(Run(bank, slot, 1))
    return tuple(runs)
