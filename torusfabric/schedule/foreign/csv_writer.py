"""Schedules as lists of transfers, for people's own scripts: comma-separated values."""

import csv
import os
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...errors import InputError
from ...toolchain.files import writing_text
from ..base import Schedule
from ..held_blocks import HeldBlocks
from ..model import Switching

__all__ = ["HEADS", "write_csv"]

#: The columns. A block is written origin:chunk or, where it has a destination of its own,
#: origin:destination:chunk.
HEADS = ("step", "source", "port", "destination", "block")


def write_csv(schedule: Schedule, path: str | os.PathLike[str]) -> None:
    """Write a row for each block that a link carries in a step.

    In a reduction a sum is a row for each of its contributions.

    Parameters
    ----------
    schedule : Schedule
        By store-and-forward.

    Raises
    ------
    InputError
        If the schedule is one of circuits, or the file cannot be written.
    """
    if schedule.switching != Switching.STORE_AND_FORWARD:
        raise InputError(f"Schedule must be by store-and-forward for csv, not {schedule.switching}")
    with writing_text(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADS)
        writer.writerows(_rows(schedule))


def _rows(schedule: Schedule) -> Iterator[tuple[object, ...]]:
    """The rows, by steps from 1, sources and ports."""
    topology, blocks = schedule.topology, schedule.blocks
    state = HeldBlocks(topology, blocks)
    for number, transfers in enumerate(schedule.rounds(), 1):
        carried = state.carry_out(transfers)
        targets = carried.walk(topology)[:, -1].tolist()
        ports, sources = carried.hops[:, 0].tolist(), carried.source.tolist()
        ids = np.asarray(carried.listed.ids)
        bounds = list(pairwise(np.asarray(carried.listed.indptr).tolist()))
        for k in np.lexsort((ports, sources)).tolist():
            for block in ids[slice(*bounds[k])]:
                name = ":".join(map(str, blocks.name(block)))
                yield number, sources[k], topology.port_names[ports[k]], targets[k], name
