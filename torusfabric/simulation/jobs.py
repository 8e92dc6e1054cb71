"""Jobs: the choices of mode, length, root and operator for each run of a fabric.

`simulate` uses this module to list the default jobs of a fabric, to draw random jobs, to complete
jobs that leave a choice open, and to check jobs that users give.

A fabric *leaves a choice* if it was built for several values of it, such as several modes. The
value of any other choice is None in a job.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ..collective import random_messages
from ..errors import InputError
from ..planning import require_result_memory
from ..program import Program
from ..rtl.fabric import Fabric
from ..rtl.run_choices import RunChoices
from ..toolchain.values import is_iterable, message_text, parse_non_negative_int, require_type
from .engines import Job
from .engines.base import longest_job

__all__ = ["check_jobs", "complete_job", "default_jobs", "random_job_messages", "parse_jobs",
           "is_barrier", "jobs_with_random", "random_jobs", "checked_jobs"]  # fmt: skip

#: Number of roots in the default jobs of a mode with any root.
FEW_ROOTS = 8

#: Number of message lengths in the default jobs of a program with any length.
FEW_LENGTHS = 5


def default_jobs(program: Program) -> tuple[Job, ...]:
    """Return jobs that cover every mode and operator, a few roots, and a few message lengths.

    The lengths are spread evenly from one flit to the maximum. In a mode with several forms, the
    last length of each form and the first length of the next form are added, because the schedule
    changes between them.

    Examples
    --------
    The fabric leaves only the length open:

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather"), max_flits=12)
    >>> [job.length for job in default_jobs(program)]
    [1, 4, 6, 9, 12]
    """
    jobs: list[Job] = []
    for mode in _mode_numbers(program):
        of_mode, operations = program.modes[mode or 0], _operator_numbers(program, mode or 0)
        roots: list[int | None] = [None]
        if of_mode.any_root:
            size = of_mode.groups.group_size
            roots = [*sorted({(size * k // FEW_ROOTS + k) % size for k in range(FEW_ROOTS)})]
        lengths: list[int | None] = [None]
        if program.any_length:
            spread = np.linspace(1, program.flits, FEW_LENGTHS).round().astype(int).tolist()
            edges = [start - k for start in of_mode.first_starts.values() for k in (0, 1)]
            lengths = [*sorted({*spread, *filter(None, edges)})]
        jobs += [Job(mode, length, root, operation)
                 for root, length, operation in product(roots, lengths, operations)]  # fmt: skip
    return tuple(jobs)


def random_jobs(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """Return `count` jobs with random values for all choices that are open.

    A choice, such as the length, is open if the fabric was built for several values of it.

    Parameters
    ----------
    fabric : Fabric
        Fabric whose open choices the jobs make.
    count : int
        Number of jobs.
    seed : int
        Seed of the random choices; equal seeds give equal jobs.
    """
    program, generator = fabric.program, np.random.default_rng(seed)
    modes = _mode_numbers(program)
    jobs = []
    for _ in range(count):
        mode = modes[int(generator.integers(len(modes)))]
        of_mode, operations = program.modes[mode or 0], _operator_numbers(program, mode or 0)
        any_length = program.any_length
        length = int(generator.integers(1, fabric.flits + 1)) if any_length else None
        root = int(generator.integers(of_mode.groups.group_size)) if of_mode.any_root else None
        operation = operations[int(generator.integers(len(operations)))]
        jobs.append(Job(mode=mode, length=length, root=root, operation=operation))
    return tuple(jobs)


def jobs_with_random(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """Return the default jobs of a fabric, followed by `count` random jobs.

    If the fabric leaves a run nothing to choose, the random jobs are alike. Each run has words of
    its own.

    Parameters
    ----------
    fabric : Fabric
        Fabric that is to run the jobs.
    count : int
        Number of random jobs.
    seed : int
        Seed of the random choices, as for `random_jobs`.
    """
    return default_jobs(fabric.program) + random_jobs(fabric, count, seed=seed)


def parse_jobs(
    fabric: Fabric, jobs: object, *, draw: Callable[..., tuple[Job, ...]], seed: int
) -> tuple[Job, ...]:
    """Return the jobs that a user gives as a list, or make random jobs if the user gives a count.

    The jobs of a list are not checked against the fabric; see `check_jobs`.

    Parameters
    ----------
    jobs : sequence of Job, or int
        The jobs, or the number of random jobs. Numbers may be text: ``"3"``, ``Job("1")``.
    draw : function of (fabric, count, seed=seed) -> tuple of Job
        Makes random jobs for a fabric, given a count, for example `random_jobs` or
        `jobs_with_random`.
    seed : int
        Seed of the random jobs, passed to `draw`.

    Raises
    ------
    InputError
        If `jobs` is neither a count nor a list of jobs.
    """
    if isinstance(jobs, int | str):
        count = parse_non_negative_int("Jobs", jobs)
        require_result_memory("jobs", count)
        return draw(fabric, count, seed=seed)
    if isinstance(jobs, Job) or not is_iterable(jobs):
        raise InputError(f"Jobs must be a list of Job, or how many, not {message_text(jobs)}")
    each = [require_type("Jobs", job, Job, "a list of Job, or how many") for job in jobs]
    numbers = (
        {
            name: parse_non_negative_int(name.capitalize(), value)
            for name, value in job.inputs.items()
        }
        for job in each
    )
    return tuple(Job(**chosen) for chosen in numbers)


def random_job_messages(fabric: Fabric, job: Job, *, seed: int) -> np.ndarray:
    """Return random words for a run to send: ndarray of int, shape (nodes, words).

    The number of words that each node sends follows from the length of the job, and from the form
    that the fabric chooses for this length. `seed` is the seed of the words; equal seeds give equal
    words. The operator of the run may make typical operands of them.
    """
    layout = fabric.program.part(fabric.program.form_of(job.mode, job.length)).layout
    length, width = job.length or fabric.flits, fabric.width
    words = random_messages(layout, length, width=width, seed=seed)
    mode = fabric.program.modes[fabric.program.mode_number(job.mode)]
    operator = mode.operator_of(job.operation)
    return operator.typical(words, width) if operator and operator.typical else words


def _mode_numbers(program: Program) -> list[int | None]:
    """Return all values that `Job.mode` may have: the numbers of all modes.

    With a single mode there is no choice, and the only value is None.
    """
    return [*range(len(program.modes))] if len(program.modes) > 1 else [None]


def _operator_numbers(program: Program, mode: int) -> list[int | None]:
    """Return all values that `Job.operation` may have in a mode: the numbers of its operators.

    If the runs of the mode choose no operator, the only value is None.
    """
    count = len(program.modes[mode].operators)
    return [*range(count)] if count > 1 else [None]


def is_barrier(fabric: Fabric, job: Job) -> bool:
    """Return True if a job is a barrier: a run without words, which only synchronizes the nodes.

    In a fabric with a barrier and n modes, the barrier has the mode number n. It takes no length,
    root or operator.
    """
    return bool(fabric.program.barrier) and job.mode == len(fabric.program.modes)


def complete_job(fabric: Fabric, job: Job) -> Job:
    """Return a job with a value for every choice; a missing one is taken from `longest_job`.

    Examples
    --------
    The job leaves the length open, so it becomes the longest one:

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=12))
    >>> complete_job(fabric, Job()).length
    12
    """
    if is_barrier(fabric, job):
        return job
    return Job(**longest_job(fabric, job.mode or 0).inputs | job.inputs)


def checked_jobs(fabric: Fabric, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Check jobs as `check_jobs` does, and return them with a value for every choice."""
    check_jobs(fabric, jobs)
    return tuple(complete_job(fabric, job) for job in jobs)


def check_jobs(fabric: Fabric, jobs: Sequence[Job]) -> None:
    """Raise an error unless a fabric can run all of these jobs.

    Raises
    ------
    InputError
        If there are no jobs; if a job sets a choice, such as the length, of which the fabric has a
        single value; or if a value is out of the range that the fabric was built for.
    """
    if not jobs:
        raise InputError("Jobs must be at least one; leave jobs out for the usual ones")
    chosen = RunChoices.from_program(fabric.program).sampled_inputs
    for job in jobs:
        if is_barrier(fabric, job):
            continue
        for name, value in job.inputs.items():
            if name not in chosen:
                raise InputError(
                    f"This fabric has one {name}, which no run chooses; leave {name} {value} out "
                    "of the job"
                )
        fabric.program.length_of(job.length)
        mode = fabric.program.modes[fabric.program.mode_number(job.mode)]
        mode.operator_of(job.operation)
        size = mode.groups.group_size
        if job.root is not None and not 0 <= job.root < size:
            raise InputError(f"Root must be from 0 to {size - 1}, not {job.root}")
