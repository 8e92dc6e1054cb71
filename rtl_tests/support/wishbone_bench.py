"""A cocotb bench of random accesses to a fabric on the Wishbone bus of a SoC."""

import json
import os
import random
from pathlib import Path

import cocotb
from bus_scenario import BusScenario
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

#: Cycles without an answer after which an access fails.
PATIENCE = 300


class Wishbone:
    """A master outside the SoC, with the fabric at the address `origin`."""

    def __init__(self, dut, origin):
        self.dut, self.origin = dut, origin

    async def read(self, address):
        return await self._access(address, we=0, strobes=0xF)

    async def write(self, address, word, strobes):
        return await self._access(address, we=1, word=word, strobes=strobes) is not None

    async def wait(self, cycles):
        for _ in range(cycles):
            await FallingEdge(self.dut.clk)

    async def irq(self):
        return int(self.dut.irq.value)

    async def _access(self, address, *, we, strobes, word=0):
        dut = self.dut
        dut.host_cyc.value = dut.host_stb.value = 1
        dut.host_we.value, dut.host_sel.value, dut.host_dat_w.value = we, strobes, word
        dut.host_adr.value = (self.origin + address) // 4
        for _ in range(PATIENCE):
            await FallingEdge(dut.clk)
            if dut.host_ack.value == 1 or dut.host_err.value == 1:
                break
        else:
            raise AssertionError(f"no answer at {address:#x}")
        answer = None if dut.host_err.value == 1 else int(dut.host_dat_r.value)
        await FallingEdge(dut.clk)
        dut.host_cyc.value = dut.host_stb.value = 0
        return answer


@cocotb.test()
async def random_accesses(dut):
    """Run the whole scenario, after accesses to another slave."""
    Clock(dut.clk, 10, "ns").start()
    for name in ("cyc", "stb", "cti", "bte"):
        getattr(dut, f"host_{name}").value = 0
    dut.rst.value = 1
    bus = Wishbone(dut, 0)
    await bus.wait(3)
    dut.rst.value = 0
    assert await bus.write(0x1000_0000, 0x1234, 0xF)
    assert await bus.read(0x1000_0000) == 0x1234
    manifest = json.loads(Path(os.environ["MANIFEST"]).read_text())
    bus = Wishbone(dut, int(os.environ["ORIGIN"], 0))
    await BusScenario(bus, manifest, random.Random(3).getrandbits(16)).run()
