"""List scheduling: each step of a dataflow runs as soon as data, order and links allow.

In a round an arc carries one block. A step of several blocks takes several arcs or rounds, and
following steps wait for all of its blocks. Of several steps that could use an arc, the step with
the longest chain of steps behind it goes first. With circuits a step takes one path for all of its
blocks, of any length, along free arcs.

Where ranks keep their sums, the module `kept_sums` makes the rounds.
"""

from collections import defaultdict
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from ...collective import Collective, parse_collective
from ...errors import InputError
from ...schedule import Duplex, Listed, Rounds, Switching, Transfers
from ...schedule.foreign.dataflow import Dataflow
from ...schedule.foreign.machine import Value
from ...topology import IntArray, Topology
from .kept_sums import KeptSumsScheduler
from .links import FreeArcs, FreePaths

__all__ = ["list_schedule"]


#: The most contributions in all sums together.
MOST_IDS = 2**27


#: Blocks on a path in a round: the sending rank, the path, and the values.
CarriedValues: TypeAlias = tuple[int, tuple[int, ...], tuple[Value, ...]]


def list_schedule(
    dataflow: Dataflow,
    topology: Topology,
    nodes: IntArray,
    *,
    switching: Switching | str = Switching.STORE_AND_FORWARD,
) -> Rounds:
    """Assign the steps of `dataflow`, a foreign schedule, to rounds, each as early as possible.

    A step waits for its data, for earlier steps, and for a free link; a rank is a participant of
    the foreign schedule, such as a GPU.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank.
    switching : Switching
        With store-and-forward, two ranks that exchange messages must be at neighbouring nodes.

    Returns
    -------
    Rounds
        The schedule, which is not checked.

    Raises
    ------
    InputError
        If two ranks exchange messages with store-and-forward and their nodes are not neighbours, or
        if partial sums would have to wait for each other.
    """
    switching = Switching(switching)
    root = dataflow.buffers.collective.root
    collective = parse_collective(
        dataflow.buffers.collective.kind, root=None if root is None else int(nodes[root])
    )
    if dataflow.kept:
        urgency = _chain_lengths(dataflow, whole=False)
        transfers = [*KeptSumsScheduler(dataflow, topology, nodes, urgency).rounds()]
    else:
        # The transfers of each round, where blocks or partial sums move.
        circuit = switching == Switching.CIRCUIT
        links = FreePaths(topology, nodes) if circuit else FreeArcs(dataflow, topology, nodes)
        writer = _RoundWriter(dataflow, topology, collective, nodes)
        transfers = [
            writer.write_round(carried) for carried in _Scheduler(dataflow, links).assign_rounds()
        ]
    facts = dataflow.file.facts
    ports = facts.get("ports", "")
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm=dataflow.file.name,
        switching=switching,
        ports=int(ports) if ports in map(str, range(1, topology.ports)) else topology.ports,
        duplex=Duplex.HALF if facts.get("duplex") == "half" else Duplex.FULL,
        chunks=dataflow.buffers.chunks,
        transfers=tuple(transfers),
    )


def _chain_lengths(dataflow: Dataflow, *, whole: bool) -> list[int]:
    """Return, for each step, the number of rounds of the longest chain that begins with it.

    A chain is a sequence of steps in which each waits for the one before.

    Parameters
    ----------
    dataflow : Dataflow
        The steps and their messages.
    whole : bool
        True if all blocks of a step go in one round.
    """
    graph = dataflow.graph
    urgency = [0] * len(graph.steps)
    for index in reversed(dataflow.order):
        behind = max(map(urgency.__getitem__, graph.successors(index)), default=0)
        message = dataflow.messages[index]
        count = len(message.values) if message else 0
        urgency[index] = behind + (bool(count) if whole else count)
    return urgency


