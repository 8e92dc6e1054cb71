"""Simulation of a whole fabric with random data, every word compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..planning import require_results
from ..program import Program
from ..rtl.fabric import Fabric
from ..rtl.run_choices import RunChoices
from ..toolchain.public import public
from ..toolchain.values import natural, of_type, positive, shown
from .comparison import WrongWord, compare_run, totals
from .engines import AmaranthEngine, Engine, EngineRun, Job
from .engines.choice import choose_engine
from .jobs import default_jobs, drawn_words, given_jobs, jobs_with_drawn, ready_jobs
from .report import JobReport, SimulationReport, facts_of, throughput, throughput_bound

__all__ = [
    "SimulationReport",
    "WrongWord",
    "predictions_of",
    "report_of_runs",
    "simulate",
]


@public
def simulate(
    fabric: Fabric,
    *,
    seed: int = 1,
    jobs: Sequence[Job] | int | None = None,
    repeat: int = 1,
    stall: float | None = None,
    engine: Engine | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Run a fabric, and compare every word at every node.

    Through the host port go 1,000 words a run each way, at random, and those at the corners;
    engines put the others into the memories of nodes, and take them from there. An engine may be
    told to move all of them through the port. Through ports of nodes all words go.

    Parameters
    ----------
    seed : int
        Of the random payloads.
    jobs : sequence of Job or int, optional
        One run for each of these, one after another without a reset; for a fabric that leaves a
        choice. By default every operator, a few roots, spread over the nodes, and messages of one
        flit, of the most flits and of some numbers between; a number adds so many that are drawn.
        Other fabrics run once.
    repeat : int
        How often to do so, each time with fresh data and without a reset.
    stall : float, optional
        The probability that a port of a node rests in a cycle, 0 to 0.95 (default 0), where nodes
        have ports of their own. Runs then follow one another as fast as they can.
    engine : Engine or str, optional
        By default Amaranth's simulator. By name ``amaranth``, ``compiled``, or ``auto`` for what
        takes the least time.
    progress : function of (done, total), optional

    Returns
    -------
    SimulationReport
        The report; where nodes have ports of their own, that of their adapter.

    Raises
    ------
    InputError
        If a job chooses what the fabric leaves no choice of, or what it is not made for; or the
        stall is out of range, or no port of the fabric can rest.
    WorkFailed
        If the fabric does not come to an end.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allreduce"), flits=9), width=16)
    >>> report = tf.simulate(fabric)
    >>> report.words_wrong, report.cycles == fabric.predicted_cycles
    (0, True)
    """
    of_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    seed, repeat = natural("Seed", seed), positive("Repeat", repeat)
    drive = fabric.interface.drive
    if drive:
        few = 3 if jobs is None else jobs
        each = _repeated(given_jobs(fabric, few, draw=drive.draw_jobs, seed=seed), repeat)
        made = _engine(fabric, engine, repeat=len(each))
        return drive.simulate(
            fabric, jobs=each, stall=stall or 0.0, seed=seed, engine=made, progress=progress
        )
    if stall is not None:
        raise InputError(f"Stall must be left out for ports that cannot rest, not {shown(stall)}")
    tried = default_jobs(fabric.program)
    if jobs is not None:
        tried = given_jobs(fabric, jobs, draw=jobs_with_drawn, seed=seed)
    each = _repeated(ready_jobs(fabric, tried), repeat)
    made = _engine(fabric, engine, repeat=repeat) or AmaranthEngine(fabric)
    batches = [drawn_words(fabric, job, seed=seed + k) for k, job in enumerate(each)]
    began = time.perf_counter()
    done = made.run_many(batches, jobs=each, progress=progress)
    seconds = round(time.perf_counter() - began, 3)
    return report_of_runs(
        fabric, each, batches, done, engine=made.name, repeat=repeat, seconds=seconds
    )


