"""A cocotb bench of random accesses to the Verilog of a fabric behind a bus, for `make_bench`."""

import itertools
import json
import logging
import os
import random
from pathlib import Path

import cocotb
from bus_scenario import BusScenario
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

MANIFEST = json.loads(Path.cwd().with_name("manifest.json").read_text())

#: Repeating patterns of pauses of a channel; 1 is a pause.
PACES = ([0], [1, 0], [0, 0, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0, 1])


class AxiLite:
    """The master of cocotbext-axi, with a different pace of each channel."""

    def __init__(self, dut, generator):
        self.dut = dut
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        write, read = self.master.write_if, self.master.read_if
        for side in (write, read):
            side.log.setLevel(logging.WARNING)
        channels = (write.aw_channel, write.w_channel, write.b_channel, read.ar_channel,
                    read.r_channel)  # fmt: skip
        for channel in channels:
            channel.set_pause_generator(itertools.cycle(generator.choice(PACES)))

    async def read(self, address):
        answer = await with_timeout(self.master.read(address, 4), 10, "us")
        assert answer.resp in (AxiResp.OKAY, AxiResp.SLVERR)
        return int.from_bytes(answer.data, "little") if answer.resp == AxiResp.OKAY else None

    async def write(self, address, word, strobes):
        data = word.to_bytes(4, "little")
        first, last = _run(strobes)
        if strobes not in (0b0001, 0b1100, 0b0111, 0b1111):
            return True  # the master writes bytes that follow one another, and at least one
        answer = await with_timeout(self.master.write(address + first, data[first:last]), 10, "us")
        assert answer.resp in (AxiResp.OKAY, AxiResp.SLVERR)
        return answer.resp == AxiResp.OKAY

    async def wait(self, cycles):
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)

    async def irq(self):
        return int(self.dut.irq.value)


def _run(strobes):
    """Return the number of the first written byte, and of the byte behind the last."""
    bits = [k for k in range(4) if strobes >> k & 1]
    return (bits[0], bits[-1] + 1) if bits else (0, 0)


@cocotb.test()
async def random_accesses(dut):
    """Run the whole scenario."""
    generator = random.Random(int(os.environ.get("SEED") or 1))
    Clock(dut.clk, 10, "ns").start()
    bus = AxiLite(dut, generator)
    dut.rst.value = 1
    await bus.wait(3)
    dut.rst.value = 0
    await bus.wait(2)
    await BusScenario(bus, MANIFEST, generator.getrandbits(16)).run()
