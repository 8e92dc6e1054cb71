"""The report of a proof: claims, assumptions, and a counterexample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import WorkFailed

__all__ = ["Counterexample", "ModuleProof", "Proof", "Refuted", "refuted"]


@dataclass(frozen=True)
class ModuleProof:
    """The proof of a part of the fabric.

    Parameters
    ----------
    name : str
        A module of the text, or what several are together.
    seconds : float
        What it took when it was done; a proof that is known already takes no time again.
    says : str
        What they say, in a line.
    """

    name: str
    method: str
    properties: int
    seconds: float
    says: str


@dataclass(frozen=True)
class Counterexample:
    """Something that does not hold.

    Parameters
    ----------
    wave : str
        It as the text of a VCD file; empty where there is none.
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
    assumptions : tuple of str
        What is not proved, in whole sentences.
    """

    modules: tuple[ModuleProof, ...]
    assumptions: tuple[str, ...]
    conclusion: str
    counterexample: Counterexample | None = None

    @property
    def proved(self) -> bool:
        """True if everything holds."""
        return self.counterexample is None

    def require_proved(self, waves: str) -> None:
        """Raise `WorkFailed` if anything does not hold, with words that say where waves are."""
        if self.counterexample:
            raise WorkFailed(f"{self.counterexample.message}{waves}")

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
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
    """Something does not hold.

    Parameters
    ----------
    run : object
        The run in which it does not, if it is one.
    """

    def __init__(self, counterexample: Counterexample, run: object = None) -> None:
        super().__init__(counterexample.message)
        self.counterexample, self.run = counterexample, run


def refuted(module: str, signal: str, message: str, *, cycle: int = 0) -> Refuted:
    """The exception of something that does not hold."""
    return Refuted(Counterexample(module, signal, cycle, message))
