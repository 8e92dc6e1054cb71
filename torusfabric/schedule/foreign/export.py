"""Schedules in the formats of other systems."""

import os
from collections.abc import Callable
from typing import Any

from ...toolchain.hints import no_such
from ...toolchain.owned import require_like
from ..base import Schedule
from ..file import given_schedule
from .csv_writer import write_csv
from .msccl_writer import write_msccl

__all__ = ["BEGINNINGS", "FORMATS", "export_schedule"]

#: Who writes each format.
FORMATS: dict[str, Callable[[Schedule, Any], None]] = {"msccl": write_msccl, "csv": write_csv}

#: How every file of a format begins.
BEGINNINGS = {"msccl": "<algo ", "csv": "step,source,port,"}


def export_schedule(
    schedule: Schedule | str | os.PathLike[str],
    path: str | os.PathLike[str],
    format: str = "msccl",
    *,
    force: bool = False,
) -> None:
    """Write a schedule in the format of another system.

    Parameters
    ----------
    schedule : Schedule or path
        A checked schedule, by store-and-forward; or its file.
    path : str or Path
        Compressed if it ends in ``.gz``.
    format : {"msccl", "csv"}
        MSCCL XML, which MSCCL, RCCL and ASTRA-sim's converter read; or a row for each block that a
        link carries in a step.
    force : bool
        Whether a file that is not of this format is replaced.

    Raises
    ------
    InputError
        If the format cannot say it, there is another file and may not be replaced, or the file
        cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.export_schedule(tf.plan("2", "allgather"), f"{folder}/plan.csv", "csv")
    ...     print(pathlib.Path(f"{folder}/plan.csv").read_text(), end="")
    step,source,port,destination,block
    1,0,+0,1,0:0
    1,0,-0,1,0:0
    1,1,+0,0,1:0
    1,1,-0,0,1:0
    """
    if not isinstance(format, str) or format not in FORMATS:
        raise no_such("Format", format, FORMATS)
    schedule = given_schedule(schedule)
    require_like(path, BEGINNINGS[format], force=force)
    FORMATS[format](schedule, path)
