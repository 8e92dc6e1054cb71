"""A collective communication, the blocks that it moves, and where they lie in memories of nodes.

Blocks are the unit of data. They are numbered; `Blocks` maps the numbers to what they mean. A
message is cut into ``chunks`` equal parts, so a block is (origin, chunk), or (origin, destination,
chunk) where every destination gets a message of its own.

A collective may run in several groups of nodes at once. Origins and destinations are positions in
a group, and a block never leaves its group: which of several blocks of the same number is meant
follows from the node that holds it. In one group of all nodes a position is a node number.

A node has a send memory and a receive memory; `Layout` says how a host addresses them. Each
consists of parts of equal size: a message each, or, where a message is cut into shares of which
each node completes one, a share each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, natural, no_such, of_type
from ..topology import Groups, IntArray, IntLike, Topology
from .definitions import COLLECTIVES, Content, Definition, Target
from .offsets import NO_NODE, nodes_at

__all__ = ["EVERY_NODE", "Blocks", "Collective", "Layout"]

#: Stands for all nodes of a group in `Blocks.postcondition`.
EVERY_NODE = -1


@public_class
@dataclass(frozen=True)
class Collective:
    """A collective communication.

    Parameters
    ----------
    kind : str
        A key of `COLLECTIVES`.
    root : int or None
        The position, in each group, of the node that broadcasts, scatters, gathers or reduces; None
        where no node is special.
    axes : tuple of int or None
        The axes that span the groups in which it runs, ascending; None for one group of all nodes.
    offsets : tuple of str
        Of an exchange or halo: to which offsets nodes send, each the name of a port or signed
        coordinates; none for the neighbours by all ports of a group.
    without : tuple of int
        Nodes that take no part, where a fabric has nodes that a mode does without; only of one
        group.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> scatter = parse_collective("scatter", root=3)
    >>> scatter.rooted, scatter.personal, scatter.single_origin
    (True, True, True)
    >>> print(parse_collective("broadcast@2+0", root=3))
    broadcast@0+2 from 3
    """

    kind: str
    root: int | None = None
    axes: tuple[int, ...] | None = None
    offsets: tuple[str, ...] = ()
    without: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in COLLECTIVES:
            raise no_such("Collective", self.kind, COLLECTIVES)
        if self.root is not None:
            object.__setattr__(self, "root", natural("Root", self.root))
        for name in ("axes", "without"):
            if (numbers := getattr(self, name)) is not None:
                each = tuple(natural(name.capitalize(), number) for number in entries_of(numbers))
                object.__setattr__(self, name, each)
        offsets = entries_of(self.offsets)
        each_text = tuple(of_type("Offsets", text, str, "a list of texts") for text in offsets)
        object.__setattr__(self, "offsets", each_text)

    @property
    def definition(self) -> Definition:
        """What the collective is."""
        return COLLECTIVES[self.kind]

    @property
    def rooted(self) -> bool:
        """Whether one node is special."""
        return self.single_origin or self.to_root

    @property
    def single_origin(self) -> bool:
        """Whether the root is the only origin: broadcast, scatter."""
        return self.definition.content is Content.ROOT

    @property
    def from_each(self) -> bool:
        """Whether messages of several nodes are delivered: allgather, gather, alltoall, halo."""
        return self.definition.content is Content.EACH

    @property
    def reducing(self) -> bool:
        """Whether messages are combined: reduce, reduce-scatter, allreduce."""
        return self.definition.content is Content.COMBINED

    @property
    def to_root(self) -> bool:
        """Whether the root is the only destination: gather, reduce."""
        return self.definition.target is Target.ROOT

    @property
    def to_all(self) -> bool:
        """Whether every node receives the same: broadcast, allgather, allreduce."""
        return self.definition.target is Target.ALL

    @property
    def personal(self) -> bool:
        """Whether a block has a destination of its own: scatter, alltoall, reduce-scatter."""
        return self.definition.target is Target.PERSONAL

    @property
    def local(self) -> bool:
        """Whether nodes send to those at some offsets only: exchange, halo."""
        return self.definition.local

    @property
    def name(self) -> str:
        """What the user writes, e.g. ``allreduce@0+2`` or ``exchange[+0,-0]``."""
        offsets = f"[{','.join(self.offsets)}]" if self.offsets else ""
        axes = "" if self.axes is None else f"@{'+'.join(map(str, self.axes))}"
        return self.kind + offsets + axes

    @property
    def in_one_group(self) -> Collective:
        """The same collective of one group alone."""
        axes = self.axes or ()
        offsets = tuple(_in_group(offset, axes) for offset in self.offsets)
        offsets = offsets if axes else self.offsets
        return replace(self, axes=None, offsets=offsets, without=())

    def targets(self, topology: Topology) -> IntArray:
        """Of an exchange or halo: to which position each sends by each offset.

        Returns
        -------
        ndarray of int, shape (positions, offsets)
            `NO_NODE` where there is none: beyond the border of a mesh, where a node is broken, or
            by a port without a link.

        Raises
        ------
        InputError
            If an offset is none of the group's.

        Examples
        --------
        >>> import torusfabric as tf
        >>> tf.parse_collective("halo").targets(tf.parse_topology("mesh:2x2")).tolist()
        [[2, -2, 1, -2], [3, -2, -2, 0], [-2, 0, 3, -2], [-2, 1, -2, 2]]
        """
        group = self.groups(topology).torus
        offsets = self.in_one_group.offsets or group.port_names
        columns = [nodes_at(offset, group) for offset in offsets]
        return np.stack(columns, axis=1) if columns else np.empty((group.nodes, 0), int)

    def groups(self, topology: Topology) -> Groups:
        """The groups of a topology in which it runs."""
        of_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        return Groups(topology, self.axes, self.without)

    def blocks(self, topology: Topology, chunks: int) -> Blocks:
        """The blocks of this collective on a topology, where a message has so many chunks."""
        return Blocks(self, self.groups(topology), natural("Chunks", chunks))

    def layout(self, topology: Topology, chunks: int) -> Layout:
        """The layout of the nodes' memories, where a message has so many chunks."""
        return Layout(self.blocks(topology, chunks))

    def to_json(self) -> dict[str, Any]:
        """The collective as an entry of a schedule file."""
        entry: dict[str, Any] = {"kind": self.kind}
        if self.rooted:
            entry["root"] = self.root
        if self.axes is not None:
            entry["axes"] = list(self.axes)
        if self.offsets:
            entry["offsets"] = list(self.offsets)
        if self.without:
            entry["without"] = list(self.without)
        return entry

    def __str__(self) -> str:
        return self.name + (f" from {self.root}" if self.root else "")


