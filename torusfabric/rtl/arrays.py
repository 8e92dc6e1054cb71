"""Arrays of instances: the compact form of a netlist with many nodes.

An `Array` stands for one instance at every node, or at every group of nodes. Its instances have
the same module and are wired alike. They differ only in numbers (node, bit position, constant,
ROM contents), and each such number is a vector with one entry for each instance. A fabric of a
hundred thousand nodes is thus some dozens of arrays, which the compiled engine and the writer of
Verilog go through. `Array.instances` yields the instances one by one.

An input of an array is driven by a concatenation of *sources*, each of one of four types:

============= ==============================================================
`Slice`       bits of a net: for instance k, bits of net ``word_{number[k]}``
`SliceChoice` a slice of one of several nets, chosen for each instance
`Constants`   a constant for each instance
`Constant`    one constant for all instances
============= ==============================================================

The drivers of a single `Instance` are *parts*: `Part` (bits of a net) and `Constant`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..topology import IntArray
from .memories import address_width

__all__ = ["Array", "SliceChoice", "Constant", "Instance", "NodeGroups", "Constants", "Part",
           "Parts", "Role", "RomContents", "Slice", "Source"]  # fmt: skip

_Node = TypeVar("_Node", int, IntArray)


class Role(enum.Enum):
    """The purpose of a module; the value is its name in reports on the size of a fabric."""

    ROUTER = "router"
    LINK = "links"
    COMBINER = "operators"
    ENDPOINT = "endpoint"
    ROM = "settings"
    SEQUENCER = "sequencer"
    CONTROL = "control tree"
    HOST = "host"
    READ_TREE = "read tree"
    BUS = "bus"
    TABLE = "loaded tables"
    LOADER = "loader"
    STREAM = "streams"
    OUTLET = "stream outlets"
    FAR_LINK = "links between blocks"
    BUFFER = "elastic buffers"
    OTHER = "other"


class Part(NamedTuple):
    """Bits ``start`` to ``start + width - 1`` of a net: the driver of a part of an input."""

    net: str
    start: int
    width: int


class Constant(NamedTuple):
    """A constant of `width` bits that drives a part of an input."""

    value: int
    width: int


#: The drivers of an input of an instance, least significant part first.
Parts: TypeAlias = tuple[Part | Constant, ...]


@dataclass(frozen=True)
class Instance:
    """A named instance of a module in a netlist, with the driver of each of its inputs.

    Parameters
    ----------
    name, module : str
        The name of the instance, and of its module.
    role : Role
        The role of the module.
    inputs : dict of str to tuple of (Part or Constant)
        The drivers of each input, least significant part first.
    outputs : dict of str to str
        The net that each output drives.
    node : int or None
        The node that the instance belongs to, if any.
    contents : tuple of int
        The rows of a ROM; empty for other modules.
    width : int
        Bits of a row of a ROM; 0 for other modules.
    """

    name: str
    module: str
    role: Role
    inputs: dict[str, Parts]
    outputs: dict[str, str]
    node: int | None
    contents: tuple[int, ...] = ()
    width: int = 0


class Slice(NamedTuple):
    """The driver of an input for each instance of an array: some bits of a net.

    The net of instance k is `net` with ``number[k]`` for ``{}``: ``word_7`` for ``word_{}``.

    Parameters
    ----------
    net : str
        The name of the net, with ``{}`` in the place of a number.
    number : ndarray of int, shape (instances,), or None
        The number in the name, for each instance. None if the name has no ``{}``, so that all
        instances read the same net.
    start : int or ndarray of int, shape (instances,)
        The lowest bit, for all instances or for each.
    width : int
        Bits of the slice.
    """

    net: str
    number: IntArray | None
    start: int | IntArray
    width: int

    def at_instances(self, rows: IntArray) -> Slice:
        """Return the slice for some of the instances.

        Parameters
        ----------
        rows : ndarray of int
            The positions of these instances in the array.
        """
        number = None if self.number is None else self.number[rows]
        start = self.start if isinstance(self.start, int) else self.start[rows]
        return Slice.from_starts(self.net, number, start, self.width)

    @classmethod
    def from_starts(
        cls, net: str, number: IntArray | None, start: int | IntArray, width: int
    ) -> Slice:
        """Return a slice, given the lowest bit of each instance.

        If all are equal, the slice has this one number in place of the array.

        Parameters
        ----------
        net, number, width
            The same as in `Slice`.
        start : int or ndarray of int, shape (instances,)
            The lowest bit of each instance.
        """
        if not isinstance(start, int) and (start == start[0]).all():
            start = int(start[0])
        return cls(net, number, start, width)

    def instance_parts(self, count: int) -> Iterator[Part]:
        """Yield, for each of `count` instances in order, the bits of a net that drive its input."""
        starts = repeat(self.start) if isinstance(self.start, int) else self.start.tolist()
        nets = repeat(self.net, count)
        if self.number is not None:
            before, after = self.net.split("{}")
            nets = (f"{before}{number}{after}" for number in self.number.tolist())  # type: ignore[assignment]
        return map(Part, nets, starts, repeat(self.width))


class Constants(NamedTuple):
    """The driver of an input for each instance of an array: ``values[k]`` at instance k."""

    values: IntArray
    width: int

    def at_instances(self, rows: IntArray) -> Constants:
        """Return the constants for some instances only, given their positions in the array.

        Parameters
        ----------
        rows : ndarray of int
            The positions of the instances.
        """
        return self._replace(values=self.values[rows])

    def instance_parts(self, count: int) -> Iterator[Constant]:
        """Yield, for each of `count` instances in order, the constant that drives its input."""
        return map(Constant, self.values.tolist(), repeat(self.width))


class SliceChoice(NamedTuple):
    """The driver of an input for each instance of an array: bits of one of several nets.

    Parameters
    ----------
    slices : tuple of Slice
        The alternatives, all with the same width.
    which : ndarray of int, shape (instances,)
        For each instance, the index of its slice in `slices`.
    """

    slices: tuple[Slice, ...]
    which: IntArray

    @property
    def width(self) -> int:
        """Bits of each slice."""
        return self.slices[0].width

    def at_instances(self, rows: IntArray) -> SliceChoice:
        """Return the choice for some instances only, given their positions in the array.

        Parameters
        ----------
        rows : ndarray of int
            The positions of the instances.
        """
        return SliceChoice(tuple(each.at_instances(rows) for each in self.slices), self.which[rows])

    def used_slices(self) -> Iterator[tuple[IntArray, Slice]]:
        """Yield each slice that an instance uses, after the positions of the instances that use it.

        A slice is yielded for these instances only: its arrays have one entry for each of them.
        """
        for number in np.unique(self.which).tolist():
            rows = np.flatnonzero(self.which == number)
            yield rows, self.slices[number].at_instances(rows)

    def instance_parts(self, count: int) -> Iterator[Part]:
        """Yield, for each of `count` instances in order, the bits of a net that drive its input."""
        every = [(rows, [*each.instance_parts(len(rows))]) for rows, each in self.used_slices()]
        order = np.argsort(np.concatenate([rows for rows, _ in every]))
        parts = [part for _, parts in every for part in parts]
        return (parts[at] for at in order.tolist())


#: The driver of some bits of an input, for all instances of an array.
Source: TypeAlias = Slice | SliceChoice | Constants | Constant


class RomContents(NamedTuple):
    """The rows of the ROMs of an array.

    Parameters
    ----------
    contents : tuple of (tuple of int)
        The different contents; each is a tuple with the row at each address.
    which : ndarray of int, shape (instances,)
        For each ROM, the index of its contents in `contents`.
    width : int
        Bits of a row.
    """

    contents: tuple[tuple[int, ...], ...]
    which: IntArray
    width: int


@dataclass(frozen=True, eq=False)
class Array:
    """Instances of one module that are wired alike; a single instance is an array of one.

    Parameters
    ----------
    scope : str
        The things that have one instance each: ``node`` or ``group``; empty for a single instance.
    index : ndarray of int, shape (instances,)
        The number of the node, or group, of each instance.
    name : str
        The name of the instances, with ``{}`` in the place of the number.
    module : str
        The name of the module.
    role : Role
        The role of the module.
    inputs : dict of str to tuple of Source
        The drivers of each input, least significant part first.
    outputs : dict of str to (str, int)
        The net that each output drives, with ``{}`` for the number, and its width in bits.
    nodes : ndarray of int, shape (instances,), or None
        The node that each instance belongs to, if any.
    roms : RomContents or None
        The contents, if the instances are ROMs.
    """

    scope: str
    index: IntArray
    name: str
    module: str
    role: Role
    inputs: Mapping[str, tuple[Source, ...]]
    outputs: Mapping[str, tuple[str, int]]
    nodes: IntArray | None
    roms: RomContents | None = None

    def __len__(self) -> int:
        return len(self.index)

    @classmethod
    def from_instance(cls, instance: Instance, widths: Mapping[str, int]) -> Array:
        """Return the array that consists of one instance.

        `widths` has the width in bits of each net that the instance drives.
        """
        inputs = {
            port: tuple(
                part
                if isinstance(part, Constant)
                else Slice(part.net, None, part.start, part.width)
                for part in parts
            )
            for port, parts in instance.inputs.items()
        }
        roms = None
        if instance.role is Role.ROM:
            roms = RomContents((instance.contents,), np.array([0]), instance.width)
        return cls(
            "",
            np.array([instance.node or 0]),
            instance.name,
            instance.module,
            instance.role,
            inputs,
            {port: (net, widths[net]) for port, net in instance.outputs.items()},
            None if instance.node is None else np.array([instance.node]),
            roms,
        )

    def rename_nets(self, names: Mapping[str, str]) -> Array:
        """Return a copy of the array in which some nets have other names.

        Parameters
        ----------
        names : mapping of str to str
            Old name -> new name of each net that is renamed. A name such as ``word_{}`` stands for
            the nets of all instances.
        """
        inputs = {
            port: tuple(
                part._replace(net=names[part.net])
                if isinstance(part, Slice) and part.net in names
                else part
                for part in parts
            )
            for port, parts in self.inputs.items()
        }
        outputs = {port: (names.get(net, net), bits) for port, (net, bits) in self.outputs.items()}
        return replace(self, inputs=inputs, outputs=outputs)

    def at_instances(self, rows: IntArray) -> Array:
        """Return the array of some of the instances.

        Parameters
        ----------
        rows : ndarray of int
            The positions of these instances in the array.
        """
        inputs = {
            port: tuple(
                part if isinstance(part, Constant) else part.at_instances(rows) for part in parts
            )
            for port, parts in self.inputs.items()
        }
        nodes = None if self.nodes is None else self.nodes[rows]
        roms = self.roms and self.roms._replace(which=self.roms.which[rows])
        return replace(self, index=self.index[rows], inputs=inputs, nodes=nodes, roms=roms)

    def expand_name(self, pattern: str) -> Iterator[str]:
        """Yield one name for each instance: `pattern` with the number of the instance.

        Parameters
        ----------
        pattern : str
            The name, in which the number of each instance replaces ``{}``. A name without ``{}`` is
            the same for all instances.
        """
        before, number, after = pattern.partition("{}")
        if not number:
            return repeat(pattern, len(self))
        return (f"{before}{index}{after}" for index in self.index.tolist())

    def instances(self) -> Iterator[Instance]:
        """Yield the instances one by one."""
        count = len(self)
        inputs = [
            zip(*([part] * count if isinstance(part, Constant) else part.instance_parts(count)
                  for part in parts), strict=True)
            for parts in self.inputs.values()
        ]  # fmt: skip
        outputs = [self.expand_name(net) for net, _ in self.outputs.values()]
        nodes = [None] * count if self.nodes is None else self.nodes.tolist()
        roms = self.roms
        rows = map(roms.contents.__getitem__, roms.which) if roms else repeat(())
        for name, given, shown, node, contents in zip(
            self.expand_name(self.name),
            zip(*inputs, strict=True) if inputs else repeat(()),
            zip(*outputs, strict=True) if outputs else repeat(()),
            nodes,
            rows,
            strict=False,
        ):
            yield Instance(
                name,
                self.module,
                self.role,
                dict(zip(self.inputs, given, strict=True)),
                dict(zip(self.outputs, shown, strict=True)),
                node,
                contents,
                roms.width if roms else 0,
            )


@dataclass(frozen=True)
class NodeGroups:
    """The partition of the nodes into groups of consecutive numbers that share a register.

    A signal for all nodes is spread in two stages: a register for each group, then a register at
    each node. With groups of about sqrt(N) nodes, no register drives more than about sqrt(N)
    others.

    Parameters
    ----------
    nodes : int
        Number of nodes, N.

    Examples
    --------
    Nine nodes are three groups: nodes 0 to 3, nodes 4 to 7, and node 8.

    >>> groups = NodeGroups(9)
    >>> groups.group_size, groups.n_groups, [groups.group_of(node) for node in (0, 3, 4, 8)]
    (4, 3, [0, 0, 1, 2])
    """

    nodes: int

    @cached_property
    def group_size(self) -> int:
        """Nodes of a group: the smallest power of two that is at least sqrt(N)."""
        return 1 << ((self.nodes - 1).bit_length() + 1) // 2

    @property
    def n_groups(self) -> int:
        """Number of groups. The last group may have fewer nodes."""
        return -(-self.nodes // self.group_size)

    @property
    def position_bits(self) -> int:
        """Bits of the position of a node within its group: the low bits of its number."""
        return address_width(self.group_size)

    def group_of(self, node: _Node) -> _Node:
        """Return the group of a node, or of each node in an array."""
        return node // self.group_size
