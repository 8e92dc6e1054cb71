"""Wishbone master for a cocotb test bench, with random pauses between accesses."""

from typing import Any

from cocotb.triggers import RisingEdge
from stalls import Stalls

__all__ = ["Bus"]


class Bus:
    """Bus master that reads and writes single words, one after another."""

    #: Approximate cycles of an access with its pauses.
    cycles_of_an_access = 8

    def __init__(self, dut: Any, stalls: Stalls) -> None:
        self.dut, self.stalls = dut, stalls

    def end_cycle(self) -> None:
        """End the current bus cycle."""
        self.dut.wb_cyc.value = self.dut.wb_stb.value = 0

    async def read(self, address: int) -> int:
        """Read the word of 32 bits at the byte address `address`."""
        return await self._run_access(address, write=False)

    async def write(self, address: int, word: int) -> None:
        """Write a word of 32 bits at the byte address `address`."""
        await self._run_access(address, word, write=True)

    async def _run_access(self, address: int, word: int = 0, *, write: bool) -> int:
        dut = self.dut
        while self.stalls.needs_pause():
            self.stalls.randomize_inputs("wb_we", "wb_sel", "wb_adr", "wb_dat_w")
            await RisingEdge(dut.clk)
        dut.wb_cyc.value = dut.wb_stb.value = 1
        dut.wb_we.value, dut.wb_sel.value = int(write), 0xF
        dut.wb_adr.value, dut.wb_dat_w.value = address // 4, word
        while True:
            await RisingEdge(dut.clk)
            assert dut.wb_err.value == 0, f"the access to {address:#x} must not be refused"
            if dut.wb_ack.value == 1:
                break
        self.end_cycle()
        return int(dut.wb_dat_r.value)
