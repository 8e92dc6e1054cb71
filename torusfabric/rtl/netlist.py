"""Netlists: the instances of modules in a fabric, and the nets between them.

The core and the adapters fill a `NetlistBuilder`, whose `make_netlist` returns a `Netlist`: a plain
value. The netlist has three readers. `Assembly` makes an Amaranth design of it, the package
`torusfabric.verilog` writes it as structural Verilog, and the compiled engine evaluates it
directly. Each of them handles a module once, however many instances the module has.

- A *net* has a name, a width, and one driver: an input of the netlist, or an output of an instance.
- A *name with* ``{}``, such as ``word_{}``, stands for one net for each node (or group); the number
  replaces the ``{}``.
- The *role* of a module (`Role`) says its purpose. Code looks for roles, never for module names.

Structure and data are separate. Nodes with the same structure share a module. Values that differ
between such nodes are the contents of ROMs, and all ROMs are instances of one module, `ROM`.
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

from .arrays import Array, Constant, Instance, Part, Parts, Role, RomContents, Slice, Source
from .memories import address_width
from .modules import Leaf

if TYPE_CHECKING:
    from ..contract.ports import Port
    from ..contract.registers import Register
    from ..topology import BoolArray, IntArray

__all__ = ["ROM", "Array", "Constant", "Instance", "Leaf", "Netlist", "NetlistBuilder", "NodePort",
           "Part", "Parts", "Role", "add_single_instance"]  # fmt: skip

#: The name of the module that every ROM is an instance of.
ROM = "rom"

_Made = TypeVar("_Made")


class NodePort(NamedTuple):
    """An input or output of the netlist that belongs to one node.

    Parameters
    ----------
    name : str
        The name without the number of the node, common to all nodes: ``word`` of ``word_7``.
    node : int
        The node that the port belongs to.
    """

    name: str
    node: int


@dataclass(frozen=True, eq=False)
class Netlist:
    """Instances of modules, and the nets between them.

    Parameters
    ----------
    inputs, outputs : dict of str to int
        The width of each port of the netlist in bits. A port is also a net with the same name.
    node_ports : dict of str to NodePort
        The node, and the common name, of each port that belongs to a node.
    modules : dict of str to function of () -> Leaf
        Name of a module -> function that makes it; without `ROM`, which is written by hand.
    roles : dict of str to Role
        The role of each module.
    arrays : tuple of Array
        The instances.
    wired : dict of str to tuple of Part
        Output that no instance drives -> the bits of nets that it consists of, least significant
        part first.
    declared : mapping of str to Port
        The description of each port that streams or adapters have added.
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
        """All instances of all arrays, one by one.

        With many nodes this is a long tuple: loop over `arrays` where speed matters.
        """
        return tuple(chain.from_iterable(map(Array.instances, self.arrays)))

    @cached_property
    def net_widths(self) -> dict[str, int]:
        """The width of every net, ports included, by the name of the net."""

        found = dict(self.inputs)
        for array in self.arrays:
            for net, width in array.outputs.values():
                found.update(zip(array.expand_name(net), repeat(width, len(array)), strict=False))
        return found | self.outputs

    @property
    def single_net_widths(self) -> dict[str, int]:
        """The width of every port, and of every net that exists once, by its name.

        Nets that exist once for each node, such as ``word_{}``, are left out.
        """
        every = (net for array in self.arrays for net in array.outputs.values())
        return self.inputs | {net: width for net, width in every if "{}" not in net} | self.outputs

    @property
    def instance_counts(self) -> Counter[str]:
        """The number of instances of each module, `ROM` included."""
        found = Counter[str]()
        for array in self.arrays:
            found[array.module] += len(array)
        return found

    def with_instances(
        self, instances: Iterable[Instance], nets: Mapping[str, int] = MappingProxyType({})
    ) -> Netlist:
        """Return a netlist with the same ports and modules, but other instances.

        Parameters
        ----------
        instances : iterable of Instance
            All instances of the new netlist.
        nets : dict of str to int
            Name -> width of each net that the new instances need, but this netlist does not have.
        """
        widths = {**self.net_widths, **nets}
        return replace(self, arrays=tuple(Array.from_instance(each, widths) for each in instances))

    def all_bits(self, net: str) -> tuple[Part, ...]:
        """Return the whole net `net` as a driver of inputs: a tuple with one `Part`."""
        return (Part(net, 0, self.net_widths[net]),)

    def split_net(self, net: str, width: int) -> list[Part]:
        """Return a net cut into words of `width` bits, the lowest bits first."""
        return [Part(net, start, width) for start in range(0, self.net_widths[net], width)]

    def instances_with_role(self, role: Role) -> Iterator[Instance]:
        """Yield the instances whose modules have a role, such as `Role.ROUTER`."""
        return (instance for instance in self.instances if instance.role is role)


