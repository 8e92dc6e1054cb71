"""Tables that serve every node alike: of blocks and sums that move, or of sums that are kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..toolchain.public import public_class
from ..toolchain.values import natural, of_type
from ..topology import CayleyGraph, IntArray, IntLike
from .arrays import integer_array
from .base import Schedule
from .transfers import NOTHING, KeptSums, Listed, Payload, Transfers

__all__ = ["SumTable", "Table"]


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Schedule):
    """A translation-invariant schedule: one table serves every node.

    In step ``t`` every node ``u`` sends on port ``g`` a block that belongs to node ``u + g - d``,
    so that it arrives at offset ``d = offset[t, g]`` from there. A block belongs to its origin: it
    is (origin, chunk), or for a total exchange (origin, origin ``+ destination[t, g]``, chunk), or
    for an exchange with some offsets (origin, the number ``destination[t, g]`` of one, chunk).

    In a reduction sums move instead, and a sum belongs to the node that is to complete it, its
    owner. In the first ``reducing`` steps a node sends the partial sum it has gathered for an owner
    ``u + g - d`` so far, its own contribution included, and keeps nothing of it. A sum is complete
    where all contributions have come together; in the end it has to be there at offset 0, or in an
    all-reduce at all offsets. In a reduce-scatter it combines the blocks (any origin, owner,
    chunk).

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
        The offset from its origin to which a block is going, or the number of the offset where a
        collective lists some; a sum goes to its owner.
    reducing : int
        In how many steps, from the first on, partial sums move.

    Examples
    --------
    An all-gather on a ring of three nodes, in one step: a block arrives at offset 1 of its origin
    on port +0, and at offset 2, which is -1, on port -0.

    >>> import numpy as np
    >>> import torusfabric as tf
    >>> table = Table(
    ...     topology=tf.Torus(3),
    ...     collective=tf.Collective("allgather"),
    ...     offset=np.array([[1, 2]]),
    ...     chunk=np.array([[0, 0]]),
    ... )
    >>> next(table.rounds()).payload.ids
    array([0, 0, 1, 1, 2, 2])
    """

    form: ClassVar[str] = "table"
    arrays: ClassVar[dict[str, int]] = {"offset": 2, "chunk": 2}

    topology: CayleyGraph
    offset: IntArray
    chunk: IntArray
    destination: IntArray | None = None
    reducing: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type("Topology", self.topology, CayleyGraph, "a Cayley graph, such as a torus")
        object.__setattr__(self, "reducing", natural("Reducing", self.reducing))
        if self.destination is not None:
            destination = integer_array("Destination", self.destination, 2)
            object.__setattr__(self, "destination", destination)

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
        none = np.zeros(0, np.int64)
        idle = Transfers.hop(none, none, NOTHING)
        for step in range(len(self.offset)):
            ports = np.nonzero(self.offset[step] >= 0)[0]
            if not len(ports):
                yield idle
                continue
            arrival = topology.neighbours[:, ports]
            owner = topology.subtract(arrival, self.offset[step, ports][None, :])
            source, index = np.broadcast_arrays(nodes[:, None], np.arange(len(ports))[None, :])
            if self.collective.reducing:
                payload: Payload = self._sums(step, ports, owner, parts)
            else:
                payload = Listed.single(self._blocks(step, ports, owner).ravel())
            yield Transfers.hop(source.ravel(), ports[index.ravel()], payload)

    def _blocks(self, step: int, ports: IntArray, origin: IntArray) -> IntArray:
        """The block that each node (a row) sends on each port (a column) in use."""
        destination = None
        if self.destination is not None:
            destination = self.goal(origin, self.destination[step, ports][None, :])
        return self.blocks.encode(origin, self.chunk[step, ports][None, :], destination)

    def goal(self, origin: IntArray, destination: IntArray) -> IntArray:
        """What blocks name as their destination, given what the table says, elementwise."""
        if self.collective.local:
            return np.broadcast_arrays(origin, destination)[1]
        return self.topology.add(origin, destination)

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
                name = owner[:, column, None] * self.sums_of_owner + chunk
            origin = topology.add(owner[:, column, None], part[None, :])
            columns.append(blocks.encode(origin, name, owner[:, column, None]))
        for target, chunk, part in moves:
            mine = parts.get((target, chunk), np.array([target]))
            parts[target, chunk] = np.concatenate([mine, part])
        sizes = np.tile([column.shape[1] for column in columns], topology.nodes)
        ids = np.concatenate(columns, axis=1).ravel() if columns else np.empty(0, np.int64)
        return Listed(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), ids)


@public_class
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
    ...     chunk=np.zeros((2, 2), int),
    ...     passed=np.array([[-1, -1], [1, 0]]),
    ... )
    >>> tf.check(table).rounds
    2
    """

    form: ClassVar[str] = "table"
    arrays: ClassVar[dict[str, int]] = {"chunk": 2, "passed": 2}

    topology: CayleyGraph
    chunk: IntArray
    passed: IntArray

    def __post_init__(self) -> None:
        super().__post_init__()
        of_type("Topology", self.topology, CayleyGraph, "a Cayley graph, such as a torus")

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
            each = np.tile(ports, len(nodes))
            sums = KeptSums(chunk[each], passed[each])
            yield Transfers.hop(np.repeat(nodes, len(ports)), each, sums)
