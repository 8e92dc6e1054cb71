"""Plans for a root that is chosen at the start of each run, in which all nodes do the same.

What is planned for node 0 serves any root, if every node has memories and ROMs for whatever its
offset from the root may be. So does a collective of all nodes in which they do the same, of which
only what is of one root counts: a scatter is a part of a total exchange, a gather of an all-gather,
and a reduction to a root of an all-reduce. These plans are here; both kinds are candidates where a
root is left open, and cycles and LUTs decide as they always do.
"""

from __future__ import annotations

from dataclasses import replace

from ..algorithms import find
from ..collective import Collective
from ..errors import InputError
from ..schedule import Lifted, Masked, Pattern, Schedule, Table
from .planned import planned
from .selection import Selection

__all__ = ["masked", "to_every_root"]

#: What does from, or to, every node at once what a collective does from or to its root.
TO_EVERY_ROOT = {"scatter": "alltoall", "gather": "allgather", "reduce": "allreduce"}

#: The algorithm that plans all of these, as tables, on any topology.
TABLES = "matching"


def to_every_root(selection: Selection) -> Selection | None:
    """What is selected for all nodes in which they do the same; None if there is no such."""
    kind = TO_EVERY_ROOT.get(selection.collective.kind)
    if kind is None:
        return None
    collective = replace(selection.collective, kind=kind, root=None)
    algorithm = selection.algorithm or find(TABLES)
    return replace(selection, collective=collective, algorithm=algorithm)


def masked(every: Selection, collective: Collective) -> Selection:
    """The selection of a collective that is a part of that of all nodes, whose plan it masks.

    Its plan is refused if the algorithm makes nodes do different things.
    """

    def plan(one: Selection) -> Schedule:
        whole = planned(replace(one, collective=every.collective, planner=every.planner))
        part = whole.part if isinstance(whole, Lifted) else whole
        if not isinstance(part, Pattern | Table):
            raise InputError(f"{one.chosen().name} must do the same at all nodes for any root")
        only: Schedule = Masked.of(part, collective.in_one_group)
        return Lifted.of(only, whole.topology, collective) if isinstance(whole, Lifted) else only

    return replace(every, collective=collective, planner=plan)
