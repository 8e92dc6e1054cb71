"""The driver of streams in Amaranth's simulator: sources and sinks, all of which stall at random.

A *port* is here one end of a stream, a source or a sink. Each clock has a process. It sets the
signals of its ports after the falling edge, and samples them shortly before the rising edge. A beat
is transferred at a rising edge if `tvalid` and `tready` are high.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import Signal
from amaranth.sim import SimulatorContext

from ....rtl.assembly import Assembly
from .beats import SIGNALS, Beat, Sink, Source, StreamLog

if TYPE_CHECKING:
    from ....simulation.engines.amaranth_engine import Testbench
    from ....simulation.engines.base import Progress
    from .traffic import StreamTraffic

__all__ = ["StreamBench"]

#: Cycles between two reports of the progress.
REPORT_CYCLES = 64

#: The period of the fabric clock in femtoseconds; the clock rises in the middle of it.
PERIOD = 10_000_000

#: Limits of the periods of other clocks, relative to the fabric clock.
SHORTEST_PERIOD, LONGEST_PERIOD = 0.4, 2.4


class StreamBench:
    """The senders and receivers at all streams of a simulated fabric, and a log of received beats.

    Attributes
    ----------
    log : StreamLog
        The record of the simulation so far.
    """

    def __init__(self, design: Assembly, traffic: StreamTraffic, progress: Progress | None) -> None:
        self._design, self._traffic, self.log = design, traffic, StreamLog()
        self._progress = progress or (lambda done, total: None)
        random = np.random.default_rng(traffic.seed)
        self._sources = [_SourceDriver(design, source, random) for source in traffic.sources]
        sinks = [_SinkDriver(design, sink, random, self.log) for sink in traffic.sinks]
        self._ports: list[_StreamEnd] = [*self._sources, *sinks]
        self._left, self._quiet, self._was_busy = traffic.n_beats, 0, False
        self._error = 0

    @property
    def n_unsent(self) -> int:
        """Number of beats that the fabric has not accepted."""
        return sum(len(source.beats) for source in self._sources)

    def testbenches(self) -> list[Testbench]:
        """Return one process of Amaranth's simulator for each clock; it drives streams with it.

        The process of the fabric clock comes first, and the simulation ends when it ends. Periods
        and phases of the other clocks are random, so that edges of two clocks drift past each
        other.
        """
        # The ports of each clock; the clock of the fabric is None.
        found: dict[str, tuple[Signal | None, list[_StreamEnd]]] = {"": (None, [])}
        for port in self._ports:
            name = f"clk_{port.prefix.rpartition('_')[2]}"
            clock = getattr(self._design, name, None)
            found.setdefault(name if clock is not None else "", (clock, []))[1].append(port)
        domains = list(found.values())
        if len(domains) == 1:
            return [self._run_one_clock]
        random, own = np.random.default_rng(self._traffic.seed), domains[1:]
        periods = [int(PERIOD * random.uniform(SHORTEST_PERIOD, LONGEST_PERIOD)) for _ in own]
        phases = [int(random.integers(1, PERIOD)) for _ in own]
        starts = zip(domains, [PERIOD, *periods], [0, *phases], strict=True)
        return [self._make_testbench(*domain, period, phase) for domain, period, phase in starts]

    @property
    def _is_over(self) -> bool:
        """True if no beat has been transferred for so long that the simulation has to end."""
        traffic = self._traffic
        return self._quiet >= (traffic.patience if self._left > 0 else traffic.settling)

    async def _run_one_clock(self, ctx: SimulatorContext) -> None:
        """Run the simulation if all streams have the fabric clock."""
        while not self._is_over:
            for port in self._ports:
                port.drive_signals(ctx)
            self._record_beats(ctx, self._ports)
            self._end_cycle(ctx)
            await ctx.tick()

    def _make_testbench(
        self, clock: Signal | None, ports: Sequence[_StreamEnd], period: int, phase: int
    ) -> Testbench:
        """Return the process that drives one of several clocks, and the streams with this clock.

        Parameters
        ----------
        clock : Signal or None
            The clock to drive; None for the fabric clock, which the simulator drives.
        ports : sequence of _StreamEnd
            Senders and receivers with this clock. Their streams are sampled just before it rises.
        period, phase : int
            Period of the clock, and delay of its first period, in femtoseconds.
        """
        half = period // 2
        early = half // 8 if clock is None else 0

        async def testbench(ctx: SimulatorContext) -> None:
            await ctx.delay(phase * 1e-15)
            while clock is not None or not self._is_over:
                if clock is not None:
                    ctx.set(clock, 0)
                for port in ports:
                    port.drive_signals(ctx)
                await ctx.delay((half - early) * 1e-15)
                self._record_beats(ctx, ports)
                if clock is not None:
                    ctx.set(clock, 1)
                else:
                    self._end_cycle(ctx)
                await ctx.delay((half + early) * 1e-15)

        return testbench

    def _record_beats(self, ctx: SimulatorContext, ports: Sequence[_StreamEnd]) -> None:
        """Sample some streams before a clock edge, and count the beats transferred at this edge.

        `ctx` is the simulator's context of the process, and `ports` are the senders and receivers
        with the clock.
        """
        beats = sum([port.sample_beat(ctx, self.log.clocks) for port in ports])
        # After all expected beats have arrived, further ones must not keep the simulation alive.
        if beats and self._left > 0:
            self._quiet = -1  # up to the end of this cycle
        self._left -= beats

    def _end_cycle(self, ctx: SimulatorContext) -> None:
        """Count a cycle of the fabric clock, and log if a run has ended or `error` has changed.

        `ctx` is the simulator's context of the process.
        """
        log, traffic = self.log, self._traffic
        busy = bool(ctx.get(self._design.busy))
        if self._was_busy and not busy:
            log.runs.append((log.clocks, int(ctx.get(self._design.cycles))))
        self._was_busy = busy
        error = int(ctx.get(self._design.error))
        if error != self._error:
            log.errors.append(error)
        self._error = error
        log.clocks += 1
        self._quiet += 1
        if log.clocks % REPORT_CYCLES == 0:
            self._progress(traffic.n_beats - max(self._left, 0), traffic.n_beats)


class _StreamEnd(ABC):
    """The driver at one stream of the fabric: a sender (source) or a receiver (sink)."""

    def __init__(self, design: Assembly, end: Source | Sink, random: np.random.Generator) -> None:
        self._design, self.prefix, self._stall = design, end.prefix, end.stall
        self._random = random
        self._valid, self._ready = self._stream_signal("tvalid"), self._stream_signal("tready")
        #: The other signals of the stream, by the fields of a beat.
        self._fields = {field: signal for name, field in SIGNALS.items()
                        if (signal := self._stream_signal(name)) is not None}  # fmt: skip

    def _stream_signal(self, name: str) -> Any:
        """Return the signal `name` of the stream, such as ``tdata``; None if it lacks it."""
        return getattr(self._design, f"{self.prefix}_{name}", None)

    @abstractmethod
    def drive_signals(self, ctx: SimulatorContext) -> None:
        """Set the signals that this driver drives, before a clock edge.

        `ctx` is the simulator's context.
        """

    @abstractmethod
    def sample_beat(self, ctx: SimulatorContext, cycle: int) -> bool:
        """Return True if a beat is transferred at the next edge.

        `ctx` is the simulator's context, and `cycle` the present cycle of the fabric clock.
        """


class _SourceDriver(_StreamEnd):
    """The driver at a stream into the fabric: sends its beats, one after another, and stalls."""

    def __init__(self, design: Assembly, source: Source, random: np.random.Generator) -> None:
        super().__init__(design, source, random)
        self.beats, self._offered = deque(source.beats), False

    def drive_signals(self, ctx: SimulatorContext) -> None:
        """Offer the next beat or, at random, none: `tvalid` low, random values on other signals.

        `ctx` is the simulator's context.
        """
        if self._offered:
            return
        self._offered = bool(self.beats) and self._random.random() >= self._stall
        any_word = int(self._random.integers(1 << 31))
        ctx.set(self._valid, self._offered)
        beat = (
            self.beats[0]
            if self._offered
            else Beat(any_word, bool(any_word & 1), any_word, keep=any_word)
        )
        for field, signal in self._fields.items():
            ctx.set(signal, getattr(beat, field) & (1 << len(signal)) - 1)

    def sample_beat(self, ctx: SimulatorContext, cycle: int) -> bool:
        """Return True if the offered beat is accepted at the next edge.

        `ctx` is the simulator's context, and `cycle` is not used.
        """
        if not (self._offered and ctx.get(self._ready)):
            return False
        self.beats.popleft()
        self._offered = False
        return True


class _SinkDriver(_StreamEnd):
    """The driver at a stream out of the fabric: receives beats and logs them."""

    def __init__(
        self, design: Assembly, sink: Sink, random: np.random.Generator, log: StreamLog
    ) -> None:
        super().__init__(design, sink, random)
        self._log, self._arrivals = log, log.arrivals.setdefault(sink.prefix, [])
        self._takes = False
        self._held: Beat | None = None

    def drive_signals(self, ctx: SimulatorContext) -> None:
        """Set `tready` at random. `ctx` is the simulator's context."""
        self._takes = self._random.random() >= self._stall
        ctx.set(self._ready, self._takes)

    def sample_beat(self, ctx: SimulatorContext, cycle: int) -> bool:
        """Return True if a beat is accepted at the next edge, and log this beat.

        Also check that a beat which waits does not change. `ctx` is the simulator's context, and
        `cycle` is logged with the beat.
        """
        if not ctx.get(self._valid):
            self._check_stable(None)
            return False
        shown: dict[str, Any] = {name: ctx.get(each) for name, each in self._fields.items()}
        beat = Beat(**shown, cycle=cycle)
        self._check_stable(beat)
        if not self._takes:
            self._held = beat
            return False
        self._held = None
        self._arrivals.append(beat)
        return True

    def _check_stable(self, beat: Beat | None) -> None:
        """Log a fault of this stream if a beat that waits for `tready` has changed or vanished.

        `beat` is the beat that is offered now, or None.
        """
        if self._held is not None and (
            beat is None or beat._replace(cycle=self._held.cycle) != self._held
        ):
            self._log.unsteady = self.prefix
