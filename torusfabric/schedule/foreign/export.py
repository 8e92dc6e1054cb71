"""Schedules in the formats of other systems."""

import csv
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InputError
from ...toolchain.destinations import AnyPath
from ...toolchain.files import writing_text
from ...toolchain.owned import require_like
from ...toolchain.public import public
from ...toolchain.values import no_such
from ..base import Schedule
from ..file import given_schedule
from ..held_blocks import HeldBlocks
from ..model import Switching
from .msccl_writer import write_msccl

__all__ = ["BEGINNINGS", "FORMATS", "export_schedule"]

#: The columns. A block is written origin:chunk or, where it has a destination of its own,
#: origin:destination:chunk.
HEADS = ("step", "source", "port", "destination", "block")

#: How every file of a format begins.
BEGINNINGS = {"msccl": "<algo ", "csv": "step,source,port,"}


@public
def export_schedule(
    schedule: Schedule | AnyPath,
    path: AnyPath,
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


def _write_csv(schedule: Schedule, path: AnyPath) -> None:
    """Write a row for each block that a link carries in a step; a sum has one a contribution."""
    if schedule.switching != Switching.STORE_AND_FORWARD:
        raise InputError(f"Schedule must be by store-and-forward for csv, not {schedule.switching}")
    with writing_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        topology, blocks = schedule.topology, schedule.blocks
        state = HeldBlocks(topology, blocks)
        for number, transfers in enumerate(schedule.rounds(), 1):
            carried = state.carry_out(transfers)
            targets = carried.walk(topology)[:, -1].tolist()
            ports, sources = carried.hops[:, 0].tolist(), carried.source.tolist()
            lists = carried.listed.lists
            for k in np.lexsort((ports, sources)).tolist():
                for block in lists[k]:
                    name = ":".join(map(str, blocks.name(block)))
                    port = topology.port_names[ports[k]]
                    writer.writerow((number, sources[k], port, targets[k], name))


#: Who writes each format.
FORMATS: dict[str, Callable[[Schedule, Any], None]] = {"msccl": write_msccl, "csv": _write_csv}
