"""`Collective`: the meaning of a collective, with its root, groups and messages.

Planners, compilers, simulators and host software all take the meaning of a collective from this
class, from its numbered `Blocks` and from their `MemoryLayout`.

A collective may run in several *groups* of nodes at once. Origins and destinations are *positions*
within a group. In one group of all nodes, a position is a node number. Groups are of two kinds:

- Sub-tori, which axes span. Data never leave their group.
- Listed nodes. Data may pass through any node of the network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.public import public_class
from ..toolchain.values import entries_of, parse_non_negative_int, require_type, unknown_name_error
from ..topology import (
    Groups,
    IntArray,
    Topology,
    check_supports_any_root,
    node_ranges,
)
from .blocks import Blocks
from .definitions import COLLECTIVES, CollectiveDefinition, DeliveredContent, DeliveryTarget
from .layout import MemoryLayout
from .offsets import NO_NODE, nodes_at_offset
from .traffic import Traffic

__all__ = ["KINDS_WITH_LENGTHS", "Collective"]

#: The collectives whose messages may have unequal lengths.
KINDS_WITH_LENGTHS = ("allgather", "gather", "scatter", "reduce-scatter", "alltoall")


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
    turn_flits : int
        Number of flits that go to each chunk of a message in turn, if messages have unequal lengths
        and runs choose the length of the longest. A message of n flits then has a chunk for each
        turn, ceil(n / turn_flits), but at most as many as the longest message. 0 if the chunks of a
        message follow one another.

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
    turn_flits: int = field(default=0, repr=False)

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
            raise InputError(
                "Groups of listed nodes have no axes and leave out no nodes; name a broken node "
                "for all modes of a fabric, such as by --broken-node"
            )
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
    def listed_messages(self) -> dict[str, Any]:
        """The messages that a user lists, as arguments ``traffic`` or ``counts`` of `tf.plan`."""
        entry = self.to_json()
        named = {"traffic": entry.get("traffic"), "counts": entry.get("lengths")}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def fixed_flits(self) -> int | None:
        """Flits of the longest message, if it decides the length of all runs; else None."""
        return None if self.turn_flits else self.longest_flits

    def with_lengths_in_chunks(self, topology: Topology, chunks: int) -> Collective:
        """Return the collective in which a message is as long as the number of its chunks.

        It moves the same blocks as this collective, and its chunks follow one another. Planners and
        bounds use it for messages whose chunks take flits in turn (`turn_flits`).

        Parameters
        ----------
        chunks : int
            Number of chunks of the longest message.
        """
        if not self.turn_flits:
            return self

        def count_chunks(flits: int) -> int:
            return min(-(-flits // self.turn_flits), chunks)

        if self.traffic is not None:
            messages = (
                each._replace(words=count_chunks(each.words)) for each in self.traffic.messages
            )
            return replace(self, traffic=Traffic(messages), turn_flits=0)
        lengths = tuple(tuple(map(count_chunks, row)) for row in self.lengths)
        if len({count for row in lengths for count in row}) > 1:
            return replace(self, lengths=lengths, turn_flits=0)
        members = self.members or (tuple(range(topology.nodes)),)
        return replace(self, lengths=(), members=members, turn_flits=0)

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
        groups = (f"{{{','.join(node_ranges(nodes))}}}" for nodes in self.members)
        listed = "@" * bool(self.members) + "".join(groups)
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
            return self._pattern_targets(groups)
        group = groups.group_topology
        offsets = self.in_one_group.offsets or group.port_names
        columns = [nodes_at_offset(offset, group) for offset in offsets]
        targets = np.stack(columns, axis=1) if columns else np.empty((group.nodes, 0), int)
        return _targets_in_groups(groups, targets) if self.members else targets

    def _pattern_targets(self, groups: Groups) -> IntArray:
        """Return a destination of each message of a pattern, shape (nodes, numbers)."""
        assert self.traffic is not None
        self.traffic.check_nodes(groups.group_size, () if self.members else groups.topology.relays)
        nodes = groups.group_size
        source, number, destination = self.traffic.delivery_table.T
        targets = np.full((nodes, int(number.max()) + 1), NO_NODE)
        targets[source, number] = destination
        return targets

    def groups(self, topology: Topology) -> Groups:
        """Return the groups of nodes of a topology, in each of which the collective runs."""
        require_type("Topology", topology, Topology, "a Topology, such as tf.Torus(4, 4)")
        if topology.relays and not self.members and self.traffic is None:
            raise InputError(
                f"{self.name} must list the nodes that are no relays of {topology}; take "
                f"tf.parse_collective({self.name!r}, topology=..)"
            )
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
                "along axes; give a position for each mode, such as --root 0,1, or make a fabric "
                "with --tables ram and an image for each root"
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
        if self.turn_flits:
            entry["turn_flits"] = self.turn_flits
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
