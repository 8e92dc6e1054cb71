"""What all simulations say in the end: what they found, and whether anything is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import WorkFailed

if TYPE_CHECKING:
    from ..simulation.boards.report import SystemReport
    from ..simulation.report import SimulationReport
    from ..simulation.streams.report import StreamReport

__all__ = ["raise_if_wrong", "simulated"]

#: What the check of a schedule found that stands in the report of a simulation, too.
KNOWN = ("unit", "bound_where", "cut", "renumbered", "limit", "limit_flits", "why", "delta", "tau",
         "tau_bound", "modes", "forms")  # fmt: skip


def simulated(
    report: SimulationReport | StreamReport, facts: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """What a simulation found, beside what was known before and how it was carried out."""
    return report.to_json() | {name: facts[name] for name in KNOWN if name in facts} | more


def raise_if_wrong(report: SimulationReport | StreamReport | SystemReport) -> None:
    """Raise an error if a word is wrong, or the cycles are not those predicted."""
    if report.passed:
        return
    if report.first_wrong:
        raise WorkFailed(
            f"{report.words_wrong} of {report.words_checked} words are wrong; first: "
            f"{report.first_wrong}"
        )
    from ..simulation.boards.report import SystemReport  # which few simulations need

    if isinstance(report, SystemReport) and report.failed:
        faults = [run.fault for run in report.jobs if run.failed]
        raise WorkFailed(f"{len(faults)} of {len(report.jobs)} runs failed; first: {faults[0]}")
    raise WorkFailed(f"Cycles must be {report.predicted_cycles}, not {report.cycles}")
