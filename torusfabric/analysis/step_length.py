"""How long the steps of a schedule are: eighteen of half a message take as long as nine of one."""

from dataclasses import dataclass
from fractions import Fraction

from ..schedule import Lifted, Pattern, Schedule, SumPattern, SumTable, Table
from .check import Traffic, check

__all__ = ["StepLength", "step_length"]


@dataclass(frozen=True)
class StepLength:
    """What the longest message of a step, or round, carries, in messages of a node.

    Parameters
    ----------
    least, most : Fraction
        Of all steps in which anything is sent.

    Examples
    --------
    >>> print(StepLength(Fraction(1, 2), Fraction(1, 2)), StepLength(Fraction(1), Fraction(49)))
    1/2 message 1 to 49 messages
    """

    least: Fraction
    most: Fraction

    def __str__(self) -> str:
        lengths = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        return f"{lengths} message{'s' * (self.most > 1)}"


def step_length(schedule: Schedule, traffic: Traffic | None = None) -> StepLength:
    """The length of the steps, or rounds, of a schedule.

    Parameters
    ----------
    traffic : Traffic, optional
        What `check` returned for it. Without it, other schedules than patterns and tables, which
        move one block a step, are checked.

    Raises
    ------
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    >>> import torusfabric as tf
    >>> print(step_length(tf.plan("6x8", "allgather", algorithm="hamiltonian")))
    1/2 message
    """
    if isinstance(schedule, Lifted):
        return step_length(schedule.part, traffic)
    if traffic is None and isinstance(schedule, Pattern | SumPattern | Table | SumTable):
        blocks = {1}
    else:
        blocks = set((traffic or check(schedule)).round_blocks) - {0} or {0}
    chunks = schedule.chunks
    return StepLength(Fraction(min(blocks), chunks), Fraction(max(blocks), chunks))
