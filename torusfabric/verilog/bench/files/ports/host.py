"""The fabric behind its host port: loaded and read by addresses."""

from collectives import Words
from direct_port import DirectPort

__all__ = ["FabricPort"]


class FabricPort(DirectPort):
    """Loads, runs and reads a fabric with a host port."""

    async def load(self, sent: list[Words]) -> None:
        """Write what each node sends, by part and flit."""
        base, stride = self.manifest["send_base"], self.manifest["stride"]
        self.dut.host_we.value = 1
        for node, words in enumerate(sent):
            for (part, flit), word in words.items():
                self.dut.host_node.value = node
                self.dut.host_addr.value = base + part * stride + flit
                self.dut.host_wdata.value = word
                await self.edge()
        self.dut.host_we.value = 0

    async def read(self, places: list[tuple[int, int, int]]) -> list[int]:
        """Read flits by node, origin and number, one an edge."""
        base, stride = self.manifest["recv_base"], self.manifest["stride"]
        latency, words = self.manifest["read_latency"], []
        for number in range(len(places) + latency):
            if number < len(places):
                node, origin, flit = places[number]
                self.dut.host_node.value = node
                self.dut.host_addr.value = base + origin * stride + flit
            await self.edge()
            if number >= latency:
                words.append(int(self.dut.host_rdata.value))
        return words
