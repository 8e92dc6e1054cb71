"""What all fabrics with a `start` pin have: clock, reset, and runs."""

from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

__all__ = ["DirectPort"]


class DirectPort:
    """Resets and runs a fabric; what an edge takes, or changes, is sampled before it."""

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.dut, self.manifest = dut, manifest
        Clock(dut.clk, 10, "ns").start()

    async def edge(self) -> None:
        """Wait for a rising edge of the clock."""
        await RisingEdge(self.dut.clk)

    async def reset(self) -> None:
        """Hold all inputs at 0, and reset."""
        ports = self.manifest["ports"].items()
        for name in (name for name, port in ports if port["direction"] == "input"):
            if name != "clk":
                getattr(self.dut, name).value = 0
        self.dut.rst.value = 1
        await self.edge()
        await self.edge()
        self.dut.rst.value = 0

    async def run(self, inputs: dict[str, int]) -> int:
        """Start, with what is chosen, and count the cycles until done."""
        there = {name: value for name, value in inputs.items() if name in self.manifest["ports"]}
        for name, value in {**there, "start": 1}.items():
            getattr(self.dut, name).value = value
        await self.edge()
        for name in (*there, "start"):
            getattr(self.dut, name).value = 0
        cycle = 0
        while True:
            self.drive(cycle)
            await self.edge()
            if self.dut.busy.value == 0:
                break
            self.sample(cycle)
            cycle += 1
        assert cycle > 0, "the fabric must be busy after its start"
        assert self.dut.done.value == 1, "the fabric must be done when it is no longer busy"
        assert int(self.dut.cycles.value) == cycle, "cycles must be those that were counted"
        return cycle

    def drive(self, cycle: int) -> None:
        """Give what counts in a cycle of a run; the one after the start is number 0."""

    def sample(self, cycle: int) -> None:
        """Take what there is in a cycle of a run."""
