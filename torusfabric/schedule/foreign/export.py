"""Writers of schedules in the formats of other systems, by name."""

import csv
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InputError
from ...toolchain.destinations import AnyPath
from ...toolchain.files import open_text_for_writing
from ...toolchain.owned import require_replaceable
from ...toolchain.public import public
from ...toolchain.values import unknown_name_error
from ..base import Schedule
from ..file import load_if_path
from ..held_blocks import HeldBlocks
from ..model import Switching
from .msccl_writer import write_msccl

__all__ = ["BEGINNINGS", "FORMATS", "export_schedule"]

#: The columns of a CSV file. A block is written origin:chunk or, if it has a destination,
#: origin:destination:chunk.
HEADS = ("step", "source", "port", "destination", "block")

#: The first characters of every file of a format.
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
        A checked schedule with store-and-forward switching, or the path of its file.
    path : str or Path
        Path of the new file; a name that ends in ``.gz`` makes a compressed file.
    format : {"msccl", "csv"}
        ``msccl`` writes MSCCL XML, which MSCCL, RCCL and the converter of ASTRA-sim read. ``csv``
        writes one row for each block that a link carries in a step.
    force : bool
        True to overwrite an existing file that is not of this format.

    Raises
    ------
    InputError
        If the format cannot express the schedule, if the path has a file of another type and
        `force` is False, or if the file cannot be written.

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
        raise unknown_name_error("Format", format, FORMATS)
    schedule = load_if_path(schedule)
    require_replaceable(path, BEGINNINGS[format], force=force)
    FORMATS[format](schedule, path)


def _write_csv(schedule: Schedule, path: AnyPath) -> None:
    """Write a CSV file, at `path`, with one row for each block that a link carries in a step.

    A sum has one row for each contribution.
    """
    if schedule.switching != Switching.STORE_AND_FORWARD:
        raise InputError(
            f"Format csv takes store-and-forward schedules, not {schedule.switching}; choose "
            "another algorithm"
        )
    with open_text_for_writing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        topology, blocks = schedule.topology, schedule.blocks
        state = HeldBlocks(topology, blocks)
        for number, transfers in enumerate(schedule.rounds(), 1):
            carried = state.execute(transfers)
            targets = carried.walk(topology)[:, -1].tolist()
            ports, sources = carried.hops[:, 0].tolist(), carried.source.tolist()
            lists = carried.listed.lists
            for k in np.lexsort((ports, sources)).tolist():
                for block in lists[k]:
                    name = ":".join(map(str, blocks.block_entry(block)))
                    port = topology.port_names[ports[k]]
                    writer.writerow((number, sources[k], port, targets[k], name))


#: The writer of each format.
FORMATS: dict[str, Callable[[Schedule, Any], None]] = {"msccl": write_msccl, "csv": _write_csv}
