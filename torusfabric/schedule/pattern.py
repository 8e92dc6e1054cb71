"""Patterns, in which every node forwards obliviously, or passes on sums with its own added."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..topology import IntArray
from .base import Schedule
from .transfers import Listed, Transfers

__all__ = ["Pattern", "SumPattern"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern(Schedule):
    """Oblivious forwarding: every node does the same in every step.

    In step 1 a node sends chunks of its own message; in each later step every out-port carries what
    the in-port that feeds it received in the step before.

    Parameters
    ----------
    feed : ndarray of int8, shape (nodes, ports)
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

    steps: int
    feed: IntArray
    inject: IntArray

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


@dataclass(frozen=True, eq=False, kw_only=True)
class SumPattern(Schedule):
    """Oblivious sums: every node adds its own contribution to all that passes.

    The out-ports in use form directed cycles through all nodes. The sum of a node begins at the
    next node of the cycle, and comes around to it: a node passes on what arrives with its own
    contribution added, and what arrives last is its own sum. In an all-reduce that goes around once
    more, as it is. Some chunks take turns on each cycle, a step each.

    Parameters
    ----------
    feed : ndarray of int8, shape (nodes, ports)
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

    feed: IntArray
    inject: IntArray
    turns: int

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
