"""Small modules: links of several cycles, memories of any width, division by constants."""

import pytest
from amaranth.hdl import Module, Signal
from helpers import few, simulated
from hypothesis import example, given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.adapters.host.finders import add_divider, division_cycles
from torusfabric.rtl.lengths import divide_by_constant
from torusfabric.rtl.links import MOST_REGISTERS, Link
from torusfabric.rtl.memories import ReadPort, WritePort, add_memory, memory_cell
from torusfabric.simulation.engines.amaranth_engine import allow_wide_values


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 1200), st.integers(1, 130))
@example(1024, 3)
@example(1000, 31)
@example(64, 25)
@example(1024, 100)
@example(7, 9)
def test_quotient_and_remainder_come_after_their_cycles(count, divisor):
    m, value = Module(), Signal(range(max(count, 2)))
    answer = add_divider(m, "table", value, divisor, count=count)
    numbers = sorted(
        {*range(0, count, 41), *range(divisor - 1, min(count, 9 * divisor), divisor), count - 1}
    )
    cycles, found = division_cycles(count, divisor), []
    shown = [Signal(16, name=f"shown_{k}") for k in range(2)]
    m.d.comb += [signal.eq(part) for signal, part in zip(shown, answer, strict=True)]
    m.d.sync += Signal().eq(value[0])

    async def bench(ctx):
        for step in range(len(numbers) + cycles):
            ctx.set(value, numbers[min(step, len(numbers) - 1)])
            if step >= cycles:
                found.append(tuple(ctx.get(signal) for signal in shown))
            await ctx.tick()

    simulated(m, bench)
    assert found == [divmod(number, divisor) for number in numbers]


@pytest.mark.parametrize("bits", [3, 6, 9])
@pytest.mark.parametrize("divisor", [1, 3, 4, 7, 12])
def test_a_quotient_at_once(bits, divisor):
    m, value, shown = Module(), Signal(bits), Signal(bits)
    m.d.comb += shown.eq(divide_by_constant(value, divisor))
    found = []

    async def bench(ctx):
        for number in range(1 << bits):
            ctx.set(value, number)
            found.append(ctx.get(shown))

    simulated(m, bench)
    assert found == [number // divisor for number in range(1 << bits)]


@pytest.mark.parametrize(
    ("width", "parts"), few(3, [(1024, 1), (1021, 1), (1021, 6), (1024, 16), (31, 3)])
)
def test_wide_memory(width, parts):
    """Each part of a word is written if its write-enable bit is set, and otherwise kept."""
    m = Module()
    address, enable, data = Signal(2), Signal(parts), Signal(width * parts)
    word = add_memory(
        m,
        "ram",
        memory_cell("ram", width=width * parts, depth=4, parts=parts),
        write=WritePort(address, data, enable),
        read=ReadPort(address, enable.any() | 1),
    )
    ones = (1 << width * parts) - 1
    kept = sum(((1 << width) - 1) << part * width for part in range(0, parts, 2))

    async def testbench(ctx):
        ctx.set(address, 3)
        ctx.set(data, ones)
        ctx.set(enable, sum(1 << part for part in range(0, parts, 2)))
        await ctx.tick()
        ctx.set(enable, 0)
        await ctx.tick()
        assert ctx.get(word) == kept

    with allow_wide_values():
        simulated(m, testbench)


@pytest.mark.parametrize("width", [1021, 1024])
def test_widest_fabric(width):
    """The widest fabric runs in Amaranth's simulator."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=width)
    assert tf.simulate(fabric).passed


@pytest.mark.parametrize("cycles", [2, 3, MOST_REGISTERS + 1, MOST_REGISTERS + 2, 9, 64])
def test_a_word_comes_out_as_late_as_it_should(cycles):
    link, shown = Link(cycles, 8), []
    assert bool(link.memory_shapes()) == (cycles - 1 > MOST_REGISTERS)

    async def bench(context):
        for word in range(1, 150):
            context.set(link.sent, word)
            await context.tick()
            shown.append(context.get(link.arrived))

    simulated(link, bench)
    # A word arrives `cycles` - 2 edges after the edge that takes it.
    assert shown[cycles - 2 :] == list(range(1, 150 - (cycles - 2)))
