# amaranth: UnusedElaboratable=no
"""Fabrics of broadcasts whose root is chosen anew for every run.

All nodes are the same module. A root unit, one for the whole fabric, subtracts the root from every
coordinate at the start; a node looks up what it does by the offset of its own coordinates.
"""

import numpy as np

from .base_fabric import Fabric
from .memories import address_width
from .netlist import Fixed, Part, Role
from .root_unit import RootedLocator, RootUnit
from .rooted_endpoint import RootedEndpoint
from .router import Router
from .sequencer import RoundSequencer

__all__ = ["RootedFabric"]


class RootedFabric(Fabric):
    """The fabric of a broadcast in rounds from any root."""

    known_by = "the root"

    def __init__(self, program, *, width, flits, top="host"):
        super().__init__(program, width=width, flits=flits, top=top)
        block = self.layout.block_flits
        self._bits = address_width(block)
        self._word_bits = address_width(int(program.base.durations(flits).max()))
        self._root = self.netlist.add_input("root", address_width(self.nodes))
        if top == "host":
            self._add_host(lambda: RootedLocator(program, block), self._bits)
        self._add_common()
        for node in range(self.nodes):
            self._add_node(node)
        self._add_status()

    def _add_common(self):
        """The sequencer, the root unit, and the modules of which all nodes are made."""
        net, program, block = self.netlist, self.program, self.layout.block_flits
        base, reach = program.base, int(program.base.hops.max())
        make = lambda: RoundSequencer(
            durations=base.durations(self.flits).tolist(),
            windows=[(base.message * block).tolist()],
            reach=reach,
            address_bits=self._bits,
            word_bits=self._word_bits,
            arrivals=program.arrivals,
        )
        self._add_sequencer_of(make, "read_address", self._bits)
        inputs = {"start": net.whole("start"), "busy": net.whole("busy"), "root": self._root}
        self._add_single("root_unit", lambda: RootUnit(program.topology), inputs,
                         role=Role.ROOT_UNIT)  # fmt: skip
        net.add_module("endpoint", self._endpoint, role=Role.ENDPOINT)
        lanes = int(program.lanes[0])
        make = lambda: Router(program.select[:, 0], lanes, self.width)
        net.add_module("router_0", make, role=Role.ROUTER)

    def _endpoint(self):
        return RootedEndpoint(
            self.program,
            block_flits=self.layout.block_flits,
            width=self.width,
            word_bits=self._word_bits,
            private=self.top == "core",
        )

    def _offset(self, node):
        """The offset of a node from the root: one coordinate after the other."""
        places = self.program.topology.coordinates(np.array([node]))[:, 0].tolist()
        names = [f"offset_{axis}_{place}" for axis, place in enumerate(places)]
        return tuple(Part(name, 0, self.netlist.nets[name]) for name in names)

    def _add_node(self, node):
        net, program = self.netlist, self.program
        module = self._endpoint()
        lanes = int(program.lanes[0])
        inputs = {name: net.whole(name) for name in ("word", "busy", "arrivals")}
        inputs |= {"rx": self._arriving(node), "offset": self._offset(node)}
        bus = self._bus if self.top == "host" else self._own
        net.add(
            f"endpoint_at_{node}",
            "endpoint",
            inputs=inputs | bus(module, node),
            outputs={
                "inject": (f"inject_{node}", len(module.inject)),
                "kind": (f"kind_{node}", len(module.kind)),
                "read_data": (self._read_net(node), self.width),
            },
            node=node,
        )
        net.add(
            f"router_at_{node}",
            "router_0",
            inputs={
                "setting": self._setting(node),
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": net.low(f"inject_{node}", max(lanes, 1) * self.width),
            },
            outputs={"tx": (f"tx_{node}", self.ports * self.width)},
            node=node,
        )

    def _setting(self, node):
        """The row of the router's ROM: round, and kind."""
        net, program = self.netlist, self.program
        bits = (program.settings_per_kind - 1).bit_length()
        setting = net.low("round", bits) if bits else ()
        if len(program.select) > program.settings_per_kind:
            setting += net.whole(f"kind_{node}")
        return setting or (Fixed(0, 1),)

    def _own(self, module, node):
        """Ports for one node: it writes what it would send, and reads what it has received."""
        members = module.signature.members
        names = ("write_chunk", "write_address", "write_data", "write_enable", "read_bank")
        ports = {n: self._node_input(node, n, members[n].shape) for n in names}
        ports["read_address"] = self._node_input(node, "read_address", self._bits)
        self.netlist.add_output(f"read_data_{node}", self.width, node=node)
        number = self._node(node)
        return ports | {"node": number, "write_node": number, "read_node": number}

    def places(self):
        """Where every node stores what it receives: [chunk, first address], the same everywhere."""
        chunks = range(self.program.schedule.chunks)
        return {"places": [[[chunk, 0] for chunk in chunks]] * self.nodes}
