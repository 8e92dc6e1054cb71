"""Driver of a core without memories in a cocotb test bench.

Words are injected, and received, in the cycles that the manifest states.
"""

import json
from pathlib import Path
from typing import Any

from collectives import Words, groups_of_axes
from direct_port import DirectPort, Place

__all__ = ["FabricPort"]


class FabricPort(DirectPort):
    """Driver that sends words into a core while it runs, and records the words that arrive."""

    cycles_of_a_word = 0  # words need no cycles besides those of the run

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        super().__init__(dut, manifest)
        self.form = manifest["streams"]
        file = Path(__file__).parents[1] / self.form["address_map"]
        self.arrivals = json.loads(file.read_text())["arrivals"]
        self.sent: list[Words] = []
        self.received: dict[Place, int] = {}

    async def load(self, sent: list[Words]) -> None:
        """Store the messages for `drive_inputs`; a node's own message counts as received."""
        (mode,) = self.manifest["modes"]
        self.sent, self.received = sent, {}
        for nodes in groups_of_axes(
            self.manifest["topology"], self.manifest["nodes"], mode["axes"]
        ):
            for position, node in enumerate(nodes):
                for (_, flit), word in sent[node].items():
                    self.received[node, position, flit] = word

    def drive_inputs(self, cycle: int) -> None:
        """Drive the words that nodes send in a cycle; random words in cycles without a flit."""
        flit, wait = divmod(cycle - self.form["inject_cycle"], self.form["steps"])
        if wait or not 0 <= flit < self.form["block_flits"]:
            self.stalls.randomize_inputs(*(f"inject_{node}" for node in range(len(self.sent))))
            return
        for node, words in enumerate(self.sent):
            side_by_side = [
                words.get((0, self._flit_number(c, flit)), 0) for c in self.form["inject"]
            ]
            getattr(self.dut, f"inject_{node}").value = self._concatenate(side_by_side)

    def sample_outputs(self, cycle: int) -> None:
        """Record the words that arrive in a cycle."""
        flit, step = divmod(cycle - self.form["receive_cycle"], self.form["steps"])
        if not 0 <= flit < self.form["block_flits"]:
            return
        width = self.manifest["width"]
        for node, arrivals in enumerate(self.arrivals):
            words = getattr(self.dut, f"receive_{node}").value
            for port, blocks in enumerate(arrivals):
                if blocks[step] is None:
                    continue
                origin, chunk = blocks[step]
                number = self._flit_number(chunk, flit)
                if number < self.form["part_flits"]:
                    word = words[width * (port + 1) - 1 : width * port]
                    self.received[node, origin, number] = int(word)

    async def read(self, places: list[Place]) -> list[int]:
        """Return recorded flits, each given as (node, origin, number of the flit)."""
        return [self.received[place] for place in places]

    def _flit_number(self, chunk: int, flit: int) -> int:
        """Return the number of a flit in its message, given its chunk and number in the chunk."""
        return int(chunk * self.form["block_flits"] + flit)

    def _concatenate(self, words: list[int]) -> int:
        """Return the concatenation of words, the first in the lowest bits."""
        return sum(word << self.manifest["width"] * k for k, word in enumerate(words))
