"""Simulation of fabrics on several boards, each with its own clock."""

from collections.abc import Mapping
from typing import Any

from ..hardware.system import BoardSystem
from .compiled import RunOutcome
from .simulate import BoardRun, SystemReport, make_jobs, run_jobs, simulate_boards

__all__ = ["BoardRun", "RunOutcome", "SystemReport", "make_jobs", "run_jobs", "simulate",
           "simulate_boards"]  # fmt: skip


def simulate(system: BoardSystem, choices: Mapping[str, Any], **how: Any) -> SystemReport:
    """Simulate a fabric on several boards, as a command asks for it, and return the report.

    Parameters
    ----------
    system : BoardSystem
        The fabric on several boards.
    choices : mapping
        Choices of the command. Only ``link_errors`` is used, the probability that a cable changes a
        word.
    **how
        Further parameters of `simulate_boards`.
    """
    return simulate_boards(system, link_errors=choices["link_errors"] or 0.0, **how)
