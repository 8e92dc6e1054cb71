"""`Mode`: what a run chooses, one collective in one or several forms."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..collective import Collective, Operator
    from ..schedule import Schedule
    from ..topology import Groups
    from .form import Form

__all__ = ["Mode"]


@dataclass(frozen=True, eq=False)
class Mode:
    """A collective that runs choose; its forms do the same, each for messages of some lengths.

    Parameters
    ----------
    forms : tuple of Form
        For the shortest messages first.
    first : int
        The number of the first form among those of all modes.
    starts : tuple of int
        The least flits of a message for which each form serves; the first is 1.
    """

    forms: tuple[Form, ...]
    first: int = 0
    starts: tuple[int, ...] = (1,)

    def form_of(self, length: int) -> int:
        """The number of the form that serves for messages of so many flits.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8)
        >>> program.forms[0].form_of(5)
        0
        """
        return self.first + bisect(self.starts, length) - 1

    @property
    def longest(self) -> Form:
        """The form for the longest messages, which says what all have in common."""
        return self.forms[-1]

    @property
    def schedule(self) -> Schedule:
        """What is done for the longest messages."""
        return self.longest.schedule

    @property
    def collective(self) -> Collective:
        """What all forms do."""
        return self.schedule.collective

    @property
    def algorithms(self) -> str:
        """The algorithm of each form in words."""
        return " or ".join(dict.fromkeys(form.schedule.algorithm for form in self.forms))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators among which a run chooses; none where nothing is combined."""
        return self.longest.operators

    @property
    def any_root(self) -> bool:
        """Whether the root is chosen at the start of a run."""
        return self.longest.any_root

    @property
    def groups(self) -> Groups:
        """The groups of nodes that carry it out."""
        return self.longest.groups

    def operator_of(self, operation: int | None = None) -> Operator | None:
        """The operator that a run chooses by its number; see `Form.operator_of`."""
        return self.longest.operator_of(operation)
