# amaranth: UnusedElaboratable=no
"""Fabrics: routers, endpoints, links and a sequencer, with or without a host port."""

from ..errors import InputError
from ..program import WaveProgram
from .host import RADIX, Host, HostMap, ReadMux, mux_levels
from .locator import TableLocator, WaveLocator
from .memories import address_width
from .netlist import Fixed, Netlist, Part
from .round_endpoint import RoundEndpoint
from .router import Router
from .sequencer import RoundSequencer, WaveSequencer
from .wave_endpoint import WaveEndpoint

__all__ = ["Fabric", "RoundFabric", "WaveFabric", "build_fabric"]

#: The widest flit.
MAX_WIDTH = 1024


class Fabric:
    """The hardware of a switch program, as a netlist.

    Parameters
    ----------
    program : SwitchProgram
    width : int
        Bits of a flit.
    flits : int
        Flits of a message.

    Attributes
    ----------
    netlist : Netlist
    layout : HostMap
    read_latency : int
        Edges from an address on the host port to its data.
    """

    def __init__(self, program, *, width, flits):
        self.program, self.width, self.flits = program, width, flits
        self.layout = HostMap(program, flits)
        self.nodes, self.ports = program.topology.nodes, program.ports
        self.netlist = Netlist()
        self.netlist.add_input("start")

    @property
    def cycles(self):
        """Clock edges from the start pulse to done."""
        return self.program.cycles(self.flits)

    def _node(self, node):
        """The number of a node as a constant."""
        return (Fixed(node, address_width(self.nodes)),)

    def _arriving(self, node):
        """The words at a node's in-ports: slices of what its neighbours send."""
        topology, width = self.program.topology, self.width
        sent = zip(topology.neighbours[node].tolist(), topology.opposite.tolist(), strict=True)
        return tuple(Part(f"tx_{there}", port * width, width) for there, port in sent)

    def _add_routers(self, setting):
        """One router a node, one module a router class."""
        net, program = self.netlist, self.program
        for number, lanes in enumerate(program.lanes.tolist()):
            select = program.select[:, number]
            net.add_module(f"router_{number}",
                           lambda s=select, n=lanes: Router(s, n, self.width))  # fmt: skip
        for node, number in enumerate(program.node_class.tolist()):
            inputs = {
                "setting": net.whole(setting),
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": self._local(node, int(program.lanes[number])),
            }
            net.add(f"router_at_{node}", f"router_{number}", inputs=inputs, node=node,
                    outputs={"tx": (f"tx_{node}", self.ports * self.width)})  # fmt: skip

    def _local(self, node, lanes):
        """The words that enter a router from its own node."""
        raise NotImplementedError

    def _add_host(self, locator, address_bits):
        """The host port, and the tree that brings read data to it."""
        net, layout = self.netlist, self.layout
        bits = {"host_we": 1, "host_node": address_width(self.nodes),
                "host_addr": layout.address_bits, "host_wdata": self.width}  # fmt: skip
        inputs = {name: net.add_input(name, width) for name, width in bits.items()}
        make = lambda: Host(layout, locator(), self.width, address_bits)  # noqa: E731
        net.add_module("host", make)
        host = make()
        self.read_latency = host.read_latency
        outputs = {
            name: (name, len(getattr(host, name)))
            for name, member in host.signature.members.items()
            if member.flow.name == "Out"
        }
        net.add("host_port", "host", inputs=inputs, outputs=outputs)
        self._add_read_tree()
        net.add_output("host_rdata", self.width)

    def _add_status(self):
        """The outputs that tell how a run is going."""
        for name, width in (("busy", 1), ("done", 1), ("cycles", 32)):
            self.netlist.add_output(name, width)

    def _read_net(self, node):
        """The net of the word read at a node."""
        return f"read_data_{node}" if self.nodes > 1 else "host_rdata"

    def _bus(self, module, node):
        """What every endpoint gets from the host; only as many bits as it has."""
        members = module.signature.members
        names = ("write_node", "write_chunk", "write_address", "write_data", "write_enable",
                 "read_node", "read_bank", "read_address")  # fmt: skip
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
                net.add_module(f"read_mux_{size}", lambda n=size: ReadMux(n, width))
                name = f"read_{level}_{number}" if level < len(levels) - 1 else "host_rdata"
                inputs = {"select": net.whole(f"select_{level}"), "data": tuple(group)}
                net.add(f"read_mux_{level}_{number}", f"read_mux_{size}",
                        inputs=inputs, outputs={"word": (name, width)})  # fmt: skip
                words.append(Part(name, 0, width))
            assert len(words) == count


