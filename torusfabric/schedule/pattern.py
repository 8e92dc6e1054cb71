"""Patterns: schedules that do not change from step to step, so that hardware is mostly wires.

In every step, each out-port of a node forwards from the same in-port. Different nodes may forward
in different ways (in a `Table` it is the opposite). In a `Pattern` nodes forward blocks. In a
`SumPattern` they forward sums, and add their own contributions.

Each out-arc is fed by at most one arc, its *feeder*. Following feeders backwards from an arc ends
either in a directed cycle or at an arc without feeder. All arcs that lead back to the same cycle
form an endless *flow*: blocks injected along the cycle pass by, the nearest first. Arcs that lead
back to an arc without feeder form a *chain*, which runs dry.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np
from typing_extensions import Self, override

from ..toolchain.public import public_class
from ..toolchain.values import parse_non_negative_int
from ..topology import BoolArray, IntArray
from .base import Schedule
from .transfers import Listed, Transfers

__all__ = ["Flows", "Pattern", "SumPattern"]


#: The largest number of steps.
MOST_STEPS = 2**31 - 1


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern(Schedule):
    """Oblivious forwarding: each out-port always forwards from the same in-port.

    In step 1 a node sends chunks of its own message. In each later step, an out-port carries the
    block that its feeding in-port received in the step before.

    Parameters
    ----------
    steps : int
        Number of steps of the schedule; after them, forwarding ends.
    feed : ndarray of int16, shape (nodes, ports)
        The in-port that feeds each out-port, -1 for none.
    inject : ndarray of int, shape (nodes, ports)
        The chunk of the node's own message that each out-port carries in step 1, -1 for none.

    Examples
    --------
    An all-gather on a ring: a block that arrives on one side leaves on the other.

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
        object.__setattr__(
            self, "steps", parse_non_negative_int("Steps", self.steps, most=MOST_STEPS)
        )

    @property
    def streams(self) -> bool:
        """True if only the root sends, and every arc carries one block in the whole schedule.

        The arcs in use then form trees, the input of an out-port never changes, and messages of any
        length stream through.
        """
        alone = self.collective.single_origin and self.collective.axes is None
        return alone and not bool(((self.feed >= 0) & (self.inject >= 0)).any())

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each step: one block on each arc in use."""
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
    """Oblivious reduction: every node adds its own contribution to each sum that it forwards.

    The out-ports in use form directed cycles through all N nodes. The sum that node v completes
    starts at the next node of the cycle. Each node on the way forwards the sum with its own
    contribution added, and after N - 1 steps the sum arrives at v. In an all-reduce the complete
    sums go round once more, unchanged. `turns` chunks share each cycle, one step each in turn.

    Parameters
    ----------
    feed : ndarray of int16, shape (nodes, ports)
        The in-port whose sums each out-port forwards, -1 for none.
    inject : ndarray of int, shape (nodes, ports)
        The first of the `turns` chunks that each out-port carries, -1 for none. In an all-reduce,
        chunks are counted within the share of the message that the owner of the sum completes.
    turns : int
        Number of chunks that share each cycle.

    Examples
    --------
    One direction of a ring of three nodes. In the first step every node sends its contribution to
    the sum of the node behind it:

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
    >>> [pattern.blocks.block_entry(block) for block in next(pattern.rounds()).payload.ids]
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
        object.__setattr__(
            self, "turns", parse_non_negative_int("Turns", self.turns, most=MOST_STEPS)
        )

    @property
    def times_around(self) -> int:
        """Number of times that data goes round a cycle: once, or twice in an all-reduce."""
        return 1 + self.collective.to_all

    @property
    @override
    def steps(self) -> int:
        return self.turns * (self.topology.nodes - 1) * self.times_around

    @cached_property
    def along(self) -> tuple[IntArray, IntArray]:
        """The directed cycles along which the sums travel, in the order of their chunks.

        It may be read only for a pattern in which they are cycles through all nodes, as the checker
        demands.

        Returns
        -------
        chunk : ndarray of int, shape (cycles,)
            The first chunk of each cycle.
        nodes : ndarray of int, shape (cycles, nodes)
            The nodes of each cycle in order, from node 0 on.
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
        """The index of each node on each cycle of `along`, shape (cycles, nodes)."""
        _, nodes = self.along
        index: IntArray = np.argsort(nodes, axis=1)
        return index

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each step: one sum on each arc in use."""
        count = self.topology.nodes
        first, nodes = self.along
        source, port = np.nonzero(self.inject >= 0)
        chunk = self.inject[source, port]
        cycle = np.searchsorted(first, chunk)
        at = self.index[cycle, source]
        for hop in range((count - 1) * self.times_around):
            # The sum that a node sends in hop h has the contributions of this node and of the h
            # nodes behind it. Its owner is h + 1 nodes behind. A complete sum has all of them.
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
    """The flows of a pattern: the cycles and chains of arcs along which blocks travel.

    In a pattern, the words on an arc always come from the same arc, its *feeder*. Following feeders
    backwards ends in a cycle of arcs, or at an arc without feeder. All arcs that lead back to the
    same cycle form one flow, on which blocks circulate. Arcs that lead back to an arc without
    feeder form a chain, another kind of flow, on which blocks run dry. A cycle with a branch::

        a -> b -> c -> (a)     cycle of length 3: a, b, c have index 0, 1, 2 and tail 0
                  |
                  +--> d -> e  branch: d has index 0 (3 modulo 3) and tail 1; e index 1, tail 2

    Let an arc have index i on its flow. In step t it carries the block that was injected at index
    ``i - t + 1``. On a cycle, the index counts modulo the length. On a chain, a negative index
    means no block. An arc that is k = `tail` hops off its cycle carries blocks of the cycle from
    step k + 1 on. Before that it carries the blocks that were injected on the branch itself.

    Parameters
    ----------
    flow : ndarray of int32, shape (nodes, ports)
        The flow of each out-arc, -1 for an arc that never carries a block.
    index : ndarray of int32, shape (nodes, ports)
        The position of the arc along its flow; modulo the length of the cycle, also for an arc off
        the cycle.
    on_cycle : ndarray of bool, shape (nodes, ports)
        True for an arc of a cycle.
    tail : ndarray of int32, shape (nodes, ports)
        The hops from the cycle to the arc: 0 on a cycle and on a chain.
    length : ndarray of int32, shape (flows,)
        The number of arcs of the cycle, 0 for a chain.
    indptr : ndarray of int, shape (flows + 1,)
        Flow k is ``arcs[indptr[k]:indptr[k + 1]]``.
    arcs : ndarray of int32, shape (indptr[-1],)
        The arcs along each flow, in order of their index. The number of an arc is
        ``node * ports + port``. A chain that branches is stored as one flow for each end, so arcs
        of the common part are repeated.

    Examples
    --------
    Two Hamiltonian cycles, each in both directions, are four flows along all nodes.

    >>> from torusfabric.algorithms import find_algorithm
    >>> import torusfabric as tf
    >>> flows = Flows.from_pattern(find_algorithm("hamiltonian")(tf.Torus(4, 4),
    ...     tf.parse_collective("allgather")))
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
    def from_pattern(cls, pattern: Pattern | SumPattern) -> Self:
        """Return the flows (cycles and chains of arcs) along which the blocks of a pattern travel.

        Flows into which no node sends a block of its own are left out.

        Parameters
        ----------
        pattern : Pattern or SumPattern
            The schedule whose flows are wanted.
        """
        shape = pattern.feed.shape
        node, port = pattern.topology.feeding(pattern.feed)
        fed = node.astype(np.int64) * pattern.topology.ports + port
        itself = np.arange(pattern.feed.size).reshape(shape)
        feeder = np.where(pattern.feed >= 0, fed, itself).ravel().tolist()
        count = len(feeder)
        arcs = _FlowArcs([-1] * count, [0] * count, [False] * count, [0] * count)
        along = _find_cycles(feeder, arcs) | _find_chains(feeder, arcs)
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
class _FlowArcs:
    """The fields of `Flows` with an entry for each arc, filled in while flows are found.

    In `flow`, a flow is named by the lowest arc of its cycle, or by the last arc of its chain.
    """

    flow: list[int]
    index: list[int]
    on_cycle: list[bool]
    tail: list[int]


def _find_cycles(feeder: list[int], arcs: _FlowArcs) -> dict[int, list[int]]:
    """Find all cycles of arcs, and write their arcs and the branches off them into `arcs`.

    For arcs of chains, which do not lead back to a cycle, only the position is written.

    Parameters
    ----------
    feeder : list of int
        For each arc, the arc from which its words come; the arc itself if there is none.
    arcs : _FlowArcs
        The fields to fill, with an entry for each arc.

    Returns
    -------
    dict of int to list of int
        For each cycle, named by its lowest arc: its arcs in order, from the lowest on.
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


def _find_chains(feeder: list[int], arcs: _FlowArcs) -> dict[int, list[int]]:
    """Write the arcs of chains into `arcs`, and return the arcs along each chain: {last arc: arcs}.

    A chain begins at an arc without feeder. At a branch, it continues with the lowest arc that the
    branching arc feeds. The other arcs there begin chains of their own, which repeat the common
    part. `feeder` is as in `_find_cycles`, which must have been called before.
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
