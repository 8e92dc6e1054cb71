"""Display of schedules in Jupyter notebooks: a picture, and a table of facts."""

from typing import Any

from ..analysis.facts import facts_text, schedule_facts
from ..errors import ScheduleError
from ..schedule import Schedule
from ..toolchain.quoting import facts_table
from . import draw

__all__ = ["register_display", "schedule_html", "schedule_svg"]

#: Most nodes of a network that is drawn without an explicit `draw`.
MOST_NODES = 1024

#: Facts that the title has already.
_TITLE_FACTS = ("topology", "collective", "algorithm")


def register_display(shell: Any) -> None:
    """Register the display of schedules in an IPython shell.

    Parameters
    ----------
    shell : InteractiveShell
        The running shell of IPython.
    """
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Schedule, schedule_svg)
    formatters["text/html"].for_type(Schedule, schedule_html)


def schedule_svg(schedule: Schedule) -> str | None:
    """Return the picture of a schedule; None for more than `MOST_NODES` nodes."""
    return draw(schedule) if schedule.topology.nodes <= MOST_NODES else None


def schedule_html(schedule: Schedule) -> str:
    """Return the picture of a schedule, and a table of its facts, or of its fault if it has one."""
    try:
        facts = facts_text(schedule_facts(schedule))
    except ScheduleError as error:
        facts = {"checked": f"no: {error}"}
    title = f"{schedule.topology} {schedule.collective}, {schedule.algorithm}"
    rows = {name: value for name, value in facts.items() if name not in _TITLE_FACTS}
    # An image for screen readers, which then read its title, and not each number in it.
    picture = (schedule_svg(schedule) or "").replace("<svg ", '<svg role="img" ', 1)
    return picture + facts_table(title, rows)
