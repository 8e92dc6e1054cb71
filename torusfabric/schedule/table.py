"""Tables: schedules in which every node does the same, relative to its own position.

A `Table` moves blocks and sums. In a `SumTable`, nodes keep their sums and send copies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from ..toolchain.public import public_class
from ..toolchain.values import parse_non_negative_int, require_type
from ..topology import CayleyGraph, IntArray, IntLike
from .arrays import integer_array
from .base import Schedule
from .transfers import NOTHING, KeptSums, Listed, Payload, Transfers

__all__ = ["SumTable", "Table"]


@public_class
@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Schedule):
    """A translation-invariant schedule: one table serves every node.

    Let g be the generator of a port. In step t, every node u sends by this port one block, which
    arrives at node v = u + g. The entry d = ``offset[t, port]`` is the offset of v from the node to
    which the block belongs, so the block belongs to node v - d. A block belongs to its origin:

    - all-gather: (origin, chunk)
    - all-to-all: (origin, origin + ``destination[t, port]``, chunk)
    - exchange with listed offsets: (origin, number of the offset = ``destination[t, port]``, chunk)

    In a reduction, sums move instead of blocks. A sum belongs to its *owner*, the node that
    completes it. In the first `reducing` steps, a node sends its partial sum for this owner. The
    partial sum includes the node's own contribution, and the node keeps nothing. A sum is complete
    when it has all N contributions. At the end it must be at offset 0, or in an all-reduce at all
    offsets. In a reduce-scatter the sum combines the blocks (any origin, owner, chunk).

    In an all-reduce each node n owns M chunks of the message, from ``n * M`` to ``n * M + M - 1``,
    and ``chunk[t, port]`` counts within these. The sum combines the blocks (any origin, c) with
    ``c = owner * M + chunk[t, port]``. After the first `reducing` steps, an all-reduce is an
    all-gather of complete sums; `rounds` lists each of them as its N contributions.

    Parameters
    ----------
    offset : ndarray of int, shape (steps, ports)
        The offset d of the arrival of a block or sum from the node to which it belongs, -1 for an
        idle port.
    chunk : ndarray of int, shape (steps, ports)
        The chunk of the block or sum.
    destination : ndarray of int, shape (steps, ports), or None
        The offset of the destination of a block from its origin, or the number of the offset in an
        exchange with listed offsets. None if blocks have no destination. A sum goes to its owner.
    reducing : int
        Number of steps, from the first on, in which partial sums move.

    Examples
    --------
    An all-gather on a ring of three nodes, in one step. By port +0 a block arrives at offset 1 from
    its origin, and by port -0 at offset 2, which is -1 modulo 3:

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
        require_type("Topology", self.topology, CayleyGraph, "a Cayley graph, such as a torus")
        object.__setattr__(self, "reducing", parse_non_negative_int("Reducing", self.reducing))
        if self.destination is not None:
            destination = integer_array("Destination", self.destination, 2)
            object.__setattr__(self, "destination", destination)

    @property
    @override
    def steps(self) -> int:
        return len(self.offset)

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each step: one block, or one sum, on each arc in use."""
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
                payload: Payload = self._sent_sums(step, ports, owner, parts)
            else:
                payload = Listed.single(self._sent_blocks(step, ports, owner).ravel())
            yield Transfers.hop(source.ravel(), ports[index.ravel()], payload)

    def _sent_blocks(self, step: int, ports: IntArray, origin: IntArray) -> IntArray:
        """Return the number of the block that each node (row) sends by each port in use (column).

        Parameters
        ----------
        ports : ndarray of int
            The ports in use in this step.
        origin : ndarray of int, shape (nodes, ports in use)
            The origin of each block.
        """
        destination = None
        if self.destination is not None:
            destination = self.goal(origin, self.destination[step, ports][None, :])
        return self.blocks.encode(origin, self.chunk[step, ports][None, :], destination)

    def goal(self, origin: IntArray, destination: IntArray) -> IntArray:
        """Return the destination nodes of blocks, elementwise.

        The array `origin` has the origins of the blocks. The array `destination` has entries of the
        field with this name: the offsets from origin to destination, which are added to the
        origins. In an exchange with listed offsets, these entries are numbers of offsets, and are
        returned unchanged.
        """
        if self.collective.local:
            return np.broadcast_arrays(origin, destination)[1]
        return self.topology.add(origin, destination)

    def _sent_sums(
        self,
        step: int,
        ports: IntArray,
        owner: IntArray,
        parts: dict[tuple[int, int], IntArray],
    ) -> Listed:
        """Return the contributions in all sums that nodes send in a step, and update `parts`.

        A node sends a partial or complete sum by each of `ports`, the ports in use. `owner`, shape
        (nodes, ports in use), has the owner of each sum, the node that completes it. All nodes do
        the same, so ``parts[offset, chunk]`` lists the contributions in the partial sum at any node
        at this offset from the owner, as offsets from the owner. A missing key means the node's own
        contribution alone.
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

    A node has one sum for each chunk, at first its own contribution. Each word that arrives is
    added to the sum. In a step, a node sends one word by each port in use. The word is a copy of
    its sum as before the step, or it is forwarded: the unchanged word of this chunk that arrived
    last by an in-port.

    Parameters
    ----------
    chunk : ndarray of int, shape (steps, ports)
        The chunk of the word that a node sends by each port, -1 for an idle port.
    passed : ndarray of int, shape (steps, ports)
        The in-port whose last word is forwarded, -1 to send the node's sum.

    Examples
    --------
    A ring of five nodes. In step 1 nodes exchange their words with both neighbours; in step 2 they
    forward the words that arrived in step 1:

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
        require_type("Topology", self.topology, CayleyGraph, "a Cayley graph, such as a torus")

    @property
    @override
    def steps(self) -> int:
        return len(self.chunk)

    @property
    @override
    def in_shares(self) -> bool:
        """False, because every node completes the sums of all chunks, not only of one share."""
        return False

    @override
    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each step: one word on each arc in use."""
        nodes = np.arange(self.topology.nodes)
        for chunk, passed in zip(self.chunk, self.passed, strict=True):
            ports = np.flatnonzero(chunk >= 0)
            each = np.tile(ports, len(nodes))
            sums = KeptSums(chunk[each], passed[each])
            yield Transfers.hop(np.repeat(nodes, len(ports)), each, sums)
