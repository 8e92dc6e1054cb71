"""Programs of round schedules: circuits that are set up round by round.

In a round every node with something to send streams it over its local lanes, and the crossbars on
the way hold their settings until the last flit has arrived: ``1 + h + m`` cycles for a longest path
of ``h`` hops and a longest message of ``m`` flits. What arrives at an in-port is appended to the
bank of that port, unless the node has all of it already, so the place of every block is known in
advance. Blocks that a later round takes apart by groups are sent group by group, so that a group
lies in few runs.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..schedule import Everything, Grouped
from .base import IDLE, OWN, CycleCost, SwitchProgram, classify
from .lanes import Run, arrange

__all__ = ["EndpointProgram", "Receipt", "RoundCompiler", "RoundProgram", "Run", "check_places",
           "compile_rounds"]  # fmt: skip

#: More places than this (nodes times blocks) are not followed one by one.
MAX_PLACES = 2**22

#: Clock edges of a round beyond its hops and flits: the read of the first flit from its memory.
SETUP = 1


class Receipt(NamedTuple):
    """What is stored of what arrives at an in-port: ``length`` blocks over a path of ``hops``."""

    hops: int
    length: int


#: Nothing arrives, or nothing new.
NOTHING = Receipt(0, 0)


@dataclass(frozen=True)
class EndpointProgram:
    """What the nodes of one endpoint class send and receive.

    Parameters
    ----------
    send : tuple of tuple of (tuple of Run)
        ``send[round][reader]`` lists the runs read; empty where the reader is idle. Without
        `groups` each reader is a lane.
    receive : tuple of (tuple of Receipt)
        ``receive[round][port]`` is what is stored of what arrives at an in-port.
    depth : tuple of int
        Blocks that each in-port's bank holds, followed by those of the node's own send memory.
    groups : tuple of (tuple of int)
        The readers whose words are combined for each lane.
    """

    send: tuple
    receive: tuple
    depth: tuple
    groups: tuple = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundProgram(SwitchProgram):
    """The program of a schedule in rounds.

    Parameters
    ----------
    hops : ndarray of int, shape (rounds,)
        The longest path of each round.
    message : ndarray of int, shape (rounds,)
        The longest message of each round, in blocks.
    endpoint_class : ndarray of int32, shape (nodes,)
    endpoints : tuple of EndpointProgram
        One for each endpoint class.
    bank, slot : ndarray of int, shape (nodes, view blocks)
        Where each block of the host's view of a node's receive memory lies; slot -1 for nowhere.
    """

    hops: np.ndarray
    message: np.ndarray
    endpoint_class: np.ndarray
    endpoints: tuple[EndpointProgram, ...]
    bank: np.ndarray
    slot: np.ndarray

    @property
    def rounds(self):
        """Number of rounds."""
        return len(self.hops)

    @cached_property
    def lengths(self):
        """The different lengths of the messages of each round in blocks, the longest first."""
        found: list[set] = [{int(message)} for message in self.message]
        for endpoint in self.endpoints:
            for number, row in enumerate(endpoint.receive):
                found[number] |= {receipt.length for receipt in row} - {0}
            for number, lanes in enumerate(endpoint.send):
                found[number] |= {sum(run.length for run in runs) for runs in lanes} - {0}
        return [sorted(lengths, reverse=True) for lengths in found]

    def durations(self, flits):
        """Clock cycles of each round, for messages of so many flits."""
        return SETUP + self.hops + self.message * self.block_flits(flits)

    def cycles(self, flits):
        return int(self.durations(flits).sum())

    def cycle_cost(self, flits):
        moved = int(self.message.sum()) * self.block_flits(flits)
        return CycleCost(self.rounds, int(self.hops.sum()), moved, alpha=SETUP, hop_cycles=1)

    @cached_property
    def _view_index(self):
        """The place of each block in the host's view, for each node: a dictionary a node."""
        index = np.arange(self.layout.recv_blocks)
        nodes = np.arange(self.topology.nodes)[:, None]
        return self.layout.received_block(nodes, index[None, :])

    def locate(self, nodes, blocks):
        nodes, blocks = np.broadcast_arrays(nodes, blocks)
        place = (self._view_index[nodes] == blocks[..., None]).argmax(axis=-1)
        return self.bank[nodes, place], self.slot[nodes, place]

    def execute(self, messages):
        nodes = self.topology.nodes
        flits = messages.shape[1] // self.layout.send_blocks
        own = messages.reshape(nodes, self.layout.send_blocks, flits)
        memory = [{OWN: list(own[node])} for node in range(nodes)]
        for number in range(self.rounds):
            arriving = []
            for node in range(nodes):
                for lane, runs in enumerate(self.endpoints[self.endpoint_class[node]].send[number]):
                    if runs:
                        message = [
                            b for r in runs for b in memory[node][r.bank][r.slot :][: r.length]
                        ]
                        arriving += [(end, message) for end in self._ends(number, node, lane)]
            for (node, port), message in arriving:
                memory[node].setdefault(port, []).extend(message)
        view = np.zeros((nodes, self.layout.recv_blocks, flits), messages.dtype)
        for node, place in np.argwhere(self.slot >= 0):
            view[node, place] = memory[node][self.bank[node, place]][self.slot[node, place]]
        return view.reshape(nodes, -1)

    def _ends(self, number, node, lane):
        """The (node, in-port) at which what enters a router by a local lane leaves the fabric."""
        topology = self.topology
        heads = [(node, self.ports + lane)]
        while heads:
            here, source = heads.pop()
            for port in np.nonzero(self.select[number, self.node_class[here]] == source)[0]:
                there = int(topology.neighbours[here, port]), int(topology.opposite[port])
                heads.append(there)
                endpoint = self.endpoints[self.endpoint_class[there[0]]]
                if endpoint.receive[number][there[1]].length:
                    yield there


