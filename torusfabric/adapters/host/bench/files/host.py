"""Driver of the host port in a cocotb test bench: words are written and read at host addresses."""

from collectives import Words, flit_of_beat, pack_beats
from direct_port import DirectPort, Place

__all__ = ["FabricPort"]


class FabricPort(DirectPort):
    """Driver that loads, runs and reads a fabric through its host port."""

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node, one beat at a time."""
        for node, words in enumerate(sent):
            for (part, beat), word in pack_beats(words, self.manifest).items():
                self.dut.host_we.value = 0
                await self.pause("host_node", "host_addr", "host_wdata")
                self.dut.host_we.value = 1
                self._drive_address("send_base", node, part, beat)
                self.dut.host_wdata.value = word
                await self.wait_for_edge()
        self.dut.host_we.value = 0

    async def read(self, places: list[Place]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""

        def drive_address(place: Place | None) -> None:
            if place is None:
                self.stalls.randomize_inputs("host_node", "host_addr")
            else:
                node, origin, flit = place
                self._drive_address("recv_base", node, origin, flit // self.manifest.get("beat", 1))

        words: list[int] = await self.request_words(
            places,
            latency=self.manifest["read_latency"],
            ask=drive_address,
            answer=lambda place: flit_of_beat(
                int(self.dut.host_rdata.value), place[2], self.manifest
            ),
        )
        return words

    def _drive_address(self, base: str, node: int, part: int, beat: int) -> None:
        """Drive the inputs `host_node` and `host_addr` for an access to one beat of a message.

        `base` is the entry of the manifest with the first address: "send_base" or "recv_base".
        `node` is the node, `part` the number of the message at the node, and `beat` that of the
        beat in the message.
        """
        self.dut.host_node.value = node
        self.dut.host_addr.value = self.manifest[base] + part * self.manifest["stride"] + beat
