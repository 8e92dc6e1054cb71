"""The meaning of a collective: `Collective`, its numbered `Blocks`, and their `MemoryLayout`.

Planners, compilers, simulators and host software all take the meaning of a collective from these
three classes.

A *block* is the unit of data. A message is cut into C = ``chunks`` equal parts, so a block is a
pair (origin, chunk). Where each destination gets a message of its own, a block is a triple (origin,
destination, chunk). Blocks are numbered; `Blocks` translates between numbers and pairs or triples.

A collective may run in several *groups* of nodes at once. Origins and destinations are *positions*
within a group. In one group of all nodes, a position is a node number. Groups are of two kinds:

- Sub-tori, which axes span. A block never leaves its group, so block b exists once in each group,
  and the node that holds a copy tells to which group the copy belongs.
- Listed nodes. Blocks may pass through any node of the network, so the blocks of each group have
  numbers of their own.

Each node has a send memory and a receive memory. Both consist of *parts* of equal size. A part is
one message, or one share where the collective cuts a message into shares and each node completes
one of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, parse_non_negative_int, require_type, unknown_name_error
from ..topology import (
    BoolArray,
    Groups,
    IntArray,
    IntLike,
    Topology,
    check_supports_any_root,
)
from .definitions import COLLECTIVES, CollectiveDefinition, DeliveredContent, DeliveryTarget
from .offsets import NO_NODE, nodes_at_offset
from .traffic import Traffic

__all__ = ["EVERY_NODE", "KINDS_WITH_LENGTHS", "Blocks", "Collective", "MemoryLayout"]

#: The collectives whose messages may have unequal lengths.
KINDS_WITH_LENGTHS = ("allgather", "gather", "scatter", "reduce-scatter", "alltoall")

#: In `Blocks.postcondition`: the block must reach every node of its group.
EVERY_NODE = -1


@public_class
@dataclass(frozen=True)
class Collective:
    """A collective communication: its kind, root, groups and offsets.

    Parameters
    ----------
    kind : str
        A key of `COLLECTIVES`.
    root : int or None
        The position, in each group, of the node that broadcasts, scatters, gathers or reduces. None
        for a collective without a root.
    axes : tuple of int or None
        The axes that span the groups, ascending; None for one group of all nodes.
    offsets : tuple of str
        The offsets to which a node sends in an exchange or halo. Each is the name of a port, or
        signed coordinates such as ``(1,-2)``. Empty for the neighbours at all ports of a group.
    without : tuple of int
        Node numbers that take no part, because this mode of a fabric leaves out some nodes of the
        fabric. Only allowed in one group of all nodes.
    members : tuple of (tuple of int)
        The nodes of each group, if a user lists them; the place of a node in its group is its
        position. Empty for one group of all nodes, and for groups that axes span.
    traffic : Traffic or None
        The messages of a pattern; None for all other collectives.
    lengths : tuple of (tuple of int)
        The flits of each message, if messages have unequal lengths: a row for each origin, with an
        entry for each destination. All-gather and gather have one entry a row, scatter and
        reduce-scatter one row. Empty if all messages have the same length.

    Examples
    --------
    The name ``broadcast@2+0`` means a broadcast in each group of nodes along the axes 0 and 2.

    >>> import torusfabric as tf
    >>> from torusfabric.collective import parse_collective
    >>> scatter = parse_collective("scatter", root=3)
    >>> scatter.rooted, scatter.personal, scatter.single_origin
    (True, True, True)
    >>> print(parse_collective("broadcast@2+0", root=3))
    broadcast@0+2 from 3
    >>> print(tf.Collective("allreduce", members=((0, 1, 2, 9), (4, 5, 6, 7))))
    allreduce@{0-2,9}{4-7}
    """

    kind: str
    root: int | None = None
    axes: tuple[int, ...] | None = None
    offsets: tuple[str, ...] = ()
    without: tuple[int, ...] = ()
    members: tuple[tuple[int, ...], ...] = ()
    traffic: Traffic | None = None
    lengths: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in COLLECTIVES:
            raise unknown_name_error("Collective", self.kind, COLLECTIVES)
        if self.root is not None:
            object.__setattr__(self, "root", parse_non_negative_int("Root", self.root))
        for name in ("axes", "without"):
            if (numbers := getattr(self, name)) is not None:
                each = tuple(
                    parse_non_negative_int(name.capitalize(), number)
                    for number in entries_of(numbers)
                )
                object.__setattr__(self, name, each)
        groups = tuple(
            tuple(parse_non_negative_int("Node of a group", node) for node in entries_of(group))
            for group in entries_of(self.members)
        )
        object.__setattr__(self, "members", groups)
        if groups and (self.axes is not None or self.without):
            raise InputError("Groups of listed nodes have no axes and leave out no nodes")
        offsets = entries_of(self.offsets)
        each_text = tuple(require_type("Offsets", text, str, "a list of texts") for text in offsets)
        object.__setattr__(self, "offsets", each_text)
        self._check_traffic()

    def _check_traffic(self) -> None:
        """Check the fields `traffic` and `lengths`."""
        rows = tuple(
            tuple(parse_non_negative_int("Count", count) for count in entries_of(row))
            for row in entries_of(self.lengths)
        )
        if rows and len({count for row in rows for count in row}) == 1:
            raise InputError("Counts must be unequal; messages of one length are given by --flits")
        object.__setattr__(self, "lengths", rows)
        if self.kind == "pattern" and self.traffic is None:
            raise InputError("A pattern needs the list of its messages; give --traffic FILE")
        if self.kind == "pattern" and (self.members or self.axes is not None):
            raise InputError("A pattern has no groups, because its messages name all nodes")
        if self.kind != "pattern" and self.traffic is not None:
            raise InputError(f"Traffic is for the collective pattern, not for {self.kind}")
        if rows and (self.kind not in KINDS_WITH_LENGTHS or self.axes is not None):
            raise InputError(
                f"Counts are for {', '.join(KINDS_WITH_LENGTHS)} of all nodes or of listed nodes, "
                f"not for {self.name}"
            )

    @property
    def is_irregular(self) -> bool:
        """True if nodes are listed, messages are listed, or messages have unequal lengths."""
        return bool(self.members or self.lengths) or self.traffic is not None

    @property
    def longest_flits(self) -> int | None:
        """Flits of the longest message, if messages have unequal lengths; else None."""
        if self.traffic is not None:
            return None if self.traffic.has_one_length else self.traffic.longest_flits
        return max(max(row) for row in self.lengths) if self.lengths else None

    @property
    def listed_flits(self) -> int | None:
        """Flits of the longest message, if a user lists lengths above 1; else None.

        It is the default length of a run. If all lengths are equal, a run may have another.
        """
        if self.traffic is not None and self.traffic.longest_flits > 1:
            return self.traffic.longest_flits
        return self.longest_flits

    @property
    def definition(self) -> CollectiveDefinition:
        """The entry of the table `COLLECTIVES` for this kind of collective.

        It says which data the collective delivers, and to which nodes.
        """
        return COLLECTIVES[self.kind]

    @property
    def rooted(self) -> bool:
        """True if the collective has a root: broadcast, scatter, gather, reduce."""
        return self.single_origin or self.to_root

    @property
    def single_origin(self) -> bool:
        """True if the root is the only origin: broadcast, scatter."""
        return self.definition.content is DeliveredContent.ROOT

    @property
    def from_each(self) -> bool:
        """True if the delivered messages come from several nodes.

        These are allgather, gather, alltoall, exchange and halo.
        """
        return self.definition.content is DeliveredContent.EACH

    @property
    def reducing(self) -> bool:
        """True if messages are combined: reduce, reduce-scatter, allreduce."""
        return self.definition.content is DeliveredContent.COMBINED

    @property
    def to_root(self) -> bool:
        """True if the root is the only destination: gather, reduce."""
        return self.definition.target is DeliveryTarget.ROOT

    @property
    def to_all(self) -> bool:
        """True if every node receives the same data: broadcast, allgather, allreduce."""
        return self.definition.target is DeliveryTarget.ALL

    @property
    def personal(self) -> bool:
        """True if each block has one destination: scatter, alltoall, reduce-scatter, exchange."""
        return self.definition.target is DeliveryTarget.PERSONAL

    @property
    def local(self) -> bool:
        """True if a node sends only to the nodes at given offsets: exchange, halo."""
        return self.definition.local

    @property
    def name(self) -> str:
        """The name as a user writes it: ``exchange[+0]``, ``allreduce@0+2``, ``gather@{0-3}``."""
        offsets = f"[{','.join(self.offsets)}]" if self.offsets else ""
        axes = "" if self.axes is None else f"@{'+'.join(map(str, self.axes))}"
        listed = "@" * bool(self.members) + "".join(f"{{{_node_list(m)}}}" for m in self.members)
        return self.kind + offsets + axes + listed

    @property
    def in_one_group(self) -> Collective:
        """The collective as it runs in a single group, described on the torus of the group.

        The axes of the groups are dropped, and ports in `offsets` get the names that they have in a
        group: ``exchange[+2]@0+2`` becomes ``exchange[+1]``.
        """
        axes = self.axes or ()
        offsets = tuple(_offset_in_group(offset, axes) for offset in self.offsets)
        offsets = offsets if axes else self.offsets
        return replace(self, axes=None, offsets=offsets, without=())

    def targets(self, topology: Topology) -> IntArray:
        """Return the receivers of an exchange or halo.

        Nodes are given by their positions: their numbers in the torus of their group.

        Returns
        -------
        ndarray of int, shape (positions, offsets)
            Entry [v, k] is the position to which position v sends by offset k. It is `NO_NODE`
            where the offset leads beyond the border of a mesh, to a broken node, or to a port
            without a link.

        Raises
        ------
        InputError
            If the topology of a group has no such offset, or if an offset leads to different
            positions in the groups that are listed.

        Examples
        --------
        On a mesh of 2x2, node 0 has neighbours only at ports +0 (node 2) and +1 (node 1); -2 is
        `NO_NODE`.

        >>> import torusfabric as tf
        >>> tf.parse_collective("halo").targets(tf.parse_topology("mesh:2x2")).tolist()
        [[2, -2, 1, -2], [3, -2, -2, 0], [-2, 0, 3, -2], [-2, 1, -2, 2]]
        """
        groups = self.groups(topology)
        if self.traffic is not None:
            return self._pattern_targets(groups.group_size)
        group = groups.group_topology
        offsets = self.in_one_group.offsets or group.port_names
        columns = [nodes_at_offset(offset, group) for offset in offsets]
        targets = np.stack(columns, axis=1) if columns else np.empty((group.nodes, 0), int)
        return _targets_in_groups(groups, targets) if self.members else targets

    def _pattern_targets(self, nodes: int) -> IntArray:
        """Return a destination of each message of a pattern, shape (nodes, numbers)."""
        assert self.traffic is not None
        self.traffic.check_nodes(nodes)
        source, number, destination = self.traffic.delivery_table.T
        targets = np.full((nodes, int(number.max()) + 1), NO_NODE)
        targets[source, number] = destination
        return targets

    def groups(self, topology: Topology) -> Groups:
        """Return the groups of nodes of a topology, in each of which the collective runs."""
        require_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        return Groups(topology, self.axes, self.without, self.members)

    def check_supports_any_root(self, topology: Topology) -> None:
        """Raise an `InputError` if a fabric cannot choose the root of this collective in each run.

        Such a fabric runs the schedule for root 0 after a translation, which must map groups to
        themselves.
        """
        check_supports_any_root(topology)
        if self.is_irregular:
            raise InputError(
                "Root any needs messages of one length in one group of all nodes, or in groups "
                "along axes; give the position of the root, such as --root 0"
            )

    def blocks(self, topology: Topology, chunks: int) -> Blocks:
        """Return the blocks of this collective on a topology, with messages of `chunks` chunks."""
        return Blocks(self, self.groups(topology), parse_non_negative_int("Chunks", chunks))

    def layout(self, topology: Topology, chunks: int) -> MemoryLayout:
        """Return the layout of the node memories on a topology, for messages of `chunks` chunks."""
        return MemoryLayout(self.blocks(topology, chunks))

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a schedule file, such as ``{"kind": "scatter", "root": 3}``."""
        entry: dict[str, Any] = {"kind": self.kind}
        if self.rooted:
            entry["root"] = self.root
        if self.axes is not None:
            entry["axes"] = list(self.axes)
        if self.offsets:
            entry["offsets"] = list(self.offsets)
        if self.without:
            entry["without"] = list(self.without)
        if self.members:
            entry["groups"] = [list(group) for group in self.members]
        if self.traffic is not None:
            entry["traffic"] = self.traffic.to_json()
        if self.lengths:
            entry["lengths"] = [list(row) for row in self.lengths]
        return entry

    def __str__(self) -> str:
        return self.name + (f" from {self.root}" if self.root else "")


