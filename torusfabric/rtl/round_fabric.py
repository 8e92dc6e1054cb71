# amaranth: UnusedElaboratable=no
"""Fabrics of schedules in rounds."""

import numpy as np

from ..program import OWN
from .base_fabric import Fabric
from .crossbar import plan_crossbar
from .locator import TableLocator
from .memories import address_width
from .netlist import Role
from .round_endpoint import RoundEndpoint
from .router import RoundRouter
from .sequencer import RoundSequencer

__all__ = ["RoundFabric"]


class RoundFabric(Fabric):
    """The fabric of a schedule in rounds."""

    def __init__(self, program, *, width, flits, top="host"):
        super().__init__(program, width=width, flits=flits, top=top)
        block = self.layout.block_flits
        deepest = max(max(endpoint.depth) for endpoint in program.endpoints) * block
        self._bits = address_width(deepest)
        self._word_bits = max(self._bits, address_width(int(program.durations(flits).max())))
        self._reach = int(program.hops.max())
        if top == "host":
            self._add_host(lambda: TableLocator(program, block), self._bits)
        self._add_sequencer()
        self._add_endpoints()
        self._add_round_routers()
        self._add_status()

    def _add_sequencer(self):
        program = self.program
        make = lambda: RoundSequencer(
            durations=program.durations(self.flits).tolist(),
            windows=self._windows(),
            reach=self._reach,
            address_bits=self._bits,
            word_bits=self._word_bits,
        )
        self._add_sequencer_of(make, "read_address", self._bits)

    def _windows(self):
        """Flits of the k-th longest message of each round, for every k; 0 where there is none."""
        block, lengths = self.layout.block_flits, self.program.lengths
        return [
            [row[k] * block if k < len(row) else 0 for row in lengths]
            for k in range(max(map(len, lengths)))
        ]

    def _endpoint(self, number):
        """The endpoint of a class."""
        program = self.program
        members = program.endpoint_class == number
        return RoundEndpoint(
            endpoint=program.endpoints[number],
            lengths=program.lengths,
            viewed=sorted(set(program.bank[members][program.slot[members] >= 0].tolist())),
            flits=self.layout.block_flits,
            width=self.width,
            nodes=self.nodes,
            address_bits=self._bits,
            word_bits=self._word_bits,
            reach=self._reach,
            private=self.top == "core",
            operator=getattr(program, "operator", None),
        )

    def _add_endpoints(self):
        net, program, host = self.netlist, self.program, self.top == "host"
        modules = [self._endpoint(number) for number in range(len(program.endpoints))]
        for number in range(len(modules)):
            make = lambda n=number: self._endpoint(n)
            net.add_module(f"endpoint_{number}", make, role=Role.ENDPOINT)
        for node, number in enumerate(program.endpoint_class.tolist()):
            module = modules[number]
            inputs = {name: net.whole(name) for name in ("round", "phase", "word", "busy")}
            inputs["rx"] = self._arriving(node)
            bus = (self._bus if host else self._own)(module, node)
            if host:
                bus["read_bank"] = net.low("next_bank", module.signature.members["read_bank"].shape)
            net.add(
                f"endpoint_at_{node}",
                f"endpoint_{number}",
                inputs=inputs | bus,
                outputs={
                    "inject": (f"inject_{node}", len(module.inject)),
                    "read_data": (self._read_net(node), self.width),
                },
                node=node,
            )

    def _own(self, module, node):
        """Ports for one node: it writes its send memory, and reads its banks."""
        members = module.signature.members
        names = ("write_address", "write_data", "write_enable", "read_bank", "read_address")
        ports = {n: self._node_input(node, n, members[n].shape) for n in names}
        self.netlist.add_output(f"read_data_{node}", self.width, node=node)
        number = self._node(node)
        return ports | {"node": number, "write_node": number, "read_node": number}

    def places(self):
        """Where every node stores what it receives, for the user of a core: plain lists.

        ``places[node][k]`` is [bank, first address] of the k-th block of the node's receive memory
        as a host would see it (by origin, then chunk), or null where it receives none. The bank of
        what a node itself sends is numbered after those of the in-ports.
        """
        program, block = self.program, self.layout.block_flits
        bank = np.where(program.bank == OWN, self.ports, program.bank)
        rows = np.stack([bank, program.slot * block], axis=-1).tolist()
        return {
            "places": [[place if place[1] >= 0 else None for place in row] for row in rows],
        }

    def _add_round_routers(self):
        """One router a node, one module a shape; what the nodes select is in their ROMs."""
        net, program = self.netlist, self.program
        settings = {}
        for shape, (lanes, members) in enumerate(self._router_shapes().items()):
            crossbar = plan_crossbar(np.concatenate([program.select[:, k] for k in members]))
            make = lambda c=crossbar, n=lanes[0]: RoundRouter(c, lanes=n, width=self.width)
            net.add_module(f"router_{shape}", make, role=Role.ROUTER)
            rows, count = crossbar.rows, len(program.select)
            for place, number in enumerate(members):
                settings[number] = (shape, crossbar, rows[place * count :][:count])
        for node, number in enumerate(program.node_class.tolist()):
            shape, crossbar, rows = settings[number]
            bits = crossbar.rom.shape[1]
            inputs = {
                "enable": net.whole("busy"),
                "rx": self._arriving(node),
                "inject": self._local(node, int(program.lanes[number])),
            }
            if bits:
                net.add_rom(f"settings_at_{node}", rows=rows, width=bits,
                            address=net.whole("round"), output=f"settings_{node}",
                            node=node)  # fmt: skip
                inputs["select"] = net.whole(f"settings_{node}")
            net.add(
                f"router_at_{node}",
                f"router_{shape}",
                inputs=inputs,
                node=node,
                outputs={"tx": (f"tx_{node}", self.ports * self.width)},
            )

    def _router_shapes(self):
        """Router classes by the number of lanes and what each out-port can select."""
        shapes: dict[tuple, list[int]] = {}
        for number, lanes in enumerate(self.program.lanes.tolist()):
            columns = self.program.select[:, number].T.tolist()
            sources = tuple(frozenset(s for s in column if s >= 0) for column in columns)
            shapes.setdefault((lanes, sources), []).append(number)
        return shapes

    def _local(self, node, lanes):
        words = self.netlist.words(f"inject_{node}", self.width)
        return tuple(words[: max(lanes, 1)])
