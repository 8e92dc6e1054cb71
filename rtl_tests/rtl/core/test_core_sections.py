"""The memory ports of a concurrent core write and read other sections during runs."""

import numpy as np
import pytest
from core_runs import CoreDriver, CoreJob, core_faults, simulate_core

import torusfabric as tf
from torusfabric.rtl.core import Core

#: Messages that are loaded, run and unloaded one after another.
MESSAGES = 4


class Pipeline:
    """A pipeline that loads message m + 1, runs message m and unloads message m - 1 at once."""

    def __init__(self, driver: CoreDriver, rng):
        self.driver, self.core = driver, driver.core
        self.jobs = [CoreJob(section=number % 2) for number in range(MESSAGES)]
        self.words = [driver.random_words(job, rng) for job in self.jobs]
        self.expected = [
            driver.expected(job, words) for job, words in zip(self.jobs, self.words, strict=True)
        ]
        self.rows = [
            driver.rows(job, words) for job, words in zip(self.jobs, self.words, strict=True)
        ]
        self.received = [np.zeros_like(each) for each in self.expected]

    def load(self, number, cycle):
        """Write the row of a cycle through the write ports."""
        self.driver.write_row(self.jobs[number], self.rows[number], cycle)

    def unload(self, number, cycle):
        """Request the word of a cycle, and take the word requested `read_cycles` cycles ago."""
        driver, job = self.driver, self.jobs[number]
        memory, address = driver.places(job, received=True)
        asked = cycle - driver.core.memory_port.read_cycles
        for node in range(len(driver.core.nodes)):
            there = cycle < memory.shape[1] and address[node, cycle] >= 0
            driver.set(f"read_advance_{node}", 1)
            if there:
                driver.ask_row(node, memory[node, cycle], address[node, cycle], job.section)
            if 0 <= asked < memory.shape[1]:
                self.received[number][node, asked] = driver.read_flit(
                    node, memory[node, asked], address[node, asked]
                )

    async def step(self, number):
        """Run message `number`, if it exists, while its neighbours are moved."""
        driver, ctx = self.driver, self.driver.ctx
        runs = 0 <= number < MESSAGES
        if runs:
            driver.set("section", self.jobs[number].section)
            driver.set("start", 1)
        program = driver.program
        words = max(
            self.words[0].shape[1], self.expected[0].shape[1] + driver.core.memory_port.read_cycles
        )
        for cycle in range(max(words, program.cycles() + 1)):
            if number + 1 < MESSAGES:
                self.load(number + 1, cycle)
            if number - 1 >= 0:
                self.unload(number - 1, cycle)
            await ctx.tick()
            driver.set("start", 0)
        if runs:
            assert driver.get("done")


def three_messages_at_once(core):
    """Run messages one after another, with loads and unloads meanwhile; return the wrong words."""
    wrong = []

    async def bench(driver):
        pipeline = Pipeline(driver, np.random.default_rng(2))
        for number in range(-1, MESSAGES + 1):
            await pipeline.step(number)
        # A node's own block is overwritten by the next message in the same section.
        bank, address = core.locate_words(received=True)
        own = np.array([memory.own for memory in core.rows.memories])[bank]
        assert not own.all()
        for received, expected in zip(pipeline.received, pipeline.expected, strict=True):
            wrong.append(int(((received != expected) & ~own & (address >= 0)).sum()))

    simulate_core(core, bench)
    return wrong


@pytest.mark.parametrize("beat", [1, 2])
@pytest.mark.parametrize(
    ("topology", "collective", "options"),
    [
        ("2", "allgather", {}),
        ("2", "alltoall", {}),
        ("2", "allreduce", {}),
        ("2x2", "broadcast", {"root": "any"}),
    ],
)
def test_three_messages_at_once(topology, collective, options, beat):
    program = tf.compile(tf.plan(topology, collective), flits=8, **options)
    core = Core(program, 8, beat=beat, sections=2, concurrent=True)
    assert three_messages_at_once(core) == [0] * MESSAGES


def test_rows_that_arrive_rotated_are_found():
    """Readers of shared memories rotate rows, and the core locates each flit."""
    program = tf.compile(tf.plan("3", "alltoall"), flits=32)
    core = Core(program, 32, beat=2, sections=2, concurrent=True)
    _, address = core.locate_words(received=True)
    # Words of two flits begin at the first or at the second flit of a row.
    assert {*(address[:, ::2] % 2).ravel().tolist()} == {0, 1}
    assert three_messages_at_once(core) == [0] * MESSAGES


@pytest.mark.parametrize(
    ("collective", "flits"), [("allgather", 1), ("broadcast", 1), ("reduce", 3)]
)
def test_runs_in_sections_are_right_one_by_one(collective, flits):
    """Runs in sections are right, even with one word a section that run and port both read."""
    program = tf.compile(tf.plan("3x3", collective), flits=flits)
    assert not core_faults(program, [CoreJob(section=k) for k in (0, 1, 1, 0)], sections=2)
