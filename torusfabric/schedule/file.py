"""Reading and writing of schedule files: JSON, compressed if the name ends in ``.gz``.

The reader checks everything in a file. Its messages name the round and the transfer at fault.
"""

import os

from ..errors import InputError
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public
from ..toolchain.reading import parse_json, read_bytes
from ..toolchain.values import require_type
from .base import Schedule
from .parsing import check_rounds, parse_schedule
from .recognise import recognise
from .writing import BEGINNING, without_garbage_collector

__all__ = ["BEGINNING", "load_if_path", "load", "save"]


@public
def save(schedule: Schedule, path: AnyPath, *, force: bool = False) -> None:
    """Write a schedule to a file; the function form of `Schedule.save`.

    Equal schedules give equal bytes. If writing fails, no partial file is left behind.

    Parameters
    ----------
    path : path
        The file, compressed if its name ends in ``.gz``.
    force : bool
        True to overwrite an existing file that is not a schedule file.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.save(tf.plan("2x2", "alltoall"), f"{folder}/plan.json")
    ...     tf.load(f"{folder}/plan.json").algorithm
    'matching'
    """
    require_type("Schedule", schedule, Schedule, "a schedule, as tf.plan and tf.load return it")
    schedule.save(path, force=force)


@public
def load(path: AnyPath) -> Schedule:
    """Read a schedule from a file.

    Parameters
    ----------
    path : str or Path
        Path of the file; a name that ends in ``.gz`` marks a compressed file.

    Returns
    -------
    Schedule
        A pattern or a table if `recognise` finds one, else `Rounds`.

    Raises
    ------
    InputError
        If the file does not exist or is no valid schedule file; the message names the location in
        the file. Whether the schedule is correct is checked by `torusfabric.analysis.check.check`.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.plan("4x4", "alltoall").save(f"{folder}/plan.json.gz")
    ...     schedule = tf.load(f"{folder}/plan.json.gz")
    >>> schedule.form, schedule.steps
    ('table', 8)
    """
    with without_garbage_collector():
        raw = read_bytes(path, "Schedule file")
        try:
            # Empty rounds are short in a file but large in memory, so they are counted first.
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
            raise InputError(f"Schedule file {path} is nested too deeply") from None


def load_if_path(given: Schedule | AnyPath) -> Schedule:
    """Return the schedule that a user passes: a `Schedule`, or the path of a schedule file.

    Parameters
    ----------
    given : Schedule or path
        The argument of a user.

    Raises
    ------
    InputError
        If the argument is neither, or `load` refuses the file.
    """
    if isinstance(given, str | os.PathLike):
        return load(given)
    how = "a schedule, as tf.plan and tf.load return it, or the path of its file"
    found: Schedule = require_type("Schedule", given, Schedule, how)
    return found
