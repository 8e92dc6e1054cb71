"""Building netlists: instance by instance, and net by net."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .memories import address_width
from .modules import Leaf
from .netlist import ROM, Fixed, Instance, Netlist, NodePort, Part, Parts, Role

__all__ = ["NetlistBuilder"]


class NetlistBuilder:
    """Takes the parts of a netlist.

    Attributes
    ----------
    inputs, outputs, nets : dict of str to int
        As of the `Netlist`, so far.

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

    def enclose(self) -> tuple[dict[str, int], dict[str, int]]:
        """Make the ports of the whole inner nets, for further instances to drive and to read.

        Returns
        -------
        inputs, outputs : dict of str to int
            What they were, each with its width; the inputs are left without a driver.
        """
        inputs, outputs = self.inputs, self.outputs
        self.inputs, self.outputs, self._node_ports = {}, {}, {}
        self._driven -= inputs.keys()
        return inputs, outputs

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
