"""What all simulations say in the end: what they found, and whether anything is wrong."""

from typing import Any, Protocol

from ..errors import WorkFailed

__all__ = ["SimulationReport", "raise_if_wrong", "simulated"]

#: What the check of a schedule found that stands in the report of a simulation, too.
KNOWN = ("unit", "bound_where", "cut", "renumbered", "limit", "limit_flits", "why", "delta", "tau",
         "tau_bound", "modes", "forms")  # fmt: skip


class SimulationReport(Protocol):
    """What the reports of all simulations have."""

    @property
    def first_wrong(self) -> object:
        """What is said of the first word that is wrong, or None."""

    @property
    def words_wrong(self) -> int:
        """How many words are wrong."""

    @property
    def words_checked(self) -> int:
        """How many words were compared."""

    @property
    def cycles(self) -> object:
        """What was counted."""

    @property
    def predicted_cycles(self) -> object:
        """What the program says."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        ...


def simulated(report: SimulationReport, facts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a simulation found, beside what was known before and how it was carried out."""
    return report.to_json() | {name: facts[name] for name in KNOWN if name in facts} | more


def raise_if_wrong(report: SimulationReport) -> None:
    """Raise an error if a word is wrong, or the cycles are not those predicted."""
    if report.first_wrong:
        raise WorkFailed(
            f"{report.words_wrong} of {report.words_checked} words are wrong; first: "
            f"{report.first_wrong}"
        )
    if not report.passed:
        raise WorkFailed(f"Cycles must be {report.predicted_cycles}, not {report.cycles}")
