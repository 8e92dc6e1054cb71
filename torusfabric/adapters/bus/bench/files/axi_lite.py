"""AXI4-Lite master for a cocotb test bench, with random pauses in all channels."""

import logging
from typing import Any

from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from stalls import Stalls

__all__ = ["Bus"]


class Bus:
    """Bus master that reads and writes single words, by `cocotbext.axi`."""

    #: Approximate cycles of an access with its pauses.
    cycles_of_an_access = 18

    def __init__(self, dut: Any, stalls: Stalls) -> None:
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        reads, writes = self.master.read_if, self.master.write_if
        for side in (reads, writes):
            side.log.setLevel(logging.WARNING)  # by default every access is logged
        for channel in (reads.ar_channel, reads.r_channel,
                        writes.aw_channel, writes.w_channel, writes.b_channel):  # fmt: skip
            channel.set_pause_generator(stalls.pause_generator())

    def end_cycle(self) -> None:
        """Do nothing: with AXI4-Lite, no access is left open that would have to be ended."""

    async def read(self, address: int) -> int:
        """Read the word of 32 bits at the byte address `address`."""
        answer = await self.master.read(address, 4)
        assert answer.resp == AxiResp.OKAY, f"the read of {address:#x} must not be refused"
        return int.from_bytes(answer.data, "little")

    async def write(self, address: int, word: int) -> None:
        """Write a word of 32 bits at the byte address `address`."""
        answer = await self.master.write(address, word.to_bytes(4, "little"))
        assert answer.resp == AxiResp.OKAY, f"the write of {address:#x} must not be refused"
