"""Schedules as files: JSON, compressed where the name ends in ``.gz``.

Reading believes nothing, and says which transfer of which round is at fault.
"""

import os

from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public
from ..toolchain.reading import parse_json, read_bytes
from ..toolchain.values import of_type
from .base import Schedule
from .parsing import check_rounds, parse_schedule
from .recognise import recognise
from .writing import BEGINNING, without_collector

__all__ = ["BEGINNING", "given_schedule", "load", "save"]


@public
def save(schedule: Schedule, path: AnyPath, *, force: bool = False) -> None:
    """Write a schedule to a file, as `Schedule.save`.

    The same schedule gives the same bytes. Nothing is left behind if it cannot be written.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.save(tf.plan("2x2", "alltoall"), f"{folder}/plan.json")
    ...     tf.load(f"{folder}/plan.json").algorithm
    'matching'
    """
    of_type("Schedule", schedule, Schedule, "a schedule, as tf.plan and tf.load return it")
    schedule.save(path, force=force)


@public
def load(path: AnyPath) -> Schedule:
    """Read a schedule from a file.

    Parameters
    ----------
    path : str or Path
        Compressed if it ends in ``.gz``.

    Returns
    -------
    Schedule
        A pattern or a table where `recognise` finds one, else rounds.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file; names the place. Whether the
        schedule is right is for `torusfabric.analysis.check.check` to say.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.plan("4x4", "alltoall").save(f"{folder}/plan.json.gz")
    ...     schedule = tf.load(f"{folder}/plan.json.gz")
    >>> schedule.form, schedule.steps
    ('table', 8)
    """
    with without_collector():
        raw = read_bytes(path, "Schedule file")
        try:
            # Rounds in which nothing is sent take little of a file, and much memory.
            check_rounds(raw.translate(None, b" \t\r\n").count(b"[]"))
            data = parse_json(raw)
        except InputError as error:
            raise InputError(f"Schedule file {path}: {error}") from None
        except ValueError as error:
            hint = " (torusfabric import reads MSCCL XML)" if raw.lstrip().startswith(b"<") else ""
            raise InputError(f"Schedule file {path} must be JSON: {error}{hint}") from None
        try:
            return recognise(parse_schedule(data))
        except InputError as error:
            raise type(error)(f"Schedule file {path}: {error}") from error
        except RecursionError:
            raise InputError(f"Schedule file {path} must not be nested deeply") from None


def given_schedule(given: Schedule | AnyPath) -> Schedule:
    """A schedule as users give it: itself, or the path of its file.

    Raises
    ------
    InputError
        If it is neither, or `load` raises it.
    """
    if isinstance(given, str | os.PathLike):
        return load(given)
    how = "a schedule, as tf.plan and tf.load return it, or the path of its file"
    found: Schedule = of_type("Schedule", given, Schedule, how)
    return found
