"""Netlists: which module instances make up a fabric, and how they are connected.

A `Netlist` is a plain value with two readers: `Assembly` makes an Amaranth design of it, for
simulation, and the `verilog` room writes it as structural Verilog, in which every module appears
once however many instances it has.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from amaranth.hdl import Cat, ClockDomain, Const, DomainRenamer, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Assembly", "Fixed", "Instance", "Leaf", "Netlist", "Part"]


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


@dataclass(frozen=True)
class Instance:
    """An instance of a module.

    Parameters
    ----------
    name : str
    module : str
    inputs : dict of str to tuple of (Part or Fixed)
        What drives each input, least significant part first.
    outputs : dict of str to str
        The net that each output drives.
    node : int or None
        The node it belongs to.
    """

    name: str
    module: str
    inputs: dict[str, tuple[Part | Fixed, ...]]
    outputs: dict[str, str]
    node: int | None


@dataclass
class Netlist:
    """Instances of modules, and the nets between them.

    Parameters
    ----------
    inputs, outputs : dict of str to int
        The ports of the whole, each with its width; a port is a net of the same name.
    modules : dict of str to function of () -> Leaf
        How to make each module.
    nets : dict of str to int
        The width of every net, ports included.
    instances : list of Instance
    wired : dict of str to tuple of Part
        Outputs that no instance drives by itself, and the bits of nets they are made of.
    """

    inputs: dict[str, int] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    modules: dict[str, Callable[[], "Leaf"]] = field(default_factory=dict)
    nets: dict[str, int] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    wired: dict[str, tuple[Part, ...]] = field(default_factory=dict)

    def add_input(self, name, width=1):
        """Declare an input of the whole; returns all of it."""
        self.inputs[name] = self.nets[name] = width
        return self.whole(name)

    def add_output(self, name, width=1):
        """Declare an output of the whole; some instance must drive the net of this name."""
        self.outputs[name] = self.nets[name] = width

    def wire_output(self, name, parts):
        """Declare an output made of bits of nets."""
        self.add_output(name, sum(part.width for part in parts))
        self.wired[name] = parts

    def add_module(self, name, make):
        """Declare a module."""
        self.modules[name] = make

    def whole(self, net):
        """All bits of a net."""
        return (Part(net, 0, self.nets[net]),)

    def low(self, net, width):
        """The least significant bits of a net."""
        return (Part(net, 0, width),)

    def words(self, net, width):
        """A net as words of so many bits, each a part."""
        return [Part(net, start, width) for start in range(0, self.nets[net], width)]

    def add(self, name, module, *, inputs, outputs, node=None):
        """Add an instance.

        Parameters
        ----------
        name, module : str
        inputs : dict of str to tuple of (Part or Fixed)
        outputs : dict of str to (str, int)
            The net that each output drives, and its width.
        node : int, optional
            The node it belongs to.
        """
        for net, width in outputs.values():
            self.nets[net] = width
        nets = {port: net for port, (net, _) in outputs.items()}
        self.instances.append(Instance(name, module, inputs, nets, node))


class Leaf(wiring.Component):
    """A module of a netlist.

    On its own it has the ports of its signature. Inside an `Assembly` its inputs are bound to what
    drives them, so that the simulator has no wires between instances to evaluate: `value` and
    `words` give what drives an input in either case.
    """

    def __init__(self, signature):
        self._bound = {}
        super().__init__(signature)

    def bind(self, name, parts):
        """Let an input be driven by the concatenation of values."""
        self._bound[name] = parts

    def value(self, name):
        """What drives an input."""
        if name not in self._bound:
            return getattr(self, name)
        parts = self._bound[name]
        return parts[0] if len(parts) == 1 else Cat(*parts)

    @property
    def alone(self):
        """Whether the module stands by itself, for its text to be written."""
        return not self._bound

    def words(self, name, width):
        """What drives an input, as words of so many bits."""
        parts = self._bound.get(name)
        if parts is not None and all(len(part) == width for part in parts):
            return list(parts)
        whole = self.value(name)
        return [whole[start : start + width] for start in range(0, len(whole), width)]


class Assembly(wiring.Component):
    """The Amaranth design of a netlist.

    Parameters
    ----------
    netlist : Netlist
    gated : bool
        For simulation: give every node a clock of its own, which whoever drives the design may
        leave still while the node is not concerned. All clocks that run at all run in step.

    Attributes
    ----------
    leaves : dict of str to Leaf
        Every instance by name.
    domains : dict of (int or None) to ClockDomain
        Where gated, the clock of every node, and, for None, that of everything else.
    """

    def __init__(self, netlist, *, gated=False):
        self._netlist = netlist
        super().__init__(
            {name: In(width) for name, width in netlist.inputs.items()}
            | {name: Out(width) for name, width in netlist.outputs.items()}
        )
        self.leaves = {}
        self.domains = {}
        if gated:
            nodes = sorted({i.node for i in netlist.instances if i.node is not None})
            self.domains = {None: ClockDomain("sync")}
            self.domains |= {node: ClockDomain(f"node_{node}") for node in nodes}
        self._nets = {name: getattr(self, name) for name in netlist.inputs}
        for instance in netlist.instances:
            leaf = self.leaves[instance.name] = netlist.modules[instance.module]()
            for port, net in instance.outputs.items():
                self._nets[net] = getattr(leaf, port)
        for instance in netlist.instances:
            for port, parts in instance.inputs.items():
                self.leaves[instance.name].bind(port, [self._part(part) for part in parts])

    def net(self, name) -> Signal:
        """The signal of a net."""
        return self._nets[name]

    def _part(self, part):
        if isinstance(part, Fixed):
            return Const(part.value, part.width)
        net = self._nets[part.net]
        whole = part.start == 0 and part.width == len(net)
        return net if whole else net[part.start : part.start + part.width]

    def elaborate(self, platform):
        m = Module()
        for node, domain in self.domains.items():
            m.domains += domain
            if node is not None:
                m.d.comb += domain.rst.eq(self.domains[None].rst)
        for instance in self._netlist.instances:
            leaf = self.leaves[instance.name]
            gate = self.domains and instance.node is not None
            m.submodules[instance.name] = (
                DomainRenamer(f"node_{instance.node}")(leaf) if gate else leaf
            )
        for name in self._netlist.outputs:
            parts = self._netlist.wired.get(name)
            driver = Cat(*map(self._part, parts)) if parts else self._nets[name]
            m.d.comb += getattr(self, name).eq(driver)
        return m
