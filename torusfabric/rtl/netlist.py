"""Netlists: which module instances make up a fabric, and how they are connected.

A `Netlist` is a plain value, which a `NetlistBuilder` takes the parts of, instance by instance and
net by net. `Assembly` makes an Amaranth design of it, the `verilog` room writes it as structural
Verilog, and the compiled engine evaluates it directly; in all of them every module appears once,
however many instances it has.

What an instance is for is its role, not its name. Shape and data are apart: modules say what there
is, and what differs between nodes of one shape is the contents of ROMs, which are instances of the
one module `ROM` wherever they stand.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from .memories import address_width
from .modules import Leaf

__all__ = [
    "ROM",
    "Fixed",
    "Instance",
    "Leaf",
    "Netlist",
    "NetlistBuilder",
    "NodePort",
    "Part",
    "Parts",
    "Role",
]

#: The name of the one module of all ROMs.
ROM = "rom"


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
    BOARD = "links between boards"
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
Parts = tuple[Part | Fixed, ...]

_AnyPart = TypeVar("_AnyPart", Part, Part | Fixed)


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

    @property
    def parameters(self) -> dict[str, int]:
        """The parameters of the module in Verilog, contents aside."""
        if self.role is not Role.ROM:
            return {}
        depth = len(self.contents)
        return {"DEPTH": depth, "WIDTH": self.width, "ADDRESS": address_width(depth)}


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
    nets : dict of str to int
        The width of every net, ports included.
    wired : dict of str to tuple of Part
        Outputs that no instance drives by itself, and the bits of nets they are made of.
    """

    inputs: dict[str, int]
    outputs: dict[str, int]
    node_ports: dict[str, NodePort]
    modules: dict[str, Callable[[], Leaf]]
    roles: dict[str, Role]
    nets: dict[str, int]
    instances: tuple[Instance, ...]
    wired: dict[str, tuple[Part, ...]]

    def whole(self, net: str) -> tuple[Part, ...]:
        """All bits of a net."""
        return (Part(net, 0, self.nets[net]),)

    def words(self, net: str, width: int) -> list[Part]:
        """A net as words of so many bits, each a part."""
        return [Part(net, start, width) for start in range(0, self.nets[net], width)]

    def having(self, role: Role) -> Iterator[Instance]:
        """The instances of a role, in their order."""
        return (instance for instance in self.instances if instance.role is role)

    def drivers(self) -> dict[str, tuple[int, str]]:
        """The number of the instance, and the port of it, that drive each net."""
        return {
            net: (number, port)
            for number, instance in enumerate(self.instances)
            for port, net in instance.outputs.items()
        }


class NetlistBuilder:
    """Takes the parts of a netlist.

    Attributes
    ----------
    inputs, outputs, nets : dict of str to int
        As of the `Netlist`, so far.
    of_links : set of str
        The ports that lead to other boards, or say which one this is.

    Examples
    --------
    >>> builder = NetlistBuilder()
    >>> address = builder.add_input("address", 2)
    >>> builder.add_rom("squares", rows=[0, 1, 4, 9], width=4, address=address, output="square")
    >>> builder.add_output("square", 4)
    >>> builder.done().instances[0].contents
    (0, 1, 4, 9)
    """

    def __init__(self) -> None:
        self.inputs: dict[str, int] = {}
        self.outputs: dict[str, int] = {}
        self.nets: dict[str, int] = {}
        self._node_ports: dict[str, NodePort] = {}
        self.of_links: set[str] = set()
        self._modules: dict[str, Callable[[], Leaf]] = {}
        self._roles: dict[str, Role] = {}
        self._instances: list[Instance] = []
        self._wired: dict[str, tuple[Part, ...]] = {}
        self._driven: set[str] = set()

    def done(self) -> Netlist:
        """The netlist."""
        return Netlist(
            dict(self.inputs),
            dict(self.outputs),
            dict(self._node_ports),
            dict(self._modules),
            dict(self._roles),
            dict(self.nets),
            tuple(self._instances),
            dict(self._wired),
        )

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

    def wire_output(self, name: str, parts: tuple[Part, ...], *, node: int | None = None) -> None:
        """Declare an output of the whole, or of a node, made of bits of nets."""
        self.add_output(name, sum(part.width for part in parts), node=node)
        self._wired[self._port(name, node)] = parts

    def enclose(
        self, renamed: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Make the ports of the whole inner nets, for further instances to drive and to read.

        Those of single nodes stay as they are, and those of links.

        Parameters
        ----------
        renamed : dict of str to str
            What nets are called from now on, so that ports may have their names.

        Returns
        -------
        inputs, outputs : dict of str to int
            What they were, each with its width; the inputs are left without a driver.
        """
        stay = {*self._node_ports, *self.of_links}
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

        def named(parts: tuple[_AnyPart, ...]) -> tuple[_AnyPart, ...]:
            return tuple(
                part._replace(net=names[part.net])
                if isinstance(part, Part) and part.net in names
                else part
                for part in parts
            )

        self.nets = {names.get(net, net): width for net, width in self.nets.items()}
        self._driven = {names.get(net, net) for net in self._driven}
        self._wired = {names.get(net, net): named(parts) for net, parts in self._wired.items()}
        self._instances = [
            replace(
                instance,
                inputs={port: named(parts) for port, parts in instance.inputs.items()},
                outputs={port: names.get(net, net) for port, net in instance.outputs.items()},
            )
            for instance in self._instances
        ]

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
        self._instances.append(Instance(name, module, role, dict(inputs), nets, node))

    def add_rom(
        self,
        name: str,
        *,
        rows: Sequence[int],
        width: int,
        address: Parts,
        output: str,
        node: int | None = None,
    ) -> None:
        """Add a ROM.

        After a clock edge, `output` holds the row at the address of before the edge. Of the address
        the bits that number the rows count; past the end it reads the last row.

        Parameters
        ----------
        width : int
            Bits of a row.
        address : tuple of (Part or Fixed)
        output : str
            The net that shows the row.
        node : int, optional
            The node it belongs to.

        Raises
        ------
        ValueError
            If there is no row, a row does not fit into the width, the address is too short, or the
            net is driven already.
        """
        rows = tuple(int(row) for row in rows)
        if width < 1:
            raise ValueError(f"Rows of ROM {name} must have at least one bit, not {width}")
        if not rows:
            raise ValueError(f"ROM {name} must have at least one row, not none")
        for row in rows:
            if row < 0 or row >> width:
                raise ValueError(f"Rows of ROM {name} must be of {width} bits, not {row:#x}")
        parts = _low_parts(address, address_width(len(rows)))
        if sum(part.width for part in parts) < address_width(len(rows)):
            raise ValueError(
                f"Address of ROM {name} must have {address_width(len(rows))} bits, "
                f"not {sum(part.width for part in parts)}"
            )
        self._drive(output, width)
        ports = {"address": parts}, {"data": output}
        self._instances.append(Instance(name, ROM, Role.ROM, *ports, node, rows, width))

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


def _low_parts(parts: Parts, width: int) -> Parts:
    """The least significant bits of a value made of parts."""
    found: list[Part | Fixed] = []
    for part in parts:
        bits = min(part.width, width)
        if not bits:
            break
        if isinstance(part, Fixed):
            found.append(Fixed(part.value & ((1 << bits) - 1), bits))
        else:
            found.append(Part(part.net, part.start, bits))
        width -= bits
    return tuple(found)
