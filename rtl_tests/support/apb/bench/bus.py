"""APB4 master of the bench: one access after another, with pauses between."""

from cocotb.triggers import RisingEdge

__all__ = ["Bus"]


class Bus:
    """Driver that reads and writes bus words."""

    cycles_of_an_access = 8

    def __init__(self, dut, stalls):
        self.dut, self.stalls = dut, stalls

    def end_cycle(self):
        """End the access."""
        self.dut.psel.value = self.dut.penable.value = 0

    async def read(self, address):
        """Read a word of the bus."""
        return await self._access(address, 0, write=0)

    async def write(self, address, word):
        """Write a word of the bus."""
        await self._access(address, word, write=1)

    async def _access(self, address, word, *, write):
        dut = self.dut
        while self.stalls.needs_pause():
            self.stalls.randomize_inputs("pwrite", "paddr", "pwdata")
            await RisingEdge(dut.clk)
        dut.psel.value, dut.pwrite.value = 1, write
        dut.paddr.value, dut.pwdata.value = address, word
        await RisingEdge(dut.clk)
        dut.penable.value = 1
        await RisingEdge(dut.clk)
        while not dut.pready.value:
            await RisingEdge(dut.clk)
        assert dut.pslverr.value == 0, f"the access to {address:#x} must not be refused"
        self.end_cycle()
        return int(dut.prdata.value)
