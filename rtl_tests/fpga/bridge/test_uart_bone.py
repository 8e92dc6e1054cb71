# amaranth: UnusedElaboratable=no
"""The serial line and the UARTBone protocol in gateware, with a model of a bus."""

import random

import pytest
from amaranth.hdl import Module
from helpers import few, simulated

from torusfabric.errors import InputError
from torusfabric.fpga.bridge.gateware import UartReceiver, UartTransmitter, clock_divisor
from torusfabric.fpga.bridge.uart_bone import Command, UartBone

#: Cycles after which a command is dropped, at least.
TIMEOUT = 100

#: Bits of the address of a word.
ADDRESS = 10


class Memory:
    """A bus with a word at each address except the last, which answers with an error."""

    def __init__(self):
        self.words, self.accesses = {}, []

    def access(self, address, word, *, writing):
        """Perform an access; return the word that is read, or None for an error."""
        self.accesses.append((writing, address))
        if address == (1 << ADDRESS) - 1:
            return None
        if writing:
            self.words[address] = word
        return self.words.get(address, address)


def command(code, address, words=(), count=None):
    """The bytes of a command."""
    count = len(words) if count is None else count
    data = b"".join(word.to_bytes(4, "big") for word in words)
    return bytes([code, count % 256]) + address.to_bytes(4, "big") + data


def answers(parts, seed=1):
    """Send bytes at random pace with pauses in cycles; return the answered words and the bus."""
    dut, memory, rng, answered = UartBone(ADDRESS, TIMEOUT), Memory(), random.Random(seed), []

    async def cycle(ctx):
        if ctx.get(dut.wb_ack) or ctx.get(dut.wb_err):
            ctx.set(dut.wb_ack, 0)
            ctx.set(dut.wb_err, 0)
        elif ctx.get(dut.wb_cyc) and rng.random() < 0.5:
            assert ctx.get(dut.wb_stb)
            assert ctx.get(dut.wb_sel) == 15
            word = memory.access(
                ctx.get(dut.wb_adr), ctx.get(dut.wb_dat_w), writing=ctx.get(dut.wb_we)
            )
            ctx.set(dut.wb_ack, word is not None)
            ctx.set(dut.wb_err, word is None)
            ctx.set(dut.wb_dat_r, rng.getrandbits(32) if word is None else word)
        ctx.set(dut.answer.ready, rng.random() < 0.7)
        taken = ctx.get(dut.received.valid) and ctx.get(dut.received.ready)
        if ctx.get(dut.answer.valid) and ctx.get(dut.answer.ready):
            answered.append(ctx.get(dut.answer.payload))
        await ctx.tick()
        return taken

    async def testbench(ctx):
        for part in parts:
            if isinstance(part, int):
                for _ in range(part):
                    await cycle(ctx)
                continue
            for byte in part:
                for _ in range(rng.choice([0, 0, 1, 7])):
                    await cycle(ctx)
                ctx.set(dut.received.valid, 1)
                ctx.set(dut.received.payload, byte)
                while not await cycle(ctx):
                    pass
                ctx.set(dut.received.valid, 0)
        for _ in range(TIMEOUT // 2):
            await cycle(ctx)

    simulated(dut, testbench)
    words = [int.from_bytes(bytes(answered[k : k + 4]), "big") for k in range(0, len(answered), 4)]
    return words, memory


def test_words_are_written_and_read():
    """Addresses count up or stay, and the highest byte of a word comes first."""
    words, memory = answers([
        command(Command.WRITE, 5, [0x01020304, 0xFFEEDDCC]),
        command(Command.READ, 4, count=4), 100,
        command(Command.WRITE_FIXED, 9, [1, 2, 3]),
        command(Command.READ_FIXED, 9, count=2), 100,
    ])  # fmt: skip
    assert words == [4, 0x01020304, 0xFFEEDDCC, 7, 3, 3]
    assert memory.words == {5: 0x01020304, 6: 0xFFEEDDCC, 9: 3}
    assert memory.accesses[-5:] == [(1, 9)] * 3 + [(0, 9)] * 2


def test_256_words():
    """A length of 0 means 256 words."""
    words, _ = answers([command(Command.READ, 100, count=256), 9000])
    assert words == list(range(100, 356))
    _, memory = answers([command(Command.WRITE, 0, range(256))])
    assert memory.words == {k: k for k in range(256)}


def test_errors_of_the_bus():
    """A read that ends with an error gives ones; after an error the next command is accepted."""
    last = (1 << ADDRESS) - 1
    words, _ = answers([
        command(Command.READ, last, count=1), 40, command(Command.WRITE, last, [7]),
        command(Command.READ, 3, count=1), 40,
    ])  # fmt: skip
    assert words == [0xFFFFFFFF, 3]


@pytest.mark.parametrize("code", [0, 5, 0x69, 0xFF])
def test_bytes_that_are_no_command(code):
    """Bytes that are no command are dropped one by one."""
    words, _ = answers([bytes([code] * 3), command(Command.READ, 8, count=1), 40])
    assert words == [8]


WHOLE = command(Command.WRITE, 5, [0x11223344, 0x55667788])


@pytest.mark.parametrize("length", few(7, [*range(1, len(WHOLE))], tuples=True))
def test_torn_commands(length):
    """An incomplete command is dropped after its complete words are written."""
    words, memory = answers(
        [WHOLE[:length], 3 * TIMEOUT, command(Command.READ, 20, count=2), 60], seed=length
    )
    assert words == [20, 21]
    assert set(memory.words) == {address for address, end in ((5, 10), (6, 14)) if length >= end}


def test_slow_commands_are_not_dropped():
    """The timeout counts from the last byte, so that slow commands are not dropped."""
    parts = [part for byte in WHOLE for part in (bytes([byte]), TIMEOUT - 10)]
    _, memory = answers(parts)
    assert memory.words == {5: 0x11223344, 6: 0x55667788}


def test_any_bytes():
    """After random bytes and a pause, the bridge executes commands."""
    for seed in range(3):
        rng = random.Random(seed)
        noise = bytes(rng.choice([0, 1, 2, 2, 3, 4, rng.randrange(256)]) for _ in range(40))
        reads = command(Command.READ_FIXED, 33, count=1)
        words, _ = answers([noise, 3 * TIMEOUT + 256 * 40, reads, 60], seed)
        assert words[-1] == 33


@pytest.mark.parametrize("divisor", [4, 5, 13])
def test_serial_line(divisor):
    """The receiver gets the bytes of the transmitter, sent without a pause."""
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
    """A low pulse shorter than a start bit, and a byte without a stop bit, are no bytes."""
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
        clock_divisor(frequency, baud)
    assert clock_divisor(12e6, 115200) == 104
