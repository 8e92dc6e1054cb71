"""Simulation of a fabric that repeats its collective by itself, every word compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from amaranth.sim import SimulatorContext

from ..analysis.bounds import bound
from ..collective import random_messages
from ..errors import InputError, WorkFailed
from ..rtl.fabric import Fabric
from ..toolchain.values import natural, of_type, positive
from .engines import AmaranthEngine
from .engines.base import PATIENCE
from .period_model import (
    HostCycle,
    HostLog,
    Period,
    expected_periods,
    received_words,
    shown_words,
)
from .period_report import PeriodicReport

__all__ = ["PeriodicReport", "simulate_periods"]

#: How often messages are written anew, some of them committed, and periods run.
EPISODES = 6


def simulate_periods(
    fabric: Fabric,
    *,
    seed: int = 1,
    episodes: int = EPISODES,
    wave: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PeriodicReport:
    """Run a periodic fabric through its host port, and compare words and cycles.

    In each episode all messages are written anew and some nodes commit them, some later than
    others, while periods run; after the last one every word is read. In the first two episodes all
    nodes commit, before the first period; in the last `run` stays high while messages are written
    and results are read.

    Parameters
    ----------
    fabric : Fabric
    seed : int
        Of what the host does, and when.
    episodes : int
    wave : str or Path, optional
        File that the waves are written to.
    progress : function of (done, total), optional

    Raises
    ------
    InputError
        If the fabric is not periodic.
    WorkFailed
        If the fabric does not come to an end.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("2x3", "alltoall")), width=32, periodic=True)
    >>> report = tf.simulate_periods(fabric, episodes=3)
    >>> report.passed, report.cycles, report.bytes_a_cycle
    (True, 2, 60.0)
    """
    of_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    seed, episodes = natural("Seed", seed), positive("Episodes", episodes)
    if fabric.periods is None:
        raise InputError("Fabric that is simulated by periods must be periodic, not run by run")
    began, log = time.perf_counter(), HostLog()

    async def testbench(ctx: SimulatorContext) -> None:
        host = _Host(ctx, engine, fabric, log, seed)
        for episode in range(episodes):
            await host.episode(episode, last=episode == episodes - 1)
            if progress:
                progress(episode + 1, episodes)

    engine = AmaranthEngine(fabric, wave=wave, gated=False)
    engine.simulate(testbench)
    return _report(fabric, log, time.perf_counter() - began)


class _Host:
    """Drives the host port, and writes down what happens."""

    def __init__(
        self,
        ctx: SimulatorContext,
        engine: AmaranthEngine,
        fabric: Fabric,
        log: HostLog,
        seed: int,
    ) -> None:
        assert fabric.periods is not None
        self._ctx, self._design, self._fabric, self._log = ctx, engine.design, fabric, log
        self._random, self._seed = np.random.default_rng(seed), seed
        self._periods = fabric.periods

    async def episode(self, number: int, *, last: bool) -> None:
        """Write all messages, run some periods while nodes commit, and read all words."""
        random, nodes = self._random, self._fabric.nodes
        chosen = np.ones(nodes, bool) if number < 2 else random.random(nodes) < 0.5
        await self._write(number, run=last)
        # The first half of those commits before the first period, the others while periods run.
        committing = random.permutation(np.flatnonzero(chosen)).tolist()
        early = len(committing) if number < 2 else len(committing) // 2
        for node in committing[:early]:
            await self._commit(node, run=last)
        await self._run(committing[early:], 1 + random.integers(4 * self._periods.cycles + 8))
        if last:
            await self._read(run=True)
        await self._finish()
        await self._read(run=False)

    async def _cycle(self, given: HostCycle) -> None:
        """Pass a cycle."""
        ctx, design, log = self._ctx, self._design, self._log
        ctx.set(design.run, given.run)
        ctx.set(design.host_we, given.write)
        ctx.set(design.host_node, given.node)
        ctx.set(design.host_addr, given.address)
        ctx.set(design.host_wdata, given.word)
        log.given.append(given)
        log.words.append(ctx.get(design.host_rdata))
        log.period.append(ctx.get(design.period))
        log.busy.append(bool(ctx.get(design.busy)))
        log.done.append(bool(ctx.get(design.done)))
        await ctx.tick()

    async def _write(self, number: int, *, run: bool) -> None:
        """Write the messages of all nodes."""
        fabric, base = self._fabric, self._fabric.layout.send_base
        messages = random_messages(
            fabric.program.layout, fabric.flits, width=fabric.width, seed=self._seed + number
        )
        for node, message in enumerate(messages.tolist()):
            for place, word in enumerate(message):
                await self._cycle(
                    HostCycle(run=run, write=True, node=node, address=base + place, word=word)
                )

    async def _commit(self, node: int, *, run: bool) -> None:
        address = self._fabric.layout.recv_base
        await self._cycle(HostCycle(run=run, write=True, node=node, address=address))

    async def _run(self, committing: list[int], cycles: int) -> None:
        """Run for some cycles, while nodes commit and words are read."""
        for _ in range(cycles):
            if committing and self._random.random() < 0.3:
                await self._commit(committing.pop(), run=True)
            else:
                await self._ask(run=True)

    async def _ask(self, *, run: bool) -> None:
        """Read a word at random."""
        layout, random = self._fabric.layout, self._random
        node, word = random.integers(self._fabric.nodes), random.integers(layout.recv_words)
        address = layout.recv_base + int(word)
        await self._cycle(HostCycle(run=run, node=int(node), address=address))

    async def _finish(self) -> None:
        """Wait until the last period is over."""
        limit = self._periods.edges(3) + PATIENCE
        await self._ask(run=False)
        while self._log.busy[-1]:
            if not limit:
                raise WorkFailed("Fabric must be done after its last period, not busy")
            await self._ask(run=False)
            limit -= 1

    async def _read(self, *, run: bool) -> None:
        """Read every word, and wait for the last one."""
        layout, latency = self._fabric.layout, self._fabric.read_latency
        for node in range(self._fabric.nodes):
            for word in range(layout.recv_words):
                address = layout.recv_base + word
                await self._cycle(HostCycle(run=run, node=node, address=address))
        for _ in range(latency):
            await self._ask(run=run)


class _Delivered:
    """What each period delivers: the program is executed once for all with the same messages."""

    def __init__(self, fabric: Fabric, periods: list[Period]) -> None:
        self._fabric, self._periods = fabric, periods
        self._of_period: dict[int, np.ndarray] = {}
        self._of_messages: dict[str, np.ndarray] = {}

    @property
    def messages(self) -> int:
        """How many different sets of messages there are in periods that were asked for."""
        return len(self._of_messages)

    def words(self, count: int) -> np.ndarray:
        """The words of a period, the first being 1, at each node."""
        if count not in self._of_period:
            messages = self._periods[count - 1].messages
            key = repr(messages.tolist())
            if key not in self._of_messages:
                width = self._fabric.width
                self._of_messages[key] = self._fabric.program.execute(messages, width=width)
            self._of_period[count] = self._of_messages[key]
        return self._of_period[count]


def _report(fabric: Fabric, log: HostLog, seconds: float) -> PeriodicReport:
    """Compare what was shown with what should have been."""
    program, known = fabric.program, fabric.periods
    assert known is not None
    periods = list(expected_periods(fabric, log.given))
    received, delivered = received_words(program), _Delivered(fabric, periods)
    wrong = _wrong_cycles(log, periods)
    checked = words_wrong = 0
    for cycle, node, word, got in shown_words(fabric, log):
        count = log.period[cycle]
        if not 1 <= count <= len(periods) or not received[node, word]:
            continue
        expected = int(delivered.words(count)[node, word])
        checked += 1
        if got != expected:
            words_wrong += 1
            said = f"word {word} of node {node} in period {count} is {got:#x}, not {expected:#x}"
            wrong.append((cycle, said))
    changes = [k for k in range(1, len(log.period)) if log.period[k] != log.period[k - 1]]
    lengths = {b - a for a, b in pairwise(changes) if not log.done[a]}
    schedule = program.schedule
    return PeriodicReport(
        topology=str(program.topology),
        collective=schedule.collective.name,
        algorithm=schedule.algorithm,
        engine="amaranth",
        operator=", ".join(map(str, program.operators)) or None,
        switching=schedule.switching,
        nodes=fabric.nodes,
        width=fabric.width,
        flits=fabric.flits,
        rounds=schedule.round_count,
        bound=bound(schedule),
        cycles=lengths.pop() if len(lengths) == 1 else -1,
        predicted_cycles=known.cycles,
        first_cycles=known.first,
        periods=len(periods),
        messages=delivered.messages,
        words_checked=checked,
        words_wrong=words_wrong,
        first_wrong=min(wrong)[1] if wrong else None,
        bytes_a_cycle=round(int(received.sum()) * fabric.width / 8 / known.cycles, 3),
        seconds=round(seconds, 3),
        clocks=len(log.given),
    )


def _wrong_cycles(log: HostLog, periods: list[Period]) -> list[tuple[int, str]]:
    """The first cycle in which `period`, `busy` or `done` is not as it should be, if any."""
    counts = np.zeros(len(log.given), int)
    done, busy = np.zeros(len(counts), bool), np.zeros(len(counts), bool)
    rests, begun = True, 0
    for period in periods:
        if rests:
            begun = next(k for k in range(begun, len(counts)) if log.given[k].run)
        counts[period.counted :] += 1
        rests = period.last
        if rests:
            busy[begun + 1 : period.counted] = True
            begun = period.counted
    running = np.flatnonzero(busy)
    if len(running):
        done[running[0] :] = ~busy[running[0] :]
    for name, expected in (("period", counts), ("busy", busy), ("done", done)):
        differing = np.flatnonzero(np.array(getattr(log, name)) != expected)
        if len(differing):
            at = int(differing[0])
            shown = int(getattr(log, name)[at])
            return [(at, f"{name} is {shown} in cycle {at}, not {int(expected[at])}")]
    return []
