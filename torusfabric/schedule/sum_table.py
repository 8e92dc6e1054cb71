"""Tables of sums that nodes keep: all-reduces in which partial sums are copied."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..topology import CayleyGraph, IntArray
from .base import Schedule
from .transfers import KeptSums, Transfers

__all__ = ["SumTable"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SumTable(Schedule):
    """A translation-invariant all-reduce in which every node keeps its sums.

    Of each chunk a node has one sum, at first its own contribution. Whatever arrives is added to
    it. In a step a node sends by each port in use a copy of its sum of a chunk, as it is before the
    step, or passes on, as it came, what arrived last of that chunk by an in-port.

    Parameters
    ----------
    chunk : ndarray of int, shape (steps, ports)
        What a node sends by each port: a word of this chunk, -1 for an idle port.
    passed : ndarray of int, shape (steps, ports)
        The in-port by which it arrived, in a step before, -1 for the node's sum.

    Examples
    --------
    A ring of five: both neighbours' words, then those that these have received.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> table = SumTable(
    ...     topology=tf.Torus(5),
    ...     collective=tf.Collective("allreduce"),
    ...     algorithm="by hand",
    ...     switching=tf.Switching.STORE_AND_FORWARD,
    ...     ports=2,
    ...     chunk=np.zeros((2, 2), int),
    ...     passed=np.array([[-1, -1], [1, 0]]),
    ... )
    >>> tf.check(table).rounds
    2
    """

    form: ClassVar[str] = "table"

    topology: CayleyGraph
    chunk: IntArray
    passed: IntArray

    @property
    @override
    def steps(self) -> int:
        return len(self.chunk)

    @property
    @override
    def in_shares(self) -> bool:
        """All nodes complete all chunks."""
        return False

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step: one word on each arc in use."""
        nodes = np.arange(self.topology.nodes)
        for chunk, passed in zip(self.chunk, self.passed, strict=True):
            ports = np.flatnonzero(chunk >= 0)
            count = len(nodes)
            yield Transfers(
                np.repeat(nodes, len(ports)),
                np.tile(ports, count)[:, None].astype(np.int8),
                KeptSums(np.tile(chunk[ports], count), np.tile(passed[ports], count)),
            )
