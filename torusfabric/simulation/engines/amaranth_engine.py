# amaranth: UnusedElaboratable=no
"""The reference engine: Amaranth's own simulator."""

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeAlias

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.sim import Simulator, SimulatorContext

from ...errors import WorkFailed
from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric
from .base import (
    PATIENCE,
    Engine,
    EngineRun,
    Job,
    Messages,
    PhaseTimes,
    Progress,
    gathered,
    longest_job,
    spread,
    words_moved,
)
from .waves import recording, wave_lines

__all__ = ["AmaranthEngine", "FreeClock", "GatedClock", "HostDriver", "Testbench", "wide_values"]

#: What drives a design.
Testbench: TypeAlias = Callable[[SimulatorContext], Coroutine[Any, Any, None]]


class AmaranthEngine(Engine):
    """Runs the whole fabric in Amaranth's simulator.

    Parameters
    ----------
    fabric : Fabric
    wave : str or Path, optional
        File that every signal's changes are written to.
    gated : bool
        Whether to leave the clocks of nodes still while they neither run nor are loaded or read,
        which changes nothing but the time it takes. Never done while waves are written.
    """

    name = "amaranth"

    def __init__(
        self, fabric: Fabric, *, wave: str | Path | None = None, gated: bool = True
    ) -> None:
        super().__init__(fabric, wave=wave)
        self._gated = gated and wave is None
        self.design = Assembly(fabric.netlist, gated=self._gated)

    def run_many(
        self,
        batches: Iterable[Messages],
        *,
        jobs: Sequence[Job] = (),
        progress: Progress | None = None,
    ) -> list[EngineRun]:
        """Run several collectives one after another; see `Engine.run_many`."""
        runs: list[EngineRun] = []
        batches = list(batches)

        def advance(done: int, total: int) -> None:
            if progress:
                progress(len(runs) * total + done, len(batches) * total)

        async def testbench(ctx: SimulatorContext) -> None:
            clock = (GatedClock if self._gated else FreeClock)(ctx, self.design)
            driver = HostDriver(ctx, clock, self.fabric, self.design, advance)
            for number, messages in enumerate(batches):
                before, times = clock.ticks, [time.process_time()]
                job = jobs[number] if jobs else longest_job(self.fabric)
                await driver.load(spread(self.fabric, messages, job), job)
                times.append(time.process_time())
                edges = await driver.collect(job)
                times.append(time.process_time())
                words = gathered(self.fabric, await driver.read(job), job)
                times.append(time.process_time())
                phases = PhaseTimes(*(b - a for a, b in pairwise(times)))
                cycles = ctx.get(self.design.cycles)
                runs.append(EngineRun(words, cycles, edges, clock.ticks - before, phases))

        self.simulate(testbench)
        return runs

    def measure(self, runs: int) -> tuple[int, float]:
        """Run collectives on whatever is in memory; see `Engine.measure`."""
        cycles, seconds = 0, 0.0

        async def testbench(ctx: SimulatorContext) -> None:
            clock = (GatedClock if self._gated else FreeClock)(ctx, self.design)
            driver = HostDriver(ctx, clock, self.fabric, self.design)
            nonlocal cycles, seconds
            began = time.process_time()
            for _ in range(runs):
                cycles += await driver.collect(longest_job(self.fabric))
            seconds = time.process_time() - began

        self.simulate(testbench)
        return cycles, seconds

    def simulate(self, testbench: Testbench) -> None:
        """Run a testbench of one's own on the design."""
        with wide_values(), recording(self._wave, self.fabric) as vcd:
            named = None if vcd is None else WithWaveLines(self.design, self.fabric)
            simulator = Simulator(named or self.design)
            if not self._gated:
                simulator.add_clock(1e-8)
            simulator.add_testbench(_after_reset(testbench, named.reset) if named else testbench)
            with contextlib.ExitStack() as stack:
                if vcd:
                    # Opened here, for Amaranth does not close it where it cannot be written.
                    file = stack.enter_context(open(vcd, "w", encoding="utf-8"))
                    stack.enter_context(simulator.write_vcd(file))
                simulator.run()


@contextlib.contextmanager
def wide_values() -> Iterator[None]:
    """Let values have any number of digits, which are written into the code of the simulation.

    Python has a limit, that of 14,285 bits: the out-ports of a router on seven axes have more.
    """
    if not hasattr(sys, "set_int_max_str_digits"):  # before 3.10.7
        yield
        return
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def _after_reset(testbench: Testbench, reset: Signal) -> Testbench:
    """A testbench that begins with a reset, which changes nothing here: waves show it."""

    async def reset_first(ctx: SimulatorContext) -> None:
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await testbench(ctx)

    return reset_first


