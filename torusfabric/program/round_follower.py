"""The simulation of rounds, counted in blocks: which blocks each node reads, passes on and stores.

Words that arrive at an in-port are appended to the memory of that port, so all addresses are known
in advance. A memory *slot* is the space of one block. An *injection port* brings the words of its
*readers*, which read memories, to the router. `RoundRecord` collects the actions of all nodes. It
also serves sums (`sum_follower`) and blocks that never rest (`passing`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..schedule import Everything, Grouped
from ..schedule.sum_trees import has_single_hops
from ..topology import IntArray
from .fields import IDENTITY_MEMORY, IDLE, Memory, make_node_memories
from .send_order import SEND_MEMORY, Location, arrange_messages
from .transit import reuse_slots

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers
    from ..topology import Topology

__all__ = ["Bursts", "Message", "Receipts", "RoundRecord", "RoundPlan", "follow_blocks",
           "crossbar_settings"]  # fmt: skip

#: The location of a block that a node does not keep.
NO_LOCATION = Location(SEND_MEMORY, -1)

#: A message: its blocks, or the keys of its sums, in the order in which they are sent.
Message: TypeAlias = list[int]

#: The end of a message: node, in-port, and cycles of the path.
End: TypeAlias = tuple[int, int, int]


class Bursts(NamedTuple):
    """The reads of memories by all nodes, as columns: entry k of each field belongs to burst k.

    In a burst, a reader reads `length` blocks from successive memory slots (a slot is the space of
    one block), the first from `slot` of `memory`. It happens at `node` in round `round`, after `at`
    other blocks of the round. `injection` is the injection port, the input of the router for these
    words, and `place` the number of the reader among those of this port.
    """

    round: IntArray
    node: IntArray
    injection: IntArray
    place: IntArray
    at: IntArray
    memory: IntArray
    slot: IntArray
    length: IntArray


class Receipts(NamedTuple):
    """The writes of memories by all nodes, as columns: entry k of each field is for message k.

    In round `round`, `node` stores a message of `length` blocks in successive slots of `memory`
    from `slot` on (a slot is the space of one block). The words have crossed links of together
    `links` cycles. `source` is their in-port; for words of the node itself it is the number of
    ports plus the number of an injection port, the input of the router for words from memories.
    """

    round: IntArray
    node: IntArray
    memory: IntArray
    source: IntArray
    links: IntArray
    slot: IntArray
    length: IntArray


class RoundPlan(NamedTuple):
    """The actions of all nodes in rounds, counted in blocks.

    Parameters
    ----------
    select : ndarray of int16, shape (rounds, nodes, ports)
        Source of each out-port: the number of an in-port, or the number of ports plus the number of
        an injection port, which brings words from the node's memories.
    links, blocks : ndarray of int, shape (rounds,)
        Cycles of the longest path, and blocks of the longest message of each round.
    bursts : Bursts
        All reads.
    receipts : Receipts
        All writes.
    depth : ndarray of int, shape (nodes, memories)
        Number of blocks for which each memory has space. Memories for arriving words come first,
        then those for messages.
    memories : tuple of Memory
        Memories for arriving words, numbered from 0; those for messages come after them.
    located : ndarray of int, shape (2, nodes, receive blocks)
        Memory and slot (the space of one block) of each block that the host may read, in the order
        of the receive memory; slot -1 if the node does not have the block.
    rests : bool
        True if every message is a single block that goes one hop, so that rounds need no pause.
    """

    select: IntArray
    links: IntArray
    blocks: IntArray
    bursts: Bursts
    receipts: Receipts
    depth: IntArray
    memories: tuple[Memory, ...]
    located: IntArray
    rests: bool = False


class RoundRecord:
    """A simulation of rounds: the contents of all memories, and all actions so far.

    Parameters
    ----------
    schedule : Schedule
        Schedule that is followed.
    keys : int
        Number of different blocks, or sums.
    results : bool
        True if complete sums have a memory of their own. They need one if a node completes sums
        while words arrive, because a memory of an in-port can store only one of them at a time.

    Attributes
    ----------
    held : list of (dict of int to (list of Location))
        For each node, the locations (memory and slot) of each block; a sum has a location for each
        word of which it is combined.
    filled : ndarray of int, shape (nodes, memories)
        Number of blocks in each memory: those of the in-ports, the one of complete sums if there is
        one, and the one of the node's own message.
    """

    def __init__(self, schedule: Schedule, keys: int, *, results: bool = False) -> None:
        self._schedule, self._topology, self._keys = schedule, schedule.topology, keys
        self.held: list[dict[int, list[Location]]] = [{} for _ in range(self._topology.nodes)]
        self._results = results
        memories = self._topology.ports + results + 1
        self.filled = np.zeros((self._topology.nodes, memories), int)
        self._select: list[IntArray] = []
        self._links: list[int] = []
        self._message: list[int] = []
        self._bursts: list[tuple[int, ...]] = []
        self._receipts: list[tuple[int, ...]] = []

    def place_own_messages(self) -> None:
        """Put the message of each node into its memory, block after block, before round 0."""
        blocks = self._schedule.blocks
        own = blocks.initial_copies(np.arange(blocks.n_blocks))
        for node, block in np.stack(own, axis=1).tolist():
            self.held[node][block] = [Location(SEND_MEMORY, int(self.filled[node, SEND_MEMORY]))]
            self.filled[node, SEND_MEMORY] += 1

    def inject_transfers(
        self,
        transfers: Transfers,
        payloads: list[Message],
        arranged: Callable[[int, list[Message]], list[Message]],
    ) -> tuple[IntArray, list[Message]]:
        """Record how all senders of a round read the blocks of their messages from memory.

        If a node sends several different messages, each has an injection port (an input of the
        router for words from memories) of its own. The result has two entries for each transfer:
        the number of its source at the sender, which is the number of ports plus that of the
        injection port; and its blocks in the order in which they are sent.

        Parameters
        ----------
        transfers : Transfers
            Transfers of the round.
        payloads : list of Message
            Blocks that each transfer carries.
        arranged : function of (int, list of Message)
            Function that gets the number of a node and its messages, and returns the messages with
            their blocks in the order in which the node sends them.
        """
        queues: dict[int, dict[tuple[int, ...], int]] = {}
        injection = np.zeros(len(transfers), int)
        for k in np.argsort(transfers.hops[:, 0], kind="stable").tolist():
            queue = queues.setdefault(int(transfers.source[k]), {})
            injection[k] = queue.setdefault(tuple(payloads[k]), len(queue))
        sent = {node: arranged(node, list(map(list, queue))) for node, queue in queues.items()}
        for node, messages in sent.items():
            for number, message in enumerate(messages):
                self.add_bursts(node, number, message)
        chosen = zip(transfers.source.tolist(), injection.tolist(), strict=True)
        return self._topology.ports + injection, [sent[node][number] for node, number in chosen]

    def add_bursts(self, node: int, injection: int, message: Message) -> None:
        """Record the reads of a message, which a node sends by injection port `injection`.

        An injection port is an input of the router for words that *readers* read from memories. A
        block is one word or, if it is a sum, several words that are combined on their way out.
        Reader k of the injection port reads word k of each block.
        """
        held = [self.held[node][block] for block in message]
        for place in range(max(map(len, held), default=0)):
            read = ((at, *(h[place] if place < len(h) else (IDENTITY_MEMORY, at)))
                    for at, h in enumerate(held))  # fmt: skip
            for _, run in groupby(read, key=lambda one: (one[1], one[2] - one[0])):
                (at, memory, slot), *others = run
                if memory != IDENTITY_MEMORY:
                    facts = len(self._select), node, injection, place, at, memory, slot
                    self._bursts.append((*facts, 1 + len(others)))

    def store_message(
        self, node: int, memory: int, source: int, links: int, message: Message
    ) -> list[tuple[int, Location]]:
        """Append a message to a memory, and return each of its blocks with its location.

        Parameters
        ----------
        node, memory : int
            Node that stores the message, and number of its memory.
        source : int
            Component that brings the words: an in-port, or the number of ports plus an injection
            port.
        links : int
            Cycles of all links on the path of the message.
        message : list of int
            Blocks of the message.
        """
        first = int(self.filled[node, memory])
        self.filled[node, memory] += len(message)
        facts = len(self._select), node, memory, source, links, first, len(message)
        self._receipts.append(facts)
        return [(block, Location(memory, slot)) for slot, block in enumerate(message, first)]

    def receive_message(self, node: int, port: int, links: int, message: Message) -> None:
        """Store a message that arrives by an in-port, unless the node has all its blocks.

        The links on the path of the message take `links` cycles.
        """
        if not all(block in self.held[node] for block in message):
            for block, location in self.store_message(node, port, port, links, message):
                self.held[node].setdefault(block, [location])

    def end_round(self, select: IntArray, ends: list[End], messages: list[Message]) -> None:
        """End a round: record its crossbar settings, its longest path and its longest message.

        `select` has the setting of each out-port of each node. `ends` are the ends of all paths, as
        from `crossbar_settings`, and `messages` the blocks that move along each path.
        """
        self._select.append(select)
        self._links.append(max((links for *_, links in ends), default=0))
        self._message.append(max(map(len, messages), default=0))

    def make_plan(self, *, rests: bool = False) -> RoundPlan:
        """Return the recorded actions of all nodes as a plan.

        `rests` is True if every message is a single block that goes one hop, as in `RoundPlan`.
        """
        layout, own = self._schedule.layout, self.filled.shape[1] - 1
        index = np.arange(layout.recv_blocks)
        located = np.empty((self._topology.nodes, len(index), 2), int)
        located[:] = NO_LOCATION
        for node in layout.receiving_nodes.tolist():
            wanted = layout.received_block(node, index)
            keys = np.where(wanted < 0, wanted, wanted % self._keys).tolist()
            located[node] = [self.held[node].get(key, [NO_LOCATION])[-1] for key in keys]
        memory, slot = np.moveaxis(located, 2, 0)
        bursts = Bursts(*np.array(self._bursts, int).reshape(-1, len(Bursts._fields)).T)
        plan = RoundPlan(
            select=np.stack(self._select),
            links=np.array(self._links),
            blocks=np.array(self._message),
            bursts=bursts._replace(
                memory=np.where(bursts.memory == SEND_MEMORY, own, bursts.memory)
            ),
            receipts=Receipts(*np.array(self._receipts, int).reshape(-1, len(Receipts._fields)).T),
            depth=self.filled,
            memories=(
                *make_node_memories(range(self._topology.ports), 0),
                *[Memory(())] * self._results,
            ),
            located=np.stack([np.where(memory == SEND_MEMORY, own, memory), slot]),
            rests=rests,
        )
        passing_on = self._schedule.blocks.groups.group_of_node < 0
        passing_on[[*self._topology.relays]] = True
        return reuse_slots(plan, np.flatnonzero(passing_on))


def crossbar_settings(
    topology: Topology, transfers: Transfers, entry: IntArray
) -> tuple[IntArray, list[End]]:
    """Return the crossbar settings that connect the paths of a round, and the end of each path.

    Parameters
    ----------
    topology : Topology
        Network of the nodes.
    transfers : Transfers
        Transfers of the round.
    entry : ndarray of int, shape (transfers,)
        Number of the source that feeds each transfer at its sender, such as an injection port.

    Returns
    -------
    select : ndarray of int16, shape (nodes, ports)
        Source of each out-port; `IDLE` if no transfer leaves by it.
    ends : list of End
        For each transfer: its receiver, the in-port at which it arrives, and the cycles of the
        links on its path.
    """
    select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
    if not len(transfers):
        return select, []
    walk, hops = transfers.walk(topology), transfers.hops
    for hop in range(hops.shape[1]):
        on = hops[:, hop] >= 0
        select[walk[on, hop], hops[on, hop]] = entry[on]
        entry = np.where(on, topology.opposite[hops[:, hop]], entry)
    ends = walk[:, -1].tolist(), entry.tolist(), transfers.link_cycles(topology).tolist()
    return select, list(zip(*ends, strict=True))


def follow_blocks(schedule: Schedule, *, rests: bool = True) -> RoundPlan:
    """Simulate a schedule of blocks round by round, and return the actions of all nodes.

    The blocks of a message may often be sent in any order. An order is chosen in which blocks that
    the receiver will later send on together follow one another, so that they lie side by side in
    its memory.

    Parameters
    ----------
    rests : bool
        True if rounds may follow one another without a pause.
    """
    record = RoundRecord(schedule, schedule.blocks.n_blocks)
    record.place_own_messages()

    def order_messages(node: int, messages: list[Message]) -> list[Message]:
        """Return the messages of a node, reordered so that no two read a memory at once.

        If no such order is found, the messages stay as they are.
        """
        held = record.held[node]
        return arrange_messages(messages, {block: held[block][0] for m in messages for block in m})

    def blocks_in_order(node: int, group: IntArray | None) -> Message:
        """Return the blocks that a node holds, set by set, and within a set in the order of memory.

        ``group[b]`` is the number of the set of block b; None if there is one set.
        """
        held = record.held[node]
        if group is None:
            return sorted(held, key=held.__getitem__)
        return sorted(held, key=lambda block: (group[block], held[block]))

    rounds = list(schedule.rounds())
    #: For each round, the groups that are needed next: those of the round, or of a later round.
    group, groups = None, list[IntArray | None]()
    for transfers in reversed(rounds):
        group = transfers.payload.group if isinstance(transfers.payload, Grouped) else group
        groups.append(group)
    for transfers, group in zip(rounds, reversed(groups), strict=True):
        sources, payload = transfers.source.tolist(), transfers.payload
        if isinstance(payload, Everything | Grouped):
            held = {node: blocks_in_order(node, group) for node in set(sources)}
            payloads = [held[node] for node in sources]
            if isinstance(payload, Grouped):
                payloads = [
                    [block for block in message if payload.group[block] == want]
                    for message, want in zip(payloads, payload.wanted, strict=True)
                ]
        else:
            listed = transfers.listed
            payloads = [listed.ids[a:b].tolist() for a, b in pairwise(listed.indptr)]
        entry, payloads = record.inject_transfers(transfers, payloads, order_messages)
        select, ends = crossbar_settings(schedule.topology, transfers, entry)
        for end, message in zip(ends, payloads, strict=True):
            record.receive_message(*end, message)
        record.end_round(select, ends, payloads)
    return record.make_plan(rests=rests and has_single_hops(schedule))
