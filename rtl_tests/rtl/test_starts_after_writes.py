"""A start at any moment at rest: the run begins as soon as the words written before are there."""

from itertools import product

import numpy as np
import pytest
from helpers import few

import torusfabric as tf
from torusfabric import collective as collectives
from torusfabric.simulation.engines import AmaranthEngine, Job
from torusfabric.simulation.engines.amaranth_host import Clock, HostDriver
from torusfabric.simulation.engines.words import PortWords, Words

#: Fabrics with messages of a length and of any, whose addresses take no division, or some.
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


def fabric_of(topology, names, options, **how):
    options = dict(options)
    beat, flits = options.pop("beat", 1), options.get("flits")
    plans = [tf.plan(topology, name, flits=flits) for name in names.split(",")]
    program = tf.compile(plans if len(plans) > 1 else plans[0], **options)
    return tf.Fabric(program, width=8, beat=beat, **how)


def drawn(fabric, job, rng):
    """Random messages for a run, and what must arrive, and where."""
    program = fabric.program
    part = program.part(program.form_of(job.mode, job.length))
    seed, length = int(rng.integers(1 << 30)), program.length_of(job.length)
    messages = collectives.random_messages(part.layout, length, width=fabric.width, seed=seed)
    return Words(fabric, messages, job, through_port=True), *fabric.delivered(
        messages, **job.inputs
    )


async def write(driver, words, rng):
    """Write all words in a random order, the last one in the edge before this returns."""
    written = words.put(None)
    order = rng.permutation(written.number)
    nodes, addresses, word = (each[order] for each in written)
    written = PortWords(nodes, addresses, word)
    await driver.write(written, words.beats(written))


@pytest.mark.parametrize(("topology", "names", "options"), few(5, FABRICS))
def test_a_run_begins_when_the_last_word_is_there(topology, names, options):
    """It is busy from its start on, and takes the forecast cycles from its begin."""
    fabric = fabric_of(topology, names, options)
    program, hold, rng = fabric.program, fabric.hold, np.random.default_rng(3)
    several, lengths = len(program.modes) > 1, {1, program.flits}
    jobs = [
        Job(mode if several else None, length, root=0 if program.modes[mode].any_root else None)
        for mode in range(len(program.modes))
        for length in (lengths if program.any_length else [None])
    ]
    engine = AmaranthEngine(fabric, gated=False)
    design = engine.design
    # The driver waits for what it has written; this is a user who does not.
    fabric.hold = 0

    async def testbench(ctx):
        clock = Clock(ctx, design)
        driver = HostDriver(ctx, clock, fabric, design)
        for job, gap, _ in product(jobs, range(hold + 2), range(2)):
            words, expected, receives = drawn(fabric, job, rng)
            await write(driver, words, rng)
            for _ in range(gap):
                await clock.tick()
            forecast = program.cycles(job.length, mode=job.mode)
            assert await driver.collect(job) == forecast + max(hold - gap, 0)
            assert ctx.get(design.cycles) == forecast
            await driver.take(words)
            assert (words.received[receives] == expected[receives]).all(), (job, gap)

    engine.simulate(testbench)
