"""The crossbar: a cascade selects what its bits say, and unused inputs cost nothing."""

from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal
from helpers import simulated
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.rtl.multiplexer import (
    bit_count,
    branch_bits,
    branched_cascade,
    cascade,
    keeper,
    lut_count,
    multiplexed,
    select_bits,
)
from torusfabric.rtl.router import plan_crossbar


def selected(inputs, codes, width, *, form=branched_cascade):
    """What an out-port gives for constant inputs, with one code of select bits after the other."""
    m = Module()
    data = [Signal(width, init=value) for value in inputs]
    select = [Signal() for _ in codes[0]]
    out = Signal(width)
    m.d.comb += out.eq(form(data, select, width, keeper(m, width)))
    found = []

    async def testbench(ctx):
        for bits in codes:
            for signal, bit in zip(select, bits, strict=True):
                ctx.set(signal, bit)
            found.append(ctx.get(out))

    simulated(m, testbench)
    return found


def settled(m, out):
    """What a signal is in a module without state."""
    found = []

    async def testbench(ctx):
        found.append(ctx.get(out))

    simulated(m, testbench)
    return found[0]


@pytest.mark.parametrize("count", range(1, 25))
def test_cascade_selects_each_input(count):
    """Over any number of inputs the one passes that is selected, with branches and without."""
    inputs = np.random.default_rng(count).integers(0, 256, count).tolist()
    for form, bits_of in ((cascade, select_bits), (branched_cascade, branch_bits)):
        codes = [bits_of(count, place) for place in range(count)]
        assert selected(inputs, codes, 8, form=form) == inputs
    assert {len(select_bits(count, place)) for place in range(count)} == {bit_count(count)}


def test_nothing_to_select():
    """One input, or none, takes no select bits and no stage."""
    m, word, out = Module(), Signal(8), Signal(8, init=1)
    assert cascade([word], [], 8, keeper(m, 8)) is word
    assert (bit_count(1), bit_count(0)) == (0, 0)
    nothing = multiplexed(m, [], Const(0, 0), 8, name="chosen")
    m.d.comb += out.eq(nothing)
    assert (len(nothing), settled(m, out)) == (8, 0)


@pytest.mark.parametrize("count", range(2, 18))
def test_branch_that_idles_passes_nothing(count):
    """With all its select bits 0 a branch passes 0, whatever arrives."""
    form = partial(branched_cascade, idles=True)
    codes = [branch_bits(count, place, idles=True) for place in range(count)]
    inputs = [255 - place for place in range(count)]
    assert selected(inputs, [[0] * len(codes[0]), *codes], 8, form=form) == [0, *inputs]


@pytest.mark.parametrize(
    ("inputs", "luts"),
    list(enumerate([0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 11], 1)),
)
def test_cost_is_half_a_lut_an_input(inputs, luts):
    """An out-port of k inputs costs ceil(k / 2) tables a bit, from eight on up to two more."""
    every = np.arange(inputs)[:, None]
    assert plan_crossbar(every, branched=True).luts_per_bit == luts
    # Selected by all out-ports, they are a full crossbar of cascades.
    assert plan_crossbar(every).luts_per_bit == min(luts, lut_count(inputs))


@pytest.mark.parametrize(("others", "luts"), [(3, 2), (4, 2), (5, 3), (9, 5)])
def test_zero_is_nothing_beside_four_others(others, luts):
    """A cascade passes it where no select bit is set; beside fewer it is an input like others."""
    crossbar = plan_crossbar(np.arange(others + 1)[:, None], zero=others)
    (output,), bits = crossbar.outputs, crossbar.rom[-1]
    assert crossbar.luts_per_bit == luts
    assert output.zero == (others > 3)
    assert output.zero == (not bits.any())
    form = branched_cascade if output.branched else cascade
    codes = [crossbar.rom[row][list(output.bits)].tolist() for row in range(others + 1)]
    inputs = [*range(5, 5 + len(output.words))]
    assert selected(inputs, codes, 4, form=form)[: others + output.zero][-1] == (
        0 if output.zero else 4 + others
    )


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.data())
def test_rom_selects_what_the_program_says(data):
    """For every setting the bits of the ROM choose the source that the program names."""
    rows, ports = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    row = st.lists(st.integers(-1, ports + 1), min_size=ports, max_size=ports)
    select = np.array(data.draw(st.lists(row, min_size=rows, max_size=rows)))
    crossbar = plan_crossbar(select)
    values = list(range(100, 100 + ports + 2))
    for setting, wanted in enumerate(select):
        for port, source in enumerate(wanted.tolist()):
            output = crossbar.outputs[port]
            if source >= 0:
                bits = [int(crossbar.rom[setting, bit]) for bit in output.bits]
                inputs = [values[s] for s in output.sources]
                assert selected(inputs, [bits], 8) == [values[source]]
