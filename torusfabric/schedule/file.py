"""Schedules as files: JSON, compressed where the name ends in ``.gz``.

A file lists the transfers of each round with their paths as nodes and, where two links join the
same nodes, as out-ports too. Writing streams round by round and puts the file in place only once it
is whole; reading believes nothing, and says which transfer of which round is at fault.
"""

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.files import writing_text
from ..toolchain.owned import require_like
from ..toolchain.reading import parse_json, read_bytes
from ..toolchain.values import of_type
from .base import Schedule
from .held_blocks import HeldBlocks
from .parsing import check_rounds, parse_schedule
from .pattern import Pattern
from .recognise import recognise
from .sum_table import SumTable
from .table import Table
from .transfers import Everything, Grouped, KeptSums, Listed, Transfers

__all__ = ["BEGINNING", "given_schedule", "load", "save"]

FORMAT, VERSION = "torusfabric-schedule", 1

#: How every schedule file begins.
BEGINNING = '{"format": "torusfabric-schedule"'

#: What a path is.
AnyPath = str | os.PathLike[str]


def save(schedule: Schedule, path: AnyPath, *, force: bool = False) -> None:
    """Write a schedule to a file.

    The same schedule gives the same bytes. Nothing is left behind if it cannot be written.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
    path : str or Path
        Compressed if it ends in ``.gz``.
    force : bool
        Whether a file that is no schedule file is replaced.

    Raises
    ------
    InputError
        If there is such a file and may not be replaced, or the file cannot be written.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.save(tf.plan("2x2", "alltoall"), f"{folder}/plan.json")
    ...     tf.load(f"{folder}/plan.json").algorithm
    'matching'
    """
    of_type("Schedule", schedule, Schedule, "a schedule, as tf.plan and tf.load return it")
    require_like(path, BEGINNING, force=force)
    with writing_text(path) as file:
        file.writelines(_pieces(schedule))


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
    ...     tf.plan("4x4", "allreduce").save(f"{folder}/plan.json.gz")
    ...     schedule = tf.load(f"{folder}/plan.json.gz")
    >>> schedule.form, schedule.steps
    ('table', 8)
    """
    data = _read_json(path)
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


# Writing.


def _pieces(schedule: Schedule) -> Iterator[str]:
    """The text of a schedule file, a line a round."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "topology": schedule.topology.to_json(),
        "collective": schedule.collective.to_json(),
        "algorithm": schedule.algorithm,
        "switching": schedule.switching,
        "ports": int(schedule.ports),
        "chunks": int(schedule.chunks),
    }
    if schedule.duplex != "full":
        head["duplex"] = schedule.duplex
    yield json.dumps(head)[:-1] + ', "rounds": ['
    held_blocks = _held_blocks_to_save(schedule)
    for number, transfers in enumerate(schedule.rounds()):
        if held_blocks is not None:
            listed = held_blocks.carry_out(transfers)
            if isinstance(transfers.payload, Grouped):
                transfers = listed
        yield ",\n" if number else "\n"
        yield json.dumps(_entries(schedule, transfers))
    yield "\n]}\n"


def _held_blocks_to_save(schedule: Schedule) -> HeldBlocks | None:
    """What nodes hold, where it takes that to list the blocks of groups; else None."""
    if isinstance(schedule, Pattern | Table | SumTable):
        return None
    if any(isinstance(transfers.payload, Grouped) for transfers in schedule.rounds()):
        return HeldBlocks(schedule.topology, schedule.blocks)
    return None


def _entries(schedule: Schedule, transfers: Transfers) -> list[dict[str, Any]]:
    """The transfers of a round as in a file."""
    topology = schedule.topology
    paths, hops = transfers.walk(topology).tolist(), np.asarray(transfers.hops).tolist()
    _, same, many = np.unique(topology.generators, return_inverse=True, return_counts=True)
    ambiguous = set(np.flatnonzero(many[same] > 1).tolist())
    entries = []
    for path, ports, length, blocks in zip(
        paths, hops, transfers.lengths.tolist(), _carried(schedule, transfers), strict=True
    ):
        entry = {"path": path[: length + 1]}
        if ambiguous and not ambiguous.isdisjoint(ports[:length]):
            entry["via"] = [topology.port_names[port] for port in ports[:length]]
        entries.append(entry | blocks)
    return entries


def _carried(schedule: Schedule, transfers: Transfers) -> list[dict[str, Any]]:
    """What each transfer carries as in a file."""
    payload, names = transfers.payload, schedule.topology.port_names
    if not isinstance(payload, KeptSums):
        return [{"blocks": blocks} for blocks in _block_entries(schedule, transfers)]
    return [
        {"sum": chunk, "passes": names[by]} if by >= 0 else {"sum": chunk}
        for chunk, by in zip(payload.chunk.tolist(), payload.passed.tolist(), strict=True)
    ]


def _block_entries(schedule: Schedule, transfers: Transfers) -> list[Any]:
    """The blocks of each transfer as in a file."""
    payload, blocks = transfers.payload, schedule.blocks
    if isinstance(payload, Everything):
        return ["all"] * len(transfers)
    assert isinstance(payload, Listed), "blocks of groups are listed first"
    columns = [blocks.origin(payload.ids), blocks.chunk(payload.ids)]
    if blocks.collective.personal:
        columns.insert(1, blocks.destination(payload.ids))
    names, cuts = np.stack(columns, axis=1).tolist(), np.asarray(payload.indptr).tolist()
    return [names[low:high] for low, high in pairwise(cuts)]


# Reading.


def _read_json(path: AnyPath) -> Any:
    """The content of a file, before anything is known of it."""
    raw = read_bytes(path, "Schedule file")
    try:
        # Rounds in which nothing is sent take little of a file, and much memory.
        check_rounds(raw.translate(None, b" \t\r\n").count(b"[]"))
        return parse_json(raw)
    except InputError as error:
        raise InputError(f"Schedule file {path}: {error}") from None
    except ValueError as error:
        hint = " (torusfabric import reads MSCCL XML)" if raw.lstrip().startswith(b"<") else ""
        raise InputError(f"Schedule file {path} must be JSON: {error}{hint}") from None
