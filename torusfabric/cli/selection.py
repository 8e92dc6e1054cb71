"""Two steps that the commands for schedules share: take a file as argument, and check it."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from ..analysis.facts import schedule_facts
from ..analysis.link_use import measure_link_use
from ..collective import Operator
from ..schedule import Schedule
from .output import progress_bar

__all__ = ["checked_facts", "topology_as_file"]

#: Most arcs of a topology whose use is counted.
MOST_ARCS = 2**24


def topology_as_file(arguments: Namespace) -> None:
    """Move the value of TOPOLOGY to ``--plan`` if it is given without COLLECTIVE.

    A command such as ``check`` can then take the path of a schedule file as its only argument.
    """
    if arguments.plan is None and arguments.collective is None:
        arguments.plan, arguments.topology = arguments.topology, None


def checked_facts(
    schedule: Schedule,
    operators: Sequence[Operator] = (),
    *,
    flits: int | None = None,
    why: str = "",
) -> dict[str, Any]:
    """Check a schedule; return the names and values about it that commands print.

    They are those of `schedule_facts`. They include the use of links, unless the topology has more
    than `MOST_ARCS` arcs.

    Parameters
    ----------
    schedule : Schedule
        The schedule to check.
    operators : sequence of Operator
        The operators of a reduction. If the order of operands matters to one, nodes that receive
        the same sum must combine words in the same order.
    flits : int, optional
        Flits of a message, for facts about cycles.
    why : str
        Reason why its algorithm was chosen; added to the facts unless empty.

    Raises
    ------
    ScheduleError
        If the schedule has a fault.
    InputError
        If nodes would combine words in different orders.
    """
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress, operators, flits=flits)
    if schedule.collective.reducing and not all(each.associative for each in operators):
        from ..planning import compile  # here, since it imports the compiler

        with progress_bar("comparing orders of operands"):
            compile(schedule, operators=operators)
    if schedule.topology.nodes * schedule.topology.ports <= MOST_ARCS:
        facts["links"] = measure_link_use(schedule).to_json()
    return facts | ({"why": why} if why else {})
