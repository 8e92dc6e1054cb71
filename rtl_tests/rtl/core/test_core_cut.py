"""A fabric that is cut into two cores, joined by their link ports."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.sim import Simulator
from core_runs import CoreDriver, CoreJob

import torusfabric as tf
from torusfabric.rtl.core import Core


def join(program, parts, width):
    """Return a design of several cores, and the cores."""
    m, cores = Module(), [Core(program, width, nodes=nodes) for nodes in parts]
    designs = [core.make_component() for core in cores]
    for number, design in enumerate(designs):
        m.submodules[f"core_{number}"] = design
    for core, design in zip(cores, designs, strict=True):
        for number, link in enumerate(core.links_in):
            sender = next(k for k, nodes in enumerate(parts) if link.node in nodes)
            at = cores[sender].links_out.index(link)
            word = getattr(designs[sender], f"link_tx_{at}")
            for _ in range(link.cycles):
                late = Signal.like(word)
                m.d.sync += late.eq(word)
                word = late
            m.d.comb += getattr(design, f"link_rx_{number}").eq(word)
    return m, cores, designs


@pytest.mark.parametrize("latency", [1, 3])
@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_two_cores_joined_by_links(collective, latency):
    torus = tf.Torus(2, 3, link_latency=latency)
    program = tf.compile(tf.plan(torus, collective), flits=3)
    m, cores, designs = join(program, [[0, 1, 4], [2, 3, 5]], 8)
    job, rng = CoreJob(), np.random.default_rng(1)

    async def bench(ctx):
        drivers = [CoreDriver(ctx, core, each) for core, each in zip(cores, designs, strict=True)]
        words = drivers[0].random_words(job, rng)
        expected = drivers[0].expected(job, words)
        for driver in drivers:
            await driver.write(job, words)
        for driver in drivers:
            driver.set("start", 1)
        await ctx.tick()
        for driver in drivers:
            driver.set("start", 0)
        for _ in range(program.cycles()):
            assert not drivers[0].get("done")
            await ctx.tick()
        for driver in drivers:
            assert driver.get("done")
            found = await driver.read(job, expected)
            assert (found == expected[driver.core.nodes]).all()

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
