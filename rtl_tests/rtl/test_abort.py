"""Runs that are ended early: the next one is right, to the word and the cycle."""

import pytest
from helpers import expected_words, few

import torusfabric as tf
from torusfabric import collective as collectives
from torusfabric.adapters.host.hardware import host_core
from torusfabric.simulation.engines import AmaranthEngine, Job
from torusfabric.simulation.engines.amaranth_host import Clock, HostDriver
from torusfabric.simulation.engines.words import Words

#: Fabrics by flits and by rows, in rounds, of any length, with sums, with several modes and forms.
FABRICS = [
    ("2x2", ["allgather"], "hamiltonian", {"flits": 2}),
    ("2", ["alltoall", "allreduce"], None, {"max_flits": 3}),
    ("3", ["allgather", "allreduce"], None, {"max_flits": 3, "tables": "ram"}),
    ("3", ["broadcast"], None, {"max_flits": 3, "root": "any"}),
    ("3x3", ["allgather"], "one-packet", {"flits": 2}),
    ("2x3", ["alltoall", "allreduce"], None, {"max_flits": 3}),
    ("3x3", ["allgather"], None, {"max_flits": 4}),
    ("2x3", ["alltoall"], "matching", {"flits": 2}),
    ("3x3", ["broadcast"], None, {"flits": 3}),
    ("2x3", ["reduce-scatter"], None, {"max_flits": 12}),
    ("5", ["gather"], None, {"max_flits": 3, "root": "any"}),
]


class Resettable(tf.Fabric):
    """A fabric with the input that the bus has for the register `abort`."""

    def _core(self):
        return super()._core() and host_core(self.program, self.width, resets=True)

    def _builder(self):
        build = super()._builder()
        build.resets = True
        return build


def made(topology, collectives, algorithm, options):
    options = dict(options)
    root, tables = options.pop("root", None), options.pop("tables", "rom")
    plans = [
        tf.plan(topology, name, algorithm=algorithm) if algorithm else tf.plan(topology, name)
        for name in collectives
    ]
    program = tf.compile(plans if len(plans) > 1 else plans[0], root=root, **options)
    return Resettable(program, width=8, tables=tables)


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


@pytest.mark.parametrize(("topology", "names", "algorithm", "options"), few(4, FABRICS))
def test_the_next_run_is_right_whenever_one_is_ended(topology, names, algorithm, options):
    fabric = made(topology, names, algorithm, options)
    program, jobs = fabric.program, jobs_of(fabric)
    engine = AmaranthEngine(fabric, gated=True)
    design, most = engine.design, program.cycles(jobs[0].length, mode=jobs[0].mode)

    async def testbench(ctx):
        clock = Clock(ctx, design)
        driver = HostDriver(ctx, clock, fabric, design)
        for edge in range(1, most):
            job = jobs[edge % len(jobs)]
            words, expected, receives = drawn(fabric, job, edge)
            await driver.load(words)
            for name, value in ({"start": 1} | jobs[0].inputs).items():
                ctx.set(getattr(design, name), value)
            await clock.tick()
            ctx.set(design.start, 0)
            for _ in range(edge - 1):
                await clock.tick()
            assert ctx.get(design.busy)
            ctx.set(design.reset_run, 1)
            await clock.tick()
            ctx.set(design.reset_run, 0)
            assert not ctx.get(design.busy)
            assert not ctx.get(design.done)
            assert await driver.collect(job) == program.cycles(job.length, mode=job.mode)
            await driver.take(words)
            assert (words.received[receives] == expected[receives]).all(), edge

    engine.simulate(testbench)
