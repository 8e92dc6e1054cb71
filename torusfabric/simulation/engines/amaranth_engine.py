# amaranth: UnusedElaboratable=no
"""The reference engine: Amaranth's own simulator."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.sim import Simulator, SimulatorContext

from ...contract.traffic import Traffic
from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric
from .amaranth_host import Clock, HostDriver, Testbench
from .base import Engine, EngineRun, Job, Messages, Progress
from .gtkwave import wave_lines
from .waves import recording
from .words import Words

__all__ = ["AmaranthEngine", "wide_values"]


class AmaranthEngine(Engine):
    """Runs the whole fabric in Amaranth's simulator.

    Parameters
    ----------
    wave, through_port, repeat
        As of `Engine`; waves are of every signal.
    gated : bool
        Whether to leave the clocks of nodes still while they neither run nor are loaded or read,
        which changes nothing but the time it takes. Never done where ports of nodes are driven, or
        while waves are written.
    """

    name = "amaranth"

    def __init__(
        self,
        fabric: Fabric,
        *,
        wave: str | Path | None = None,
        through_port: bool = False,
        repeat: int = 1,
        gated: bool = True,
    ) -> None:
        super().__init__(fabric, wave=wave, through_port=through_port, repeat=repeat)
        self._gated = gated and wave is None and not fabric.interface.kernel

    @cached_property
    def design(self) -> Assembly:
        """What is simulated."""
        return Assembly(self.fabric.netlist, gated=self._gated)

    def run_all(
        self, batches: Sequence[Messages], jobs: Sequence[Job], progress: Progress | None
    ) -> list[EngineRun]:
        """Run several collectives one after another; see `Engine.run_many`."""
        runs: list[EngineRun] = []

        def advance(done: int, total: int) -> None:
            if progress:
                progress(len(runs) * total + done, len(batches) * total)

        async def testbench(ctx: SimulatorContext) -> None:
            driver = HostDriver(ctx, Clock(ctx, self.design), self.fabric, self.design, advance)
            await driver.load_image()
            for messages, job in zip(batches, jobs, strict=True):
                words = Words(self.fabric, messages, job, through_port=self._through_port)
                runs.append(await driver.run(words, job))

        self.simulate(testbench)
        return runs

    def run_traffic(self, traffic: Traffic, progress: Progress | None = None) -> Any:
        """Drive ports of nodes; see `Engine.run_traffic`."""
        return traffic.simulate(self.design, self.simulate, progress)

    def simulate(self, testbench: Testbench, *beside: Testbench) -> None:
        """Run a testbench of one's own on the design, and others as long as it runs."""
        with wide_values(), recording(self._wave, self.fabric, "bench.top.fabric") as vcd:
            named = None if vcd is None else WithWaveLines(self.design, self.fabric)
            simulator = Simulator(named or self.design)
            if not self._gated:
                simulator.add_clock(1e-8)
            for number, each in enumerate((testbench, *beside)):
                begun = _after_reset(each, named.reset) if named else each
                simulator.add_testbench(begun, background=number > 0)
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
