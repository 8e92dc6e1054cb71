"""Patterns, in which every node forwards obliviously, or passes on sums with its own added.

In a pattern each out-arc is fed by at most one arc, its feeder. Going back from feeder to feeder,
one comes to a directed cycle or to an arc that nothing feeds. The arcs of a cycle with all that
hangs off it are a flow without an end: the blocks injected along the cycle pass by, the nearest
first. Where nothing feeds the first arc the flow is a chain, and runs dry.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from ..toolchain.public import public_class
from ..toolchain.values import natural
from ..topology import BoolArray, IntArray
from .base import Schedule
from .transfers import Listed, Transfers

__all__ = ["Flows", "Pattern", "SumPattern"]


#: The most steps that are counted.
MOST_STEPS = 2**31 - 1


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern(Schedule):
    """Oblivious forwarding: every node does the same in every step.

    In step 1 a node sends chunks of its own message; in each later step every out-port carries what
    the in-port that feeds it received in the step before.

    Parameters
    ----------
    feed : ndarray of int16, shape (nodes, ports)
        The in-port that feeds each out-port, -1 for none.
    inject : ndarray of int, shape (nodes, ports)
        The chunk that each out-port carries in step 1, -1 for none.

    Examples
    --------
    An all-gather on a ring: what comes in on one side goes out on the other.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> pattern = Pattern(
    ...     topology=tf.Torus(5),
    ...     collective=tf.Collective("allgather"),
    ...     steps=2,
    ...     feed=np.tile([1, 0], (5, 1)),
    ...     inject=np.zeros((5, 2), int),
    ... )
    >>> [len(transfers) for transfers in pattern.rounds()]
    [10, 10]
    """

    form: ClassVar[str] = "pattern"
    arrays: ClassVar[dict[str, int]] = {"feed": 2, "inject": 2}

    steps: int
    feed: IntArray
    inject: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "steps", natural("Steps", self.steps, most=MOST_STEPS))

    @property
    def streams(self) -> bool:
        """Whether one node alone sends, and every arc carries one block: the arcs are trees.

        What feeds an out-port then never changes, and messages of any length stream through.
        """
        alone = self.collective.single_origin and self.collective.axes is None
        return alone and not bool(((self.feed >= 0) & (self.inject >= 0)).any())

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step: one block on each arc in use."""
        topology, blocks = self.topology, self.blocks
        nodes = np.arange(topology.nodes)[:, None]
        carried = np.where(self.inject >= 0, blocks.encode(nodes, self.inject), -1)
        upstream = topology.feeding(self.feed)
        for _ in range(self.steps):
            source, port = np.nonzero(carried >= 0)
            yield Transfers.hop(source, port, Listed.single(carried[source, port]))
            carried = np.where(self.feed >= 0, carried[upstream], -1)


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class SumPattern(Schedule):
    """Oblivious sums: every node adds its own contribution to all that passes.

    The out-ports in use form directed cycles through all nodes. The sum of a node begins at the
    next node of the cycle, and comes around to it: a node passes on what arrives with its own
    contribution added, and what arrives last is its own sum. In an all-reduce that goes around once
    more, as it is. Some chunks take turns on each cycle, a step each.

    Parameters
    ----------
    feed : ndarray of int16, shape (nodes, ports)
        The in-port whose sums each out-port passes on, -1 for none.
    inject : ndarray of int, shape (nodes, ports)
        The first of the chunks whose sums each out-port carries, -1 for none; of an all-reduce it
        is counted within the share of the message that its owner completes.
    turns : int
        How many chunks take turns on each cycle.

    Examples
    --------
    A ring of three one way: in the first step every node sends what it has for the node behind it.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> pattern = SumPattern(
    ...     topology=tf.Torus(3),
    ...     collective=tf.Collective("reduce-scatter"),
    ...     ports=1,
    ...     feed=np.tile([1, -1], (3, 1)),
    ...     inject=np.tile([0, -1], (3, 1)),
    ...     turns=1,
    ... )
    >>> [pattern.blocks.name(block) for block in next(pattern.rounds()).payload.ids]
    [(0, 2, 0), (1, 0, 0), (2, 1, 0)]
    >>> pattern.steps
    2
    """

    form: ClassVar[str] = "pattern"
    arrays: ClassVar[dict[str, int]] = {"feed": 2, "inject": 2}

    feed: IntArray
    inject: IntArray
    turns: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "turns", natural("Turns", self.turns, most=MOST_STEPS))

    @property
    def times_around(self) -> int:
        """How often blocks go around: sums once, and results once more where all get them."""
        return 1 + self.collective.to_all

    @property
    @override
    def steps(self) -> int:
        return self.turns * (self.topology.nodes - 1) * self.times_around

    @cached_property
    def along(self) -> tuple[IntArray, IntArray]:
        """The cycles of a checked pattern, in the order of their chunks.

        Returns
        -------
        chunk : ndarray of int, shape (cycles,)
            The first chunk of each.
        nodes : ndarray of int, shape (cycles, nodes)
            Its nodes in order, from node 0 on.
        """
        topology = self.topology
        first = np.unique(self.inject[self.inject >= 0])
        nodes = np.zeros((len(first), topology.nodes), int)
        for cycle, chunk in enumerate(first):
            port = (self.inject == chunk).argmax(axis=1)
            onward = topology.neighbours[np.arange(topology.nodes), port].tolist()
            for k in range(1, topology.nodes):
                nodes[cycle, k] = onward[nodes[cycle, k - 1]]
        return first, nodes

    @cached_property
    def index(self) -> IntArray:
        """Where each node is on each cycle, shape (cycles, nodes)."""
        _, nodes = self.along
        index: IntArray = np.argsort(nodes, axis=1)
        return index

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step: one sum on each arc in use."""
        count = self.topology.nodes
        first, nodes = self.along
        source, port = np.nonzero(self.inject >= 0)
        chunk = self.inject[source, port]
        cycle = np.searchsorted(first, chunk)
        at = self.index[cycle, source]
        for hop in range((count - 1) * self.times_around):
            # Of a partial sum, the contributions are those of the nodes behind; its owner is next.
            whole = hop >= count - 1
            behind = np.arange(count if whole else hop + 1)
            ahead = hop - (count - 1) if whole else hop + 1
            origin = nodes[cycle[:, None], (at[:, None] - behind) % count]
            owner = nodes[cycle, (at - ahead) % count][:, None]
            for turn in range(self.turns):
                name = (chunk + turn)[:, None]
                if not self.collective.personal:
                    name = owner * self.sums_of_owner + name
                ids = self.blocks.encode(origin, name, owner)
                indptr = np.arange(len(source) + 1) * len(behind)
                yield Transfers.hop(source, port, Listed(indptr, ids.ravel()))


@dataclass(frozen=True, eq=False)
class Flows:
    """The flows of a pattern.

    In step t an arc of index i carries what was injected at index i - t + 1 of its flow: modulo
    the length on a cycle, nothing if that is negative on a chain. An arc ``tail`` hops off its
    cycle does so from step ``tail + 1`` on; up to then it carries its `prefix`.

    Parameters
    ----------
    flow : ndarray of int32, shape (nodes, ports)
        The flow of each out-arc, -1 if nothing is ever sent on it.
    index : ndarray of int32, shape (nodes, ports)
        Its position along the flow, modulo the length also off a cycle.
    on_cycle : ndarray of bool, shape (nodes, ports)
        Whether it is itself an arc of a cycle.
    tail : ndarray of int32, shape (nodes, ports)
        Its distance from the cycle: 0 on a cycle and on a chain.
    length : ndarray of int32, shape (flows,)
        The number of arcs of the cycle, 0 for a chain.
    indptr : ndarray of int, shape (flows + 1,)
        Flow k is ``arcs[indptr[k]:indptr[k + 1]]``.
    arcs : ndarray of int32, shape (indptr[-1],)
        The arcs along each flow, by index; an arc is ``node * ports + port``. A chain that
        branches is one flow for each end, the common part repeated.

    Examples
    --------
    Two Hamiltonian cycles, each in both directions, are four flows along all nodes.

    >>> from torusfabric.algorithms import find
    >>> import torusfabric as tf
    >>> flows = Flows.of(find("hamiltonian")(tf.Torus(4, 4), tf.parse_collective("allgather")))
    >>> flows.length
    array([16, 16, 16, 16], dtype=int32)
    """

    flow: IntArray
    index: IntArray
    on_cycle: BoolArray
    tail: IntArray
    length: IntArray
    indptr: IntArray
    arcs: IntArray

    @classmethod
    def of(cls, pattern: Pattern | SumPattern) -> Self:
        """The flows of a pattern."""
        shape = pattern.feed.shape
        node, port = pattern.topology.feeding(pattern.feed)
        fed = node.astype(np.int64) * pattern.topology.ports + port
        itself = np.arange(pattern.feed.size).reshape(shape)
        feeder = np.where(pattern.feed >= 0, fed, itself).ravel().tolist()
        count = len(feeder)
        arcs = _Arcs([-1] * count, [0] * count, [False] * count, [0] * count)
        along = _cycles(feeder, arcs) | _chains(feeder, arcs)
        names = sorted(along)
        flow = np.searchsorted(names, arcs.flow)
        injects = pattern.inject.ravel() >= 0
        used = np.bincount(flow, injects, len(names)) > 0
        used |= np.array([injects[along[name]].any() for name in names], bool)
        kept = [along[name] for name, is_used in zip(names, used, strict=True) if is_used]
        number = np.where(used, np.cumsum(used) - 1, -1)
        return cls(
            flow=number[flow].astype(np.int32).reshape(shape),
            index=np.array(arcs.index, np.int32).reshape(shape),
            on_cycle=np.array(arcs.on_cycle).reshape(shape),
            tail=np.array(arcs.tail, np.int32).reshape(shape),
            length=np.array([arcs.on_cycle[each[0]] * len(each) for each in kept], np.int32),
            indptr=np.cumsum([0, *map(len, kept)]),
            arcs=np.array([arc for each in kept for arc in each], np.int32),
        )

    def __len__(self) -> int:
        return len(self.length)


@dataclass
class _Arcs:
    """Fields of `Flows` by arc; a flow has the name of the first arc of a cycle, or the last."""

    flow: list[int]
    index: list[int]
    on_cycle: list[bool]
    tail: list[int]


def _cycles(feeder: list[int], arcs: _Arcs) -> dict[int, list[int]]:
    """Enter cycles, with what hangs off them, and how deep arcs of chains are.

    Parameters
    ----------
    feeder : list of int
        What feeds each arc; itself where nothing does.

    Returns
    -------
    dict of int to list of int
        The arcs along each cycle, from the least on.
    """
    along: dict[int, list[int]] = {}
    seen = [False] * len(feeder)
    for start in range(len(feeder)):
        way, here = [], start
        while not seen[here]:
            seen[here] = True
            way.append(here)
            here = feeder[here]
        if here in way and feeder[here] != here:
            closing = way.index(here)
            way, cycle = way[:closing], way[closing:][::-1]
            first = cycle.index(min(cycle))
            along[cycle[first]] = cycle = cycle[first:] + cycle[:first]
            for place, arc in enumerate(cycle):
                arcs.flow[arc], arcs.index[arc], arcs.on_cycle[arc] = cycle[0], place, True
        for arc in reversed(way):
            before = feeder[arc]
            if (flow := arcs.flow[before]) >= 0:
                arcs.flow[arc], arcs.tail[arc] = flow, arcs.tail[before] + 1
                arcs.index[arc] = (arcs.index[before] + 1) % len(along[flow])
            elif before != arc:
                arcs.index[arc] = arcs.index[before] + 1
    return along


def _chains(feeder: list[int], arcs: _Arcs) -> dict[int, list[int]]:
    """Enter chains, of arcs that are of no cycle; returns the arcs along each.

    Along a chain that branches, each arc goes on with the least arc that it feeds.
    """
    along: dict[int, list[int]] = {}
    chained = [arc for arc, flow in enumerate(arcs.flow) if flow < 0]
    onward = {feeder[arc]: arc for arc in reversed(chained) if feeder[arc] != arc}
    for end in chained:
        if end not in onward:
            way = [end]
            while feeder[way[-1]] != way[-1]:
                way.append(feeder[way[-1]])
            along[end], arcs.flow[end] = way[::-1], end
            for arc, before in pairwise(way):
                if onward[before] != arc:
                    break
                arcs.flow[before] = end
    return along
