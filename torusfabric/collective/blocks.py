"""`Blocks`: the numbered blocks of a collective.

A *block* is the unit of data. A message is cut into C = ``chunks`` equal parts, so a block is a
pair (origin, chunk). Where each destination gets a message of its own, a block is a triple (origin,
destination, chunk). Blocks are numbered; `Blocks` translates between numbers and pairs or triples.

A block of sub-tori never leaves its group, so block b exists once in each group, and the node that
holds a copy tells to which group the copy belongs. The blocks of each listed group have numbers of
their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import BoolArray, Groups, IntArray, IntLike
from .definitions import DeliveryTarget
from .offsets import NO_NODE

if TYPE_CHECKING:
    from .collective import Collective

__all__ = ["EVERY_NODE", "Blocks"]

#: In `Blocks.postcondition`: the block must reach every node of its group.
EVERY_NODE = -1


@dataclass(frozen=True)
class Blocks:
    """The numbered blocks of a collective.

    A block is one chunk of one message. Origin and destination are *positions*: numbers of nodes
    within their group. The number of a block, for N nodes in a group, C chunks of a message, and D
    messages of an origin (`messages_per_origin`)::

        (origin, chunk)               (origin_index * G + group) * C + chunk
        (origin, destination, chunk)  ((origin_index * G + group) * D + destination) * C + chunk

    The origin index is the origin's position, or 0 if the root is the only origin. D is N, except
    in an exchange. There the *number of the offset* stands for the destination, since two offsets
    may lead to the same node. G is `numbered_groups`: the number of groups whose nodes a user
    lists. Sub-tori all have the same block numbers, so there G is 1 and the group is 0.

    Listed groups may have different sizes. N is then the size of the largest group, and the blocks
    of positions that a smaller group lacks do not exist, see `is_in_group`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> blocks = tf.parse_collective("alltoall").blocks(tf.Torus(4, 4), chunks=2)
    >>> blocks.n_blocks
    512
    >>> block = blocks.encode(origin=3, chunk=1, destination=5)
    >>> blocks.block_entry(block)
    (3, 5, 1)
    >>> int(blocks.precondition(block)), int(blocks.postcondition(block))
    (3, 5)
    """

    collective: Collective
    groups: Groups
    chunks: int

    @property
    def group_size(self) -> int:
        """Number N of nodes of a group, or of the largest one."""
        return self.groups.group_size

    @property
    def single_origin(self) -> bool:
        """True if all blocks have the same origin, the root: broadcast, scatter."""
        return self.collective.single_origin

    @property
    def numbered_groups(self) -> int:
        """Number G of groups whose blocks have numbers of their own; 1 for groups of sub-tori."""
        return max(1, len(self.groups.listed))

    @property
    def copies_per_block(self) -> int:
        """Number of nodes at which each block number starts: one for each sub-torus, else 1."""
        return self.groups.n_groups // self.numbered_groups

    def copy_at(self, node: int) -> int:
        """Return the number of the copy of blocks that nodes hold beside `node`; 0 if there is one.

        It is the number of the sub-torus of the node.
        """
        return int(self.groups.group_of_node[node]) if self.copies_per_block > 1 else 0

    @property
    def blocks_per_node(self) -> int:
        """Number of blocks of one node: C times D, all its messages cut into chunks."""
        return self.chunks * self.messages_per_origin

    @property
    def blocks_per_origin(self) -> int:
        """Number of blocks with the same origin position: C times D times G.

        In a reduction it is the number of sums. Contributions to the same sum have equal block
        numbers modulo this number.
        """
        return self.blocks_per_node * self.numbered_groups

    @cached_property
    def messages_per_origin(self) -> int:
        """Number of messages that an origin sends: one per destination or offset, or a single
        one.
        """
        if not self.collective.personal:
            return 1
        return self.target_positions.shape[1] if self.collective.local else self.group_size

    @cached_property
    def target_positions(self) -> IntArray:
        """The receivers in an exchange or halo, shape (positions, offsets).

        A position is the number of a node within its group. Entry [v, k] is the position to which
        position v sends by offset k; see `Collective.targets`.
        """
        return self.collective.targets(self.groups.topology)

    @cached_property
    def _origin_positions(self) -> IntArray:
        """The senders in an exchange or halo, shape (positions, offsets).

        A position is the number of a node within its group. Entry [v, k] is the position that sends
        to position v by offset k, or `NO_NODE` if none does. The table is the inverse of
        `target_positions`.
        """
        origins = np.full_like(self.target_positions, NO_NODE)
        if self.collective.traffic is not None:
            source, number, destination = self.collective.traffic.delivery_table.T
            origins[destination, number] = source
            return origins
        position, offset = np.nonzero(self.target_positions >= 0)
        origins[self.target_positions[position, offset], offset] = position
        return origins

    @cached_property
    def messages_per_receiver(self) -> int:
        """Number of messages that a node receives: one per origin or offset, or a single one."""
        if not self.collective.from_each:
            return 1
        return self.target_positions.shape[1] if self.collective.local else self.group_size

    def origin_of_part(self, position: IntLike, part: IntLike) -> IntArray:
        """Return the origin of the data in a part of the receive memory of a node, elementwise.

        The receive memory has a part for each message that is delivered. `position` is the number
        of the node within its group, and so is the result. In an exchange or halo, `part` is the
        number of the offset, and the result is `NO_NODE` if no node sends by this offset. In other
        collectives the result is `part`, because parts are ordered by origin; a single part has
        number 0, whatever the root.
        """
        if not self.collective.local:
            return np.broadcast_arrays(position, part)[1]
        origins: IntArray = self._origin_positions[position, part]
        return origins

    @cached_property
    def n_blocks(self) -> int:
        """Number of different block numbers."""
        return self.blocks_per_origin * (1 if self.single_origin else self.group_size)

    def encode(
        self,
        origin: IntLike,
        chunk: IntLike,
        destination: IntLike | None = None,
        group: IntLike = 0,
    ) -> IntArray:
        """Return the numbers of blocks, given origin, chunk and destination, elementwise.

        `destination` is needed where each destination gets a message of its own. In an exchange it
        is the number of the offset. `group` is the number of a listed group; groups of sub-tori
        have the same block numbers, so it is ignored there.
        """
        index: IntArray = np.asarray(origin)
        if self.single_origin:
            index = np.zeros_like(index)
        if self.numbered_groups > 1:
            index = index * self.numbered_groups + np.asarray(group)
        if self.collective.personal:
            index = index * self.messages_per_origin + np.asarray(destination)
        return index * self.chunks + chunk

    def origin(self, block: IntLike) -> IntArray:
        """Return the origin of each block, elementwise, as the position of a node in its group."""
        if self.single_origin:
            return np.full_like(np.asarray(block), self.collective.root)
        return np.asarray(block) // self.blocks_per_origin

    def group_of_block(self, block: IntLike) -> IntArray:
        """Return the listed group to which each block belongs, elementwise; 0 for sub-tori."""
        return np.asarray(block) // self.blocks_per_node % self.numbered_groups

    def destination(self, block: IntLike) -> IntArray:
        """Return the destination of each block, elementwise, if each block has only one.

        In an exchange, the result is the number of the offset by which the block is sent.
        """
        return np.asarray(block) // self.chunks % self.messages_per_origin

    def chunk(self, block: IntLike) -> IntArray:
        """Return the chunk numbers of blocks, elementwise."""
        return np.asarray(block) % self.chunks

    def precondition(self, block: IntLike) -> IntArray:
        """Return the only node that holds each block at first, its origin, elementwise.

        The node is given by its position, its number within its group.
        """
        return self.origin(block)

    def initial_copies(self, block: IntArray) -> tuple[IntArray, IntArray]:
        """Return pairs (node, block) for the copies of `block` that exist before the collective.

        There is one pair for each number in `block` and each of its `copies_per_block`, but none
        for the origins that a smaller group lacks.

        Returns
        -------
        nodes, blocks : ndarray of int, shape (pairs,)
            Pair k says that node ``nodes[k]`` holds block ``blocks[k]``.
        """
        block = block[self._is_position(self.origin(block), block)]
        return self.nodes_at(self.origin(block), block), np.tile(block, self.copies_per_block)

    def origin_nodes(self, block: IntArray) -> IntArray:
        """Return the node at which each block starts; for sub-tori, that of the first of them."""
        return self.nodes_at(self.origin(block), block)[: len(block)]

    def _is_position(self, position: IntArray, block: IntArray) -> BoolArray:
        """Return True for each position that the group of a block has, elementwise."""
        found: BoolArray = self.groups.is_member[self.group_of_block(block), position]
        return found

    def is_in_group(self, block: IntArray) -> BoolArray:
        """Return True for each block whose origin and destination its group has, elementwise."""
        there = self._is_position(self.origin(block), block)
        if not self.groups.has_several_sizes or not self.collective.personal:
            return there
        goal = self.postcondition(block)
        return there & (goal >= 0) & self._is_position(np.maximum(goal, 0), block)

    @cached_property
    def contribution_counts(self) -> IntArray:
        """The number of contributions to each sum of a reduction, shape (sums,)."""
        return self.groups.sizes[self.group_of_block(np.arange(self.blocks_per_origin))]

    def nodes_at(self, position: IntArray, block: IntArray) -> IntArray:
        """Return the node at a position in the group of each block.

        Parameters
        ----------
        position, block : ndarray of int
            Positions, and the numbers of blocks, elementwise.

        Returns
        -------
        ndarray of int, shape (copies_per_block * len(block),)
            The nodes in the first sub-torus come first, then those in the next.
        """
        members = self.groups.members
        at = (
            members[self.group_of_block(block), position]
            if self.groups.listed
            else members[:, position]
        )
        nodes: IntArray = at.ravel()
        return nodes

    def postcondition(self, block: IntLike) -> IntArray:
        """Return the node that must hold each block at the end, elementwise.

        The node is given by its position, its number within its group. The result is `EVERY_NODE`
        if all nodes must hold the block, and `NO_NODE` if none must. In a reduction the node must
        hold the complete sum to which the block contributes. A halo delivers a block to several
        nodes, so use `required_copies` for it.
        """
        if self.collective.personal:
            goal = self.destination(block)
            return (
                self.target_positions[self.origin(block), goal] if self.collective.local else goal
            )
        node = self.collective.root if self.collective.to_root else EVERY_NODE
        return np.full_like(np.asarray(block), node)

    def required_copies(self, block: IntArray) -> tuple[IntArray, IntArray]:
        """Return pairs (node, block) for the copies of `block` that must exist at the end.

        Returns
        -------
        nodes, blocks : ndarray of int, shape (pairs,)
            Pair k says that node ``nodes[k]`` must hold block ``blocks[k]``.
        """
        block = block[self.has_block(block)]
        if self.collective.traffic is not None:
            origin, number = self.origin(block), self.destination(block)
            index, position = self.collective.traffic.find_deliveries(origin, number)
            block = block[index]
        elif self.collective.definition.target is DeliveryTarget.OFFSETS:
            position = self.target_positions[self.origin(block)].ravel()
            block = np.repeat(block, self.messages_per_receiver)
        else:
            position = self.postcondition(block)
        there = position != NO_NODE
        position, block = position[there], block[there]
        if (position == EVERY_NODE).any():
            position = np.tile(np.arange(self.group_size), len(block))
            block = np.repeat(block, self.group_size)
        if self.groups.has_several_sizes:
            there = self._is_position(position, block)
            position, block = position[there], block[there]
        return self.nodes_at(position, block), np.tile(block, self.copies_per_block)

    @cached_property
    def message_lengths(self) -> IntArray | None:
        """The flits of each message, shape (origins, messages of an origin); None if all are equal.

        There is a single row if the root is the only origin, and in a reduce-scatter.
        """
        if self.collective.longest_flits is None:
            return None
        if self.collective.traffic is not None:
            return self.collective.traffic.flits_by_number(self.group_size)
        lengths = np.array(self.collective.lengths)
        shape = (
            1 if self.single_origin or self.collective.reducing else self.group_size,
            self.messages_per_origin,
        )
        if lengths.shape != shape:
            one, (rows, columns) = 1 in shape, lengths.shape
            must = f"{max(shape)} numbers" if one else f"{shape[0]} lines of {shape[1]} numbers"
            found = lengths.size if one else f"{rows} line{'s' * (rows != 1)} of {columns}"
            raise InputError(f"Counts of {self.collective.kind} must be {must}, not {found}")
        return lengths

    @cached_property
    def sent_lengths(self) -> IntArray | None:
        """The flits of each sent message, shape (positions, messages); None if all are equal.

        In a scatter, all nodes but the root have lengths of 0.
        """
        lengths = self.message_lengths
        if lengths is None:
            return None
        found = np.repeat(lengths, self.group_size // len(lengths), axis=0)
        if self.single_origin:
            found[np.arange(self.group_size) != self.collective.root] = 0
        return found

    @property
    def has_message(self) -> BoolArray:
        """Array of shape (nodes, messages): True for each message that a node sends.

        It is False for messages of no flits, for the numbers of a pattern by which a node sends
        nothing, and for positions that a smaller group lacks. Nodes in no group count as position 0
        of the first group.
        """
        groups, lengths = self.groups, self.sent_lengths
        there = np.ones((self.group_size, self.messages_per_origin), bool)
        if self.collective.traffic is not None:
            there = self.target_positions != NO_NODE
        elif lengths is not None:
            there = lengths > 0
        position = groups.position_of_node
        there = there[position]
        if groups.has_several_sizes:
            group = np.maximum(groups.group_of_node, 0)
            number = np.arange(self.messages_per_origin)
            there &= self.is_in_group(self.encode(position[:, None], 0, number, group[:, None]))
        return there

    def has_block(self, block: IntLike) -> BoolArray:
        """Return True for each block that its group has and its message is long enough for.

        A message of n flits has ceil(n / u) blocks, where u is the length of a block: that of the
        longest message divided by the number of chunks, rounded up. If chunks take flits in turn, u
        is the number of flits of a turn (`Collective.turn_flits`).
        """
        block, lengths = np.asarray(block), self.message_lengths
        there = np.ones(block.shape, bool)
        if self.groups.has_several_sizes:
            there = self.is_in_group(block)
        if lengths is None:
            return there
        flits = self.collective.turn_flits or -(-int(lengths.max()) // self.chunks)
        row = 0 if len(lengths) == 1 else block // self.blocks_per_origin
        number = self.destination(block) if self.collective.personal else 0
        found: BoolArray = there & (self.chunk(block) * flits < lengths[row, number])
        return found

    @cached_property
    def received_lengths(self) -> IntArray | None:
        """The flits of each received part, shape (positions, parts); None if all are equal."""
        lengths = self.message_lengths
        if lengths is None:
            return None
        position, part = np.indices((self.group_size, self.messages_per_receiver))
        origin = np.maximum(self.origin_of_part(position, part), 0)
        row = origin if len(lengths) > 1 else 0 * origin
        number = 0 * part
        if self.collective.personal:
            number = part if self.collective.local else position
        there: IntArray = np.where(
            self.origin_of_part(position, part) == NO_NODE, 0, lengths[row, number]
        )
        return there

    def block_entry(self, block: int) -> tuple[int, ...]:
        """Return a block as in a schedule file: (origin, chunk) or (origin, destination, chunk).

        If several groups are listed, the number of the group comes last.
        """
        return tuple(int(column) for column in self.entry_columns(block))

    def entry_columns(self, block: IntLike) -> list[IntArray]:
        """Return the numbers of `block_entry` for many blocks, one array for each number."""
        middle = [self.destination(block)] if self.collective.personal else []
        last = [self.group_of_block(block)] if self.numbered_groups > 1 else []
        return [self.origin(block), *middle, self.chunk(block), *last]

    def parse_entry(self, entry: object) -> int:
        """Return the number of a block that is written as in a schedule file.

        Parameters
        ----------
        entry : object
            List of the numbers [origin, chunk], or [origin, destination, chunk] where each
            destination gets a message of its own; the number of the group comes last if several
            are listed. Any other value is refused.

        Raises
        ------
        InputError
            If the collective has no such block.
        """
        names, limits = self.entry_limits
        if (
            not isinstance(entry, list | tuple)
            or len(entry) != len(names)
            or not all(type(x) is int and x >= 0 for x in entry)
        ):
            raise InputError(f"Block must be [{', '.join(names)}], not {entry!r}")
        given = dict(zip(names, entry, strict=True))
        only_origin, origin = self.collective.root if self.single_origin else None, given["origin"]
        beyond = any(value >= limit for value, limit in zip(entry, limits, strict=True))
        size = self.group_size
        if not beyond and self.groups.has_several_sizes:
            beyond = not self.is_in_group(self.encode(**given)[None])[0]
            size = int(self.groups.sizes[given["group"]])
        if beyond:
            raise InputError(
                f"Block must lie within {size} nodes and {self.chunks} chunks, not {entry!r}"
            )
        if only_origin is not None and origin != only_origin:
            raise InputError(f"Block must have the root {only_origin} as its origin, not {entry!r}")
        return int(self.encode(**given))

    @property
    def entry_limits(self) -> tuple[list[str], list[int]]:
        """The names of the numbers in `block_entry`, and one more than the largest of each."""
        limits = {
            "origin": self.group_size,
            "destination": self.messages_per_origin,
            "chunk": self.chunks,
            "group": self.numbered_groups,
        }
        if self.numbered_groups == 1:
            del limits["group"]
        if not self.collective.personal:
            del limits["destination"]
        return [*limits], [*limits.values()]
