"""Programs of schedules in rounds: circuits that are set up round by round.

In a round every node with something to send streams it over its lanes, and the crossbars on the
way hold their settings until the last flit has arrived: ``1 + h + m`` cycles for a longest path of
``h`` hops and a longest message of ``m`` flits. What arrives at an in-port is appended to the
memory of that port, unless the node has all of it already, so the address of every block is known
in advance. Blocks that a later round takes apart by groups are sent group by group, so that a
group lies in few runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..schedule import Everything, Grouped
from .address_map import DirectMap, NodeMap
from .cost import CycleCost
from .lanes import OWN, BlockRun, arrange
from .program import Mode, Program, block_flits
from .values import IDLE, MADE, NEUTRAL, Loop, Memory, Order, Reads, Run, Writes
from .variants import number_equal

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule

__all__ = [
    "DRAIN",
    "NOTHING",
    "Receipt",
    "RoundCompiler",
    "check_places",
    "compile_rounds",
    "round_cycles",
]

#: More places than this (nodes times blocks) are not followed one by one.
MAX_PLACES = 2**22

#: Clock edges of a round beyond its hops and flits: the write of the last flit.
SETUP = 1

#: Cycles from the last slot to done: the last round includes the write of its last flit.
DRAIN = 1


def round_cycles(hops, flits):
    """Cycles of rounds with longest paths of so many hops and longest messages of so many flits."""
    return SETUP + hops + flits


class Receipt(NamedTuple):
    """What is stored of what arrives at an in-port: ``length`` blocks over a path of ``hops``."""

    hops: int
    length: int


#: Nothing arrives, or nothing new.
NOTHING = Receipt(0, 0)


@dataclass(frozen=True)
class NodeProgram:
    """What a node does, in blocks.

    Parameters
    ----------
    select : bytes
        The settings of its crossbar.
    send : tuple of tuple of (tuple of tuple of BlockRun)
        ``send[round][lane][reader]`` lists the runs read; empty where the lane is idle.
    receive : tuple of (tuple of Receipt)
        ``receive[round][port]`` is what is stored of what arrives at an in-port.
    depth : tuple of int
        Blocks that each in-port's memory holds, followed by those of the send memory.
    """

    select: bytes
    send: tuple
    receive: tuple
    depth: tuple[int, ...]


def compile_rounds(schedule: Schedule, flits: int, operator: Operator | None = None) -> Program:
    """The program of a schedule in rounds.

    Parameters
    ----------
    schedule : Schedule
    flits : int
        Flits of a message.
    operator : Operator, optional
        Of a reduction to a root.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If there are too many places to follow, one for each node and block it holds, or a message
        of so many flits cannot be cut into equal chunks.
    """
    block = block_flits(schedule, flits)
    if operator:
        from .round_sums import SumCompiler

        check_places(schedule.topology.nodes * schedule.chunks)
        return SumCompiler(schedule).program(block, flits, (operator,))
    places = schedule.topology.nodes * schedule.blocks.count
    if schedule.blocks.collective.personal:
        places //= schedule.topology.nodes
    check_places(places)
    return RoundCompiler(schedule).program(block, flits)


def check_places(places: int) -> None:
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
        return messages, tuple((self._runs(node, message),) for message in messages)

    def _runs(self, node, payload):
        """Where the blocks of a message lie in its sender's memories, as runs."""
        places = [self.held[node][block] for block in payload]
        steps = [(bank, slot - k) for k, (bank, slot) in enumerate(places)]
        runs, start = [], 0
        for _, group in groupby(steps):
            bank, slot = places[start]
            runs.append(BlockRun(bank, slot, len(list(group))))
            start += runs[-1].length
        return tuple(runs)

    def _deliver(self, destinations, ports, lengths, payloads):
        """Append each message that brings something new to the bank of its in-port."""
        receive: dict[int, dict] = {}
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

    def _node(self, node):
        """The program of one node."""
        ports = range(self.topology.ports)
        return NodeProgram(
            np.stack([select[node] for select in self.select]).tobytes(),
            tuple(row.get(node, ()) for row in self.send),
            tuple(
                tuple(row.get(node, {}).get(port, NOTHING) for port in ports)
                for row in self.receive
            ),
            (*self.fill[node].tolist(), self.own[node]),
        )

    def _place(self, node, block):
        """Where a node keeps a block; slot -1 for nowhere."""
        return self.held[node].get(block, (OWN, -1))

    def program(self, block: int, flits: int, operators: tuple[Operator, ...] = ()) -> Program:
        """The whole program, for messages of so many flits in blocks of so many."""
        schedule, topology = self.schedule, self.topology
        programs = [self._node(node) for node in range(topology.nodes)]
        variant_of, first = number_equal(programs)
        variants = [programs[node] for node in first]
        hops, message = np.array(self.hops), np.array(self.message) * block
        duration = round_cycles(hops, message)
        starts = np.concatenate([[0], np.cumsum(duration)[:-1]])
        lanes, reads = _reads(variants, topology.ports, block)
        loop = Loop(
            order=Order.ROW,
            duration=duration,
            flits=1,
            drain=DRAIN,
            select=np.stack([select[first] for select in self.select]),
            delayed=(),
            lanes=lanes,
            reads=reads,
            writes=_writes(variants, topology.ports, block),
            departure=np.broadcast_to(starts[:, None], (len(starts), topology.ports)),
            stride=1,
        )
        mode = Mode(
            schedule=schedule,
            operators=operators,
            loop=loop,
            send_map=DirectMap(topology.ports, schedule.chunks, block),
            receive_map=self._receive_map(variant_of, block),
            cost=CycleCost(
                len(duration), int(hops.sum()), int(message.sum()), alpha=SETUP, hop_cycles=1,
                constant_cycles=DRAIN,
            ),
            known_by="round and place",
        )  # fmt: skip
        made = {
            port
            for row in self.receive
            for ports in row.values()
            for port, receipt in ports.items()
            if not receipt.hops
        }
        memories = [
            Memory((port, MADE) if port in made else (port,)) for port in range(topology.ports)
        ]
        return Program(
            topology=topology,
            flits=flits,
            modes=(mode,),
            memories=(*memories, Memory((), own=True)),
            depth=np.array([variant.depth for variant in variants]) * block,
            variant_of=variant_of,
        )

    def _receive_map(self, variant_of, block):
        """Where each block of the host's view of a node's receive memory lies."""
        schedule, nodes = self.schedule, np.arange(self.topology.nodes)
        layout = schedule.collective.layout(self.topology, schedule.chunks)
        index = np.arange(layout.recv_blocks)
        wanted = layout.received_block(nodes[:, None], index[None, :])
        places = [
            [self._place(node, block) for block in row] for node, row in enumerate(wanted.tolist())
        ]
        shape = (len(nodes), layout.recv_parts, layout.part_chunks, 2)
        bank, slot = np.moveaxis(np.array(places).reshape(shape), -1, 0)
        memory = np.where(bank == OWN, self.topology.ports, bank)
        return NodeMap(memory, np.where(slot >= 0, slot * block, -1), variant_of)


