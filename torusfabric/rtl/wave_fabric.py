# amaranth: UnusedElaboratable=no
"""Fabrics of oblivious schedules."""

from .base_fabric import Fabric
from .locator import WaveLocator
from .memories import address_width
from .netlist import Part, Role
from .sequencer import WaveSequencer
from .wave_endpoint import WaveEndpoint

__all__ = ["WaveFabric"]


class WaveFabric(Fabric):
    """The fabric of an oblivious schedule."""

    known_by = "position on the stream"

    def __init__(self, program, *, width, flits, top="host"):
        super().__init__(program, width=width, flits=flits, top=top)
        self._chunks, self._waves = program.schedule.chunks, self.layout.block_flits
        self._bits = address_width(self._waves * program.steps)
        if top == "host":
            self._add_host(lambda: WaveLocator(program, self._waves), self._bits)
            self._add_endpoints()
        else:
            self._add_streams()
        self._add_sequencer_of(
            lambda: WaveSequencer(steps=program.steps, waves=self._waves),
            "own_address",
            address_width(self._waves),
        )
        self._add_routers("setting", self._local)
        self._add_status()

    def _add_endpoints(self):
        net = self.netlist
        make = lambda: WaveEndpoint(
            ports=self.ports,
            chunks=self._chunks,
            waves=self._waves,
            steps=self.program.steps,
            width=self.width,
            nodes=self.nodes,
        )
        net.add_module("endpoint", make, role=Role.ENDPOINT)
        module = make()
        for node in range(self.nodes):
            inputs = {
                "rx": self._arriving(node),
                "rx_address": (Part("rx_address", 0, self._bits),),
                "rx_enable": (Part("rx_enable", 0, 1),),
                "tx_address": (Part("tx_address", 0, address_width(self._waves)),),
                "tx_enable": (Part("busy", 0, 1),),
            }
            net.add(
                f"endpoint_at_{node}",
                "endpoint",
                inputs=inputs | self._bus(module, node),
                outputs={
                    "inject": (f"inject_{node}", self._chunks * self.width),
                    "read_data": (self._read_net(node), self.width),
                },
                node=node,
            )

    def _add_streams(self):
        """Ports for every node: the words it sends, and those that arrive.

        A cycle after ``tx_address`` shows a number w, ``inject_N`` is the place for flit w of each
        chunk of node N. While ``rx_enable``, ``receive_N`` is what arrives at each in-port, and
        ``rx_address`` counts wave * steps + step - 1.
        """
        net = self.netlist
        for node in range(self.nodes):
            self._node_input(node, "inject", self._chunks * self.width)
            net.wire_output(f"receive_{node}", self._arriving(node), node=node)
        for name, width in (("tx_address", address_width(self._waves)), ("rx_enable", 1),
                            ("rx_address", self._bits)):  # fmt: skip
            net.add_output(name, width)

    def places(self):
        """Which block arrives where, for the user of a core: a dictionary of plain lists.

        ``arrivals[node][port][step - 1]`` is [origin, chunk], or null where it is nothing new: a
        block has one place at a node, where it arrives first.
        """
        arrivals, blocks = self.program.arrivals(), self.program.blocks
        names = [blocks.name(block) for block in range(blocks.count)] + [None]
        return {
            "arrivals": [[[names[k] for k in row] for row in node] for node in arrivals.tolist()]
        }

    def _local(self, node, lanes):
        chunks = self.program.lane_chunk[node].tolist()[: max(lanes, 1)]
        return tuple(Part(f"inject_{node}", max(c, 0) * self.width, self.width) for c in chunks)
