"""Simulation of a fabric with streams: random packets, random stalls, every word compared."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from ....errors import InputError
from ....rtl.fabric import Fabric
from ....simulation.comparison import total_words
from ....simulation.engines import AmaranthEngine, Engine, Job
from ....simulation.jobs import checked_jobs, default_jobs, is_barrier, random_jobs
from ....simulation.report import JobReport, SimulationSummary, program_facts
from ..options import MOST_STALL, check_probability
from ..ports import STATUS_WORDS, needs_commands
from ..sections import choose_sections, stream_nodes
from .beats import STATUS_SINK, StreamLog
from .comparison import StreamComparison
from .messages import PlannedRun, make_faulty_run, random_run_packets
from .rates import SustainedRate, sustained_rate
from .traffic import make_traffic

__all__ = ["StreamReport", "draw_jobs", "simulate_streams"]


def draw_jobs(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """Return the default jobs of a fabric (see `default_jobs`), then random jobs.

    If the fabric has a barrier, a barrier follows each job.

    Parameters
    ----------
    count : int
        Number of random jobs. If the fabric leaves no choice, they are all alike.
    seed : int
        Seed of the random choices. The same seed gives the same jobs.
    """
    jobs = default_jobs(fabric.program) + random_jobs(fabric, count, seed=seed)
    if not fabric.program.barrier:
        return jobs
    barrier = Job(mode=len(fabric.program.modes))
    return tuple(one for job in jobs for one in (job, barrier))


def simulate_streams(
    fabric: Fabric,
    *,
    jobs: Sequence[Job] | None = None,
    stall: float = 0.0,
    faults: float = 0.0,
    seed: int = 1,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StreamReport:
    """Send random packets through a fabric with streams, and compare every word that arrives.

    Runs follow one another as fast as possible: sources send the next messages while a run is
    executed. The fabric must drop a run with a fault, with the right error, and this must not
    change any other run.

    Parameters
    ----------
    jobs : sequence of Job, optional
        One job for each run; by default runs of each mode and of several lengths.
    stall : float
        The probability in each cycle that a port stalls, 0 to 0.95.
    faults : float
        The probability that a packet or the command of a run has a fault, 0 to 1.
    seed : int
        Seed of the words, the stalls and the faults.
    engine : Engine, optional
        The engine, by default Amaranth's simulator.
    progress : function of (done, total), optional
        Called with the number of transferred beats and of all beats.

    Raises
    ------
    InputError
        If the fabric has no streams, a share is out of range, or a job makes a choice that the
        fabric does not leave, or is not valid for the fabric.
    WorkFailed
        If the fabric does not accept and return all words.
    """
    if not fabric.core.concurrent:
        raise InputError(
            f"Ports can rest only with the top stream, not {fabric.top}; leave stall out"
        )
    stall = check_probability("Stall", stall, MOST_STALL)
    faults = check_probability("Share of faults", faults, 1)
    usual = draw_jobs(fabric, 3, seed=seed) if jobs is None else jobs
    generator, runs, cycles = random.Random(seed), list[PlannedRun](), list[int]()
    for number, job in enumerate(checked_jobs(fabric, usual)):
        exchange = random_run_packets(fabric, job, seed=seed + number)
        bad = generator.random() < faults
        run = (
            make_faulty_run(fabric, job, exchange, generator) if bad else PlannedRun(job, exchange)
        )
        runs.append(run)
        # A barrier and a dropped run do not execute the program.
        idle = run.error or is_barrier(fabric, run.job)
        cycles.append(0 if idle else fabric.program.cycles(run.job.length, mode=run.job.mode))
    engine = engine or AmaranthEngine(fabric)
    traffic = make_traffic(fabric, runs, stall=stall, seed=seed, cycles=max(cycles))
    began = time.perf_counter()
    log = engine.run_traffic(traffic, progress)
    seconds = round(time.perf_counter() - began, 3)
    # From here on the log has flits in place of beats, and no status of the loading of an image.
    for prefix in (f"m_axis_{node}" for node in stream_nodes(fabric.program.topology).tolist()):
        beats = (beat.split_flits(fabric.beat, fabric.width) for beat in log.arrivals[prefix])
        log.arrivals[prefix] = list(chain.from_iterable(beats))
    if fabric.tables and fabric.tables.empty:
        del log.arrivals[STATUS_SINK][: len(STATUS_WORDS)]
    return _make_report(fabric, runs, cycles, log, stall=stall, engine=engine.name, seconds=seconds)


def _make_report(
    fabric: Fabric, runs: Sequence[PlannedRun], cycles: Sequence[int], log: StreamLog, **others: Any
) -> StreamReport:
    """Compare all received words, statuses and errors with the expected ones; return the report.

    `runs` are the runs as they were sent, and `log` is the record of the simulation. `cycles` has
    the expected cycles of each run. `others` are further fields of the report.
    """
    exchanges, errors = [run.exchange for run in runs], [run.error for run in runs]
    found = StreamComparison(exchanges, log)
    found.compare_statuses(log, errors, cycles)
    if not needs_commands(fabric.program):
        found.compare_errors(log, errors)
    rate = None
    if not fabric.own_clocks and not any(errors) and not found.missing:
        rate = sustained_rate(
            exchanges, cycles, found.ends, stall=others["stall"], width=fabric.width,
            buffers=choose_sections(fabric.program, fabric.beat).buffers, beat=fabric.beat,
        )  # fmt: skip
    counted = iter([count for _, count in log.runs])
    jobs = list[JobReport]()
    for run, words in zip(runs, found.run_comparisons, strict=True):
        if run.error:
            continue
        if is_barrier(fabric, run.job):
            mode, (checked, wrong, _) = run.job.mode or 0, words
            jobs.append(JobReport(mode, "barrier", 1, None, None, 0, 0, checked, wrong))
        else:
            jobs.append(JobReport.from_run(fabric, run.job, next(counted, -1), words))
    return StreamReport(
        **program_facts(fabric.program),
        width=fabric.width,
        dropped=dict(sorted(Counter(int(error) for error in errors if error).items())),
        rate=rate,
        cycles=sum(job.cycles for job in jobs),
        predicted_cycles=sum(job.predicted_cycles for job in jobs),
        jobs=tuple(jobs),
        **total_words(found.run_comparisons),
        clocks=log.clocks,
        **others,
    )


@dataclass(frozen=True)
class StreamReport(SimulationSummary):
    """The report of a simulation of streams.

    Parameters
    ----------
    stall : float
        The probability in each cycle that a port stalled.
    dropped : dict of int to int
        Number of dropped runs, by their error.
    rate : SustainedRate or None
        The rate of consecutive runs; None if runs were dropped, words are missing, or nodes have
        clocks of their own.
    clocks : int
        Clock cycles simulated in all.
    """

    stall: float
    dropped: dict[int, int]
    rate: SustainedRate | None
    jobs: tuple[JobReport, ...]
    first_wrong: str | None
    clocks: int

    @property
    def passed(self) -> bool:
        """True if all received words are as expected, and all runs took the predicted cycles."""
        return not self.words_wrong and all(job.cycles == job.predicted_cycles for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        rate = {"rate": self.rate and self.rate.to_json(), "passed": self.passed}
        return asdict(self) | rate
