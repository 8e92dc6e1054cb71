"""Arrays of instances: what a netlist has once for every node, or for every group of nodes.

All instances of an array are of one module and wired alike: what differs is numbers, which are
vectors. So a fabric of a hundred thousand nodes is some dozens of arrays, which engines and the
text go through; `instances` writes one out, instance by instance.
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

__all__ = ["Array", "OneOf", "Fixed", "Instance", "NodeGroups", "Numbers", "Part", "Parts", "Role",
           "Roms", "Slice", "Source"]  # fmt: skip

_Node = TypeVar("_Node", int, IntArray)


class Role(enum.Enum):
    """What the instances of a module are for; the value is the label in reports."""

    ROUTER = "router"
    LINK = "links"
    COMBINER = "operators"
    ENDPOINT = "endpoint"
    ROM = "settings"
    SEQUENCER = "sequencer"
    CONTROL = "control tree"
    HOST = "host"
    READ_TREE = "read tree"
    ROOT_UNIT = "root unit"
    BUS = "bus"
    TABLE = "loaded tables"
    LOADER = "loader"
    STREAM = "streams"
    OUTLET = "stream outlets"
    FAR_LINK = "links between blocks"
    BUFFER = "elastic buffers"
    OTHER = "other"


class Part(NamedTuple):
    """Bits ``start`` to ``start + width - 1`` of a net."""

    net: str
    start: int
    width: int


class Fixed(NamedTuple):
    """A constant."""

    value: int
    width: int


#: What drives an input: least significant part first.
Parts: TypeAlias = tuple[Part | Fixed, ...]


@dataclass(frozen=True)
class Instance:
    """An instance of a module.

    Parameters
    ----------
    role : Role
        Of its module.
    inputs : dict of str to tuple of (Part or Fixed)
        What drives each input, least significant part first.
    outputs : dict of str to str
        The net that each output drives.
    node : int or None
        The node it belongs to.
    contents : tuple of int
        The rows of a ROM; empty for all others.
    width : int
        The bits of a row of a ROM.
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
    """Bits of a net for each instance of an array.

    Parameters
    ----------
    net : str
        The name of the net, with ``{}`` where the number of one of many stands.
    number : ndarray of int, shape (instances,), or None
        These numbers; None for a net that is there once.
    start : int or ndarray of int, shape (instances,)
        The lowest bit.
    """

    net: str
    number: IntArray | None
    start: int | IntArray
    width: int

    def of(self, rows: IntArray) -> Slice:
        """That of some of the instances."""
        number = None if self.number is None else self.number[rows]
        start = self.start if isinstance(self.start, int) else self.start[rows]
        return Slice.made(self.net, number, start, self.width)

    @classmethod
    def made(cls, net: str, number: IntArray | None, start: int | IntArray, width: int) -> Slice:
        """A slice whose lowest bit is a number where it is the same for all instances."""
        if not isinstance(start, int) and (start == start[0]).all():
            start = int(start[0])
        return cls(net, number, start, width)

    def parts(self, count: int) -> Iterator[Part]:
        """One for each of so many instances."""
        starts = repeat(self.start) if isinstance(self.start, int) else self.start.tolist()
        nets = repeat(self.net, count)
        if self.number is not None:
            before, after = self.net.split("{}")
            nets = (f"{before}{number}{after}" for number in self.number.tolist())  # type: ignore[assignment]
        return map(Part, nets, starts, repeat(self.width))


class Numbers(NamedTuple):
    """A constant for each instance of an array."""

    values: IntArray
    width: int

    def of(self, rows: IntArray) -> Numbers:
        """Those of some of the instances."""
        return self._replace(values=self.values[rows])

    def parts(self, count: int) -> Iterator[Fixed]:
        """One for each of so many instances."""
        return map(Fixed, self.values.tolist(), repeat(self.width))