class NetlistBuilder:
    """Builder of a netlist: takes ports, modules and instances, in any order.

    An adapter that puts hardware around the existing ports calls `turn_ports_into_nets` first: the
    ports become inner nets, and the adapter adds new instances that drive and read them.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        The width of each port declared so far.
    nets : dict of str to int
        The width of each net so far. Nets of an array have one entry, whose name contains ``{}``.
    outermost : set of str
        The names of the ports that `turn_ports_into_nets` leaves as ports.
    declared : dict of str to Port
        The description of each port that streams or adapters have added.
    registers : list of Register
        Registers that adapters add to the register map of a bus.

    Examples
    --------
    A netlist with one ROM, which is addressed by an input and drives an output.

    >>> builder = NetlistBuilder()
    >>> _ = builder.add_input("address", 2)
    >>> address, one = [Slice("address", None, 0, 2)], np.array([0])
    >>> builder.add_roms("squares", one, contents=[(0, 1, 4, 9)], which=one, width=4,
    ...                  address=address, output="square")
    >>> builder.add_output("square", 4)
    >>> builder.make_netlist().instances[0].contents
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

    def make_netlist(self) -> Netlist:
        """Return the netlist of all parts added so far."""
        arrays, wired = tuple(self._arrays), dict(self._wired)
        ports = dict(self.inputs), dict(self.outputs), dict(self._node_ports)
        modules, roles = dict(self._modules), dict(self._roles)
        return Netlist(*ports, modules, roles, arrays, wired, dict(self.declared))

    def add_input(self, name: str, width: int = 1, *, node: int | None = None) -> tuple[Part, ...]:
        """Declare an input of the netlist and return all its bits.

        With `node`, the input belongs to this node, and its name gets the number: ``word_7``.

        Parameters
        ----------
        name : str
            The name of the input, without the number of the node.
        width : int
            Bits of the input.
        node : int, optional
            The node that the input belongs to.
        """
        port = self._declare_port(name, node)
        self._driven.add(port)
        self.inputs[port] = self.nets[port] = width
        return self.all_bits(port)

    def add_output(self, name: str, width: int = 1, *, node: int | None = None) -> None:
        """Declare an output of the netlist. An instance must drive the net with the same name.

        With `node`, the output belongs to this node, and its name gets the number: ``word_7``.

        Parameters
        ----------
        name : str
            The name of the output, without the number of the node.
        width : int
            Bits of the output.
        node : int, optional
            The node that the output belongs to.
        """
        port = self._declare_port(name, node)
        self.outputs[port] = self.nets[port] = width

    def add_ports(self, members: Mapping[str, Member]) -> None:
        """Declare an input or output of the netlist for each member of a signature.

        Parameters
        ----------
        members : mapping of str to Member
            The members, by the names of the ports.
        """
        for name, member in members.items():
            (self.add_input if member.flow is In else self.add_output)(name, member.shape)

    def wire_output(self, name: str, parts: tuple[Part, ...], *, node: int | None = None) -> None:
        """Declare an output that is the concatenation of bits of nets, least significant first.

        Parameters
        ----------
        name : str
            The name of the output, without the number of the node.
        parts : tuple of Part
            The bits of nets.
        node : int, optional
            The node that the output belongs to.
        """
        self.add_output(name, sum(part.width for part in parts), node=node)
        self._wired[self._declare_port(name, node)] = parts

    def turn_ports_into_nets(
        self, renamed: Mapping[str, str] = MappingProxyType({}), *, nodes: bool = False
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Turn the ports of the netlist into inner nets, so that hardware can be put around them.

        Ports in `outermost` remain ports.

        Parameters
        ----------
        renamed : dict of str to str
            The new name of each net that is renamed. This frees the old name for a new port.
        nodes : bool
            True to turn ports that belong to a node into nets, too; by default they remain ports.

        Returns
        -------
        inputs, outputs : dict of str to int
            The old name and the width of each port that became a net. The caller must add
            instances that drive the former inputs.
        """
        stay = {*self.outermost} if nodes else {*self._node_ports, *self.outermost}
        inputs, outputs = (
            {name: bits for name, bits in ports.items() if name not in stay}
            for ports in (self.inputs, self.outputs)
        )
        self.inputs, self.outputs = (
            {name: bits for name, bits in ports.items() if name in stay}
            for ports in (self.inputs, self.outputs)
        )
        self._driven -= inputs.keys()
        self._rename_nets(renamed)
        return inputs, outputs

    def _rename_nets(self, names: Mapping[str, str]) -> None:
        """Rename nets, wherever an instance or an output mentions them.

        `names` has the new name of each net that is renamed, by its old name.
        """

        def rename_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
            return tuple(part._replace(net=names.get(part.net, part.net)) for part in parts)

        self.nets = {names.get(net, net): width for net, width in self.nets.items()}
        self._driven = {names.get(net, net) for net in self._driven}
        self._wired = {
            names.get(net, net): rename_parts(parts) for net, parts in self._wired.items()
        }
        self._arrays = [array.rename_nets(names) for array in self._arrays]

    def add_module(self, name: str, make: Callable[[], Leaf], *, role: Role = Role.OTHER) -> None:
        """Declare a module by its name, constructor and role.

        Parameters
        ----------
        name : str
            The name of the module.
        make : function of () -> Leaf
            The constructor of the module.
        role : Role
            The role of the module.
        """
        self._modules[name], self._roles[name] = make, role

    def all_bits(self, net: str) -> tuple[Part, ...]:
        """Return the whole net `net` as a driver of inputs: a tuple with one `Part`."""
        return (Part(net, 0, self.nets[net]),)

    def low_bits(self, net: str, width: int) -> tuple[Part, ...]:
        """Return the `width` least significant bits of a net, as a tuple of one part."""
        return (Part(net, 0, width),)

    def add_instance(
        self,
        name: str,
        module: str,
        *,
        inputs: Mapping[str, Parts],
        outputs: Mapping[str, tuple[str, int]],
        node: int | None = None,
    ) -> None:
        """Add one instance, which drives the nets in `outputs`.

        Parameters
        ----------
        name : str
            The name of the instance.
        module : str
            A module declared by `add_module`.
        inputs : dict of str to tuple of (Part or Constant)
            The driver of each input, least significant part first.
        outputs : dict of str to (str, int)
            The net that each output drives, and the width of the net in bits.
        node : int, optional
            The node that the instance belongs to.

        Raises
        ------
        ValueError
            If a net has a driver already.
        """
        for net, width in outputs.values():
            self._mark_driven(net, width)
        nets = {port: net for port, (net, _) in outputs.items()}
        role = self._roles.get(module, Role.OTHER)
        instance = Instance(name, module, role, dict(inputs), nets, node)
        self._arrays.append(Array.from_instance(instance, self.nets))

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
        """Add an array of instances, which have one module and are wired alike.

        Parameters
        ----------
        name : str
            The name of the instances, with ``{}`` in the place of the number of an instance.
        module : str
            A module declared by `add_module`.
        index : ndarray of int, shape (instances,)
            The number of each instance; the number of its node if `scope` is "node".
        inputs : dict of str to sequence of Source
            The drivers of each input, least significant part first.
        outputs : dict of str to (str, int)
            The net that each output drives, with ``{}`` for the number, and its width in bits.
        scope : str
            The unit that has one instance, such as "node" or a group of nodes.

        Raises
        ------
        ValueError
            If a net has a driver already.
        """
        role = self._roles.get(module, Role.OTHER)
        for net, width in outputs.values():
            self._mark_array_driven(net, index, width)
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
        """Add a ROM for each of some nodes.

        After a clock edge, the net `output` holds the row at the address from before the edge. An
        address past the end reads the last row. ROMs with the same number of rows form one array.

        Parameters
        ----------
        name : str
            The name of the instances, with ``{}`` in the place of the number of the node.
        index : ndarray of int, shape (nodes,)
            The nodes.
        contents : sequence of (tuple of int)
            The different contents, each row by row.
        which : ndarray of int, shape (nodes,)
            For each node, the index of its contents in `contents`.
        width : int
            Bits of a row.
        address : sequence of Slice
            The address, least significant slice first, with enough bits for the longest ROM.
            Shorter ROMs use its low bits.
        output : str
            The net that each ROM drives, with ``{}`` in the place of the number of the node.
        """
        self._mark_array_driven(output, index, width)
        depths = np.array([len(rows) for rows in contents])[which]
        for depth in np.unique(depths).tolist():
            at = np.flatnonzero(depths == depth)
            used, number = np.unique(which[at], return_inverse=True)
            left, given = address_width(depth), list[Slice]()
            for part in (part.at_instances(at) for part in address):
                if bits := min(part.width, left):
                    given.append(part._replace(width=bits))
                left -= bits
            assert not left, "addresses reach all rows"
            ports = {"address": tuple(given)}, {"data": (output, width)}
            rows = tuple(contents[k] for k in used.tolist())
            here = index[at]
            roms = RomContents(rows, number.ravel(), width)
            array = Array("node", here, name, ROM, Role.ROM, *ports, here, roms)
            self._arrays.append(array)

    def _declare_port(self, name: str, node: int | None) -> str:
        """Return the full name of a port, and record the node that it belongs to, if any.

        The number of the node replaces ``{}`` in the name, or else is appended: ``word_7``.
        """
        if node is None:
            return name
        port = name.format(node) if "{}" in name else f"{name}_{node}"
        self._node_ports[port] = NodePort(name.replace("_{}", ""), node)
        return port

    def shared_name(self, port: str) -> str:
        """Return the name of a port without the number of its node, if it belongs to one."""
        return self._node_ports[port].name if port in self._node_ports else port

    def _mark_driven(self, net: str, width: int) -> None:
        if net in self._driven:
            raise ValueError(f"Net {net} must be driven once, not by two instances")
        self._driven.add(net)
        self.nets[net] = width

    def _mark_array_driven(self, net: str, index: IntArray, width: int) -> None:
        """Record that each net of an array has a driver; raise ValueError if one had one before.

        The nets have the name `net` with the numbers in `index` for ``{}``, and `width` bits.
        """
        if "{}" not in net:
            self._mark_driven(net, width)
            return
        known = self._members.get(net, np.zeros(0, bool))
        times = np.bincount(index, minlength=len(known))
        times[: len(known)] += known
        if (times > 1).any():
            twice = net.format(np.flatnonzero(times > 1)[0])
            raise ValueError(f"Net {twice} must be driven once, not by two instances")
        self._members[net], self.nets[net] = times > 0, width


