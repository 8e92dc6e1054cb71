"""Jobs: what is chosen for the runs of a fabric that leaves a choice."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..errors import InputError
from ..rtl.fabric import Fabric
from .engines import Job
from .engines.base import longest_job

__all__ = ["check_jobs", "completed", "default_jobs", "random_jobs"]

#: How many roots are tried where any is possible.
FEW_ROOTS = 8

#: How many lengths are tried where any is possible.
FEW_LENGTHS = 5


def default_jobs(fabric: Fabric) -> tuple[Job, ...]:
    """Every operator and a few roots, with messages of one flit, of the most, and between.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=12))
    >>> [job.length for job in default_jobs(fabric)]
    [1, 4, 6, 9, 12]
    """
    lengths: list[int | None] = [None]
    roots: list[int | None] = [None]
    operations: list[int | None] = [None]
    if "length" in fabric.netlist.inputs:
        spread = np.linspace(1, fabric.flits, FEW_LENGTHS).round().astype(int)
        lengths = [*sorted(set(spread.tolist()))]
    if "root" in fabric.netlist.inputs:
        size = fabric.program.groups.size
        roots = [*sorted({(size * k // FEW_ROOTS + k) % size for k in range(FEW_ROOTS)})]
    if "operation" in fabric.netlist.inputs:
        operations = [*range(len(fabric.program.operators))]
    return tuple(
        Job(length=length, root=root, operation=operation)
        for root, length, operation in product(roots, lengths, operations)
    )


def random_jobs(fabric: Fabric, count: int, *, seed: int = 1) -> tuple[Job, ...]:
    """Jobs with everything drawn that a fabric leaves a choice of."""
    generator = np.random.default_rng(seed)
    inputs = fabric.netlist.inputs
    size, operators = fabric.program.groups.size, len(fabric.program.operators)
    return tuple(
        Job(
            length=int(generator.integers(1, fabric.flits + 1)) if "length" in inputs else None,
            root=int(generator.integers(size)) if "root" in inputs else None,
            operation=int(generator.integers(operators)) if "operation" in inputs else None,
        )
        for _ in range(count)
    )


def completed(fabric: Fabric, job: Job) -> Job:
    """A job with everything chosen: what it leaves open is as in a run without a job.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=12))
    >>> completed(fabric, Job()).length
    12
    """
    return Job(**longest_job(fabric).inputs | job.inputs)


def check_jobs(fabric: Fabric, jobs: Sequence[Job]) -> None:
    """Check that a fabric can carry out jobs.

    Raises
    ------
    InputError
        If there are none, or one chooses what the fabric leaves no choice of, or is not made for.
    """
    if not jobs:
        raise InputError("Jobs must be at least one, not none")
    size = fabric.program.groups.size
    for job in jobs:
        for name in job.inputs:
            if name not in fabric.netlist.inputs:
                raise InputError(
                    f"{name.title()} must be left out for a fabric of one {name}, not {job}"
                )
        fabric.program.length_of(job.length)
        fabric.program.mode.operator_of(job.operation)
        if job.root is not None and not 0 <= job.root < size:
            raise InputError(f"Root must be from 0 to {size - 1}, not {job.root}")
