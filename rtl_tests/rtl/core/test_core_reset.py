"""`reset` ends a run; memories keep their words, and the next run is right."""

import numpy as np
import pytest
from core_runs import CoreJob, simulate_core

import torusfabric as tf
from torusfabric.rtl.core import Core


@pytest.mark.parametrize("options", [{"flits": 4}, {"max_flits": 4}])
@pytest.mark.parametrize("collective", ["allgather", "allreduce"])
def test_a_reset_in_the_middle_of_a_run_then_a_right_run(collective, options):
    program = tf.compile(tf.plan("2x3", collective), **options)
    core, job = Core(program, 8), CoreJob()
    rng = np.random.default_rng(3)

    async def bench(driver):
        words = driver.random_words(job, rng)
        expected = driver.expected(job, words)
        await driver.write(job, words)
        for edges in (0, 1, 2, 5, program.cycles() - 2):
            await driver.start(job)
            for _ in range(edges):
                await driver.ctx.tick()
            driver.set("reset", 1)
            await driver.ctx.tick()
            driver.set("reset", 0)
            assert not driver.get("busy")
            assert not driver.get("done")
            while not driver.get("idle"):
                await driver.ctx.tick()
            # The words in the send memories are still there.
            assert await driver.run(job) == program.cycles()
            assert (await driver.read(job, expected) == expected).all()

    simulate_core(core, bench)
