"""The crossbar: a cascade selects what its bits say, and unused inputs cost nothing."""

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.rtl.branches import branch_bits, branched_cascade
from torusfabric.rtl.cascade import SLICE, bit_count, cascade, select_bits, sliced_cascade
from torusfabric.rtl.crossbar import plan_crossbar, select_registers


def selected(inputs, bits, width, *, keep=False, form=branched_cascade):
    """What an out-port gives for constant inputs and bits."""
    m = Module()
    data = [Signal(width, init=value) for value in inputs]
    select = [Signal(init=bit) for bit in bits]
    out = Signal(width)
    m.d.comb += out.eq(sliced_cascade(m, data, [select], width, keep=keep, form=form))
    found = []

    async def testbench(ctx):
        found.append(ctx.get(out))

    simulator = Simulator(m)
    simulator.add_testbench(testbench)
    simulator.run()
    return found[0]


@pytest.mark.parametrize(
    "count",
    [*range(1, 10), *(pytest.param(count, marks=pytest.mark.long) for count in range(10, 16))],
)
def test_cascade_selects_each_input(count):
    """A cascade over any number of inputs passes the one that is selected."""
    inputs = np.random.default_rng(count).integers(0, 256, count).tolist()
    for place in range(count):
        bits = select_bits(count, place)
        assert len(bits) == bit_count(count)
        assert selected(inputs, bits, 8, form=cascade) == inputs[place]
        assert selected(inputs, bits, 8, form=cascade, keep=True) == inputs[place]
        bits = branch_bits(count, place)
        assert selected(inputs, bits, 8) == inputs[place]
        assert selected(inputs, bits, 8, keep=True) == inputs[place]


@pytest.mark.parametrize(("inputs", "luts"), list(enumerate([0, 1, 2, 2, 3, 3, 4, 5, 5], 1)))
def test_cost_is_half_a_lut_an_input(inputs, luts):
    """An out-port costs ceil(k / 2) look-up tables a bit, and one more if k is even and above 7."""
    assert plan_crossbar(np.arange(inputs)[:, None]).luts_per_bit == luts


def test_single_setting_is_wires():
    """With one setting there is nothing to select."""
    crossbar = plan_crossbar(np.array([[2, 0, 1]]))
    assert crossbar.rom.shape == (1, 0)
    assert [out.sources for out in crossbar.outputs] == [(2,), (0,), (1,)]


def test_idle_ports_share_registers():
    """What an idle port carries does not matter, so its select bits follow another port's."""
    crossbar = plan_crossbar(np.array([[0, 2], [1, -1], [-1, 3]]))
    assert crossbar.rom.shape[1] == 1


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
                assert selected(inputs, bits, 8) == values[source]


@pytest.mark.parametrize("alone", [False, True])
def test_slices_have_select_bits_of_their_own(alone):
    """In a text there is a register for each slice of a word, in simulation one for all."""
    crossbar = plan_crossbar(np.array([[0, 1], [1, 0]]))
    early = [Signal() for _ in range(crossbar.rom.shape[1])]
    m = Module()
    registers = select_registers(m, crossbar.outputs, early, 2 * SLICE + 1, alone=alone)
    assert [len(slices) for slices in registers] == [3 if alone else 1] * 2
    assert rtlil.convert(m, ports=early)
