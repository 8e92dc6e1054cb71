"""The crossbar: cascades of multiplexers select by their bits, and unused inputs cost nothing."""

from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Signal
from helpers import simulated

from torusfabric.rtl.core.node_module import (
    IDENTITY_WORD,
    LocalWord,
    needs_branches,
    plan_multiplexer,
)
from torusfabric.rtl.multiplexer import (
    add_multiplexer,
    branched_cascade,
    branched_lut_count,
    branched_select_bits,
    lut_count,
    make_keeper,
    plain_cascade,
    select_bit_count,
    select_bits,
)


def selected(inputs, codes, width, *, form=branched_cascade):
    """Return the outputs of a cascade with constant inputs, one for each code of select bits."""
    m = Module()
    data = [Signal(width, init=value) for value in inputs]
    select = [Signal() for _ in codes[0]]
    out = Signal(width)
    m.d.comb += out.eq(form(data, select, width, make_keeper(m, width)))
    found = []

    async def testbench(ctx):
        for bits in codes:
            for signal, bit in zip(select, bits, strict=True):
                ctx.set(signal, bit)
            found.append(ctx.get(out))

    simulated(m, testbench)
    return found


def settled(m, out):
    """Return the value of a signal in a module without state."""
    found = []

    async def testbench(ctx):
        found.append(ctx.get(out))

    simulated(m, testbench)
    return found[0]


@pytest.mark.parametrize("count", range(1, 25))
def test_cascade_selects_each_input(count):
    """A cascade over any number of inputs passes the selected one, with branches and without."""
    inputs = np.random.default_rng(count).integers(0, 256, count).tolist()
    for form, bits_of in ((plain_cascade, select_bits), (branched_cascade, branched_select_bits)):
        codes = [bits_of(count, place) for place in range(count)]
        assert selected(inputs, codes, 8, form=form) == inputs
    assert {len(select_bits(count, place)) for place in range(count)} == {select_bit_count(count)}


def test_nothing_to_select():
    """One input, or none, takes no select bits and no stage."""
    m, word, out = Module(), Signal(8), Signal(8, init=1)
    assert plain_cascade([word], [], 8, make_keeper(m, 8)) is word
    assert (select_bit_count(1), select_bit_count(0)) == (0, 0)
    nothing = add_multiplexer(m, [], Const(0, 0), 8, name="chosen")
    m.d.comb += out.eq(nothing)
    assert (len(nothing), settled(m, out)) == (8, 0)


@pytest.mark.parametrize("count", range(2, 18))
def test_branch_that_idles_passes_nothing(count):
    """A branch passes 0 if all its select bits are 0."""
    form = partial(branched_cascade, idles=True)
    codes = [branched_select_bits(count, place, idles=True) for place in range(count)]
    inputs = [255 - place for place in range(count)]
    assert selected(inputs, [[0] * len(codes[0]), *codes], 8, form=form) == [0, *inputs]


@pytest.mark.parametrize(
    ("inputs", "luts"),
    list(enumerate([0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 11], 1)),
)
def test_cost_is_half_a_lut_an_input(inputs, luts):
    """An out-port of k inputs costs ceil(k / 2) LUTs a bit, from eight inputs on up to two more."""
    assert branched_lut_count(inputs) == luts
    # For a single out-port, the plan is a plain cascade if that takes fewer LUTs.
    assert needs_branches([inputs], inputs - 1) == [luts <= lut_count(inputs)]


@pytest.mark.parametrize("others", [3, 4, 5, 9])
@pytest.mark.parametrize("branched", [False, True])
def test_codes_select_words(others, branched):
    """With four other inputs or more, the word 0 has the all-zero code and takes no input."""
    words = [*map(LocalWord, range(others)), IDENTITY_WORD]
    inputs, codes = plan_multiplexer(words, idles=True, branched=branched)
    idles = len(inputs) == others
    assert idles == (others > 3)
    assert idles == (not any(codes[-1]))
    form = branched_cascade if branched else plain_cascade
    values = [*range(5, 5 + others), *[0] * (not idles)]
    assert selected(values, codes, 4, form=form) == [*range(5, 5 + others), 0]
