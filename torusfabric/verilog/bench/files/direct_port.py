"""The basis of all ports of the bench: clock, reset, runs, and reads with a fixed latency."""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from stalls import Stalls

__all__ = ["DirectPort", "Place"]

#: Node, origin, and number of a flit.
Place: TypeAlias = tuple[int, int, int]


class DirectPort:
    """The part of the bench that resets and runs a fabric, common to all kinds of ports.

    All signals are sampled before the clock edge.

    Parameters
    ----------
    dut : cocotb handle
        The fabric.
    manifest : dict
        Manifest of the fabric.
    """

    #: Average cycles in which a word is written or read, by which the bench chooses its samples.
    cycles_of_a_word = 1.5

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.manifest = dut, manifest
        self.stalls = Stalls(dut, manifest)
        Clock(dut.clk, 10, "ns").start()

    async def wait_for_edge(self) -> None:
        """Wait for a rising edge of the clock."""
        await RisingEdge(self.dut.clk)

    async def pause(self, *unused: str) -> None:
        """Wait for a random number of cycles, with random values on the inputs in `unused`."""
        while self.stalls.needs_pause():
            self.stalls.randomize_inputs(*unused)
            await self.wait_for_edge()

    async def reset(self) -> None:
        """Reset the fabric, with all inputs at 0."""
        ports = self.manifest["ports"].items()
        for name in (name for name, port in ports if port["direction"] == "input"):
            if name != "clk":
                getattr(self.dut, name).value = 0
        self.dut.rst.value = 1
        await self.wait_for_edge()
        await self.wait_for_edge()
        self.dut.rst.value = 0

    async def start(self, inputs: dict[str, int]) -> None:
        """Start a run, with the values of its inputs."""
        chosen = [name for name in inputs if name in self.manifest["ports"]]
        await self.pause(*chosen)
        for name in chosen:
            getattr(self.dut, name).value = inputs[name]
        self.dut.start.value = 1
        await self.wait_for_edge()
        self.dut.start.value = 0
        self.stalls.randomize_inputs(*chosen)

    async def run(self, inputs: dict[str, int]) -> int:
        """Run and return the cycles until done.

        Words that were written just before the start may still be on their way. The run then begins
        when they have arrived.
        """
        await self.start(inputs)
        cycle = 0
        while True:
            self.drive_inputs(cycle)
            await self.wait_for_edge()
            if self.dut.busy.value == 0:
                break
            self.sample_outputs(cycle)
            cycle += 1
        assert cycle > 0, "the fabric must be busy after its start"
        assert self.dut.done.value == 1, "the fabric must be done when it is no longer busy"
        cycles = int(self.dut.cycles.value)
        held = cycle - cycles
        assert 0 <= held <= self.manifest.get("write_latency", 0), "cycles must be those counted"
        return cycles

    def drive_inputs(self, cycle: int) -> None:
        """Set the inputs for a cycle of a run. Cycle 0 follows the start. The default sets none."""

    def sample_outputs(self, cycle: int) -> None:
        """Sample the outputs of a cycle of a run. The default samples none."""

    async def request_words(
        self,
        places: list[Place],
        *,
        latency: int,
        ask: Callable[[Place | None], None],
        answer: Callable[[Place], int],
    ) -> list[int]:
        """Return the words at some places; one request a cycle at most, and none in a pause.

        Parameters
        ----------
        places : list of (node, origin, flit)
            Words to read.
        latency : int
            Clock edges from a request to its answer.
        ask : function of place or None
            Sets the inputs that request a word, or none.
        answer : function of place -> int
            Returns the word on the outputs.
        """
        waiting, words = deque(places), list[int]()
        asked: deque[Place | None] = deque([None] * latency)
        while len(words) < len(places):
            place = waiting.popleft() if waiting and not self.stalls.needs_pause() else None
            ask(place)
            asked.append(place)
            await self.wait_for_edge()
            answered = asked.popleft()
            if answered is not None:
                words.append(answer(answered))
        return words
