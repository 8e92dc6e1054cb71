"""Schedules as notebooks show them: a picture, and what is known of them."""

from typing import Any

from ..analysis.facts import in_words, schedule_facts
from ..errors import ScheduleError
from ..schedule import Schedule
from ..toolchain.quoting import facts_table
from . import draw

__all__ = ["register", "schedule_html", "schedule_svg"]

#: Larger networks are not drawn unless somebody asks for it.
MOST_NODES = 1024

#: What the title says already.
_IN_TITLE = ("topology", "collective", "algorithm")


def register(shell: Any) -> None:
    """Let a shell of IPython show schedules.

    Parameters
    ----------
    shell : InteractiveShell
    """
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Schedule, schedule_svg)
    formatters["text/html"].for_type(Schedule, schedule_html)


def schedule_svg(schedule: Schedule) -> str | None:
    """The picture; None of a network that is too large for a page."""
    return draw(schedule) if schedule.topology.nodes <= MOST_NODES else None


def schedule_html(schedule: Schedule) -> str:
    """The picture, and a table of what the schedule takes; of one with a fault, where it is."""
    try:
        facts = in_words(schedule_facts(schedule))
    except ScheduleError as error:
        facts = {"checked": f"no: {error}"}
    title = f"{schedule.topology} {schedule.collective}, {schedule.algorithm}"
    rows = {name: value for name, value in facts.items() if name not in _IN_TITLE}
    return (schedule_svg(schedule) or "") + facts_table(title, rows)
