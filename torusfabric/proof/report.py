"""The report of a proof: proved steps, assumptions, and a counterexample if a step fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import WorkFailed

__all__ = ["Counterexample", "ModuleProof", "Proof", "Refuted", "make_refutation"]


@dataclass(frozen=True)
class ModuleProof:
    """The proof of one step, about one module or about several together.

    Parameters
    ----------
    name : str
        Name of the module in the Verilog, or of the step if it is about several modules.
    method : str
        Method of the proof, such as ``induction over time``.
    properties : int
        Number of assertions or comparisons.
    seconds : float
        Time of the proof when it was first done; a cached proof keeps that time.
    says : str
        The proved statement, in one line.
    """

    name: str
    method: str
    properties: int
    seconds: float
    says: str


@dataclass(frozen=True)
class Counterexample:
    """A property that fails.

    Parameters
    ----------
    module : str
        Module or step of the property.
    signal : str
        Signal that is wrong.
    cycle : int
        Cycle in which it is wrong; 0 for a property without time.
    message : str
        One line about the failure.
    wave : str
        Waveforms of the failure as the text of a VCD file; empty for none.
    """

    module: str
    signal: str
    cycle: int
    message: str
    wave: str = ""


@dataclass(frozen=True)
class Proof:
    """The proof of a fabric.

    Parameters
    ----------
    modules : tuple of ModuleProof
        The proved steps, in order.
    assumptions : tuple of str
        Unproved preconditions, each a sentence.
    conclusion : str
        The proved statement about the fabric.
    counterexample : Counterexample or None
        The first property that fails.
    """

    modules: tuple[ModuleProof, ...]
    assumptions: tuple[str, ...]
    conclusion: str
    counterexample: Counterexample | None = None

    @property
    def proved(self) -> bool:
        """True if all steps hold, so that there is no counterexample."""
        return self.counterexample is None

    def require_proved(self, waves: str) -> None:
        """Raise `WorkFailed` if a property fails; the text `waves` is appended to the message."""
        if self.counterexample:
            raise WorkFailed(f"{self.counterexample.message}{waves}")

    def to_json(self) -> dict[str, Any]:
        """Return the proof as a dict that JSON can hold, without waveforms."""
        wrong = self.counterexample
        return {
            "proved": self.proved,
            "modules": [vars(module) for module in self.modules],
            "assumptions": list(self.assumptions),
            "conclusion": self.conclusion if self.proved else None,
            "counterexample": wrong
            and {name: value for name, value in vars(wrong).items() if name != "wave"},
        }


class Refuted(Exception):
    """Exception for a property that fails.

    Parameters
    ----------
    counterexample : Counterexample
        The failure.
    run : object
        The run in which the property fails; None for a property of no particular run.
    """

    def __init__(self, counterexample: Counterexample, run: object = None) -> None:
        super().__init__(counterexample.message)
        self.counterexample, self.run = counterexample, run


def make_refutation(module: str, signal: str, message: str, *, cycle: int = 0) -> Refuted:
    """Return the exception for a property that fails and is about no particular run.

    Parameters
    ----------
    module : str
        Name of the module or step in which the property fails.
    signal : str
        Name of the signal, or of the place, that the property is about.
    message : str
        Sentence that says what is wrong.
    cycle : int
        Cycle in which the property fails.
    """
    return Refuted(Counterexample(module, signal, cycle, message))
