"""Driver of the pins of Tiny Tapeout: commands of a strobe, a code and a byte."""

from typing import Any

from collectives import Words, flit_of_beat, pack_beats
from direct_port import DirectPort, Place

__all__ = ["FabricPort"]

#: Codes of the commands: take a byte, write a word, start a run.
TAKE, WRITE, START = range(3)

#: Edges from a change of a pin until the fabric sees it, with one to spare.
PIN_EDGES = 4

#: Bits of the pins `uio_out` that show the state of the run.
BUSY, DONE = 6, 7


class FabricPort(DirectPort):
    """Driver that loads, runs and reads a fabric through the pins of Tiny Tapeout."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        super().__init__(dut, manifest)
        ports = manifest["ports"].items()
        commands = ("clk", "rst", "start", "host_we")
        #: Bits of each input that commands need, the highest first.
        self.fields = {name: port["width"] for name, port in ports
                       if port["direction"] == "input" and name not in commands}  # fmt: skip
        self.n_bytes = -(-sum(self.fields.values()) // 8)
        self.values = dict.fromkeys(self.fields, 0)
        self.cycles_of_a_word = 2.0 * PIN_EDGES * (self.n_bytes + 1) + manifest["read_latency"]

    async def wait_for_edges(self, count: int) -> None:
        """Wait for some rising edges of the clock."""
        for _ in range(count):
            await self.wait_for_edge()

    async def reset(self) -> None:
        """Reset the fabric, with all pins at 0."""
        for pin in ("ui_in", "uio_in", "rst_n"):
            getattr(self.dut, pin).value = 0
        self.dut.ena.value = 1
        await self.wait_for_edges(PIN_EDGES)
        self.dut.rst_n.value = 1
        await self.wait_for_edges(PIN_EDGES)

    async def execute_command(self, code: int) -> None:
        """Execute a command: drive its code, then raise and lower the strobe."""
        await self.pause()
        for strobe in (0, 1, 0):
            self.dut.uio_in.value = code << 1 | strobe
            await self.wait_for_edges(PIN_EDGES if strobe else 1)

    async def set_inputs(self, **values: int) -> None:
        """Give the fabric its inputs: command 0 takes all bytes but the last, which stays."""
        self.values |= values
        number = 0
        for name, width in self.fields.items():
            number = number << width | self.values[name]
        for k in reversed(range(self.n_bytes)):
            self.dut.ui_in.value = number >> 8 * k & 255
            if k:
                await self.execute_command(TAKE)

    async def load(self, sent: list[Words]) -> None:
        """Write the message of each node, one beat at a time."""
        for node, words in enumerate(sent):
            for place, word in pack_beats(words, self.manifest).items():
                await self.set_inputs(
                    **self._address_inputs("send_base", node, *place), host_wdata=word
                )
                await self.execute_command(WRITE)

    async def run(self, inputs: dict[str, int]) -> int:
        """Run and return the cycles in which the pin `busy` is high."""
        await self.set_inputs(**{name: inputs[name] for name in inputs if name in self.fields})
        # A run that is started while a word is on its way to the node would wait for it.
        await self.wait_for_edges(self.manifest["write_latency"])
        self.dut.uio_in.value = START << 1 | 1
        cycles = edges = 0
        while not cycles or self._state_bit(BUSY):
            await self.wait_for_edge()
            cycles += self._state_bit(BUSY)
            edges += 1
            assert cycles or edges <= 2 * PIN_EDGES, "the fabric must be busy after its start"
        assert self._state_bit(DONE), "the fabric must be done when it is no longer busy"
        self.dut.uio_in.value = START << 1
        await self.wait_for_edges(PIN_EDGES)
        return cycles

    async def read(self, places: list[Place]) -> list[int]:
        """Read received flits, each given as (node, origin, number of the flit)."""
        size, beat = self.manifest["ports"]["host_rdata"]["width"], self.manifest.get("beat", 1)
        words = []
        for node, origin, flit in places:
            await self.set_inputs(**self._address_inputs("recv_base", node, origin, flit // beat))
            await self.wait_for_edges(self.manifest["read_latency"])
            word = 0
            for k in range(-(-size // 8)):
                self.dut.uio_in.value = k << 1
                await self.wait_for_edge()
                word |= int(self.dut.uo_out.value) << 8 * k
            words.append(flit_of_beat(word, flit, self.manifest))
        return words

    def _state_bit(self, bit: int) -> int:
        """Return a bit of the state of the run at the pins."""
        return int(self.dut.uio_out.value) >> bit & 1

    def _address_inputs(self, base: str, node: int, part: int, beat: int) -> dict[str, int]:
        """Return the inputs for an access to one beat of a message.

        `base` is the entry of the manifest with the first address: "send_base" or "recv_base".
        `node` is the node, `part` the number of the message at the node, and `beat` that of the
        beat in the message.
        """
        address = self.manifest[base] + part * self.manifest["stride"] + beat
        return {"host_node": node, "host_addr": address}
