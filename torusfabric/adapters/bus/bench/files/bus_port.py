"""Driver of a fabric behind a bus in a cocotb test bench, by registers and windows."""

from typing import Any

from bus import Bus
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from collectives import Words, flit_of_beat, pack_beats
from stalls import Stalls

__all__ = ["FabricPort"]


class FabricPort:
    """Driver that loads, runs and reads a fabric by its registers and windows."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.manifest, self.facts = dut, manifest, manifest["bus"]
        self.stalls = Stalls(dut, manifest)
        self.beat: int = manifest.get("beat", 1)
        self.ends_runs = "abort" in self.facts["registers"].get("abort", {}).get("fields", ())
        self.parts = range(-(-manifest["width"] * self.beat // 32))
        self.bus = Bus(dut, self.stalls)
        self.cycles_of_a_word = self.bus.cycles_of_an_access * len(self.parts)
        Clock(dut.clk, 10, "ns").start()

    async def reset(self) -> None:
        """Reset the fabric with the bus idle, then enable the interrupt."""
        self.bus.end_cycle()
        self.dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)
        await self.write_register("interrupt_enable", 1)

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node, beat by beat, the low word of a beat first."""
        for node, words in enumerate(sent):
            for (part, beat), word in pack_beats(words, self.manifest).items():
                address = self._byte_address("send", node, part, beat)
                for k in self.parts:
                    await self.bus.write(address + 4 * k, word >> 32 * k & 0xFFFFFFFF)

    async def run(self, inputs: dict[str, int]) -> int:
        """Start a run, wait for the interrupt, and return the cycles of the run."""
        await self.start(inputs)
        await self.await_interrupt()
        return await self.read_register("cycles")

    async def abort(self, inputs: dict[str, int], after: int) -> None:
        """Start a run, and write to `abort` some cycles later, even if the run is over by then."""
        await self.start(inputs)
        for _ in range(after):
            await RisingEdge(self.dut.clk)
        await self.write_register("abort", 1)
        assert await self.read_register("status") & 3 == 0, "a run must end when it is aborted"
        await self.write_register("interrupt_pending", 1)

    async def start(self, inputs: dict[str, int]) -> None:
        """Write the choices of a run (mode, length, root, operation), and start it."""
        for name in inputs.keys() & self.facts["registers"].keys():
            await self.write_register(name, inputs[name])
        await self.write_register("start", 1)

    async def await_interrupt(self) -> None:
        """Wait for the interrupt, and clear it."""
        while self.dut.irq.value == 0:
            await RisingEdge(self.dut.clk)
        await self.write_register("interrupt_pending", 1)
        assert self.dut.irq.value == 0, "the interrupt must go when it is cleared"

    async def read(self, places: list[tuple[int, int, int]]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""
        words = []
        for node, origin, flit in places:
            address = self._byte_address("receive", node, origin, flit // self.beat)
            parts = [await self.bus.read(address + 4 * k) for k in self.parts]
            word = sum(part << 32 * k for k, part in enumerate(parts))
            words.append(flit_of_beat(word, flit, self.manifest))
        return words

    async def read_register(self, name: str) -> int:
        """Read a register."""
        return int(await self.bus.read(self.facts["registers"][name]["offset"]))

    async def write_register(self, name: str, value: int) -> None:
        """Write a register."""
        await self.bus.write(self.facts["registers"][name]["offset"], value)

    def _byte_address(self, window: str, node: int, part: int, beat: int) -> int:
        """Return the bus address, in bytes, of the lowest 32 bits of a beat.

        `window` is the name of a window, and `part` the number of a message at the node. `beat`
        counts the beats of this message.
        """
        place, number = self.facts["windows"][window], part * self.manifest["stride"] + beat
        return int(place["offset"] + node * place["stride"] + number * place["flit_bytes"])