class OneOf(NamedTuple):
    """Bits of one of several nets for each instance of an array; all slices are of one width.

    Parameters
    ----------
    which : ndarray of int, shape (instances,)
    """

    slices: tuple[Slice, ...]
    which: IntArray

    @property
    def width(self) -> int:
        """The bits of each."""
        return self.slices[0].width

    def of(self, rows: IntArray) -> OneOf:
        """Those of some of the instances."""
        return OneOf(tuple(each.of(rows) for each in self.slices), self.which[rows])

    def each(self) -> Iterator[tuple[IntArray, Slice]]:
        """The instances that have bits of each net, and these."""
        for number in np.unique(self.which).tolist():
            rows = np.flatnonzero(self.which == number)
            yield rows, self.slices[number].of(rows)

    def parts(self, count: int) -> Iterator[Part]:
        """One for each of so many instances."""
        every = [(rows, [*each.parts(len(rows))]) for rows, each in self.each()]
        order = np.argsort(np.concatenate([rows for rows, _ in every]))
        parts = [part for _, parts in every for part in parts]
        return (parts[at] for at in order.tolist())


#: What drives some bits of an input of all instances of an array.
Source: TypeAlias = Slice | OneOf | Numbers | Fixed


class Roms(NamedTuple):
    """The rows of the ROMs of an array.

    Parameters
    ----------
    contents : tuple of (tuple of int)
        The different contents, row by row.
    which : ndarray of int, shape (instances,)
        The number of the contents of each ROM.
    width : int
        Bits of a row.
    """

    contents: tuple[tuple[int, ...], ...]
    which: IntArray
    width: int


@dataclass(frozen=True, eq=False)
class Array:
    """Instances of a module.

    Parameters
    ----------
    scope : str
        What there is one instance for each of, such as ``node``; empty for an instance alone.
    index : ndarray of int, shape (instances,)
        The number in the scope of each.
    name : str
        That of instances, with ``{}`` where the number stands, as in the names of nets.
    inputs : dict of str to tuple of Source
        What drives each input, least significant part first.
    outputs : dict of str to (str, int)
        The net that each output drives, and its width.
    nodes : ndarray of int, shape (instances,), or None
        The nodes they belong to.
    roms : Roms or None
        Of ROMs, their rows.
    """

    scope: str
    index: IntArray
    name: str
    module: str
    role: Role
    inputs: Mapping[str, tuple[Source, ...]]
    outputs: Mapping[str, tuple[str, int]]
    nodes: IntArray | None
    roms: Roms | None = None

    def __len__(self) -> int:
        return len(self.index)

    @classmethod
    def of(cls, instance: Instance, widths: Mapping[str, int]) -> Array:
        """An instance alone, given the widths of nets."""
        inputs = {
            port: tuple(
                part if isinstance(part, Fixed) else Slice(part.net, None, part.start, part.width)
                for part in parts
            )
            for port, parts in instance.inputs.items()
        }
        roms = None
        if instance.role is Role.ROM:
            roms = Roms((instance.contents,), np.array([0]), instance.width)
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

    def renamed(self, names: Mapping[str, str]) -> Array:
        """The same with other names of nets."""
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

    def named(self, pattern: str) -> Iterator[str]:
        """A name, or that of a net, of each instance."""
        before, number, after = pattern.partition("{}")
        if not number:
            return repeat(pattern, len(self))
        return (f"{before}{index}{after}" for index in self.index.tolist())

    def instances(self) -> Iterator[Instance]:
        """All, one after another."""
        count = len(self)
        inputs = [
            zip(*([part] * count if isinstance(part, Fixed) else part.parts(count)
                  for part in parts), strict=True)
            for parts in self.inputs.values()
        ]  # fmt: skip
        outputs = [self.named(net) for net, _ in self.outputs.values()]
        nodes = [None] * count if self.nodes is None else self.nodes.tolist()
        roms = self.roms
        rows = map(roms.contents.__getitem__, roms.which) if roms else repeat(())
        for name, given, shown, node, contents in zip(
            self.named(self.name),
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
    """The groups of nodes that have a register in common.

    Examples
    --------
    >>> groups = NodeGroups(9)
    >>> groups.size, groups.count, [groups.of(node) for node in (0, 3, 4, 8)]
    (4, 3, [0, 0, 1, 2])
    """

    nodes: int

    @cached_property
    def size(self) -> int:
        """Nodes of a group: a power of two, not far from the square root of all."""
        return 1 << ((self.nodes - 1).bit_length() + 1) // 2

    @property
    def count(self) -> int:
        """Number of groups; the last one may have fewer nodes."""
        return -(-self.nodes // self.size)

    @property
    def place_bits(self) -> int:
        """The low bits of the number of a node that tell it from the others of its group."""
        return address_width(self.size)

    def of(self, node: _Node) -> _Node:
        """The group of a node, or of each of some nodes."""
        return node // self.size
