# amaranth: UnusedElaboratable=no
"""What all fabrics have in common: routers, links, the host port and its read tree."""

from amaranth.lib.wiring import Out

from .host import RADIX, Host, HostMap, ReadMux, mux_levels
from .memories import address_width
from .netlist import Fixed, Netlist, Part, Role
from .origins import Origins, tag_cost
from .router import Router

__all__ = ["Fabric"]


class Fabric:
    """The hardware of a switch program, as a netlist.

    Parameters
    ----------
    program : SwitchProgram
    width : int
        Bits of a flit.
    flits : int
        Flits of a message.
    top : str
        ``host``: one memory-mapped port serves all nodes, or ``core``: every node has ports of its
        own, for building into a larger design.

    Attributes
    ----------
    netlist : Netlist
    layout : HostMap
    read_latency : int
        Edges from an address on the host port to its data.
    write_delay : int
        Edges beyond two that a write takes; runs begin as much later.
    """

    write_delay = 0

    #: What tells whose block a word belongs to.
    known_by = "round and place"

    def __init__(self, program, *, width, flits, top="host"):
        self.program, self.width, self.flits, self.top = program, width, flits, top
        self.layout = HostMap(program, flits)
        self.nodes, self.ports = program.topology.nodes, program.ports
        self.netlist = Netlist()
        self.read_latency = 0
        self._locators: list = []
        self.netlist.add_input("start")

    @property
    def cycles(self):
        """Clock edges from the start pulse to done."""
        return self.program.cycles(self.flits)

    def places(self):
        """Where every node stores what, for the user of a core: plain lists."""
        raise NotImplementedError

    @property
    def origins(self):
        """How origins are known, and what that costs: `Origins`."""
        rom_bits = sum(make().rom_bits() for make in self._locators)
        return Origins(self.known_by, rom_bits, *tag_cost(self.program))

    def _node(self, node):
        """The number of a node as a constant."""
        return (Fixed(node, address_width(self.nodes)),)

    def _node_input(self, node, name, width):
        """An input of the whole that belongs to a node."""
        return self.netlist.add_input(f"{name}_{node}", width, node=node)

    def _arriving(self, node):
        """The words at a node's in-ports: slices of what its neighbours send."""
        topology, width = self.program.topology, self.width
        sent = zip(topology.neighbours[node].tolist(), topology.opposite.tolist(), strict=True)
        return tuple(Part(f"tx_{there}", port * width, width) for there, port in sent)

    def _add_routers(self, setting, local):
        """One router a node, one module a router class.

        Parameters
        ----------
        setting : str
            The net that says which row of its ROM a router follows.
        local : function of (node, lanes) -> tuple of Part
            The words that enter a router from its own node.
        """
        net, program = self.netlist, self.program
        for number, lanes in enumerate(program.lanes.tolist()):
            select = program.select[:, number]
            make = lambda s=select, n=lanes: Router(s, n, self.width)
            net.add_module(f"router_{number}", make, role=Role.ROUTER)
        for node, number in enumerate(program.node_class.tolist()):
            inputs = {
                "setting": net.whole(setting),
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": local(node, int(program.lanes[number])),
            }
            net.add(
                f"router_at_{node}",
                f"router_{number}",
                inputs=inputs,
                node=node,
                outputs={"tx": (f"tx_{node}", self.ports * self.width)},
            )

    def _add_host(self, locator, address_bits, write_locator=None):
        """The host port, and the tree that brings read data to it."""
        net, layout = self.netlist, self.layout
        self._locators = [make for make in (locator, write_locator) if make]
        bits = {
            "host_we": 1,
            "host_node": address_width(self.nodes),
            "host_addr": layout.address_bits,
            "host_wdata": self.width,
        }
        inputs = {name: net.add_input(name, width) for name, width in bits.items()}
        make = lambda: Host(
            layout, locator(), self.width, address_bits, write_locator and write_locator()
        )
        self.read_latency = make().read_latency
        self._add_single("host", make, inputs, role=Role.HOST, instance="host_port")
        self._add_read_tree()
        net.add_output("host_rdata", self.width)

    def _add_single(self, name, make, inputs, *, role, instance=None,
                    rename=lambda member: member):  # fmt: skip
        """A module of which there is one; its outputs are nets, of their own names or others."""
        self.netlist.add_module(name, make, role=role)
        leaf = make()
        outputs = {
            member: (rename(member), len(getattr(leaf, member)))
            for member, flow in leaf.signature.members.items()
            if flow.flow is Out
        }
        self.netlist.add(instance or f"{name}_at", name, inputs=inputs, outputs=outputs)

    def _add_sequencer_of(self, make, idle, bits, rename=lambda member: member):
        """The sequencer; at rest it passes on an address of so many bits that the host reads."""
        net = self.netlist
        address = net.low(idle, bits) if self.top == "host" else (Fixed(0, bits),)
        inputs = {"start": net.whole("start"), "idle_address": address}
        self._add_single("sequencer", make, inputs, role=Role.SEQUENCER, rename=rename)

    def _add_status(self):
        """The outputs that tell how a run is going."""
        for name, width in (("busy", 1), ("done", 1), ("cycles", 32)):
            self.netlist.add_output(name, width)

    def _read_net(self, node):
        """The net of the word read at a node."""
        alone = self.nodes == 1 and self.top == "host"
        return "host_rdata" if alone else f"read_data_{node}"

    def _bus(self, module, node):
        """What every endpoint gets from the host; only as many bits as it has."""
        members = module.signature.members
        names = (
            "write_node",
            "write_chunk",
            "write_address",
            "write_data",
            "write_enable",
            "read_node",
            "read_bank",
            "read_address",
        )
        bus = {n: self.netlist.low(n, members[n].shape) for n in names if n in members}
        return bus | {"node": self._node(node)}

    def _add_read_tree(self):
        """Multiplexers that bring the word read at a node to `host_rdata`, level by level."""
        net, width = self.netlist, self.width
        words = [Part(self._read_net(node), 0, width) for node in range(self.nodes)]
        levels = mux_levels(self.nodes)
        for level, count in enumerate(levels):
            groups = [words[start : start + RADIX] for start in range(0, len(words), RADIX)]
            words = []
            for number, group in enumerate(groups):
                size = len(group)
                make = lambda n=size: ReadMux(n, width)
                net.add_module(f"read_mux_{size}", make, role=Role.READ_MUX)
                name = f"read_{level}_{number}" if level < len(levels) - 1 else "host_rdata"
                inputs = {"select": net.whole(f"select_{level}"), "data": tuple(group)}
                net.add(
                    f"read_mux_{level}_{number}",
                    f"read_mux_{size}",
                    inputs=inputs,
                    outputs={"word": (name, width)},
                )
                words.append(Part(name, 0, width))
            assert len(words) == count
