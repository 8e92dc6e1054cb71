"""What a simulation of a periodic fabric found."""

from dataclasses import asdict, dataclass
from typing import Any

from ..toolchain.html import facts_table
from .report import Subject

__all__ = ["PeriodicReport"]


@dataclass(frozen=True)
class PeriodicReport(Subject):
    """What a simulation of a periodic fabric found.

    Parameters
    ----------
    cycles, predicted_cycles : int
        Of a period: the last that was measured, and that planned.
    first_cycles : int
        From the edge that takes `run` to the end of the first period.
    periods : int
        That were run.
    messages : int
        How many different sets of messages they carried.
    words_checked, words_wrong : int
    first_wrong : str or None
        The first word, or the first cycle, that is not as it should be.
    bytes_a_cycle : float
        That all nodes together receive of others, in a cycle of a period.
    seconds : float
    clocks : int
    """

    cycles: int
    predicted_cycles: int
    first_cycles: int
    periods: int
    messages: int
    words_checked: int
    words_wrong: int
    first_wrong: str | None
    bytes_a_cycle: float
    seconds: float
    clocks: int

    @property
    def passed(self) -> bool:
        """Whether all words, and all cycles, are right."""
        return self.first_wrong is None and self.cycles == self.predicted_cycles

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return facts_table(
            f"{self.topology} {self.collective}, {self.algorithm}, periodic: "
            f"{'passed' if self.passed else 'failed'}",
            {
                "engine": self.engine,
                "words wrong": f"{self.words_wrong} of {self.words_checked:,}",
                **({"first wrong": self.first_wrong} if self.first_wrong else {}),
                "cycles of a period": f"{self.cycles}, predicted {self.predicted_cycles}",
                "periods": self.periods,
                "bytes a cycle": f"{self.bytes_a_cycle:g}",
                "seconds": self.seconds,
            },
        )

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return asdict(self) | {"passed": self.passed}
