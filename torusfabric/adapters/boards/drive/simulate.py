"""Simulation of a fabric on several boards, with different clocks and errors on links.

`simulate_boards` runs compiled models. `run_jobs` also serves real boards behind bridges: it checks
every received word and every count of cycles, and makes the report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from ....errors import InputError
from ....simulation.comparison import Comparison, WrongWord, compare_run, total_words
from ....simulation.engines import Job
from ....simulation.engines.base import Messages, Progress
from ....simulation.jobs import checked_jobs, parse_jobs, random_job_messages, random_jobs
from ....simulation.report import JobChoice, SimulationSummary, job_choices, program_facts
from ....toolchain.public import public
from ....toolchain.values import parse_non_negative_int, parse_number
from ..hardware import BoardSystem
from .compiled import CompiledBoards, RunOutcome

__all__ = ["BoardRun", "SystemReport", "make_jobs", "run_jobs", "simulate_boards"]


@public
def simulate_boards(
    system: BoardSystem,
    *,
    jobs: Sequence[Job] | int = 20,
    seed: int = 1,
    link_errors: float = 0.0,
    progress: Progress | None = None,
) -> SystemReport:
    """Simulate a fabric on several boards, and check every received word and all cycles.

    The clocks have the largest frequency errors that the system allows: the first board is slowest,
    the last board fastest. Phases are random, and boards are started at random times.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    jobs : sequence of Job or int
        Runs to execute, or a number of random runs.
    seed : int
        Seed of payloads, phases, starts and errors.
    link_errors : float
        Probability, for each word between boards, that one bit changes; 0 to 0.1.
    progress : function of (done, total), optional
        Called while runs are executed.

    Returns
    -------
    SystemReport
        Result of each run, and totals.

    Raises
    ------
    InputError
        If a job makes a choice that the fabric does not offer, or `link_errors` is out of range.
    WorkFailed
        If a board does not end a run.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.adapters.boards.hardware import BoardSystem
    >>> from torusfabric.topology.boards import Boards
    >>> ring = tf.Torus(4, link_latency=9)
    >>> fabric = tf.Fabric(tf.compile(tf.plan(ring, "allgather")), width=8)
    >>> system = BoardSystem(fabric, Boards.parse("2", ring))
    >>> simulate_boards(system, jobs=1).passed
    True
    """
    link_errors, seed = (
        parse_number("Link errors", link_errors),
        parse_non_negative_int("Seed", seed),
    )
    if not 0 <= link_errors <= 0.1:
        raise InputError(
            f"Link errors must be a probability from 0 to 0.1 for each word, not {link_errors:g}"
        )
    drawn = make_jobs(system, jobs, seed)
    how: dict[str, Any] = {"seed": seed, "link_errors": link_errors}
    with CompiledBoards(system, progress=progress, runs=len(drawn), **how) as boards:
        return run_jobs(system, boards.execute, drawn, **how)


def make_jobs(system: BoardSystem, jobs: Sequence[Job] | int, seed: int) -> tuple[Job, ...]:
    """Return jobs with all choices made: mode, length, root and operator of each run.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    jobs : sequence of Job, or int
        Jobs, whose open choices get their defaults; or a number of random jobs.
    seed : int
        Seed of the choices of random jobs.
    """
    given = parse_jobs(system.fabric, jobs, draw=random_jobs, seed=seed)
    return checked_jobs(system.fabric, given)


def run_jobs(
    system: BoardSystem,
    carry_out: Callable[[Messages, Job], RunOutcome],
    jobs: Sequence[Job],
    *,
    seed: int = 1,
    link_errors: float | None = None,
    messages: NDArray[Any] | None = None,
    progress: Progress | None = None,
) -> SystemReport:
    """Execute runs on all boards, simulated or real, and check every received word and all cycles.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    carry_out : function of (Messages, Job) -> RunOutcome
        Executes one run on the messages of all nodes.
    jobs : sequence of Job
        Runs to execute, with all choices filled in.
    seed : int
        Seed of random messages.
    link_errors : float, optional
        Probability that a word changes between boards, for the report; None if not known.
    messages : array, optional
        Messages of all nodes in every run, by default random.
    progress : function of (done, total), optional
        Called after each run.
    """
    fabric, began = system.fabric, time.perf_counter()
    reports, compared = list[BoardRun](), list[Comparison]()
    for number, job in enumerate(jobs):
        sent = (
            random_job_messages(fabric, job, seed=seed + number) if messages is None else messages
        )
        outcome = carry_out(sent, job)
        found = None if any(outcome.errors) else compare_run(fabric, job, sent, outcome.run)
        if progress:
            progress(number + 1, len(jobs))
        attempts = max(outcome.attempts)
        cycles = fabric.program.cycles(job.length, mode=job.mode)
        reports.append(BoardRun(
            **job_choices(fabric.program, job),
            attempts=attempts,
            cycles=tuple(outcome.cycles),
            errors=tuple(outcome.errors),
            failed_links=tuple(outcome.failed),
            predicted_cycles=system.link_plan.total_cycles(cycles, attempts),
            words_checked=found.words_checked if found else 0,
            words_wrong=found.words_wrong if found else 0,
        ))  # fmt: skip
        compared += [found] if found else []
    alike = all(len(set(run.cycles)) == 1 for run in reports)
    return SystemReport(
        **program_facts(fabric.program),
        width=fabric.width,
        engine=outcome.engine,
        boards=str(system.boards),
        ppm=system.ppm,
        link_errors=link_errors,
        link_words_changed=outcome.changed,
        cycles=sum(run.cycles[0] for run in reports) if alike else -1,
        predicted_cycles=sum(run.predicted_cycles for run in reports),
        retries=sum(run.attempts - 1 for run in reports),
        failed=sum(run.failed for run in reports),
        jobs=tuple(reports),
        **total_words(compared),
        seconds=round(time.perf_counter() - began, 3),
    )


@dataclass(frozen=True)
class BoardRun(JobChoice):
    """The result of one run on all boards.

    Parameters
    ----------
    attempts : int
        Number of times the run was executed.
    cycles, errors : tuple of int
        Cycles and error number that each board reports.
    failed_links : tuple of int
        Bit mask of failed link ports, for each board.
    predicted_cycles : int
        Predicted cycles for this number of attempts.
    words_checked, words_wrong : int
        Number of received words that were compared, and of those that differ. Both are 0 for a run
        that failed, because it delivers nothing.
    """

    attempts: int
    cycles: tuple[int, ...]
    errors: tuple[int, ...]
    failed_links: tuple[int, ...]
    predicted_cycles: int
    words_checked: int
    words_wrong: int

    @property
    def failed(self) -> bool:
        """True if any board reports an error."""
        return any(self.errors)

    @property
    def fault(self) -> str:
        """Text for people about a failed run: each board with its error and its link ports."""
        said = []
        for board, (error, bits) in enumerate(zip(self.errors, self.failed_links, strict=True)):
            links = [str(link) for link in range(bits.bit_length()) if bits >> link & 1]
            at = f" at link ports {', '.join(links)}" if links else ""
            said += [f"error {error} of board {board}{at}"] if error else []
        return "; ".join(said)

    @property
    def has_exact_cycles(self) -> bool:
        """True if every board counted as many cycles as predicted."""
        return set(self.cycles) == {self.predicted_cycles}


@dataclass(frozen=True)
class SystemReport(SimulationSummary):
    """The report of runs on several boards.

    `cycles` is -1 if the boards counted different numbers of cycles.

    Parameters
    ----------
    boards : str
        Number of blocks along each axis, such as ``2x1``.
    ppm : float
        Largest frequency error of a clock, in millionths.
    link_errors : float or None
        Probability that a word changes between boards; None if not known, as on real boards.
    link_words_changed : int
        Number of words that changed between boards; 0 if not known.
    retries : int
        Number of attempts (executions of a run) in all, without the first attempt of each run.
    failed : int
        Number of runs that ended with an error.
    jobs : tuple of BoardRun
        Result of each run.
    first_wrong : WrongWord or None
        The first received word that is wrong.
    """

    boards: str
    ppm: float
    link_errors: float | None
    link_words_changed: int
    retries: int
    failed: int
    jobs: tuple[BoardRun, ...]
    first_wrong: WrongWord | None

    @property
    def passed(self) -> bool:
        """True if all words of successful runs are right, and all cycles are as predicted.

        Without link errors, no run may fail or be repeated. If the link errors are not known, runs
        may be repeated, but none may fail.
        """
        right = not self.words_wrong and all(run.has_exact_cycles for run in self.jobs)
        if self.link_errors is None:
            return right and not self.failed
        return right and (self.link_errors > 0 or not (self.failed or self.retries))

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return asdict(self) | {"passed": self.passed}

    def in_words(self) -> dict[str, Any]:
        """Return the report for people, as a dict from the title of each line to its content."""
        good = sum(not run.failed for run in self.jobs)
        return {
            "topology": self.topology,
            "collective": self.collective,
            "runs": f"{len(self.jobs)}: {good} successful, {self.failed} reported as failed, "
            f"{self.retries} repeated attempts",
            "link words changed": self.link_words_changed,
            "cycles": f"{self.cycles} in all, {self.predicted_cycles} predicted",
            "words checked": self.words_checked,
            "words wrong": self.words_wrong,
            "time": f"{self.seconds:.1f} s",
        }