def _in_group(offset: str, axes: tuple[int, ...]) -> str:
    """An offset as the group that some axes span names it: ports go by the axes of the group."""
    sign, axis = offset[:1], offset[1:]
    if not axes or sign not in "+-" or not re.fullmatch("[0-9]+", axis):
        return offset
    if int(axis) not in axes:
        raise InputError(f"Offset must go along the axes {list(axes)} of the groups, not {offset}")
    return f"{sign}{axes.index(int(axis))}"


@dataclass(frozen=True)
class Blocks:
    """The numbered blocks of a collective, in each of its groups.

    Without a destination, block (origin, chunk) has number ``origin_index * chunks + chunk``; with
    one, ``(origin_index * nodes + destination) * chunks + chunk``. The origin index is the origin's
    position, or 0 where the root is the only origin. In an exchange the number of the offset takes
    the place of the destination: two offsets may lead to the same node.

    Examples
    --------
    >>> import torusfabric as tf
    >>> blocks = tf.parse_collective("alltoall").blocks(tf.Torus(4, 4), chunks=2)
    >>> blocks.count
    512
    >>> block = blocks.encode(origin=3, chunk=1, destination=5)
    >>> blocks.name(block)
    (3, 5, 1)
    >>> int(blocks.precondition(block)), int(blocks.postcondition(block))
    (3, 5)
    """

    collective: Collective
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
        return self.chunks * self.goals

    @cached_property
    def goals(self) -> int:
        """Number of messages of an origin: one for each destination or offset, or one for all."""
        if not self.collective.personal:
            return 1
        return self.targets.shape[1] if self.collective.local else self.nodes

    @cached_property
    def targets(self) -> IntArray:
        """`Collective.targets` of an exchange or halo."""
        return self.collective.targets(self.groups.topology)

    @cached_property
    def _origins(self) -> IntArray:
        """From which position each part comes, shape (positions, offsets), or `NO_NODE`."""
        origins = np.full_like(self.targets, NO_NODE)
        position, offset = np.nonzero(self.targets >= 0)
        origins[self.targets[position, offset], offset] = position
        return origins

    @cached_property
    def parts(self) -> int:
        """Number of messages that a node receives: one of each origin or offset, or one in all."""
        if not self.collective.from_each:
            return 1
        return self.targets.shape[1] if self.collective.local else self.nodes

    def origin_of(self, position: IntLike, part: IntLike) -> IntArray:
        """From which position each part comes that a position receives, elementwise.

        `NO_NODE` where none sends to it by an offset.
        """
        if not self.collective.local:
            return np.broadcast_arrays(position, part)[1]
        origins: IntArray = self._origins[position, part]
        return origins

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
            index = index * self.goals + np.asarray(destination)
        return index * self.chunks + chunk

    def origin(self, block: IntLike) -> IntArray:
        """Origins of blocks, elementwise."""
        if self.single_origin:
            return np.full_like(np.asarray(block), self.collective.root)
        return np.asarray(block) // self.per_origin

    def destination(self, block: IntLike) -> IntArray:
        """Destinations of personal blocks, or the numbers of their offsets, elementwise."""
        return np.asarray(block) // self.chunks % self.goals

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
        """The position that must hold each block after the collective, `EVERY_NODE` or `NO_NODE`.

        In a reduction it must hold the complete sum that the block is a contribution to. Not of a
        halo, of which several must, see `final`.
        """
        if self.collective.personal:
            goal = self.destination(block)
            return self.targets[self.origin(block), goal] if self.collective.local else goal
        node = self.collective.root if self.collective.to_root else EVERY_NODE
        return np.full_like(np.asarray(block), node)

    def final(self, block: IntArray) -> tuple[IntArray, IntArray]:
        """Which nodes must hold blocks after the collective: pairs of node and block."""
        if self.collective.definition.target is Target.OFFSETS:
            position = self.targets[self.origin(block)].ravel()
            block = np.repeat(block, self.parts)
        else:
            position = self.postcondition(block)
        there = position != NO_NODE
        position, block = position[there], block[there]
        if (position == EVERY_NODE).any():
            position = np.tile(np.arange(self.nodes), len(block))
            block = np.repeat(block, self.nodes)
        return self.groups.members[:, position].ravel(), np.tile(block, self.groups.count)

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
        goals = self.goals if size == 3 else 1
        if origin >= self.nodes or destination >= goals or chunk >= self.chunks:
            raise InputError(
                f"Block must lie within {self.nodes} nodes and {self.chunks} chunks, not {entry!r}"
            )
        if only_origin is not None and origin != only_origin:
            raise InputError(f"Block must have the root {only_origin} as its origin, not {entry!r}")
        return int(self.encode(origin, chunk, destination))


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
    shared : bool, optional
        Whether a message is in shares, each of which another node completes; by default that of an
        all-reduce.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = tf.parse_collective("scatter").layout(tf.Torus(4, 4), chunks=2)
    >>> layout.send_parts, layout.recv_parts, layout.part_chunks
    (16, 1, 2)
    >>> layout.blocks.name(layout.received_block(5, 1))
    (0, 5, 1)
    >>> layout.block_flits(7), layout.part_flits(7), layout.send_words(7)
    (4, 7, 112)
    """

    blocks: Blocks
    shared: bool | None = None

    @property
    def in_shares(self) -> bool:
        """Whether a message is cut into shares, each of which another node completes."""
        collective, whole = self.blocks.collective, self.blocks.chunks % self.blocks.nodes == 0
        shared = collective.to_all if self.shared is None else self.shared
        return collective.reducing and shared and whole

    @property
    def part_chunks(self) -> int:
        """Chunks of a part."""
        return self.blocks.chunks // (self.blocks.nodes if self.in_shares else 1)

    @property
    def send_parts(self) -> int:
        """Number of parts of a send memory."""
        return self.blocks.nodes if self.in_shares else self.blocks.goals

    @property
    def recv_parts(self) -> int:
        """Number of parts of a receive memory."""
        return self.blocks.nodes if self.in_shares else self.blocks.parts

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

    def with_root(self, root: int) -> Layout:
        """The layout of the same collective from, or to, another root."""
        collective = replace(self.blocks.collective, root=root)
        return replace(self, blocks=replace(self.blocks, collective=collective))

    def received_block(self, nodes: IntLike, index: IntLike) -> IntArray:
        """The block that lies at an index of the receive memory of nodes, -1 for none, elementwise.

        In a reduction this is the contribution of position 0 to the sum that lies there.

        Parameters
        ----------
        index : array of int
            From 0 to `recv_blocks` - 1.
        """
        nodes, index = np.broadcast_arrays(nodes, index)
        part, chunk = np.divmod(index, self.blocks.chunks)
        position = self.blocks.groups.position[nodes]
        origin = self.blocks.origin_of(position, part)
        goal = part if self.blocks.collective.local else position
        return np.where(origin == NO_NODE, -1, self.blocks.encode(origin, chunk, goal))
