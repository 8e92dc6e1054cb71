"""Schedules: the narrow waist between algorithms and everything else.

A `Schedule` says, as a plain immutable value, which message travels along which path in which
round. There are three ways to write one: a `Pattern` (oblivious forwarding), a `Table`
(translation-invariant) and `Rounds` (explicit paths). Each lists its transfers round by round as
arrays; that view is all that the checker, the cost model and the schedule file see.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from typing_extensions import Self, override

from ..collective import Blocks, Collective
from ..topology import IntArray, IntLike, Topology
from .model import Duplex, Switching

__all__ = ["ALL", "Everything", "Grouped", "Listed", "Pattern", "Rounds", "Schedule", "Table",
           "Transfers"]  # fmt: skip


@dataclass(frozen=True)
class Everything:
    """Payload of transfers that carry all their sender held before the round."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Payload of transfers that carry listed blocks.

    Transfer ``k`` carries ``ids[indptr[k]:indptr[k + 1]]``, in this order.

    Parameters
    ----------
    indptr : ndarray of int, shape (transfers + 1,)
    ids : ndarray of int, shape (indptr[-1],)
        Block numbers.
    """

    indptr: IntArray
    ids: IntArray

    @classmethod
    def single(cls, ids: IntArray) -> Self:
        """One block a transfer."""
        return cls(np.arange(len(ids) + 1), np.asarray(ids))


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


#: What the transfers of a round carry.
Payload: TypeAlias = Everything | Listed | Grouped

ALL = Everything()


@dataclass(frozen=True, eq=False)
class Transfers:
    """The transfers of one round.

    Parameters
    ----------
    source : ndarray of int, shape (transfers,)
        The sender of each.
    hops : ndarray of int8, shape (transfers, longest path)
        The out-port taken at each node of the path, -1 past its end.
    payload : Everything, Listed or Grouped
    """

    source: IntArray
    hops: IntArray
    payload: Payload = ALL

    def __len__(self) -> int:
        return len(self.source)

    @property
    def lengths(self) -> IntArray:
        """Number of hops of each transfer."""
        lengths: IntArray = (self.hops >= 0).sum(axis=1)
        return lengths

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedule(ABC):
    """What all schedules have in common, however they are written.

    Parameters
    ----------
    topology : Topology
    collective : Collective
    algorithm : str
        Name of the algorithm that made it.
    switching : Switching
        How a message passes the nodes on its way; the word itself will do.
    ports : int
        How many messages a node may send, and receive, in a round.
    chunks : int
        Into how many blocks a message is cut.
    duplex : Duplex
        How many messages a link carries at once; the word itself will do.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = tf.plan("4x4", "allgather", algorithm="hamiltonian")
    >>> schedule.form, schedule.steps, schedule.chunks
    ('pattern', 8, 2)
    """

    form: ClassVar[str]

    topology: Topology
    collective: Collective
    algorithm: str
    switching: Switching
    ports: int
    chunks: int = 1
    duplex: Duplex = Duplex.FULL

    def __post_init__(self) -> None:
        object.__setattr__(self, "switching", Switching(self.switching))
        object.__setattr__(self, "duplex", Duplex(self.duplex))

    @property
    @abstractmethod
    def round_count(self) -> int:
        """Number of rounds, or steps."""

    if TYPE_CHECKING:
        # A field of a `Pattern`, which a property here would hide; a property of the others.
        @property
        def steps(self) -> int:
            """The same."""

    @abstractmethod
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round, in order."""

    @property
    def blocks(self) -> Blocks:
        """The numbered blocks."""
        return self.collective.blocks(self.topology, self.chunks)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the schedule to a file, compressed if its name ends in ``.gz``.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        from .file import save

        save(self, path)

    @property
    def digest(self) -> str:
        """A name for the content: hexadecimal SHA-256 over all fields."""
        digest = hashlib.sha256(self.form.encode())
        for item in fields(self):
            _update(digest, getattr(self, item.name))
        return digest.hexdigest()


