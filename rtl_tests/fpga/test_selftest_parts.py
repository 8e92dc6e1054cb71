# amaranth: UnusedElaboratable=no
"""The parts of the self-test image against their models."""

import numpy as np
import pytest
from amaranth.hdl import Module
from hypothesis import given, settings
from hypothesis import strategies as st
from selftest_bench import run

from torusfabric.collective import OPERATORS, SIGNED, Operator, parse_collective
from torusfabric.errors import InputError
from torusfabric.fpga.selftest.expected import ExpectedWord
from torusfabric.fpga.selftest.generator import ROUNDS, HashGenerator
from torusfabric.fpga.selftest.line_sender import LineSender, Template
from torusfabric.fpga.selftest.uart import UartReceiver, UartTransmitter, divisor_for
from torusfabric.fpga.selftest.words import SentWords, hash_word


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(1, 100), st.lists(st.tuples(*[st.integers(0, 0xFFFF)] * 4), min_size=3))
def test_hash_in_hardware(width, inputs):
    """The hardware computes the words that Python does, of any width."""
    dut = HashGenerator(width)

    async def testbench(ctx):
        for values in inputs:
            for name, value in zip(("run", "origin", "destination", "flit"), values, strict=True):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await ctx.tick().repeat(ROUNDS)
            assert ctx.get(dut.word) == hash_word(width, *values)

    run(dut, testbench)


@pytest.mark.parametrize("width", [16, 32])
def test_words_of_two_runs_differ(width):
    """No two words of a run are the same, nor is any word that of the run before."""
    words = {
        hash_word(width, run, origin, destination, flit)
        for run in (1, 2)
        for origin in range(8)
        for destination in range(4)
        for flit in range(4)
    }
    assert len(words) >= (256 if width == 32 else 253)


@pytest.mark.parametrize("width", [1, 4, 8])
def test_narrow_words_change_every_run(width):
    """Words that collide in one run do not in all others."""
    runs = range(1, 40)
    series = {tuple(hash_word(width, r, origin, 0, flit) for r in runs)
              for origin in range(8) for flit in range(4)}  # fmt: skip
    assert len(series) == 32


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

    run(m, testbench)
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

    run(dut, testbench)


@pytest.mark.parametrize(
    ("frequency", "baud"), [(12e6, 4_000_000), (12e6, 1_900_000), (1e4, 115200)]
)
def test_rate_that_cannot_be_made(frequency, baud):
    """A rate that the clock cannot make is refused."""
    with pytest.raises(InputError, match=rf"^Baud rate must be within 2 % .* not {baud}$"):
        divisor_for(frequency, baud)
    assert divisor_for(12e6, 115200) == 104


def test_sender_fills_in_numbers():
    """Numbers appear with all their digits, whatever the pace at which bytes are taken."""
    template = Template({"one": "a {x}.", "two": "{y}{x}"}, {"x": 9, "y": 32})
    dut = LineSender(template)
    said = []

    async def testbench(ctx):
        ctx.set(dut.number_x, 0x1AF)
        ctx.set(dut.number_y, 0x0123CDEF)
        for line, pause in (("one", 0), ("two", 3)):
            ctx.set(dut.line, template.starts[line])
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for cycle in range(200):
                ctx.set(dut.data.ready, cycle % (pause + 1) == pause)
                _, _, valid, ready, byte = await ctx.tick().sample(
                    dut.data.valid, dut.data.ready, dut.data.payload
                )
                if valid and ready:
                    said.append(byte)
            assert not ctx.get(dut.busy)

    run(dut, testbench)
    assert bytes(said).decode() == "a 1af.\n0123cdef1af\n"


@pytest.mark.parametrize("name", [*OPERATORS, *SIGNED])
@pytest.mark.parametrize("collective", ["reduce", "reduce-scatter"])
def test_expected_words_in_hardware(collective, name):
    """The hardware computes the words, and combines them, as Python does."""
    words = SentWords(parse_collective(collective), 9, 5, Operator.parse(name))
    dut = ExpectedWord([[words]])

    async def testbench(ctx):
        sent = [(1, 2, 4, 3, 0), (0xFFFF, 8, 7, 1, 0)]
        received = [(number, 2, 0, 3, 1) for number in range(1, 33)]
        for number, node, peer, flit, is_received in [*sent, *received]:
            inputs = {"run": number, "node": node, "peer": peer, "flit": flit}
            for name, value in inputs.items():
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.received, is_received)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            while ctx.get(dut.busy):
                await ctx.tick()
            destination = node if is_received else peer
            goal = destination if words.collective.personal else 0
            origins = range(9) if is_received else [node]
            terms = [[words.word(number, origin, goal, flit)] for origin in origins]
            total = words.operator.reduce(np.array(terms, object), 5)[0]
            assert ctx.get(dut.word) == total

    run(dut, testbench)


@pytest.mark.parametrize("nodes", [2, 9])
@pytest.mark.parametrize("operator", [*map(Operator.parse, [*OPERATORS, "max:signed"])], ids=str)
def test_no_contribution_is_hidden(operator, nodes):
    """Whichever origin is left out, its words are missed in some of a few runs."""
    sent = SentWords(parse_collective("allreduce"), nodes, 8, operator)
    hidden = set(range(nodes))
    for number in range(1, 257):
        words = [[sent.word(number, origin, 0, 1)] for origin in range(nodes)]
        expected = operator.reduce(np.array(words, object), 8)
        for origin in sorted(hidden):
            rest = [*words[:origin], [operator.identity(8)], *words[origin + 1 :]]
            if operator.reduce(np.array(rest, object), 8) != expected:
                hidden.remove(origin)
    assert not hidden
