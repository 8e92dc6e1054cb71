# amaranth: UnusedElaboratable=no
"""The reference engine: Amaranth's own simulator."""

import contextlib
import time
from collections import deque
from itertools import groupby, pairwise

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal
from amaranth.sim import Simulator

from ...errors import WorkFailed
from ...rtl.assembly import Assembly
from .base import PATIENCE, Engine, Phases, Run
from .waves import lines, recording

__all__ = ["AmaranthEngine"]


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

    def __init__(self, fabric, *, wave=None, gated=True):
        super().__init__(fabric, wave=wave)
        self._gated = gated and wave is None
        self.design = Assembly(fabric.netlist, gated=self._gated)

    def run_many(self, batches, *, roots=None, progress=None):
        runs = []

        async def testbench(ctx):
            clock = (GatedClock if self._gated else FreeClock)(ctx, self.design)
            driver = HostDriver(ctx, clock, self.fabric, self.design, progress)
            for number, messages in enumerate(batches):
                before, times = clock.ticks, [time.process_time()]
                await driver.load(messages)
                times.append(time.process_time())
                edges = await driver.collect(roots[number] if roots else None)
                times.append(time.process_time())
                words = await driver.read()
                times.append(time.process_time())
                phases = Phases(*(b - a for a, b in pairwise(times)))
                cycles = ctx.get(self.design.cycles)
                runs.append(Run(words, cycles, edges, clock.ticks - before, phases))

        self.simulate(testbench)
        return runs

    def measure(self, runs):
        spent = [0, 0.0]

        async def testbench(ctx):
            clock = (GatedClock if self._gated else FreeClock)(ctx, self.design)
            driver = HostDriver(ctx, clock, self.fabric, self.design)
            began = time.process_time()
            for _ in range(runs):
                spent[0] += await driver.collect()
            spent[1] = time.process_time() - began

        self.simulate(testbench)
        return tuple(spent)

    def simulate(self, testbench):
        """Run a testbench of one's own on the design."""
        with recording(self._wave, self.fabric) as vcd:
            shown = None if vcd is None else Shown(self.design, self.fabric)
            simulator = Simulator(shown or self.design)
            if not self._gated:
                simulator.add_clock(1e-8)
            simulator.add_testbench(after_reset(testbench, shown) if shown else testbench)
            with simulator.write_vcd(vcd) if vcd else contextlib.nullcontext():
                simulator.run()


def after_reset(testbench, shown):
    """A testbench that begins with a reset, which changes nothing here: waves show it."""

    async def reset_first(ctx):
        ctx.set(shown.reset, 1)
        await ctx.tick()
        ctx.set(shown.reset, 0)
        await testbench(ctx)

    return reset_first


class Shown(Elaboratable):
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

    def __init__(self, design, fabric):
        self._design, self._fabric = design, fabric
        self._domain = ClockDomain("sync")
        self.reset = self._domain.rst

    def elaborate(self, platform):
        m = Module()
        m.domains += self._domain
        m.submodules.design = self._design
        m.submodules.fabric = whole = Module()
        for node, shown in groupby(lines(self._fabric), lambda line: line.node):
            scope = whole if node is None else Module()
            if node is not None:
                whole.submodules[f"node_{node}"] = scope
            named, nets = [], []
            if node is None:
                named += [Signal(name="clk"), Signal(name="rst")]
                nets += [self._domain.clk, self._domain.rst]
            for _, name, part in shown:
                named.append(Signal(part.width, name=name))
                nets.append(self._design.net(part.net)[part.start : part.start + part.width])
            # What is named first keeps its name where a net has the same.
            scope.d.comb += Cat(*named).eq(Cat(*nets))
        return m


class FreeClock:
    """One clock for the whole design."""

    def __init__(self, ctx, design):
        self._ctx, self.ticks = ctx, 0

    async def tick(self, *nodes):
        """Pass one edge; the nodes concerned do not matter."""
        await self._ctx.tick()
        self.ticks += 1


class GatedClock:
    """A clock for each node, at rest unless asked for."""

    def __init__(self, ctx, design):
        self._ctx, self.ticks = ctx, 0
        self._rest = design.domains[None].clk
        self._nodes = {node: d.clk for node, d in design.domains.items() if node is not None}
        self._all = Cat(self._rest, *self._nodes.values())

    async def tick(self, *nodes):
        """Pass one edge of the common part and of these nodes (of all nodes, without any)."""
        clocks = Cat(self._rest, *(self._nodes[n] for n in {*nodes})) if nodes else self._all
        self._ctx.set(clocks, -1)
        self._ctx.set(clocks, 0)
        self.ticks += 1


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

    def __init__(self, ctx, clock, fabric, design, progress=None):
        self._ctx, self._clock = ctx, clock
        self._fabric, self._design = fabric, design
        self._progress = progress or (lambda done, total: None)
        self._layout = fabric.layout
        words = self._layout.send_words + self._layout.recv_words
        self._total, self._done = fabric.nodes * words, 0

    def _advance(self, words):
        self._done += words
        self._progress(self._done, self._total)

    async def load(self, messages):
        """Write every node's send memory."""
        design, ctx = self._design, self._ctx
        # The nodes that the writes under way are for.
        window = deque([0], maxlen=2 + self._fabric.write_delay)
        self._done = 0
        ctx.set(design.host_we, 1)
        for node, message in enumerate(messages):
            ctx.set(design.host_node, node)
            for place, word in enumerate(message):
                ctx.set(design.host_addr, self._layout.send_base + place)
                ctx.set(design.host_wdata, int(word))
                window.append(node)
                await self._clock.tick(*window)
            self._advance(len(message))
        ctx.set(design.host_we, 0)

    async def collect(self, root=None):
        """Start, and wait for done; returns the clock edges between."""
        design, ctx = self._design, self._ctx
        if root is not None:
            ctx.set(design.root, root)
        ctx.set(design.start, 1)
        await self._clock.tick()
        ctx.set(design.start, 0)
        edges, limit = 0, self._fabric.cycles + PATIENCE
        while not ctx.get(design.done):
            if not ctx.get(design.busy) or edges == limit:
                raise WorkFailed(
                    f"Fabric must be done {self._fabric.cycles} edges after its start, "
                    f"not {'busy' if ctx.get(design.busy) else 'idle'} after {edges}"
                )
            await self._clock.tick()
            edges += 1
        await self._clock.tick()
        return edges

    async def read(self):
        """Read every node's receive memory."""
        design, ctx, latency = self._design, self._ctx, self._fabric.read_latency
        base, count = self._layout.recv_base, self._layout.recv_words
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
            await self._clock.tick(*range(max(k - latency, 0) // count, node + 1))
        return [words[start : start + count] for start in range(0, total, count)]