class _Scheduler:
    """A scheduler that assigns the steps of a foreign schedule to rounds.

    A step sends one message from one rank (a participant, such as a GPU) to another, or nothing. It
    waits for other steps.

    Attributes
    ----------
    waiting : list of int
        The number of steps for which each step still waits.
    ready : dict of int to list
        For each round to come, the steps that can begin in it at the earliest.
    queues : dict of (source, target) to heap
        For each pair of ranks, the messages that wait for an arc, the most urgent first.
    """

    def __init__(self, dataflow: Dataflow, links: FreeArcs | FreePaths) -> None:
        self.dataflow, self.links, self.graph = dataflow, links, dataflow.graph
        count = len(self.graph.steps)
        self.waiting = [0] * count
        for index in range(count):
            for other in self.graph.successors(index):
                self.waiting[other] += 1
        self.earliest = [0] * count
        self.left = [0 if message is None else len(message.values) for message in dataflow.messages]
        self.urgency = _chain_lengths(dataflow, whole=links.has_whole_messages)
        self.ready: dict[int, list[int]] = defaultdict(list)
        self.queues: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.rounds: list[list[CarriedValues]] = []

    def assign_rounds(self) -> list[list[CarriedValues]]:
        """Assign all steps to rounds, and return the data that move in each round.

        An entry of a round is a triple: the sending rank, the out-ports of the path, and the blocks
        or sums that go along it.
        """
        for index, count in enumerate(self.waiting):
            if not count:
                self.ready[0].append(index)
        number = 0
        while self.ready or self.queues:
            if not self.queues and number not in self.ready:
                number = min(self.ready)
            self.rounds += [[] for _ in range(number + 1 - len(self.rounds))]
            # One round. Repeat, since steps that end in it may let others begin in it.
            self.links.begin_round()
            fresh = self._start_steps(number)
            pairs = sorted(self.queues, key=lambda pair: self.queues[pair][0])
            while pairs:
                for pair in pairs:
                    self._serve_pair(pair, number)
                fresh = self._start_steps(number)
                pairs = sorted(fresh & self.queues.keys(), key=lambda pair: self.queues[pair][0])
            number += 1
        while self.rounds and not self.rounds[-1]:
            self.rounds.pop()
        return self.rounds

    def _start_steps(self, number: int) -> set[tuple[int, int]]:
        """Put the messages of all steps that can begin in round `number` into the queues.

        Return the pairs of ranks (source, target) of these messages.
        """
        pairs = set()
        while number in self.ready:
            for index in self.ready.pop(number):
                message = self.dataflow.messages[index]
                if message is None:
                    self._end_step(index, number, number)
                elif message.round > number:
                    self.ready[message.round].append(index)
                else:
                    pair = message.source, message.target
                    heappush(self.queues[pair], (-self.urgency[index], index))
                    pairs.add(pair)
        return pairs

    def _serve_pair(self, pair: tuple[int, int], number: int) -> None:
        """Send the messages that wait between two ranks, while arcs are free in round `number`.

        `pair` has the sending and the receiving rank.
        """
        queue, later = self.queues.pop(pair), []
        while queue:
            entry = heappop(queue)
            index = entry[1]
            if not self._send_values(index, number):
                later.append(entry)
                message = self.dataflow.messages[index]
                if not (message and message.together and message.round == number):
                    break
        for entry in later:
            heappush(queue, entry)
        if queue:
            self.queues[pair] = queue

    def _send_values(self, index: int, number: int) -> bool:
        """Send as many blocks of step `index` as there are free arcs, in round `number`.

        Return True if no block of the step is left.
        """
        message = self.dataflow.messages[index]
        assert message is not None
        sent = len(message.values) - self.left[index]
        for path in self.links.take_paths(message, self.left[index]):
            count = self.left[index] if self.links.has_whole_messages else 1
            values = message.values[sent : sent + count]
            self.rounds[number].append((message.source, path, values))
            sent += count
        self.left[index] = len(message.values) - sent
        if not self.left[index]:
            self._end_step(index, number, number + 1)
        return not self.left[index]

    def _end_step(self, index: int, number: int, arrival: int) -> None:
        """End step `index` in round `number`, and tell the steps that wait for it.

        A step that waits only for the order of the file can begin in the same round. The step that
        receives the message can begin in round `arrival`, when the message is there.
        """
        for other in self.graph.follows[index]:
            self._count_finished_step(other, number)
        if index in self.graph.received_by:
            self._count_finished_step(self.graph.received_by[index], arrival)

    def _count_finished_step(self, index: int, number: int) -> None:
        """Record that one of the steps for which step `index` waits has ended.

        Because of the ended step, `index` cannot begin before round `number`. If it waits for no
        other step, it becomes ready for the latest such round.
        """
        self.waiting[index] -= 1
        self.earliest[index] = max(self.earliest[index], number)
        if not self.waiting[index]:
            self.ready[self.earliest[index]].append(index)


