"""Netlists: which module instances make up a fabric, and how they are connected.

A `Netlist` is a plain value. `Assembly` makes an Amaranth design of it, the `verilog` room writes
it as structural Verilog, and the compiled engine evaluates it directly; in all of them every module
appears once, however many instances it has.

What an instance is for is its role, not its name. Shape and data are apart: modules say what there
is, and what differs between nodes of one shape is the contents of ROMs, which are instances of the
one module `ROM` wherever they stand.
"""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .memories import address_width
from .modules import Leaf

__all__ = ["ROM", "Fixed", "Instance", "Leaf", "Netlist", "NodePort", "Part", "Parts", "Role"]

#: The name of the one module of all ROMs.
ROM = "rom"


class Role(enum.Enum):
    """What the instances of a module are for; the value is the label in reports."""

    ROUTER = "router"
    COMBINER = "operators"
    ENDPOINT = "endpoint"
    ROM = "settings"
    SEQUENCER = "sequencer"
    CONTROL = "control tree"
    HOST = "host"
    READ_TREE = "read tree"
    ROOT_UNIT = "root unit"
    BUS = "bus"
    STREAM = "streams"
    OTHER = "other"


@dataclass(frozen=True)
class Part:
    """Bits ``start`` to ``start + width - 1`` of a net."""

    net: str
    start: int
    width: int


@dataclass(frozen=True)
class Fixed:
    """A constant."""

    value: int
    width: int


#: What drives an input: least significant part first.
Parts = tuple[Part | Fixed, ...]


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
