"""Assemblies: netlists as Amaranth designs, for simulation in Amaranth and as submodules.

A *leaf* is a module of which a netlist has instances (`torusfabric.rtl.modules.Leaf`). Emitted
Verilog and the compiled engine, our fast simulator, do not use assemblies. For ROMs, emitted
Verilog has the module in ``rom.v``, and the compiled engine has its own loop; `Rom` here is the
Amaranth form.
"""

from collections.abc import Sequence

from amaranth.hdl import Cat, ClockDomain, Const, DomainRenamer, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .memories import address_width, make_rom_and_port
from .modules import Leaf
from .netlist import Constant, Instance, Netlist, Part, Role

__all__ = ["Assembly"]


class Rom(Leaf):
    """A synchronous ROM: `data` is the row at the address of the cycle before.

    Parameters
    ----------
    contents : sequence of int
        The rows. An address past the end reads the last row.
    width : int
        Bits of a row.

    Members
    -------
    address : In
        The address of the row.
    data : Out(width)
        The row, in a register that starts as 0 and is not reset.
    """

    def __init__(self, contents: Sequence[int], width: int) -> None:
        bits = address_width(len(contents))
        super().__init__({"address": In(bits), "data": Out(width)})
        rows = [*contents, *[contents[-1]] * ((1 << bits) - len(contents))]
        self._memory, self._port = make_rom_and_port("rows", rows, width)
        self.data = self._port.data

    def elaborate(self, platform: object) -> Module:
        """Return the Amaranth module: a memory whose read port has the address."""
        m = Module()
        m.submodules.rows = self._memory
        # The address signal of the port is replaced, rather than assigned, so that the simulator
        # has nothing to evaluate.
        self._port.addr = self.input_value("address")
        return m


class Assembly(wiring.Component):
    """The Amaranth design of a netlist.

    Parameters
    ----------
    netlist : Netlist
        The instances to connect.
    gated : bool
        True to give each node its own clock, for simulation. The testbench may stop the clock of a
        node that has nothing to do. All running clocks are in step.

    Attributes
    ----------
    leaves : dict of str to Leaf
        Each instance by its name.
    domains : dict of (int or None) to ClockDomain
        If gated, the clock of each node, and under None the clock of all other modules. Otherwise
        empty.
    """

    def __init__(self, netlist: Netlist, *, gated: bool = False) -> None:
        self._netlist, self._defined_above = netlist, False
        super().__init__(
            {name: In(width) for name, width in netlist.inputs.items()}
            | {name: Out(width) for name, width in netlist.outputs.items()}
        )
        self.leaves: dict[str, Leaf] = {}
        self.domains: dict[int | None, ClockDomain] = {}
        if gated:
            nodes = sorted({i.node for i in netlist.instances if i.node is not None})
            self.domains[None] = ClockDomain("sync")
            self.domains |= {node: ClockDomain(f"node_{node}") for node in nodes}
        self._nets = {name: getattr(self, name) for name in netlist.inputs}
        for instance in netlist.instances:
            leaf = self.leaves[instance.name] = _make_leaf(netlist, instance)
            for port, net in instance.outputs.items():
                self._nets[net] = getattr(leaf, port)
        for instance in netlist.instances:
            for port, parts in instance.inputs.items():
                self.leaves[instance.name].bind_input(
                    port, [self._part_value(part) for part in parts]
                )

    def signal_of_net(self, name: str) -> Signal:
        """Return the Amaranth signal of a net.

        Parameters
        ----------
        name : str
            The name of an input of the netlist, or of a net that an output of a leaf drives.
        """
        return self._nets[name]

    def define_domains(self, m: Module) -> None:
        """Define the clocks of the nodes in a design that contains this assembly.

        By default the assembly defines them itself.
        """
        self._defined_above = True
        self._define_domains(m)

    def _define_domains(self, m: Module) -> None:
        for node, domain in self.domains.items():
            m.domains += domain
            if node is not None:
                m.d.comb += domain.rst.eq(self.domains[None].rst)

    def _part_value(self, part: Part | Constant) -> Value:
        if isinstance(part, Constant):
            return Const(part.value, part.width)
        net = self._nets[part.net]
        whole = part.start == 0 and part.width == len(net)
        return net if whole else net[part.start : part.start + part.width]

    def elaborate(self, platform: object) -> Module:
        """Return the design: all instances, with their outputs connected to the ports."""
        m = Module()
        if not self._defined_above:
            self._define_domains(m)
        for instance in self._netlist.instances:
            leaf = self.leaves[instance.name]
            gate = self.domains and instance.node is not None
            m.submodules[instance.name] = (
                DomainRenamer(f"node_{instance.node}")(leaf) if gate else leaf
            )
        for name in self._netlist.outputs:
            parts = self._netlist.wired.get(name)
            driver = Cat(*map(self._part_value, parts)) if parts else self._nets[name]
            m.d.comb += getattr(self, name).eq(driver)
        return m


def _make_leaf(netlist: Netlist, instance: Instance) -> Leaf:
    """Return a new leaf for an instance, made by the constructor of its module in `netlist`."""
    if instance.role is Role.ROM:
        return Rom(instance.contents, instance.width)
    return netlist.modules[instance.module]()
