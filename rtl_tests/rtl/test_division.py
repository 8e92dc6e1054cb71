"""Division by constants, against Python's."""

import pytest
from amaranth.hdl import Module, Signal
from helpers import simulated
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torusfabric.program.timing import division_cycles
from torusfabric.rtl.division import divide
from torusfabric.rtl.run_length import divided


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 1200), st.integers(1, 130))
@example(1024, 3)
@example(1000, 31)
@example(64, 25)
@example(1024, 100)
@example(7, 9)
def test_quotient_and_remainder_come_after_their_cycles(count, divisor):
    m, value = Module(), Signal(range(max(count, 2)))
    answer = divide(m, "table", value, divisor, count=count)
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
    m.d.comb += shown.eq(divided(value, divisor))
    found = []

    async def bench(ctx):
        for number in range(1 << bits):
            ctx.set(value, number)
            found.append(ctx.get(shown))

    simulated(m, bench)
    assert found == [number // divisor for number in range(1 << bits)]
