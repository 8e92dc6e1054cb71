"""Blocks, the unit of data, and which node holds which of them before and after a collective.

Blocks are numbered; `Blocks` maps the numbers to what they mean. A message is cut into ``chunks``
equal parts, so a block is (origin, chunk), or (origin, destination, chunk) where every destination
gets a message of its own.

A collective may run in several groups of nodes at once. Origins and destinations are positions in
a group, and a block never leaves its group: which of several blocks of the same number is meant
follows from the node that holds it. In one group of all nodes a position is a node number.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import Groups, IntArray, IntLike

if TYPE_CHECKING:
    from .collective import Collective

__all__ = ["EVERY_NODE", "Blocks"]

#: Stands for all nodes of a group in `Blocks.postcondition`.
EVERY_NODE = -1


@dataclass(frozen=True)
class Blocks:
    """The numbered blocks of a collective, in each of its groups.

    Without a destination, block (origin, chunk) has number ``origin_index * chunks + chunk``; with
    one, ``(origin_index * nodes + destination) * chunks + chunk``. The origin index is the origin's
    position, or 0 where the root is the only origin.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> blocks = parse_collective("alltoall").blocks(Torus(4, 4), chunks=2)
    >>> blocks.count
    512
    >>> block = blocks.encode(origin=3, chunk=1, destination=5)
    >>> blocks.name(block)
    (3, 5, 1)
    >>> int(blocks.precondition(block)), int(blocks.postcondition(block))
    (3, 5)
    """

    collective: "Collective"
    groups: Groups
    chunks: int

    @property
    def nodes(self) -> int:
        """Number of nodes of a group."""
        return self.groups.size

    @property
    def single_origin(self) -> bool:
        """Whether the root is the only origin."""
        return self.collective.single_origin

    @property
    def per_origin(self) -> int:
        """Number of blocks of one origin."""
        return self.chunks * (self.nodes if self.collective.personal else 1)

    @cached_property
    def count(self) -> int:
        """Number of blocks of a group."""
        return self.per_origin * (1 if self.single_origin else self.nodes)

    def encode(
        self, origin: IntLike, chunk: IntLike, destination: IntLike | None = None
    ) -> IntArray:
        """Block numbers, elementwise."""
        index: IntArray = np.asarray(origin)
        if self.single_origin:
            index = np.zeros_like(index)
        if self.collective.personal:
            index = index * self.nodes + np.asarray(destination)
        return index * self.chunks + chunk

    def origin(self, block: IntLike) -> IntArray:
        """Origins of blocks, elementwise."""
        if self.single_origin:
            return np.full_like(np.asarray(block), self.collective.root)
        return np.asarray(block) // self.per_origin

    def destination(self, block: IntLike) -> IntArray:
        """Destinations of personal blocks, elementwise."""
        return np.asarray(block) // self.chunks % self.nodes

    def chunk(self, block: IntLike) -> IntArray:
        """Chunks of blocks, elementwise."""
        return np.asarray(block) % self.chunks

    def precondition(self, block: IntLike) -> IntArray:
        """The position that holds each block before the collective, the only one: its origin."""
        return self.origin(block)

    def initial(self, block: IntArray) -> tuple[IntArray, IntArray]:
        """Which nodes hold blocks before the collective: pairs of node and block, one a group."""
        nodes = self.groups.members[:, self.precondition(block)]
        return nodes.ravel(), np.tile(block, self.groups.count)

    def postcondition(self, block: IntLike) -> IntArray:
        """The position that must hold each block after the collective, or `EVERY_NODE`.

        In a reduction it must hold the complete sum that the block is a contribution to.
        """
        if self.collective.personal:
            return self.destination(block)
        node = self.collective.root if self.collective.to_root else EVERY_NODE
        return np.full_like(np.asarray(block), node)

    def name(self, block: int) -> tuple[int, ...]:
        """A block as in a schedule file: (origin, chunk) or (origin, destination, chunk)."""
        middle = (int(self.destination(block)),) if self.collective.personal else ()
        return (int(self.origin(block)), *middle, int(self.chunk(block)))

    def parse(self, entry: object) -> int:
        """The number of a block written as in a schedule file.

        Raises
        ------
        InputError
            If the entry is no block of this collective.
        """
        size = 3 if self.collective.personal else 2
        if (
            not isinstance(entry, list | tuple)
            or len(entry) != size
            or not all(type(x) is int and x >= 0 for x in entry)
        ):
            form = "[origin, destination, chunk]" if size == 3 else "[origin, chunk]"
            raise InputError(f"Block must be {form}, not {entry!r}")
        origin, destination, chunk = entry[0], entry[1] if size == 3 else 0, entry[-1]
        only_origin = self.collective.root if self.single_origin else None
        if max(origin, destination) >= self.nodes or chunk >= self.chunks:
            raise InputError(
                f"Block must lie within {self.nodes} nodes and {self.chunks} chunks, not {entry!r}"
            )
        if only_origin is not None and origin != only_origin:
            raise InputError(f"Block must have the root {only_origin} as its origin, not {entry!r}")
        return int(self.encode(origin, chunk, destination))
