"""The compiled engine evaluates every kind of cell like Amaranth's simulator."""

import random
from functools import partial
from itertools import product

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from helpers import simulated

from torusfabric.rtl.netlist import Leaf, NetlistBuilder
from torusfabric.simulation.engines.edges import EdgeRequest
from torusfabric.simulation.engines.model import build_model
from torusfabric.simulation.engines.session import Session
from torusfabric.toolchain import cxx

pytestmark = pytest.mark.skipif(not cxx.has_compiler(), reason="no C++ compiler")


def stepped(make, given):
    """Return the output of a module after each edge in the compiled engine."""
    leaf, build = make(), NetlistBuilder()
    widths = {name: each.shape for name, each in leaf.signature.members.items()}
    shown = widths.pop("shown")
    for name, width in widths.items():
        build.add_input(name, width)
    build.add_module("cells", make)
    inputs = {name: build.all_bits(name) for name in widths}
    build.add_instance("the_cells", "cells", inputs=inputs, outputs={"shown": ("shown", shown)})
    build.add_output("shown", shown)
    netlist = build.make_netlist()
    given = [*given, dict.fromkeys(widths, 0)]
    inputs = {name: [each[name] for each in given] for name in widths}
    with Session(build_model(netlist, word=1, node_cycles=0), None, vcd=None) as session:
        passed = session.simulate_edges(EdgeRequest(len(given), inputs, ["shown"]))
    return passed.shown["shown"][1:].tolist()


class Shifts(Leaf):
    """A bit in a register that moves by one position in each cycle, shown with a further shift."""

    def __init__(self):
        super().__init__({"begins": In(1), "places": In(2), "shown": Out(8)})

    def elaborate(self, platform):
        """Build the register."""
        m, held = Module(), Signal(4, name="held")
        m.d.sync += held.eq(held << 1)
        with m.If(self.input_value("begins")):
            m.d.sync += held.eq(1)
        m.d.comb += self.shown.eq(held << self.input_value("places"))
        return m


def test_shifts():
    """Left shifts by the operator `<<`, which resembles a comparison, are evaluated."""
    given = [{"begins": int(not cycle), "places": 0} for cycle in range(6)]
    assert stepped(Shifts, given) == [1, 2, 4, 8, 0, 0]


class Cells(Leaf):
    """All results of operators on two words, and on a word and a register, shown a cycle later."""

    def __init__(self, width):
        self._width = width
        pair = Signal(width), Signal(width)
        bits = 2 * sum(map(len, _made(*pair))) + 8 * width
        super().__init__({"a": In(width), "b": In(width), "shown": Out(bits)})

    def elaborate(self, platform):
        """Build the cells, each in front of a register."""
        m, width = Module(), self._width
        a, b = self.input_value("a"), self.input_value("b")
        held = Signal(width, name="held")
        with m.If(a[0]):
            m.d.sync += held.eq(b)
        with m.Elif(b[1]):
            m.d.sync += held[: width // 2].eq(a)
        with m.Switch(b[:3]):
            with m.Case("1-0"):
                m.d.sync += held[1:].eq(a)
            with m.Case(1, 3):
                m.d.sync += held[-1].eq(1)
        m.d.sync += self.shown.eq(Cat(*_made(a, b), *_made(held, a), *_stored(m, a, b)))
        return m


def _made(a, b):
    """Yield the results of all operators on two words, with parts of them."""
    width, sign = len(a), (a.as_signed(), b.as_signed())
    yield from (a + b, a - b, -a, (a + b)[3:7], (a - b)[width // 2 :], a * b, (a * b)[width - 3 :])
    yield from (a & b, a | b, a ^ b, ~a, a.any(), a.all(), a.xor(), a == b, a != b, a[:5] == b[:5])
    yield from (a < b, a <= b, a > b, a >= b, sign[0] < sign[1], sign[0] >= sign[1])
    yield from (a[:0].any(), a[:0].all(), a[:0].xor())  # of no bits
    yield from (a << b[:3], a >> b[:7], sign[0] >> b[:7], a >> 3, sign[0] >> 2)
    yield from (a.bit_select(b[:4], 3), a.word_select(b[:2], 3))
    yield a.matches("1" + "-" * (width - 2) + "0")
    if width <= 64:
        yield from (a // (b[:5] | 1), a % (b[:5] | 1), (a // b)[:3])


def _stored(m, a, b):
    """Yield words read from memories with fewer words than addresses, or a single word."""
    for depth, transparent in product((5, 1), (False, True)):
        memory = Memory(shape=len(a), depth=depth, init=[3, 1, 4][:depth])
        m.submodules += memory
        write = memory.write_port()
        read = memory.read_port(transparent_for=(write,) if transparent else ())
        at_once = memory.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(a), write.data.eq(b), write.en.eq(a[3]),
            read.addr.eq(b), read.en.eq(b[3]), at_once.addr.eq(a[1:]),
        ]  # fmt: skip
        yield from (read.data, at_once.data)


@pytest.mark.parametrize("width", [8, 33, 64, 100])
def test_cells(width):
    """All cells agree for words of one native word and of several."""
    chance, found = random.Random(width), []
    given = [{name: chance.getrandbits(width) for name in "ab"} for _ in range(100)]
    given[::7] = [{"a": 0, "b": (1 << width) - 1}] * len(given[::7])
    given[::11] = [each | {"a": each["b"]} for each in given[::11]]
    cells = Cells(width)

    async def testbench(ctx):
        for each in given:
            for name, word in each.items():
                ctx.set(getattr(cells, name), word)
            await ctx.tick()
            found.append(ctx.get(cells.shown))

    simulated(cells, testbench)
    assert stepped(partial(Cells, width), given) == found
