"""Plans for a root that is chosen at the start of each run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..algorithms import find
from ..collective import Collective
from ..errors import InputError
from ..program import compile
from ..program.counts import estimated_luts
from ..schedule import Lifted, Masked, Pattern, Schedule, Table
from .planned import most_flits
from .plans import plan_selection, resolve
from .selection import Selection

__all__ = ["masked", "plan_any_root", "to_every_root"]

#: What does from, or to, every node at once what a collective does from or to its root.
TO_EVERY_ROOT = {"scatter": "alltoall", "gather": "allgather", "reduce": "allreduce"}

#: The algorithm that plans all of these, as tables, on any topology.
TABLES = "matching"


def plan_any_root(
    selection: Selection, *, flits: int | None = None, any_length: bool = False
) -> tuple[Selection, Schedule]:
    """Plan for any root what is selected for node 0; the schedule is not checked.

    What is planned for node 0 serves any root, if every node has memories and ROMs for whatever
    its offset from the root may be. So does a collective of all nodes, if they do the same in it:
    a scatter is a part of a total exchange, a gather of an all-gather, and a reduction to a root of
    an all-reduce. Chosen is what takes fewer cycles, or else fewer LUTs by estimate; of a named
    algorithm, what it plans.

    Parameters
    ----------
    flits : int, optional
        Flits of a message, or the most; by default one for each chunk.
    any_length : bool
        Whether the length is chosen at the start of each run.

    Returns
    -------
    selection : Selection
        With the algorithm, and the latency.
    schedule : Schedule

    Raises
    ------
    InputError
        If no algorithm serves.

    Examples
    --------
    >>> from torusfabric.planning import select
    >>> for flits in (1, 16):
    ...     selection, schedule = plan_any_root(select("4x4", "reduce"), flits=flits)
    ...     print(selection.algorithm.name, schedule.form)
    diagonal rounds
    matching masked
    """
    length: dict[str, Any] = {"flits": flits, "any_length": any_length}
    same = _masked(selection, length)
    try:
        resolved = resolve(selection, **length, root="any")
        rooted = resolved, plan_selection(resolved)
    except InputError:
        if same is None:
            raise
        return same
    if same is None:
        return rooted
    programs = [compile(plan[1], **most_flits(plan[1], **length), root="any")
                for plan in (rooted, same)]  # fmt: skip
    costs = [(program.cycles(), estimated_luts(program)) for program in programs]
    return same if costs[1] < costs[0] else rooted


def to_every_root(selection: Selection) -> Selection | None:
    """What is selected for all nodes in which they do the same; None if there is no such."""
    kind = TO_EVERY_ROOT.get(selection.collective.kind)
    if kind is None:
        return None
    collective = replace(selection.collective, kind=kind, root=None)
    algorithm = selection.algorithm or find(TABLES)
    return replace(selection, collective=collective, algorithm=algorithm)


def masked(schedule: Schedule, collective: Collective) -> Schedule | None:
    """The schedule of all nodes of which only what is of one root counts; None of other forms."""
    part = schedule.part if isinstance(schedule, Lifted) else schedule
    if not isinstance(part, Pattern | Table):
        return None
    only: Schedule = Masked.of(part, collective.in_one_group)
    return Lifted.of(only, schedule.topology, collective) if isinstance(schedule, Lifted) else only


def _masked(selection: Selection, length: dict[str, Any]) -> tuple[Selection, Schedule] | None:
    """The plan in which all nodes do the same; None if there is no such plan."""
    every = to_every_root(selection)
    if every is None:
        return None
    try:
        whole = resolve(every, **length)
        schedule = masked(plan_selection(whole), selection.collective)
    except InputError:
        return None
    if schedule is None:
        return None
    return replace(whole, collective=selection.collective), schedule
