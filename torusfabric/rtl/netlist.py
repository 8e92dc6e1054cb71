"""Netlists: which module instances make up a fabric, and how they are connected.

A `Netlist` is a plain value, which a `NetlistBuilder` takes the parts of: instances alone, and
arrays of them. `Assembly` makes an Amaranth design of it, the `verilog` room writes it as
structural Verilog, and the compiled engine evaluates it directly; in all of them every module
appears once, however many instances it has.

What an instance is for is its role, not its name. Shape and data are apart: modules say what there
is, and what differs between nodes of one shape is the contents of ROMs, which are instances of the
one module `ROM` wherever they stand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from amaranth.lib.wiring import In, Member, Out

from .arrays import Array, Fixed, Instance, Part, Parts, Role, Roms, Slice, Source
from .memories import address_width
from .modules import Leaf

if TYPE_CHECKING:
    from ..contract.ports import Port
    from ..contract.registers import Register
    from ..topology import BoolArray, IntArray

__all__ = [
    "ROM",
    "Array",
    "Fixed",
    "Instance",
    "Leaf",
    "Netlist",
    "NetlistBuilder",
    "NodePort",
    "Part",
    "Parts",
    "Role",
    "add_single",
]

#: The name of the one module of all ROMs.
ROM = "rom"

_Made = TypeVar("_Made")


class NodePort(NamedTuple):
    """A port of the whole that belongs to a node.

    Parameters
    ----------
    name : str
        That it has in common with the ports of other nodes.
    """

    name: str
    node: int


@dataclass(frozen=True, eq=False)
class Netlist:
    """Instances of modules, and the nets between them.

    Parameters
    ----------
    inputs, outputs : dict of str to int
        The ports of the whole, each with its width; a port is a net of the same name.
    node_ports : dict of str to NodePort
        Whose each port is that belongs to a node.
    modules : dict of str to function of () -> Leaf
        How to make each module; `ROM` is not among them.
    roles : dict of str to Role
        What each module is for.
    arrays : tuple of Array
        The instances.
    wired : dict of str to tuple of Part
        Outputs that no instance drives by itself, and the bits of nets they are made of.
    declared : mapping of str to Port
        The purpose of ports that streams and adapters have added.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    node_ports: dict[str, NodePort]
    modules: dict[str, Callable[[], Leaf]]
    roles: dict[str, Role]
    arrays: tuple[Array, ...]
    wired: dict[str, tuple[Part, ...]]
    declared: Mapping[str, Port] = field(default_factory=dict)

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        """All instances, one by one; of many nodes they are many."""
        return tuple(chain.from_iterable(map(Array.instances, self.arrays)))

    @cached_property
    def nets(self) -> dict[str, int]:
        """The width of every net, ports included."""

        found = dict(self.inputs)
        for array in self.arrays:
            for net, width in array.outputs.values():
                found.update(zip(array.named(net), repeat(width, len(array)), strict=False))
        return found | self.outputs

    @property
    def single_nets(self) -> dict[str, int]:
        """Nets that there are not many of, each with its width; ports are among them."""
        every = (net for array in self.arrays for net in array.outputs.values())
        return self.inputs | {net: width for net, width in every if "{}" not in net} | self.outputs

    @property
    def counts(self) -> Counter[str]:
        """How many instances there are of each module, that of ROMs included."""
        found = Counter[str]()
        for array in self.arrays:
            found[array.module] += len(array)
        return found

    def with_instances(
        self, instances: Iterable[Instance], nets: Mapping[str, int] = MappingProxyType({})
    ) -> Netlist:
        """The same with other instances, given the widths of nets that there are not yet."""
        widths = {**self.nets, **nets}
        return replace(self, arrays=tuple(Array.of(each, widths) for each in instances))

    def whole(self, net: str) -> tuple[Part, ...]:
        """All bits of a net."""
        return (Part(net, 0, self.nets[net]),)

    def words(self, net: str, width: int) -> list[Part]:
        """A net as words of so many bits, each a part."""
        return [Part(net, start, width) for start in range(0, self.nets[net], width)]

    def having(self, role: Role) -> Iterator[Instance]:
        """The instances of a role, in their order."""
        return (instance for instance in self.instances if instance.role is role)


