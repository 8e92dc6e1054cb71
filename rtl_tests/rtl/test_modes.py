"""Engines: the hardware equals the executed program in words and cycles, in any order."""

from itertools import pairwise

import numpy as np
import pytest
from fabrics import build_fabric
from helpers import few, simulated
from host_driver import HostDriver

import torusfabric as tf
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.collective import random_messages
from torusfabric.rtl.assembly import Assembly
from torusfabric.simulation.engines import AmaranthEngine, Job

WIDTH = 9


def engine_of(topology, names, most=4, **options):
    """A fabric of several collectives for messages of up to `most` flits."""
    return build_fabric(topology, ",".join(names), width=WIDTH, max_flits=most, **options)


@pytest.mark.parametrize("latency", few(1, [5, 12, 3, 1]))
def test_a_run_begins_as_another_ends(latency):
    """A run that begins as another ends stores none of the words of the run before."""
    ring = tf.Torus(3, link_latency=latency)
    plans = [tf.plan(ring, "gather"), tf.plan(ring, "allreduce", algorithm="spanning-tree")]
    fabric = tf.Fabric(tf.compile(plans, max_flits=3), width=WIDTH)
    gather, allreduce = (Job(mode=mode, length=3) for mode in (0, 1))
    program = fabric.program
    messages = random_messages(program.part(1).layout, 3, width=WIDTH, seed=1)
    engine, words = AmaranthEngine(fabric), RunWords(fabric, messages, allreduce)

    async def testbench(ctx):
        driver = HostDriver(ctx, fabric, engine.design)
        await driver.load(words)
        for job in (gather, allreduce, gather, allreduce):
            assert await driver.collect(job) == program.cycles(3, mode=job.mode)
        await driver.take(words)

    engine.run_testbench(testbench)
    executed = program.execute(messages, **allreduce._asdict(), width=WIDTH)
    assert (np.array(words.received, object) == executed).all()


def run_starts(fabric, starts, *, gap=0, rounds=None):
    """Run starts one after another; return `error` and `cycles` of each.

    If `rounds` is a list, the values of `round` during each run are appended to it.
    """
    design, seen = Assembly(fabric.netlist), []

    async def testbench(ctx):
        for chosen in starts:
            for name, value in chosen.items():
                ctx.set(getattr(design, name), value)
            ctx.set(design.start, 1)
            await ctx.tick()
            ctx.set(design.start, 0)
            for name in chosen:
                ctx.set(getattr(design, name), -1)
            error, shown = ctx.get(design.error), []
            while ctx.get(design.busy):
                shown.append(ctx.get(design.round))
                await ctx.tick()
            if rounds is not None:
                rounds.append(shown)
            for _ in range(gap):
                await ctx.tick()
            seen.append((error, ctx.get(design.cycles)))

    simulated(design, testbench)
    return seen


def test_starts_without_a_gap():
    """A run may begin in the cycle in which the one before is done."""
    fabric = engine_of("2x2", ("allgather", "alltoall", "gather"), 3)
    orders = [(0, 3), (2, 1), (1, 2), (0, 1), (2, 3), (1, 3)]
    seen = run_starts(fabric, [{"mode": m, "length": n} for m, n in orders])
    assert seen == [(0, fabric.program.cycles(n, mode=m)) for m, n in orders]


@pytest.mark.parametrize("length", [1, 3])
def test_rounds_are_shown_in_order(length):
    """The output `round` counts from 0 in each mode, also if rows of other modes come first."""
    fabric, rounds = engine_of("2x3", ("alltoall", "allreduce", "gather"), 3), []
    modes = (0, 1, 2, 1, 0)
    run_starts(fabric, [{"mode": m, "length": length} for m in modes], gap=4, rounds=rounds)
    for mode, shown in zip(modes, rounds, strict=True):
        loop = fabric.program.forms[mode].timing_of(length).loop
        steps = [a for a, b in zip(shown, [*shown[1:], None], strict=True) if a != b]
        assert steps[0] == 0
        assert sorted(set(steps)) == list(range(loop.n_rows))
        # A row follows the one before, or the last one.
        assert all(b in (a + 1, 0) for a, b in pairwise(steps))


def test_topologies_must_agree():
    """Modes on different topologies are refused with one line."""
    plans = [tf.plan("3", "allgather"), tf.plan("2x2", "allgather")]
    with pytest.raises(tf.InputError, match="Topology must be the same for all collectives"):
        tf.compile(plans, max_flits=2)


def test_roots_along_different_axes_are_refused():
    """Modes whose roots lie in groups along different axes are refused, because a root is a
    position in its group.
    """
    plans = [tf.plan("2x2", name) for name in ("broadcast@0", "broadcast@1")]
    with pytest.raises(tf.InputError, match="along the same axes"):
        tf.compile(plans, max_flits=2, root="any")
