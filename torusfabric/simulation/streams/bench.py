"""What drives the streams of a fabric in Amaranth's simulator, and looks at them."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np
from amaranth.hdl import Signal
from amaranth.sim import SimulatorContext

from .engine import Progress
from .traffic import Arrival, Beat, Log, Sink, Source, Traffic

__all__ = ["StreamBench"]

#: Cycles between two reports of how far it is.
REPORT = 64


class StreamBench:
    """All sources and sinks, and how far it is.

    Attributes
    ----------
    clocks : int
        Cycles of the fabric so far.
    """

    def __init__(
        self,
        ctx: SimulatorContext,
        design: Any,
        traffic: Traffic,
        log: Log,
        progress: Progress | None,
    ) -> None:
        self._ctx, self._design, self._traffic, self._log = ctx, design, traffic, log
        self._progress = progress or (lambda done, total: None)
        random = np.random.default_rng(traffic.seed)
        self._sources = [_Driver(ctx, design, source, random) for source in traffic.sources]
        sinks = [_Taker(ctx, design, sink, random, log) for sink in traffic.sinks]
        self._ports: list[_Port] = [*self._sources, *sinks]
        self._left, self._quiet, self._was_busy = traffic.beats, 0, False
        self._error = 0

    @property
    def unsent(self) -> int:
        """Beats that were not taken."""
        return sum(len(source.beats) for source in self._sources)

    @property
    def clocks(self) -> int:
        """Cycles of the fabric so far."""
        return self._log.clocks

    @property
    def over(self) -> bool:
        """Whether nothing happens any more."""
        traffic = self._traffic
        return self._quiet >= (traffic.patience if self._left > 0 else traffic.settling)

    async def run(self) -> None:
        """Run until nothing happens any more, with one clock for all."""
        while not self.over:
            for port in self._ports:
                port.offer()
            self.passed(sum([port.look(self.clocks) for port in self._ports]))
            self.tick()
            await self._ctx.tick()

    def passed(self, beats: int) -> None:
        """Note that some beats pass with the next edge."""
        self._left -= beats
        if beats:
            self._quiet = -1  # up to the end of this cycle

    def tick(self) -> None:
        """Note the end of a run, and errors, and that the fabric has one cycle less to go."""
        log, traffic = self._log, self._traffic
        busy = bool(self._ctx.get(self._design.busy))
        if self._was_busy and not busy:
            log.runs.append((log.clocks, int(self._ctx.get(self._design.cycles))))
        self._was_busy = busy
        error = int(self._ctx.get(self._design.error))
        if error != self._error:
            log.errors.append(error)
        self._error = error
        log.clocks += 1
        self._quiet += 1
        if log.clocks % REPORT == 0:
            self._progress(traffic.beats - max(self._left, 0), traffic.beats)

    def domains(self) -> list[tuple[Signal | None, list["_Port"]]]:
        """The ports of each clock; the clock of the fabric is None."""
        found: dict[str, tuple[Signal | None, list[_Port]]] = {"": (None, [])}
        for port in self._ports:
            name = f"clk_{port.prefix.rpartition('_')[2]}"
            clock = getattr(self._design, name, None)
            found.setdefault(name if clock is not None else "", (clock, []))[1].append(port)
        return list(found.values())


class _Port(ABC):
    """One end of a stream."""

    def __init__(self, ctx: SimulatorContext, design: Any, prefix: str) -> None:
        self._ctx, self._design, self.prefix = ctx, design, prefix

    def signal(self, name: str) -> Signal | None:
        """A signal of the stream, if it has one of that name."""
        return getattr(self._design, f"{self.prefix}_{name}", None)

    @abstractmethod
    def offer(self) -> None:
        """Set the signals for the next edge."""

    @abstractmethod
    def look(self, cycle: int) -> bool:
        """Whether a beat is taken with that edge."""


class _Driver(_Port):
    """Sends beats."""

    def __init__(
        self, ctx: SimulatorContext, design: Any, source: Source, random: np.random.Generator
    ) -> None:
        super().__init__(ctx, design, source.prefix)
        self.beats, self._stall, self._random = deque(source.beats), source.stall, random
        self._valid, self._ready = self.signal("tvalid"), self.signal("tready")
        self._data, self._last, self._dest = map(self.signal, ("tdata", "tlast", "tdest"))
        self._keep = self.signal("tkeep")
        self._offered = False

    def offer(self) -> None:
        """Offer the next beat, or rest with anything on the other signals."""
        if self._offered:
            return
        self._offered = bool(self.beats) and self._random.random() >= self._stall
        any_word = int(self._random.integers(1 << 31))
        beat = (
            self.beats[0]
            if self._offered
            else Beat(any_word, bool(any_word & 1), any_word, any_word)
        )
        self._ctx.set(self._valid, self._offered)
        for signal, value in ((self._data, beat.word), (self._last, beat.last),
                              (self._dest, beat.dest), (self._keep, beat.keep)):  # fmt: skip
            if signal is not None:
                self._ctx.set(signal, value & (1 << len(signal)) - 1)

    def look(self, cycle: int) -> bool:
        """Whether the beat is taken."""
        if not (self._offered and self._ctx.get(self._ready)):
            return False
        self.beats.popleft()
        self._offered = False
        return True


class _Taker(_Port):
    """Receives beats."""

    def __init__(
        self,
        ctx: SimulatorContext,
        design: Any,
        sink: Sink,
        random: np.random.Generator,
        log: Log,
    ) -> None:
        super().__init__(ctx, design, sink.prefix)
        self._stall, self._random, self._log = sink.stall, random, log
        self._arrivals = log.arrivals.setdefault(sink.prefix, [])
        self._valid, self._ready = self.signal("tvalid"), self.signal("tready")
        self._shown = list(map(self.signal, ("tdata", "tlast", "tid", "tkeep")))
        self._takes = False
        self._held: Arrival | None = None

    def offer(self) -> None:
        """Be ready, or not."""
        self._takes = self._random.random() >= self._stall
        self._ctx.set(self._ready, self._takes)

    def look(self, cycle: int) -> bool:
        """Whether a beat is taken; one that waits must not change."""
        if not self._ctx.get(self._valid):
            self._steady(None)
            return False
        word, last, number, keep = (s is not None and self._ctx.get(s) for s in self._shown)
        arrival = Arrival(int(word), bool(last), int(number), cycle, int(keep))
        self._steady(arrival)
        if not self._takes:
            self._held = arrival
            return False
        self._held = None
        self._arrivals.append(arrival)
        return True

    def _steady(self, arrival: Arrival | None) -> None:
        """Note if a beat that waits has changed."""
        if self._held is not None and (
            arrival is None or arrival._replace(cycle=self._held.cycle) != self._held
        ):
            self._log.unsteady = self.prefix
