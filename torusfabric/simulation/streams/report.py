"""What a simulation of streams found."""

from dataclasses import asdict, dataclass
from typing import Any

from ..report import JobReport, Subject
from .limits import Rate

__all__ = ["StreamReport"]


@dataclass(frozen=True)
class StreamReport(Subject):
    """What a simulation of streams found.

    Parameters
    ----------
    stall : float
        How likely it was that a port rested in a cycle.
    dropped : dict of int to int
        Runs that were no good, by their error.
    rate : Rate or None
        How fast runs followed one another, if none was dropped.
    clocks : int
        Clock cycles simulated in all.
    """

    stall: float
    dropped: dict[int, int]
    rate: Rate | None
    jobs: tuple[JobReport, ...]
    first_wrong: str | None
    clocks: int

    @property
    def passed(self) -> bool:
        """Whether all words are right, and all runs took the cycles that were planned."""
        return not self.words_wrong and all(job.cycles == job.predicted_cycles for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        rate = {"rate": self.rate and self.rate.to_json(), "passed": self.passed}
        return asdict(self) | rate