def _reads(variants: list[NodeProgram], ports: int, block: int):
    """Lanes, and what their readers read: as many of each as any variant needs."""
    rounds = range(len(variants[0].send))
    most: list[int] = []
    for variant in variants:
        for lanes in variant.send:
            most += [0] * (len(lanes) - len(most))
            for lane, readers in enumerate(lanes):
                most[lane] = max(most[lane], len(readers))
    ends = np.cumsum([0, *most]).tolist()
    groups = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
    reads = []
    for lane, count in enumerate(most):
        for k in range(count):
            table = [
                [_cell(variant.send[number], lane, k, ports, block) for variant in variants]
                for number in rounds
            ]
            reads.append(Reads.of_lists(table))
    return groups, tuple(reads)


def _cell(lanes: tuple, lane: int, reader: int, ports: int, block: int) -> tuple[Run, ...]:
    """What a reader reads in a round: what changes nothing, while others of its lane read more."""
    if lane >= len(lanes):
        return ()
    readers = lanes[lane]
    if reader >= len(readers):
        return (Run(NEUTRAL, 0, block * sum(run.length for run in readers[0])),)
    names = {OWN: ports, NEUTRAL: NEUTRAL}
    return tuple(
        Run(names.get(run.bank, run.bank), run.slot * block, run.length * block)
        for run in readers[reader]
    )


def _writes(variants: list[NodeProgram], ports: int, block: int) -> tuple[Writes, ...]:
    """What the memory of each in-port stores: appended to what it has already."""
    table = np.array([variant.receive for variant in variants], int)
    hops, length = table.transpose(3, 2, 1, 0)
    writes = []
    for port in range(ports):
        words = length[port] * block
        base = np.where(words > 0, np.cumsum(words, axis=0) - words, -1)
        source = np.where(hops[port] > 0, port, MADE)
        writes.append(Writes(base, words, hops[port], source))
    return tuple(writes)