def add_single_instance(
    build: NetlistBuilder,
    name: str,
    role: Role,
    make: Callable[[], Leaf],
    inputs: Mapping[str, Parts] = MappingProxyType({}),
    renamed: Mapping[str, str] = MappingProxyType({}),
    instance: str = "",
) -> dict[str, tuple[Part, ...]]:
    """Declare a module, add one instance of it, and return its outputs.

    Each port of the module is connected to the net with the same name, unless `inputs` or
    `renamed` says otherwise.

    Parameters
    ----------
    build : NetlistBuilder
        The netlist that takes the module and its instance.
    name : str
        The name of the module.
    role : Role
        The role of the module.
    make : function of () -> Leaf
        The constructor of the module.
    inputs : dict of str to tuple of (Part or Constant)
        The drivers of some inputs, by the name of the port.
    renamed : dict of str to str
        For some ports, the net that the port is connected to.
    instance : str
        The name of the instance, by default ``the_`` and the name of the module.

    Returns
    -------
    dict of str to tuple of Part
        All bits of the net that each output drives, by the name of the port.
    """
    build.add_module(name, make, role=role)
    leaf, given, outputs = make(), dict[str, Parts](), dict[str, tuple[str, int]]()
    for member, each in leaf.signature.members.items():
        net, bits = renamed.get(member, member), len(getattr(leaf, member))
        if each.flow is Out:
            outputs[member] = net, bits
        elif member not in inputs:
            given[member] = (Part(net, 0, bits),)
    build.add_instance(instance or f"the_{name}", name, inputs={**inputs, **given}, outputs=outputs)
    return {member: build.all_bits(net) for member, (net, _) in outputs.items()}
