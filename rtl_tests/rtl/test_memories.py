"""Memories of any width can be simulated, and converted."""

import pytest
from amaranth.back import rtlil
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
    assert "memwr_v2" in rtlil.convert(m, ports=[address, enable, data])


@pytest.mark.parametrize("width", [1021, 1024])
def test_widest_fabric(width):
    """The widest fabric runs in Amaranth's simulator."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=width)
    assert tf.simulate(fabric).passed


@pytest.mark.parametrize(
    ("depth", "many", "registers"), [(2, True, True), (2, False, False), (3, True, False)]
)
def test_two_words_of_many_memories_are_registers(depth, many, registers):
    """Synthesis is told so, whatever else it could make of them."""
    m, address, enable, data = Module(), Signal(2), Signal(), Signal(8)
    write, read = WritePort(address, data, enable), ReadPort(address, enable)
    cell = memory_cell("ram", width=8, depth=depth)
    word = add_memory(m, "ram", cell, write=write, read=read, many=many)
    il = rtlil.convert(m, ports=[address, enable, data, word])
    assert ("ram_style" in il) == registers
