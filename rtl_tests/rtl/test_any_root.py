"""Fabrics whose root is chosen for every run: starts that cannot be carried out."""

import pytest
from amaranth.sim import Simulator
from helpers import random_messages

import torusfabric as tf
from torusfabric.rtl.assembly import Assembly
from torusfabric.rtl.root_unit import RootUnit

WIDTH = 9


def fabric_of(topology, collective, algorithm=None, *, fault=None, **options):
    """A fabric of any root; a fault is a function from its program to one with a fault."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    program = tf.compile(schedule, root="any", **options)
    return tf.Fabric(fault(program) if fault else program, width=WIDTH)


class Bench:
    """Drives the host port of a fabric in a testbench of Amaranth's simulator."""

    def __init__(self, ctx, fabric, design):
        self.ctx, self.fabric, self.design = ctx, fabric, design

    async def write(self, messages):
        """Write what all nodes send."""
        self.ctx.set(self.design.host_we, 1)
        for node, words in enumerate(messages.tolist()):
            self.ctx.set(self.design.host_node, node)
            for address, word in enumerate(words):
                self.ctx.set(self.design.host_addr, address)
                self.ctx.set(self.design.host_wdata, word)
                await self.ctx.tick()
        self.ctx.set(self.design.host_we, 0)

    async def start(self, **chosen):
        """A start with what is chosen; returns error, busy and done after it."""
        for name, value in chosen.items():
            self.ctx.set(getattr(self.design, name), value)
        self.ctx.set(self.design.start, 1)
        await self.ctx.tick()
        self.ctx.set(self.design.start, 0)
        names = "error", "busy", "done"
        return tuple(self.ctx.get(getattr(self.design, name)) for name in names)

    async def finish(self):
        """The cycles of the run under way."""
        for _ in range(2 * self.fabric.predicted_cycles):
            if self.ctx.get(self.design.done):
                return self.ctx.get(self.design.cycles)
            await self.ctx.tick()
        raise AssertionError("the run does not end")

    async def read(self, node, flit):
        """A word that a node has received."""
        self.ctx.set(self.design.host_node, node)
        self.ctx.set(self.design.host_addr, self.fabric.layout.recv_base + flit)
        await self.ctx.tick().repeat(self.fabric.read_latency)
        return self.ctx.get(self.design.host_rdata)


def run_bench(fabric, testbench):
    """Run a testbench, which is given a `Bench`."""
    design = Assembly(fabric.netlist)

    async def drive(ctx):
        await testbench(Bench(ctx, fabric, design))

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()


@pytest.mark.parametrize("lengths", [{"flits": 2}, {"max_flits": 2}])
def test_a_root_that_does_not_exist(lengths):
    """Such a start changes nothing and is reported until the next one."""
    fabric = fabric_of("2x3", "broadcast", "max-flow", **lengths)
    messages = random_messages(fabric, 1)
    chosen = {"length": 2} if "max_flits" in lengths else {}
    seen = []

    async def testbench(bench):
        await bench.write(messages)
        seen.append(await bench.start(root=6, **chosen))
        seen.append(await bench.start(root=4, **chosen))
        seen.append(await bench.start(root=7))
        cycles = await bench.finish()
        seen.append(await bench.start(root=7))
        if chosen:
            assert (await bench.start(root=1, length=3))[0] == 3
        for node in range(6):
            assert [await bench.read(node, k) for k in (0, 1)] == messages[4].tolist()
        seen.append(await bench.start(root=0, **chosen))
        assert cycles == await bench.finish() == fabric.predicted_cycles
        assert await bench.read(5, 0) == messages[0][0]

    run_bench(fabric, testbench)
    assert seen == [(2, 0, 0), (0, 1, 0), (5, 1, 0), (2, 0, 1), (0, 1, 0)]


def test_where_every_number_is_a_node():
    """No root is refused, but a start while busy is."""
    fabric = fabric_of("2x2", "broadcast", "max-flow")
    seen = []

    async def testbench(bench):
        seen.extend([await bench.start(root=3), await bench.start(root=1)])

    run_bench(fabric, testbench)
    assert seen == [(0, 1, 0), (5, 1, 0)]


class DeafRootUnit(RootUnit):
    """Plant a fault: the root is taken to be node 0."""

    def value(self, name):
        return super().value(name) & 0 if name == "root" else super().value(name)


def test_a_root_that_is_ignored_is_found(monkeypatch):
    """A fabric that ignores its root delivers wrong words."""
    monkeypatch.setattr("torusfabric.rtl.common_parts.RootUnit", DeafRootUnit)
    fabric = fabric_of("2x3", "broadcast", "max-flow")
    assert not tf.simulate(fabric, jobs=[tf.Job(root=2)]).passed
