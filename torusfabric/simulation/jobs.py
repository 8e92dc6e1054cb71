"""Jobs: what is chosen for the runs of a fabric that leaves a choice."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ..collective import random_messages
from ..errors import InputError
from ..planning import require_results
from ..program import Program
from ..rtl.fabric import Fabric
from ..rtl.run_choices import RunChoices
from ..toolchain.values import is_several, natural, of_type, shown
from .engines import Job
from .engines.base import longest_job

__all__ = [
    "check_jobs",
    "completed",
    "default_jobs",
    "drawn_words",
    "given_jobs",
    "is_barrier",
    "jobs_with_drawn",
    "random_jobs",
    "ready_jobs",
]

#: How many roots are tried where any is possible.
FEW_ROOTS = 8

#: How many lengths are tried where any is possible.
FEW_LENGTHS = 5


def default_jobs(program: Program) -> tuple[Job, ...]:
    """Every mode, operator and a few roots; messages of one flit, of the most, and between.

    Of a mode with several forms there are also the lengths where forms begin and end.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather"), max_flits=12)
    >>> [job.length for job in default_jobs(program)]
    [1, 4, 6, 9, 12]
    """
    jobs: list[Job] = []
    for mode in _modes(program):
        of_mode, operations = program.modes[mode or 0], _operations(program, mode or 0)
        roots: list[int | None] = [None]
        if of_mode.any_root:
            size = of_mode.groups.size
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
    """Jobs with everything drawn that a fabric leaves a choice of."""
    program, generator = fabric.program, np.random.default_rng(seed)
    modes = _modes(program)
    jobs = []
    for _ in range(count):
        mode = modes[int(generator.integers(len(modes)))]
        of_mode, operations = program.modes[mode or 0], _operations(program, mode or 0)
        any_length = program.any_length
        length = int(generator.integers(1, fabric.flits + 1)) if any_length else None
        root = int(generator.integers(of_mode.groups.size)) if of_mode.any_root else None
        operation = operations[int(generator.integers(len(operations)))]
        jobs.append(Job(mode=mode, length=length, root=root, operation=operation))
    return tuple(jobs)


def jobs_with_drawn(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """The usual jobs of a fabric that leaves a choice, and so many that are drawn.

    Raises
    ------
    InputError
        If it leaves no choice.
    """
    if not fabric.program.any_length and len(fabric.program.operators) < 2:
        raise InputError(
            "Jobs must be left out without max flits or several operators, which leave a choice"
        )
    return default_jobs(fabric.program) + random_jobs(fabric, count, seed=seed)


def given_jobs(
    fabric: Fabric, jobs: object, *, draw: Callable[..., tuple[Job, ...]], seed: int
) -> tuple[Job, ...]:
    """Jobs as users give them, with numbers as numbers, or as drawn if they say how many.

    Parameters
    ----------
    draw : function of (fabric, count, seed) -> tuple of Job

    Raises
    ------
    InputError
        If they are neither.
    """
    if isinstance(jobs, int | str):
        count = natural("Jobs", jobs)
        require_results("jobs", count)
        return draw(fabric, count, seed=seed)
    if isinstance(jobs, Job) or not is_several(jobs):
        raise InputError(f"Jobs must be a list of Job, or how many, not {shown(jobs)}")
    each = [of_type("Jobs", job, Job, "a list of Job, or how many") for job in jobs]
    numbers = (
        {name: natural(name.capitalize(), value) for name, value in job.inputs.items()}
        for job in each
    )
    return tuple(Job(**chosen) for chosen in numbers)


def drawn_words(fabric: Fabric, job: Job, *, seed: int) -> np.ndarray:
    """Return random messages of a run, an array of shape (nodes, send words)."""
    layout = fabric.program.part(fabric.program.form_of(job.mode, job.length)).layout
    return random_messages(layout, job.length or fabric.flits, width=fabric.width, seed=seed)


def _modes(program: Program) -> list[int | None]:
    """The modes, or None for the only one."""
    return [*range(len(program.modes))] if len(program.modes) > 1 else [None]


def _operations(program: Program, mode: int) -> list[int | None]:
    """The operators of a mode by their numbers; None where there is no choice."""
    count = len(program.modes[mode].operators)
    return [*range(count)] if count > 1 else [None]


def is_barrier(fabric: Fabric, job: Job) -> bool:
    """Return True if a job is a barrier, the mode after all others, which leaves nothing open."""
    return bool(fabric.program.barrier) and job.mode == len(fabric.program.modes)


def completed(fabric: Fabric, job: Job) -> Job:
    """A job with everything chosen: what it leaves open is as in a run without a job.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=12))
    >>> completed(fabric, Job()).length
    12
    """
    if is_barrier(fabric, job):
        return job
    return Job(**longest_job(fabric, job.mode or 0).inputs | job.inputs)


def ready_jobs(fabric: Fabric, jobs: Sequence[Job]) -> tuple[Job, ...]:
    """Jobs with everything chosen, that a fabric can carry out; raises as `check_jobs` does."""
    check_jobs(fabric, jobs)
    return tuple(completed(fabric, job) for job in jobs)


def check_jobs(fabric: Fabric, jobs: Sequence[Job]) -> None:
    """Check that a fabric can carry out jobs.

    Raises
    ------
    InputError
        If there are none, or one chooses what the fabric leaves no choice of, or is not made for.
    """
    if not jobs:
        raise InputError("Jobs must be at least one, not none")
    chosen = RunChoices.of(fabric.program).inputs
    for job in jobs:
        if is_barrier(fabric, job):
            continue
        for name, value in job.inputs.items():
            if name not in chosen:
                raise InputError(
                    f"{name.title()} must be left out for a fabric of one {name}, not {value}"
                )
        fabric.program.length_of(job.length)
        mode = fabric.program.modes[fabric.program.mode_number(job.mode)]
        mode.operator_of(job.operation)
        size = mode.groups.size
        if job.root is not None and not 0 <= job.root < size:
            raise InputError(f"Root must be from 0 to {size - 1}, not {job.root}")
