"""Netlists: ROMs are one module whatever they hold, and everything is driven once."""

import random
import shutil
import subprocess
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers import fabric_of, netlist_of_roms, simulated

from torusfabric import verilog
from torusfabric.rtl.arrays import Slice
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.netlist import ROM, Instance, NetlistBuilder, Part, Role
from torusfabric.simulation.engines import AmaranthEngine, CompiledEngine
from torusfabric.toolchain import cxx
from torusfabric.verilog.top import RomContents


def random_rom(depth, width, seed=0):
    source = random.Random(seed)
    return [source.getrandbits(width) for _ in range(depth)], width


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (2, 3), (5, 40), (64, 7), (65, 7), (100, 70)])
def test_rom_in_amaranth(depth, width):
    """A row is there an edge after its address; past the end it is the last one."""
    rows, _ = rom = random_rom(depth, width)
    design = Assembly(netlist_of_roms(rom))
    bits = max((depth - 1).bit_length(), 1)

    async def testbench(ctx):
        assert ctx.get(design.q_0) == 0
        for address in [*range(1 << bits), 0]:
            ctx.set(design.address, address)
            await ctx.tick()
            assert ctx.get(design.q_0) == rows[min(address, depth - 1)]

    simulated(design, testbench)


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
@pytest.mark.parametrize(("depth", "width"), [(1, 1), (5, 40), (65, 7), (300, 70)])
def test_rom_in_icarus(depth, width, tmp_path):
    rows, _ = random_rom(depth, width)
    contents = RomContents(tuple(rows), width)
    bits = contents.address_bits
    rom = verilog.module_texts(netlist_of_roms((rows, width)))[ROM].text
    bench = f"""
    module bench;
      reg clk = 0; reg [{bits}:0] address = 0; wire [{width - 1}:0] data;
      {ROM} #({contents.parameters()})
        rom (.clk(clk), .address(address[{bits - 1}:0]), .data(data));
      initial for (address = 0; address < {1 << bits}; address = address + 1) begin
        #1 clk = 1; #1 clk = 0; $display("%x", data);
      end
    endmodule
    """
    (tmp_path / "x.v").write_text(rom + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    read = [int(line, 16) for line in said.stdout.split()]
    assert read == [rows[min(address, depth - 1)] for address in range(1 << bits)]


def test_roms_are_one_module():
    """However many contents there are, the text has one module of them."""
    netlist = netlist_of_roms(random_rom(3, 4), random_rom(9, 2), random_rom(3, 4, seed=1))
    assert list(verilog.module_texts(netlist)) == [ROM]
    roms = [(len(rom.contents), rom.width) for rom in netlist.having(Role.ROM)]
    assert roms == [(3, 4), (9, 2), (3, 4)]


def test_addresses_are_cut_to_what_numbers_the_rows():
    netlist, first = NetlistBuilder(), np.array([0])
    address = [Slice("a", None, 0, 2), Slice("b", None, 0, 4)]
    netlist.add_roms("x", first, contents=[(0, 1, 2, 3, 4, 5)], which=first, width=3,
                     address=address, output="q")  # fmt: skip
    (rom,) = netlist.done().instances
    assert rom.inputs == {"address": (Part("a", 0, 2), Part("b", 0, 1))}
    assert isinstance(rom, Instance)
    assert (rom.contents, rom.width, rom.role, rom.node) == ((0, 1, 2, 3, 4, 5), 3, Role.ROM, 0)


@pytest.mark.parametrize("net", ["data", "data_{}"])
def test_nets_are_driven_once(net):
    netlist, first = NetlistBuilder(), np.array([0])
    add = partial(netlist.add_array, "x", "y", first, inputs={}, outputs={"q": (net, 1)})
    add()
    error = rf"^Net {net.format(0)} must be driven once, not by two instances$"
    with pytest.raises(ValueError, match=error):
        add()


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "modules"),
    [("8x8", "scatter", "matching", 27), ("5x5", "scatter", "necklace", 14),
     ("arrowhead:3", "broadcast", "spanning-tree", 14)],
)  # fmt: skip
def test_routers_of_one_shape_share_a_module(topology, collective, algorithm, modules):
    """Routers that differ only in what they select when are one module."""
    fabric = fabric_of(topology, collective, algorithm)
    roles = list(fabric.netlist.roles.values())
    assert roles.count(Role.ROUTER) == modules
    assert len(list(fabric.netlist.having(Role.ROUTER))) == fabric.nodes


@pytest.mark.skipif(not cxx.have_compiler(), reason="no C++ compiler")
def test_contents_are_data_to_the_compiled_engine():
    """Fabrics that differ in contents alone share compiled code, and each does what it should."""
    fabric = fabric_of("3x4", "broadcast", "max-flow", flits=2)
    other = copy(fabric)
    other.netlist = replace(
        fabric.netlist, arrays=tuple(map(with_other_contents, fabric.netlist.arrays))
    )
    one, two = (CompiledEngine(each) for each in (fabric, other))
    assert one.model.loops == two.model.loops
    messages = 1 + np.arange(fabric.nodes * 2).reshape(fabric.nodes, 2)
    found = [engine.run(messages).words for engine in (one, two)]
    assert not np.array_equal(*found)
    for words, each in zip(found, (fabric, other), strict=True):
        assert np.array_equal(words, AmaranthEngine(each).run(messages).words)


def with_other_contents(array):
    """The same ROMs with every bit turned; what is none stays as it is."""
    ones = (1 << array.width) - 1
    contents = tuple(tuple(row ^ ones for row in rows) for rows in array.contents)
    return replace(array, contents=contents)
