"""Netlists: ROMs share one module whatever they hold, and each net has one driver."""

import random
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


def random_rom(depth, width, seed=0):
    source = random.Random(seed)
    return [source.getrandbits(width) for _ in range(depth)], width


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (2, 3), (5, 40), (64, 7), (65, 7), (100, 70)])
def test_rom_in_amaranth(depth, width):
    """A row appears one edge after its address; addresses past the end read the last row."""
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


def test_roms_are_one_module():
    """ROMs of any size and contents have one module in the Verilog."""
    netlist = netlist_of_roms(random_rom(3, 4), random_rom(9, 2), random_rom(3, 4, seed=1))
    assert list(verilog.module_texts(netlist)) == [ROM]
    roms = [(len(rom.contents), rom.width) for rom in netlist.instances_with_role(Role.ROM)]
    assert roms == [(3, 4), (9, 2), (3, 4)]


def test_addresses_are_cut_to_what_numbers_the_rows():
    netlist, first = NetlistBuilder(), np.array([0])
    address = [Slice("a", None, 0, 2), Slice("b", None, 0, 4)]
    netlist.add_roms("x", first, contents=[(0, 1, 2, 3, 4, 5)], which=first, width=3,
                     address=address, output="q")  # fmt: skip
    (rom,) = netlist.make_netlist().instances
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
    [
        ("3x3", "allgather", "matching", 1),
        ("3x3", "alltoall", "matching", 1),
        ("8x8", "scatter", "matching", 27),
        ("5x5", "scatter", "necklace", 14),
        ("arrowhead:3", "broadcast", "spanning-tree", 14),
        ("5x5", "allgather", "one-packet", 14),
        ("6x6x4", "allgather", "one-packet", 5),
        pytest.param("9x9x9", "allgather", "hamiltonian", 15, marks=pytest.mark.long),
        pytest.param("12x11x10", "allgather", "hamiltonian", 15, marks=pytest.mark.long),
        pytest.param("12x12x6", "allgather", "one-packet", 5, marks=pytest.mark.long),
    ],
)
def test_routers_of_one_shape_share_a_module(topology, collective, algorithm, modules):
    """Routers that differ only in their settings share a module."""
    fabric = fabric_of(topology, collective, algorithm)
    roles = list(fabric.netlist.roles.values())
    assert 0 < roles.count(Role.ROUTER) <= modules
    assert len(list(fabric.netlist.instances_with_role(Role.ROUTER))) == fabric.nodes


def router_texts(topology, algorithm):
    """Return the emitted router modules without their names, as a set."""
    design = verilog.emit(fabric_of(topology, "allgather", algorithm, width=8), command="")
    texts = {design.modules[name].replace(f"module {name} ", "module router ")
             for name in design.classes}  # fmt: skip
    assert len(texts) == len(design.classes)
    return texts


@pytest.mark.parametrize(
    ("algorithm", "small", "large", "modules"),
    [
        ("hamiltonian", "8x8", "32x32", 2),
        pytest.param("one-packet", "8x8", "32x32", 2, marks=pytest.mark.long),
        pytest.param("hamiltonian", "9x8", "33x32", 3, marks=pytest.mark.long),
        pytest.param("one-packet", "9x9", "33x33", 13, marks=pytest.mark.long),
        pytest.param("hamiltonian", "9x9", "33x33", 3, marks=pytest.mark.long),
        pytest.param("one-packet", "8x10", "32x40", 2, marks=pytest.mark.long),
        pytest.param("one-packet", "9x7", "31x25", 13, marks=pytest.mark.long),
        pytest.param("one-packet", "6x6x6", "12x12x12", 5, marks=pytest.mark.long),
    ],
)
def test_router_modules_do_not_grow(algorithm, small, large, modules):
    """A larger torus has the same router modules, with more instances."""
    texts = router_texts(small, algorithm)
    assert len(texts) == modules
    assert router_texts(large, algorithm) == texts


@pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")
def test_contents_are_data_to_the_compiled_engine():
    """Fabrics that differ only in contents share compiled code, and each gives its own words."""
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
    """Invert all bits of an array of ROMs; leave other arrays unchanged."""
    if array.roms is None:
        return array
    ones = (1 << array.roms.width) - 1
    contents = tuple(tuple(row ^ ones for row in rows) for rows in array.roms.contents)
    return replace(array, roms=array.roms._replace(contents=contents))