class WithWaveLines(Elaboratable):
    """A design, and beside it the lines of the whole and of each node by their names in waves.

    Parameters
    ----------
    design : Assembly
        With one clock for all.
    fabric : Fabric

    Attributes
    ----------
    reset : Signal
    """

    def __init__(self, design: Assembly, fabric: Fabric) -> None:
        self._design, self._fabric = design, fabric
        self._domain = ClockDomain("sync")
        self.reset = self._domain.rst

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self._domain
        m.submodules.design = self._design
        m.submodules.fabric = whole = Module()
        for node, lines in groupby(wave_lines(self._fabric), lambda line: line.node):
            scope = whole if node is None else Module()
            if node is not None:
                whole.submodules[f"node_{node}"] = scope
            named: list[Signal] = []
            nets: list[Value] = []
            if node is None:
                named += [Signal(name="clk"), Signal(name="rst")]
                nets += [self._domain.clk, self._domain.rst]
            for _, name, part in lines:
                named.append(Signal(part.width, name=name))
                nets.append(self._design.net(part.net)[part.start : part.start + part.width])
            # What is named first keeps its name where a net has the same.
            scope.d.comb += Cat(*named).eq(Cat(*nets))
        return m


class FreeClock:
    """One clock for the whole design."""

    def __init__(self, ctx: SimulatorContext, design: Assembly) -> None:
        self._ctx, self.ticks = ctx, 0

    async def tick(self, *nodes: int) -> None:
        """Pass one edge; the nodes concerned do not matter."""
        await self._ctx.tick()
        self.ticks += 1


class GatedClock:
    """A clock for each node, at rest unless asked for."""

    def __init__(self, ctx: SimulatorContext, design: Assembly) -> None:
        self._ctx, self.ticks = ctx, 0
        self._rest = design.domains[None].clk
        self._nodes = {node: d.clk for node, d in design.domains.items() if node is not None}
        self._all = Cat(self._rest, *self._nodes.values())

    async def tick(self, *nodes: int) -> None:
        """Pass one edge of the common part and of these nodes (of all nodes, without any)."""
        clocks = Cat(self._rest, *(self._nodes[n] for n in {*nodes})) if nodes else self._all
        self._ctx.set(clocks, -1)
        self._ctx.set(clocks, 0)
        self.ticks += 1


#: The job of a fabric that leaves no choice.
ANY_JOB = Job()


class HostDriver:
    """Drives the host port of a design, one word a cycle.

    Parameters
    ----------
    ctx : SimulatorContext
    clock : FreeClock or GatedClock
    fabric : Fabric
    design : Assembly
    progress : function of (done, total), optional
    """

    def __init__(
        self,
        ctx: SimulatorContext,
        clock: "FreeClock | GatedClock",
        fabric: Fabric,
        design: Assembly,
        progress: Progress | None = None,
    ) -> None:
        self._ctx, self._clock = ctx, clock
        self._fabric, self._design = fabric, design
        self._progress = progress or (lambda done, total: None)
        self._total, self._done = words_moved(fabric), 0

    def _advance(self, words: int) -> None:
        self._done += words
        self._progress(self._done, self._total)

    async def load(self, messages: Messages, job: Job = ANY_JOB) -> None:
        """Write every node's send memory."""
        design, ctx = self._design, self._ctx
        base = self._fabric.layouts[job.mode or 0].send_base
        # The nodes that the writes under way are for.
        window = deque([0], maxlen=1 + self._fabric.write_latency)
        self._done = 0
        ctx.set(design.host_we, 1)
        for node, message in enumerate(messages):
            ctx.set(design.host_node, node)
            for place, word in enumerate(message):
                ctx.set(design.host_addr, base + place)
                ctx.set(design.host_wdata, int(word))
                window.append(node)
                await self._clock.tick(*window)
            self._advance(len(message))
        ctx.set(design.host_we, 0)

    async def collect(self, job: Job) -> int:
        """Start, and wait for done; returns the clock edges between."""
        design, ctx = self._design, self._ctx
        for name, value in job.inputs.items():
            ctx.set(getattr(design, name), value)
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        ctx.set(design.start, 1)
        await self._clock.tick()
        ctx.set(design.start, 0)
        edges, limit = 0, expected + PATIENCE
        while not ctx.get(design.done):
            if not ctx.get(design.busy) or edges == limit:
                raise WorkFailed(
                    f"Fabric must be done {expected} edges after its start, "
                    f"not {'busy' if ctx.get(design.busy) else 'idle'} after {edges}"
                )
            await self._clock.tick()
            edges += 1
        await self._clock.tick()
        return edges

    async def read(self, job: Job = ANY_JOB) -> list[list[int]]:
        """Read every node's receive memory."""
        design, ctx, latency = self._design, self._ctx, self._fabric.read_latency
        layout = self._fabric.layouts[job.mode or 0]
        base, count = layout.recv_base, layout.recv_words
        total = self._fabric.nodes * count
        words: list[int] = []
        for k in range(total + latency):
            if k >= latency:
                words.append(ctx.get(design.host_rdata))
            node, place = divmod(min(k, total - 1), count)
            if not place:
                ctx.set(design.host_node, node)
                self._advance(count)
            ctx.set(design.host_addr, base + place)
            # What nodes showed before is gone by the time that the first word comes.
            concerned = range((k - latency) // count, node + 1) if k >= latency else ()
            await self._clock.tick(*concerned)
        return [words[start : start + count] for start in range(0, total, count)]
