"""Streams as Amaranth interfaces: `connect` connects those of a fabric with other components."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import torusfabric as tf

SENT = StructLayout({"data": 8, "last": 1})
RECEIVED = StructLayout({"data": 8, "last": 1, "origin": 2})


class Adder(wiring.Component):
    """A component that sends its number, and then again and again the received sum plus one."""

    out: Out(stream.Signature(SENT))
    into: In(stream.Signature(RECEIVED))
    rounds: Out(8)

    def __init__(self, number):
        self._number = number
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value, total, waits = Signal(8, init=self._number), Signal(8), Signal()
        m.d.comb += [
            self.out.payload.eq(SENT.const({"last": 1})),
            self.out.payload.data.eq(value),
            self.out.valid.eq(~waits),
            self.into.ready.eq(1),
        ]
        with m.If(self.out.valid & self.out.ready):
            m.d.sync += waits.eq(1)
        with m.If(self.into.valid):
            last = self.into.payload.origin == 3
            m.d.sync += total.eq(Mux(last, 0, total + self.into.payload.data))
            with m.If(last):
                m.d.sync += value.eq(total + self.into.payload.data + 1)
                m.d.sync += [waits.eq(0), self.rounds.eq(self.rounds + 1)]
        return m


def test_components_meet_in_a_collective():
    """Four components that are connected to a fabric compute repeated sums by an all-gather."""
    program = tf.compile(tf.plan("2x2", "allgather"), flits=1)
    m = Module()
    m.submodules.fabric = fabric = tf.Fabric(program, width=8, top="stream", beat=1)
    adders = [Adder(number) for number in range(4)]
    for number, adder in enumerate(adders):
        m.submodules[f"adder_{number}"] = adder
        wiring.connect(m, adder.out, fabric.node[number].send)
        wiring.connect(m, fabric.node[number].receive, adder.into)

    async def testbench(ctx):
        while any(ctx.get(adder.rounds) < 3 for adder in adders):
            await ctx.tick()
        # The first sum is 0 + 1 + 2 + 3, plus 1. Each later value is four times the value before,
        # plus 1.
        assert [ctx.get(adder.out.payload.data) for adder in adders] == [4 * (4 * 7 + 1) + 1] * 4

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run_until(1e-3)


def test_commands_are_streams():
    """The command port is a stream of 32-bit words; run signals and nodes are members, too."""
    plans = [tf.plan("2", "allgather"), tf.plan("2", "alltoall")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=2), width=8, top="stream", beat=1)
    assert fabric.command.payload.shape() == StructLayout({"data": 32, "last": 1})
    assert {"busy", "done", "cycles", "error", "status", "node"} < {*fabric.signature.members}
