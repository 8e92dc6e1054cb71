"""What a schedule does and costs, checked."""

from typing import Any

from ..schedule import Schedule
from .bounds import bound
from .check import Progress, check
from .cost import schedule_cost

__all__ = ["schedule_facts"]


def schedule_facts(schedule: Schedule, progress: Progress | None = None) -> dict[str, Any]:
    """Check a schedule and measure it.

    Parameters
    ----------
    schedule : Schedule
    progress : function of (done, total), optional

    Returns
    -------
    dict
        Plain values by name; ``delta`` counts hops, and ``tau`` messages, a `Fraction`.

    Raises
    ------
    ScheduleError
        If the schedule has a fault.
    """
    traffic = check(schedule, progress=progress)
    cost = schedule_cost(schedule, traffic)
    return {
        "topology": str(schedule.topology),
        "nodes": schedule.topology.nodes,
        "collective": str(schedule.collective),
        "algorithm": schedule.algorithm,
        "switching": schedule.switching,
        "ports": schedule.ports,
        "chunks": schedule.chunks,
        "duplex": schedule.duplex,
        "rounds": schedule.round_count,
        "bound": bound(schedule, traffic),
        "delta": cost.delta,
        "tau": cost.tau,
        "transfers": cost.transfers,
        "checked": True,
    }
