"""The compiled engine shifts words, by constants and by amounts that are known when it runs."""

from types import SimpleNamespace

import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from torusfabric.rtl.netlist import Leaf, NetlistBuilder, Part
from torusfabric.simulation.engines.host_port import CTask, Step
from torusfabric.simulation.engines.model import build_model
from torusfabric.simulation.engines.session import INPUTS, OUTPUTS, Session


class Shifts(Leaf):
    """Holds a bit that moves on by a place in each cycle, and by as many as it is told at once."""

    def __init__(self):
        super().__init__({"start": In(1), "host_addr": In(2), "shown": Out(8)})

    def elaborate(self, platform):
        """Build the register."""
        m, held = Module(), Signal(4, name="held")
        m.d.sync += held.eq(held << 1)
        with m.If(self.value("start")):
            m.d.sync += held.eq(1)
        m.d.comb += self.shown.eq(held << self.value("host_addr"))
        return m


def test_shifts():
    """To the left, which an operator is that looks like a comparison."""
    build = NetlistBuilder()
    bits = dict.fromkeys(INPUTS, 1) | {"host_addr": 2}
    for name, width in bits.items():
        build.add_input(name, width)
    build.add_module("shifts", Shifts)
    inputs = {name: build.whole(name) for name in ("start", "host_addr")}
    build.add("the_shifts", "shifts", inputs=inputs, outputs={"shown": ("shown", 8)})
    build.add_output("shown", 8)
    for name in OUTPUTS:
        build.wire_output(name, (Part("shown", 7, 1),))
    netlist = build.done()
    fabric, zero, seen = SimpleNamespace(width=1, netlist=netlist), np.zeros(1, np.uint32), []
    task = CTask(step=Step.READ, count=1, chunks=1, nodes=zero.ctypes.data,
                 addresses=zero.ctypes.data, words=np.zeros(1, np.uint32).ctypes.data)  # fmt: skip
    with Session(build_model(netlist, word=1, node_cycles=0), fabric, vcd=None) as session:
        shown = session.shown("shown")
        session.inputs["start"][0] = 1
        for _ in range(6):
            session.run(task)
            session.inputs["start"][0] = 0
            seen.append(int(shown[0]))
    assert seen == [1, 2, 4, 8, 0, 0]
