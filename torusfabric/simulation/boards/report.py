"""What a simulation of several boards found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..report import Subject, WrongWord

__all__ = ["BoardRun", "SystemReport"]


@dataclass(frozen=True)
class BoardRun:
    """What came of a run on all boards.

    Parameters
    ----------
    attempts : int
        How often it was carried out.
    cycles, errors : tuple of int
        What each board says.
    failed_links : tuple of int
        A bit for each link port of each board that failed.
    predicted_cycles : int
        Of so many attempts.
    words_checked, words_wrong : int
        0 of a run that has failed, which delivers nothing.
    """

    mode: int
    collective: str
    length: int
    root: int | None
    operation: int | None
    attempts: int
    cycles: tuple[int, ...]
    errors: tuple[int, ...]
    failed_links: tuple[int, ...]
    predicted_cycles: int
    words_checked: int
    words_wrong: int

    @property
    def failed(self) -> bool:
        """Whether any board says so."""
        return any(self.errors)

    @property
    def fault(self) -> str:
        """What has failed, and where."""
        said = []
        for board, (error, bits) in enumerate(zip(self.errors, self.failed_links, strict=True)):
            links = [str(link) for link in range(bits.bit_length()) if bits >> link & 1]
            at = f" at link ports {', '.join(links)}" if links else ""
            said += [f"error {error} of board {board}{at}"] if error else []
        return "; ".join(said)

    @property
    def exact(self) -> bool:
        """Whether all boards took the predicted cycles."""
        return set(self.cycles) == {self.predicted_cycles}


@dataclass(frozen=True)
class SystemReport(Subject):
    """What a simulation of several boards found; cycles are -1 where boards differ.

    Parameters
    ----------
    boards : str
        Blocks along each axis.
    ppm : float
        By how much clocks are off.
    link_errors : float or None
        How likely a word changes on its way to another board; None where that is not known.
    link_words_changed : int
        How many did, as far as that is known.
    retries, failed : int
        Attempts beyond the first, and runs that ended with an error.
    """

    boards: str
    ppm: float
    link_errors: float | None
    link_words_changed: int
    retries: int
    failed: int
    jobs: tuple[BoardRun, ...]
    first_wrong: WrongWord | None

    @property
    def passed(self) -> bool:
        """Whether all words of runs that report success are right, and all cycles as predicted.

        Without errors on links no run may fail, or be repeated; where they are not known, fail.
        """
        right = not self.words_wrong and all(run.exact for run in self.jobs)
        if self.link_errors is None:
            return right and not self.failed
        return right and (self.link_errors > 0 or not (self.failed or self.retries))

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self) | {"passed": self.passed}
