"""The transfers of a round, as arrays. This is the common view of all forms of schedules.

A *transfer* is one message of a round: its sender, its path and its *payload*, the data that it
carries. One payload object describes all transfers of a round.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np
from typing_extensions import Self

from ..toolchain.public import public_class
from ..toolchain.values import require_type
from ..topology import BoolArray, IntArray, Topology
from .arrays import ArrayFields, integer_array

__all__ = ["ALL", "NOTHING", "Everything", "Grouped", "KeptSums", "Listed", "Payload", "Transfers"]


@dataclass(frozen=True)
class Everything:
    """Payload of transfers that carry all that their sender held before the round.

    A payload is the description of the data that the transfers of a round carry.
    """

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Return the payload (all that each sender held) of the transfers that `chosen` selects.

        `chosen` has the indices of transfers, or True for each selected transfer.
        """
        return self


@public_class
@dataclass(frozen=True, eq=False)
class Listed(ArrayFields):
    """Payload of transfers that carry listed blocks.

    A payload is the description of the data that the transfers of a round carry. Here transfer
    ``k`` carries the blocks ``ids[indptr[k]:indptr[k + 1]]``, in this order.

    Parameters
    ----------
    indptr : ndarray of int, shape (transfers + 1,)
        The bounds of the list of each transfer in `ids`; the last entry is the length of `ids`.
    ids : ndarray of int, shape (indptr[-1],)
        The block numbers of all transfers, concatenated.

    Examples
    --------
    Two transfers, of which the first carries two blocks:

    >>> Listed(np.array([0, 2, 3]), np.array([4, 5, 6])).lists
    [array([4, 5]), array([6])]
    """

    arrays: ClassVar[dict[str, int]] = {"indptr": 1, "ids": 1}

    indptr: IntArray
    ids: IntArray

    @classmethod
    def single(cls, ids: IntArray) -> Self:
        """Return the payload of transfers that carry one block each.

        Parameters
        ----------
        ids : ndarray of int, shape (transfers,)
            The number of the block of each transfer.
        """
        ids = integer_array("Ids", ids, 1)
        return cls(np.arange(len(ids) + 1), ids)

    @property
    def lists(self) -> list[IntArray]:
        """The block numbers that each transfer carries, as a list of arrays."""
        ids = np.asarray(self.ids)
        return [ids[low:high] for low, high in pairwise(np.asarray(self.indptr).tolist())]

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Return the payload (listed blocks) of the transfers that `chosen` selects.

        `chosen` has the indices of transfers, or True for each selected transfer.
        """
        first, sizes = self.indptr[:-1][chosen], np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        inside = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], sizes)
        return type(self)(indptr, np.asarray(self.ids)[inside])


@dataclass(frozen=True, eq=False)
class Grouped:
    """Payload of transfers that carry all blocks of one set that their sender held before the
    round.

    A payload is the description of the data that the transfers of a round carry. All blocks of the
    collective are divided into numbered sets. These are sets of blocks, not the groups of nodes of
    a collective.

    Parameters
    ----------
    group : ndarray of int, shape (blocks,)
        The number of the set to which each block belongs.
    wanted : ndarray of int, shape (transfers,)
        The number of the set that each transfer carries.
    """

    group: IntArray
    wanted: IntArray

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Return the payload (sets of blocks) of the transfers that `chosen` selects.

        `chosen` has the indices of transfers, or True for each selected transfer.
        """
        return type(self)(self.group, self.wanted[chosen])


