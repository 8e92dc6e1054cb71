"""Simulation of a whole fabric with random data, with a check of every word and cycle count."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..planning import require_result_memory
from ..program import Program
from ..rtl.fabric import Fabric
from ..rtl.run_choices import RunChoices
from ..toolchain.public import public
from ..toolchain.values import (
    message_text,
    parse_non_negative_int,
    parse_positive_int,
    require_type,
)
from .comparison import WrongWord, compare_run, total_words
from .engines import AmaranthEngine, Engine, EngineRun, Job
from .engines.choice import choose_engine
from .jobs import checked_jobs, default_jobs, jobs_with_random, parse_jobs, random_job_messages
from .report import JobReport, SimulationReport, mean_throughput, program_facts, throughput_bound

__all__ = ["SimulationReport", "WrongWord", "predicted_entries", "report_of_runs",
           "simulate"]  # fmt: skip


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
    """Run a fabric with random messages and compare every received word at every node.

    In each direction a run moves 1,000 randomly chosen words through the host port, and with them
    the first and the last word of the first and of the last node. The engine copies all other words
    directly into and out of the memories of the nodes. An engine built with `through_port` moves
    all words through the host port. If each node of the fabric has streams of its own (*node
    ports*), all words pass through these.

    Parameters
    ----------
    seed : int
        Seed of the random payloads.
    jobs : sequence of Job or int, optional
        Jobs to run one after another without a reset. The default jobs cover every mode and
        operator, a few roots, and a few lengths from one flit to the maximum; a fabric that leaves
        no choice has one default job. A number n means the default jobs and n random jobs. By
        default only the default jobs run, or with node ports, 3 random jobs as well.
    repeat : int
        Number of times that the list of jobs is run, each time with fresh data and without a reset.
    stall : float, optional
        Probability that a node port sends or receives nothing in a cycle, 0 to 0.95 (default 0).
        Only for fabrics with node ports. Each of their runs starts as soon as possible, without a
        pause after the run before.
    engine : Engine or str, optional
        An engine, or one of the names ``amaranth``, ``compiled`` and ``auto`` (the engine with the
        shortest estimated time). By default Amaranth's simulator.
    progress : function of (done, total), optional
        Called from time to time with the number of words moved so far and the total.

    Returns
    -------
    SimulationReport
        For a fabric with node ports, the report class of its adapter.

    Raises
    ------
    InputError
        If a job makes a choice that the fabric does not leave or is not built for; if the stall is
        out of range; or if a stall is given for a fabric without node ports.
    WorkFailed
        If a run does not finish.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allreduce"), flits=9), width=16)
    >>> report = tf.simulate(fabric)
    >>> report.words_wrong, report.cycles == fabric.predicted_cycles
    (0, True)
    """
    require_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    seed, repeat = parse_non_negative_int("Seed", seed), parse_positive_int("Repeat", repeat)
    drive = fabric.interface.drive
    if drive:
        few = 3 if jobs is None else jobs
        each = _repeat_jobs(parse_jobs(fabric, few, draw=drive.draw_jobs, seed=seed), repeat)
        made = _resolve_engine(fabric, engine, repeat=len(each))
        return drive.simulate(
            fabric, jobs=each, stall=stall or 0.0, seed=seed, engine=made, progress=progress
        )
    if stall is not None:
        raise InputError(
            f"Stall {message_text(stall)} needs ports that can rest, those of the top stream; "
            "leave "
            "stall out"
        )
    tried = default_jobs(fabric.program)
    if jobs is not None:
        tried = parse_jobs(fabric, jobs, draw=jobs_with_random, seed=seed)
    each = _repeat_jobs(checked_jobs(fabric, tried), repeat)
    made = _resolve_engine(fabric, engine, repeat=repeat) or AmaranthEngine(fabric)
    batches = [random_job_messages(fabric, job, seed=seed + k) for k, job in enumerate(each)]
    began = time.perf_counter()
    done = made.run_many(batches, jobs=each, progress=progress)
    seconds = round(time.perf_counter() - began, 3)
    return report_of_runs(
        fabric, each, batches, done, engine=made.name, repeat=repeat, seconds=seconds
    )


def _repeat_jobs(jobs: tuple[Job, ...], repeat: int) -> tuple[Job, ...]:
    require_result_memory("repeat", len(jobs) * repeat)
    return jobs * repeat


def _resolve_engine(fabric: Fabric, engine: Engine | str | None, *, repeat: int) -> Engine | None:
    """Return the engine for a simulation: an engine itself, or a new one for a name.

    Parameters
    ----------
    engine : Engine, str or None
        The parameter of `simulate`. For None, the result is None as well.
    repeat : int
        Number of runs that a new engine is made for.
    """
    if isinstance(engine, str):
        return choose_engine(fabric, engine, repeat=repeat).engine
    if engine is not None and not isinstance(engine, Engine):
        raise InputError(f"Engine must be a name or an Engine, not {message_text(engine)}")
    return engine


def report_of_runs(
    fabric: Fabric,
    jobs: Sequence[Job],
    batches: Sequence[np.ndarray],
    runs: Sequence[EngineRun],
    **others: Any,
) -> SimulationReport:
    """Compare the words and cycles of finished runs, and return the report.

    Parameters
    ----------
    jobs : sequence of Job
        Mode, length, root and operator of each run, with a value for every choice.
    batches : sequence of ndarray, shape (nodes, send words)
        Words that the nodes sent in each run.
    runs : sequence of EngineRun
        Result of each run.
    **others
        The entries ``engine``, ``repeat`` and ``seconds`` of the report.
    """
    compared = [compare_run(fabric, *done) for done in zip(jobs, batches, runs, strict=True)]
    reports: tuple[JobReport, ...] = ()
    if _differing_runs(fabric.program):
        reports = tuple(
            JobReport.from_run(fabric, job, run.edges if run.edges == run.cycles else -1, found)
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
        rate, most = mean_throughput(fabric, edges, sum(flits)), throughput_bound(fabric)
    return SimulationReport(
        **program_facts(fabric.program),
        width=fabric.width,
        router_classes=len(fabric.router_classes),
        origins=fabric.origins,
        cycles=measured,
        predicted_cycles=predicted,
        cycle_costs=tuple(mode.longest_form.cost for mode in fabric.program.modes),
        jobs=reports,
        throughput=rate,
        throughput_bound=most,
        roots=tuple(sorted({job.root for job in jobs if job.root is not None})),
        clocks=sum(run.clocks for run in runs),
        node_cycles_per_second=round(int(fabric.nodes) * edges / max(spent, 1e-9)),
        port_words=sum(run.through_port for run in runs),
        direct_words=sum(run.direct for run in runs),
        **total_words(compared),
        **others,
    )


def _differing_runs(program: Program) -> bool:
    """Return True if the mode, the length or the operator of a program is chosen for each run.

    Such runs differ in cycles or words, so that the report needs an entry for each run.
    """
    chosen = RunChoices.from_program(program).sampled_inputs
    return not {"mode", "length", "operation"}.isdisjoint(chosen)


def predicted_entries(program: Program) -> dict[str, Any]:
    """Return the entries of a simulation report that need no simulation, such as cycles.

    Returns
    -------
    dict
        The entries of `SimulationReport.to_json` that describe the simulated fabric, without the
        width; ``cycles``; and ``jobs``, which is empty if all runs are alike.

    Examples
    --------
    The predicted cycles are those of a simulation:

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allreduce"), flits=9)
    >>> predicted_entries(program)["cycles"] == tf.simulate(tf.Fabric(program, width=16)).cycles
    True
    """
    jobs = []
    for job in default_jobs(program) if _differing_runs(program) else ():
        cycles = program.cycles(job.length, mode=job.mode)
        jobs.append(job.inputs | {"cycles": cycles})
    each = [job["cycles"] for job in jobs] or [program.cycles()]
    return program_facts(program) | {"cycles": sum(each), "jobs": jobs}
