"""Runs that are aborted: they end in time, and the next one is right, to the word and the cycle."""

import pytest
from helpers import expected_words, few

import torusfabric as tf
from torusfabric import collective as collectives
from torusfabric.errors import InputError
from torusfabric.simulation.engines import AmaranthEngine, Job
from torusfabric.simulation.engines.amaranth_host import Clock, HostDriver
from torusfabric.simulation.engines.words import Words

#: Fabrics by flits and by rows, in rounds, of any length, with sums, with several modes and forms.
FABRICS = [
    ("2x2", ["allgather"], "hamiltonian", {"flits": 2}),
    ("2", ["alltoall", "allreduce"], None, {"max_flits": 3}),
    ("3", ["broadcast"], None, {"max_flits": 3, "root": "any"}),
    ("3x3", ["allgather"], "one-packet", {"flits": 2}),
    ("2x3", ["alltoall", "allreduce"], None, {"max_flits": 3}),
    ("3x3", ["allgather"], None, {"max_flits": 4}),
    ("2x3", ["alltoall"], "matching", {"flits": 2}),
    ("3x3", ["broadcast"], None, {"flits": 3}),
    ("2x3", ["reduce-scatter"], None, {"max_flits": 12}),
    ("5", ["gather"], None, {"max_flits": 3, "root": "any"}),
]


def made(topology, collectives, algorithm, options):
    options = dict(options)
    root = options.pop("root", None)
    plans = [
        tf.plan(topology, name, algorithm=algorithm) if algorithm else tf.plan(topology, name)
        for name in collectives
    ]
    program = tf.compile(plans if len(plans) > 1 else plans[0], root=root, **options)
    return tf.Fabric(program, width=8, abort=True)


def jobs_of(fabric):
    """A long run, and a short one of the last mode."""
    program = fabric.program
    several = len(program.modes) > 1
    lengths = (fabric.flits, 1) if program.any_length else (None, None)
    root = 0 if program.form.part_is_root else None
    modes = (0, len(program.modes) - 1) if several else (None, None)
    return [Job(*choice, root=root) for choice in zip(modes, lengths, strict=True)]


def drawn(fabric, job, seed):
    """Random messages for a run, and what must arrive, and where."""
    program = fabric.program
    part, flits = program.part(program.form_of(job.mode, job.length)), program.length_of(job.length)
    messages = collectives.random_messages(part.layout, flits, width=fabric.width, seed=seed)
    words, receives = expected_words(
        part, messages, root=job.root, operation=job.operation, width=fabric.width
    )
    return Words(fabric, messages, job), words, receives


async def aborted(ctx, clock, design, job, after):
    """Start a run, and abort it after some edges; the edges from that to done."""
    for name, value in job.inputs.items():
        ctx.set(getattr(design, name), value)
    ctx.set(design.start, 1)
    await clock.tick()
    ctx.set(design.start, 0)
    for _ in range(after - 1):
        await clock.tick()
    assert ctx.get(design.busy)
    ctx.set(design.abort, 1)
    await clock.tick()
    ctx.set(design.abort, 0)
    edges = 0
    while ctx.get(design.busy) and edges < 200:
        await clock.tick()
        edges += 1
    assert ctx.get(design.done)
    return edges


@pytest.mark.parametrize(("topology", "names", "algorithm", "options"), few(3, FABRICS))
def test_the_next_run_is_right_whenever_one_is_aborted(topology, names, algorithm, options):
    fabric = made(topology, names, algorithm, options)
    program, jobs = fabric.program, jobs_of(fabric)
    engine = AmaranthEngine(fabric, gated=True)
    design, most = engine.design, program.cycles(jobs[0].length, mode=jobs[0].mode)
    late = []

    async def testbench(ctx):
        clock = Clock(ctx, design)
        driver = HostDriver(ctx, clock, fabric, design)
        for edge in range(1, most):
            job = jobs[edge % len(jobs)]
            words, expected, receives = drawn(fabric, job, edge)
            await driver.load(words)
            late.append(await aborted(ctx, clock, design, jobs[0], edge))
            assert ctx.get(design.aborted)
            assert ctx.get(design.cycles) == edge + late[-1] <= most
            assert await driver.collect(job) == program.cycles(job.length, mode=job.mode)
            assert not ctx.get(design.aborted)
            await driver.take(words)
            assert (words.received[receives] == expected[receives]).all(), edge

    engine.simulate(testbench)
    assert 0 < max(late) <= fabric.abort_cycles


def test_an_abort_at_rest_or_with_the_last_cycle_is_none():
    fabric = made("3", ["allgather"], None, {"flits": 2})
    engine = AmaranthEngine(fabric, gated=False)
    design = engine.design

    async def testbench(ctx):
        ctx.set(design.abort, 1)
        await ctx.tick()
        assert not ctx.get(design.aborted)
        ctx.set(design.abort, 0)
        ctx.set(design.start, 1)
        await ctx.tick()
        ctx.set(design.start, 0)
        for _ in range(fabric.predicted_cycles - 1):
            await ctx.tick()
        ctx.set(design.abort, 1)
        await ctx.tick()
        assert ctx.get(design.done)
        assert not ctx.get(design.aborted)
        assert ctx.get(design.cycles) == fabric.predicted_cycles

    engine.simulate(testbench)


def test_nothing_is_there_unless_it_is_asked_for():
    program = tf.compile(tf.plan("3", "allgather"))
    netlist = tf.Fabric(program).netlist
    assert not {"abort", "aborted"} & netlist.nets.keys()
    assert {"abort", "aborted"} <= tf.Fabric(program, abort=True).netlist.nets.keys()


@pytest.mark.parametrize("top", ["stream", "core"])
def test_streams_are_refused(top):
    program = tf.compile(tf.plan("3x3", "allgather", algorithm="one-packet"), flits=2)
    with pytest.raises(InputError, match="Abort must be left out for"):
        tf.Fabric(program, top=top, abort=True)
