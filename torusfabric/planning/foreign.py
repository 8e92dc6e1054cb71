"""Import of schedules that another system made, and a comparison with our best schedule.

`import_schedule` reads MSCCL XML and returns a `Schedule`. A *rank* is a process of the other
system; a *placement* gives the node of each rank.
"""

from __future__ import annotations

import os
import re

import numpy as np

from ..algorithms import CATALOGUE, Options
from ..algorithms.algorithm import AlgorithmFailed
from ..algorithms.foreign.list_schedule import list_schedule
from ..algorithms.foreign.placement import PLACEMENTS, SEARCH_SECONDS, place_ranks
from ..analysis.cost import schedule_cost
from ..errors import InputError
from ..schedule import Schedule, Switching
from ..schedule.foreign.dataflow import read_dataflow
from ..schedule.recognise import recognise
from ..toolchain.public import public
from ..toolchain.reading import excerpt, read_text
from ..toolchain.values import parse_number, require_path, unknown_name_error
from ..topology import IntArray, Topology, parse_topology
from .limits import is_quick_to_plan
from .plans import plan_selection
from .selection import Selection

__all__ = ["best_own_schedule", "import_with_placement", "import_schedule"]

#: Largest accepted file with a placement, in bytes.
MOST_MAP_BYTES = 2**24


@public
def import_schedule(
    path: str | os.PathLike[str],
    topology: Topology | str | None = None,
    *,
    placement: str | os.PathLike[str] = "identity",
    switching: Switching | str = Switching.STORE_AND_FORWARD,
    root: int | None = None,
    seconds: float = SEARCH_SECONDS,
) -> Schedule:
    """Read an MSCCL XML file, and return its schedule on a topology.

    A rank is a process of the other system, such as a GPU. The steps of the file become rounds by
    list scheduling: each step takes place in the first round in which its data have arrived, its
    dependencies are done, and its link is free. A link carries one block in a round.

    Parameters
    ----------
    path : path
        The file; compressed if its name ends in ``.gz``.
    topology : Topology or str, optional
        The network, with a node for each rank. It may be left out for a file that
        `export_schedule` wrote, which names its topology.
    placement : {"identity", "gray", "auto"}, or path
        The node of each rank, see `place_ranks`, or a file with a node number a line.
    switching : Switching
        With ``circuit``, ranks that send to each other need not be neighbours: the path between
        them is connected for a whole round.
    root : int, optional
        The rank that is the root, if the file does not name it.
    seconds : float
        Most seconds of the search for a placement, with ``placement="auto"``.

    Returns
    -------
    Schedule
        The schedule in the smallest form that can express it, not checked.

    Raises
    ------
    InputError
        If the file has an error, or does not fit the topology.

    Examples
    --------
    >>> import tempfile, torusfabric as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tf.export_schedule(tf.plan("4x4", "allgather"), f"{folder}/plan.xml")
    ...     schedule = tf.import_schedule(f"{folder}/plan.xml", "4x4")
    >>> schedule.form, schedule.steps
    ('pattern', 8)
    """
    schedule, _ = import_with_placement(
        path, topology, placement=placement, switching=switching, root=root, seconds=seconds
    )
    return schedule


def import_with_placement(
    path: str | os.PathLike[str],
    topology: Topology | str | None = None,
    *,
    placement: str | os.PathLike[str] = "identity",
    switching: Switching | str = Switching.STORE_AND_FORWARD,
    root: int | None = None,
    seconds: float = SEARCH_SECONDS,
) -> tuple[Schedule, IntArray]:
    """Read an MSCCL XML file, and return its schedule and the node of each rank.

    A rank is a process of the other system, such as a GPU.

    Parameters
    ----------
    path, topology, placement, switching, root, seconds
        File, network, placement and limits of the search, see `import_schedule`.

    Returns
    -------
    schedule : Schedule
        The schedule, not checked.
    nodes : ndarray of int, shape (ranks,)
        The node of each rank.

    Raises
    ------
    InputError
        If the file has an error, or does not fit the topology.
    """
    seconds, placement = parse_number("Seconds", seconds), require_path("Placement", placement)
    dataflow = read_dataflow(path, root)
    topology = dataflow.file.facts.get("topology") if topology is None else topology
    if topology is None:
        raise InputError(f"File {path} names no topology; give one (--topology), for example 2x4")
    topology = parse_topology(topology)
    if topology.relays:
        raise InputError(
            f"MSCCL file {path} needs a network with a rank at each node; leave out the relays of "
            f"{topology}"
        )
    if placement in PLACEMENTS:
        nodes = place_ranks(dataflow, topology, str(placement), seconds=seconds)
    else:
        nodes = _read_placement(placement, topology, dataflow.buffers.ranks)
    try:
        rounds = list_schedule(dataflow, topology, nodes, switching=switching)
    except InputError as error:
        raise InputError(f"MSCCL file {path}: {error}") from None
    return recognise(rounds), nodes


def best_own_schedule(schedule: Schedule) -> Schedule | None:
    """Return our best schedule for the collective and the topology of another schedule.

    Each algorithm of the catalogue is tried, unless planning may take more than about a second.

    Returns
    -------
    Schedule or None
        A schedule with as many chunks as `schedule` is preferred to all others; among equals the
        one with the least message times, then with the fewest rounds. None if no algorithm is
        suitable.
    """
    planned = []
    for algorithm in CATALOGUE:
        for options in (Options(chunks=schedule.chunks), Options()):
            selection = Selection(schedule.topology, schedule.collective, algorithm, options)
            misfit = algorithm.why_not(schedule.topology, schedule.collective, options)
            if misfit is None and is_quick_to_plan(selection):
                try:
                    found = plan_selection(selection)
                except AlgorithmFailed as error:
                    error.warn_once()
                    break
                others = found.chunks != schedule.chunks
                planned.append(
                    (others, schedule_cost(found).hardware_times, found.round_count, found)
                )
                break
    return min(planned, key=lambda entry: entry[:3], default=(0, 0, 0, None))[3]


def _read_placement(path: str | os.PathLike[str], topology: Topology, ranks: int) -> IntArray:
    """Return the node of each rank (process of a foreign schedule), read from the file `path`.

    The file has one node number a line; line r is the node of rank r. It must list each node of the
    topology once, for `ranks` ranks. ``#`` starts a comment.
    """
    if not os.path.exists(path):
        raise unknown_name_error(
            "Map", os.fspath(path), PLACEMENTS, more=", or a file with a node a line"
        )
    lines = read_text(path, "Map of ranks", most=MOST_MAP_BYTES).splitlines()
    entries = [line.split("#")[0].strip() for line in lines]
    entries = [entry for entry in entries if entry]
    for entry in entries:
        if not re.fullmatch(r"[0-9]{1,9}", entry) or int(entry) >= topology.nodes:
            raise InputError(
                f"Map of ranks {path} must list nodes from 0 to {topology.nodes - 1}, one a line, "
                f"not {excerpt(entry)}"
            )
    if len(entries) != ranks or len(set(map(int, entries))) != topology.nodes:
        raise InputError(
            f"Map of ranks {path} must list each of the {topology.nodes} nodes of {topology} once, "
            f"for {ranks} ranks, not {len(set(entries))} of them in {len(entries)} lines"
        )
    return np.array(list(map(int, entries)))
