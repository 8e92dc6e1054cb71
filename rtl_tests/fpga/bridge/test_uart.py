"""The serial line: what is sent is received, and nothing else."""

import pytest
from amaranth.hdl import Module
from helpers import simulated

from torusfabric.errors import InputError
from torusfabric.fpga.bridge.gateware import UartReceiver, UartTransmitter, divisor_for


@pytest.mark.parametrize("divisor", [4, 5, 13])
def test_serial_line(divisor):
    """What is sent is received, byte after byte without a pause."""
    m = Module()
    m.submodules.transmitter = transmitter = UartTransmitter(divisor)
    m.submodules.receiver = receiver = UartReceiver(divisor)
    m.d.comb += receiver.rx.eq(transmitter.tx)
    sent, received = [0x00, 0xFF, 0x55, 0xA3, 0x80, 0x01], []

    async def testbench(ctx):
        left = list(sent)
        ctx.set(receiver.data.ready, 1)
        for _ in range(11 * 10 * divisor):
            ctx.set(transmitter.data.valid, bool(left))
            ctx.set(transmitter.data.payload, left[0] if left else 0)
            _, _, ready, valid, byte = await ctx.tick().sample(
                transmitter.data.ready, receiver.data.valid, receiver.data.payload
            )
            if ready and left:
                left.pop(0)
            if valid:
                received.append(byte)

    simulated(m, testbench)
    assert received == sent


def test_receiver_is_not_fooled():
    """A low too short for a start bit is no byte, nor is one without a stop bit."""
    dut, bit = UartReceiver(8), 8

    async def testbench(ctx):
        for level, cycles in ((1, 20), (0, 2), (1, 10 * bit), (0, 10 * bit), (1, 12 * bit)):
            ctx.set(dut.rx, level)
            for _ in range(cycles):
                await ctx.tick()
                assert not ctx.get(dut.data.valid)

    simulated(dut, testbench)


@pytest.mark.parametrize(
    ("frequency", "baud"), [(12e6, 4_000_000), (12e6, 1_900_000), (1e4, 115200)]
)
def test_rate_that_cannot_be_made(frequency, baud):
    """A rate that the clock cannot make is refused."""
    with pytest.raises(InputError, match=rf"^Baud rate must be within 2 % .* not {baud}$"):
        divisor_for(frequency, baud)
    assert divisor_for(12e6, 115200) == 104