class _RoundWriter:
    """A writer of rounds: it replaces the ranks of a foreign schedule by their nodes.

    A rank is a participant of such a schedule, for example a GPU.
    """

    def __init__(
        self, dataflow: Dataflow, topology: Topology, collective: Collective, nodes: IntArray
    ) -> None:
        self.buffers, self.nodes = dataflow.buffers, nodes
        self.blocks = collective.blocks(topology, dataflow.buffers.chunks)
        self.chunk_numbers = _chunk_numbers(dataflow, nodes)
        self.members: dict[int, IntArray] = {}
        self.count = 0

    def write_round(self, carried: list[CarriedValues]) -> Transfers:
        """Return the transfers of a round, sorted by node and path.

        All blocks that leave a node along the same path are one transfer. `carried` lists the
        sending rank, the out-ports of the path and the values of each message.
        """
        paths: dict[tuple[int, tuple[int, ...]], list[Value]] = {}
        for rank, path, values in carried:
            paths.setdefault((int(self.nodes[rank]), path), []).extend(values)
        paths = dict(sorted(paths.items()))
        longest = max((len(path) for _, path in paths), default=1)
        hops = np.full((len(paths), longest), -1, np.int16)
        for row, (_, path) in enumerate(paths):
            hops[row, : len(path)] = path
        sources = np.array([source for source, _ in paths], np.int64)
        return Transfers(sources, hops, self._make_payload(list(paths.values())))

    def _make_payload(self, lists: list[list[Value]]) -> Listed:
        """Return the blocks of all paths of a round, as one `Listed`: a list for each path.

        ``lists[k]`` has the values of path k: pairs of a chunk's key and the ranks that contribute
        to it. A sum is listed as the blocks of all its contributions.
        """
        values = [value for path in lists for value in path]
        keys = np.array([key for key, _ in values], np.int64)
        origin, destination, chunk = self.buffers.split_key(keys)
        sizes, origins = np.ones(len(keys), np.int64), self.nodes[origin]
        if self.buffers.collective.reducing:
            members = [self._nodes_of_ranks(ranks) for _, ranks in values]
            sizes = np.array([len(nodes) for nodes in members], np.int64)
            origins = np.concatenate([np.empty(0, np.int64), *members])
        self.count += len(origins)
        if self.count > MOST_IDS:
            raise InputError(
                f"Contributions of all sums must be at most {MOST_IDS}, and this file has more; "
                "import a schedule with fewer chunks or gpus"
            )
        chunks, there = self.chunk_numbers[chunk], self.nodes[destination]
        ids = self.blocks.encode(origins, np.repeat(chunks, sizes), np.repeat(there, sizes))
        ends = np.concatenate([[0], np.cumsum(sizes)])
        return Listed(ends[np.cumsum([0, *map(len, lists)])], ids)

    def _nodes_of_ranks(self, ranks: int) -> IntArray:
        """Return the nodes of some ranks, ascending; bit r of `ranks` stands for rank r."""
        if ranks not in self.members:
            raw = np.frombuffer(ranks.to_bytes(-(-self.buffers.ranks // 8), "little"), np.uint8)
            bits = np.unpackbits(raw, bitorder="little")
            self.members[ranks] = np.sort(self.nodes[np.flatnonzero(bits)])
        return self.members[ranks]


def _chunk_numbers(dataflow: Dataflow, nodes: IntArray) -> IntArray:
    """Return a new number for each chunk, by which chunks are sorted by the node of their sums.

    The sum of each chunk is completed at one node. If this is M chunks for every node, those of
    node n get the numbers n M to n M + M - 1. Why: in an all-reduce, chunks may have any numbers;
    with these, a schedule that looks the same from every node is written in the same way at every
    node, as a `Table` requires. In other collectives, or if nodes complete different numbers of
    chunks, the numbers stay as they are. ``nodes[rank]`` is the node of each rank of `dataflow`.
    """
    buffers = dataflow.buffers
    same = np.arange(buffers.chunks)
    collective, share = buffers.collective, buffers.chunks // buffers.ranks
    if (
        dataflow.kept
        or not (collective.reducing and collective.to_all)
        or buffers.chunks % buffers.ranks
    ):
        return same
    # A node that receives a complete sum has not completed it.
    completes = np.ones((buffers.chunks, buffers.ranks), bool)
    for message in dataflow.messages:
        if message is None:
            continue
        for key, ranks in message.values:
            if ranks == buffers.complete_mask:
                completes[key, message.target] = False
    owner = nodes[completes.argmax(axis=1)]
    if (completes.sum(axis=1) != 1).any() or (np.bincount(owner) != share).any():
        return same
    numbers = np.empty_like(same)
    numbers[np.argsort(owner, kind="stable")] = same
    return numbers
