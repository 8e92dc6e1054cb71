"""A core with room for several programs: its tables are loaded over the load bus."""

import numpy as np
import pytest
from core_runs import CoreJob, simulate_core

import torusfabric as tf
from torusfabric.rtl.core import Core


async def load(driver, words):
    """Load tables."""
    for table, row, piece, word in words:
        for name, value in (("table", table), ("row", row), ("piece", piece), ("word", word)):
            driver.set(f"load_{name}", value)
        driver.set("load_valid", 1)
        await driver.ctx.tick()
    driver.set("load_valid", 0)


@pytest.mark.parametrize("options", [{"flits": 3}, {"max_flits": 3}])
def test_tables_of_another_root_are_loaded(options):
    programs = [
        tf.compile(tf.plan("3x3", "broadcast", algorithm="spanning-tree", root=root), **options)
        for root in (0, 4)
    ]
    core, job = Core(programs[0], 8, room=programs[1:]), CoreJob()
    rng, runs = np.random.default_rng(5), []

    async def bench(driver):
        for number in (0, 1, 0):
            await load(driver, core.load_words(number))
            driver.program = core.program = programs[number]
            words = driver.random_words(job, rng)
            expected = driver.expected(job, words)
            await driver.write(job, words)
            assert await driver.run(job) == programs[number].cycles()
            runs.append(int((await driver.read(job, expected) != expected).sum()))

    simulate_core(core, bench)
    assert runs == [0, 0, 0]
