"""Patterns: schedules in which every node forwards obliviously."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..topology import IntArray
from .base import Schedule
from .transfers import Listed, Transfers

__all__ = ["Pattern"]


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
    ...     algorithm="ring",
    ...     switching=tf.Switching.STORE_AND_FORWARD,
    ...     ports=2,
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
            yield Transfers(
                source, port[:, None].astype(np.int8), Listed.single(carried[source, port])
            )
            carried = np.where(self.feed >= 0, carried[upstream], -1)
