"""How one node carries out a table: the cheapest order in which words can move without a pause.

A word that arrived ``k`` cycles ago is taken straight off its in-port (k = 1), out of a register
behind it (k = 2), or out of a memory (k >= 3: it is written, read, and on its way again). So a
table runs at a step a cycle whatever its latency, and a table that never lets a word rest needs no
memory on its way. Where links take several cycles, a word has not come a step later, unless all
flits of a block move in each step, as many as those cycles; for fewer, every word leaves as soon as
it can, in the order of the steps.

Each memory has one write port and one read port; where two words that came by the same in-port
leave in the same step, the second has a further memory of that in-port, which keeps words only
while they wait.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..topology import IntArray
from .fields import Source, Stage
from .node_plan import FOREVER, NodePlan, PlannedMemory, number_sources, slots_of
from .timing import MEMORY_AGE

if TYPE_CHECKING:
    from ..schedule import Table

__all__ = ["plan_table"]

#: A block by offsets from its origin: (offset of the node, offset of the destination, chunk).
Block: TypeAlias = tuple[int, int, int]

#: A block of a node's own: (offset of the destination, chunk).
SentBlock: TypeAlias = tuple[int, int]


class Arrival(NamedTuple):
    """By which in-port, and in which step, a block arrives."""

    port: int
    step: int


class Departure(NamedTuple):
    """In which step, and by which out-port, a block leaves."""

    step: int
    port: int


class NodeTransfers:
    """What a node sends and receives, by its offset from the origins of the blocks.

    Parameters
    ----------
    table : Table
        Not a reduction.
    soon : bool
        Whether every block leaves as soon as it can; else in the step of the table.

    Attributes
    ----------
    row : ndarray of int, shape (steps, ports)
        That in which what leaves by a port in a step does so: the step, or a cycle.
    arrivals : dict of Block to (list of Arrival)
    forwarded : list of (Departure, Block)
    sent : dict of SentBlock to (list of Departure)
    """

    def __init__(self, table: Table, *, soon: bool = False) -> None:
        topology = table.topology
        self.links: list[int] = topology.cycles_of_port.tolist()
        #: From the row in which a block leaves to the first in which its receiver can send it on.
        self.apart = self.links if soon else [1] * topology.ports
        self.row = np.broadcast_to(np.arange(len(table.offset))[:, None], table.offset.shape).copy()
        steps, ports = np.nonzero(table.offset >= 0)
        there, chunk = table.offset[steps, ports], table.chunk[steps, ports]
        goals = table.destination
        goal = np.zeros_like(there) if goals is None else goals[steps, ports]
        here = topology.subtract(there, topology.generators[ports])
        self.arrivals: dict[Block, list[Arrival]] = defaultdict(list)
        self.forwarded: list[tuple[Departure, Block]] = []
        self.sent: dict[SentBlock, list[Departure]] = defaultdict(list)
        used: dict[int, set[int]] = defaultdict(set)
        columns = (steps, ports, there, here, goal, chunk, topology.opposite[ports])
        for step, port, to, at, target, part, by in zip(
            *(x.tolist() for x in columns), strict=True
        ):
            row = step
            if soon:
                row = self.row[step, port] = self._soonest((at, target, part), used[port])
            if at:
                self.forwarded.append((Departure(row, port), (at, target, part)))
            else:
                self.sent[target, part].append(Departure(row, port))
            if to:
                self.arrivals[to, target, part].append(Arrival(by, row))
        for arrivals in self.arrivals.values():
            arrivals.sort(key=self._there)
        self.rows = 1 + int(self.row[steps, ports].max()) if soon else len(table.offset)

    def _there(self, arrival: Arrival) -> int:
        """The first row in which what arrived can be sent on."""
        return arrival.step + self.apart[arrival.port]

    def _soonest(self, block: Block, used: set[int]) -> int:
        """The first row in which a block is there, and an out-port is not used."""
        row = min(map(self._there, self.arrivals[block]), default=0) if block[0] else 0
        while row in used:
            row += 1
        used.add(row)
        return row

    def forwardings(self, *, latest: bool) -> list[tuple[Departure, Arrival]]:
        """What is forwarded, with its arrival: of several the latest in time, or the first."""
        return [
            (leaving, [a for a in self.arrivals[block] if self._there(a) <= leaving.step][-latest])
            for leaving, block in self.forwarded
        ]


def plan_table(
    table: Table, flits: int, *, any_length: bool = False, short: bool = False
) -> NodePlan:
    """Plan what a node does.

    Parameters
    ----------
    table : Table
        Not a reduction.
    flits : int
        Flits of a block.
    any_length : bool
        Whether blocks may have fewer flits.
    short : bool
        Whether to be quick for few flits, where that makes a difference.

    Returns
    -------
    NodePlan
        The cheapest of all orders in which words can move without a pause; on links of several
        cycles the cheapest of the quickest.

    Examples
    --------
    In four steps a node receives fifteen blocks over four in-ports; none waits for longer than a
    cycle before it is sent on, so that nothing is read but what a node sends itself.

    >>> import torusfabric as tf
    >>> plan = plan_table(tf.plan(tf.Torus(4, 4), "allgather", algorithm="matching"), flits=1)
    >>> plan.steps, len(plan.receive_memories), len(plan.send_memories)
    (4, 4, 1)
    >>> [bool((memory.read >= 0).any()) for memory in plan.receive_memories]
    [False, False, False, False]
    """
    longest = table.topology.longest_link
    orders = [True, False]
    if short or (longest == 1 and (any_length or flits == 1)):
        orders = [True]
    # Of any length, words that go on are all taken out of memories.
    age = MEMORY_AGE if any_length else 1
    plans = []
    for by_waves in orders:
        transfers = NodeTransfers(table, soon=by_waves and longest > 1)
        for latest in (True, False):
            planner = _Planner(
                table, transfers, flits, age=None if by_waves else age, latest=latest
            )
            plans.append(planner.plan())
    return min(plans, key=lambda plan: (plan.rows_cycles, plan.cost))


#: A receive memory: (in-port, number among those of the port).
MemoryKey: TypeAlias = tuple[int, int]

#: In which steps memories are read, by the arrival of the word that is read.
Reads: TypeAlias = dict[MemoryKey, dict[Arrival, list[int]]]


class _Planner:
    """Plans one order of the words.

    Parameters
    ----------
    age : int or None
        The least cycles that a block waits, from its arrival on, where all flits of it move in each
        step; None where all steps are for one flit.
    """

    def __init__(
        self,
        table: Table,
        transfers: NodeTransfers,
        flits: int,
        *,
        age: int | None,
        latest: bool,
    ) -> None:
        self.table, self.transfers, self.flits, self.by_waves = table, transfers, flits, age is None
        self.steps, self.ports = transfers.rows, table.topology.ports
        self.forwardings = transfers.forwardings(latest=latest)
        self.least = self.period = 1
        if age is not None:
            waits = ((leaving.step - arrival.step, transfers.links[arrival.port] - 1 + age)
                     for leaving, arrival in self.forwardings)  # fmt: skip
            self.least = max((-(-cycles // steps) for steps, cycles in waits), default=1)
            self.period = max(self.least, flits)
        self.chosen: dict[Departure, Source] = {}

    def plan(self) -> NodePlan:
        """The plan."""
        send, send_memory, send_slot = self._send_memories()
        reads = self._take()
        kept = self._kept()
        slots, receive = self._receive_memories(reads, kept)
        memory, slot = np.full((2, self.table.blocks.parts, send_slot.shape[1]), -1)
        if not self.table.collective.local:
            memory[0], slot[0] = len(receive) + send_memory[0], send_slot[0]
        for (part, chunk), arrival in kept.items():
            memory[part, chunk] = arrival.port
            slot[part, chunk] = slots[(arrival.port, 0), arrival]
        names = {name: number for number, name in enumerate([*receive, *range(len(send))])}
        sources, readers, number = number_sources(self.ports, set(self.chosen.values()), names)
        select = np.full((self.steps, self.ports), -1)
        for departure, source in self.chosen.items():
            select[departure] = number[source]
        return NodePlan(
            by_waves=self.by_waves,
            flits=self.flits,
            sources=sources,
            readers=readers,
            receive_memories=tuple(receive.values()),
            send_memories=send,
            select=select,
            memory=memory,
            slot=slot,
            send_memory=send_memory,
            send_slot=send_slot,
            departure=self.transfers.row,
            period=self.least,
        )

    def _send_memories(self) -> tuple[tuple[PlannedMemory, ...], IntArray, IntArray]:
        """Memories of what a node sends, and where each block lies, by destination and chunk.

        Blocks that leave in one step are in different ones.
        """
        personal = self.table.destination is not None
        shape = (self.table.blocks.goals, self.table.chunks)
        sent = self.transfers.sent
        blocks: list[SentBlock] = [(goal, chunk) for goal, chunk in np.ndindex(shape)]
        number = _number_apart(blocks, sent)
        memory, slot = np.zeros((2, *shape), int)
        depth = [0] * (max(number.values()) + 1)
        # In the order in which they leave, unless one memory holds a message as the host writes it.
        last = [Departure(self.steps, 0)]
        order = sorted(number, key=lambda block: sent.get(block, last)[0])
        for block in order if len(depth) > 1 or personal else blocks:
            memory[block], slot[block] = number[block], depth[number[block]]
            depth[number[block]] += 1
        read = np.full((len(depth), self.steps), -1)
        for block, departures in sent.items():
            for leaving in departures:
                read[memory[block], leaving.step] = slot[block]
                self.chosen[leaving] = Stage.INJECTION, int(memory[block])
        none = np.full(self.steps, -1)
        memories = tuple(PlannedMemory(-1, d, none, r) for d, r in zip(depth, read, strict=True))
        return memories, memory, slot

    def _take(self) -> Reads:
        """Choose where words that go on are taken; what is read when.

        What waits for less than a memory takes goes past it.
        """
        rests: dict[tuple[int, int], dict[Arrival, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for leaving, arrival in self.forwardings:
            # Blocks of any length may be as short as the shortest rows are.
            waits = (leaving.step - arrival.step) * self.period
            age = waits - self.transfers.links[arrival.port] + 1
            if age >= MEMORY_AGE:
                rests[leaving.step, arrival.port][arrival].append(leaving.port)
            else:
                self.chosen[leaving] = Stage.LATER if age > 1 else Stage.PORT, arrival.port
        reads: Reads = defaultdict(lambda: defaultdict(list))
        for (step, in_port), words in sorted(rests.items()):
            for number, (arrival, ports) in enumerate(words.items()):
                reads[in_port, number][arrival].append(step)
                source = Stage.INJECTION, (in_port, number)
                self.chosen |= dict.fromkeys((Departure(step, port) for port in ports), source)
        return reads

    def _kept(self) -> dict[tuple[int, int], Arrival]:
        """How each block arrives that is delivered, by offset, or its number, and chunk."""
        personal = self.table.destination is not None
        if self.table.collective.local:
            return {
                (part, chunk): self.transfers.arrivals[offset, part if personal else 0, chunk][0]
                for part, offset in enumerate(self.table.blocks.targets[0].tolist())
                for chunk in range(self.table.chunks)
            }
        return {
            (offset, chunk): arrivals[0]
            for (offset, destination, chunk), arrivals in self.transfers.arrivals.items()
            if not personal or offset == destination
        }

    def _receive_memories(
        self, reads: Reads, kept: dict[tuple[int, int], Arrival]
    ) -> tuple[dict[tuple[MemoryKey, Arrival], int], dict[MemoryKey, PlannedMemory]]:
        """Slots in all memories: one is used again as soon as what it held has left."""
        until: dict[MemoryKey, dict[Arrival, int]] = defaultdict(dict)
        for key, words in reads.items():
            for arrival, steps in words.items():
                until[key][arrival] = max(steps)
        for arrival in kept.values():
            until[arrival.port, 0][arrival] = FOREVER
        slots: dict[tuple[MemoryKey, Arrival], int] = {}
        memories: dict[MemoryKey, PlannedMemory] = {}
        first = [(port, 0) for port in range(self.ports)]
        for key in first + sorted(key for key in until if key[1]):
            write, read = np.full((2, self.steps), -1)
            held = sorted(until[key].items(), key=lambda item: item[0].step)
            here = slots_of((arrival, arrival.step, end) for arrival, end in held)
            for arrival, slot in here.items():
                slots[key, arrival] = write[arrival.step] = slot
                read[reads[key].get(arrival, [])] = slot
            depth = max(here.values(), default=-1) + 1
            memories[key] = PlannedMemory(key[0], depth, write, read)
        return slots, memories


def _number_apart(
    blocks: list[SentBlock], sent: dict[SentBlock, list[Departure]]
) -> dict[SentBlock, int]:
    """Number the memories of a node's own blocks, so that no two that leave in one step share one.

    All are in one memory if that will do, else by the port where each leaves by one port only, else
    in the first memory without a block that leaves in the same step.
    """
    leaving: dict[int, set[SentBlock]] = defaultdict(set)
    for block, departures in sent.items():
        for step, _ in departures:
            leaving[step].add(block)
    if all(len(together) == 1 for together in leaving.values()):
        return dict.fromkeys(blocks, 0)
    number: dict[SentBlock, int] = {}
    if all(len({port for _, port in departures}) == 1 for departures in sent.values()):
        ports = sorted({departures[0].port for departures in sent.values()})
        number = {block: ports.index(leaves[0].port) for block, leaves in sent.items()}
    else:
        for block in sorted(sent, key=lambda block: sent[block][0]):
            rivals: set[SentBlock] = set().union(*(leaving[step] for step, _ in sent[block]))
            used = {number.get(rival) for rival in rivals}
            number[block] = next(k for k in range(len(blocks)) if k not in used)
    return dict.fromkeys(blocks, 0) | number
