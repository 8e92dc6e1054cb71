"""What does not hold, as exceptions that carry a counterexample."""

from __future__ import annotations

from .report import Counterexample

__all__ = ["Refuted", "refuted"]


class Refuted(Exception):
    """Something does not hold.

    Parameters
    ----------
    counterexample : Counterexample
    run : object
        The run in which it does not, if it is one.
    """

    def __init__(self, counterexample: Counterexample, run: object = None) -> None:
        super().__init__(counterexample.message)
        self.counterexample, self.run = counterexample, run


def refuted(module: str, signal: str, message: str, *, cycle: int = 0, wave: str = "") -> Refuted:
    """The exception of something that does not hold."""
    return Refuted(Counterexample(module, signal, cycle, message, wave))
