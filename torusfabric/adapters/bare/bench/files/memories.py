"""Driver of a core with memory ports at the nodes, in a cocotb test bench."""

import json
from pathlib import Path
from typing import Any

from collectives import Words, by_beats, of_beat
from direct_port import DirectPort, Place

__all__ = ["FabricPort"]


class FabricPort(DirectPort):
    """Driver that loads, runs and reads a core, at the addresses in its address map."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        super().__init__(dut, manifest)
        self.form, self.beat = manifest["memories"], manifest.get("beat", 1)
        file = Path(__file__).parents[1] / self.form["address_map"]
        self.address_map = json.loads(file.read_text())

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node, each beat at the address of its first flit."""
        for node, words in enumerate(sent):
            for (part, beat), word in by_beats(words, self.manifest).items():
                place = self._place("sent", node, part, beat * self.beat)
                if place is None:
                    continue  # this node does not send the block
                self._set("write_enable", node, 0)
                await self.pause(*self._names(node, "write_bank", "write_address", "write_data"))
                self._set("write_enable", node, 1)
                self._set("write_bank", node, place[0])
                self._set("write_address", node, place[1])
                self._set("write_data", node, word)
                await self.edge()
            self._set("write_enable", node, 0)

    async def read(self, places: list[Place]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""

        def ask(place: Place | None) -> None:
            if place is None:
                self.stalls.scramble(*self._names(0, "read_bank", "read_address"))
                return
            node, origin, flit = place
            bank_and_address = self._place("received", node, origin, flit - flit % self.beat)
            assert bank_and_address, f"flit {flit} from {origin} must have a place at node {node}"
            self._set("read_bank", node, bank_and_address[0])
            self._set("read_address", node, bank_and_address[1])

        words: list[int] = await self.answers(
            places,
            latency=self.form["read_latency"],
            ask=ask,
            answer=lambda place: of_beat(
                int(getattr(self.dut, f"read_data_{place[0]}").value), place[2], self.manifest
            ),
        )
        return words

    def _names(self, node: int, *ports: str) -> list[str]:
        """Return the names of those ports of a node that exist."""
        return [f"{port}_{node}" for port in ports if f"{port}_{node}" in self.manifest["ports"]]

    def _set(self, port: str, node: int, value: int) -> None:
        """Drive a port of a node, if the port exists."""
        for name in self._names(node, port):
            getattr(self.dut, name).value = value

    def _place(self, which: str, node: int, part: int, flit: int) -> tuple[int, int] | None:
        """Return memory and address of a flit, or None if the node does not store its block."""
        chunk, within = divmod(flit, self.form["block_flits"])
        block = self.address_map[which][node][part * self.form["part_chunks"] + chunk]
        return block and (block[0], block[1] + within)