def _offset_in_group(offset: str, axes: tuple[int, ...]) -> str:
    """Translate `offset` from the whole torus to a group that `axes` span.

    Only a port changes: port ``+2`` of the torus is port ``+1`` of a group along axes 0 and 2.
    """
    sign, axis = offset[:1], offset[1:]
    if not axes or sign not in "+-" or not re.fullmatch("[0-9]+", axis):
        return offset
    if int(axis) not in axes:
        raise InputError(f"Offset must go along the axes {list(axes)} of the groups, not {offset}")
    return f"{sign}{axes.index(int(axis))}"


def _node_list(nodes: tuple[int, ...]) -> str:
    """Return node numbers as text; three or more consecutive ones become a range, ``0-2``."""
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(texts)


def _targets_in_groups(groups: Groups, targets: IntArray) -> IntArray:
    """Return the receivers of an exchange or halo as positions in listed groups.

    ``targets[node, k]`` is the node at offset k of each node. A node sends only to nodes of its own
    group, so the result is `NO_NODE` where the offset leads out of the group. It has the shape
    (positions, offsets), and must be the same in all groups.
    """
    at = np.maximum(targets, 0)
    same = (groups.group_of_node[at] == groups.group_of_node[:, None]) & (targets >= 0)
    found = np.where(same, groups.position_of_node[at], NO_NODE)[groups.members]
    first: IntArray = found[groups.sizes.argmax()]
    # A smaller group has the messages of the largest one between the positions that it has.
    own = np.where(first < groups.sizes[:, None, None], first, NO_NODE)
    if (found != own)[groups.is_member].any():
        raise InputError(
            "Offsets must lead to the same positions in each group; list the nodes of all groups "
            "in the same order, or use modes of one fabric, joined by commas"
        )
    if (first == NO_NODE).all():
        raise InputError("Offsets must lead to a node of the same group, but all lead out of it")
    return first


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
        longest message divided by the number of chunks, rounded up.
        """
        block, lengths = np.asarray(block), self.message_lengths
        there = np.ones(block.shape, bool)
        if self.groups.has_several_sizes:
            there = self.is_in_group(block)
        if lengths is None:
            return there
        flits = -(-int(lengths.max()) // self.chunks)
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
