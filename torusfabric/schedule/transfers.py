"""The transfers of a round, as arrays: the one view of a schedule that all others use."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np
from typing_extensions import Self

from ..toolchain.public import public_class
from ..toolchain.values import of_type
from ..topology import BoolArray, IntArray, Topology
from .arrays import ArrayFields, integer_array

__all__ = ["ALL", "NOTHING", "Everything", "Grouped", "KeptSums", "Listed", "Payload", "Transfers"]


@dataclass(frozen=True)
class Everything:
    """Payload of transfers that carry all their sender held before the round."""

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """The payload of some of the transfers."""
        return self


@public_class
@dataclass(frozen=True, eq=False)
class Listed(ArrayFields):
    """Payload of transfers that carry listed blocks.

    Transfer ``k`` carries ``ids[indptr[k]:indptr[k + 1]]``, in this order.

    Parameters
    ----------
    indptr : ndarray of int, shape (transfers + 1,)
    ids : ndarray of int, shape (indptr[-1],)
        Block numbers.

    Examples
    --------
    Of two transfers the first carries two blocks:

    >>> Listed(np.array([0, 2, 3]), np.array([4, 5, 6])).lists
    [array([4, 5]), array([6])]
    """

    arrays: ClassVar[dict[str, int]] = {"indptr": 1, "ids": 1}

    indptr: IntArray
    ids: IntArray

    @classmethod
    def single(cls, ids: IntArray) -> Self:
        """One block a transfer."""
        ids = integer_array("Ids", ids, 1)
        return cls(np.arange(len(ids) + 1), ids)

    @property
    def lists(self) -> list[IntArray]:
        """The blocks of each transfer."""
        ids = np.asarray(self.ids)
        return [ids[low:high] for low, high in pairwise(np.asarray(self.indptr).tolist())]

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """The payload of some of the transfers."""
        first, sizes = self.indptr[:-1][chosen], np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        inside = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], sizes)
        return type(self)(indptr, np.asarray(self.ids)[inside])


@dataclass(frozen=True, eq=False)
class Grouped:
    """Payload of transfers that carry what their sender held before the round of one group.

    Parameters
    ----------
    group : ndarray of int, shape (blocks,)
        The group of each block.
    wanted : ndarray of int, shape (transfers,)
        The group that each transfer carries.
    """

    group: IntArray
    wanted: IntArray

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """The payload of some of the transfers."""
        return type(self)(self.group, self.wanted[chosen])


@dataclass(frozen=True, eq=False)
class KeptSums(ArrayFields):
    """Payload of transfers of a reduction in which nodes keep their sums, one word each.

    A node adds up all that arrives. What it sends is a copy of its sum of a chunk, as that is
    before the round, or what arrived last of that chunk by an in-port in any round before, as it
    came.

    Parameters
    ----------
    chunk : ndarray of int, shape (transfers,)
    passed : ndarray of int, shape (transfers,)
        The in-port by which it arrived, -1 for the sender's sum.
    """

    arrays: ClassVar[dict[str, int]] = {"chunk": 1, "passed": 1}

    chunk: IntArray
    passed: IntArray

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """The payload of some of the transfers."""
        return type(self)(self.chunk[chosen], self.passed[chosen])


#: What the transfers of a round carry.
Payload: TypeAlias = Everything | Listed | Grouped | KeptSums

ALL = Everything()

#: The payload of a round without transfers.
NOTHING = Listed(np.zeros(1, np.int64), np.zeros(0, np.int64))


@public_class
@dataclass(frozen=True, eq=False)
class Transfers(ArrayFields):
    """The transfers of one round.

    Parameters
    ----------
    source : ndarray of int, shape (transfers,)
        The sender of each.
    hops : ndarray of int16, shape (transfers, longest path)
        The out-port taken at each node of the path, -1 past its end.
    payload : Everything, Listed, Grouped or KeptSums

    Examples
    --------
    In a broadcast on a ring, the root sends all it has both ways:

    >>> import torusfabric as tf
    >>> both = tf.Transfers(np.array([0, 0]), np.array([[0], [1]]))
    >>> both.walk(tf.Torus(5))[:, -1].tolist()
    [1, 4]
    """

    arrays: ClassVar[dict[str, int]] = {"source": 1, "hops": 2}

    source: IntArray
    hops: IntArray
    payload: Payload = ALL

    def __post_init__(self) -> None:
        super().__post_init__()
        how = "Everything, Listed, Grouped or KeptSums"
        of_type("Payload", self.payload, Payload, how)  # type: ignore[arg-type]

    @classmethod
    def hop(cls, source: IntArray, port: IntArray, payload: Payload) -> Self:
        """Transfers of a hop each, from nodes by out-ports."""
        return cls(source, np.asarray(port, np.int16)[:, None], payload)

    @classmethod
    def by_step(
        cls, step: IntArray, source: IntArray, port: IntArray, ids: IntArray
    ) -> tuple[Self, ...]:
        """The transfers of each step, given the step of each: a hop of a block."""
        order = np.argsort(step, kind="stable")
        bounds = np.searchsorted(step[order], np.arange(step.max(initial=-1) + 2))
        chosen = (order[a:b] for a, b in pairwise(bounds))
        return tuple(cls.hop(source[k], port[k], Listed.single(ids[k])) for k in chosen)

    def __len__(self) -> int:
        return len(self.source)

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Some of the transfers, by their numbers or by which are chosen."""
        return type(self)(self.source[chosen], self.hops[chosen], self.payload.of(chosen))

    def moved(self, source: IntArray, port: IntArray) -> Self:
        """The same from other nodes, by other ports in place of each."""
        port, payload = np.append(port, -1).astype(np.int16), self.payload
        if isinstance(payload, KeptSums):
            payload = KeptSums(payload.chunk, port[payload.passed])
        return type(self)(source, port[self.hops], payload)

    @property
    def lengths(self) -> IntArray:
        """Number of hops of each transfer."""
        lengths: IntArray = (self.hops >= 0).sum(axis=1)
        return lengths

    def link_cycles(self, topology: Topology) -> IntArray:
        """The cycles of all links on the way of each transfer."""
        each = topology.cycles_of_arc[self.walk(topology)[:, :-1], self.hops]
        cycles: IntArray = np.where(self.hops >= 0, each, 0).sum(1)
        return cycles

    @property
    def listed(self) -> Listed:
        """The payload of transfers that list their blocks.

        Raises
        ------
        TypeError
            If they do not.
        """
        if not isinstance(self.payload, Listed):
            raise TypeError(f"Payload must list its blocks, not {type(self.payload).__name__}")
        return self.payload

    def walk(self, topology: Topology) -> IntArray:
        """The nodes along each path, an array of shape (transfers, longest path + 1).

        Past the end of a path its last node is repeated, so that ``[:, -1]`` are the destinations.
        """
        nodes = np.empty((len(self), self.hops.shape[1] + 1), np.int32)
        nodes[:, 0] = self.source
        for hop in range(self.hops.shape[1]):
            port, here = self.hops[:, hop], nodes[:, hop]
            nodes[:, hop + 1] = np.where(port >= 0, topology.neighbours[here, port], here)
        return nodes