class NetlistBuilder:
    """Takes the parts of a netlist.

    Attributes
    ----------
    inputs, outputs, nets : dict of str to int
        As of the `Netlist`, so far; nets that there are many of by their name with ``{}``.
    outermost : set of str
        Ports of the whole that stay so, whatever is put around it.
    declared : dict of str to Port
        As of the `Netlist`.
    registers : list of Register
        What adapters add to the register map of a bus.

    Examples
    --------
    >>> builder = NetlistBuilder()
    >>> _ = builder.add_input("address", 2)
    >>> address, one = [Slice("address", None, 0, 2)], np.array([0])
    >>> builder.add_roms("squares", one, contents=[(0, 1, 4, 9)], which=one, width=4,
    ...                  address=address, output="square")
    >>> builder.add_output("square", 4)
    >>> builder.done().instances[0].contents
    (0, 1, 4, 9)
    """

    def __init__(self) -> None:
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self.nets: dict[str, int] = {}
        self._node_ports: dict[str, NodePort] = {}
        self.outermost: set[str] = set()
        self.declared: dict[str, Port] = {}
        self.registers: list[Register] = []
        self._modules: dict[str, Callable[[], Leaf]] = {}
        self._roles: dict[str, Role] = {}
        self._arrays: list[Array] = []
        self._wired: dict[str, tuple[Part, ...]] = {}
        self._driven: set[str] = set()
        self._members: dict[str, BoolArray] = {}

    def done(self) -> Netlist:
        """The netlist."""
        arrays, wired = tuple(self._arrays), dict(self._wired)
        ports = dict(self.inputs), dict(self.outputs), dict(self._node_ports)
        modules, roles = dict(self._modules), dict(self._roles)
        return Netlist(*ports, modules, roles, arrays, wired, dict(self.declared))

    def add_input(self, name: str, width: int = 1, *, node: int | None = None) -> tuple[Part, ...]:
        """Declare an input of the whole, or of a node; returns all of it."""
        port = self._port(name, node)
        self._driven.add(port)
        self.inputs[port] = self.nets[port] = width
        return self.whole(port)

    def add_output(self, name: str, width: int = 1, *, node: int | None = None) -> None:
        """Declare an output of the whole, or of a node; an instance must drive the net."""
        port = self._port(name, node)
        self.outputs[port] = self.nets[port] = width

    def add_ports(self, members: Mapping[str, Member]) -> None:
        """Declare a port of the whole for each of some members of a component."""
        for name, member in members.items():
            (self.add_input if member.flow is In else self.add_output)(name, member.shape)

    def wire_output(self, name: str, parts: tuple[Part, ...], *, node: int | None = None) -> None:
        """Declare an output of the whole, or of a node, made of bits of nets."""
        self.add_output(name, sum(part.width for part in parts), node=node)
        self._wired[self._port(name, node)] = parts

    def enclose(
        self, renamed: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Make the ports of the whole inner nets, for further instances to drive and to read.

        Those of single nodes stay as they are, and those of `outermost`.

        Parameters
        ----------
        renamed : dict of str to str
            What nets are called from now on, so that ports may have their names.

        Returns
        -------
        inputs, outputs : dict of str to int
            What they were, each with its width; the inputs are left without a driver.
        """
        stay = {*self._node_ports, *self.outermost}
        inputs, outputs = (
            {name: bits for name, bits in ports.items() if name not in stay}
            for ports in (self.inputs, self.outputs)
        )
        self.inputs, self.outputs = (
            {name: bits for name, bits in ports.items() if name in stay}
            for ports in (self.inputs, self.outputs)
        )
        self._driven -= inputs.keys()
        self._rename(renamed)
        return inputs, outputs

    def _rename(self, names: Mapping[str, str]) -> None:
        """Give nets other names."""

        def named(parts: tuple[Part, ...]) -> tuple[Part, ...]:
            return tuple(part._replace(net=names.get(part.net, part.net)) for part in parts)

        self.nets = {names.get(net, net): width for net, width in self.nets.items()}
        self._driven = {names.get(net, net) for net in self._driven}
        self._wired = {names.get(net, net): named(parts) for net, parts in self._wired.items()}
        self._arrays = [array.renamed(names) for array in self._arrays]

    def add_module(self, name: str, make: Callable[[], Leaf], *, role: Role = Role.OTHER) -> None:
        """Declare a module."""
        self._modules[name], self._roles[name] = make, role

    def whole(self, net: str) -> tuple[Part, ...]:
        """All bits of a net."""
        return (Part(net, 0, self.nets[net]),)

    def low(self, net: str, width: int) -> tuple[Part, ...]:
        """The least significant bits of a net."""
        return (Part(net, 0, width),)

    def add(
        self,
        name: str,
        module: str,
        *,
        inputs: Mapping[str, Parts],
        outputs: Mapping[str, tuple[str, int]],
        node: int | None = None,
    ) -> None:
        """Add an instance.

        Parameters
        ----------
        inputs : dict of str to tuple of (Part or Fixed)
        outputs : dict of str to (str, int)
            The net that each output drives, and its width.
        node : int, optional
            The node it belongs to.

        Raises
        ------
        ValueError
            If a net is driven already.
        """
        for net, width in outputs.values():
            self._drive(net, width)
        nets = {port: net for port, (net, _) in outputs.items()}
        role = self._roles.get(module, Role.OTHER)
        instance = Instance(name, module, role, dict(inputs), nets, node)
        self._arrays.append(Array.of(instance, self.nets))

    def add_array(
        self,
        name: str,
        module: str,
        index: IntArray,
        *,
        inputs: Mapping[str, Sequence[Source]],
        outputs: Mapping[str, tuple[str, int]],
        scope: str = "node",
    ) -> None:
        """Add instances of a module.

        Parameters
        ----------
        name : str
            That of each, with ``{}`` where its number stands, as in the names of the nets.
        index : ndarray of int, shape (instances,)
            These numbers.
        outputs : dict of str to (str, int)
            The net that each output drives, and its width.
        scope : str
            What there is one for each of.

        Raises
        ------
        ValueError
            If a net is driven already.
        """
        role = self._roles.get(module, Role.OTHER)
        for net, width in outputs.values():
            self._drive_each(net, index, width)
        if not len(index):
            return
        given = {port: tuple(parts) for port, parts in inputs.items()}
        nodes = index if scope == "node" else None
        array = Array(scope, index, name, module, role, given, dict(outputs), nodes)
        self._arrays.append(array)

    def add_roms(
        self,
        name: str,
        index: IntArray,
        *,
        contents: Sequence[tuple[int, ...]],
        which: IntArray,
        width: int,
        address: Sequence[Slice],
        output: str,
    ) -> None:
        """Add a ROM for each of some nodes; those of as many rows are an array.

        Parameters
        ----------
        contents : sequence of (tuple of int)
            What there is in any. After a clock edge, `output` holds the row at the address of
            before the edge; past the end it is the last row.
        which : ndarray of int, shape (nodes,)
            The number of the contents of each.
        address : sequence of Slice
            Of as many bits as the longest has.
        """
        self._drive_each(output, index, width)
        depths = np.array([len(rows) for rows in contents])[which]
        for depth in np.unique(depths).tolist():
            at = np.flatnonzero(depths == depth)
            used, number = np.unique(which[at], return_inverse=True)
            left, given = address_width(depth), list[Slice]()
            for part in (part.of(at) for part in address):
                if bits := min(part.width, left):
                    given.append(part._replace(width=bits))
                left -= bits
            assert not left, "addresses reach all rows"
            ports = {"address": tuple(given)}, {"data": (output, width)}
            rows = tuple(contents[k] for k in used.tolist())
            here = index[at]
            roms = Roms(rows, number.ravel(), width)
            array = Array("node", here, name, ROM, Role.ROM, *ports, here, roms)
            self._arrays.append(array)

    def _port(self, name: str, node: int | None) -> str:
        """The name of a port of the whole, or of the port that every node has by that name.

        The number of the node stands at its end, or where the name has ``{}``.
        """
        if node is None:
            return name
        port = name.format(node) if "{}" in name else f"{name}_{node}"
        self._node_ports[port] = NodePort(name.replace("_{}", ""), node)
        return port

    def _drive(self, net: str, width: int) -> None:
        if net in self._driven:
            raise ValueError(f"Net {net} must be driven once, not by two instances")
        self._driven.add(net)
        self.nets[net] = width

    def _drive_each(self, net: str, index: IntArray, width: int) -> None:
        """Drive nets that there are many of; their width is that of the name with ``{}``."""
        if "{}" not in net:
            self._drive(net, width)
            return
        known = self._members.get(net, np.zeros(0, bool))
        times = np.bincount(index, minlength=len(known))
        times[: len(known)] += known
        if (times > 1).any():
            twice = net.format(np.flatnonzero(times > 1)[0])
            raise ValueError(f"Net {twice} must be driven once, not by two instances")
        self._members[net], self.nets[net] = times > 0, width


def add_single(
    build: NetlistBuilder,
    name: str,
    role: Role,
    make: Callable[[], Leaf],
    inputs: Mapping[str, Parts] = MappingProxyType({}),
    renamed: Mapping[str, str] = MappingProxyType({}),
    instance: str = "",
) -> dict[str, tuple[Part, ...]]:
    """An instance of a module, by default the only one; returns its outputs.

    Members are joined to nets of their own names, or of the names that some of them are given, as
    far as `inputs` does not say what drives them.
    """
    build.add_module(name, make, role=role)
    leaf, given, outputs = make(), dict[str, Parts](), dict[str, tuple[str, int]]()
    for member, each in leaf.signature.members.items():
        net, bits = renamed.get(member, member), len(getattr(leaf, member))
        if each.flow is Out:
            outputs[member] = net, bits
        elif member not in inputs:
            given[member] = (Part(net, 0, bits),)
    build.add(instance or f"the_{name}", name, inputs={**inputs, **given}, outputs=outputs)
    return {member: build.whole(net) for member, (net, _) in outputs.items()}