def compile_rounds(schedule):
    """The switch program of a schedule in rounds.

    Parameters
    ----------
    schedule : Schedule

    Returns
    -------
    RoundProgram

    Raises
    ------
    InputError
        If there are too many places to follow, one for each node and block it holds.
    """
    places = schedule.topology.nodes * schedule.blocks.count
    if schedule.blocks.collective.personal:
        places //= schedule.topology.nodes
    check_places(places)
    return RoundCompiler(schedule).program()


def check_places(places):
    """Refuse what has too many places to follow."""
    if places > MAX_PLACES:
        raise InputError(
            f"Nodes times blocks must be at most {MAX_PLACES} for hardware that works in rounds, "
            f"not {places} (plan and check have no such limit)"
        )


class RoundCompiler:
    """Follows the blocks of a schedule through the memories of all nodes."""

    def __init__(self, schedule):
        self.schedule = schedule
        self.topology = schedule.topology
        nodes, ports = self.topology.nodes, self.topology.ports
        self.held: list[dict] = [{} for _ in range(nodes)]
        self.fill = np.zeros((nodes, ports), int)
        self.own = Counter[int]()
        self.select: list[np.ndarray] = []
        self.send: list[dict] = []
        self.receive: list[dict] = []
        self.ends: list[np.ndarray] = []
        self.hops: list[int] = []
        self.message: list[int] = []
        self._own_blocks()
        rounds = list(schedule.rounds())
        for number, transfers in enumerate(rounds):
            later = (t.payload.group for t in rounds[number:] if isinstance(t.payload, Grouped))
            self._round(transfers, next(later, None))

    def _own_blocks(self):
        """Fill the send memories: block (origin, [destination,] chunk) in the order of the host."""
        blocks = self.schedule.blocks
        numbers = np.arange(blocks.count)
        origin = blocks.origin(numbers)
        for block, node in zip(numbers.tolist(), np.asarray(origin).tolist(), strict=True):
            self.held[node][block] = (OWN, self.own[node])
            self.own[node] += 1

    def _payloads(self, transfers, group):
        """The blocks of each transfer, in the order they are sent.

        Where that is free, it is by the groups in which they are needed next, and within a group in
        the order of the memories.
        """
        sources = transfers.source.tolist()
        match transfers.payload:
            case Everything() | Grouped():
                held = {node: self._in_order(node, group) for node in set(sources)}
                if isinstance(transfers.payload, Everything):
                    return [held[node] for node in sources]
                return [
                    [block for block in held[node] if group[block] == want]
                    for node, want in zip(sources, transfers.payload.wanted, strict=True)
                ]
            case listed:
                bounds = zip(listed.indptr[:-1], listed.indptr[1:], strict=True)
                return [listed.ids[a:b].tolist() for a, b in bounds]

    def _in_order(self, node, group):
        """What a node holds, group by group and bank by bank."""
        held = self.held[node]
        if group is None:
            return sorted(held, key=held.__getitem__)
        return sorted(held, key=lambda block: (group[block], held[block]))

    def _round(self, transfers, group):
        topology = self.topology
        lanes, payloads = self._lanes(transfers, self._payloads(transfers, group))
        walk, hops = transfers.walk(topology), transfers.hops
        select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
        entry = topology.ports + lanes
        for hop in range(hops.shape[1]):
            on = hops[:, hop] >= 0
            select[walk[on, hop], hops[on, hop]] = entry[on]
            entry = np.where(on, topology.opposite[hops[:, hop]], entry)
        self.select.append(select)
        self.hops.append(int(transfers.lengths.max(initial=0)))
        self.message.append(max(map(len, payloads), default=0))
        self._deliver(walk[:, -1], entry, transfers.lengths, payloads)

    def _lanes(self, transfers, payloads):
        """Number the different messages of each sender, and note what each lane sends.

        Returns
        -------
        lanes : ndarray of int
            The lane of each transfer.
        payloads : list of (list of int)
            The blocks of each transfer, in the order they are sent in the end.
        """
        queues: dict[int, dict] = {}
        lanes = np.zeros(len(transfers), int)
        for k in np.argsort(transfers.hops[:, 0], kind="stable").tolist():
            queue = queues.setdefault(int(transfers.source[k]), {})
            lanes[k] = queue.setdefault(tuple(payloads[k]), len(queue))
        sent = {
            node: self._sent(node, [list(message) for message in queue])
            for node, queue in queues.items()
        }
        self.send.append({node: reads for node, (_, reads) in sent.items()})
        chosen = zip(transfers.source.tolist(), lanes.tolist(), strict=True)
        return lanes, [sent[node][0][lane] for node, lane in chosen]

    def _sent(self, node, messages):
        """The messages of a node's lanes in the order in which they are sent, and as runs."""
        messages = arrange(messages, self.held[node])
        return messages, tuple(self._runs(node, message) for message in messages)

    def _runs(self, node, payload):
        """Where the blocks of a message lie in its sender's memories, as runs."""
        places = [self.held[node][block] for block in payload]
        steps = [(bank, slot - k) for k, (bank, slot) in enumerate(places)]
        runs, start = [], 0
        for _, group in groupby(steps):
            bank, slot = places[start]
            runs.append(Run(bank, slot, len(list(group))))
            start += runs[-1].length
        return tuple(runs)

    def _deliver(self, destinations, ports, lengths, payloads):
        """Append each message that brings something new to the bank of its in-port."""
        receive: dict[int, dict] = {}
        ends = np.zeros(self.fill.shape, bool)
        ends[destinations, ports] = True
        arrivals = zip(destinations, ports.tolist(), lengths.tolist(), payloads, strict=True)
        for node, port, length, payload in arrivals:
            held = self.held[node]
            if all(block in held for block in payload):
                continue
            receive.setdefault(int(node), {})[port] = Receipt(length, len(payload))
            first = int(self.fill[node, port])
            for k, block in enumerate(payload):
                held.setdefault(block, (port, first + k))
            self.fill[node, port] += len(payload)
        self.receive.append(receive)
        self.ends.append(ends)

    def _endpoint(self, node):
        """The program of one node's endpoint."""
        ports = range(self.topology.ports)
        receive = tuple(
            tuple(row.get(node, {}).get(port, NOTHING) for port in ports) for row in self.receive
        )
        send = tuple(row.get(node, ()) for row in self.send)
        return EndpointProgram(send, receive, (*self.fill[node].tolist(), self.own[node]))

    def _place(self, node, block):
        """Where a node keeps a block; slot -1 for nowhere."""
        return self.held[node].get(block, (OWN, -1))

    def program(self, kind=RoundProgram, **others):
        """The whole program."""
        nodes = self.topology.nodes
        rows = np.stack(self.select, axis=1) if self.select else np.empty((nodes, 0, 0), np.int16)
        # A node's program is what its crossbar does and what it takes off the links.
        taken = np.stack(self.ends, axis=1).reshape(nodes, -1)
        node_class, first = classify(np.hstack([rows.reshape(nodes, -1), taken]))
        endpoints: dict[EndpointProgram, int] = {}
        endpoint_class = [
            endpoints.setdefault(self._endpoint(node), len(endpoints)) for node in range(nodes)
        ]
        bare = kind(
            schedule=self.schedule,
            select=rows[first].transpose(1, 0, 2),
            node_class=node_class,
            hops=np.array(self.hops),
            message=np.array(self.message),
            endpoint_class=np.array(endpoint_class, np.int32),
            endpoints=tuple(endpoints),
            bank=np.empty(0),
            slot=np.empty(0),
            **others,
        )
        wanted = bare._view_index
        places = [
            [self._place(node, block) for block in row] for node, row in enumerate(wanted.tolist())
        ]
        table = np.array(places).reshape(nodes, -1, 2)
        return replace(bare, bank=table[..., 0], slot=table[..., 1])
