"""What commands say of a schedule: that it is right, what it takes, how it uses the links."""

from typing import Any

from ..analysis.facts import schedule_facts
from ..analysis.link_use import link_use
from ..schedule import Schedule
from .output import progress_bar

__all__ = ["checked_facts"]

#: On more arcs than this their use is not counted.
MOST_ARCS = 2**24


def checked_facts(schedule: Schedule, *, flits: int | None = None, why: str = "") -> dict[str, Any]:
    """Check a schedule, and measure it.

    Parameters
    ----------
    flits : int, optional
        Flits of a message; by default one for each chunk.
    why : str
        Why its algorithm was chosen, if that is known.

    Returns
    -------
    dict
        As `schedule_facts`, and the use of links, where these are not too many to count.

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