def _update(digest: "hashlib._Hash", value: Any) -> None:
    """Feed a field of a schedule into a digest."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.shape}".encode())
        digest.update(np.ascontiguousarray(value, dtype="<i8").data)
    elif isinstance(value, Enum):
        _update(digest, value.value)
    elif isinstance(value, tuple | list):
        for item in value:
            _update(digest, item)
    elif isinstance(value, Topology | Collective):
        digest.update(repr(value.to_json()).encode())
    elif hasattr(value, "__dataclass_fields__"):
        for item in fields(value):
            _update(digest, getattr(value, item.name))
    else:
        digest.update(repr(value).encode())


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern(Schedule):
    """Oblivious forwarding: every node does the same in every step.

    In step 1 a node sends chunks of its own message; in each later step every out-port carries what
    the in-port that feeds it received in the step before.

    Parameters
    ----------
    steps : int
    feed : ndarray of int8, shape (nodes, ports)
        The in-port that feeds each out-port, -1 for none.
    inject : ndarray of int, shape (nodes, ports)
        The chunk that each out-port carries in step 1, -1 for none.

    Examples
    --------
    An all-gather on a ring: what comes in on one side goes out on the other.

    >>> from torusfabric.collective import Collective
    >>> from torusfabric.topology import Torus
    >>> pattern = Pattern(
    ...     topology=Torus(5),
    ...     collective=Collective("allgather"),
    ...     algorithm="ring",
    ...     switching=Switching.STORE_AND_FORWARD,
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
    @override
    def round_count(self) -> int:
        return self.steps

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step: one block on each arc in use."""
        topology, blocks = self.topology, self.blocks
        nodes = np.arange(topology.nodes)[:, None]
        carried = np.where(self.inject >= 0, blocks.encode(nodes, self.inject), -1)
        upstream = topology.neighbours[nodes, self.feed], topology.opposite[self.feed]
        for _ in range(self.steps):
            source, port = np.nonzero(carried >= 0)
            yield Transfers(
                source, port[:, None].astype(np.int8), Listed.single(carried[source, port])
            )
            carried = np.where(self.feed >= 0, carried[upstream], -1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Schedule):
    """A translation-invariant schedule: one table serves every node.

    In step ``t`` every node ``u`` sends on port ``g`` a block that belongs to node ``u + g - d``,
    so that it arrives at offset ``d = offset[t, g]`` from there. A block belongs to its origin: it
    is (origin, chunk), or for a total exchange (origin, origin ``+ destination[t, g]``, chunk).

    In a reduction sums move instead, and a sum belongs to the node that is to complete it, its
    owner. In the first ``reducing`` steps a node sends the partial sum it has gathered for an owner
    ``u + g - d`` so far, its own contribution included, and keeps nothing of it; at offset 0 the
    sum is complete. In a reduce-scatter the sum combines the blocks (any origin, owner, chunk).
    An all-reduce cuts the message into as many parts as there are nodes, node ``n`` owning chunks
    ``n * M`` to ``n * M + M - 1``, and ``chunk[t, g]`` counts within a part: (any origin,
    owner ``* M + chunk[t, g]``). After the first ``reducing`` steps an all-reduce is an all-gather
    of complete sums, each given as its N contributions.

    Parameters
    ----------
    offset : ndarray of int, shape (steps, ports)
        The offset from the node it belongs to at which a block or sum arrives, -1 for an idle port.
    chunk : ndarray of int, shape (steps, ports)
        Its chunk.
    destination : ndarray of int, shape (steps, ports), or None
        The offset from its origin to which a block is going; a sum goes to its owner.
    reducing : int
        In how many steps, from the first on, partial sums move.

    Examples
    --------
    An all-gather on a ring of three nodes, in one step: a block arrives at offset 1 of its origin
    on port +0, and at offset 2, which is -1, on port -0.

    >>> from torusfabric.collective import Collective
    >>> from torusfabric.topology import Torus
    >>> table = Table(
    ...     topology=Torus(3),
    ...     collective=Collective("allgather"),
    ...     algorithm="ring",
    ...     switching=Switching.STORE_AND_FORWARD,
    ...     ports=2,
    ...     offset=np.array([[1, 2]]),
    ...     chunk=np.array([[0, 0]]),
    ... )
    >>> next(table.rounds()).payload.ids
    array([0, 0, 1, 1, 2, 2])
    """

    form: ClassVar[str] = "table"

    offset: IntArray
    chunk: IntArray
    destination: IntArray | None = None
    reducing: int = 0

    @property
    @override
    def round_count(self) -> int:
        return len(self.offset)

    @property
    @override
    def steps(self) -> int:
        return len(self.offset)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each step: one block, or one sum, on each arc in use."""
        topology = self.topology
        nodes = np.arange(topology.nodes)
        parts: dict[tuple[int, int], IntArray] = {}
        for step in range(len(self.offset)):
            ports = np.nonzero(self.offset[step] >= 0)[0]
            arrival = topology.neighbours[:, ports]
            owner = topology.subtract(arrival, self.offset[step, ports][None, :])
            source, index = np.broadcast_arrays(nodes[:, None], np.arange(len(ports))[None, :])
            if self.collective.reducing:
                payload: Payload = self._sums(step, ports, owner, parts)
            else:
                payload = Listed.single(self._blocks(step, ports, owner).ravel())
            yield Transfers(source.ravel(), ports[index.ravel()][:, None].astype(np.int8), payload)

    def _blocks(self, step: int, ports: IntArray, origin: IntArray) -> IntArray:
        """The block that each node (a row) sends on each port (a column) in use."""
        destination = None
        if self.destination is not None:
            destination = self.topology.add(origin, self.destination[step, ports][None, :])
        return self.blocks.encode(origin, self.chunk[step, ports][None, :], destination)

    def _sums(
        self,
        step: int,
        ports: IntArray,
        owner: IntArray,
        parts: dict[tuple[int, int], IntArray],
    ) -> Listed:
        """The contributions in the sums that nodes send, and the effect on later steps.

        ``parts[offset, chunk]`` lists, relative to the owner, where the contributions come from
        that a partial sum at this offset combines, if there are others than the node's own.
        """
        topology, blocks = self.topology, self.blocks
        complete = np.arange(topology.nodes)
        moves, columns = [], []
        for column, port in enumerate(ports):
            target, chunk = int(self.offset[step, port]), int(self.chunk[step, port])
            sender = int(topology.subtract(target, topology.generators[port]))
            part = complete
            if step < self.reducing:
                part = parts.pop((sender, chunk), np.array([sender]))
                moves.append((target, chunk, part))
            name: IntLike = chunk
            if not self.collective.personal:
                name = owner[:, column, None] * (self.chunks // topology.nodes) + chunk
            origin = topology.add(owner[:, column, None], part[None, :])
            columns.append(blocks.encode(origin, name, owner[:, column, None]))
        for target, chunk, part in moves:
            mine = parts.get((target, chunk), np.array([target]))
            parts[target, chunk] = np.concatenate([mine, part])
        sizes = np.tile([column.shape[1] for column in columns], topology.nodes)
        ids = np.concatenate(columns, axis=1).ravel() if columns else np.empty(0, np.int64)
        return Listed(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), ids)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rounds(Schedule):
    """Explicit rounds of paths with payloads.

    Parameters
    ----------
    transfers : tuple of Transfers
        One entry a round.

    Examples
    --------
    A broadcast from node 0 of a ring, in one round with circuits of one and two hops.

    >>> from torusfabric.collective import Collective
    >>> from torusfabric.topology import Torus
    >>> rounds = Rounds(
    ...     topology=Torus(4),
    ...     collective=Collective("broadcast", 0),
    ...     algorithm="by hand",
    ...     switching=Switching.CIRCUIT,
    ...     ports=2,
    ...     transfers=(Transfers(np.array([0, 0]), np.array([[0, -1], [1, 1]])),),
    ... )
    >>> rounds.transfers[0].walk(rounds.topology).tolist()
    [[0, 1, 1], [0, 3, 2]]
    """

    form: ClassVar[str] = "rounds"

    transfers: tuple[Transfers, ...]

    @property
    @override
    def round_count(self) -> int:
        return len(self.transfers)

    @property
    @override
    def steps(self) -> int:
        return len(self.transfers)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """The transfers of each round."""
        return iter(self.transfers)
