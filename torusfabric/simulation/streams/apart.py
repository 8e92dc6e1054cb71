"""Streams whose nodes have clocks of their own, in Amaranth's simulator."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from amaranth.hdl import Signal
    from amaranth.sim import SimulatorContext

    from .bench import StreamBench

__all__ = ["run_apart"]

#: The clock of the fabric has this period, in femtoseconds, and rises in the middle of it.
PERIOD = 10_000_000

#: Periods of other clocks, as parts of that.
SHORTEST, LONGEST = 0.4, 2.4


class _Event(NamedTuple):
    """A change of a clock.

    Parameters
    ----------
    time : int
        In femtoseconds.
    domain : int
        The number of the clock.
    rises : bool
        Whether it rises; else it falls, and ports are set for the next edge.
    """

    time: int
    domain: int
    rises: bool


async def run_apart(ctx: SimulatorContext, bench: StreamBench, seed: int) -> None:
    """Run until nothing happens any more; periods and phases have nothing in common.

    Parameters
    ----------
    seed : int
        Of the periods.
    """
    random = np.random.default_rng(seed)
    domains = bench.domains()
    clocks: list[Signal | None] = [clock for clock, _ in domains]
    periods = [
        PERIOD if clock is None else int(PERIOD * random.uniform(SHORTEST, LONGEST))
        for clock in clocks
    ]
    # What the simulator itself drives is looked at just before it rises.
    events = [
        _Event(0 if clock is None else int(random.integers(1, PERIOD)), k, rises=False)
        for k, clock in enumerate(clocks)
    ]
    heapify(events)
    now = 0
    while not bench.over:
        event = heappop(events)
        if event.time > now:
            await ctx.delay((event.time - now) * 1e-15)
            now = event.time
        clock, ports = domains[event.domain]
        half = periods[event.domain] // 2
        if not event.rises:
            if clock is not None:
                ctx.set(clock, 0)
            for port in ports:
                port.offer()
            early = half // 8 if clock is None else 0
            heappush(events, _Event(now + half - early, event.domain, rises=True))
            continue
        bench.passed(sum([port.look(bench.clocks) for port in ports]))
        if clock is not None:
            ctx.set(clock, 1)
            heappush(events, _Event(now + half, event.domain, rises=False))
        else:
            bench.tick()
            heappush(events, _Event(now + half + half // 8, event.domain, rises=False))
