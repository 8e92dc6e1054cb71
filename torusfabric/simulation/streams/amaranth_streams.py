"""Streams in Amaranth's own simulator."""

import time

from amaranth.sim import SimulatorContext

from ...rtl.streams import Clocks
from ..engines.amaranth_engine import AmaranthEngine
from .apart import run_apart
from .bench import StreamBench
from .engine import Progress, StreamEngine, check_end
from .traffic import Log, Traffic

__all__ = ["AmaranthStreams"]


class AmaranthStreams(StreamEngine):
    """Runs the whole fabric in Amaranth's simulator."""

    name = "amaranth"

    def run(self, traffic: Traffic, progress: Progress | None = None) -> Log:
        """Carry out all traffic; see `StreamEngine.run`."""
        engine = AmaranthEngine(self.fabric, wave=self._wave, gated=False)
        log, began, bench = Log(), time.process_time(), []

        async def testbench(ctx: SimulatorContext) -> None:
            bench.append(made := StreamBench(ctx, engine.design, traffic, log, progress))
            if self.fabric.clocks is Clocks.ONE:
                await made.run()
            else:
                await run_apart(ctx, made, traffic.seed)

        engine.simulate(testbench)
        log.seconds = time.process_time() - began
        check_end(traffic, log, unsent=bench[0].unsent)
        return log
