"""Memories of any width can be simulated, and converted."""

import pytest
from amaranth.hdl import Module, Signal
from helpers import few, simulated

import torusfabric as tf
from torusfabric.rtl.memories import ReadPort, WritePort, add_memory, memory_cell
from torusfabric.simulation.engines.amaranth_engine import wide_values


@pytest.mark.parametrize(
    ("width", "parts"), few(3, [(1024, 1), (1021, 1), (1021, 6), (1024, 16), (31, 3)])
)
def test_wide_memory(width, parts):
    """Each part of a word is written where its bit of the enable is set, and no other."""
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

    with wide_values():
        simulated(m, testbench)


@pytest.mark.parametrize("width", [1021, 1024])
def test_widest_fabric(width):
    """The widest fabric runs in Amaranth's simulator."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=width)
    assert tf.simulate(fabric).passed