class WaveFabric(Fabric):
    """The fabric of an oblivious schedule."""

    def __init__(self, program, *, width, flits):
        super().__init__(program, width=width, flits=flits)
        net, waves, steps = self.netlist, self.layout.block_flits, program.steps
        self._chunks = program.schedule.chunks
        bits = address_width(waves * steps)
        self._add_host(lambda: WaveLocator(program, waves), bits)
        net.add_module("sequencer", lambda: WaveSequencer(steps=steps, waves=waves))
        net.add("sequencer_at", "sequencer",
                inputs={"start": net.whole("start"), "idle_address": net.whole("own_address")},
                outputs={"busy": ("busy", 1), "done": ("done", 1), "cycles": ("cycles", 32),
                         "setting": ("setting", 1), "rx_enable": ("rx_enable", 1),
                         "tx_address": ("tx_address", address_width(waves)),
                         "rx_address": ("rx_address", bits)})  # fmt: skip
        make = lambda: WaveEndpoint(  # noqa: E731
            ports=self.ports, chunks=self._chunks, waves=waves, steps=steps, width=width,
            nodes=self.nodes,
        )  # fmt: skip
        net.add_module("endpoint", make)
        module = make()
        for node in range(self.nodes):
            inputs = {
                "rx": self._arriving(node),
                "rx_address": net.whole("rx_address"),
                "rx_enable": net.whole("rx_enable"),
                "tx_address": net.whole("tx_address"),
                "tx_enable": net.whole("busy"),
            }
            net.add(f"endpoint_at_{node}", "endpoint", inputs=inputs | self._bus(module, node),
                    outputs={"inject": (f"inject_{node}", self._chunks * width),
                             "read_data": (self._read_net(node), width)},
                    node=node)  # fmt: skip
        self._add_routers("setting")
        self._add_status()

    def _local(self, node, lanes):
        chunks = self.program.lane_chunk[node].tolist()[: max(lanes, 1)]
        return tuple(Part(f"inject_{node}", max(c, 0) * self.width, self.width) for c in chunks)


class RoundFabric(Fabric):
    """The fabric of a schedule in rounds."""

    def __init__(self, program, *, width, flits):
        super().__init__(program, width=width, flits=flits)
        net, block = self.netlist, self.layout.block_flits
        deepest = max(max(endpoint.depth) for endpoint in program.endpoints) * block
        self._bits = address_width(deepest)
        self._word_bits = max(self._bits, address_width(int(program.durations(flits).max())))
        self._reach = int(program.hops.max())
        self._add_host(lambda: TableLocator(program, block), self._bits)
        self._add_sequencer()
        self._add_endpoints()
        self._add_routers("round")
        self._add_status()

    def _add_sequencer(self):
        net, program = self.netlist, self.program
        make = lambda: RoundSequencer(  # noqa: E731
            durations=program.durations(self.flits).tolist(),
            messages=(program.message * self.layout.block_flits).tolist(),
            reach=self._reach, address_bits=self._bits, word_bits=self._word_bits,
        )  # fmt: skip
        net.add_module("sequencer", make)
        net.add("sequencer_at", "sequencer",
                inputs={"start": net.whole("start"), "idle_address": net.whole("read_address")},
                outputs={"busy": ("busy", 1), "done": ("done", 1), "cycles": ("cycles", 32),
                         "round": ("round", address_width(program.rounds)),
                         "word": ("word", self._word_bits),
                         "phase": ("phase", self._reach + 2)})  # fmt: skip

    def _endpoint(self, number):
        """The endpoint of a class."""
        program = self.program
        members = program.endpoint_class == number
        return RoundEndpoint(
            endpoint=program.endpoints[number], messages=program.message.tolist(),
            viewed=sorted(set(program.bank[members][program.slot[members] >= 0].tolist())),
            flits=self.layout.block_flits, width=self.width, nodes=self.nodes,
            address_bits=self._bits, word_bits=self._word_bits, reach=self._reach,
        )  # fmt: skip

    def _add_endpoints(self):
        net, program = self.netlist, self.program
        modules = [self._endpoint(number) for number in range(len(program.endpoints))]
        for number in range(len(modules)):
            net.add_module(f"endpoint_{number}", lambda n=number: self._endpoint(n))
        for node, number in enumerate(program.endpoint_class.tolist()):
            module = modules[number]
            inputs = {name: net.whole(name) for name in ("round", "phase", "word", "busy")}
            inputs["rx"] = self._arriving(node)
            net.add(f"endpoint_at_{node}", f"endpoint_{number}",
                    inputs=inputs | self._bus(module, node),
                    outputs={"inject": (f"inject_{node}", len(module.inject)),
                             "read_data": (self._read_net(node), self.width)},
                    node=node)  # fmt: skip

    def _local(self, node, lanes):
        words = self.netlist.words(f"inject_{node}", self.width)
        return tuple(words[: max(lanes, 1)])


def build_fabric(program, *, width=32, flits=None, top="host"):
    """The hardware of a switch program.

    Parameters
    ----------
    program : SwitchProgram
    width : int
        Bits of a flit, 1 to 1024.
    flits : int, optional
        Flits of a message; by default one for each chunk.

    Returns
    -------
    Fabric

    Raises
    ------
    InputError
        If the width is out of range, or a message cannot be cut into equal chunks.
    """
    if not 1 <= width <= MAX_WIDTH:
        raise InputError(f"Width must be from 1 to {MAX_WIDTH} bits, not {width}")
    flits = program.schedule.chunks if flits is None else flits
    program.block_flits(flits)
    kind = WaveFabric if isinstance(program, WaveProgram) else RoundFabric
    return kind(program, width=width, flits=flits)
