"""The layout of a node's memories, as a host addresses them.

A node has a send memory and a receive memory. Each consists of parts of equal size: a message each,
or, where a message is cut into shares of which each node completes one, a share each.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..topology import IntArray, IntLike
from .blocks import Blocks

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """The layout of a node's memories, the same at every node.

    Block ``k`` of a message, or of a share, is the ``k``-th of its part. A send memory has a part
    for each destination where destinations get messages of their own, else one; a receive memory
    has a part for each origin where a message of each is delivered, else one. In an all-reduce
    whose message is cut into as many shares as there are nodes, both have a part for each share.

    A message may be of any number of flits. All blocks have as many as the longest needs; what the
    last blocks have beyond the end of the message is carried along, and the host never sees it.

    Parameters
    ----------
    shared : bool
        Whether a message that is reduced to a root is in shares too, as in an all-reduce.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> layout = parse_collective("scatter").layout(Torus(4, 4), chunks=2)
    >>> layout.send_parts, layout.recv_parts, layout.part_chunks
    (16, 1, 2)
    >>> layout.blocks.name(layout.received_block(5, 1))
    (0, 5, 1)
    >>> layout.block_flits(7), layout.part_flits(7), layout.send_words(7)
    (4, 7, 112)
    """

    blocks: Blocks
    shared: bool = False

    @property
    def in_shares(self) -> bool:
        """Whether a message is cut into shares, each of which another node completes."""
        collective = self.blocks.collective
        whole = self.blocks.chunks % self.blocks.nodes == 0
        return collective.reducing and (collective.to_all or self.shared) and whole

    @property
    def part_chunks(self) -> int:
        """Chunks of a part."""
        return self.blocks.chunks // (self.blocks.nodes if self.in_shares else 1)

    @property
    def send_parts(self) -> int:
        """Number of parts of a send memory."""
        return self.blocks.nodes if self.in_shares or self.blocks.collective.personal else 1

    @property
    def recv_parts(self) -> int:
        """Number of parts of a receive memory."""
        return self.blocks.nodes if self.in_shares or self.blocks.collective.from_each else 1

    @property
    def send_blocks(self) -> int:
        """Number of blocks in a send memory."""
        return self.part_chunks * self.send_parts

    @property
    def recv_blocks(self) -> int:
        """Number of blocks in a receive memory."""
        return self.part_chunks * self.recv_parts

    def block_flits(self, flits: int) -> int:
        """Flits of a block, given those of a message."""
        return -(-flits // self.blocks.chunks)

    def part_flits(self, flits: int) -> int:
        """Words of a part: those of a message, or of all blocks of a share."""
        return self.part_chunks * self.block_flits(flits) if self.in_shares else flits

    def send_words(self, flits: int) -> int:
        """Words that a node sends, given the flits of a message."""
        return flits if self.in_shares else self.send_parts * flits

    def recv_words(self, flits: int) -> int:
        """Words that a node receives, given the flits of a message."""
        return flits if self.in_shares else self.recv_parts * flits

    def is_padded(self, flits: int) -> bool:
        """Whether blocks have flits beyond the end of a message."""
        return flits % self.blocks.chunks > 0

    @property
    def receivers(self) -> IntArray:
        """The nodes at which anything is delivered."""
        collective, groups = self.blocks.collective, self.blocks.groups
        members = groups.members[:, collective.root] if collective.to_root else groups.members
        return np.sort(members, axis=None)

    def with_root(self, root: int) -> "Layout":
        """The layout of the same collective from, or to, another root."""
        collective = replace(self.blocks.collective, root=root)
        return replace(self, blocks=replace(self.blocks, collective=collective))

    def received_block(self, nodes: IntLike, index: IntLike) -> IntArray:
        """The block that lies at an index of the receive memory of nodes, elementwise.

        In a reduction this is the contribution of position 0 to the sum that lies there.

        Parameters
        ----------
        index : array of int
            From 0 to `recv_blocks` - 1.
        """
        nodes, index = np.broadcast_arrays(nodes, index)
        origin, chunk = np.divmod(index, self.blocks.chunks)
        return self.blocks.encode(origin, chunk, self.blocks.groups.position[nodes])
