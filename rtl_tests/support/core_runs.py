"""Runs of a core in Amaranth's simulator, compared with `Program.execute` and `Program.cycles`."""

from dataclasses import dataclass

import numpy as np
from amaranth.sim import Simulator

from torusfabric.rtl.core.core import Core
from torusfabric.rtl.flit_rows import FlitRows


@dataclass(frozen=True)
class CoreJob:
    """Choices of a run."""

    mode: int = 0
    length: int | None = None
    root: int | None = None
    operation: int | None = None
    section: int = 0


class CoreDriver:
    """Driver that writes messages into a core, starts runs, and reads arrived words."""

    def __init__(self, ctx, core, design):
        self.ctx, self.core, self.design = ctx, core, design
        self.program, self.ones = core.program, (1 << core.width) - 1

    def set(self, name, value):
        if hasattr(self.design, name):
            self.ctx.set(getattr(self.design, name), int(value))

    def get(self, name):
        return self.ctx.get(getattr(self.design, name))

    def options(self, job):
        """Return the options of `Program.execute` and `Program.cycles` for a job."""
        options = {"mode": job.mode}
        if self.program.any_length:
            options["length"] = job.length
        if self.program.modes[job.mode].any_root:
            options["root"] = job.root
        return options

    def places(self, job, *, received):
        """Return memory and address of each word of the core's nodes."""
        return self.core.locate_words(received=received, **self.options(job))

    def random_words(self, job, rng):
        flits = self.program.length_of(job.length)
        layout = self.program.part(self.program.form_of(job.mode, flits, job.root)).layout
        shape = self.program.topology.nodes, layout.send_words(flits)
        return rng.integers(0, 1 << self.core.width, shape, dtype=np.uint64)

    def expected(self, job, words):
        options = self.options(job)
        if len(self.program.operators) > 1 and self.program.modes[job.mode].operators:
            options["operation"] = job.operation or 0
        return self.program.execute(words, width=self.core.width, **options)

    def rows(self, job, words):
        """Return the memory rows of a message for each node: bank, address and flits."""
        beat, width = self.core.beat, self.core.width
        memory, address = self.places(job, received=False)
        rows = [{} for _ in self.core.nodes]
        for (node, index), at in np.ndenumerate(address):
            if at >= 0:
                row = int(memory[node, index]), int(at - at % beat)
                word = int(words[self.core.nodes[node], index]) << int(at % beat) * width
                rows[node][row] = rows[node].get(row, 0) | word
        return [[(*row, flits) for row, flits in of_node.items()] for of_node in rows]

    def write_row(self, job, rows, index):
        """Drive the memory ports with row number `index` of each node."""
        for node, of_node in enumerate(rows):
            there = index < len(of_node)
            self.set(f"write_enable_{node}", there)
            if there:
                bank, address, flits = of_node[index]
                self.set(f"write_bank_{node}", bank)
                self.set(f"write_address_{node}", address)
                self.set(f"write_section_{node}", job.section)
                self.set(f"write_data_{node}", flits)

    async def write(self, job, words):
        """Write a message."""
        rows = self.rows(job, words)
        for index in range(max(map(len, rows))):
            self.write_row(job, rows, index)
            await self.ctx.tick()
        for node in range(len(self.core.nodes)):
            self.set(f"write_enable_{node}", 0)

    async def start(self, job):
        """Start a run, and return in the next cycle."""
        program = self.program
        flits = program.length_of(job.length)
        entry = program.form_of(job.mode, flits, job.root)
        self.set("entry", entry)
        # The sequencer samples `last` with the start, or with several forms a cycle later.
        self.set("last", program.forms[entry].block_of(flits) - 1)
        self.set("root", job.root or 0)
        self.set("operation", job.operation or 0)
        self.set("section", job.section)
        self.set("start", 1)
        await self.ctx.tick()
        for name in ("start", "entry", "root", "operation", "section"):
            self.set(name, 0)

    async def run(self, job):
        """Run to the end; return the clock edges from start to done."""
        await self.start(job)
        edges, most = 0, self.program.cycles(**self.options(job)) + 20
        while not self.get("done") and edges < most:
            await self.ctx.tick()
            edges += 1
        return edges

    def layout(self, memory):
        """Return the layout of flits in the rows of a memory."""
        rows = self.core.rows
        pitch = 1 if rows.memories[memory].own else max(rows.pitch_of(memory))
        return FlitRows(self.core.beat, pitch)

    def ask_row(self, node, memory, address, section):
        """Drive a memory port with the address of the row that holds a flit."""
        _, flit = self.layout(memory).split_address(address)
        self.set(f"read_bank_{node}", memory)
        self.set(f"read_address_{node}", address - flit * self.layout(memory).pitch)
        self.set(f"read_section_{node}", section)

    def read_flit(self, node, memory, address):
        """Return the flit of an address from the row on a memory port."""
        _, flit = self.layout(memory).split_address(address)
        return self.get(f"read_data_{node}") >> int(flit) * self.core.width & self.ones

    async def read(self, job, expected):
        """Read arrived words, one each cycle."""
        memory, address = self.places(job, received=True)
        found, answer = np.zeros_like(expected[self.core.nodes]), self.core.memory_port.read_cycles
        count = expected.shape[1]
        for index in range(count + answer):
            for node in range(len(self.core.nodes)):
                there = index < count and address[node, index] >= 0
                self.set(f"read_enable_{node}", there)
                if there:
                    self.ask_row(node, memory[node, index], address[node, index], job.section)
                asked = index - answer
                if asked >= 0:
                    found[node, asked] = self.read_flit(
                        node, memory[node, asked], address[node, asked]
                    )
            await self.ctx.tick()
        return found


def simulate_core(core, bench):
    """Simulate a core with a testbench, an async function that takes a `CoreDriver`."""
    design = core.make_component()

    async def testbench(ctx):
        await bench(CoreDriver(ctx, core, design))

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def core_faults(program, jobs, *, width=16, **options):
    """Run jobs one after another; return the faults in words."""
    core, faults = Core(program, width, **options), []
    rng = np.random.default_rng(1)

    async def bench(driver):
        for job in jobs:
            words = driver.random_words(job, rng)
            expected = driver.expected(job, words)
            await driver.write(job, words)
            edges = await driver.run(job)
            wrong = int((await driver.read(job, expected) != expected[core.nodes]).sum())
            forecast = program.cycles(**driver.options(job))
            shown = driver.get("cycles")
            if wrong or edges != forecast or shown != forecast:
                faults.append(
                    f"{job}: {wrong} of {expected.size} words wrong, {edges} cycles, {shown} shown"
                    f" for {forecast}"
                )

    simulate_core(core, bench)
    return faults