@dataclass(frozen=True, eq=False)
class KeptSums(ArrayFields):
    """Payload of a reduction in which nodes keep their sums: one word for each transfer.

    A payload is the description of the data that the transfers of a round carry. A node has a sum
    for each chunk, and adds each word that arrives to the sum of its chunk. A transfer carries a
    copy of the sum that its sender had before the round, or a word that the sender forwards without
    a change: the word of the same chunk that arrived last at some in-port, in any earlier round.

    Parameters
    ----------
    chunk : ndarray of int, shape (transfers,)
        The chunk of each word.
    passed : ndarray of int, shape (transfers,)
        The in-port whose last word is forwarded, -1 to send the sender's sum.
    """

    arrays: ClassVar[dict[str, int]] = {"chunk": 1, "passed": 1}

    chunk: IntArray
    passed: IntArray

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Return the payload (words of sums) of the transfers that `chosen` selects.

        `chosen` has the indices of transfers, or True for each selected transfer.
        """
        return type(self)(self.chunk[chosen], self.passed[chosen])


#: The payload of all transfers of a round.
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
        The sender of each transfer.
    hops : ndarray of int16, shape (transfers, longest path)
        The out-port taken at each node of the path, -1 past the end of the path.
    payload : Everything, Listed, Grouped or KeptSums
        The data of all transfers; by default each carries all that its sender holds.

    Examples
    --------
    In a broadcast on a ring, the root sends all that it holds in both directions, to nodes 1 and 4:

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
        require_type("Payload", self.payload, Payload, how)  # type: ignore[arg-type]

    @classmethod
    def hop(cls, source: IntArray, port: IntArray, payload: Payload) -> Self:
        """Return transfers of one hop each, from nodes by out-ports.

        Parameters
        ----------
        source : ndarray of int, shape (transfers,)
            The node that sends each transfer.
        port : ndarray of int, shape (transfers,)
            The out-port by which each transfer leaves.
        payload : Payload
            The data that the transfers carry.
        """
        return cls(source, np.asarray(port, np.int16)[:, None], payload)

    @classmethod
    def by_step(
        cls, step: IntArray, source: IntArray, port: IntArray, ids: IntArray
    ) -> tuple[Self, ...]:
        """Return the transfers of each step, for transfers that carry one block over one hop.

        Entry k of all arrays describes one transfer: its step, its sender (`source`), its out-port
        and the number of its block (`ids`).
        """
        order = np.argsort(step, kind="stable")
        bounds = np.searchsorted(step[order], np.arange(step.max(initial=-1) + 2))
        chosen = (order[a:b] for a, b in pairwise(bounds))
        return tuple(cls.hop(source[k], port[k], Listed.single(ids[k])) for k in chosen)

    def __len__(self) -> int:
        return len(self.source)

    def of(self, chosen: IntArray | BoolArray) -> Self:
        """Return the transfers that `chosen` selects.

        `chosen` has the indices of transfers, or True for each selected transfer.
        """
        return type(self)(self.source[chosen], self.hops[chosen], self.payload.of(chosen))

    def moved(self, source: IntArray, port: IntArray) -> Self:
        """Return the same transfers with other senders, and with other ports along their paths.

        Transfer k starts at ``source[k]``. Each hop by port p becomes a hop by ``port[p]``.
        """
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
        """Return the sum of link latencies along the path of each transfer, in cycles."""
        each = topology.cycles_of_arc[self.walk(topology)[:, :-1], self.hops]
        cycles: IntArray = np.where(self.hops >= 0, each, 0).sum(1)
        return cycles

    @property
    def listed(self) -> Listed:
        """The payload, for transfers that list their blocks.

        Raises
        ------
        TypeError
            If the payload is of another class.
        """
        if not isinstance(self.payload, Listed):
            raise TypeError(f"Payload must list its blocks, not {type(self.payload).__name__}")
        return self.payload

    def walk(self, topology: Topology) -> IntArray:
        """Return the nodes along each path, shape (transfers, longest path + 1).

        Past the end of a path its last node is repeated, so that column -1 has the receivers.
        """
        nodes = np.empty((len(self), self.hops.shape[1] + 1), np.int32)
        nodes[:, 0] = self.source
        for hop in range(self.hops.shape[1]):
            port, here = self.hops[:, hop], nodes[:, hop]
            nodes[:, hop + 1] = np.where(port >= 0, topology.neighbours[here, port], here)
        return nodes
