"""Driver of a core with memory ports at the nodes, in a cocotb test bench."""

import json
from pathlib import Path
from typing import Any

from collectives import Words, flit_of_beat, pack_beats
from direct_port import DirectPort, Place

__all__ = ["FabricPort"]


class FabricPort(DirectPort):
    """Driver that writes messages, starts runs and reads words, at addresses of the address map."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        super().__init__(dut, manifest)
        self.form, self.beat = manifest["memories"], manifest.get("beat", 1)
        file = Path(__file__).parents[1] / self.form["address_map"]
        self.address_map = json.loads(file.read_text())

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node, each beat at the address of its first flit."""
        for node, words in enumerate(sent):
            for (part, beat), word in pack_beats(words, self.manifest).items():
                place = self._locate_flit("sent", node, part, beat * self.beat)
                if place is None:
                    continue  # this node does not send the block
                self._drive_port("write_enable", node, 0)
                await self.pause(
                    *self._existing_ports(node, "write_bank", "write_address", "write_data")
                )
                self._drive_port("write_enable", node, 1)
                self._drive_port("write_bank", node, place[0])
                self._drive_port("write_address", node, place[1])
                self._drive_port("write_data", node, word)
                await self.wait_for_edge()
            self._drive_port("write_enable", node, 0)

    async def read(self, places: list[Place]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""

        def drive_address(place: Place | None) -> None:
            if place is None:
                self.stalls.randomize_inputs(*self._existing_ports(0, "read_bank", "read_address"))
                return
            node, origin, flit = place
            bank_and_address = self._locate_flit("received", node, origin, flit - flit % self.beat)
            assert bank_and_address, f"flit {flit} from {origin} must have a place at node {node}"
            self._drive_port("read_bank", node, bank_and_address[0])
            self._drive_port("read_address", node, bank_and_address[1])

        words: list[int] = await self.request_words(
            places,
            latency=self.form["read_latency"],
            ask=drive_address,
            answer=lambda place: flit_of_beat(
                int(getattr(self.dut, f"read_data_{place[0]}").value), place[2], self.manifest
            ),
        )
        return words

    def _existing_ports(self, node: int, *ports: str) -> list[str]:
        """Return the names of those ports of a node that exist."""
        return [f"{port}_{node}" for port in ports if f"{port}_{node}" in self.manifest["ports"]]

    def _drive_port(self, port: str, node: int, value: int) -> None:
        """Drive a port of a node with `value`, if the port exists.

        `port` is its name without the node number.
        """
        for name in self._existing_ports(node, port):
            getattr(self.dut, name).value = value

    def _locate_flit(self, which: str, node: int, part: int, flit: int) -> tuple[int, int] | None:
        """Return memory and address of a flit, or None if the node does not store its block.

        The address map, a file beside the Verilog, has the memory and first address of each block.
        `which` selects one of its two parts: "sent" or "received". `part` is the number of a
        message at the node, and `flit` counts the flits of this message.
        """
        chunk, within = divmod(flit, self.form["block_flits"])
        block = self.address_map[which][node][part * self.form["part_chunks"] + chunk]
        return block and (block[0], block[1] + within)
