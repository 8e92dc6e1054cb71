"""Schedules for a root that each run chooses, and the choice between two ways to make one.

*By offset*: plan for node 0. The topology looks the same from each node. So for another root, a
node at some offset from the root does the actions of the node at this offset from node 0. Each node
then needs memories and ROMs for the actions of all nodes.

*Masked*: plan the collective that serves all roots at once, such as an alltoall for a scatter, and
ignore all blocks but those of the actual root. If all nodes do the same in this schedule, no part
of the hardware depends on the root.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..algorithms import find_algorithm
from ..collective import Collective
from ..errors import InputError
from ..program import compile
from ..program.counts import estimate_luts
from ..schedule import Lifted, Masked, Pattern, Schedule, Table
from .plans import plan_selection, resolve
from .selection import Selection
from .selection_schedule import length_arguments

__all__ = ["mask_to_root", "plan_any_root", "selection_for_every_root"]

#: For a collective with a root, the collective that does the same for every root at once.
KINDS_FOR_EVERY_ROOT = {"scatter": "alltoall", "gather": "allgather", "reduce": "allreduce"}

#: An algorithm for all collectives of `KINDS_FOR_EVERY_ROOT` on any topology. Its schedules are
#: tables.
TABLE_ALGORITHM = "matching"


def plan_any_root(
    selection: Selection, *, flits: int | None = None, any_length: bool = False
) -> tuple[Selection, Schedule]:
    """Plan a collective for a root that each run chooses; the schedule is not checked.

    There are two ways, and both are planned. A schedule *by offset* is planned for root 0; for
    another root, a node at some offset from the root does the actions of the node at this offset
    from node 0. A *masked* schedule is that of a collective that serves every root at once, such as
    an all-to-all for a scatter; blocks of other roots are ignored. The result is the schedule with
    fewer cycles; among equals, the one with fewer LUTs by estimate. If the selection names an
    algorithm, this algorithm plans both schedules, or the only one of them that it supports.

    Parameters
    ----------
    selection : Selection
        A collective with root 0.
    flits : int, optional
        Flits of a message, or of the longest message; by default one for each chunk.
    any_length : bool
        True if each run chooses its message length.

    Returns
    -------
    selection : Selection
        The selection with an algorithm and a latency.
    schedule : Schedule
        The schedule, of root 0 or masked.

    Raises
    ------
    InputError
        If no algorithm is suitable.

    Examples
    --------
    For short messages a schedule by offset is chosen, for long ones a masked one:

    >>> from torusfabric.planning import make_selection
    >>> for flits in (1, 16):
    ...     selection, schedule = plan_any_root(make_selection("4x4", "reduce"), flits=flits)
    ...     print(selection.algorithm.name, schedule.form)
    diagonal rounds
    matching masked
    """
    length: dict[str, Any] = {"flits": flits, "any_length": any_length}
    same = _masked_plan(selection, length)
    try:
        resolved = resolve(selection, **length, root="any")
        rooted = resolved, plan_selection(resolved)
    except InputError:
        if same is None:
            raise
        return same
    if same is None:
        return rooted
    programs = [compile(plan[1], **length_arguments(plan[1], **length), root="any")
                for plan in (rooted, same)]  # fmt: skip
    costs = [(program.cycles(), estimate_luts(program)) for program in programs]
    return same if costs[1] < costs[0] else rooted


def selection_for_every_root(selection: Selection) -> Selection | None:
    """Return the selection in which every node is a root at once, or None if there is none.

    For example, the selection of a scatter becomes that of an all-to-all, a gather becomes an
    all-gather, and a reduce an all-reduce. If `selection` has no algorithm, the result has the
    algorithm `TABLE_ALGORITHM`.
    """
    kind = KINDS_FOR_EVERY_ROOT.get(selection.collective.kind)
    if kind is None:
        return None
    collective = replace(selection.collective, kind=kind, root=None)
    algorithm = selection.algorithm or find_algorithm(TABLE_ALGORITHM)
    return replace(selection, collective=collective, algorithm=algorithm)


def mask_to_root(schedule: Schedule, collective: Collective) -> Schedule | None:
    """Return a schedule for all roots as one in which only the blocks of a single root count.

    Parameters
    ----------
    schedule : Schedule
        The schedule of a collective that serves every root at once, such as an all-to-all.
    collective : Collective
        The collective of one root, such as a scatter.

    Returns
    -------
    Schedule or None
        The masked schedule; None if `schedule` is neither a pattern nor a table. In schedules of
        other forms, nodes may do different things, so the hardware would depend on the root.
    """
    part = schedule.part if isinstance(schedule, Lifted) else schedule
    if not isinstance(part, Pattern | Table):
        return None
    only: Schedule = Masked.for_root(part, collective.in_one_group)
    return (
        Lifted.from_group(only, schedule.topology, collective)
        if isinstance(schedule, Lifted)
        else only
    )


def _masked_plan(selection: Selection, length: dict[str, Any]) -> tuple[Selection, Schedule] | None:
    """Plan the collective that serves every root at once, and ignore the blocks of all other roots.

    Return `selection` with its algorithm, and the schedule. `length` has the arguments of `resolve`
    for the message length, such as ``{"flits": 16, "any_length": False}``. The result is None if no
    collective serves every root, if no algorithm is suitable, or if the schedule cannot be masked.
    """
    every = selection_for_every_root(selection)
    if every is None:
        return None
    try:
        whole = resolve(every, **length)
        schedule = mask_to_root(plan_selection(whole), selection.collective)
    except InputError:
        return None
    if schedule is None:
        return None
    return replace(whole, collective=selection.collective), schedule
