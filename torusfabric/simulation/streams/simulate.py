"""Simulation of a fabric with streams: random packets, random stalls, every word compared."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

from ...errors import InputError
from ...rtl.fabric import Fabric, Top
from ...rtl.streams import Clocks, needs_commands
from ...rtl.streams.ports import STATUS
from ...rtl.streams.sections import sections_of
from ...toolchain.values import real
from ..engines import AmaranthEngine, Engine, Job
from ..engines.traffic import STATUS_SINK, Log
from ..jobs import check_jobs, completed, default_jobs, random_jobs
from ..report import JobReport, facts_of
from .comparison import Comparison
from .limits import StreamReport, sustained_rate
from .messages import Exchange, Planned, draw_exchange, is_barrier, spoiled_run
from .traffic import traffic_of

__all__ = ["check_faults", "check_stall", "simulate_streams", "stream_jobs"]

#: The most that a port can rest.
MOST_STALL = 0.95


def check_stall(stall: object) -> float:
    """How likely it is that a port rests in a cycle.

    Raises
    ------
    InputError
        If it is not from 0 to 0.95.
    """
    share = real("Stall", stall)
    if not (math.isfinite(share) and 0 <= share <= MOST_STALL):
        raise InputError(f"Stall must be from 0 to {MOST_STALL}, not {share:g}")
    return share


def check_faults(faults: float) -> None:
    """Check how likely it is that a run is no good.

    Raises
    ------
    InputError
        If it is not from 0 to 1.
    """
    if not 0 <= faults <= 1:
        raise InputError(f"Share of faults must be from 0 to 1, not {faults:g}")


def stream_jobs(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """The usual jobs of a fabric, and further ones that are drawn; barriers between, if it has any.

    Parameters
    ----------
    count : int
        How many are drawn; where nothing is left open, they are all alike.
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
    """Send random packets through a fabric with streams, and compare every word that comes.

    Runs follow one another as fast as they can: the next messages are sent while a run goes on.
    Those that are no good must be dropped, for the right reason, and leave all others as they are.

    Parameters
    ----------
    jobs : sequence of Job, optional
        One run for each of these; by default some of each mode and of several lengths.
    stall : float
        How likely it is that a port rests in a cycle, 0 to 0.95.
    faults : float
        How likely it is that a packet or the command of a run is no good, 0 to 1.
    seed : int
        Of the words, and of what rests when.
    engine : Engine, optional
        By default Amaranth's simulator.
    progress : function of (done, total), optional

    Raises
    ------
    InputError
        If the fabric has no streams, a share is out of range, or a job chooses what the fabric
        leaves no choice of, or is not made for.
    WorkFailed
        If the fabric does not take and give all words.
    """
    if fabric.top is not Top.STREAM:
        raise InputError(f"Fabric whose ports rest must have the top stream, not {fabric.top}")
    stall = check_stall(stall)
    check_faults(faults)
    usual = stream_jobs(fabric, 3, seed=seed) if jobs is None else jobs
    # A barrier leaves nothing open.
    check_jobs(fabric, [job for job in usual if not is_barrier(fabric, job)])
    full = [job if is_barrier(fabric, job) else completed(fabric, job) for job in usual]
    runs = _planned_runs(fabric, full, faults=faults, seed=seed)
    exchanges = [run.exchange for run in runs]
    engine = engine or AmaranthEngine(fabric)
    planned = [_planned_cycles(fabric, run) for run in runs]
    traffic = traffic_of(fabric, runs, stall=stall, seed=seed, cycles=max(planned))
    began = time.perf_counter()
    log = engine.stream(traffic, progress)
    for prefix in (f"m_axis_{node}" for node in range(fabric.nodes)):
        beats = (beat.flits(fabric.beat, fabric.width) for beat in log.arrivals[prefix])
        log.arrivals[prefix] = list(chain.from_iterable(beats))
    seconds = time.perf_counter() - began
    if fabric.empty:  # of the image
        del log.arrivals[STATUS_SINK][: len(STATUS)]
    found, errors = Comparison(exchanges, log), [run.error for run in runs]
    found.compare_statuses(log, errors, planned)
    if not needs_commands(fabric.program):
        found.compare_errors(log, errors)
    rate = None
    if fabric.clocks is Clocks.ONE and not any(errors) and not found.missing:
        rate = sustained_rate(
            exchanges, planned, _ends(exchanges, log), stall=stall, width=fabric.width,
            buffers=sections_of(fabric.program, fabric.beat).buffers, beat=fabric.beat,
        )  # fmt: skip
    jobs_done = _job_reports(fabric, runs, found, log)
    return StreamReport(
        **facts_of(fabric.program),
        width=fabric.width,
        engine=engine.name,
        stall=stall,
        dropped=dict(sorted(Counter(int(error) for error in errors if error).items())),
        rate=rate,
        cycles=sum(job.cycles for job in jobs_done),
        predicted_cycles=sum(job.predicted_cycles for job in jobs_done),
        jobs=jobs_done,
        words_checked=sum(found.checked),
        words_wrong=sum(found.wrong),
        first_wrong=found.first_wrong,
        seconds=round(seconds, 3),
        clocks=log.clocks,
    )


def _ends(exchanges: Sequence[Exchange], log: Log) -> list[int]:
    """The cycle in which the last word of each run was received, by any node."""
    ends = [0] * len(exchanges)
    for node in range(len(exchanges[0].received)):
        arrivals, taken = log.arrivals[f"m_axis_{node}"], 0
        for number, exchange in enumerate(exchanges):
            if count := sum(len(packet.words) for packet in exchange.received[node]):
                taken += count
                ends[number] = max(ends[number], arrivals[taken - 1].cycle)
    return ends


def _planned_runs(
    fabric: Fabric, jobs: Sequence[Job], *, faults: float, seed: int
) -> list[Planned]:
    """What is sent for each job, and what has to become of it."""
    generator = random.Random(seed)
    runs = []
    for number, job in enumerate(jobs):
        exchange = draw_exchange(fabric, job, seed=seed + number)
        bad = generator.random() < faults
        planned = spoiled_run(fabric, job, exchange, generator) if bad else Planned(job, exchange)
        runs.append(planned)
    return runs


def _planned_cycles(fabric: Fabric, run: Planned) -> int:
    """The cycles of a run, from its start to its end; none of a barrier, or of one dropped."""
    if run.error or is_barrier(fabric, run.job):
        return 0
    return fabric.program.cycles(run.job.length, mode=run.job.mode)


def _job_reports(
    fabric: Fabric, runs: Sequence[Planned], found: Comparison, log: Log
) -> tuple[JobReport, ...]:
    """What came of each run that was to be carried out.

    A barrier is no run of the program, and takes none of its cycles.
    """
    taken = iter([cycles for _, cycles in log.runs])
    reports = []
    for run, checked, wrong in zip(runs, found.checked, found.wrong, strict=True):
        if run.error:
            continue
        if is_barrier(fabric, run.job):
            barrier = JobReport(run.job.mode or 0, "barrier", 1, None, None, 0, 0, checked, wrong)
            reports.append(barrier)
            continue
        cycles = next(taken, -1)
        reports.append(JobReport.of(fabric, run.job, cycles=cycles, checked=checked, wrong=wrong))
    return tuple(reports)
