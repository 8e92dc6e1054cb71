"""Starts soon after a write: the run begins as soon as the written words are in memory."""

from itertools import product

import numpy as np
import pytest
from fabrics import build_fabric, choose_jobs, draw_words
from helpers import few
from host_driver import HostDriver

from torusfabric.adapters.host.drive.words import PortAccesses
from torusfabric.simulation.engines import AmaranthEngine

#: Fabrics for a fixed length and for any length, with and without division of addresses.
FABRICS = [
    ("3", "alltoall", {"flits": 3}),
    ("2x2", "alltoall", {"flits": 4}),
    ("2x3", "scatter", {"flits": 5}),
    ("3", "reduce-scatter,gather", {"max_flits": 5}),
    ("2x3", "alltoall,broadcast", {"max_flits": 7}),
    ("4", "reduce-scatter", {"flits": 7}),
    ("3", "alltoall", {"flits": 6, "beat": 2}),
    ("3x3", "allgather", {"flits": 4}),
    ("3", "broadcast,scatter", {"max_flits": 3, "root": "any"}),
    ("5", "allgather", {"max_flits": 9}),
]


async def write(driver, words, rng):
    """Write all words in a random order, the last one in the edge before this returns."""
    written = words.write_direct(None)
    order = rng.permutation(written.n_accesses)
    nodes, addresses, word = (each[order] for each in written)
    written = PortAccesses(nodes, addresses, word)
    await driver.write(written, words.written_beats(written))


@pytest.mark.parametrize(("topology", "names", "options"), few(4, FABRICS))
def test_a_run_begins_when_the_last_word_is_there(topology, names, options):
    """A run is busy from its start on, and begins once the last write is stored."""
    fabric = build_fabric(topology, names, **options)
    program, hold, rng = fabric.program, fabric.hold, np.random.default_rng(3)
    jobs = choose_jobs(program)[: 2 * len(program.modes)]
    engine = AmaranthEngine(fabric, gated=False)
    design = engine.design
    # The driver would wait until its writes are stored; a user may not wait.
    fabric.hold = 0

    async def testbench(ctx):
        driver = HostDriver(ctx, fabric, design)
        clock = driver.clock
        for job, gap, _ in product(jobs, range(hold + 2), range(2)):
            words, expected, receives = draw_words(fabric, job, seed=int(rng.integers(1 << 30)))
            await write(driver, words, rng)
            for _ in range(gap):
                await clock.tick()
            forecast = program.cycles(job.length, mode=job.mode)
            assert await driver.collect(job) == forecast + max(hold - gap, 0)
            assert ctx.get(design.cycles) == forecast
            await driver.take(words)
            assert (words.received[receives] == expected[receives]).all(), (job, gap)

    engine.run_testbench(testbench)
