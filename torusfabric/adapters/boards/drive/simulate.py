"""Simulation of a fabric on several boards, with clocks of their own and errors on links."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from ....errors import InputError
from ....simulation.comparison import Comparison, WrongWord, compare_run, totals
from ....simulation.engines import Job
from ....simulation.engines.base import Messages, Progress
from ....simulation.jobs import drawn_words, given_jobs, random_jobs, ready_jobs
from ....simulation.report import JobChoice, Subject, choice_of, facts_of
from ....toolchain.public import public
from ....toolchain.values import natural, real
from ..hardware import BoardSystem
from .compiled import CompiledBoards, Outcome

__all__ = ["BoardRun", "SystemReport", "jobs_of", "run_jobs", "simulate_boards"]


@public
def simulate_boards(
    system: BoardSystem,
    *,
    jobs: Sequence[Job] | int = 20,
    seed: int = 1,
    link_errors: float = 0.0,
    progress: Progress | None = None,
) -> SystemReport:
    """Run a fabric on several boards, and compare every word at every node, and all cycles.

    The clocks are off by as much as the system allows, the first one way and the last the other,
    with phases at random. Boards are started at random, some cycles apart.

    Parameters
    ----------
    jobs : sequence of Job or int
        One run for each of these; a number is for so many that are drawn.
    seed : int
        Of payloads, phases, starts and errors.
    link_errors : float
        How likely it is that a bit of a word changes on its way to another board.
    progress : function of (done, total), optional

    Raises
    ------
    InputError
        If a job chooses what the fabric leaves no choice of, or the likelihood is none.
    WorkFailed
        If a board does not come to an end.

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
    link_errors, seed = real("Link errors", link_errors), natural("Seed", seed)
    if not 0 <= link_errors <= 0.1:
        raise InputError(f"Link errors must be from 0 to 0.1 a word, not {link_errors:g}")
    drawn = jobs_of(system, jobs, seed)
    how: dict[str, Any] = {"seed": seed, "link_errors": link_errors}
    with CompiledBoards(system, progress=progress, runs=len(drawn), **how) as boards:
        return run_jobs(system, boards.carry_out, drawn, **how)


def jobs_of(system: BoardSystem, jobs: Sequence[Job] | int, seed: int) -> tuple[Job, ...]:
    """Jobs in full, which are drawn where only their number is given."""
    given = given_jobs(system.fabric, jobs, draw=random_jobs, seed=seed)
    return ready_jobs(system.fabric, given)


def run_jobs(
    system: BoardSystem,
    carry_out: Callable[[Messages, Job], Outcome],
    jobs: Sequence[Job],
    *,
    seed: int = 1,
    link_errors: float | None = None,
    messages: NDArray[Any] | None = None,
    progress: Progress | None = None,
) -> SystemReport:
    """Carry out runs on all boards, and compare every word and all cycles.

    Parameters
    ----------
    carry_out : function of (Messages, Job) -> Outcome
        Carries a run out on messages of all nodes.
    link_errors : float, optional
        As of `SystemReport`.
    messages : array, optional
        What nodes send, by default at random by the seed.
    progress : function of (done, total), optional
        Called after each run.
    """
    fabric, began = system.fabric, time.perf_counter()
    reports, compared = list[BoardRun](), list[Comparison]()
    for number, job in enumerate(jobs):
        sent = drawn_words(fabric, job, seed=seed + number) if messages is None else messages
        outcome = carry_out(sent, job)
        found = None if any(outcome.errors) else compare_run(fabric, job, sent, outcome.run)
        if progress:
            progress(number + 1, len(jobs))
        attempts = max(outcome.attempts)
        cycles = fabric.program.cycles(job.length, mode=job.mode)
        reports.append(BoardRun(
            **choice_of(fabric.program, job),
            attempts=attempts,
            cycles=tuple(outcome.cycles),
            errors=tuple(outcome.errors),
            failed_links=tuple(outcome.failed),
            predicted_cycles=system.plan.cycles(cycles, attempts),
            words_checked=found.words_checked if found else 0,
            words_wrong=found.words_wrong if found else 0,
        ))  # fmt: skip
        compared += [found] if found else []
    alike = all(len(set(run.cycles)) == 1 for run in reports)
    return SystemReport(
        **facts_of(fabric.program),
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
        **totals(compared),
        seconds=round(time.perf_counter() - began, 3),
    )


@dataclass(frozen=True)
class BoardRun(JobChoice):
    """What came of a run on all boards.

    Parameters
    ----------
    attempts : int
        How often it was carried out.
    cycles, errors : tuple of int
        What each board says.
    failed_links : tuple of int
        A bit for each link port of each board that failed.
    predicted_cycles : int
        Of so many attempts.
    words_checked, words_wrong : int
        0 of a run that has failed, which delivers nothing.
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
        """Whether any board says so."""
        return any(self.errors)

    @property
    def fault(self) -> str:
        """What has failed, and where."""
        said = []
        for board, (error, bits) in enumerate(zip(self.errors, self.failed_links, strict=True)):
            links = [str(link) for link in range(bits.bit_length()) if bits >> link & 1]
            at = f" at link ports {', '.join(links)}" if links else ""
            said += [f"error {error} of board {board}{at}"] if error else []
        return "; ".join(said)

    @property
    def exact(self) -> bool:
        """Whether all boards took the predicted cycles."""
        return set(self.cycles) == {self.predicted_cycles}


@dataclass(frozen=True)
class SystemReport(Subject):
    """What a simulation of several boards found; cycles are -1 where boards differ.

    Parameters
    ----------
    boards : str
        Blocks along each axis.
    ppm : float
        By how much clocks are off.
    link_errors : float or None
        How likely a word changes on its way to another board; None where that is not known.
    link_words_changed : int
        How many did, as far as that is known.
    retries, failed : int
        Attempts beyond the first, and runs that ended with an error.
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
        """Whether all words of runs that report success are right, and all cycles as predicted.

        Without errors on links no run may fail, or be repeated; where they are not known, fail.
        """
        right = not self.words_wrong and all(run.exact for run in self.jobs)
        if self.link_errors is None:
            return right and not self.failed
        return right and (self.link_errors > 0 or not (self.failed or self.retries))

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self) | {"passed": self.passed}

    def in_words(self) -> dict[str, Any]:
        """The report for people."""
        good = sum(not run.failed for run in self.jobs)
        return {
            "topology": self.topology,
            "collective": self.collective,
            "runs": f"{len(self.jobs)}: {good} with success, {self.failed} that said they failed, "
            f"{self.retries} attempts more than runs",
            "link words changed": self.link_words_changed,
            "cycles": f"{self.cycles} in all, {self.predicted_cycles} predicted",
            "words checked": self.words_checked,
            "words wrong": self.words_wrong,
            "time": f"{self.seconds:.1f} s",
        }
