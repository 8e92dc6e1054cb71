"""Runs that are ended early: the next run has the right words and cycles."""

import pytest
from fabrics import build_fabric, choose_jobs, draw_words
from helpers import few
from host_driver import HostDriver

from torusfabric.adapters.host.front import HostFront
from torusfabric.adapters.loading.front import LoadedFront
from torusfabric.adapters.loading.hardware import make_tables
from torusfabric.rtl.fabric import Fabric
from torusfabric.simulation.engines import AmaranthEngine

#: Fabrics in flit order and row order, in rounds, of any length, with sums, modes and forms.
FABRICS = [
    ("2x2", "allgather:hamiltonian", {"flits": 2}),
    ("2", "alltoall,allreduce", {"max_flits": 3}),
    ("3", "allgather,allreduce", {"max_flits": 3, "tables": "ram"}),
    ("3", "broadcast", {"max_flits": 3, "root": "any"}),
    ("3x3", "allgather:one-packet", {"flits": 2}),
    ("2x3", "alltoall,allreduce", {"max_flits": 3}),
    ("3x3", "allgather", {"max_flits": 4}),
    ("2x3", "alltoall:matching", {"flits": 2}),
    ("3x3", "broadcast", {"flits": 3}),
    ("2x3", "reduce-scatter", {"max_flits": 12}),
    ("5", "gather", {"max_flits": 3, "root": "any"}),
]


def resettable(program, tables):
    """Build a fabric with the reset input that a bus drives from its register `abort`."""
    if tables == "ram":
        return Fabric(LoadedFront(make_tables(program, tables, 8, streams=False), for_bus=True))
    return Fabric(HostFront(program, 8, for_bus=True))


@pytest.mark.parametrize(("topology", "names", "options"), few(4, FABRICS))
def test_the_next_run_is_right_whenever_one_is_ended(topology, names, options):
    made = build_fabric(topology, names, **options)
    fabric = resettable(made.program, options.get("tables"))
    program, jobs = fabric.program, choose_jobs(fabric.program)
    engine = AmaranthEngine(fabric, gated=True)
    design, most = engine.design, program.cycles(jobs[0].length, mode=jobs[0].mode)

    async def testbench(ctx):
        driver = HostDriver(ctx, fabric, design)
        clock = driver.clock
        for edge in range(1, most):
            job = jobs[edge % len(jobs)]
            words, expected, receives = draw_words(fabric, job, seed=edge)
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

    engine.run_testbench(testbench)
