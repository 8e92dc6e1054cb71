"""The schedules that the commands of the planning side work on: a file, and its facts."""

from argparse import Namespace
from typing import Any

from ..analysis.facts import schedule_facts
from ..analysis.link_use import link_use
from ..schedule import Schedule
from .output import progress_bar

__all__ = ["checked_facts", "file_for_topology"]

#: On more arcs than this their use is not counted.
MOST_ARCS = 2**24


def file_for_topology(arguments: Namespace) -> None:
    """Take TOPOLOGY without COLLECTIVE for a schedule file, or several."""
    if arguments.plan is None and arguments.collective is None:
        arguments.plan, arguments.topology = arguments.topology, None


def checked_facts(schedule: Schedule, *, flits: int | None = None, why: str = "") -> dict[str, Any]:
    """Check a schedule, and measure it: as `schedule_facts`, with the use of links.

    Where these are not too many to count, and why its algorithm was chosen, if that is known.

    Raises
    ------
    ScheduleError
        If the schedule has a fault.
    """
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress, flits=flits)
    if schedule.topology.nodes * schedule.topology.ports <= MOST_ARCS:
        facts["links"] = link_use(schedule).to_json()
    return facts | ({"why": why} if why else {})