def _repeated(jobs: tuple[Job, ...], repeat: int) -> tuple[Job, ...]:
    """Jobs, all of them so often as `repeat` says."""
    require_results("repeat", len(jobs) * repeat)
    return jobs * repeat


def _engine(fabric: Fabric, engine: Engine | str | None, *, repeat: int) -> Engine | None:
    """An engine that is given, or that of a name, made for so many runs."""
    if isinstance(engine, str):
        return choose_engine(fabric, engine, repeat=repeat).engine
    if engine is not None and not isinstance(engine, Engine):
        raise InputError(f"Engine must be a name or an Engine, not {shown(engine)}")
    return engine


def report_of_runs(
    fabric: Fabric,
    jobs: Sequence[Job],
    batches: Sequence[np.ndarray],
    runs: Sequence[EngineRun],
    **others: Any,
) -> SimulationReport:
    """Compare every word of some runs, and the cycles.

    Parameters
    ----------
    jobs : sequence of Job
        What each run chose, everything said.
    batches : sequence of ndarray
        What nodes sent in each.
    **others
        ``engine``, ``repeat`` and ``seconds`` of the report.
    """
    compared = [compare_run(fabric, *done) for done in zip(jobs, batches, runs, strict=True)]
    reports: tuple[JobReport, ...] = ()
    if _differing_runs(fabric.program):
        reports = tuple(
            JobReport.of(fabric, job, run.edges if run.edges == run.cycles else -1, found)
            for job, run, found in zip(jobs, runs, compared, strict=True)
        )
    edges, spent = sum(run.edges for run in runs), sum(run.seconds for run in runs)
    cycles = {count for run in runs for count in (run.cycles, run.edges)}
    measured = cycles.pop() if len(cycles) == 1 else -1
    predicted = fabric.predicted_cycles
    if reports:
        measured = sum(job.cycles for job in reports)
        predicted = sum(job.predicted_cycles for job in reports)
    rate = most = None
    if len(fabric.program.modes) == 1:
        flits = [job.length for job in reports] or [int(fabric.flits)] * len(runs)
        rate, most = throughput(fabric, edges, sum(flits)), throughput_bound(fabric)
    return SimulationReport(
        **facts_of(fabric.program),
        width=fabric.width,
        router_classes=len(fabric.router_classes),
        origins=fabric.origins,
        cycles=measured,
        predicted_cycles=predicted,
        cycle_costs=tuple(mode.longest.cost for mode in fabric.program.modes),
        jobs=reports,
        throughput=rate,
        throughput_bound=most,
        roots=tuple(sorted({job.root for job in jobs if job.root is not None})),
        clocks=sum(run.clocks for run in runs),
        node_cycles_per_second=round(int(fabric.nodes) * edges / max(spent, 1e-9)),
        port_words=sum(run.through_port for run in runs),
        direct_words=sum(run.direct for run in runs),
        **totals(compared),
        **others,
    )


def _differing_runs(program: Program) -> bool:
    """Return True if runs are reported one by one, as their lengths or operators may differ."""
    return not {"length", "operation"}.isdisjoint(RunChoices.of(program).inputs)


def predictions_of(program: Program) -> dict[str, Any]:
    """Return the entries of a report that are known without a simulation, such as cycles.

    Returns
    -------
    dict
        The entries of `SimulationReport.to_json` that say what is simulated, but for the width, and
        ``cycles``; with ``jobs`` where the runs of the fabric differ.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allreduce"), flits=9)
    >>> predictions_of(program)["cycles"] == tf.simulate(tf.Fabric(program, width=16)).cycles
    True
    """
    jobs = []
    for job in default_jobs(program) if _differing_runs(program) else ():
        cycles = program.cycles(job.length, mode=job.mode)
        jobs.append(job.inputs | {"cycles": cycles})
    each = [job["cycles"] for job in jobs] or [program.cycles()]
    return facts_of(program) | {"cycles": sum(each), "jobs": jobs}
