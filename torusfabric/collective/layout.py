"""`MemoryLayout`: the layout of the send memory and the receive memory of a node.

Both memories consist of *parts* of equal size. A part is one message, or one share where the
collective cuts a message into shares and each node completes one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..topology import IntArray, IntLike
from .blocks import Blocks
from .offsets import NO_NODE

__all__ = ["MemoryLayout"]


@dataclass(frozen=True)
class MemoryLayout:
    """The layout of the send memory and the receive memory of a node, the same at every node.

    A memory is a sequence of parts, and a part is a sequence of `part_chunks` blocks::

        memory  | part 0              | part 1              | ..
                | block 0 | block 1.. | block 0 | block 1.. | ..

    The send memory has one part for each destination if each destination gets its own message, else
    a single part. The receive memory has one part for each origin if the messages of several
    origins are delivered, else a single part. In an exchange or halo, offsets stand for
    destinations and origins. In an allreduce *in shares*, the number of chunks is a multiple of the
    number N of nodes, and each node completes one of N shares. There both memories have one part
    for each share.

    A message may have any number L of flits. All blocks have the same length, L / C rounded up, so
    the last blocks may extend beyond the end of the message. Routers carry these padding flits; the
    host never sees them.

    Parameters
    ----------
    shared : bool, optional
        True to cut the message of a reduction into N shares if C is a multiple of N. Default: only
        in an allreduce.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = tf.parse_collective("scatter").layout(tf.Torus(4, 4), chunks=2)
    >>> layout.send_parts, layout.recv_parts, layout.part_chunks
    (16, 1, 2)
    >>> layout.blocks.block_entry(layout.received_block(5, 1))
    (0, 5, 1)
    >>> layout.block_flits(7), layout.part_flits(7), layout.send_words(7)
    (4, 7, 112)
    """

    blocks: Blocks
    shared: bool | None = None

    @property
    def in_shares(self) -> bool:
        """True if a message is cut into N shares, each of which a different node completes."""
        collective, whole = self.blocks.collective, self.blocks.chunks % self.blocks.group_size == 0
        shared = collective.to_all if self.shared is None else self.shared
        return collective.reducing and shared and whole

    @property
    def part_chunks(self) -> int:
        """Number of chunks of a part: those of a message or of a share. Each chunk is one block."""
        return self.blocks.chunks // (self.blocks.group_size if self.in_shares else 1)

    @property
    def send_parts(self) -> int:
        """Number of parts of a send memory: one for each message that a node sends, or N shares."""
        return self.blocks.group_size if self.in_shares else self.blocks.messages_per_origin

    @property
    def recv_parts(self) -> int:
        """Number of parts of a receive memory: one for each message received, or N shares."""
        return self.blocks.group_size if self.in_shares else self.blocks.messages_per_receiver

    @property
    def send_blocks(self) -> int:
        """Number of blocks in a send memory."""
        return self.part_chunks * self.send_parts

    @property
    def recv_blocks(self) -> int:
        """Number of blocks in a receive memory."""
        return self.part_chunks * self.recv_parts

    def block_flits(self, flits: int) -> int:
        """Return the flits of a block, for messages of `flits` flits.

        The number of flits is divided by the number of chunks, and rounded up.
        """
        return -(-flits // self.blocks.chunks)

    def part_flits(self, flits: int) -> int:
        """Return the flits of a part, for messages of `flits` flits.

        A part that is a message has `flits` flits. A share is counted as whole blocks, padding
        included.
        """
        return self.part_chunks * self.block_flits(flits) if self.in_shares else flits

    def send_words(self, flits: int) -> int:
        """Return the number of words that the host writes at a node, for messages of `flits` flits.

        The messages to send, or the shares of a message, follow one another without the padding of
        blocks.
        """
        return flits if self.in_shares else self.send_parts * flits

    def recv_words(self, flits: int) -> int:
        """Return the number of words that the host reads at a node, for messages of `flits` flits.

        Received messages, or shares of a sum, follow one another without the padding of blocks.
        """
        return flits if self.in_shares else self.recv_parts * flits

    def is_padded(self, flits: int) -> bool:
        """Return True if the last blocks extend beyond the end of a message of `flits` flits."""
        return flits % self.blocks.chunks > 0

    @property
    def receiving_nodes(self) -> IntArray:
        """The nodes to which the collective delivers data, ascending."""
        collective, groups = self.blocks.collective, self.blocks.groups
        members = groups.members[:, collective.root] if collective.to_root else groups.members
        return np.unique(members)

    def with_root(self, root: int) -> MemoryLayout:
        """Return the layout of the same collective with another root."""
        collective = replace(self.blocks.collective, root=root)
        return replace(self, blocks=replace(self.blocks, collective=collective))

    def received_block(self, nodes: IntLike, index: IntLike) -> IntArray:
        """Return the number of the block at an index of the receive memory of each node.

        Works elementwise. The result is -1 where no block is delivered. In a reduction a sum lies
        at the index; the result is then the number of the contribution of the first node to this
        sum.

        Parameters
        ----------
        nodes : int or array of int
            Numbers of the nodes whose receive memories are meant.
        index : int or array of int
            Index of a block in the receive memory, from 0 to `recv_blocks` - 1.
        """
        nodes, index = np.broadcast_arrays(nodes, index)
        part, chunk = np.divmod(index, self.blocks.chunks)
        position = self.blocks.groups.position_of_node[nodes]
        origin = self.blocks.origin_of_part(position, part)
        goal = part if self.blocks.collective.local else position
        group = np.maximum(self.blocks.groups.group_of_node[nodes], 0)
        found = self.blocks.encode(np.maximum(origin, 0), chunk, goal, group)
        return np.where((origin == NO_NODE) | ~self.blocks.has_block(found), -1, found)
