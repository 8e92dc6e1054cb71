"""The locations of blocks and sums in buffers of GPUs, for the MSCCL writer.

In MSCCL each node is a GPU with an input, an output and a scratch buffer, called ``i``, ``o`` and
``s``. A *location* is a buffer and an index in it, counted in chunks.

Input and output are one memory, except in an all-to-all. Blocks that a node only forwards lie in
its scratch buffer, so that an input is overwritten only by delivered data.
"""

from collections.abc import Iterator

import numpy as np

from ...topology import IntArray
from ..base import Schedule
from .machine import Location

__all__ = ["BufferLocations"]


class BufferLocations:
    """The locations of blocks and sums at all nodes, while a schedule is executed round by round.

    A location is a buffer, ``i`` (input), ``o`` (output) or ``s`` (scratch), and an index in it,
    counted in chunks. A sum is identified by the block number of the contribution of node 0.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.collective, self.blocks = schedule.collective, schedule.blocks
        self.nodes, self.chunks = schedule.topology.nodes, schedule.chunks
        self.in_place = self.collective.kind != "alltoall"
        self.received: set[tuple[int, int]] = set()
        self.partial: dict[tuple[int, int], Location | None] = {}
        self.scratch = 0
        self.slots: list[dict[int, int]] = [{} for _ in range(self.nodes)]

    def buffer_sizes(self) -> tuple[int, int, int]:
        """Return the sizes of the input, output and scratch buffer of a node, in chunks.

        They are the same at all nodes.
        """
        message, all_messages = self.chunks, self.chunks * self.nodes
        source = all_messages if self.collective.personal else message
        target = all_messages if self.collective.from_each else message
        return source, target, self.scratch

    def carried_units(self, ids: IntArray) -> Iterator[tuple[int, bool]]:
        """Yield the blocks or sums that a transfer carries, as pairs (number, complete).

        `ids` are the block numbers of the transfer. `complete` is True for a block and for a sum
        with all contributions.
        """
        if not self.collective.reducing:
            yield from ((int(block), True) for block in ids)
            return
        keys, counts = np.unique(ids % self.blocks.blocks_per_origin, return_counts=True)
        yield from zip(keys.tolist(), (counts == self.nodes).tolist(), strict=True)

    def is_first_arrival(self, node: int, block: int) -> bool:
        """Record the arrival of a block, and return True if the node did not have it.

        In a reduction, the result is always True.
        """
        if self.collective.reducing:
            return True
        new = node != int(self.blocks.origin(block)) and (node, block) not in self.received
        self.received.add((node, block))
        return new

    def record_departure(self, node: int, block: int, *, complete: bool) -> Location:
        """Return the location from which a node sends a block or sum.

        A location is a buffer of the node and an index in it. `complete` is False for a partial
        sum, which is then gone from the node.
        """
        if not self.collective.reducing:
            return self._block_location(node, block)
        location = self.partial.get((node, block), ("i", block))
        assert location is not None, "a checked schedule sends what is there"
        if not complete:
            self.partial[node, block] = None
        return location

    def record_arrival(
        self, node: int, block: int, *, complete: bool
    ) -> tuple[Location, Location | None]:
        """Return two locations for a block or sum that arrives at a node.

        A location is a buffer of the node and an index in it. The first is the location at which
        the block or sum is stored. The second is that of the sum to which it is added, or None if
        it is not added. `complete` is False for a partial sum; only a partial sum is added.
        """
        if not self.collective.reducing:
            return self._block_location(node, block), None
        before = self.partial.get((node, block), ("i", block))
        after = self._sum_location(node, block)
        self.partial[node, block] = after
        return after, None if complete else before

    def local_copies(self) -> Iterator[tuple[int, tuple[Location, Location]]]:
        """Yield (node, (source, target)) for the blocks that a node of an all-to-all copies to
        its output.
        """
        if self.in_place:
            return
        for node in range(self.nodes):
            for chunk in range(self.chunks):
                offset = node * self.chunks + chunk
                yield node, (("i", offset), ("o", offset))

    def _sum_location(self, node: int, block: int) -> Location:
        """Return the buffer and index at which a node accumulates the sum with key `block`."""
        collective = self.collective
        mine = collective.to_all or node == (
            int(self.blocks.destination(block)) if collective.personal else collective.root
        )
        return self._reserve_location("i" if mine else "s", block)

    def _block_location(self, node: int, block: int) -> Location:
        """Return the buffer and index at which a node holds a block, or will store it."""
        collective = self.collective
        origin, chunk = int(self.blocks.origin(block)), int(self.blocks.chunk(block))
        if not collective.personal:
            offset = (origin if collective.from_each else 0) * self.chunks + chunk
            passing = collective.to_root and node not in (collective.root, origin)
            return self._reserve_location("s" if passing else "o", offset)
        destination = int(self.blocks.destination(block))
        offset = destination * self.chunks + chunk
        if collective.single_origin:
            return self._reserve_location("i" if node in (origin, destination) else "s", offset)
        if node == origin:
            return "i", offset
        if node == destination:
            return "o", origin * self.chunks + chunk
        slots = self.slots[node]
        return self._reserve_location("s", slots.setdefault(block, len(slots)))

    def _reserve_location(self, buffer: str, offset: int) -> Location:
        """Return the location at index `offset` of a buffer; enlarge a scratch buffer if needed."""
        if buffer == "s":
            self.scratch = max(self.scratch, offset + 1)
        return buffer, offset
